-- Points of S for a fit of Lookahead's law, and fits that are kept.

-- name: sets
-- A preset's N, W and G are not among a point's parameters. Imported points may lack presets.
SELECT model || ', ' || dataset, same, json_group_array(id), dropped, min(same) OVER w <> max(same) OVER w,
       min(dropped) OVER w <> max(dropped) OVER w
FROM (SELECT point.id, model.name AS model, dataset.name AS dataset, dropped, same
      FROM point JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
      JOIN lookahead_point AS q ON q.point_id = point.id
      WHERE run_id = ?1 AND coalesce(preset, 'none') = 'none' AND G > 0
          AND EXISTS (SELECT 1 FROM sample WHERE point_id = point.id))
GROUP BY model, dataset, same, dropped WINDOW w AS (PARTITION BY model, dataset) ORDER BY min(id)

-- name: points
-- Of the points in the JSON array ?1, a row a setting and prompt. The steps past filling by accepted tokens, and by candidates,
-- are number:count,number:count.
WITH chosen AS (SELECT point_id AS id, N, W, G FROM json_each(?1) AS j JOIN lookahead_point AS p ON p.point_id = j.value),
seen AS (
    SELECT N, W, G, prompt_id AS prompt, sum(tokens) AS tokens, sum(steps) AS steps, count(*) AS outputs,
           sum(filling_steps) AS filling
    FROM chosen JOIN sample ON point_id = chosen.id GROUP BY 1, 2, 3, 4),
whole AS (
    SELECT prompt FROM seen WHERE steps > filling GROUP BY 1
    HAVING count(*) = (SELECT count(*) FROM (SELECT DISTINCT N, W, G FROM chosen))),
accepts AS (
    SELECT N, W, G, prompt_id AS prompt, q.accepted AS x, sum(q.steps) AS times
    FROM chosen JOIN sample AS t ON t.point_id = chosen.id JOIN sample_accept AS q ON q.sample_id = t.id
    WHERE q.kind = 0 GROUP BY 1, 2, 3, 4, 5),
hits AS (
    SELECT N, W, G, prompt_id AS prompt, q.pool_hits AS x, count(*) AS times
    FROM chosen JOIN sample AS t ON t.point_id = chosen.id JOIN step AS q ON q.sample_id = t.id
    WHERE q.kind = 0 GROUP BY 1, 2, 3, 4, 5),
counted AS (
    SELECT N, W, G, prompt, tokens, steps, outputs, filling,
           (SELECT group_concat(x || ':' || a.times) FROM accepts AS a
            WHERE a.N = seen.N AND a.W = seen.W AND a.G = seen.G AND a.prompt = seen.prompt) AS accepted,
           (SELECT group_concat(x || ':' || h.times) FROM hits AS h
            WHERE h.N = seen.N AND h.W = seen.W AND h.G = seen.G AND h.prompt = seen.prompt) AS candidates
    FROM seen WHERE prompt IN whole)
SELECT *, min(accepted IS NOT NULL) OVER (), min(candidates IS NOT NULL) OVER () FROM counted ORDER BY 1, 2, 3, 4

-- name: fits
-- The newest of each kind: an earlier one is of fewer points, or of other draws.
SELECT printf('%s: alpha %s, f %s (law %s, bonus %s%s; %s, %d settings, %d prompts; %s)%s', title,
              measured(alpha, alpha_low, alpha_high), measured(f, f_low, f_high), law, bonus,
              iif(output, printf(', filling in outputs of %g tokens', output), ''), replace(estimator, '_', ' '), settings,
              prompts, date(made, 'unixepoch'),
              iif(other_points, '; of other points than the run has now: fit it again', ''))
FROM (SELECT *, row_number() OVER (PARTITION BY title, law, bonus, output ORDER BY made DESC, fit_id DESC) AS place
      FROM fitted WHERE run_id = ?1)
WHERE place = 1 ORDER BY title, made DESC, fit_id DESC
