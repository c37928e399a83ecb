-- Slowdown over rows and context, each with the slowdown that bandwidth or peak allows at best. Steps of equal numbers of
-- rows are one cell; NULL where the grid was not measured.
WITH step AS (
    SELECT s.*, avg(median_ns / slowdown) OVER (PARTITION BY s.model_id, layout, context) AS one_ns
    FROM attempt JOIN surface_doubt AS s ON s.attempt_id = attempt.id
    WHERE run_id = ?1 AND kind = 'step' AND k IS NOT NULL AND slowdown IS NOT NULL),
at AS (
    SELECT model_id, layout, context, rows, avg(slowdown) AS slowdown, avg(slowdown_low) AS low, avg(slowdown_high) AS high,
           avg(floor_ns) / one_ns AS floor, avg(median_ns) * 1e-6 AS ms, sum(samples) AS n, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful
    FROM step GROUP BY model_id, layout, context, rows),
panels AS (SELECT DISTINCT model_id, layout FROM at),
contexts AS (SELECT context, row_number() OVER (ORDER BY context) AS y FROM (SELECT DISTINCT context FROM at)),
counts AS (SELECT rows, row_number() OVER (ORDER BY rows) AS x FROM (SELECT DISTINCT rows FROM at))
SELECT layout || ': ' || model.name AS panel, 'slowdown' AS series, y AS scan, x, y, slowdown AS value,
       counts.rows AS label_x, contexts.context AS label_y, low, high, floor, ms, n, doubtful
FROM panels JOIN model ON model.id = model_id JOIN contexts JOIN counts
LEFT JOIN at USING (model_id, layout, context, rows)
ORDER BY model_id, layout, y, x;
