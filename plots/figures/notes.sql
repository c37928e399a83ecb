-- The lines under every figure of run ?1: what was run on what, where the machine changed meanwhile, what only stands in,
-- and what was predicted (?2).
SELECT 'run ' || run.id || ', ' || run.name || coalesce(', ' || unfinished, '') || ': outpace ' || run.version || ', ' ||
       coalesce(environment.gpu, environment.cpu || coalesce(', ' || environment.cores || ' cores', ''), 'unknown machine') ||
       coalesce((SELECT ', weights ' || weights FROM run_weights WHERE run_id = ?1 AND weights <> 'mapped'), '')
FROM run JOIN run_state ON run_state.run_id = run.id JOIN attempt ON attempt.run_id = run.id JOIN environment ON environment.id = environment_id
WHERE run.id = ?1 AND attempt.id = (SELECT max(id) FROM attempt WHERE run_id = ?1)
  AND json_extract(?2, '$.prediction.surface') IS NULL -- a surface that was priced did not run
UNION ALL
SELECT 'the machine changed meanwhile: one token took ' || group_concat(printf('%.2f x at context %d', drift, context), ', ')
FROM (SELECT context, drift FROM drifted WHERE run_id = ?1 ORDER BY context) HAVING count(*) > 0
UNION ALL
SELECT sum(disturbed) || ' of ' || count(*) || ' steps were disturbed while they were timed'
FROM attempt JOIN heat ON heat.attempt_id = attempt.id WHERE run_id = ?1 HAVING sum(disturbed) > 0
UNION ALL
SELECT * FROM (
    SELECT DISTINCT mark || model.name || ', ' || made
    FROM (SELECT id, name, 'stand-in: ' AS mark, stand_in AS made FROM model
          UNION ALL SELECT id, name, 'quantised: ', json_extract(shape, '$.quantised') FROM model) AS model
    WHERE made IS NOT NULL
      AND (id IN (SELECT model_id FROM point WHERE run_id = ?1)
           OR id IN (SELECT model_id FROM attempt JOIN surface ON attempt_id = attempt.id WHERE run_id = ?1))
    ORDER BY model.name)
UNION ALL
SELECT json_extract(?2, '$.surface.says') FROM run WHERE id = ?1 AND kind = 'surface' AND json_array_length(?2, '$.surface.steps') > 0
UNION ALL
SELECT 'priced for ' || json_extract(?2, '$.prediction.machine') || ', shape ' || json_extract(?2, '$.prediction.shape') ||
       coalesce(' and ' || json_extract(?2, '$.beside.shape'), '') ||
       iif(json_extract(?2, '$.prediction.link.bytes_per_s') > 0,
           printf(', links of %g GB/s, %g us', 1e-9 * json_extract(?2, '$.prediction.link.bytes_per_s'),
                  1e6 * json_extract(?2, '$.prediction.link.latency_s')), '') ||
       iif(json_extract(?2, '$.prediction.most_rows') > 0,
           printf(', fitted to steps of at most %d rows', json_extract(?2, '$.prediction.most_rows')), '') || ': a prediction'
WHERE json_extract(?2, '$.prediction.machine') IS NOT NULL;
