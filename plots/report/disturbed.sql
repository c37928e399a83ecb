-- At most a thousand of them.
SELECT point.number AS point, label AS method, dataset.name AS dataset, coalesce(prompt.name, prompt.number) AS prompt, turn, pass,
       flag, meaning
FROM point JOIN flagged ON flagged.point_id = point.id JOIN prompt ON prompt.id = prompt_id JOIN dataset ON dataset.id = prompt.dataset_id
WHERE run_id = ?1
ORDER BY point.number, prompt.number, turn, pass, flag LIMIT 1000;
