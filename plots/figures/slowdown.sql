-- slowdown(k, w) of each context; NULL where the grid was not measured. The ridge: the fewest rows measured
-- from which on operations bound a step, not bytes.
WITH machine AS (
    SELECT coalesce(nullif(gpu_bandwidth, 0), bandwidth) AS bandwidth, coalesce(nullif(gpu_peak, 0), peak) AS peak
    FROM attempt JOIN environment ON environment.id = environment_id WHERE run_id = ?1 ORDER BY attempt.id DESC LIMIT 1),
at AS (
    SELECT model_id, layout, sequences, context, k, w, avg(slowdown) AS slowdown, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful
    FROM attempt JOIN heat ON heat.attempt_id = attempt.id WHERE run_id = ?1
    GROUP BY model_id, layout, sequences, context, k, w),
ks AS (SELECT k, row_number() OVER (ORDER BY k) AS y FROM (SELECT DISTINCT k FROM at)),
ws AS (SELECT w, row_number() OVER (ORDER BY w) AS x FROM (SELECT DISTINCT w FROM at)),
panels AS (
    SELECT model_id, layout, sequences, context,
           (SELECT min(s.rows) FROM attempt JOIN surface AS s ON s.attempt_id = attempt.id JOIN machine
            WHERE run_id = ?1 AND s.kind = 'step' AND s.model_id = at.model_id AND s.context = at.context
              AND coalesce(s.sequences, 1) = at.sequences
              AND operations / peak >= bytes / bandwidth) AS ridge
    FROM at WHERE slowdown IS NOT NULL GROUP BY model_id, layout, sequences, context)
SELECT 'context ' || context || ', ' || layout || iif(sequences > 1, ', batch ' || sequences, '') || ': ' || model.name AS panel,
       'slowdown' AS series, y AS scan, x, y, slowdown AS value, ws.w AS label_x, ks.k AS label_y, 1.0 * sequences * ks.k * (ws.w + 1) / ridge AS ridge, ridge AS ridge_rows,
       doubtful
FROM panels JOIN model ON model.id = model_id JOIN ks JOIN ws
LEFT JOIN at USING (model_id, layout, sequences, context, k, w)
ORDER BY model_id, layout, sequences, context, y, x;
