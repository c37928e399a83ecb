-- name: machines
-- A run whose parts were measured on different machines has paired speedups, and times that don't compare.
SELECT printf('note: run %d, %s, was measured on different machines: %s. Its speedups are of pairs on one machine and hold; '
              || 'its times don''t compare', run.id, run.name, group_concat(DISTINCT cpu || coalesce(' with ' || gpu, '')))
FROM run JOIN attempt ON run_id = run.id JOIN environment AS v ON v.id = environment_id
GROUP BY run.id HAVING count(DISTINCT cpu || coalesce(gpu, '')) > 1
