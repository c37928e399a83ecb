-- The best point of each model and dataset, by how much, and whether its text is the baseline's; and where nobody knows by
-- how much. kind: finding (a method is faster, of which nothing makes doubt), open, or bad (it is not lossless).
WITH setting AS (
    SELECT *, row_number() OVER (PARTITION BY model, dataset, temperature
                                 ORDER BY diverged > 0 AND temperature = 0, speedup DESC NULLS LAST, number) AS place
    FROM result JOIN point_doubt USING (point_id)
    JOIN (SELECT point.id AS point_id, json_extract(shape, '$.quantised') AS quantised
          FROM point JOIN model ON model.id = model_id) USING (point_id)
    WHERE run_id = ?1 AND baseline_id IS NOT NULL AND speedup IS NOT NULL),
lost AS (
    SELECT model, dataset, temperature, count(*) AS points FROM setting WHERE diverged > 0 AND temperature = 0
    GROUP BY model, dataset, temperature)
SELECT * FROM (SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END ||
       coalesce(' (stand-in: ' || stand_in || ')', '') || coalesce(' (quantised: ' || quantised || ')', '') AS about,
       label || ': S = ' || measured(S, S_low, S_high) || ' tokens a step over ' || prompts || iif(prompts = 1, ' prompt', ' prompts') ||
       iif(above_S, ', and it seems ', ', and ') || measured(speedup, speedup_low, speedup_high) || iif(doubtful, ' times*', ' times') || ' as fast as its baseline' ||
       CASE WHEN few IS NOT NULL THEN ': too few to say, ' || few
            WHEN above_S THEN ': nothing can be said'
            WHEN speedup > 1 AND coalesce(speedup_low, speedup) > 1 THEN ', the fastest'
            WHEN speedup > 1 OR speedup_high > 1 THEN ', the nearest: no method is surely faster'
            ELSE ', the nearest: no method is faster' END || '. ' ||
       coalesce('In doubt: ' || reason || '. ', '') ||
       CASE WHEN temperature > 0 THEN 'Its text is sampled: ''outpace verify'' tests that.'
            WHEN diverged > 0 THEN 'NOT lossless: ' || diverged || ' of its ' || samples || ' texts are not the baseline''s.'
            WHEN (SELECT kind FROM run WHERE id = ?1) = 'import' THEN 'Whether its texts are the baseline''s was not compared.'
            ELSE 'Lossless here: each of its ' || samples || ' texts is the baseline''s.' END ||
       coalesce(' NOT lossless here: ' || points || iif(points = 1, ' other setting, which is', ' other settings, which are') || ' left out.', '') AS says,
       CASE WHEN diverged > 0 AND temperature = 0 THEN 'bad'
            WHEN few IS NULL AND NOT doubtful AND coalesce(speedup_low, 0) > 1 THEN 'finding' ELSE 'open' END AS kind
FROM setting LEFT JOIN lost USING (model, dataset, temperature)
WHERE place = 1
ORDER BY model, dataset, temperature)
UNION ALL
SELECT * FROM (SELECT model || ', ' || dataset AS about, group_concat(label, ', ') || ': no speedup is known, as no autoregressive baseline was '
       || 'imported with it (''outpace store import'' with --baseline FILE, or with its lines in the same file).' AS says, 'open' AS kind
FROM result WHERE run_id = ?1 AND samples > 0 AND base_id IS NULL
GROUP BY model, dataset ORDER BY model, dataset);
