-- What tables and figures ask. Definitions: DESIGN.md. Only `pass`, `step_time`, `step_told` and `point_batch` look at steps.
--
--   result           a line a point: the table that `outpace show` prints
--   point_sums       S, tokens, times, flags          pass_sums      the same for each pass
--   point_speedup    the speedups, each under its name task_speedup   the same for each task of a dataset
--   category_speedup the same for each category, too   task_matrix    both, with names and intervals, as tables show them
--   subtask          Spec-Bench's names of tasks       subtask_speedup the same for each of these
--   part_specbench   S and speedup of each sub-benchmark, as Spec-Bench counts
--   ctar             share of steps that accepted w    prompt_speedup per prompt: what intervals resample
--   point_base       what speedups divide by
--   point_source     who proposed, who won             point_rank     length and rank of what won
--   point_text       bytes a step, loops, repeats      point_setting  parameters, a line each
--   step_time        a step's time in parts            pass           what ran on which model
--   step_told        a step and the source whose guesses it accepted
--   heat             the memory-to-compute surface     disturbed      samples that something disturbed
--   flagged          what disturbed them, a line each  point_doubt    reasons to doubt a point's times
--   drifted          contexts of surfaces in whose measuring the machine changed
--   run_state        what is there of each run         run_weights    where its models' weights lay
--   point_batch      of points with a batch: tokens a second of all sequences, and what one waits for a token
--   point_ridge      bits of the model's weights, sequences that share a step, and the label without the latter
--   fitted           Lookahead's law as it was fitted to a run's points: alpha and f
--   point_described  a point as exports describe it   lookahead_point  its parameters where the method is Lookahead
--   newest_point     points of the newest run of a name   newest_pass    their prompts, pass by pass: what claims about time compare
--   newest_prompt    these, all passes together: what other claims compare
--
-- The baseline of a point is that of point.baseline_id; an autoregressive point without one is a baseline, and its speedups
-- are 1. Others without one were imported alone, and have no speedup.
-- Where one has more passes than the other, each prompt's mean over its passes stands for it.

CREATE VIEW point_sums AS
SELECT point_id,
       count(*) AS samples, count(DISTINCT prompt.number) AS prompts, count(DISTINCT pass) AS passes,
       sum(tokens) AS tokens, sum(steps) AS steps,
       1.0 * sum(tokens) / nullif(sum(steps), 0) AS S,
       1.0 * (sum(tokens) + sum(prefill_tokens)) / nullif(sum(steps) + sum(prefill_steps), 0) AS S_reference,
       1.0 * sum(tokens) / nullif(count(*), 0) AS tokens_per_output,
       1.0 * sum(rows) / nullif(sum(steps), 0) AS rows_per_step,
       1.0 * sum(asked) / nullif(sum(steps), 0) AS asked_per_step,
       1.0 * sum(drafted) / nullif(sum(steps), 0) AS drafted_per_step,
       1.0 * sum(accepted) / nullif(sum(steps), 0) AS accepted_per_step,
       sum(filling_steps) AS filling_steps,
       sum(prefill_ns) AS prefill_ns, sum(decode_ns) AS decode_ns,
       sum(propose_ns) AS propose_ns, sum(forward_ns) AS forward_ns, sum(verify_ns) AS verify_ns,
       sum(observe_ns) AS observe_ns, sum(device_ns) AS device_ns,
       sum(device_head_ns) AS device_head_ns, sum(device_commit_ns) AS device_commit_ns,
       1e9 * sum(tokens) / nullif(sum(decode_ns), 0) AS tokens_per_s,
       sum(flags & 16 <> 0) AS diverged
FROM sample LEFT JOIN prompt ON prompt.id = prompt_id GROUP BY point_id; -- a conversation's turns are one prompt

CREATE VIEW pass_sums AS
SELECT point_id, pass, count(*) AS samples, sum(tokens) AS tokens, sum(steps) AS steps,
       1.0 * sum(tokens) / nullif(sum(steps), 0) AS S,
       sum(prefill_ns) AS prefill_ns, sum(decode_ns) AS decode_ns,
       1e9 * sum(tokens) / nullif(sum(decode_ns), 0) AS tokens_per_s
FROM sample GROUP BY point_id, pass;

-- --- speedups --------------------------------------------------------------------------------------------

CREATE VIEW prompt_mean AS
SELECT point_id, prompt_id, count(*) AS passes, avg(tokens) AS tokens, avg(steps) AS steps,
       avg(drafted) AS drafted, avg(accepted) AS accepted, avg(decode_ns) AS decode_ns, avg(prefill_ns) AS prefill_ns
