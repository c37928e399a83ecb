-- S and speedup over the temperature, all seeds and datasets of a model together: sums over the points of a method.
WITH at AS (
    SELECT model, replace(label, ' temperature=' || t.value, '') AS label, min(result.method) AS method, result.temperature AS temperature, sum(pass.tokens) AS tokens, sum(pass.steps) AS steps,
           sum(pass.decode_ns) AS ns, sum(base.tokens) AS base_tokens, sum(base.decode_ns) AS base_ns,
           count(base.tokens) = count(*) AS is_compared, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful
    FROM result JOIN point_doubt USING (point_id) JOIN pass_sums AS pass ON pass.point_id = result.point_id
    JOIN point_param AS t ON t.point_id = result.point_id AND t.section = 'generation' AND t.name = 'temperature'
    LEFT JOIN pass_sums AS base ON base.point_id = result.base_id AND base.pass = pass.pass
    WHERE result.run_id = ?1 AND result.S IS NOT NULL AND result.method <> 'autoregressive'
    GROUP BY model, 2, result.temperature),
lines AS (SELECT model, label FROM at GROUP BY model, label HAVING count(*) > 1)
SELECT iif(what = 'S', 'S: ', 'speedup: ') || model AS panel, label AS series, method AS colour, temperature,
       iif(what = 'S', 1.0 * tokens / steps, (base_ns / (1.0 * base_tokens)) / (ns / (1.0 * tokens))) AS value,
       NULL AS low, NULL AS high, iif(what = 'speedup', doubtful, 0) AS doubtful
FROM at JOIN lines USING (model, label) JOIN (SELECT 'S' AS what UNION ALL SELECT 'speedup')
WHERE what = 'S' OR is_compared
ORDER BY model, what, label, temperature;
