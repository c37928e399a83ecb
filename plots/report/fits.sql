-- Laws fitted to this run (?2): by the estimator that is held best.
WITH fits AS (
    SELECT model.name AS model, dataset.name AS dataset, json_extract(f.value, '$.fit') AS fit
    FROM json_each(?2, '$.fits') AS f
    JOIN point ON point.id = json_extract(f.value, '$.points_of[0]') JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
    WHERE run_id = ?1 AND json_extract(f.value, '$.fit') IS NOT NULL),
best AS (SELECT *, json_extract(fit, '$.' || json_extract(fit, '$.estimator')) AS best FROM fits)
SELECT model, dataset, iif(json_extract(fit, '$.law') = 'paper', 'b = W = G', 'each step''s own candidates') AS law,
       json_extract(fit, '$.bonus') AS bonus, json_extract(fit, '$.filling') AS "filling, tokens of an output",
       json_extract(fit, '$.fitted') || ' of ' || json_extract(fit, '$.points') AS "points fitted",
       replace(json_extract(fit, '$.estimator'), '_', ' ') AS estimator,
       measured(json_extract(fit, '$.alpha.value'), json_extract(fit, '$.alpha.low'),
                json_extract(fit, '$.alpha.high')) AS alpha,
       measured(json_extract(fit, '$.f.value'), json_extract(fit, '$.f.low'),
                json_extract(fit, '$.f.high')) AS f,
       json_extract(best, '$.rms') AS "rms of residuals", json_extract(best, '$.condition') AS condition,
       json_extract(best, '$.correlation') AS correlation,
       (SELECT group_concat(value, '; ') FROM json_each(best, '$.warnings')) AS warnings
FROM best ORDER BY model, dataset, law;
