-- Kangaroo over eta: the mean over sub-benchmarks, as Spec-Bench counts: a draft's prefill and its token count in S, conversations
-- in speedup.
WITH at AS (
    SELECT point.model_id, model, gamma.value AS gamma, l.value AS layer, eta.value AS eta, avg(part.S_reference) AS S, avg(part.speedup) AS speedup,
           count(DISTINCT part.part) AS parts, min(part.part) AS part, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful
    FROM result JOIN point_doubt USING (point_id) JOIN point ON point.id = result.point_id
    JOIN part_specbench AS part ON part.point_id = result.point_id
    JOIN point_param AS l ON l.point_id = result.point_id AND l.section = 'method' AND l.name = 'exit_layer'
    JOIN point_param AS gamma ON gamma.point_id = result.point_id AND gamma.section = 'method' AND gamma.name = 'gamma'
    JOIN point_param AS eta ON eta.point_id = result.point_id AND eta.section = 'method' AND eta.name = 'eta'
    WHERE result.run_id = ?1 AND result.method = 'kangaroo' AND result.S IS NOT NULL AND result.temperature = 0
    GROUP BY point.model_id, gamma.value, l.value, eta.value)
SELECT iif(what = 'S', 'compression rate: ', 'speedup: ') || model || ', ' || iif(parts = 1, part, 'mean of ' || parts || ' sub-benchmarks') AS panel,
       'gamma=' || gamma || CASE WHEN layer > 0 THEN ', exit layer ' || layer ELSE '' END AS series,
       eta, iif(what = 'S', S, speedup) AS value, NULL AS low, NULL AS high, iif(what = 'speedup', doubtful, 0) AS doubtful
FROM at JOIN (SELECT 'S' AS what UNION ALL SELECT 'speedup')
WHERE what = 'S' OR speedup IS NOT NULL
ORDER BY model, what, layer, gamma, eta;
