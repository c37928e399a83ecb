-- By category of data of several tasks. Here, and in `outpace show --tasks` and `outpace table tasks`, which need these columns.
SELECT model, dataset, task, point, method, prompts, measured(S, NULL, NULL) AS S,
       measured(acceptance, NULL, NULL) AS acceptance, measured(speedup, NULL, NULL) AS speedup, coalesce(doubt, '') AS disturbed
FROM task_matrix WHERE run_id = ?1
ORDER BY model, dataset, task, point;
