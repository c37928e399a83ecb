-- Statements by name (sql_run, sql_find, rows_named); most INSERTs are made from row.c.

-- name: views_same
SELECT 1 FROM main.made WHERE what = 'views' AND hash = ?1

-- name: views_set
INSERT OR REPLACE INTO made (what, hash) VALUES ('views', ?1)

-- name: run_find
SELECT id FROM run WHERE hash = ?1 ORDER BY id DESC LIMIT 1

-- name: run_uid
UPDATE run SET uid = ?2 WHERE id = ?1

-- name: environment_find
SELECT id FROM environment WHERE hash = ?1

-- name: attempt_add
INSERT INTO attempt (run_id, environment_id, argv) VALUES (?1, ?2, ?3)

-- name: attempt_end
UPDATE attempt SET ended = (julianday('now') - 2440587.5) * 86400.0, result = ?2 WHERE id = ?1

-- name: reading_next
SELECT coalesce(max(number) + 1, 0) FROM reading WHERE attempt_id = ?1

-- name: model_find
SELECT id FROM model WHERE name = ?1 AND hash = ?2

-- name: dataset_find
SELECT id FROM dataset WHERE name = ?1 AND hash = ?2

-- name: prompt_find
SELECT id FROM prompt WHERE dataset_id = ?1 AND number = ?2 AND turn = ?3

-- name: point_find
SELECT id FROM point WHERE run_id = ?1 AND hash = ?2

-- name: point_renew
UPDATE point SET baseline_id = ?2, same_path_id = ?3, skipped = ?4 WHERE id = ?1

-- name: param_add
INSERT INTO point_param (point_id, section, name, value) VALUES (?1, ?2, ?3, ?4)

-- name: layers_of
SELECT layers FROM point JOIN model ON model.id = model_id WHERE point.id = ?1

-- name: sample_find
SELECT id FROM sample WHERE point_id = ?1 AND pass = ?2 AND prompt_id = ?3

-- name: sample_add
INSERT INTO sample (point_id, pass, prompt_id, attempt_id, output_id, position, started, flags, {sample},
                    steps, filling_steps, accepted)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, {sample|?}, ?, 0, 0)

-- name: sum_steps
-- A sum is unknown if a part is. Without steps all are 0, but the device's time, and its parts are unknown if that is.
UPDATE sample SET ({sums}) = ({sums|n.@}), device_head_ns = iif(n.device_ns IS NULL, NULL, device_head_ns),
    device_commit_ns = iif(n.device_ns IS NULL, NULL, device_commit_ns)
FROM (SELECT {sums|iif(count(@) = count(*), coalesce(sum(@), iif('@' = 'device_ns', NULL, 0)), NULL) AS @}
      FROM (SELECT *, 1 AS steps, kind = 1 AS filling_steps FROM step WHERE sample_id = ?1)) AS n
WHERE id = ?1

-- name: source_find
SELECT id FROM source WHERE name = ?1

-- name: source_name
INSERT INTO source (name) VALUES (?1)

-- name: sum_accept
INSERT INTO sample_accept (sample_id, kind, accepted, steps)
SELECT sample_id, kind, accepted, count(*) FROM step WHERE sample_id = ?1 GROUP BY kind, accepted

-- name: sum_source
INSERT INTO sample_source (sample_id, source_id, rows, steps, won, tokens)
SELECT sample_id, source_id, sum(rows), count(*), sum(won), sum(won * length) FROM step_source
WHERE sample_id = ?1 GROUP BY source_id

-- name: sum_rank
INSERT INTO sample_rank (sample_id, source_id, length, rank, steps)
SELECT sample_id, source_id, length, rank, count(*) FROM step_source
WHERE sample_id = ?1 AND won GROUP BY source_id, length, rank

-- name: output_find
SELECT id FROM output WHERE hash = ?1

-- name: output_add
INSERT INTO output (hash, ids, tokens, text, bytes, repeated, looping, pieces) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)

-- name: output_of
SELECT output_id FROM sample WHERE point_id = ?1 AND pass = ?2 AND prompt_id = ?3 AND output_id IS NOT NULL

-- name: estimates_drop
DELETE FROM estimate
WHERE point_id = ?1 OR point_id IN (SELECT id FROM point WHERE baseline_id = ?1 OR same_path_id = ?1)

-- name: fit_points
INSERT INTO fit_point (fit_id, point_id, samples)
SELECT ?1, value, (SELECT count(*) FROM sample WHERE point_id = value) FROM json_each(?2)

