-- CTAR(w) of the fastest setting of each method that drafts.
WITH setting AS (
    SELECT *, row_number() OVER (PARTITION BY model, dataset, temperature, method ORDER BY speedup DESC NULLS LAST, number) AS place
    FROM result WHERE run_id = ?1)
SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END AS panel,
       label AS series, method AS colour, w, ctar, NULL AS low, NULL AS high
FROM setting JOIN ctar USING (point_id) WHERE place = 1
ORDER BY model, dataset, temperature, method, w;
