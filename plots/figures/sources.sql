-- Of each source of the fastest setting of a method that has several: how long the match was where it won, and the rank
-- of the row that had it, as shares of the steps that it won; and how many rows of a step it had, as shares of the steps.
-- What none of them had is a share of 0, not a gap that a line would cross.
WITH RECURSIVE setting AS (
    SELECT *, row_number() OVER (PARTITION BY model, dataset, temperature, method ORDER BY speedup DESC NULLS LAST, number) AS place
    FROM result WHERE run_id = ?1 AND point_id IN (SELECT point_id FROM point_source GROUP BY point_id HAVING count(*) > 1)),
best AS MATERIALIZED (SELECT * FROM setting WHERE place = 1),
ranks AS MATERIALIZED (
    SELECT point_id, source.name AS source, length, rank, sum(q.steps) AS steps
    FROM best JOIN sample USING (point_id) JOIN sample_rank AS q ON q.sample_id = sample.id JOIN source ON source.id = source_id
    WHERE length > 0 GROUP BY point_id, source_id, length, rank),
won AS (SELECT point_id, source, sum(steps) AS steps FROM ranks GROUP BY point_id, source),
allotted AS MATERIALIZED (
    SELECT point_id, source.name AS source, x, sum(steps) AS steps FROM (
        SELECT point_id, source_id, q.rows AS x, count(*) AS steps
        FROM best JOIN sample USING (point_id) CROSS JOIN step_source AS q ON q.sample_id = sample.id
        GROUP BY sample.id, source_id, q.rows)
    JOIN source ON source.id = source_id GROUP BY point_id, source_id, x),
part AS (
    SELECT point_id, 1 AS what, source, length AS x, 1.0 * sum(ranks.steps) / won.steps AS share
    FROM ranks JOIN won USING (point_id, source) GROUP BY point_id, source, length
    UNION ALL
    SELECT point_id, 2, source, rank, 1.0 * sum(ranks.steps) / won.steps
    FROM ranks JOIN won USING (point_id, source) GROUP BY point_id, source, rank
    UNION ALL
    SELECT point_id, 3, source, x, 1.0 * allotted.steps / best.steps FROM allotted JOIN best USING (point_id)
    UNION ALL -- steps in which it had none
    SELECT point_id, 3, source, 0, 1 - 1.0 * sum(allotted.steps) / best.steps FROM allotted JOIN best USING (point_id)
    GROUP BY point_id, source HAVING sum(allotted.steps) < best.steps),
place(point_id, what, source, x, last) AS ( -- lengths and ranks from 1, rows from 0
    SELECT point_id, what, source, what < 3, max(x) FROM part GROUP BY point_id, what, source
    UNION ALL SELECT point_id, what, source, x + 1, last FROM place WHERE x < last)
SELECT CASE what WHEN 1 THEN 'length: ' WHEN 2 THEN 'rank: ' ELSE 'rows: ' END || dataset || ', ' || label || ', ' || model AS panel,
       source AS series, x, coalesce(share, 0) AS share, NULL AS low, NULL AS high
FROM best JOIN place USING (point_id) LEFT JOIN part USING (point_id, what, source, x)
ORDER BY model, dataset, temperature, method, what, source, x;