-- name: score_set
INSERT OR REPLACE INTO score (output_id, prompt_id, metric, value) VALUES (?1, ?2, ?3, ?4)

-- name: one_off_set
INSERT OR REPLACE INTO one_off (point_id, name, ns, bytes) VALUES (?1, ?2, ?3, ?4)

-- name: failure_add
INSERT INTO failure (attempt_id, point_id, prompt_id, pass, message) VALUES (?1, ?2, ?3, ?4, ?5)

-- name: flag_add
UPDATE sample SET flags = flags | ?4 WHERE point_id = ?1 AND pass = ?2 AND prompt_id = ?3

-- name: run_delete
DELETE FROM run WHERE id = ?1

-- name: output_sweep
DELETE FROM output WHERE id NOT IN (SELECT output_id FROM sample WHERE output_id IS NOT NULL)

-- name: prompt_sweep
DELETE FROM prompt WHERE NOT EXISTS (SELECT 1 FROM sample WHERE prompt_id = prompt.id)
    AND NOT EXISTS (SELECT 1 FROM failure WHERE prompt_id = prompt.id)
    AND NOT EXISTS (SELECT 1 FROM point WHERE point.dataset_id = prompt.dataset_id)

-- name: dataset_sweep
DELETE FROM dataset WHERE id NOT IN (SELECT dataset_id FROM point) AND id NOT IN (SELECT dataset_id FROM prompt)

-- name: model_sweep
DELETE FROM model WHERE id NOT IN (SELECT model_id FROM point) AND id NOT IN (SELECT model_id FROM surface)

-- name: environment_sweep
DELETE FROM environment WHERE id NOT IN (SELECT environment_id FROM attempt)

-- Of an exported run: ?3 is an object, or a list of them, as JSON.

-- name: import_run
UPDATE run SET created = json_extract(?3, '$.created'), ({run}) = ({run|json_extract(?3, '$.@')}) WHERE id = ?1

-- name: import_name
UPDATE run SET name = ?2 WHERE id = ?1

-- name: import_contents
INSERT INTO content (run_id, {content}) SELECT ?1, {content|json_extract(value, '$.@')} FROM json_each(?3)

-- name: import_models
INSERT INTO model ({model}) SELECT {model|json_extract(value, '$.@')} FROM json_each(?3) WHERE true ON CONFLICT DO NOTHING

-- name: import_datasets
INSERT INTO dataset ({dataset}) SELECT {dataset|json_extract(value, '$.@')} FROM json_each(?3) WHERE true ON CONFLICT DO NOTHING

-- name: import_start
INSERT INTO attempt (run_id, environment_id, argv, started, ended, result)
VALUES (?1, ?2, json_extract(?3, '$.argv'), json_extract(?3, '$.started'), json_extract(?3, '$.ended'), json_extract(?3, '$.result'))

-- name: import_readings
INSERT INTO reading (attempt_id, number, {reading}) SELECT ?1, key, {reading|json_extract(value, '$.@')} FROM json_each(?3)

-- name: import_once
INSERT OR REPLACE INTO one_off (point_id, name, ns, bytes)
SELECT ?2, json_extract(value, '$.name'), json_extract(value, '$.ns'), json_extract(value, '$.bytes') FROM json_each(?3)

-- name: import_failures
INSERT INTO failure (attempt_id, point_id, pass, at, message)
SELECT (SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS start FROM attempt WHERE run_id = ?1)
        WHERE start = json_extract(value, '$.start')),
       ?2, json_extract(value, '$.pass'), json_extract(value, '$.at'), json_extract(value, '$.message')
FROM json_each(?3)

-- name: import_last
SELECT coalesce(max(number), 0) FROM point WHERE run_id = ?1

-- name: import_alone
SELECT count(*) FROM point WHERE run_id = ?1 AND baseline_id IS NULL AND method <> 'autoregressive'

-- name: import_number
SELECT number = ?2 AND hash = ?3 FROM point WHERE run_id = ?1 AND (number = ?2 OR hash = ?3) ORDER BY 1 LIMIT 1

-- name: import_baseline
UPDATE point SET baseline_id = (SELECT id FROM point WHERE run_id = ?1 AND number = ?3),
    same_path_id = (SELECT id FROM point WHERE run_id = ?1 AND number = ?4) WHERE id = ?2

-- name: import_baselines
-- The baseline of a line without a number: the last one with the same settings, else the last one.
WITH setting AS (
    SELECT p.id, (
        SELECT group_concat(section || name || '=' || value, ' ')
        FROM (SELECT * FROM point_param WHERE point_id = p.id AND section <> 'method' ORDER BY section, name)) AS text
    FROM point AS p WHERE run_id = ?1)
