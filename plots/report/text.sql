SELECT number AS point, model, dataset, label AS method, metric, outputs, value
FROM result JOIN point_score USING (point_id) WHERE run_id = ?1
ORDER BY model, dataset, number, metric;
