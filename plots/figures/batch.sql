-- Speedup of every setting over the batch, a panel for each width of weights: as measured, or, where a machine is named (?2),
-- as priced from the points that ran alone, those of the widest weights. Settings with one batch only are left out.
WITH own AS (
    SELECT result.*, bits, batch, setting, max(bits) OVER () AS widest, doubtful
    FROM result JOIN point_ridge USING (point_id) JOIN point_doubt USING (point_id)
    WHERE run_id = ?1 AND method <> 'autoregressive'),
at AS (
    SELECT '' AS made, bits, dataset || ', ' || model AS place, setting, method, batch, speedup, speedup_low AS low, speedup_high AS high, doubtful, number AS point
    FROM own WHERE json_extract(?2, '$.prediction') IS NULL
    UNION ALL
    SELECT 'priced, ', json_extract(p.value, '$.bits'), dataset || ', ' || model, setting, method, json_extract(p.value, '$.batch'),
           json_extract(p.value, '$.speedup'), json_extract(p.value, '$.speedup_low'), json_extract(p.value, '$.speedup_high'), 0, own.number
    FROM json_each(?2, '$.prediction.points') AS p JOIN own ON own.number = json_extract(p.value, '$.point')
    WHERE own.batch = 1 AND bits = widest),
lines AS (
    SELECT bits, place, setting FROM at WHERE speedup IS NOT NULL
    GROUP BY bits, place, setting HAVING count(DISTINCT batch) > 1)
SELECT made || bits || ' bits: ' || place AS panel, setting AS series, method AS colour, batch, speedup, low, high, doubtful, point
FROM at JOIN lines USING (bits, place, setting) WHERE speedup IS NOT NULL
ORDER BY bits DESC, place, setting, batch;
