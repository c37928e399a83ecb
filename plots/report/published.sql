-- Papers' numbers beside this run's (?2), computed as the paper does; a difference where both were measured on the same.
SELECT t.value ->> 'name' AS "table", r.value ->> 'row' AS row, (r.value ->> 'model') || ', ' || (r.value ->> 'dataset') || iif(r.value ->> 'task' = '', '', ', ' || (r.value ->> 'task')) AS "of", r.value ->> 'metric' AS metric,
       nullif(r.value ->> 'published', '') AS published,
       iif(r.value ->> 'ours' IS NULL, NULL, printf('%.3f', r.value ->> 'ours') ||
           iif(r.value ->> 'low' IS NULL, '', printf(' [%.3f, %.3f]', r.value ->> 'low', r.value ->> 'high'))) AS ours,
       iif(r.value ->> 'difference' IS NULL, nullif('none: ' || (r.value ->> 'why_not'), 'none: '), printf('%+.3f', r.value ->> 'difference') ||
           iif(r.value ->> 'difference_low' IS NULL, '', printf(' [%+.3f, %+.3f]', r.value ->> 'difference_low', r.value ->> 'difference_high'))) AS difference,
       nullif(r.value ->> 'our_method', '') AS method,
       nullif((r.value ->> 'our_model') || iif(r.value ->> 'our_dataset' = '', '', ', ' || (r.value ->> 'our_dataset')) ||
              iif(r.value ->> 'stand_in' = '', '', ' (stand-in: ' || (r.value ->> 'stand_in') || ')'), '') AS "ours on"
FROM json_each(?2, '$.tables') AS t, json_each(t.value, '$.rows') AS r
WHERE ?2 ->> 'run' = ?1 AND r.value ->> 'published' <> ''
ORDER BY t."key", r."key";