FROM sample GROUP BY point_id, prompt_id;

CREATE VIEW point_base AS
SELECT id AS point_id, coalesce(baseline_id, iif(method = 'autoregressive', id, NULL)) AS base_id,
       coalesce(same_path_id, iif(method = 'autoregressive', id, NULL)) AS same_path_id
FROM point;

-- Of points without a baseline all prompts stand here, and nothing of a base.
CREATE VIEW prompt_speedup AS
SELECT p.point_id, m.prompt_id, m.tokens, m.steps, m.drafted, m.accepted, m.decode_ns, m.prefill_ns,
       iif(base_id IS NULL, NULL, b.tokens) AS base_tokens, iif(base_id IS NULL, NULL, b.decode_ns) AS base_decode_ns,
       iif(base_id IS NULL, NULL, b.prefill_ns) AS base_prefill_ns
FROM point_base AS p
JOIN prompt_mean AS m ON m.point_id = p.point_id
JOIN prompt_mean AS b ON b.point_id = coalesce(p.base_id, p.point_id) AND b.prompt_id = m.prompt_id;

CREATE VIEW prompt_same_path AS
SELECT p.point_id, m.prompt_id, m.tokens, m.decode_ns,
       b.tokens AS base_tokens, b.decode_ns AS base_decode_ns
FROM point_base AS p
JOIN prompt_mean AS m ON m.point_id = p.point_id
JOIN prompt_mean AS b ON b.point_id = p.same_path_id AND b.prompt_id = m.prompt_id;

-- Spec-Bench's own: speeds of whole conversations, time of prefill included, ratio of their means, mean of passes.
CREATE VIEW conversation AS
SELECT point_id, pass, dataset_id, number, min(task) AS task,
       1e9 * sum(tokens) / nullif(sum(decode_ns + coalesce(prefill_ns, 0)), 0) AS tokens_per_s
FROM sample JOIN prompt ON prompt.id = prompt_id GROUP BY point_id, pass, dataset_id, number;

CREATE VIEW pass_specbench AS
SELECT p.point_id, m.pass, avg(m.tokens_per_s) / avg(b.tokens_per_s) AS speedup
FROM point_base AS p
JOIN conversation AS m ON m.point_id = p.point_id
JOIN conversation AS b ON b.point_id = p.base_id AND b.pass = m.pass
     AND b.dataset_id = m.dataset_id AND b.number = m.number
GROUP BY p.point_id, m.pass;

-- By the time of a token: texts differ in length where they are sampled, or another engine's.
CREATE VIEW decode_speedup AS
SELECT point_id, count(*) AS prompts,
       (sum(base_decode_ns) / sum(base_tokens)) / (sum(decode_ns) / sum(tokens)) AS speedup,
       (sum(base_decode_ns + base_prefill_ns) / sum(base_tokens)) / (sum(decode_ns + prefill_ns) / sum(tokens)) AS speedup_e2e
FROM prompt_speedup GROUP BY point_id;

CREATE VIEW same_path_speedup AS
SELECT point_id,
       (sum(base_decode_ns) / sum(base_tokens)) / (sum(decode_ns) / sum(tokens)) AS speedup_same_path
FROM prompt_same_path GROUP BY point_id;

-- Subtasks as Spec-Bench's evaluation groups its categories: MT-Bench's eight are one. Our own datasets' tasks
-- stand in their places.
CREATE VIEW subtask AS
SELECT id AS prompt_id,
       CASE WHEN task IN ('writing', 'roleplay', 'reasoning', 'math', 'coding', 'extraction', 'stem', 'humanities')
            THEN 'mt-bench' WHEN task = 'summarisation' THEN 'summarization'
            WHEN task = 'mathematics' THEN 'math_reasoning' ELSE coalesce(task, '') END AS subtask
FROM prompt;

CREATE VIEW subtask_speedup AS
SELECT point_id, subtask,
       (sum(base_decode_ns) / sum(base_tokens)) / (sum(decode_ns) / sum(tokens)) AS speedup
FROM prompt_speedup JOIN subtask USING (prompt_id) GROUP BY point_id, subtask;

-- Sub-benchmarks, each by Spec-Bench's own rules: its subtasks; of other data, a dataset is one.
CREATE VIEW prompt_part AS
SELECT prompt_id, iif(dataset.name = 'spec-bench', subtask, dataset.name) AS part
FROM subtask JOIN prompt ON prompt.id = prompt_id JOIN dataset ON dataset.id = dataset_id;

