-- The points of a run (?1) that have samples, those that differ in their seed alone after each other: a group is told
-- by its first number. Of equal points (baselines of methods that keep state) the first counts. What ran it is the machine of the run's last start.
WITH q AS (
    SELECT p.*,
           (SELECT group_concat(name || '=' || value) FROM point_param
            WHERE point_id = p.id AND section <> 'method' AND name <> 'seed') AS settings,
           (SELECT value FROM point_param WHERE point_id = p.id AND name = 'compute') AS compute,
           (SELECT value FROM point_param WHERE point_id = p.id AND name = 'device') AS device,
           (SELECT count(DISTINCT prompt.number) FROM sample JOIN prompt ON prompt.id = prompt_id
            WHERE point_id = p.id) AS prompts,
           (SELECT group_concat(subtask || '=' || n) FROM (
                SELECT subtask, count(DISTINCT prompt.number) AS n
                FROM sample JOIN prompt ON prompt.id = sample.prompt_id JOIN subtask ON subtask.prompt_id = prompt.id
                WHERE point_id = p.id
                      AND subtask IN ('mt-bench', 'translation', 'summarization', 'qa', 'math_reasoning', 'rag')
                GROUP BY subtask)) AS subtasks
    FROM point AS p WHERE run_id = ?1 AND EXISTS (SELECT 1 FROM sample WHERE point_id = p.id)),
r AS (
    SELECT q.*, row_number() OVER (PARTITION BY model_id, dataset_id, decoder, temperature, settings,
                                   (SELECT value FROM point_param WHERE point_id = q.id AND name = 'seed')
                                   ORDER BY number) AS copy
    FROM q)
SELECT min(number) OVER (PARTITION BY model_id, dataset_id, decoder, temperature, settings) AS first,
       number, r.id, baseline_id, model.name AS model, stand_in,
       CASE compute WHEN 'f32' THEN 'F32' WHEN 'bf16' THEN 'BF16' ELSE dtype END AS dtype,
       CASE WHEN device LIKE 'cuda%' OR device = 'auto' AND gpu IS NOT NULL THEN gpu
            WHEN device = 'null' THEN 'the null device' ELSE cpu END AS device,
       dataset.name AS dataset, method, decoder, label, settings, subtasks, temperature, prompts, doubt,
       fit.fit_id AS fit, fit.text AS fitted
FROM r JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
LEFT JOIN point_doubt ON point_doubt.point_id = r.id
LEFT JOIN environment
    ON environment.id = (SELECT environment_id FROM attempt WHERE run_id = ?1 ORDER BY id DESC LIMIT 1)
LEFT JOIN (
    SELECT point_id, fit_id, max(made), printf('%d settings of lookahead, %s: law %s, bonus %s%s', settings, replace(estimator, '_', ' '), law, bonus,
           iif(output, printf(', filling in outputs of %g tokens', output), '')) AS text
    FROM fitted JOIN fit_point USING (fit_id) WHERE run_id = ?1 AND law = 'paper' AND NOT other_points GROUP BY point_id) AS fit
    ON fit.point_id = r.id
WHERE copy = 1
ORDER BY first, number
