-- Samples beside their baselines, and points that lack estimates.

-- name: pairs
-- A point's baseline is NULL if it has none. Of imported samples prefill may be in decode_ns.
SELECT number, a.pass, a.tokens, a.steps, a.decode_ns, coalesce(a.prefill_ns, 0), b.tokens, b.decode_ns,
       iif(b.id, coalesce(b.prefill_ns, 0), NULL), a.prefill_tokens, a.prefill_steps, a.accepted, a.drafted
FROM point_base AS p JOIN sample AS a ON a.point_id = p.point_id JOIN prompt ON prompt.id = a.prompt_id
LEFT JOIN sample AS b ON b.point_id = base_id AND b.pass = a.pass AND b.prompt_id = a.prompt_id
WHERE p.point_id = ?1 AND (base_id IS NULL OR b.id) AND (?3 < 0 OR number % 2 = ?3)
    AND (?2 IS NULL OR ?2 = (SELECT subtask FROM subtask WHERE prompt_id = prompt.id))
    AND (?4 IS NULL OR EXISTS (SELECT 1 FROM prompt_task AS t WHERE t.prompt_id = prompt.id AND t.task = ?4))

-- name: points
SELECT id FROM point WHERE run_id = ?1 AND EXISTS (SELECT 1 FROM sample WHERE point_id = point.id)

-- name: missing
SELECT count(*) FROM point WHERE run_id = ?1 AND EXISTS (SELECT 1 FROM sample WHERE point_id = point.id)
    AND iif(EXISTS (SELECT 1 FROM estimate WHERE point_id = point.id AND metric = 'speedup'), 'speedup_over_S', 'S_reference')
        NOT IN (SELECT metric FROM estimate WHERE point_id = point.id)

-- name: missing_of_tasks
SELECT count(*) FROM point WHERE run_id = ?1 AND EXISTS (SELECT 1 FROM sample WHERE point_id = point.id)
    AND (SELECT count(DISTINCT task) > 1 FROM prompt WHERE prompt.dataset_id = point.dataset_id)
    AND NOT EXISTS (SELECT 1 FROM estimate WHERE point_id = point.id AND metric GLOB 'S of *')

-- name: tasks
SELECT task FROM point_task WHERE point_id = ?1 AND task <> ''