CREATE VIEW conversation_part AS
SELECT point_id, pass, dataset_id, number, min(part) AS part,
       1e9 * sum(tokens) / nullif(sum(decode_ns + coalesce(prefill_ns, 0)), 0) AS tokens_per_s,
       sum(tokens + prefill_tokens) AS tokens, sum(steps + prefill_steps) AS steps
FROM sample JOIN prompt ON prompt.id = sample.prompt_id JOIN prompt_part USING (prompt_id)
GROUP BY point_id, pass, dataset_id, number;

CREATE VIEW part_specbench AS
SELECT p.point_id, m.part, 1.0 * sum(m.tokens) / sum(m.steps) AS S_reference, avg(m.tokens_per_s) / avg(b.tokens_per_s) AS speedup
FROM point_base AS p
JOIN conversation_part AS m ON m.point_id = p.point_id
LEFT JOIN conversation_part AS b ON b.point_id = p.base_id AND b.pass = m.pass AND b.dataset_id = m.dataset_id AND b.number = m.number
GROUP BY p.point_id, m.part;

-- Each prompt under its task, and under the category before the first '/' in that (SPEED-Bench: "coding/python").
CREATE VIEW prompt_task AS
SELECT id AS prompt_id, task, 1 AS whole FROM prompt
UNION ALL SELECT id, substr(task, 1, instr(task || '/', '/') - 1), 0 FROM prompt;

-- acceptance: accepted drafted tokens over the longest chains that were drafted; NULL where nobody drafts, or it isn't known.
CREATE VIEW category_speedup AS
SELECT point_id, t.task, whole, count(DISTINCT number) AS prompts, count(*) AS turns,
       sum(tokens) / sum(steps) AS S,
       iif(count(drafted) = count(*), sum(accepted) / nullif(sum(drafted), 0), NULL) AS acceptance,
       (sum(base_decode_ns) / sum(base_tokens)) / (sum(decode_ns) / sum(tokens)) AS speedup,
       1e9 * sum(tokens) / sum(decode_ns) AS tokens_per_s
FROM prompt_speedup JOIN prompt ON prompt.id = prompt_speedup.prompt_id JOIN prompt_task AS t ON t.prompt_id = prompt.id
GROUP BY point_id, whole, t.task;

CREATE VIEW task_speedup AS
SELECT point_id, task, turns AS prompts, S, acceptance, speedup, tokens_per_s FROM category_speedup WHERE whole;

-- The categories of each point whose dataset has several tasks, and the tasks that are parts of one.
CREATE VIEW point_task AS
SELECT DISTINCT point.id AS point_id, t.task, whole
FROM point JOIN prompt ON prompt.dataset_id = point.dataset_id JOIN prompt_task AS t ON t.prompt_id = prompt.id
WHERE (NOT whole OR instr(t.task, '/'))
  AND (SELECT count(DISTINCT task) FROM prompt WHERE prompt.dataset_id = point.dataset_id) > 1;

-- A line for each of these.
CREATE VIEW task_matrix AS
SELECT run_id, model.name AS model, dataset.name AS dataset, c.task, number AS point, label AS method, c.prompts,
       c.S, s.low AS S_low, s.high AS S_high,
       c.acceptance, a.low AS acceptance_low, a.high AS acceptance_high,
       c.speedup, v.low AS speedup_low, v.high AS speedup_high, doubt, doubtful
FROM category_speedup AS c JOIN point_task AS p ON p.point_id = c.point_id AND p.task IS c.task AND p.whole = c.whole
JOIN point ON point.id = c.point_id
LEFT JOIN point_doubt ON point_doubt.point_id = point.id
LEFT JOIN estimate AS s ON s.point_id = point.id AND s.metric = 'S of ' || c.task
LEFT JOIN estimate AS a ON a.point_id = point.id AND a.metric = 'acceptance of ' || c.task
LEFT JOIN estimate AS v ON v.point_id = point.id AND v.metric = 'speedup of ' || c.task
JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id;

CREATE VIEW point_speedup AS
SELECT d.point_id, d.prompts, d.speedup, d.speedup_e2e, s.speedup_same_path, b.speedup_specbench, t.speedup_task_mean
FROM decode_speedup AS d
LEFT JOIN same_path_speedup AS s ON s.point_id = d.point_id
LEFT JOIN (SELECT point_id, avg(speedup) AS speedup_specbench FROM pass_specbench GROUP BY point_id) AS b
       ON b.point_id = d.point_id
LEFT JOIN (SELECT point_id, avg(speedup) AS speedup_task_mean FROM subtask_speedup GROUP BY point_id) AS t
       ON t.point_id = d.point_id;

