-- S over what a step computes: products of the target's rows with its weights, the head's once a row; no attention, no draft.
-- Lookahead's settings are lines; each of another method stands alone (scan).
WITH machine AS (
    SELECT id AS model_id, name AS model,
           2e-9 * (layers * width * (2.0 * heads * head_dim + 2.0 * kv_heads * head_dim + 3.0 * mlp_width) + 1.0 * vocab * width) AS row
    FROM (SELECT id, name, layers, json_extract(shape, '$.width') AS width, json_extract(shape, '$.heads') AS heads,
                 json_extract(shape, '$.kv_heads') AS kv_heads, json_extract(shape, '$.head_dim') AS head_dim,
                 json_extract(shape, '$.mlp_width') AS mlp_width, json_extract(shape, '$.vocab') AS vocab
          FROM model WHERE json_valid(shape)))
SELECT result.model || ', ' || dataset || CASE WHEN result.temperature > 0 THEN ', temperature ' || result.temperature ELSE '' END AS panel,
       result.method || coalesce(' N=' || n.value, '') AS series, result.method AS colour,
       iif(n.value IS NULL, result.number, 0) AS scan, rows_per_step * row AS gflop, S, S_low AS low, S_high AS high, result.number AS point
FROM result JOIN point ON point.id = result.point_id JOIN machine USING (model_id)
LEFT JOIN point_param AS n ON n.point_id = result.point_id AND n.section = 'method' AND n.name = 'N' AND result.method = 'lookahead'
WHERE result.run_id = ?1 AND S IS NOT NULL AND row > 0
ORDER BY result.model, dataset, result.temperature, result.method = 'autoregressive' DESC, result.method, n.value, scan, gflop, result.number;
