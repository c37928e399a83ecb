-- Disturbed: an outlier, throttled, clocks that changed, other processes (flags 1 to 8).
SELECT model.name || ', ' || dataset.name AS panel, method AS series,
       row_number() OVER (PARTITION BY model_id, point.dataset_id ORDER BY started, sample.id) AS number,
       1e-6 * decode_ns / nullif(tokens, 0) AS time, flags & 15 <> 0 AS disturbed
FROM point JOIN sample ON point_id = point.id JOIN model ON model.id = model_id JOIN dataset ON dataset.id = point.dataset_id
WHERE run_id = ?1
ORDER BY model_id, point.dataset_id, method = 'autoregressive' DESC, method, number;
