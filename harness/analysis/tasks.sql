-- Numbers of run ?1 by category of its data.
SELECT model, dataset, task, point, method, prompts, S, S_low, S_high, acceptance, acceptance_low, acceptance_high, speedup,
       speedup_low, speedup_high, doubt, doubtful
FROM task_matrix WHERE run_id = ?1 ORDER BY model, dataset, task, point