-- --- acceptance ------------------------------------------------------------------------------------------

CREATE VIEW point_accept AS
SELECT point_id, q.kind, q.accepted, sum(q.steps) AS steps
FROM sample_accept AS q JOIN sample ON sample.id = q.sample_id GROUP BY point_id, q.kind, q.accepted;

-- CTAR(w): the share of steps in which at least w drafted tokens were accepted, for every w from 1 to the most that one
-- accepted. A w that no step accepted has the share of the next above it.
CREATE VIEW ctar AS
WITH RECURSIVE met(point_id, w, below, ctar) AS (
    SELECT * FROM (
        SELECT point_id, accepted AS w, lag(accepted, 1, 0) OVER (PARTITION BY point_id ORDER BY accepted) AS below,
               1.0 * sum(sum(steps)) OVER (PARTITION BY point_id ORDER BY accepted DESC)
                   / sum(sum(steps)) OVER (PARTITION BY point_id) AS ctar
        FROM point_accept GROUP BY point_id, accepted)
    WHERE w > 0
    UNION ALL SELECT point_id, w - 1, below, ctar FROM met WHERE w - 1 > below)
SELECT point_id, w, ctar FROM met;

CREATE VIEW point_source AS
SELECT point_id, source.name AS source, sum(q.rows) AS rows, sum(q.steps) AS steps, sum(q.won) AS won,
       sum(q.tokens) AS tokens
FROM sample_source AS q JOIN sample ON sample.id = q.sample_id JOIN source ON source.id = q.source_id
GROUP BY point_id, q.source_id;

CREATE VIEW point_rank AS
SELECT point_id, source.name AS source, length, rank, sum(q.steps) AS steps
FROM sample_rank AS q JOIN sample ON sample.id = q.sample_id JOIN source ON source.id = q.source_id
GROUP BY point_id, q.source_id, length, rank;

-- --- batches ---------------------------------------------------------------------------------------------

-- sequences: that shared a step, the mean of its steps; token_ms: of the latencies of a sequence's steps.
CREATE VIEW point_batch AS
WITH q AS (SELECT sample_id, sum(sequences) AS sequences, sum(latency_ns) AS latency_ns FROM step_batch GROUP BY sample_id)
SELECT point_id, 1.0 * sum(sequences) / nullif(sum(steps), 0) AS sequences, 1.0 * sum(tokens) / nullif(sum(steps), 0) AS S,
       1e9 * sum(tokens) / nullif(sum(decode_ns), 0) AS tokens_per_s,
       1e-6 * sum(latency_ns) / nullif(sum(tokens), 0) AS token_ms, 1e-6 * sum(latency_ns) / count(*) AS output_ms
FROM sample JOIN q ON sample_id = sample.id GROUP BY point_id;

-- The axes of the figures batch and ridge: widths of weights, sequences of a step, and the rest of the label.
CREATE VIEW point_ridge AS
SELECT point.id AS point_id,
       CASE WHEN dtype GLOB 'Q[0-9]*' THEN CAST(substr(dtype, 2) AS INTEGER) WHEN dtype = 'F32' THEN 32 ELSE 16 END AS bits,
       max(1, coalesce(CAST(b.value AS INTEGER), 1)) AS batch,
       replace(label, ' batch=' || coalesce(b.value, ''), '') AS setting
FROM point JOIN model ON model.id = model_id
LEFT JOIN point_param AS b ON b.point_id = point.id AND b.section = 'hardware' AND b.name = 'batch';

-- --- texts -----------------------------------------------------------------------------------------------

-- S_calm: of the outputs that do not end in a loop.
CREATE VIEW point_text AS
SELECT point_id, 1.0 * sum(bytes) / nullif(sum(steps), 0) AS bytes_per_step, avg(repeated) AS repeated,
       sum(looping) AS looping,
       1.0 * sum(sample.tokens) FILTER (WHERE NOT looping) / nullif(sum(steps) FILTER (WHERE NOT looping), 0) AS S_calm
FROM sample JOIN output ON output.id = output_id GROUP BY point_id;

CREATE VIEW point_score AS
SELECT point_id, metric, count(*) AS outputs, avg(value) AS value
FROM sample JOIN score ON score.output_id = sample.output_id AND score.prompt_id = sample.prompt_id
GROUP BY point_id, metric;

-- --- what ran --------------------------------------------------------------------------------------------

CREATE VIEW point_setting AS
SELECT point_id, run_id, method, section, name, value
FROM point_param JOIN point ON point.id = point_id;

