-- Brings all of the attached store `other` into main: what both know by content or uid stands once, and gets main's id.
-- A sample that main has already stays as it is. Run in one transaction. Lists in braces are columns by results/row.c.

CREATE TEMP TABLE map_run (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
CREATE TEMP TABLE map_environment (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
CREATE TEMP TABLE map_attempt (old INTEGER PRIMARY KEY, new INTEGER NOT NULL, fresh INTEGER NOT NULL);
CREATE TEMP TABLE map_model (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
CREATE TEMP TABLE map_dataset (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
CREATE TEMP TABLE map_prompt (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
CREATE TEMP TABLE map_point (old INTEGER PRIMARY KEY, new INTEGER NOT NULL, fresh INTEGER NOT NULL);
CREATE TEMP TABLE map_source (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
CREATE TEMP TABLE map_output (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
CREATE TEMP TABLE map_sample (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
CREATE TEMP TABLE map_fit (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
CREATE TEMP TABLE before AS SELECT (SELECT coalesce(max(id), 0) FROM main.run) AS run,
    (SELECT coalesce(max(id), 0) FROM main.attempt) AS attempt, (SELECT coalesce(max(id), 0) FROM main.point) AS point,
    (SELECT coalesce(max(id), 0) FROM main.sample) AS sample, (SELECT coalesce(max(id), 0) FROM main.fit) AS fit;

INSERT INTO main.run (uid, hash, created, {run}) SELECT uid, hash, created, {run}
FROM other.run WHERE uid NOT IN (SELECT uid FROM main.run) ORDER BY id;
INSERT INTO map_run SELECT o.id, m.id FROM other.run AS o JOIN main.run AS m ON m.uid = o.uid;

INSERT OR IGNORE INTO main.content (run_id, {content}) SELECT new, {content} FROM other.content JOIN map_run ON old = run_id;

INSERT OR IGNORE INTO main.environment (hash, {environment}) SELECT hash, {environment}
FROM other.environment ORDER BY id;
INSERT INTO map_environment SELECT o.id, m.id FROM other.environment AS o JOIN main.environment AS m ON m.hash = o.hash;

INSERT OR IGNORE INTO main.attempt (run_id, uid, environment_id, argv, started, ended, result)
SELECT r.new, uid, e.new, argv, started, ended, result
FROM other.attempt JOIN map_run AS r ON r.old = run_id JOIN map_environment AS e ON e.old = environment_id
ORDER BY id;
INSERT INTO map_attempt SELECT o.id, m.id, m.id > (SELECT attempt FROM before)
FROM other.attempt AS o JOIN main.attempt AS m ON m.uid = o.uid;

INSERT OR IGNORE INTO main.reading (attempt_id, number, {reading}) SELECT new, number, {reading}
FROM other.reading JOIN map_attempt ON old = attempt_id WHERE fresh;

INSERT OR IGNORE INTO main.model ({model}) SELECT {model} FROM other.model ORDER BY id;
INSERT INTO map_model
SELECT o.id, m.id FROM other.model AS o JOIN main.model AS m ON m.name = o.name AND m.hash = o.hash;

INSERT OR IGNORE INTO main.dataset ({dataset}) SELECT {dataset} FROM other.dataset ORDER BY id;
INSERT INTO map_dataset
SELECT o.id, m.id FROM other.dataset AS o JOIN main.dataset AS m ON m.name = o.name AND m.hash = o.hash;

INSERT OR IGNORE INTO main.prompt (dataset_id, number, turn, name, task)
SELECT new, number, turn, name, task FROM other.prompt JOIN map_dataset ON old = dataset_id ORDER BY id;
INSERT INTO map_prompt SELECT o.id, m.id FROM other.prompt AS o JOIN map_dataset AS d ON d.old = o.dataset_id
JOIN main.prompt AS m ON m.dataset_id = d.new AND m.number = o.number AND m.turn = o.turn;

INSERT OR IGNORE INTO main.point (run_id, number, hash, model_id, dataset_id, method, decoder, label, temperature, skipped)
SELECT r.new, number, hash, m.new, d.new, method, decoder, label, temperature, skipped
FROM other.point JOIN map_run AS r ON r.old = run_id JOIN map_model AS m ON m.old = model_id
JOIN map_dataset AS d ON d.old = dataset_id ORDER BY id;
INSERT INTO map_point SELECT o.id, m.id, m.id > (SELECT point FROM before)
FROM other.point AS o JOIN map_run AS r ON r.old = o.run_id JOIN main.point AS m ON m.run_id = r.new AND m.hash = o.hash;
UPDATE main.point SET
    baseline_id = (SELECT b.new FROM map_point AS p JOIN other.point AS o ON o.id = p.old
                   JOIN map_point AS b ON b.old = o.baseline_id WHERE p.new = point.id),
    same_path_id = (SELECT b.new FROM map_point AS p JOIN other.point AS o ON o.id = p.old
                    JOIN map_point AS b ON b.old = o.same_path_id WHERE p.new = point.id)
WHERE id IN (SELECT new FROM map_point WHERE fresh);

INSERT OR IGNORE INTO main.point_param
SELECT new, section, name, value FROM other.point_param JOIN map_point ON old = point_id WHERE fresh;
INSERT OR IGNORE INTO main.one_off SELECT new, name, ns, bytes FROM other.one_off JOIN map_point ON old = point_id;
INSERT OR IGNORE INTO main.estimate (point_id, {estimate}) SELECT new, {estimate}
FROM other.estimate JOIN map_point ON old = point_id WHERE fresh;

INSERT INTO main.failure (attempt_id, point_id, prompt_id, pass, at, message)
SELECT a.new, p.new, q.new, pass, at, message
FROM other.failure JOIN map_attempt AS a ON a.old = attempt_id LEFT JOIN map_point AS p ON p.old = point_id
LEFT JOIN map_prompt AS q ON q.old = prompt_id WHERE a.fresh ORDER BY id;

INSERT INTO main.surface (attempt_id, model_id, {surface}) SELECT t.new, m.new, {surface}
FROM other.surface JOIN map_attempt AS t ON t.old = attempt_id JOIN map_model AS m ON m.old = model_id
WHERE t.fresh ORDER BY id;

INSERT INTO map_sample
SELECT o.id, (SELECT sample FROM before) + row_number() OVER (ORDER BY o.id)
FROM other.sample AS o JOIN map_point AS p ON p.old = o.point_id JOIN map_prompt AS q ON q.old = o.prompt_id
WHERE NOT EXISTS (SELECT 1 FROM main.sample AS m WHERE m.point_id = p.new AND m.pass = o.pass AND m.prompt_id = q.new);

INSERT OR IGNORE INTO main.output (hash, ids, tokens, text, pieces, bytes, repeated, looping)
SELECT hash, ids, tokens, text, pieces, bytes, repeated, looping FROM other.output
WHERE id IN (SELECT output_id FROM other.sample JOIN map_sample ON old = id) ORDER BY id;
INSERT INTO map_output SELECT o.id, m.id FROM other.output AS o JOIN main.output AS m ON m.hash = o.hash;

INSERT INTO main.sample (id, point_id, pass, prompt_id, attempt_id, output_id, position, started, flags, {sample}, {sums})
SELECT s.new, p.new, pass, q.new, a.new, t.new, position, started, flags, {sample}, {sums}
FROM other.sample AS o JOIN map_sample AS s ON s.old = o.id JOIN map_point AS p ON p.old = point_id
JOIN map_prompt AS q ON q.old = prompt_id JOIN map_attempt AS a ON a.old = attempt_id
LEFT JOIN map_output AS t ON t.old = output_id ORDER BY s.new;

INSERT OR IGNORE INTO main.score
SELECT t.new, q.new, metric, value FROM other.score JOIN map_output AS t ON t.old = output_id
JOIN map_prompt AS q ON q.old = prompt_id;

INSERT OR IGNORE INTO main.source (name) SELECT name FROM other.source ORDER BY id;
INSERT INTO map_source SELECT o.id, m.id FROM other.source AS o JOIN main.source AS m ON m.name = o.name;

INSERT INTO main.step (sample_id, number, kind, matches, head_rows, {step})
SELECT new, number, kind, matches, head_rows, {step}
FROM map_sample CROSS JOIN other.step ON sample_id = old;
INSERT INTO main.step_pass (sample_id, number, pass, model, {pass}) SELECT new, number, pass, model, {pass}
FROM map_sample CROSS JOIN other.step_pass ON sample_id = old;
INSERT INTO main.step_batch (sample_id, number, run, {batch}) SELECT new, number, run, {batch}
FROM map_sample CROSS JOIN other.step_batch ON sample_id = old;
INSERT INTO main.step_source (sample_id, number, source_id, won, {source}) SELECT m.new, number, s.new, won, {source}
FROM map_sample AS m CROSS JOIN other.step_source ON sample_id = m.old JOIN map_source AS s ON s.old = source_id;
INSERT INTO main.step_guess (sample_id, number, guess, {guess}) SELECT new, number, guess, {guess}
FROM map_sample CROSS JOIN other.step_guess ON sample_id = old;
INSERT INTO main.sample_accept SELECT new, kind, accepted, steps
FROM map_sample CROSS JOIN other.sample_accept ON sample_id = old;
INSERT INTO main.sample_source SELECT m.new, s.new, rows, steps, won, tokens
FROM map_sample AS m CROSS JOIN other.sample_source ON sample_id = m.old JOIN map_source AS s ON s.old = source_id;
INSERT INTO main.sample_rank SELECT m.new, s.new, length, rank, steps
FROM map_sample AS m CROSS JOIN other.sample_rank ON sample_id = m.old JOIN map_source AS s ON s.old = source_id;
INSERT INTO main.divergence (sample_id, {divergence}) SELECT new, {divergence}
FROM map_sample CROSS JOIN other.divergence ON sample_id = old;

-- A fit that main has stays as it is. Samples that came in with it count: the view `fitted` looks.
INSERT OR IGNORE INTO main.fit (run_id, made, {fit}) SELECT new, made, {fit}
FROM other.fit JOIN map_run ON old = run_id ORDER BY id;
INSERT INTO map_fit SELECT o.id, m.id FROM other.fit AS o JOIN map_run AS r ON r.old = o.run_id
JOIN main.fit AS m ON m.run_id = r.new AND m.hash = o.hash WHERE m.id > (SELECT fit FROM before);
INSERT INTO main.fit_point SELECT t.new, p.new, samples
FROM other.fit_point JOIN map_fit AS t ON t.old = fit_id JOIN map_point AS p ON p.old = point_id;
INSERT INTO main.fit_estimate (fit_id, {fit_estimate}) SELECT new, {fit_estimate}
FROM other.fit_estimate JOIN map_fit ON old = fit_id;

-- Estimates of points that were there and now have more samples, or whose baseline has.
DELETE FROM main.estimate WHERE point_id IN
    (SELECT id FROM main.point WHERE id NOT IN (SELECT new FROM map_point WHERE fresh) AND EXISTS
        (SELECT 1 FROM main.sample WHERE sample.id > (SELECT sample FROM before)
         AND sample.point_id IN (point.id, point.baseline_id, point.same_path_id)));
