-- Kangaroo over its exit layer: the parameter, or where that is left to the adapter, the layer that its first step left by.
-- The mean over sub-benchmarks, as Spec-Bench counts. Adapters of one target are one panel: models of the same weights, by all their names.
WITH target AS (
    SELECT model.id AS model_id, min(model.id) OVER same AS first, group_concat(model.name, ', ') OVER same AS target
    FROM model LEFT JOIN content ON content.run_id = ?1 AND content.kind = 'weights' AND content.name = model.name
    WHERE model.id IN (SELECT model_id FROM point WHERE run_id = ?1)
    WINDOW same AS (PARTITION BY coalesce(content.hash, model.hash) ORDER BY model.id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)),
at AS (
    SELECT first, target, gamma.value AS gamma, eta.value AS eta, part.part, part.S_reference AS S, part.speedup, doubtful,
           coalesce(nullif(l.value, 0), (SELECT min(b) FROM step_pass WHERE model = 0 AND a = 0 AND b > 0
                                         AND sample_id = (SELECT min(id) FROM sample WHERE point_id = point.id))) AS layer
    FROM result JOIN point_doubt USING (point_id) JOIN point ON point.id = result.point_id JOIN target USING (model_id)
    JOIN part_specbench AS part ON part.point_id = result.point_id
    JOIN point_param AS l ON l.point_id = result.point_id AND l.section = 'method' AND l.name = 'exit_layer'
    JOIN point_param AS gamma ON gamma.point_id = result.point_id AND gamma.section = 'method' AND gamma.name = 'gamma'
    JOIN point_param AS eta ON eta.point_id = result.point_id AND eta.section = 'method' AND eta.name = 'eta'
    WHERE result.run_id = ?1 AND result.method = 'kangaroo' AND result.S IS NOT NULL AND result.temperature = 0),
mean AS (
    SELECT first, target, gamma, eta, layer, avg(S) AS S, avg(speedup) AS speedup, count(DISTINCT part) AS parts, min(part) AS part, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful
    FROM at WHERE layer IS NOT NULL GROUP BY first, target, gamma, eta, layer)
SELECT iif(what = 'S', 'compression rate: ', 'speedup: ') || iif(parts = 1, part, 'mean of ' || parts || ' sub-benchmarks') || '; ' || target AS panel,
       'gamma=' || gamma || ', eta=' || eta AS series,
       layer, iif(what = 'S', S, speedup) AS value, NULL AS low, NULL AS high, iif(what = 'speedup', doubtful, 0) AS doubtful
FROM mean JOIN (SELECT 'S' AS what UNION ALL SELECT 'speedup')
WHERE what = 'S' OR speedup IS NOT NULL
ORDER BY first, what, gamma, eta, layer;
