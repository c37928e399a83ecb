-- Intervals stand behind their values, in one text: it sorts by the value. *: the times are in doubt.
SELECT label AS method, measured(S, S_low, S_high) AS S,
       coalesce(measured(speedup, speedup_low, speedup_high) || iif(doubtful, ' *', ''), '-') AS speedup,
       same_text AS "same text",
       model, dataset, prompts, number AS point, rows_per_step AS "rows a step",
       coalesce((SELECT measured(value, low, high) FROM estimate WHERE point_id = result.point_id AND metric = 'tokens_per_s'),
                measured(tokens_per_s, NULL, NULL)) AS "tokens/s", speedup_e2e AS "with prefill", speedup_specbench AS "as Spec-Bench",
       speedup_same_path AS "over own settings", S_reference AS "S with prefill", passes, printf('%g', temperature) AS temperature
FROM result LEFT JOIN point_doubt USING (point_id) WHERE run_id = ?1 AND result.samples > 0
ORDER BY model, dataset, result.temperature, baseline_id IS NOT NULL, result.speedup DESC;
