-- The sentences of a caption on run ?1 that its notes (notes.sql) don't have: n, how it was decoded or timed, and when.
-- Nothing of it holds for steps that were priced on another machine (?2).
WITH drawn AS (SELECT * FROM result WHERE run_id = ?1 AND samples > 0),
sets AS (SELECT dataset, max(prompts) AS n, max(passes) AS passes FROM drawn GROUP BY dataset),
setting AS (
    SELECT name, group_concat(DISTINCT value) AS value_of
    FROM point_param JOIN drawn USING (point_id) WHERE section = 'generation' AND name IN ('max_tokens', 'temperature')
    GROUP BY name),
timed AS (
    SELECT min(samples) AS least, max(samples) AS most FROM attempt JOIN surface ON attempt_id = attempt.id
    WHERE run_id = ?1 AND kind = 'step')
SELECT 'n = ' || iif(min(n) = max(n) AND count(*) > 1, n || ' prompts of each dataset', group_concat(n || ' prompts of ' || dataset, ', ')) ||
       iif(max(passes) > 1, ', each decoded ' || max(passes) || ' times', '')
FROM sets HAVING count(*) > 0
UNION ALL
SELECT iif(temperature.value_of IS NULL OR temperature.value_of IN ('0', '0.0'), 'greedy decoding', 'decoding at temperature ' || replace(temperature.value_of, ',', ', ')) ||
       coalesce(' of at most ' || replace(tokens.value_of, ',', ', ') || ' tokens', '')
FROM (SELECT 1) LEFT JOIN setting AS temperature ON temperature.name = 'temperature' LEFT JOIN setting AS tokens ON tokens.name = 'max_tokens'
WHERE EXISTS (SELECT 1 FROM drawn)
UNION ALL
SELECT 'n = ' || iif(least = most, least, least || ' to ' || most) || ' timed runs of each step, of which the median is drawn'
FROM timed WHERE most > 0 AND json_extract(?2, '$.prediction.surface') IS NULL
UNION ALL
SELECT 'measured on ' || date(started, 'unixepoch') FROM attempt
WHERE run_id = ?1 AND json_extract(?2, '$.prediction.surface') IS NULL AND id = (SELECT max(id) FROM attempt WHERE run_id = ?1);
