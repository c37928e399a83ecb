-- Points and samples of a side of a comparison.

-- name: samples
-- ?2 0: absolute times. Passes that the baseline lacks are left out.
SELECT number, a.pass, sum(a.tokens), sum(a.steps), sum(a.decode_ns), iif(?2, sum(b.tokens), 1), iif(?2, sum(b.decode_ns), 1e9),
       count(x.sample_id) + count(y.sample_id)
FROM sample AS a JOIN prompt ON prompt.id = a.prompt_id
LEFT JOIN sample AS b ON b.point_id = ?2 AND b.pass = a.pass AND b.prompt_id = a.prompt_id
LEFT JOIN disturbed AS x ON x.sample_id = a.id LEFT JOIN disturbed AS y ON y.sample_id = b.id
WHERE a.point_id = ?1 AND (?2 = 0 OR b.id) GROUP BY number, a.pass ORDER BY number, a.pass

-- name: points
WITH of_data AS (
    SELECT dataset.*,
           coalesce((SELECT hash FROM content WHERE run_id = ?1 AND kind = 'dataset' AND name = dataset.name), hash) ||
           coalesce(' ' || (SELECT hash FROM content WHERE run_id = ?1 AND kind = 'template' AND name = dataset.name), '')
               AS prompts
    FROM dataset)
SELECT point.id, coalesce(b.same_path_id, base_id, 0), label, d.name, coalesce(doubt, ''), model.hash || ' ' || point.hash,
       d.hash, model.hash || ' ' || prompts || ' ' || decoder || ' ' || point.temperature || coalesce((
           SELECT group_concat(' ' || section || '.' || name || '=' || coalesce(value, ''), '')
           FROM (SELECT * FROM point_param WHERE point_id = point.id ORDER BY section, name)), ''),
       prompts, EXISTS (SELECT 1 FROM sample WHERE point_id = point.id AND flags & 16), above_S
FROM point JOIN model ON model.id = model_id JOIN of_data AS d ON d.id = dataset_id
JOIN point_base AS b ON b.point_id = point.id JOIN point_doubt AS q ON q.point_id = point.id
WHERE run_id = ?1 AND (?2 = 0 OR point.number = ?2) ORDER BY point.number

-- name: content
SELECT hash FROM content WHERE run_id = ?1 AND kind = ?2

-- name: sequence
-- sorted: the steps of a record that has no order are stored by their accepted tokens.
SELECT prompt.number, turn, pass, sample.id, sample.tokens, ids,
       run.kind = 'import' AND (SELECT max(accepted) > min(accepted) FROM step WHERE sample_id = sample.id) AND NOT EXISTS (
           SELECT 1 FROM step AS x JOIN step AS y ON y.sample_id = x.sample_id AND y.number = x.number + 1
           WHERE x.sample_id = sample.id AND y.accepted < x.accepted) AS sorted
FROM sample JOIN prompt ON prompt.id = prompt_id JOIN point ON point.id = point_id JOIN run ON run.id = run_id
LEFT JOIN output ON output.id = output_id
WHERE point_id = ?1 ORDER BY 1, 2, 3

-- name: steps
SELECT number, accepted, emitted FROM step WHERE sample_id = ?1 ORDER BY number