-- A point in words and numbers that hold in other stores, too.
CREATE VIEW point_described AS
SELECT p.id AS point_id, m.name AS model, d.name AS dataset, method, label, temperature, layers, p.number AS point,
       p.hash AS hash, decoder, skipped, (SELECT number FROM point AS b WHERE b.id = p.baseline_id) AS baseline,
       (SELECT number FROM point AS b WHERE b.id = p.same_path_id) AS same_path, m.hash AS model_hash, d.hash AS dataset_hash
FROM point AS p JOIN model AS m ON m.id = p.model_id JOIN dataset AS d ON d.id = p.dataset_id;

-- Points of Lookahead: N, W and G as they were given, unless a preset replaces them; dropped: whether the bonus token is; same: the
-- parameters that points of one set share, so without these three, and without those that change neither S nor acceptance.
CREATE VIEW lookahead_point AS
SELECT p.id AS point_id, n.value AS N, w.value AS W, g.value AS G, preset.value AS preset,
       mode.value = 'reference' OR bonus.value = 'drop' AS dropped,
       (SELECT group_concat(name || '=' || value, ' ') FROM (
            SELECT name, value FROM point_param AS q
            WHERE q.point_id = p.id AND (section <> 'hardware' OR name = 'max_rows')
                AND name NOT IN ('N', 'W', 'G', 'preset', 'ranks', 'mode', 'seed') ORDER BY section DESC, name)) AS same
FROM point AS p
LEFT JOIN point_param AS n ON n.point_id = p.id AND n.section = 'method' AND n.name = 'N'
LEFT JOIN point_param AS w ON w.point_id = p.id AND w.section = 'method' AND w.name = 'W'
LEFT JOIN point_param AS g ON g.point_id = p.id AND g.section = 'method' AND g.name = 'G'
LEFT JOIN point_param AS preset ON preset.point_id = p.id AND preset.section = 'method' AND preset.name = 'preset'
LEFT JOIN point_param AS mode ON mode.point_id = p.id AND mode.section = 'method' AND mode.name = 'mode'
LEFT JOIN point_param AS bonus ON bonus.point_id = p.id AND bonus.section = 'method' AND bonus.name = 'bonus'
WHERE method = 'lookahead';

CREATE VIEW result AS
SELECT p.id AS point_id, p.run_id, p.number, m.name AS model, m.stand_in, d.name AS dataset, p.method, p.decoder,
       p.label, p.temperature, p.baseline_id, (SELECT base_id FROM point_base WHERE point_id = p.id) AS base_id, p.skipped,
       s.samples, s.prompts, s.passes, s.tokens, s.steps, s.S, e.low AS S_low, e.high AS S_high, s.S_reference,
       CASE WHEN (SELECT base_id FROM point_base WHERE point_id = p.id) = p.id THEN 'baseline'
            WHEN s.diverged > 0 AND p.temperature = 0 THEN 'NO: ' || s.diverged || ' of ' || s.samples || ' differ'
            WHEN p.temperature > 0 THEN 'sampled'
            WHEN (SELECT kind FROM run WHERE run.id = p.run_id) = 'import' THEN 'not compared' ELSE 'yes' END AS same_text,
       s.rows_per_step, s.asked_per_step, s.tokens_per_s, u.speedup, f.low AS speedup_low, f.high AS speedup_high, u.speedup_e2e,
       u.speedup_same_path, u.speedup_specbench, u.speedup_task_mean, s.diverged,
       (SELECT count(*) FROM failure WHERE failure.point_id = p.id) AS failures
FROM point AS p
JOIN model AS m ON m.id = p.model_id
JOIN dataset AS d ON d.id = p.dataset_id
LEFT JOIN point_sums AS s ON s.point_id = p.id
LEFT JOIN point_speedup AS u ON u.point_id = p.id
LEFT JOIN estimate AS e ON e.point_id = p.id AND e.metric = 'S'
LEFT JOIN estimate AS f ON f.point_id = p.id AND f.metric = 'speedup';

