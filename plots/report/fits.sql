-- Laws fitted to this run (?2): by the estimator that is held best.
WITH fits AS (
    SELECT model.name AS model, dataset.name AS dataset, f.value -> 'fit' AS fit
    FROM json_each(?2, '$.fits') AS f
    JOIN point ON point.id = f.value ->> '$.points_of[0]' JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
    WHERE run_id = ?1 AND f.value ->> 'fit' IS NOT NULL),
best AS (SELECT *, fit -> (fit ->> 'estimator') AS best FROM fits)
SELECT model, dataset, iif(fit ->> 'law' = 'paper', 'b = W = G', 'each step''s own candidates') AS law, fit ->> 'bonus' AS bonus,
       fit ->> 'filling' AS "filling, tokens of an output", (fit ->> 'fitted') || ' of ' || (fit ->> 'points') AS "points fitted",
       replace(fit ->> 'estimator', '_', ' ') AS estimator,
       printf('%.3f [%.3f, %.3f]', fit ->> '$.alpha.value', fit ->> '$.alpha.low', fit ->> '$.alpha.high') AS alpha,
       printf('%.3f [%.3f, %.3f]', fit ->> '$.f.value', fit ->> '$.f.low', fit ->> '$.f.high') AS f,
       best ->> 'rms' AS "rms of residuals", best ->> 'condition' AS condition, best ->> 'correlation' AS correlation,
       (SELECT group_concat(value, '; ') FROM json_each(best, '$.warnings')) AS warnings
FROM best ORDER BY model, dataset, law;
