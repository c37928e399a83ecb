-- Intervals stand behind their values, in one text: it sorts by the value.
SELECT number AS point, model, dataset, label AS method,
       iif(speedup IS NULL, '-', printf('%.3f', speedup)) || iif(speedup_low IS NULL, '', printf(' [%.3f, %.3f]', speedup_low, speedup_high)) AS speedup,
       CASE WHEN base_id = point_id THEN 'baseline' WHEN diverged > 0 AND temperature = 0 THEN 'NO: ' || diverged || ' of ' || samples || ' differ'
            WHEN temperature > 0 THEN 'sampled' WHEN (SELECT kind FROM run WHERE id = ?1) = 'import' THEN 'not compared' ELSE 'yes' END AS "same text",
       printf('%.3f', S) || iif(S_low IS NULL, '', printf(' [%.3f, %.3f]', S_low, S_high)) AS S,
       tokens_per_s AS "tokens/s", speedup_e2e AS "with prefill", speedup_specbench AS "as Spec-Bench",
       speedup_same_path AS "over same path", S_reference AS "S reference", rows_per_step AS "rows a step",
       prompts, passes, temperature
FROM result WHERE run_id = ?1 AND samples > 0
ORDER BY model, dataset, temperature, baseline_id IS NOT NULL, result.speedup DESC;
