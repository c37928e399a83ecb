SELECT number AS point, model, dataset, label AS method,
       CASE WHEN skipped IS NOT NULL THEN 'skipped' WHEN failures > 0 THEN 'failed' ELSE 'not measured yet' END AS state,
       coalesce(skipped, (SELECT message FROM failure WHERE failure.point_id = result.point_id ORDER BY id DESC LIMIT 1)) AS why
FROM result WHERE run_id = ?1 AND (samples IS NULL OR failures > 0)
ORDER BY number;