UPDATE point SET (baseline_id, same_path_id) = (
    SELECT b.id, b.id FROM setting AS own JOIN point AS b JOIN setting AS q ON q.id = b.id
    WHERE own.id = point.id AND b.run_id = ?1 AND b.method = 'autoregressive' AND b.model_id = point.model_id
        AND b.dataset_id = point.dataset_id AND b.temperature = point.temperature
    ORDER BY q.text IS own.text DESC, b.id DESC LIMIT 1)
WHERE run_id = ?1 AND method <> 'autoregressive'

-- name: import_part
UPDATE attempt SET result = 'incomplete' WHERE run_id = ?1 AND result IN ('done', 'partial')

-- name: attach
ATTACH ?1 AS other

-- name: detach
DETACH other

-- --- checks (rows_named) -------------------------------------------------------------------------------------

-- name: schema
SELECT type, name, sql FROM main.sqlite_schema

-- name: view_names
SELECT replace(name, '"', '""') FROM main.sqlite_schema WHERE type = 'view'

-- name: damage
SELECT * FROM (SELECT * FROM pragma_integrity_check LIMIT 1) WHERE integrity_check <> 'ok'
UNION ALL SELECT 'a row of ' || "table" || ' refers to nothing in ' || parent FROM pragma_foreign_key_check

-- name: altered
-- Samples whose sums are not those of their steps (invariant 2 of schema.sql): the place and the sum of each, and their number.
-- Steps that an import left out can't be compared. A time may differ by the rounding of every step's.
WITH scan AS (
    SELECT sample_id, sum(emitted) AS tokens, {sums|iif(count(@) = count(*), sum(@), NULL) AS @}
    FROM (SELECT *, 1 AS steps, kind = 1 AS filling_steps FROM step) GROUP BY sample_id),
pair AS (
    SELECT x.id, key AS name, json_extract(value, '$[0]') AS stored, json_extract(value, '$[1]') AS scanned,
        n.steps * (key GLOB '*_ns') AS rounding
    FROM sample AS x JOIN scan AS n ON n.sample_id = x.id,
        json_each(json_object('tokens', json_array(x.tokens, n.tokens), {sums|'@', json_array(x.@, n.@)}))),
wrong AS (
    SELECT id, name || ' is ' || coalesce(stored, 'unknown') || ', but its steps give ' || coalesce(scanned, 'none') AS what
    FROM pair WHERE coalesce(abs(stored - scanned) > rounding, stored IS NOT scanned)
    UNION ALL
    SELECT sample.id, 'it has ' || steps || ' steps, and none of them is there'
    FROM sample JOIN point ON point.id = point_id JOIN run ON run.id = run_id
    WHERE steps > 0 AND kind <> 'import' AND NOT EXISTS (SELECT 1 FROM step WHERE sample_id = sample.id)
    UNION ALL
    SELECT sample_id, 'sample_accept is not what its steps give' FROM (
        SELECT sample_id, kind, accepted, count(*) AS steps FROM step GROUP BY sample_id, kind, accepted
        UNION ALL SELECT sample_id, kind, accepted, steps FROM sample_accept)
    GROUP BY sample_id, kind, accepted, steps HAVING count(*) <> 2
    UNION ALL
    SELECT sample_id, 'sample_source is not what its steps give' FROM (
        SELECT sample_id, source_id, sum(rows) AS rows, count(*) AS steps, sum(won) AS won, sum(won * length) AS tokens
        FROM step_source GROUP BY sample_id, source_id
        UNION ALL SELECT sample_id, source_id, rows, steps, won, tokens FROM sample_source)
    GROUP BY sample_id, source_id, rows, steps, won, tokens HAVING count(*) <> 2
    UNION ALL
    SELECT sample_id, 'sample_rank is not what its steps give' FROM (
        SELECT sample_id, source_id, length, rank, count(*) AS steps FROM step_source WHERE won
        GROUP BY sample_id, source_id, length, rank
        UNION ALL SELECT sample_id, source_id, length, rank, steps FROM sample_rank)
    GROUP BY sample_id, source_id, length, rank, steps HAVING count(*) <> 2)
SELECT 'run ' || run_id || ', point ' || point.number || ', pass ' || pass || ', prompt ' || prompt.number || ', turn ' || turn
       || ': ' || min(what), count(*) OVER ()
FROM wrong JOIN sample ON sample.id = wrong.id JOIN point ON point.id = point_id JOIN prompt ON prompt.id = prompt_id
GROUP BY sample.id ORDER BY sample.id
