-- Each point by the rows of its steps: the time of a row, and of a token (token), in ms. Under them what the machine allows at best,
-- with the weights alone (ceiling 1), and a measured surface of the same weights, at the context nearest to the steps' own (ceiling 2).
WITH target AS (
    SELECT id AS model_id, hash, numbers, numbers * (bits + iif(bits < 16, 0.5, 0)) / 8 AS bytes
    FROM (SELECT id, hash, layers * width * (2.0 * heads * head_dim + 2.0 * kv_heads * head_dim + 3.0 * mlp_width) + 1.0 * vocab * width AS numbers,
                 CASE WHEN dtype GLOB 'Q[0-9]*' THEN CAST(substr(dtype, 2) AS INTEGER) WHEN dtype = 'F32' THEN 32 ELSE 16 END AS bits
          FROM (SELECT *, json_extract(shape, '$.width') AS width, json_extract(shape, '$.heads') AS heads,
                       json_extract(shape, '$.kv_heads') AS kv_heads, json_extract(shape, '$.head_dim') AS head_dim,
                       json_extract(shape, '$.mlp_width') AS mlp_width, json_extract(shape, '$.vocab') AS vocab
                FROM model WHERE json_valid(shape) AND json_extract(shape, '$.experts') IS NULL))),
at AS MATERIALIZED (
    SELECT model_id, dataset, r.model || ', ' || dataset || iif(r.temperature > 0, ', temperature ' || r.temperature, '') AS panel, r.method, r.number,
           s.rows_per_step AS rows, 1e-6 * decode_ns / r.steps AS ms, r.S, doubtful
    FROM result AS r JOIN point ON point.id = r.point_id JOIN point_sums AS s ON s.point_id = r.point_id JOIN point_doubt AS d ON d.point_id = r.point_id
    WHERE r.run_id = ?1 AND r.steps > 0 AND s.rows_per_step > 0 AND decode_ns > 0),
panel AS (
    SELECT panel, model_id, max(rows) AS most, min(rows) AS least FROM at GROUP BY panel, model_id),
own AS (SELECT panel, model_id, (SELECT avg(s.context) FROM sample JOIN step AS s ON s.sample_id = sample.id JOIN point ON point.id = point_id
                                 WHERE run_id = ?1 AND point.model_id = panel.model_id) AS context FROM panel),
surfaces AS (
    SELECT panel, q.attempt_id, q.model_id, q.context, attempt.run_id,
           row_number() OVER (PARTITION BY panel ORDER BY attempt.id DESC, abs(q.context - own.context)) AS place
    FROM own JOIN target USING (model_id)
    JOIN model AS m ON m.hash IN (SELECT target.hash UNION SELECT hash FROM content WHERE run_id = ?1 AND kind = 'weights')
    JOIN surface AS q ON q.model_id = m.id AND q.kind = 'step' AND coalesce(q.sequences, 1) = 1 JOIN attempt ON attempt.id = q.attempt_id),
machine AS ( -- its ceilings as this run measured them, or that of the surface
    SELECT panel, bandwidth, peak FROM (
        SELECT panel, coalesce(nullif(gpu_bandwidth, 0), bandwidth) AS bandwidth, coalesce(nullif(gpu_peak, 0), peak) AS peak,
               row_number() OVER (PARTITION BY panel ORDER BY attempt.run_id = ?1 DESC, attempt.id DESC) AS first
        FROM panel LEFT JOIN surfaces USING (panel) JOIN attempt ON attempt.run_id = ?1 OR attempt.id = attempt_id
        JOIN environment ON environment.id = environment_id
        WHERE coalesce(place, 1) = 1 AND coalesce(gpu_bandwidth, bandwidth) > 0 AND coalesce(gpu_peak, peak) > 0)
    WHERE first = 1),
floor AS (
    SELECT panel, 'at least, to read ' || printf('%.3g MB at %.3g GB/s and compute at %.3g', 1e-6 * bytes, 1e-9 * bandwidth, 1e-9 * peak) || ' GFLOP/s' AS series,
           bytes / bandwidth AS read, 2 * numbers / peak AS compute, least, most
    FROM panel JOIN target USING (model_id) JOIN machine USING (panel) WHERE bandwidth > 0 AND peak > 0 AND numbers > 0),
bend AS (SELECT *, read / compute AS ridge FROM floor),
line AS (
    SELECT panel, 1 AS ceiling, series || printf('; ridge at %.3g rows', ridge) AS series, x AS rows, 1e3 * max(read / x, compute) AS ms
    FROM (SELECT *, least / 1.2 AS x FROM bend UNION ALL SELECT *, most * 1.2 FROM bend
          UNION ALL SELECT *, ridge FROM bend WHERE ridge > least / 1.2 AND ridge < most * 1.2)
    UNION ALL
    SELECT panel, 2, 'steps of run ' || s.run_id || ' at context ' || q.context || ', measured', q.rows, 1e-6 * avg(q.median_ns) / q.rows
    FROM surfaces AS s JOIN panel USING (panel) JOIN surface AS q USING (attempt_id, model_id, context)
    WHERE place = 1 AND q.kind = 'step' AND coalesce(q.sequences, 1) = 1 AND q.rows <= 1.5 * most GROUP BY panel, q.rows)
SELECT panel, series, series AS colour, rows, ms, ceiling, 0 AS doubtful, NULL AS token, NULL AS point FROM line
UNION ALL
SELECT panel, method, method, rows, ms / rows, 0, doubtful, ms / S, number FROM at
ORDER BY panel, ceiling, series, rows;
