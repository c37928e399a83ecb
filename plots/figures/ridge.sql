-- Speedup of each setting over batch and bits, a panel a setting: as measured, and where a machine is named (?2), as priced from
-- the points that ran alone, those of the widest weights, and the one over the other. NULL where the grid was not measured;
-- settings with one cell only are left out.
WITH own AS (
    SELECT result.*, bits, batch, setting, max(bits) OVER () AS widest, doubtful
    FROM result JOIN point_ridge USING (point_id) JOIN point_doubt USING (point_id)
    WHERE run_id = ?1 AND method <> 'autoregressive'),
known AS (
    SELECT 1 AS place, setting, dataset, batch, bits, max(speedup) AS speedup, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful, max(number) AS point
    FROM own GROUP BY setting, dataset, batch, bits
    UNION ALL
    SELECT 2, setting, dataset, json_extract(p.value, '$.batch') AS at_batch, json_extract(p.value, '$.bits') AS at_bits,
           max(json_extract(p.value, '$.speedup')), 0, max(own.number)
    FROM json_each(?2, '$.prediction.points') AS p JOIN own ON own.number = json_extract(p.value, '$.point')
    WHERE own.batch = 1 AND bits = widest GROUP BY setting, dataset, at_batch, at_bits),
at AS (
    SELECT * FROM known UNION ALL
    SELECT 3, setting, dataset, batch, bits, p.speedup / m.speedup, m.doubtful, m.point FROM known AS p JOIN known AS m USING (setting, dataset, batch, bits)
    WHERE p.place = 2 AND m.place = 1 AND m.speedup IS NOT NULL),
batches AS (SELECT batch, row_number() OVER (ORDER BY batch) AS x FROM (SELECT DISTINCT batch FROM at)),
widths AS (SELECT bits, row_number() OVER (ORDER BY bits) AS y FROM (SELECT DISTINCT bits FROM at)),
made(place, name) AS (VALUES (1, 'measured, '), (2, 'priced, '), (3, 'priced / measured, ')),
panels AS (
    SELECT place, setting, dataset FROM at WHERE speedup IS NOT NULL
    GROUP BY place, setting, dataset HAVING count(*) > 1)
SELECT iif((SELECT max(place) FROM panels) > 1, made.name, '') || setting || iif((SELECT count(DISTINCT dataset) FROM at) > 1, ': ' || dataset, '') AS panel,
       'speedup' AS series, y AS scan, x, y, speedup AS value, batches.batch AS label_x, widths.bits AS label_y, NULL AS ridge, NULL AS ridge_rows,
       doubtful, point
FROM panels JOIN made USING (place) JOIN batches JOIN widths LEFT JOIN at USING (place, setting, dataset, batch, bits)
ORDER BY dataset, setting, place, y, x;
