-- Quantities of a stored point. ?1 the point, ?2 the measure's argument, ?3 the subtask or NULL. The first column is the value;
-- three are the mean, its standard deviation and the number of values, which give an interval.

-- name: ctar
SELECT 1.0 * total(a.steps) FILTER (WHERE a.accepted >= ?2) / nullif(sum(a.steps), 0)
FROM sample JOIN sample_accept AS a ON a.sample_id = sample.id WHERE point_id = ?1
    AND (?3 IS NULL OR ?3 = (SELECT subtask FROM subtask WHERE subtask.prompt_id = sample.prompt_id))

-- name: asked_per_step
SELECT 1.0 * sum(asked) / nullif(sum(steps), 0) FROM sample WHERE point_id = ?1
    AND (?3 IS NULL OR ?3 = (SELECT subtask FROM subtask WHERE subtask.prompt_id = sample.prompt_id))

-- name: rows_per_step
SELECT 1.0 * sum(rows) / nullif(sum(steps), 0) FROM sample WHERE point_id = ?1
    AND (?3 IS NULL OR ?3 = (SELECT subtask FROM subtask WHERE subtask.prompt_id = sample.prompt_id))

-- name: won
-- Steps that accepted nothing belong to no source.
SELECT 1.0 * total(q.won) FILTER (WHERE source.name = ?2) / nullif(sum(q.won), 0)
FROM sample JOIN sample_source AS q ON q.sample_id = sample.id JOIN source ON source.id = source_id
WHERE point_id = ?1 AND ?3 IS NULL

-- name: rows
SELECT 1.0 * total(q.rows) FILTER (WHERE source.name = ?2) / nullif(sum(q.rows), 0)
FROM sample JOIN sample_source AS q ON q.sample_id = sample.id JOIN source ON source.id = source_id
WHERE point_id = ?1 AND ?3 IS NULL

-- name: common_prefix
-- Drafts that ended early (at a limit) count as they are.
SELECT 1.0 * sum(accepted) / nullif(sum(steps), 0) FROM sample WHERE point_id = ?1
    AND (?3 IS NULL OR ?3 = (SELECT subtask FROM subtask WHERE subtask.prompt_id = sample.prompt_id))

-- name: alpha
-- Of the newest fit of the point under the paper's law; of a fit of other points nothing.
SELECT alpha, alpha_low, alpha_high FROM fitted JOIN fit_point USING (fit_id)
WHERE point_id = ?1 AND law = 'paper' AND NOT other_points ORDER BY made DESC, fit_id DESC LIMIT 1

-- name: f
SELECT f, f_low, f_high FROM fitted JOIN fit_point USING (fit_id) WHERE point_id = ?1 AND law = 'paper' AND NOT other_points
ORDER BY made DESC, fit_id DESC LIMIT 1

-- name: parameters
-- Millions, of the heads or adapter that the method runs; heads may have been given as the adapter.
SELECT 1e-6 * CASE method
       WHEN 'medusa' THEN coalesce(json_extract(shape, '$.parts.heads.parameters'), json_extract(shape, '$.parts.adapter.parameters'))
       WHEN 'kangaroo' THEN json_extract(shape, '$.parts.adapter.parameters') END
FROM point JOIN model ON model.id = model_id WHERE point.id = ?1

-- name: best
SELECT value FROM point_param WHERE point_id = ?1 AND section = 'method' AND name = ?2

-- name: score
-- A value a prompt and pass; papers print them as percentages.
WITH s AS (
    SELECT 100 * value AS v
    FROM sample JOIN score ON score.output_id = sample.output_id AND score.prompt_id = sample.prompt_id AND metric = ?2
    WHERE point_id = ?1
        AND (?3 IS NULL OR ?3 = (SELECT subtask FROM subtask WHERE subtask.prompt_id = sample.prompt_id)))
SELECT avg(v), sqrt(max(0.0, avg(v * v) - avg(v) * avg(v)) * count(*) / max(count(*) - 1, 1)), count(*) FROM s

-- name: score_above
WITH s AS (
    SELECT 100 * (x.value - y.value) AS v
    FROM sample AS a JOIN sample AS b ON b.point_id = ?4 AND b.pass = a.pass AND b.prompt_id = a.prompt_id
    JOIN score AS x ON x.output_id = a.output_id AND x.prompt_id = a.prompt_id AND x.metric = ?2
    JOIN score AS y ON y.output_id = b.output_id AND y.prompt_id = b.prompt_id AND y.metric = ?2
    WHERE a.point_id = ?1 AND ?3 IS NULL)
SELECT avg(v), sqrt(max(0.0, avg(v * v) - avg(v) * avg(v)) * count(*) / max(count(*) - 1, 1)), count(*) FROM s

-- name: passes
-- ?1 the point, ?2 its baseline, ?3 the measure. Conversations are only of these two points; the view pass_specbench looks at
-- all.
WITH of_pass AS (
    SELECT point_id, pass, 1.0 * sum(tokens) AS n, sum(steps) AS steps, sum(decode_ns) AS decode,
           sum(decode_ns + prefill_ns) AS whole
    FROM sample WHERE point_id IN (?1, ?2) GROUP BY point_id, pass),
talk AS (
    SELECT point_id, pass, dataset_id, number, 1.0 * sum(tokens) / nullif(sum(decode_ns + coalesce(prefill_ns, 0)), 0) AS rate
    FROM sample JOIN prompt ON prompt.id = prompt_id
    WHERE point_id IN (?1, (SELECT base_id FROM point_base WHERE point_id = ?1)) AND ?3 = 'speedup_specbench'
    GROUP BY point_id, pass, dataset_id, number),
specbench AS (
    SELECT pass, avg(m.rate) / avg(b.rate) AS ratio FROM talk AS m JOIN talk AS b USING (pass, dataset_id, number)
    WHERE m.point_id = ?1 AND b.point_id = (SELECT base_id FROM point_base WHERE point_id = ?1) GROUP BY pass),
measured AS (
    SELECT CASE ?3 WHEN 'S' THEN p.n / nullif(p.steps, 0)
           WHEN 'speedup' THEN (b.decode / b.n) / (p.decode / p.n)
           WHEN 'speedup_e2e' THEN (b.whole / b.n) / (p.whole / p.n)
           WHEN 'speedup_specbench' THEN ratio
           WHEN 'tokens_per_s' THEN 1e9 * p.n / nullif(p.decode, 0)
           WHEN 'tokens_per_s_e2e' THEN 1e9 * p.n / nullif(p.whole, 0) END AS v
    FROM of_pass AS p LEFT JOIN of_pass AS b ON b.point_id = ?2 AND b.pass = p.pass LEFT JOIN specbench ON specbench.pass = p.pass
    WHERE p.point_id = ?1)
SELECT avg(v), sqrt(max(0.0, avg(v * v) - avg(v) * avg(v)) * count(v) / max(count(v) - 1, 1)), count(v) FROM measured

-- name: estimate
SELECT value, low, high FROM estimate WHERE point_id = ?1 AND metric = ?2

-- name: matches
SELECT matches FROM sample JOIN step ON sample_id = sample.id WHERE point_id = ?1 AND matches IS NOT NULL
