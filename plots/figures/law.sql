-- The law that fits each model's and dataset's points (?2), with its band over resamples of prompts, at the run's own N and W;
-- then the law as published (Lookahead, Fig. 4b) at the same places. Numbers begin a title: its end may be cut.
-- S = 1 + (1/f) sum over i = 1 .. N-1 of 1 - (1 - alpha^i)^W.
WITH RECURSIVE
fitted AS MATERIALIZED (
    SELECT json_extract(f.value, '$.fit.alpha.value') AS alpha, json_extract(f.value, '$.fit.f.value') AS f, CAST(f."key" AS INTEGER) AS number,
           (SELECT model || ', ' || dataset FROM result WHERE point_id = json_extract(f.value, '$.points_of[0]')) AS name,
           json_extract(p.value, '$.N') AS N, json_extract(p.value, '$.W') AS W,
           json_extract(p.value, '$.predicted') AS law, json_extract(p.value, '$.low') AS low, json_extract(p.value, '$.high') AS high
    FROM json_each(?2, '$.fits') AS f, json_each(f.value, '$.fit.predictions') AS p
    WHERE json_extract(p.value, '$.W') = json_extract(p.value, '$.G')
          AND EXISTS (SELECT 1 FROM json_each(f.value, '$.points_of') AS id JOIN point ON point.id = id.value WHERE point.run_id = ?1)),
term(N, W, i, s) AS (
    SELECT DISTINCT N, W, 0, 0.0 FROM fitted
    UNION ALL SELECT N, W, i + 1, s + 1 - pow(1 - pow(0.425, i + 1), W) FROM term WHERE i + 1 < N),
published AS (SELECT N, W, 1 + s / 3.106 AS law FROM term WHERE i = N - 1)
SELECT printf('alpha %.3g, f %.3g: ', alpha, f) || name AS panel, 'N=' || N AS series, W, law, low AS law_low, high AS law_high,
       number AS scan
FROM fitted
UNION ALL SELECT 'alpha 0.425, f 3.106: published', 'N=' || N, W, law, NULL, NULL, 1000000 FROM published
ORDER BY scan, panel, series, W;
