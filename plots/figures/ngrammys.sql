-- Speedup and S of every (k, w), a panel a quantity and strategy; NULL where the grid was not measured.
WITH at AS (
    SELECT model, dataset, temperature, t.value AS strategy, k.value AS k, w.value AS w, max(S) AS S, max(speedup) AS speedup, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful, max(number) AS point
    FROM result JOIN point_doubt USING (point_id)
    JOIN point_param AS k ON k.point_id = result.point_id AND k.section = 'method' AND k.name = 'k'
    JOIN point_param AS w ON w.point_id = result.point_id AND w.section = 'method' AND w.name = 'w'
    JOIN point_param AS t ON t.point_id = result.point_id AND t.section = 'method' AND t.name = 'strategy'
    WHERE run_id = ?1 AND method = 'ngrammys'
    GROUP BY model, dataset, temperature, strategy, k.value, w.value),
ks AS (SELECT k, row_number() OVER (ORDER BY k) AS y FROM (SELECT DISTINCT k FROM at)),
ws AS (SELECT w, row_number() OVER (ORDER BY w) AS x FROM (SELECT DISTINCT w FROM at)),
panels AS (
    SELECT model, dataset, temperature, strategy, count(speedup) AS timed FROM at WHERE S IS NOT NULL
    GROUP BY model, dataset, temperature, strategy)
SELECT what || ': ' || dataset || ', ' || model || ', ' || strategy ||
       CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END AS panel, -- a long one loses its end
       what AS series, y AS scan, x, y, iif(what = 'S', S, speedup) AS value, ws.w AS label_x, ks.k AS label_y, NULL AS ridge, NULL AS ridge_rows,
       iif(what = 'speedup', doubtful, 0) AS doubtful, point
FROM panels JOIN (SELECT 'S' AS what UNION ALL SELECT 'speedup') JOIN ks JOIN ws
LEFT JOIN at USING (model, dataset, temperature, strategy, k, w)
WHERE what = 'S' OR timed > 0
ORDER BY model, dataset, temperature, what DESC, strategy, y, x;
