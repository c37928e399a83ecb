-- Predicted over measured (?2): S by the fitted law, and prices on a machine where the same points were measured.
WITH fit AS (
    SELECT f."key" AS fit, model.name || ', ' || dataset.name AS at, f.value -> '$.fit.predictions' AS predictions
    FROM json_each(?2, '$.fits') AS f
    JOIN point ON point.id = f.value ->> '$.points_of[0]' JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
    WHERE run_id = ?1),
priced AS (
    SELECT p.value ->> 'of' AS at, p.value AS point
    FROM json_each(?2, '$.prediction.points') AS p),
place AS (
    SELECT 1 AS what, 'S by the fitted law: ' || at AS panel, iif(p.value ->> 'fitted', 'fitted', 'not fitted') AS series,
           p.value ->> 'S' AS measured, p.value ->> 'predicted' AS predicted, p.value ->> 'low' AS low, p.value ->> 'high' AS high
    FROM fit, json_each(predictions) AS p
    UNION ALL
    SELECT 2, 'step, ms: ' || at, 'priced', 1e3 * (point ->> 'measured_step_s'), 1e3 * (point ->> 'step_s'), NULL, NULL FROM priced
    UNION ALL
    SELECT 3, 'speedup: ' || at, 'priced', point ->> 'measured_speedup', point ->> 'speedup',
           point ->> 'speedup_low', point ->> 'speedup_high' FROM priced)
SELECT panel, series, measured, predicted, low, high FROM place WHERE measured IS NOT NULL AND predicted IS NOT NULL
ORDER BY what, panel, series, measured;
