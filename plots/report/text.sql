-- Points whose texts are the baseline's have its scores: one row says them for all of these points.
WITH scored AS (
    SELECT *, iif(base_id IS NOT NULL AND temperature = 0 AND coalesce(diverged, 0) = 0
                  AND (SELECT kind FROM run WHERE id = ?1) <> 'import', base_id, point_id) AS text_of
    FROM result JOIN point_score USING (point_id) WHERE run_id = ?1)
SELECT min(number) AS point, model, dataset,
       iif(count(DISTINCT point_id) = 1, label,
           (SELECT label FROM point WHERE id = text_of) || ', and ' || (count(DISTINCT point_id) - 1) || ' with the same texts') AS method,
       outputs, max(value) FILTER (WHERE metric = 'rouge1') AS "ROUGE-1",
       max(value) FILTER (WHERE metric = 'rouge2') AS "ROUGE-2", max(value) FILTER (WHERE metric = 'rougeL') AS "ROUGE-L"
FROM scored GROUP BY model, dataset, text_of
ORDER BY model, dataset, point;
