-- name: disturbed
-- Of ?2 points.
SELECT printf('%d of %d points could not be measured undisturbed: others took the processor, its clock changed, or this program was '
              || 'stopped or short of memory. They are marked; on a machine at rest --again measures anew', points, ?2)
FROM (SELECT count(*) AS points FROM surface JOIN attempt ON attempt.id = attempt_id WHERE run_id = ?1 AND flags <> 0) WHERE points > 0

-- name: drifted
-- Of ?2 contexts.
SELECT printf('the machine changed in the middle of %d of %d contexts: slowdowns there may be wrong, --again measures anew', contexts, ?2)
FROM (SELECT count(*) AS contexts FROM drifted WHERE run_id = ?1) WHERE contexts > 0
