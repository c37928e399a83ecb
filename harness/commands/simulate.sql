-- name: notes
-- A method that leaves the target early does so after the same share of ?2 layers. Sampled texts, and other engines', may have
-- other lengths than their baselines'.
SELECT * FROM (SELECT DISTINCT printf('exit       after layer %d of %d, as the run''s model has it, is priced as after %.3g of %d: the same share',
                       q.b, layers, 1.0 * q.b / layers * ?2, ?2), layers, q.b
FROM point JOIN model ON model.id = point.model_id JOIN sample ON point_id = point.id JOIN step_pass AS q ON q.sample_id = sample.id
WHERE run_id = ?1 AND q.model = 0 AND a = 0 AND q.b BETWEEN 1 AND layers - 1 AND layers <> ?2 ORDER BY layers, q.b)
UNION ALL
SELECT printf('lengths    texts of %d of %d points have other lengths than their baselines'': speedups are of the time of a token',
              sum(differs), count(*)), NULL, NULL
FROM (SELECT sum(tokens) <> sum(base_tokens) AS differs
      FROM point JOIN prompt_speedup ON point_id = point.id WHERE run_id = ?1 AND base_tokens IS NOT NULL GROUP BY point.id)
HAVING sum(differs) > 0
