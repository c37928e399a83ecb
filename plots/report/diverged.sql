SELECT point.number AS point, label AS method, dataset.name AS dataset, coalesce(prompt.name, prompt.number) AS prompt, turn, pass,
       divergence.position AS "at token", wanted, got, margin
FROM point JOIN sample ON point_id = point.id JOIN divergence ON sample_id = sample.id JOIN prompt ON prompt.id = prompt_id
JOIN dataset ON dataset.id = prompt.dataset_id
WHERE run_id = ?1
ORDER BY point.number, prompt.number, turn, pass LIMIT 1000;
