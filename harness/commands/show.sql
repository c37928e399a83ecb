-- What 'outpace show' prints of runs; -- name: head, changed: a sentence a row.

-- name: head
SELECT printf('run %d, %s%s: ', run.id, run.name, ', ' || unfinished) || iif(run.kind = 'import', 'imported',
    printf('outpace %s on %s, %d cores (%s)%s%s', run.version, cpu, cores, host,
           (SELECT ', weights ' || weights FROM run_weights WHERE run_id = run.id AND weights <> 'mapped'),
           (SELECT ', imported from ' || path FROM content WHERE run_id = run.id AND kind = 'import')))
FROM run JOIN run_state ON run_state.run_id = run.id JOIN attempt ON attempt.run_id = run.id
JOIN environment ON environment.id = environment_id WHERE run.id = ?1 ORDER BY attempt.id DESC LIMIT 1

-- name: surface
-- Nothing for a run that isn't of 'outpace bench --store'.
SELECT s.kind, context, s.rows, samples, median_ns AS median, low_ns AS low, high_ns AS high,
       slowdown, slowdown_low, slowdown_high, floor_ns AS floor, iif(sequences > 1, sequences, '') AS sequences,
       coalesce(k || 'x' || w, '-') AS grid, coalesce(a || '-' || b, '-') AS layers,
       CASE WHEN flags THEN 'yes' WHEN slowdown_doubtful THEN 'slowdown: one token was'
            WHEN disturbed THEN disturbed || ' repeated' ELSE '' END AS disturbed
FROM surface_doubt AS s JOIN attempt ON attempt.id = attempt_id WHERE run_id = ?1
ORDER BY context, s.kind, s.sequences, k, w, b, s.rows

-- name: alone
-- Imported points that lack a speedup.
SELECT count(*) FROM point_base JOIN point ON point.id = point_id JOIN run ON run.id = run_id
WHERE run_id = ?1 AND kind = 'import' AND base_id IS NULL

-- name: changed
-- How far the machine was at rest while a surface was measured.
SELECT 'disturbed: ' || points || ' points could not be measured undisturbed; how far off their times and slowdowns are is not known',
       -1 AS context
FROM (SELECT count(*) AS points FROM surface JOIN attempt ON attempt.id = attempt_id WHERE run_id = ?1 AND flags <> 0)
WHERE points > 0
UNION ALL
SELECT printf('at context %d one token took %.2f times as long after the grid as before it: the machine changed, and '
              || 'slowdowns there may be as wrong as that', context, drift), context
FROM drifted WHERE run_id = ?1 ORDER BY 2

-- name: runs
-- Of a surface, its shapes and how often they were timed.
WITH shape AS (SELECT run_id, count(*) AS shapes, sum(samples) AS timings
               FROM attempt JOIN surface ON attempt_id = attempt.id GROUP BY run_id)
SELECT s.run_id AS id, name, strftime('%Y-%m-%d %H:%M', created, 'unixepoch', 'localtime') AS made, coalesce(last_result, 'killed') AS state,
       ((SELECT count(*) FROM point WHERE point.run_id = s.run_id AND EXISTS (SELECT 1 FROM sample WHERE point_id = point.id))
           + coalesce(shapes, 0)) || '/' || (points + coalesce(shapes, 0)) AS begun,
       samples + coalesce(timings, 0) AS samples, attempts AS starts
FROM run_state AS s LEFT JOIN shape ON shape.run_id = s.run_id ORDER BY 1