-- unfinished: NULL once a start of it came to its end, else what became of the last one.
CREATE VIEW run_state AS
SELECT run.id AS run_id, run.name, run.kind, run.version, run.created,
       (SELECT count(*) FROM point WHERE point.run_id = run.id) AS points,
       (SELECT count(*) FROM point WHERE point.run_id = run.id AND skipped IS NOT NULL) AS skipped,
       (SELECT count(*) FROM attempt WHERE attempt.run_id = run.id) AS attempts,
       (SELECT result FROM attempt WHERE attempt.run_id = run.id ORDER BY id DESC LIMIT 1) AS last_result,
       (SELECT count(*) FROM point JOIN sample ON sample.point_id = point.id WHERE point.run_id = run.id) AS samples,
       (SELECT count(*) FROM attempt JOIN failure ON failure.attempt_id = attempt.id
        WHERE attempt.run_id = run.id) AS failures,
       CASE WHEN EXISTS (SELECT 1 FROM attempt WHERE attempt.run_id = run.id AND result IN ('done', 'partial')) THEN NULL
            ELSE coalesce((SELECT result FROM attempt WHERE attempt.run_id = run.id ORDER BY id DESC LIMIT 1), 'not finished')
       END AS unfinished
FROM run;

-- --- disturbance -----------------------------------------------------------------------------------------

-- Outliers, throttling, changed clocks, load of others, pauses, paging. (A sample that diverged or was cut was timed well.)
CREATE VIEW disturbed AS
SELECT id AS sample_id, point_id, pass, prompt_id, attempt_id, flags & 207 AS flags FROM sample WHERE flags & 207 <> 0;

CREATE VIEW flagged AS
SELECT sample_id, point_id, pass, prompt_id, attempt_id, flag.name AS flag, meaning
FROM disturbed JOIN flag ON disturbed.flags & flag.bit <> 0;

-- Reasons to doubt a point's times. All tables, figures and verdicts ask this view.
--   above_S    the speedup is too high to be true. No step takes less time than the baseline's, so speedup / S is 1 at
--              most where nothing is disturbed. Above it lies the whole interval (by a twentieth, that a kernel may differ
--              by), or the value alone by more than a quarter.
--   doubtful   1: above_S, or more than a tenth of the samples, its own or its baseline's, are disturbed, or it's an oracle:
--              its guesses come from the answer; 2: all of these samples are disturbed
--   reason     what else than disturbed samples makes them doubtful, in words; NULL: nothing
--   few        why its samples are too few to say how fast it is; NULL: they are not
--   doubt      every reason to doubt its times, in words; NULL: none
CREATE VIEW point_doubt AS
WITH count_of AS (
    SELECT sample.point_id, count(*) AS samples, count(DISTINCT number) AS prompts, count(disturbed.sample_id) AS disturbed,
           1.0 * sum(tokens) / nullif(sum(steps), 0) AS S
    FROM sample LEFT JOIN prompt ON prompt.id = sample.prompt_id LEFT JOIN disturbed ON sample_id = sample.id
    GROUP BY sample.point_id),
fact AS (
    SELECT p.point_id, run.kind = 'import' AS imported, point.method = 'oracle' AS told, own.samples, own.prompts, own.disturbed,
           base.samples AS base_samples, coalesce(base.disturbed, 0) AS base_disturbed,
           e.value AS speedup, e.high - e.low AS width, o.low AS over_S_low,
           coalesce(o.value, (SELECT speedup FROM decode_speedup WHERE point_id = p.point_id) / own.S) AS over_S
    FROM point_base AS p JOIN point ON point.id = p.point_id JOIN run ON run.id = run_id
    JOIN count_of AS own ON own.point_id = p.point_id
    LEFT JOIN count_of AS base ON base.point_id = p.base_id AND p.base_id <> p.point_id
    LEFT JOIN estimate AS e ON e.point_id = p.point_id AND e.metric = 'speedup'
    LEFT JOIN estimate AS o ON o.point_id = p.point_id AND o.metric = 'speedup_over_S'),
judged AS (SELECT *, coalesce(over_S_low > 1.05, 0) OR coalesce(over_S > 1.25, 0) AS above_S FROM fact),
worded AS (
    SELECT *, iif(told, '; it knows the answer: a bound, and not a method''s result', '') AS bound,
           iif(above_S, printf('; speedup is %.2f times S: its baseline ', over_S) ||
                        iif(imported, 'is other code, or was disturbed', 'was disturbed'), '') AS above
    FROM judged)
SELECT point_id, disturbed, base_disturbed, over_S, above_S,
       CASE WHEN disturbed = samples OR base_disturbed = base_samples THEN 2
            ELSE told OR above_S OR 10 * disturbed > samples OR 10 * base_disturbed > coalesce(base_samples, 0) END AS doubtful,
       CASE WHEN prompts < 10 THEN 'fewer than ten prompts' WHEN width IS NULL THEN 'its interval is not known'
            WHEN width > 0.5 * speedup THEN 'its interval is wider than half the speedup' END AS few,
       nullif(substr(bound || above, 3), '') AS reason,
       nullif(substr(bound || iif(disturbed, '; ' || disturbed || ' of ' || samples || ' disturbed', '') ||
                     iif(base_disturbed, '; ' || base_disturbed || ' of its baseline''s ' || base_samples || ' disturbed', '') ||
                     above, 3), '') AS doubt
