-- What tables of papers ask of a run.

-- name: named
-- Runs of a kind that have data, the newest first.
SELECT id, name, config FROM run
WHERE kind = ?1 AND (EXISTS (SELECT 1 FROM point JOIN sample ON point_id = point.id WHERE run_id = run.id)
    OR EXISTS (SELECT 1 FROM attempt JOIN surface ON attempt_id = attempt.id WHERE run_id = run.id))
ORDER BY id DESC

-- name: run
SELECT name, coalesce(config, '') FROM run WHERE id = ?1

-- name: any_surface
SELECT max(run_id) FROM attempt JOIN surface ON attempt_id = attempt.id

-- name: chosen
SELECT config FROM run WHERE id = ?1 AND config IS NOT NULL

-- name: left_out
SELECT 'left out: ' || name FROM content WHERE run_id = ?1 AND kind = 'left out' ORDER BY name

-- name: slowdown
-- ?1 the run; columns: the row, the value, the model, the model it replaces, how it was run.
SELECT 'context ' || context || ', k ' || k || ', w ' || w, slowdown, model.name, coalesce(stand_in, ''),
       layout || iif(context IN (SELECT context FROM drifted WHERE run_id = ?1), ', the machine changed meanwhile', '')
FROM surface AS s JOIN attempt ON attempt.id = attempt_id JOIN model ON model.id = model_id
WHERE run_id = ?1 AND s.kind = 'step' AND k IS NOT NULL AND slowdown IS NOT NULL AND coalesce(sequences, 1) = 1
ORDER BY context, k, w

-- name: cache_saving
SELECT 'context ' || max(context), 1.0 * max(context) / min(json_extract(shape, '$.window'), max(context)), model.name,
    coalesce(stand_in, ''), 'counted'
FROM surface JOIN attempt ON attempt.id = attempt_id JOIN model ON model.id = model_id
WHERE run_id = ?1 AND json_extract(shape, '$.window') > 0 GROUP BY model_id

-- name: window_speedup
-- The newest of this name with the window on, and with it off, by their command lines: whole texts, and steps of one row.
WITH t AS (
    SELECT run.id AS run, s.kind, s.context, s.rows, s.median_ns, s.model_id, EXISTS (
        SELECT 1 FROM json_each(argv) AS a LEFT JOIN json_each(argv) AS b ON b.key = a.key + 1
        WHERE a.value = '--sliding-window' AND b.value = 'off' OR a.value = '--sliding-window=off') AS off
    FROM run JOIN attempt ON run_id = run.id JOIN surface AS s ON attempt_id = attempt.id
    WHERE run.name = (SELECT name FROM run WHERE id = ?1) AND k = 1 AND coalesce(sequences, 1) = 1
        AND (s.kind = 'step' AND w = 0 OR s.kind = 'prefill')),
n AS (SELECT off, max(run) AS run FROM t GROUP BY off)
SELECT iif(x.kind = 'prefill', 'prefill of ' || x.rows, 'a step at ' || x.context), y.median_ns / x.median_ns, model.name,
       coalesce(stand_in, ''), iif(x.kind = 'prefill', 'chunks of at most 1,024', 'one row')
FROM t AS x JOIN t AS y ON y.kind = x.kind AND y.context = x.context AND y.rows = x.rows AND y.off AND NOT x.off
JOIN model ON model.id = x.model_id
WHERE x.run = (SELECT run FROM n WHERE NOT off) AND y.run = (SELECT run FROM n WHERE off)
ORDER BY x.kind, x.rows, x.context

-- name: about
-- Machine and day are those of its last start; the command is that of its first.
SELECT 'run ' || run.id || ', ' || run.name || coalesce(', ' || unfinished, '') || ', outpace ' || run.version,
       coalesce(coalesce(gpu || ' with ', '') || cpu || coalesce(', ' || cores || ' cores', ''), 'a machine that is not told'),
       strftime('%Y-%m-%d', attempt.started, 'unixepoch'),
       CASE json_extract(first.argv, '$[0]') WHEN 'outpace' THEN '' ELSE 'outpace ' END ||
           (SELECT group_concat(value, ' ') FROM json_each(first.argv))
FROM run JOIN run_state ON run_state.run_id = run.id JOIN attempt ON attempt.run_id = run.id
JOIN environment ON environment.id = attempt.environment_id
JOIN attempt AS first ON first.id = (SELECT min(id) FROM attempt WHERE attempt.run_id = run.id)
WHERE run.id = ?1 ORDER BY attempt.id DESC LIMIT 1

-- name: unlike
-- Tokens that its adapters and heads learnt from, by the config.json that 'outpace train' wrote: where they are not the same,
-- or not known of all.
WITH learnt AS (
    SELECT DISTINCT run_id, model.name || iif(method = 'medusa', ' (heads)', ' (adapter)') AS name,
           coalesce(iif(method = 'medusa', json_extract(shape, '$.parts.heads.trained_tokens'), NULL),
                    json_extract(shape, '$.parts.adapter.trained_tokens')) AS tokens
    FROM point JOIN model ON model.id = model_id WHERE run_id = ?1 AND method IN ('kangaroo', 'medusa')
    ORDER BY point.number)
SELECT group_concat(name || ' ' || iif(tokens, printf('%.3g million tokens', 1e-6 * tokens), 'not known'), ', ')
FROM learnt GROUP BY run_id HAVING count(*) > 1 AND (count(tokens) < count(*) OR min(tokens) <> max(tokens))
