-- What tables and figures ask, from sums only: no view but `pass` looks at steps. Definitions: DESIGN.md.

-- Per point. S: tokens after prefill over steps after prefill. S_reference counts prefill and its token.
CREATE VIEW point_sums AS
SELECT point_id,
       count(*) AS samples, count(DISTINCT prompt_id) AS prompts, count(DISTINCT pass) AS passes,
       sum(tokens) AS tokens, sum(steps) AS steps,
       1.0 * sum(tokens) / nullif(sum(steps), 0) AS S,
       1.0 * (sum(tokens) + sum(prefill_tokens)) / nullif(sum(steps) + sum(prefill_steps), 0) AS S_reference,
       1.0 * sum(rows) / nullif(sum(steps), 0) AS rows_per_step,
       sum(prefill_ns) AS prefill_ns, sum(decode_ns) AS decode_ns,
       sum(propose_ns) AS propose_ns, sum(forward_ns) AS forward_ns, sum(verify_ns) AS verify_ns,
       sum(observe_ns) AS observe_ns,
       1e9 * sum(tokens) / nullif(sum(decode_ns), 0) AS tokens_per_s,
       sum(flags <> 0) AS flagged, sum(flags & 16 <> 0) AS diverged
FROM sample GROUP BY point_id;
