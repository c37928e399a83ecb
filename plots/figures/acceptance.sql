-- The position of a drafted token, from 1, and how often it is accepted: of all steps (joint), and of those that accepted the
-- position before it (conditional). Of the fastest setting of each method that drafts.
WITH setting AS (
    SELECT *, row_number() OVER (PARTITION BY model, dataset, temperature, method ORDER BY speedup DESC NULLS LAST, number) AS place
    FROM result WHERE run_id = ?1),
share AS (
    SELECT *, lag(ctar, 1, 1.0) OVER (PARTITION BY point_id ORDER BY w) AS before
    FROM setting JOIN ctar USING (point_id) WHERE place = 1)
SELECT what || '; ' || model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END AS panel,
       label AS series, method AS colour, w AS position, iif(what = 'joint', ctar, ctar / before) AS share, NULL AS low, NULL AS high
FROM share JOIN (SELECT 'joint' AS what UNION ALL SELECT 'conditional')
WHERE before > 0
ORDER BY model, dataset, temperature, what DESC, method, w;
