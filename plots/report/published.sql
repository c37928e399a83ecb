-- Papers' numbers beside this run's (?2), computed as the paper does; a difference where both were measured on the same.
WITH entry AS (
    SELECT t."key" AS t, r."key" AS r, json_extract(t.value, '$.name') AS "table", json_extract(r.value, '$.row') AS row,
           json_extract(r.value, '$.model') AS model, json_extract(r.value, '$.dataset') AS dataset,
           nullif(json_extract(r.value, '$.task'), '') AS task, json_extract(r.value, '$.metric') AS metric,
           nullif(json_extract(r.value, '$.published'), '') AS published, json_extract(r.value, '$.ours') AS ours,
           json_extract(r.value, '$.low') AS low, json_extract(r.value, '$.high') AS high,
           json_extract(r.value, '$.difference') AS difference, json_extract(r.value, '$.difference_low') AS difference_low,
           json_extract(r.value, '$.difference_high') AS difference_high, nullif(json_extract(r.value, '$.why_not'), '') AS why_not,
           nullif(json_extract(r.value, '$.our_method'), '') AS our_method, json_extract(r.value, '$.our_model') AS our_model,
           nullif(json_extract(r.value, '$.our_dataset'), '') AS our_dataset, nullif(json_extract(r.value, '$.stand_in'), '') AS stand_in
    FROM json_each(?2, '$.tables') AS t, json_each(t.value, '$.rows') AS r
    WHERE json_extract(?2, '$.run') = ?1)
SELECT "table", row, model || ', ' || dataset || coalesce(', ' || task, '') AS "of", metric, published,
       measured(ours, low, high) AS ours,
       iif(difference IS NULL, 'none: ' || why_not,
           iif(difference >= 0, '+', '') || measured(difference, difference_low, difference_high)) AS difference,
       our_method AS method,
       nullif(our_model || coalesce(', ' || our_dataset, '') || coalesce(' (stand-in: ' || stand_in || ')', ''), '') AS "ours on"
FROM entry WHERE published IS NOT NULL ORDER BY t, r;
