-- A step of the fastest setting of each method, of those whose parts are known. Other: what the wall clock has beside them.
WITH setting AS (
    SELECT *, row_number() OVER (PARTITION BY model, dataset, temperature, method ORDER BY speedup DESC NULLS LAST, number) AS place
    FROM result JOIN point_doubt USING (point_id) WHERE run_id = ?1 AND steps > 0)
SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END AS panel,
       'parts' AS series,
       row_number() OVER (PARTITION BY model, dataset, temperature ORDER BY speedup DESC NULLS LAST, number) AS row,
       1e-6 * propose_ns / s.steps AS propose, 1e-6 * forward_ns / s.steps AS forward, 1e-6 * verify_ns / s.steps AS verify,
       1e-6 * observe_ns / s.steps AS observe,
       1e-6 * max(decode_ns - propose_ns - forward_ns - verify_ns - observe_ns, 0) / s.steps AS other, label AS label_bar, method AS label_method, doubtful, number AS point
FROM setting JOIN point_sums AS s USING (point_id) WHERE place = 1 AND propose_ns + forward_ns + verify_ns + observe_ns > 0
ORDER BY model, dataset, temperature, row;
