SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END AS panel,
       'N=' || n.value || ' G=' || g.value AS series, w.value AS W, S, S_low AS low, S_high AS high
FROM result
JOIN point_param AS w ON w.point_id = result.point_id AND w.section = 'method' AND w.name = 'W'
JOIN point_param AS n ON n.point_id = result.point_id AND n.section = 'method' AND n.name = 'N'
JOIN point_param AS g ON g.point_id = result.point_id AND g.section = 'method' AND g.name = 'G'
WHERE run_id = ?1 AND method = 'lookahead' AND S IS NOT NULL
ORDER BY model, dataset, temperature, n.value, g.value, w.value, number;
