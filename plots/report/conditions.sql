-- Of each measured point, for what shows under the pointer: its model, dataset, method, label, prompts, passes, samples, how
-- many of those were disturbed, the settings that everybody asks for or that differ in this run, and why its times are in doubt.
WITH named AS (
    SELECT section, name FROM point_param JOIN point ON point.id = point_id
    WHERE run_id = ?1 AND section IN ('generation', 'hardware') GROUP BY section, name
    HAVING count(DISTINCT value) > 1 OR name IN ('temperature', 'max_tokens', 'device', 'compute', 'layout', 'threads'))
SELECT json_group_array(json_array(
    number, model, dataset, method, label, prompts, passes, samples, coalesce(disturbed, 0),
    (SELECT group_concat(replace(name, '_', ' ') || ' ' || iif(name = 'threads' AND value = 0, 'all', value), ', ')
     FROM point_param JOIN named USING (section, name) WHERE point_id = result.point_id),
    iif(doubtful, doubt, NULL)))
FROM result LEFT JOIN point_doubt USING (point_id) WHERE run_id = ?1 AND samples > 0;
