-- How far off S is where a W, or an N, was left out of the fit (?2): the law, and other explanations.
SELECT model.name AS model, dataset.name AS dataset, coalesce(w."key", n."key") AS explanation,
       json_extract(w.value, '$.rms') AS "one W left out", json_extract(n.value, '$.rms') AS "one N left out"
FROM json_each(?2, '$.fits') AS f
JOIN point ON point.id = json_extract(f.value, '$.points_of[0]') JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
JOIN (json_each(f.value, '$.fit.leave_one_W_out')) AS w
LEFT JOIN json_each(f.value, '$.fit.leave_one_N_out') AS n ON n."key" = w."key"
WHERE run_id = ?1 ORDER BY model.name, dataset.name;
