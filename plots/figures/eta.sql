SELECT iif(what = 'S', 'S, tokens a step: ', 'speedup: ') || model || ', ' || dataset AS panel, 'gamma=' || gamma.value || CASE WHEN l.value > 0 THEN ', exit layer ' || l.value ELSE '' END AS series,
       eta.value AS eta, iif(what = 'S', S, speedup) AS value, iif(what = 'S', S_low, speedup_low) AS low,
       iif(what = 'S', S_high, speedup_high) AS high,
       what = 'speedup' AND doubtful AS doubtful
FROM result JOIN point_doubt USING (point_id)
JOIN (SELECT 'S' AS what UNION ALL SELECT 'speedup')
JOIN point_param AS l ON l.point_id = result.point_id AND l.section = 'method' AND l.name = 'exit_layer'
JOIN point_param AS gamma ON gamma.point_id = result.point_id AND gamma.section = 'method' AND gamma.name = 'gamma'
JOIN point_param AS eta ON eta.point_id = result.point_id AND eta.section = 'method' AND eta.name = 'eta'
WHERE run_id = ?1 AND method = 'kangaroo' AND S IS NOT NULL AND temperature = 0 AND (what = 'S' OR speedup IS NOT NULL)
ORDER BY model, dataset, what, l.value, gamma.value, eta.value, number;
