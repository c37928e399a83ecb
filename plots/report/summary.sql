-- What to tell of run ?1: the method that gains most both here and on the machine of ?2, if its text is the baseline's.
WITH priced AS (
    SELECT json_extract(value, '$.point') AS number, json_extract(value, '$.speedup') AS speedup
    FROM json_each(?2, '$.prediction.points'))
SELECT 'On ' || iif(prompts = 1, 'this prompt ', 'these ' || prompts || ' prompts ') || method || ' wrote ' || printf('%.1f', S) ||
       ' tokens a step, the same text' || iif(prompts = 1, '', ' in every one') || '; here that is ' ||
       printf('%.1f', result.speedup) || ' times as fast as one token at a time' ||
       iif(doubtful, ' (in doubt: the machine was busy)', '') || ', and on ' ||
       replace(json_extract(?2, '$.prediction.machine'), ', measured', '') || ', at the size of ' ||
       json_extract(?2, '$.prediction.shape') || ', it would be ' || printf('%.1f', priced.speedup) || ' times (priced).' AS says
FROM result JOIN priced USING (number) JOIN point_doubt USING (point_id)
WHERE run_id = ?1 AND same_text = 'yes' AND method <> 'oracle' AND result.speedup IS NOT NULL
ORDER BY min(result.speedup, priced.speedup) DESC LIMIT 1;
