-- Speedup as priced (?2) over the rows of a step, of a model and of another beside it: the stored steps are the same, so
-- tokens a step are too. rows: the mean of the point's steps, which may run fewer than the setting allows.
WITH shape AS (
    SELECT 1 AS place, json_extract(?2, '$.prediction.shape') AS name, json_extract(?2, '$.prediction.points') AS points
    UNION ALL SELECT 2, json_extract(?2, '$.beside.shape'), json_extract(?2, '$.beside.points')),
ran AS (
    SELECT point.number, point.method, avg(step.rows) AS rows
    FROM point JOIN sample ON sample.point_id = point.id JOIN step ON step.sample_id = sample.id
    WHERE run_id = ?1 AND method <> 'autoregressive' GROUP BY point.id
    HAVING count(step.rows))
SELECT method || ': ' || json_extract(p.value, '$.of') AS panel, shape.name AS series, rows,
       json_extract(p.value, '$.speedup') AS speedup, json_extract(p.value, '$.speedup_low') AS low,
       json_extract(p.value, '$.speedup_high') AS high
FROM shape JOIN json_each(points) AS p JOIN ran ON ran.number = json_extract(p.value, '$.point')
WHERE json_extract(p.value, '$.speedup') IS NOT NULL
ORDER BY json_extract(p.value, '$.of'), method, place, rows;