FROM worded;

CREATE VIEW step_time AS
SELECT point_id, prompt_id, pass, step.number, step_kind.name AS kind, context, step.rows, step.emitted,
       step.propose_ns, step.forward_ns, step.verify_ns, step.observe_ns, step.device_ns
FROM sample JOIN step ON step.sample_id = sample.id JOIN step_kind ON step_kind.id = kind;

-- Of the tokens that a step emitted, the first `accepted` are guesses of `source` (NULL: it accepted none), whose row was
-- the rank-th of its own; any further one is the target's own.
CREATE VIEW step_told AS
SELECT t.sample_id, t.number, step_kind.name AS kind, context, t.rows, candidates, t.depth, accepted, emitted,
       iif(accepted, source.name, NULL) AS source, iif(accepted, rank, NULL) AS rank,
       propose_ns, forward_ns, verify_ns, observe_ns, device_ns, margin
FROM step AS t JOIN step_kind ON step_kind.id = t.kind
LEFT JOIN step_source AS q ON q.sample_id = t.sample_id AND q.number = t.number AND q.won
LEFT JOIN source ON source.id = source_id;

-- Both kinds of steps alike: see step_pass. a = b: the head, or, if both are 0, EAGLE-3's fc; place: which of the step's. Ask it by point, run or
-- sample: SQLite then looks at their steps only.
CREATE VIEW pass AS
SELECT run_id, point_id, q.sample_id, q.number, step_kind.name AS kind, q.pass AS place, pass_model.name AS model, q.a, q.b,
       q.rows, q.context, q.count
FROM sample JOIN point ON point.id = point_id JOIN step_pass AS q ON q.sample_id = sample.id
JOIN step ON step.sample_id = q.sample_id AND step.number = q.number JOIN step_kind ON step_kind.id = step.kind
JOIN pass_model ON pass_model.id = q.model
UNION ALL
SELECT run_id, point_id, sample_id, step.number, step_kind.name, 0, 'target', 0, layers, step.rows, context, 1
FROM sample JOIN point ON point.id = point_id JOIN model ON model.id = model_id JOIN step ON step.sample_id = sample.id
JOIN step_kind ON step_kind.id = kind WHERE head_rows IS NOT NULL
UNION ALL
SELECT run_id, point_id, sample_id, step.number, step_kind.name, 1, 'target', layers, layers, head_rows, context, 1
FROM sample JOIN point ON point.id = point_id JOIN model ON model.id = model_id JOIN step ON step.sample_id = sample.id
JOIN step_kind ON step_kind.id = kind WHERE head_rows IS NOT NULL;

-- Steps and parts of them. doubtful: 1, too few of its samples are undisturbed; 2, none is. slowdown_doubtful: the same of its
-- samples or of those of one token at its context, whichever is worse.
CREATE VIEW surface_doubt AS
WITH own AS (SELECT *, iif(flags, 1 + (coalesce(disturbed, 0) >= samples), 0) AS doubtful FROM surface)
SELECT *, iif(slowdown IS NULL, doubtful,
              max(doubtful, coalesce((SELECT max(one.doubtful) FROM own AS one WHERE one.attempt_id = own.attempt_id AND one.model_id = own.model_id
                                      AND one.context = own.context AND one.kind = 'step' AND one.k = 1 AND one.w = 0
                                      AND coalesce(one.sequences, 1) = 1), 0))) AS slowdown_doubtful
FROM own;

CREATE VIEW heat AS
SELECT id AS surface_id, attempt_id, model_id, device, layout, cache, coalesce(sequences, 1) AS sequences, context, k, w, rows, mean_ns, median_ns, slowdown, floor_ns, drift,
       slowdown_low, slowdown_high, flags <> 0 AS disturbed, slowdown_doubtful AS doubtful
FROM surface_doubt WHERE kind = 'step' AND k IS NOT NULL;

-- By more than noise (harness/machine/bench.h): slowdowns at these contexts may be as wrong as that.
CREATE VIEW drifted AS
SELECT run_id, context, max(drift) AS drift FROM attempt JOIN heat ON heat.attempt_id = attempt.id
WHERE drift > 1.15 OR drift < 1 / 1.15 GROUP BY run_id, context;

