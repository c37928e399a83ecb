-- Slowdown over rows and context, each with the slowdown that bandwidth or peak allows at best; where prices of the same steps are
-- given (?2), as priced, too, and the one over the other. Steps of equal numbers of rows are one cell; NULL where the grid was not measured.
WITH price AS MATERIALIZED (
    SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[2]') AS priced FROM json_each(?2, '$.surface.steps')),
step AS (
    SELECT s.*, priced, avg(median_ns / slowdown) OVER (PARTITION BY s.model_id, layout, context) AS one_ns
    FROM attempt JOIN surface_doubt AS s ON s.attempt_id = attempt.id LEFT JOIN price ON price.id = s.id
    WHERE run_id = ?1 AND kind = 'step' AND k IS NOT NULL AND slowdown IS NOT NULL),
at AS (
    SELECT model_id, layout, context, rows, avg(slowdown) AS slowdown, avg(slowdown_low) AS low, avg(slowdown_high) AS high, avg(priced) AS priced,
           avg(floor_ns) / one_ns AS floor, avg(median_ns) * 1e-6 AS ms, sum(samples) AS n, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful
    FROM step GROUP BY model_id, layout, context, rows),
panels AS (SELECT model_id, layout, max(priced) AS is_priced FROM at GROUP BY model_id, layout),
contexts AS (SELECT context, row_number() OVER (ORDER BY context) AS y FROM (SELECT DISTINCT context FROM at)),
counts AS (SELECT rows, row_number() OVER (ORDER BY rows) AS x FROM (SELECT DISTINCT rows FROM at)),
made(place, name) AS (VALUES (1, 'measured'), (2, 'priced'), (3, 'priced / measured'))
SELECT iif(is_priced, made.name || ', ', '') || layout || ': ' || model.name AS panel, 'slowdown' AS series, y AS scan, x, y,
       CASE place WHEN 1 THEN slowdown WHEN 2 THEN priced ELSE priced / slowdown END AS value,
       counts.rows AS label_x, contexts.context AS label_y, iif(place = 1, low, NULL) AS low, iif(place = 1, high, NULL) AS high,
       iif(place = 1, floor, NULL) AS floor, ms, n, iif(place = 2, 0, doubtful) AS doubtful, counts.rows AS step_rows
FROM panels JOIN model ON model.id = model_id JOIN made ON place = 1 OR is_priced JOIN contexts JOIN counts
LEFT JOIN at USING (model_id, layout, context, rows)
ORDER BY model_id, layout, place, y, x;
