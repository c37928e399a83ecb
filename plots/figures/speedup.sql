-- The fastest setting of each method; of a method that nothing was measured of, why. published: the speedup that the papers
-- which this run is for printed of that setting (?2); their machines are others. A dataset that no method has come to is left out.
WITH printed AS (
    SELECT point.id AS point_id, max(CAST(json_extract(r.value, '$.published') AS REAL)) AS published
    FROM json_each(?2, '$.tables') AS t, json_each(t.value, '$.rows') AS r
    JOIN point ON point.run_id = ?1 AND point.number = json_extract(r.value, '$.point')
    WHERE json_extract(r.value, '$.computed_as') GLOB 'speedup*' AND json_extract(r.value, '$.published') GLOB '[0-9]*'
          AND point.method <> 'autoregressive'
    GROUP BY point.id),
setting AS (
    SELECT *, row_number() OVER (PARTITION BY model, dataset, temperature, method ORDER BY speedup DESC NULLS LAST, number) AS place,
           max(samples > 0 OR skipped IS NOT NULL OR failures > 0) OVER (PARTITION BY model, dataset, temperature) AS begun
    FROM result LEFT JOIN point_doubt USING (point_id) WHERE run_id = ?1)
SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END AS panel,
       method AS series, method AS colour,
       row_number() OVER (PARTITION BY model, dataset, temperature ORDER BY speedup DESC NULLS LAST, number) AS row,
       speedup, speedup_low AS low, speedup_high AS high, label AS label_bar, method AS label_method,
       (SELECT published FROM printed WHERE printed.point_id = setting.point_id) AS published,
       CASE WHEN speedup IS NOT NULL THEN iif(diverged > 0 AND temperature = 0, '(another text)', NULL)
            WHEN skipped IS NOT NULL THEN 'skipped: ' || substr(skipped, 1, 60)
            WHEN samples > 0 AND base_id IS NULL THEN 'no baseline to divide by'
            ELSE coalesce((SELECT 'failed: ' || substr(message, 1, 60) FROM failure WHERE failure.point_id = setting.point_id
                           ORDER BY id DESC LIMIT 1), 'not measured') END AS label_why, doubtful, number AS point
FROM setting WHERE place = 1 AND begun
ORDER BY model, dataset, temperature, row;
