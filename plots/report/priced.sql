-- The speedups of run ?1 here and as priced on another machine (?2). *: the times here are in doubt.
WITH priced AS (
    SELECT json_extract(value, '$.point') AS number, json_extract(value, '$.speedup') AS speedup,
           json_extract(value, '$.speedup_low') AS low, json_extract(value, '$.speedup_high') AS high
    FROM json_each(?2, '$.prediction.points'))
SELECT label AS method, measured(S, S_low, S_high) AS S, rows_per_step AS rows, same_text AS "same text",
       coalesce(measured(result.speedup, speedup_low, speedup_high) || iif(doubtful, ' *', ''), '-') AS here,
       coalesce(measured(priced.speedup, low, high), '-') AS priced, model, dataset, number AS point
FROM result JOIN priced USING (number) LEFT JOIN point_doubt USING (point_id) WHERE run_id = ?1 AND samples > 0
ORDER BY model, dataset, temperature, baseline_id IS NOT NULL, priced.speedup DESC;
