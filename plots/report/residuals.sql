-- What the fitted law says of each point (?2), and how far off it is.
SELECT model.name AS model, dataset.name AS dataset, json_extract(p.value, '$.N') AS N, json_extract(p.value, '$.W') AS W,
       json_extract(p.value, '$.G') AS G, json_extract(p.value, '$.S') AS S,
       measured(json_extract(p.value, '$.predicted'), json_extract(p.value, '$.low'),
                json_extract(p.value, '$.high')) AS law,
       json_extract(p.value, '$.predicted') - json_extract(p.value, '$.S') AS error,
       iif(json_extract(p.value, '$.fitted'), 'fitted', 'predicted') AS point
FROM json_each(?2, '$.fits') AS f
JOIN point ON point.id = json_extract(f.value, '$.points_of[0]') JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id,
json_each(f.value, '$.fit.predictions') AS p
WHERE run_id = ?1
ORDER BY model.name, dataset.name, f."key", N, W, G;
