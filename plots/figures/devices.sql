-- Lookahead over W on every machine that a run of this name was measured on, the newest run of each.
WITH machine AS (
    SELECT attempt.run_id, coalesce(environment.gpu, environment.cpu || coalesce(', ' || nullif(environment.cores, 0) || ' cores', ''), 'unknown machine') AS machine,
           max(attempt.id) AS newest
    FROM run AS this JOIN run USING (name) JOIN attempt ON attempt.run_id = run.id JOIN environment ON environment.id = environment_id
    WHERE this.id = ?1 GROUP BY attempt.run_id),
newest AS (
    SELECT run_id, machine FROM (
        SELECT *, row_number() OVER (PARTITION BY machine ORDER BY run_id = ?1 DESC, newest DESC) AS place FROM machine)
    WHERE place = 1),
at AS (
    SELECT model, dataset, machine, n.value AS N, w.value AS W, g.value AS G, iif(b.value = 'drop', ', mode reference', '') AS mode, result.number, S, S_low, S_high, speedup, speedup_low, speedup_high, doubtful,
           min(g.value = w.value) OVER (PARTITION BY model, dataset, n.value) AS alike
    FROM newest JOIN result USING (run_id) JOIN point_doubt USING (point_id)
    JOIN point_param AS w ON w.point_id = result.point_id AND w.section = 'method' AND w.name = 'W'
    JOIN point_param AS n ON n.point_id = result.point_id AND n.section = 'method' AND n.name = 'N'
    JOIN point_param AS g ON g.point_id = result.point_id AND g.section = 'method' AND g.name = 'G'
    LEFT JOIN point_param AS b ON b.point_id = result.point_id AND b.section = 'method' AND b.name = 'bonus'
    WHERE method = 'lookahead' AND S IS NOT NULL AND temperature = 0)
SELECT iif(what = 'S', 'S: ', 'speedup: ') || model || ', ' || dataset || mode AS panel,
       'N=' || N || iif(alike, ' G=W, ', ' G=' || G || ', ') || machine AS series, W,
       iif(what = 'S', S, speedup) AS value, iif(what = 'S', S_low, speedup_low) AS low, iif(what = 'S', S_high, speedup_high) AS high,
       iif(what = 'speedup', doubtful, 0) AS doubtful
FROM at JOIN (SELECT 'S' AS what UNION ALL SELECT 'speedup')
WHERE what = 'S' OR speedup IS NOT NULL
ORDER BY model, dataset, mode, what, machine, N, iif(alike, 0, G), W, number;
