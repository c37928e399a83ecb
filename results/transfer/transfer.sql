-- Queries of exports and merges, by name (rows_named). A column that ends in _ns becomes a key in seconds.

-- name: step_sources
SELECT name, {source} FROM step_source JOIN source ON source.id = source_id
WHERE sample_id = ?1 AND number = ?2 ORDER BY won DESC, source_id

-- name: step_passes
SELECT model, {pass} FROM pass WHERE sample_id = ?1 AND number = ?2 ORDER BY place

-- name: step_rejected
SELECT {guess} FROM step_guess WHERE sample_id = ?1 AND number = ?2 ORDER BY guess

-- name: steps
SELECT number, step_kind.name AS kind, {step}, matches, run AS shared_run, {batch}
FROM step JOIN step_kind ON step_kind.id = kind LEFT JOIN step_batch USING (sample_id, number)
WHERE sample_id = ?1 ORDER BY number

-- name: params
SELECT section, name, value FROM point_param WHERE point_id = ?1

-- name: scores
SELECT metric, value FROM sample JOIN score ON score.output_id = sample.output_id AND score.prompt_id = sample.prompt_id
WHERE sample.id = ?1

-- name: divergence
SELECT {divergence} FROM divergence WHERE sample_id = ?1

-- name: environment
SELECT {environment} FROM environment WHERE id = ?1

-- name: readings
SELECT {reading} FROM reading WHERE attempt_id = ?1 ORDER BY number

-- name: once
SELECT name, ns, bytes FROM one_off WHERE point_id = ?1 ORDER BY name

-- name: failures
SELECT message, at, pass, (SELECT count(*) FROM attempt AS b WHERE b.run_id = a.run_id AND b.id < a.id) AS start
FROM failure JOIN attempt AS a ON a.id = attempt_id WHERE point_id = ?1 ORDER BY failure.id

-- name: run
SELECT {run}, created, (SELECT count(*) FROM point JOIN sample ON point_id = point.id WHERE run_id = run.id) AS samples
FROM run WHERE id = ?1

-- name: contents
SELECT {content} FROM content WHERE run_id = ?1 AND kind <> 'import'

-- name: models
SELECT {model} FROM model WHERE id IN (SELECT model_id FROM point WHERE run_id = ?1) ORDER BY id

-- name: datasets
SELECT {dataset} FROM dataset WHERE id IN (SELECT dataset_id FROM point WHERE run_id = ?1) ORDER BY id

-- name: starts
SELECT id, environment_id, argv, started, ended, result FROM attempt WHERE run_id = ?1 ORDER BY id

-- name: points
SELECT d.* FROM point JOIN point_described AS d ON d.point_id = point.id
WHERE point.run_id = ?1 ORDER BY point.number

-- name: samples
-- The first five are not exported as they are. `point` may be narrowed to some (rows.h), a view of the file is not.
SELECT sample.id AS sample_id, point.id AS point_id, ids, text, pieces, d.*, pass, prompt.number AS prompt, turn, prompt.name AS name,
       task, started, position, flags, {sample|sample.@}, repeated, looping,
       (SELECT count(*) FROM attempt AS a WHERE a.run_id = point.run_id AND a.id < attempt_id) AS start
FROM point JOIN point_described AS d ON d.point_id = point.id JOIN sample ON sample.point_id = point.id
JOIN prompt ON prompt.id = prompt_id LEFT JOIN output ON output.id = output_id
WHERE point.run_id = ?1 ORDER BY point.number, pass, prompt.number, turn

-- name: lengths
SELECT emitted FROM step WHERE sample_id = ?1 ORDER BY number

-- name: answers
SELECT prompt.number, coalesce(prompt.name, ''), coalesce(task, ''), run.uid || '-' || sample.id, model.name || '-' || label,
       started, sample.id, coalesce(text, ''), steps, sample.tokens, (decode_ns + coalesce(prefill_ns, 0)) / 1e9,
       prompt.dataset_id
FROM sample JOIN point ON point.id = point_id JOIN run ON run.id = run_id JOIN model ON model.id = model_id
JOIN prompt ON prompt.id = prompt_id LEFT JOIN output ON output.id = output_id
WHERE point_id = ?1 AND pass = ?2 ORDER BY prompt.dataset_id, prompt.number, turn

-- name: merged
-- After merge.sql: new runs; new samples; samples of both stores whose numbers differ; those of them of the same start. Flags
-- may be added later, and so differ in copies.
SELECT (SELECT count(*) FROM run WHERE id > (SELECT run FROM before)), (SELECT count(*) FROM map_sample),
       count(*), coalesce(sum(m.attempt_id = a.new), 0)
FROM other.sample AS o JOIN map_point AS p ON p.old = o.point_id JOIN map_prompt AS q ON q.old = o.prompt_id
JOIN map_attempt AS a ON a.old = o.attempt_id
JOIN main.sample AS m ON m.point_id = p.new AND m.pass = o.pass AND m.prompt_id = q.new
WHERE (SELECT hash FROM main.output WHERE id = m.output_id) IS NOT (SELECT hash FROM other.output WHERE id = o.output_id)
    OR ({sample|m.@}, {sums|m.@}) IS NOT ({sample|o.@}, {sums|o.@})

-- name: forget
DROP TABLE IF EXISTS temp.map_run;
DROP TABLE IF EXISTS temp.map_environment;
DROP TABLE IF EXISTS temp.map_attempt;
DROP TABLE IF EXISTS temp.map_model;
DROP TABLE IF EXISTS temp.map_dataset;
DROP TABLE IF EXISTS temp.map_prompt;
DROP TABLE IF EXISTS temp.map_point;
DROP TABLE IF EXISTS temp.map_source;
DROP TABLE IF EXISTS temp.map_output;
DROP TABLE IF EXISTS temp.map_sample;
DROP TABLE IF EXISTS temp.map_fit;
DROP TABLE IF EXISTS temp.before
