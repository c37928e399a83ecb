-- Every sample; of a long run one in n, and all that something disturbed. mark: 1 disturbed, 2 throttled (flag 2).
WITH numbered AS (
    SELECT point.number AS point, model_id, point.dataset_id, method, coalesce(disturbed.flags, 0) AS flags, 1e-6 * decode_ns / nullif(tokens, 0) AS time,
           row_number() OVER (PARTITION BY model_id, point.dataset_id ORDER BY started, sample.id) AS number,
           1 + count(*) OVER (PARTITION BY model_id, point.dataset_id) / 2000 AS stride
    FROM point JOIN sample ON sample.point_id = point.id LEFT JOIN disturbed ON sample_id = sample.id WHERE run_id = ?1)
SELECT model.name || ', ' || dataset.name || iif(stride > 1, ', one in ' || stride, '') AS panel,
       method AS series, method AS colour, number, time, CASE WHEN flags & 2 THEN 2 WHEN flags THEN 1 ELSE 0 END AS mark, point
FROM numbered JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
WHERE time IS NOT NULL AND (number % stride = 0 OR flags)
ORDER BY model_id, dataset_id, method = 'autoregressive' DESC, method, number;
