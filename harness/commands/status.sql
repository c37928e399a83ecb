-- How far a sweep has come.

-- name: run
-- Its config, which part of it this is, and of how many parts another run of the same config is here, if it is cut otherwise.
SELECT name, config, coalesce(config_file, ''), overrides,
       coalesce((SELECT b.value FROM json_each(overrides) AS a JOIN json_each(overrides) AS b ON b.key = a.key + 1
                 WHERE a.value = '--shard'), ''),
       (SELECT coalesce(max(CAST(substr(value, instr(value, '/') + 1) AS INTEGER)), 0)
        FROM run AS other JOIN json_each(other.overrides)
        WHERE other.name = r.name AND other.config = r.config AND other.hash <> r.hash AND value GLOB '[0-9]*/[0-9]*'
            AND value NOT IN (SELECT value FROM json_each(r.overrides)))
FROM run AS r WHERE id = ?1 AND kind = 'sweep'

-- name: answers
-- Points of the whole, ?2, that are here; answers stored and wanted in ?3 passes. A point that was skipped or failed is not
-- waited for.
SELECT sum(number <= ?2), sum(done), sum(iif(over, done, max(done, wanted)))
FROM (SELECT number, skipped IS NOT NULL
                 OR EXISTS (SELECT 1 FROM failure AS f WHERE f.point_id = point.id
                            AND NOT EXISTS (SELECT 1 FROM sample AS t WHERE t.point_id = point.id AND t.attempt_id > f.attempt_id)) AS over,
             (SELECT count(*) FROM sample JOIN prompt ON prompt.id = prompt_id WHERE point_id = point.id AND turn = 0) AS done,
             ?3 * (SELECT count(*) FROM prompt WHERE dataset_id = point.dataset_id AND turn = 0) AS wanted
      FROM point WHERE run_id = ?1)

-- name: starts
-- How many, how long they ran, a killed one until its last answer; state and host of the last one.
SELECT count(*), coalesce(sum(max(0, end - started)), 0), max(id),
       iif(result IN ('done', 'partial', 'interrupted', 'failed'), result, 'killed'), coalesce(host, '')
FROM (SELECT attempt.id, started, result, host,
             coalesce(ended, (SELECT max(started + 1e-9 * (prefill_ns + decode_ns)) FROM sample WHERE attempt_id = attempt.id), started) AS end
      FROM attempt JOIN environment AS v ON v.id = environment_id WHERE run_id = ?1)
