-- slowdown(rows, context); steps of equal numbers of rows are one cell. NULL where the grid was not measured. Where prices of the same
-- steps are given (?2): as priced, too, and the one over the other.
WITH price AS MATERIALIZED (
    SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[2]') AS priced FROM json_each(?2, '$.surface.steps')),
at AS (
    SELECT model_id, layout, sequences, context, rows, avg(slowdown) AS slowdown, avg(priced) AS priced, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful
    FROM attempt JOIN heat ON heat.attempt_id = attempt.id LEFT JOIN price ON price.id = surface_id
    WHERE run_id = ?1 AND slowdown IS NOT NULL
    GROUP BY model_id, layout, sequences, context, rows),
panels AS (SELECT model_id, layout, sequences, max(priced) AS is_priced, count(*) OVER () AS count FROM at GROUP BY model_id, layout, sequences),
contexts AS (SELECT context, row_number() OVER (ORDER BY context) AS y FROM (SELECT DISTINCT context FROM at)),
counts AS (SELECT rows, row_number() OVER (ORDER BY rows) AS x FROM (SELECT DISTINCT rows FROM at)),
made(place, name) AS (VALUES (1, 'measured'), (2, 'priced'), (3, 'priced / measured'))
SELECT iif(is_priced AND count <= 4, made.name || ', ', '') || layout || iif(sequences > 1, ', batch ' || sequences, '') || ': ' || model.name AS panel,
       'slowdown' AS series, y AS scan, x, y, CASE place WHEN 1 THEN slowdown WHEN 2 THEN priced ELSE priced / slowdown END AS value,
       counts.rows AS label_x, contexts.context AS label_y, NULL AS ridge, NULL AS ridge_rows, iif(place = 2, 0, doubtful) AS doubtful,
       counts.rows AS step_rows
FROM panels JOIN model ON model.id = model_id JOIN made ON place = 1 OR (is_priced AND count <= 4) JOIN contexts JOIN counts
LEFT JOIN at USING (model_id, layout, sequences, context, rows)
ORDER BY model_id, layout, sequences, place, y, x;
