-- Speedup of each setting over batch and bits, a panel a setting: as measured, or, where a machine is named (?2), as priced from
-- the points that ran alone, those of the widest weights. NULL where the grid was not measured; settings with one cell only are
-- left out.
WITH own AS (
    SELECT result.*, bits, batch, setting, max(bits) OVER () AS widest, doubtful
    FROM result JOIN point_ridge USING (point_id) JOIN point_doubt USING (point_id)
    WHERE run_id = ?1 AND method <> 'autoregressive'),
at AS (
    SELECT '' AS made, setting, dataset, batch, bits, max(speedup) AS speedup, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful
    FROM own WHERE json_extract(?2, '$.prediction') IS NULL GROUP BY setting, dataset, batch, bits
    UNION ALL
    SELECT 'priced, ', setting, dataset, json_extract(p.value, '$.batch') AS at_batch, json_extract(p.value, '$.bits') AS at_bits,
           max(json_extract(p.value, '$.speedup')), 0
    FROM json_each(?2, '$.prediction.points') AS p JOIN own ON own.number = json_extract(p.value, '$.point')
    WHERE own.batch = 1 AND bits = widest GROUP BY setting, dataset, at_batch, at_bits),
batches AS (SELECT batch, row_number() OVER (ORDER BY batch) AS x FROM (SELECT DISTINCT batch FROM at)),
widths AS (SELECT bits, row_number() OVER (ORDER BY bits) AS y FROM (SELECT DISTINCT bits FROM at)),
panels AS (
    SELECT made, setting, dataset FROM at WHERE speedup IS NOT NULL
    GROUP BY made, setting, dataset HAVING count(*) > 1)
SELECT made || setting || iif((SELECT count(DISTINCT dataset) FROM at) > 1, ': ' || dataset, '') AS panel, 'speedup' AS series,
       y AS scan, x, y, speedup AS value, batches.batch AS label_x, widths.bits AS label_y, NULL AS ridge, NULL AS ridge_rows, doubtful
FROM panels JOIN batches JOIN widths LEFT JOIN at USING (made, setting, dataset, batch, bits)
ORDER BY dataset, setting, y, x;
