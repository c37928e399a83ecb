-- A row a step of run ?1, for `store export`.
SELECT point.number AS point, label, prompt.number AS prompt, turn, pass, step.*
FROM point JOIN sample ON point_id = point.id JOIN prompt ON prompt.id = prompt_id JOIN step ON sample_id = sample.id
WHERE run_id = ?1 ORDER BY 1, pass, prompt.number, turn, step.number
