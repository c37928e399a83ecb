-- Times of samples of the model ?1 on the device ?3 with ?4 threads on the machine ?5: all of run ?2, or for 0 the baselines of
-- every run.
SELECT sum(decode_ns), sum(tokens), sum(prefill_ns), sum(prompt_tokens), count(*)
FROM sample JOIN point ON point.id = point_id JOIN model ON model.id = model_id
WHERE model.hash = ?1 AND CASE WHEN ?2 THEN run_id = ?2 ELSE method = 'autoregressive' END
    AND (SELECT count(*) FROM point_param WHERE point_param.point_id = point.id AND section = 'hardware'
         AND (name = 'device' AND value = ?3 OR name = 'threads' AND value = ?4)) = 2
    AND EXISTS (SELECT 1 FROM content WHERE content.run_id = point.run_id AND kind = 'machine' AND hash = ?5)
