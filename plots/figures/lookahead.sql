-- S over W as measured.
WITH at AS (
    SELECT result.*, w.value AS W, n.value AS N, g.value AS G, iif(b.value = 'drop', ', mode reference', '') AS mode,
           min(g.value = w.value) OVER (PARTITION BY model, dataset, temperature, n.value) AS alike
    FROM result
    JOIN point_param AS w ON w.point_id = result.point_id AND w.section = 'method' AND w.name = 'W'
    JOIN point_param AS n ON n.point_id = result.point_id AND n.section = 'method' AND n.name = 'N'
    JOIN point_param AS g ON g.point_id = result.point_id AND g.section = 'method' AND g.name = 'G'
    LEFT JOIN point_param AS b ON b.point_id = result.point_id AND b.section = 'method' AND b.name = 'bonus'
    WHERE run_id = ?1 AND method = 'lookahead' AND S IS NOT NULL)
SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END || mode AS panel,
       'N=' || N || iif(alike, ' G=W', ' G=' || G) AS series, W, S, S_low AS low, S_high AS high, number AS point
FROM at ORDER BY model, dataset, temperature, panel, N, iif(alike, 0, G), W, number;
