-- Samples of a point and their steps, for a comparison step by step.

-- name: samples
-- sorted: the steps of a record that has no order are stored by their accepted tokens.
SELECT prompt.number, turn, pass, sample.id, sample.tokens, ids,
       run.kind = 'import' AND (SELECT max(accepted) > min(accepted) FROM step WHERE sample_id = sample.id) AND NOT EXISTS (
           SELECT 1 FROM step AS x JOIN step AS y ON y.sample_id = x.sample_id AND y.number = x.number + 1
           WHERE x.sample_id = sample.id AND y.accepted < x.accepted) AS sorted
FROM sample JOIN prompt ON prompt.id = prompt_id JOIN point ON point.id = point_id JOIN run ON run.id = run_id
LEFT JOIN output ON output.id = output_id
WHERE point_id = ?1 ORDER BY 1, 2, 3

-- name: steps
SELECT number, accepted, emitted FROM step WHERE sample_id = ?1 ORDER BY number
