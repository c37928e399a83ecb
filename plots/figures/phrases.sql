SELECT iif(what = 'S', 'S: ', 'speedup: ') || model || ', ' || dataset AS panel, 'gamma=' || gamma.value || ', beta=' || beta.value AS series,
       k.value AS K, iif(what = 'S', S, speedup) AS value, iif(what = 'S', S_low, speedup_low) AS low, iif(what = 'S', S_high, speedup_high) AS high,
       iif(what = 'speedup', doubtful, 0) AS doubtful, number AS point
FROM result JOIN point_doubt USING (point_id)
JOIN (SELECT 'S' AS what UNION ALL SELECT 'speedup')
JOIN point_param AS k ON k.point_id = result.point_id AND k.section = 'method' AND k.name = 'K'
JOIN point_param AS gamma ON gamma.point_id = result.point_id AND gamma.section = 'method' AND gamma.name = 'gamma'
JOIN point_param AS beta ON beta.point_id = result.point_id AND beta.section = 'method' AND beta.name = 'beta'
WHERE run_id = ?1 AND method = 'ouroboros' AND S IS NOT NULL AND temperature = 0 AND (what = 'S' OR speedup IS NOT NULL)
ORDER BY model, dataset, what, gamma.value, beta.value, k.value, number;
