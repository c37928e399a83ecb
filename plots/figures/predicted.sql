-- Predicted over measured (?2): S by the fitted law, and prices on a machine where the same points were measured.
WITH fit AS (
    SELECT f."key" AS fit, model.name || ', ' || dataset.name AS at, json_extract(f.value, '$.fit.predictions') AS predictions
    FROM json_each(?2, '$.fits') AS f
    JOIN point ON point.id = json_extract(f.value, '$.points_of[0]') JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
    WHERE run_id = ?1),
priced AS (
    SELECT json_extract(p.value, '$.of') AS at, p.value AS point
    FROM json_each(?2, '$.prediction.points') AS p),
place AS (
    SELECT 1 AS what, 'S by the fitted law: ' || at AS panel, iif(json_extract(p.value, '$.fitted'), 'fitted', 'not fitted') AS series,
           json_extract(p.value, '$.S') AS measured, json_extract(p.value, '$.predicted') AS predicted,
           json_extract(p.value, '$.low') AS low, json_extract(p.value, '$.high') AS high,
           0 AS doubtful
    FROM fit, json_each(predictions) AS p
    UNION ALL
    SELECT 2, 'step in ms: ' || at, 'priced', 1e3 * json_extract(point, '$.measured_step_s'),
           1e3 * json_extract(point, '$.step_s'), NULL, NULL, coalesce(json_extract(point, '$.measured_doubtful'), 0) FROM priced
    UNION ALL
    SELECT 3, 'speedup: ' || at, 'priced', json_extract(point, '$.measured_speedup'), json_extract(point, '$.speedup'),
           json_extract(point, '$.speedup_low'), json_extract(point, '$.speedup_high'),
           coalesce(json_extract(point, '$.measured_doubtful'), 0) FROM priced)
SELECT panel, series, measured, predicted, low, high, doubtful FROM place WHERE measured IS NOT NULL AND predicted IS NOT NULL
ORDER BY what, panel, series, measured;
