-- slowdown(rows, context); steps of equal numbers of rows are one cell. NULL where the grid was not measured.
WITH at AS (
    SELECT model_id, layout, sequences, context, rows, avg(slowdown) AS slowdown, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful
    FROM attempt JOIN heat ON heat.attempt_id = attempt.id WHERE run_id = ?1 AND slowdown IS NOT NULL
    GROUP BY model_id, layout, sequences, context, rows),
panels AS (SELECT DISTINCT model_id, layout, sequences FROM at),
contexts AS (SELECT context, row_number() OVER (ORDER BY context) AS y FROM (SELECT DISTINCT context FROM at)),
counts AS (SELECT rows, row_number() OVER (ORDER BY rows) AS x FROM (SELECT DISTINCT rows FROM at))
SELECT layout || iif(sequences > 1, ', batch ' || sequences, '') || ': ' || model.name AS panel, 'slowdown' AS series, y AS scan, x, y, slowdown AS value,
       counts.rows AS label_x, contexts.context AS label_y, NULL AS ridge, NULL AS ridge_rows, doubtful
FROM panels JOIN model ON model.id = model_id JOIN contexts JOIN counts
LEFT JOIN at USING (model_id, layout, sequences, context, rows)
ORDER BY model_id, layout, sequences, y, x;
