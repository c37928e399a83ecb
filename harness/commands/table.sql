-- name: here
-- The newest run of experiment ?1: 'run 12, smoke, 2026-11-21, done, 36 s'.
SELECT printf('run %d%s, %s, %s, %.0f s', run.id, iif(overrides LIKE '%"--scale","smoke"%', ', smoke', ''),
              strftime('%Y-%m-%d', created, 'unixepoch', 'localtime'), coalesce(result, 'not ended'),
              (SELECT coalesce(sum(ended - started), 0) FROM attempt WHERE run_id = run.id))
FROM run JOIN attempt ON run_id = run.id WHERE name = ?1 ORDER BY run.id DESC, attempt.id DESC LIMIT 1
