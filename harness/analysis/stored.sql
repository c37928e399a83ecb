-- The table of run ?1, a line a point. What resampling gives comes from `estimate`; where nobody could make that (the
-- store may only be read), the values come from the samples, and intervals are missing.
--
-- Sums are taken once for the run, not once a point: a store may hold millions of steps. A point that is not held against
-- its own settings' baseline says against which, and what it is beside its own.
WITH sums AS MATERIALIZED (
    SELECT point_id, count(DISTINCT prompt.number) AS prompts, count(DISTINCT pass) AS passes, count(*) AS samples,
           sum(flags & 16 <> 0) AS diverged,
           1.0 * sum(sample.tokens) AS tokens, sum(sample.steps) AS steps, sum(sample.rows) AS rows, sum(decode_ns) AS decode_ns
    FROM point JOIN sample ON point_id = point.id JOIN prompt ON prompt_id = prompt.id
    WHERE run_id = ?1 GROUP BY point_id
),
accepts AS MATERIALIZED (
    SELECT point_id,
           total(a.steps) FILTER (WHERE a.accepted >= 1) AS one,
           total(a.steps) FILTER (WHERE a.accepted >= 2) AS two,
           total(a.steps) FILTER (WHERE a.accepted >= 4) AS four
    FROM point JOIN sample ON point_id = point.id JOIN sample_accept AS a ON sample_id = sample.id
    WHERE run_id = ?1 GROUP BY point_id
),
estimates AS MATERIALIZED (
    SELECT point_id,
           max(value) FILTER (WHERE metric = 'S') AS S,
           max(low) FILTER (WHERE metric = 'S') AS S_low,
           max(high) FILTER (WHERE metric = 'S') AS S_high,
           max(value) FILTER (WHERE metric = 'tokens_per_s') AS rate,
           max(low) FILTER (WHERE metric = 'tokens_per_s') AS rate_low,
           max(high) FILTER (WHERE metric = 'tokens_per_s') AS rate_high,
           max(value) FILTER (WHERE metric = 'speedup') AS speedup,
           max(low) FILTER (WHERE metric = 'speedup') AS speedup_low,
           max(high) FILTER (WHERE metric = 'speedup') AS speedup_high,
           max(value) FILTER (WHERE metric = 'speedup_e2e') AS e2e,
           max(low) FILTER (WHERE metric = 'speedup_e2e') AS e2e_low,
           max(high) FILTER (WHERE metric = 'speedup_e2e') AS e2e_high,
           max(value) FILTER (WHERE metric = 'speedup_specbench') AS specbench,
           max(low) FILTER (WHERE metric = 'speedup_specbench') AS specbench_low,
           max(high) FILTER (WHERE metric = 'speedup_specbench') AS specbench_high
    FROM point JOIN estimate ON point_id = point.id WHERE run_id = ?1 GROUP BY point_id
)
SELECT p.number AS point, model.name AS model, stand_in, json_extract(model.shape, '$.quantised') AS quantised,
       dataset.name AS dataset, p.label, p.temperature,
       (SELECT base_id FROM point_base WHERE point_id = p.id) IS p.id AS baseline, p.skipped,
       (SELECT message FROM failure AS f WHERE point_id = p.id AND NOT EXISTS
           (SELECT 1 FROM sample AS s WHERE s.point_id = p.id AND s.attempt_id > f.attempt_id)
        ORDER BY id DESC LIMIT 1) AS failed,
       prompts, passes, sums.samples, disturbed, doubt,
       -- Texts of other engines are not held against each other.
       iif((SELECT kind FROM run WHERE id = ?1) = 'import', nullif(diverged, 0), diverged) AS diverged, steps,
       one / nullif(steps, 0) AS CTAR1, two / nullif(steps, 0) AS CTAR2, four / nullif(steps, 0) AS CTAR4,
       coalesce(S, tokens / nullif(steps, 0)) AS S, S_low, S_high, 1.0 * rows / nullif(steps, 0) AS rows_per_step,
       coalesce(rate, 1e9 * tokens / nullif(decode_ns, 0)) AS tokens_per_s,
       rate_low AS tokens_per_s_low, rate_high AS tokens_per_s_high,
       coalesce(estimates.speedup, (SELECT speedup FROM decode_speedup WHERE point_id = p.id)) AS speedup,
       speedup_low, speedup_high,
       coalesce(e2e, (SELECT speedup_e2e FROM decode_speedup WHERE point_id = p.id)) AS speedup_e2e,
       e2e_low AS speedup_e2e_low, e2e_high AS speedup_e2e_high,
       coalesce(specbench, (SELECT avg(speedup) FROM pass_specbench WHERE point_id = p.id)) AS speedup_specbench,
       specbench_low AS speedup_specbench_low, specbench_high AS speedup_specbench_high,
       CASE WHEN p.baseline_id IS NOT p.same_path_id THEN base.label END AS against,
       CASE WHEN p.baseline_id IS NOT p.same_path_id AND p.same_path_id IS NOT NULL
            THEN (SELECT speedup_same_path FROM same_path_speedup WHERE point_id = p.id) END AS speedup_same_path,
       doubtful, reason, -- from here on of the table alone
       min(prompts) OVER same = max(prompts) OVER same AND min(passes) OVER same = max(passes) OVER same AS alike,
       max(prompts) OVER same AS all_prompts, max(passes) OVER same AS all_passes
FROM point AS p
JOIN model ON model.id = p.model_id
JOIN dataset ON dataset.id = p.dataset_id
LEFT JOIN main.point AS base ON base.id = p.baseline_id
LEFT JOIN sums ON sums.point_id = p.id
LEFT JOIN accepts ON accepts.point_id = p.id
LEFT JOIN estimates ON estimates.point_id = p.id
LEFT JOIN point_doubt ON point_doubt.point_id = p.id
WHERE p.run_id = ?1
WINDOW same AS (PARTITION BY p.model_id, p.dataset_id)
ORDER BY p.model_id, p.dataset_id, p.temperature, p.baseline_id IS NOT NULL, p.number
