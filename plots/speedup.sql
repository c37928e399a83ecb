-- The fastest setting of each method; of a method that nothing was measured of, why.
WITH setting AS (
    SELECT *, row_number() OVER (PARTITION BY model, dataset, temperature, method ORDER BY speedup DESC NULLS LAST, number) AS place
    FROM result WHERE run_id = ?1)
SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END AS panel,
       method AS series,
       row_number() OVER (PARTITION BY model, dataset, temperature ORDER BY speedup DESC NULLS LAST, number) AS row,
       speedup, speedup_low AS low, speedup_high AS high, label AS label_bar,
       CASE WHEN speedup IS NOT NULL THEN iif(diverged > 0 AND temperature = 0, '(another text)', NULL)
            WHEN skipped IS NOT NULL THEN 'skipped: ' || substr(skipped, 1, 60)
            ELSE coalesce((SELECT 'failed: ' || substr(message, 1, 60) FROM failure WHERE failure.point_id = setting.point_id
                           ORDER BY id DESC LIMIT 1), 'not measured') END AS label_why
FROM setting WHERE place = 1
ORDER BY model, dataset, temperature, row;
