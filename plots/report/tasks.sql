-- By category of data of several tasks, in the report, and in `outpace table tasks` as Markdown and LaTeX. Intervals are behind
-- their values, in one text: it sorts by the value.
SELECT model, dataset, task, point, method, prompts, measured(S, S_low, S_high) AS S,
       measured(acceptance, acceptance_low, acceptance_high) AS acceptance,
       measured(speedup, speedup_low, speedup_high) || iif(doubtful, ' *', '') AS speedup
FROM task_matrix WHERE run_id = ?1
ORDER BY model, dataset, task, point;
