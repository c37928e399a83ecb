-- A row a sample of run ?1, for `store export`.
SELECT point.number AS point, label, dataset.name AS dataset, prompt.number AS prompt, turn, task, sample.*,
       output.tokens AS output_tokens, bytes, repeated, looping
FROM point JOIN sample ON point_id = point.id JOIN prompt ON prompt.id = prompt_id
JOIN dataset ON dataset.id = prompt.dataset_id LEFT JOIN output ON output.id = output_id
WHERE run_id = ?1 ORDER BY 1, pass, prompt.number, turn
