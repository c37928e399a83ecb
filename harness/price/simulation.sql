-- Points of a run that are priced, and what another run measured of them.

-- name: points
SELECT p.id, p.number, coalesce(baseline_id, 0), label,
       model.name || ', ' || dataset.name || iif(plain.value = 'plain', ', plain attention', '') ||
           iif(batch.value > 1, ', batch ' || batch.value, ''),
       method
FROM point AS p JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
LEFT JOIN point_param AS plain ON plain.point_id = p.id AND plain.section = 'hardware' AND plain.name = 'attention'
LEFT JOIN (SELECT point_id, CAST(value AS INTEGER) AS value FROM point_param WHERE section = 'hardware' AND name = 'batch')
    AS batch ON batch.point_id = p.id
WHERE run_id = ?1 AND EXISTS (SELECT 1 FROM sample WHERE point_id = p.id)
ORDER BY model_id, dataset_id, plain.value = 'plain', batch.value, temperature, baseline_id IS NOT NULL, p.number

-- name: this
SELECT decoder, dataset.name, temperature FROM point JOIN dataset ON dataset.id = dataset_id WHERE point.id = ?1

-- name: other
SELECT 1e-9 * s.decode_ns / s.steps, s.S, u.speedup, doubtful, doubt
FROM point AS p JOIN dataset AS d ON d.id = dataset_id JOIN point_doubt AS q ON q.point_id = p.id
JOIN point_sums AS s ON s.point_id = p.id LEFT JOIN point_speedup AS u ON u.point_id = p.id
WHERE run_id = ?1 AND decoder = ?2 AND d.name = ?3 AND temperature = ?4 AND s.steps > 0
    AND ?5 = max(1, coalesce((SELECT CAST(value AS INTEGER) FROM point_param
                              WHERE point_id = p.id AND section = 'hardware' AND name = 'batch'), 1))

-- name: step
-- W, N, G and the mean context of a Lookahead point without a preset.
SELECT W, N, G, (SELECT avg(context) FROM sample AS s JOIN step ON step.sample_id = s.id WHERE s.point_id = q.point_id)
FROM lookahead_point AS q WHERE q.point_id = ?1 AND preset = 'none'
