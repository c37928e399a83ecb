-- A run's rows as the ledger reads them back.

-- name: strays
-- Outputs of the point ?1 that differ from the first one of ?2 for their prompt.
WITH first AS (SELECT prompt_id, output_id, min(pass) FROM sample
    WHERE point_id = ?2 GROUP BY prompt_id) SELECT DISTINCT pass, number
FROM sample JOIN first USING (prompt_id) JOIN prompt ON prompt.id = prompt_id
WHERE point_id = ?1 AND sample.output_id <> first.output_id ORDER BY 1, 2

-- name: samples
SELECT point.number, pass, prompt.number, turn, flags, tokens, steps, decode_ns, EXISTS (SELECT 1
    FROM divergence WHERE sample_id = sample.id)
FROM point JOIN sample ON point_id = point.id JOIN prompt ON prompt_id = prompt.id WHERE run_id = ?1 ORDER BY 1, 2, 3, 4

-- name: failures
SELECT point.number, message FROM failure AS f JOIN point ON point.id = f.point_id
WHERE run_id = ?1 AND NOT EXISTS (SELECT 1 FROM sample AS s WHERE s.point_id = f.point_id AND s.attempt_id > f.attempt_id)
ORDER BY f.id

-- name: machines
SELECT count(DISTINCT cpu || coalesce(gpu, '')) FROM attempt JOIN environment AS v ON v.id = environment_id WHERE run_id = ?1

-- name: pace
SELECT sum(decode_ns), sum(tokens) FROM sample WHERE point_id = ?1