-- 'held', 'mapped', or both, as "held and mapped"; NULL: an older program's run, mapped.
CREATE VIEW run_weights AS
SELECT id AS run_id, (
    SELECT group_concat(weights, ' and ')
    FROM (SELECT value AS weights FROM point JOIN point_param ON point_id = point.id
          WHERE run_id = run.id AND section = 'hardware' AND name = 'weights'
          UNION SELECT weights FROM attempt JOIN surface ON attempt_id = attempt.id WHERE run_id = run.id AND weights IS NOT NULL)
    ) AS weights
FROM run;

-- The estimate to take of each fit. other_points: the store has other points for it by now: samples came, or the same set was
-- fitted again with others.
CREATE VIEW fitted AS
SELECT fit.id AS fit_id, fit.run_id, run.name AS run, title, law, bonus, output, fit.estimator, fitted AS settings, prompts,
       alpha, alpha_low, alpha_high, f, f_low, f_high, rms, drawn, resamples, seed, fit.version, made,
       EXISTS (SELECT 1 FROM fit_point AS p WHERE p.fit_id = fit.id
               AND samples <> (SELECT count(*) FROM sample WHERE sample.point_id = p.point_id))
       OR EXISTS (SELECT 1 FROM fit AS later WHERE later.run_id = fit.run_id AND later.title = fit.title
                  AND later.points <> fit.points AND (later.made, later.id) > (fit.made, fit.id)) AS other_points
FROM fit JOIN run ON run.id = fit.run_id
JOIN fit_estimate AS x ON x.fit_id = fit.id AND x.estimator = fit.estimator;

-- --- what claims compare (configs/claims.tsv) ----------------------------------------------------------------

-- Points of the newest run of each name that has samples of a published model, or else of any: a stand-in, or the reference.
CREATE VIEW newest_point AS
SELECT run.name AS run, run.id AS run_id, point.id AS point_id, model.name AS model, stand_in, dataset.name AS dataset, point.method, label,
       point.temperature, base_id,
       (SELECT coalesce(gpu, cpu) FROM attempt JOIN environment ON environment.id = environment_id
        WHERE run_id = run.id ORDER BY attempt.id DESC LIMIT 1) AS device
FROM run JOIN point ON point.run_id = run.id JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
JOIN point_base ON point_base.point_id = point.id
WHERE run.id = (SELECT r.id FROM run AS r JOIN point AS p ON p.run_id = r.id JOIN model AS m ON m.id = p.model_id
                WHERE r.name = run.name AND EXISTS (SELECT 1 FROM sample WHERE sample.point_id = p.id)
                ORDER BY m.stand_in IS NOT NULL OR m.path LIKE '%models/reference', r.id DESC LIMIT 1);

-- A conversation at each of them in each pass, its turns together, against the baseline's passes together: what claims about
-- time compare. rate: tokens/s; speedup: by the time of a token, base_ns of the baseline.
CREATE VIEW newest_pass AS
SELECT *, 1.0 * tokens / nullif(steps, 0) AS S, 1e9 * tokens / nullif(decode_ns, 0) AS rate,
       base_ns / (1.0 * decode_ns / nullif(tokens, 0)) AS speedup
FROM (SELECT q.run, q.point_id, q.model, q.stand_in, q.dataset, q.method, q.label, q.temperature, q.device,
             prompt.number AS prompt, sample.pass AS pass, min(subtask.subtask) AS task, sum(sample.tokens) AS tokens,
             sum(sample.steps) AS steps, sum(sample.decode_ns) AS decode_ns,
             (SELECT 1.0 * sum(b.decode_ns) / nullif(sum(b.tokens), 0) FROM sample AS b JOIN prompt AS p ON p.id = b.prompt_id
              WHERE b.point_id = q.base_id AND p.number = prompt.number) AS base_ns
      FROM newest_point AS q JOIN sample ON sample.point_id = q.point_id JOIN prompt ON prompt.id = sample.prompt_id
      JOIN subtask ON subtask.prompt_id = prompt.id
      GROUP BY q.run, q.point_id, prompt.number, sample.pass);

-- The same of all passes together.
CREATE VIEW newest_prompt AS
SELECT run, point_id, model, stand_in, dataset, method, label, temperature, device, prompt, min(task) AS task, sum(tokens) AS tokens,
       sum(steps) AS steps, 1.0 * sum(tokens) / nullif(sum(steps), 0) AS S, 1e9 * sum(tokens) / nullif(sum(decode_ns), 0) AS rate,
       base_ns / (1.0 * sum(decode_ns) / nullif(sum(tokens), 0)) AS speedup
FROM newest_pass GROUP BY run, point_id, prompt;
