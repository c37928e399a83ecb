-- Steps of the surface of run ?1, in the order that priced_beside reads: of undisturbed machines, and of models without experts.
SELECT q.id, model_id, median_ns, k, w, q.context, layout, rows, coalesce(sequences, 1), q.cache = 'copied', layers,
       json_extract(shape, '$.width'), json_extract(shape, '$.heads'), json_extract(shape, '$.kv_heads'), json_extract(shape, '$.head_dim'),
       json_extract(shape, '$.mlp_width'), json_extract(shape, '$.vocab'), json_extract(shape, '$.window'),
       CASE WHEN dtype GLOB 'Q[0-9]*' THEN CAST(substr(dtype, 2) AS INTEGER) WHEN dtype = 'F32' THEN 32 ELSE 16 END,
       iif(gpu IS NULL, bandwidth, NULL), iif(gpu IS NULL, peak, NULL), cores
FROM attempt JOIN surface AS q ON q.attempt_id = attempt.id JOIN model ON model.id = model_id JOIN environment ON environment.id = environment_id
WHERE run_id = ?1 AND q.kind = 'step' AND k IS NOT NULL AND median_ns > 0 AND json_valid(shape) AND json_extract(shape, '$.experts') IS NULL
ORDER BY model_id, q.context, q.id
