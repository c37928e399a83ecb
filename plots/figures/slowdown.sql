-- slowdown(k, w) of each context: as measured, and where prices of the same steps are given (?2), as priced and the one over the other.
-- NULL where the grid was not measured. The ridge: the fewest rows measured from which on operations bound a step, not bytes.
WITH machine AS (
    SELECT coalesce(nullif(gpu_bandwidth, 0), bandwidth) AS bandwidth, coalesce(nullif(gpu_peak, 0), peak) AS peak
    FROM attempt JOIN environment ON environment.id = environment_id WHERE run_id = ?1 ORDER BY attempt.id DESC LIMIT 1),
price AS MATERIALIZED (
    SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[2]') AS priced FROM json_each(?2, '$.surface.steps')),
at AS (
    SELECT model_id, layout, sequences, context, k, w, avg(slowdown) AS slowdown, avg(priced) AS priced, max(rows) AS rows,
           max(doubtful > 0) + (min(doubtful) = 2) AS doubtful
    FROM attempt JOIN heat ON heat.attempt_id = attempt.id LEFT JOIN price ON price.id = surface_id WHERE run_id = ?1
    GROUP BY model_id, layout, sequences, context, k, w),
ks AS (SELECT k, row_number() OVER (ORDER BY k) AS y FROM (SELECT DISTINCT k FROM at)),
ws AS (SELECT w, row_number() OVER (ORDER BY w) AS x FROM (SELECT DISTINCT w FROM at)),
panels AS (
    SELECT model_id, layout, sequences, context, max(priced) AS is_priced, count(*) OVER () AS count,
           (SELECT min(s.rows) FROM attempt JOIN surface AS s ON s.attempt_id = attempt.id JOIN machine
            WHERE run_id = ?1 AND s.kind = 'step' AND s.model_id = at.model_id AND s.context = at.context
              AND coalesce(s.sequences, 1) = at.sequences
              AND operations / peak >= bytes / bandwidth) AS ridge
    FROM at WHERE slowdown IS NOT NULL GROUP BY model_id, layout, sequences, context),
made(place, name) AS (VALUES (1, 'measured'), (2, 'priced'), (3, 'priced / measured'))
SELECT iif(is_priced AND count <= 4, made.name || ', ', '') || 'context ' || context || ', ' || layout ||
       iif(sequences > 1, ', batch ' || sequences, '') || ': ' || model.name AS panel,
       'slowdown' AS series, y AS scan, x, y, CASE place WHEN 1 THEN slowdown WHEN 2 THEN priced ELSE priced / slowdown END AS value,
       ws.w AS label_x, ks.k AS label_y, 1.0 * sequences * ks.k * (ws.w + 1) / ridge AS ridge, ridge AS ridge_rows,
       iif(place = 2, 0, doubtful) AS doubtful, rows AS step_rows
FROM panels JOIN model ON model.id = model_id JOIN made ON place = 1 OR (is_priced AND count <= 4) JOIN ks JOIN ws
LEFT JOIN at USING (model_id, layout, sequences, context, k, w)
ORDER BY model_id, layout, sequences, context, place, y, x;
