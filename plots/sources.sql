-- Of each source of the fastest setting of a method that has several: how long the match was where it won, and the
-- rank of the row that had it, as shares of the steps that it won.
WITH setting AS (
    SELECT *, row_number() OVER (PARTITION BY model, dataset, temperature, method ORDER BY speedup DESC NULLS LAST, number) AS place
    FROM result WHERE run_id = ?1),
won AS (SELECT point_id, source, sum(steps) AS steps FROM point_rank WHERE length > 0 GROUP BY point_id, source)
SELECT iif(what = 1, 'length of the match: ', 'rank of its row: ') || model || ', ' || dataset || ', ' || label AS panel,
       q.source AS series, iif(what = 1, q.length, q.rank) AS x, 1.0 * sum(q.steps) / won.steps AS share, NULL AS low, NULL AS high
FROM setting JOIN (SELECT 1 AS what UNION ALL SELECT 2) JOIN point_rank AS q USING (point_id)
JOIN won ON won.point_id = setting.point_id AND won.source = q.source
WHERE place = 1 AND q.length > 0 AND method <> 'autoregressive'
GROUP BY setting.point_id, what, q.source, x
ORDER BY model, dataset, temperature, method, what, q.source, x;
