-- Strong scaling as predicted (?2); what cuts the model is ideal, or fitted to what was seen: of each model and dataset, the setting of lookahead that gains most by lookahead parallelism.
WITH point AS (
    SELECT json_extract(p.value, '$.point') AS number, json_extract(p.value, '$.of') AS at,
           json_extract(p.value, '$.label') AS label FROM json_each(?2, '$.prediction.points') AS p),
scaled AS MATERIALIZED (
    SELECT json_extract(s.value, '$.point') AS number, json_extract(s.value, '$.devices') AS devices,
           s.value AS speedups FROM json_each(?2, '$.prediction.scaling') AS s),
best AS (
    SELECT number, at, label, row_number() OVER (PARTITION BY at ORDER BY most DESC, number) AS place
    FROM (SELECT number, max(json_extract(speedups, '$.lookahead')) AS most FROM scaled GROUP BY number) JOIN point USING (number)),
way(place, name, series, cuts) AS (
    VALUES (1, 'lookahead', 'lookahead parallelism', 'tokens'), (2, 'tensor', 'tensor parallelism', 'cut'), (3, 'pipeline', 'pipeline parallelism', 'cut'),
           (4, 'autoregressive_tensor', 'autoregressive, tensor', 'cut'), (5, 'autoregressive_pipeline', 'autoregressive, pipeline', 'cut'))
SELECT at || ', ' || label AS panel, series || iif(cuts = 'cut', coalesce(', fitted to ' || json_extract(?2, '$.prediction.cut'), ', ideal'), '') AS series, devices, json_extract(speedups, '$.' || name) AS speedup, NULL AS low, NULL AS high
FROM best JOIN scaled USING (number) JOIN way WHERE best.place = 1
ORDER BY at, way.place, devices;
