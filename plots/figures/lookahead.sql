-- S over W, and what the law says that was fitted to these points (?2): law, and its band, over resamples of prompts.
WITH fit AS (
    SELECT id.value AS point_id, f."key" AS fit, json_extract(f.value, '$.fit.alpha.value') AS alpha, json_extract(f.value, '$.fit.f.value') AS f
    FROM json_each(?2, '$.fits') AS f, json_each(f.value, '$.points_of') AS id),
said AS MATERIALIZED (
    SELECT f."key" AS fit, json_extract(p.value, '$.N') AS N, json_extract(p.value, '$.W') AS W, json_extract(p.value, '$.G') AS G,
           json_extract(p.value, '$.predicted') AS law, json_extract(p.value, '$.low') AS law_low, json_extract(p.value, '$.high') AS law_high
    FROM json_each(?2, '$.fits') AS f, json_each(f.value, '$.fit.predictions') AS p),
at AS (
    SELECT result.*, w.value AS W, n.value AS N, g.value AS G, iif(b.value = 'drop', ', mode reference', '') AS mode,
           min(g.value = w.value) OVER (PARTITION BY model, dataset, temperature, n.value) AS alike
    FROM result
    JOIN point_param AS w ON w.point_id = result.point_id AND w.section = 'method' AND w.name = 'W'
    JOIN point_param AS n ON n.point_id = result.point_id AND n.section = 'method' AND n.name = 'N'
    JOIN point_param AS g ON g.point_id = result.point_id AND g.section = 'method' AND g.name = 'G'
    LEFT JOIN point_param AS b ON b.point_id = result.point_id AND b.section = 'method' AND b.name = 'bonus'
    WHERE run_id = ?1 AND method = 'lookahead' AND S IS NOT NULL)
SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END || mode ||
       coalesce(printf('; law: alpha %.3g, f %.3g', alpha, f), '') AS panel,
       'N=' || N || iif(alike, ' G=W', ' G=' || G) AS series, W, S, S_low AS low, S_high AS high, law, law_low, law_high
FROM at LEFT JOIN fit USING (point_id) LEFT JOIN said USING (fit, N, W, G)
ORDER BY model, dataset, temperature, panel, N, iif(alike, 0, G), W, number;
