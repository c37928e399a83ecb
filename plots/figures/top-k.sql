SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END AS panel,
       t.value || iif(t.value = 'unigram', coalesce(' by ' || o.value, ''), '') || ', w=' || w.value AS series, k.value AS k, S, S_low AS low, S_high AS high, number AS point
FROM result
JOIN point_param AS k ON k.point_id = result.point_id AND k.section = 'method' AND k.name = 'k'
JOIN point_param AS w ON w.point_id = result.point_id AND w.section = 'method' AND w.name = 'w'
JOIN point_param AS t ON t.point_id = result.point_id AND t.section = 'method' AND t.name = 'strategy'
LEFT JOIN point_param AS o ON o.point_id = result.point_id AND o.section = 'method' AND o.name = 'order'
WHERE run_id = ?1 AND method = 'ngrammys' AND S IS NOT NULL
ORDER BY model, dataset, temperature, t.value, o.value, w.value, k.value, number;
