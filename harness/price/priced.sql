-- Recorded steps of the point ?1.

-- name: samples
SELECT number, pass, sum(tokens), sum(steps) FROM sample JOIN prompt ON prompt.id = prompt_id WHERE point_id = ?1
GROUP BY 1, 2 ORDER BY 1, 2

-- name: prefills
SELECT number, pass, prompt_tokens FROM sample JOIN prompt ON prompt.id = prompt_id WHERE point_id = ?1

-- name: passes
-- As the view `pass`, but of one point: number, pass, model, a, b, rows, context, count, layers of the target.
WITH s AS (
    SELECT s.id, prompt.number, s.pass, layers FROM sample AS s JOIN prompt ON prompt.id = s.prompt_id
    JOIN main.point AS p ON p.id = s.point_id JOIN model ON model.id = p.model_id WHERE s.point_id = ?1)
SELECT s.number, s.pass, q.model, q.a, q.b, q.rows, q.context, sum(q.count), layers
FROM s JOIN step_pass AS q ON q.sample_id = s.id GROUP BY 1, 2, 3, 4, 5, 6, 7
UNION ALL SELECT s.number, s.pass, 0, 0, layers, t.rows, t.context, 1, layers
FROM s JOIN step AS t ON t.sample_id = s.id WHERE head_rows IS NOT NULL
UNION ALL SELECT s.number, s.pass, 0, layers, layers, head_rows, t.context, 1, layers
FROM s JOIN step AS t ON t.sample_id = s.id WHERE head_rows IS NOT NULL

-- name: host
-- The host's time of each step: verify and observe, propose.
SELECT t.verify_ns + t.observe_ns, t.propose_ns FROM sample AS s JOIN step AS t ON t.sample_id = s.id WHERE point_id = ?1

-- name: draft
-- Its layers; 0: no draft ran.
SELECT max(q.b) FROM sample AS s JOIN step_pass AS q ON q.sample_id = s.id WHERE point_id = ?1 AND q.model = 1

-- name: adapter
-- The kind of the method's adapter, its share of the target's vocabulary, the states that it reads, and the layers that it ran.
WITH adapter AS (
    SELECT json_extract(shape, '$.vocab') AS vocab,
           coalesce(json_extract(shape, '$.parts.' || method), json_extract(shape, '$.parts.adapter')) AS part
    FROM point JOIN model ON model.id = model_id WHERE point.id = ?1)
SELECT json_extract(part, '$.variant'), coalesce(1.0 * json_extract(part, '$.vocab') / vocab, 1),
       coalesce(json_extract(part, '$.states'), 1),
       (SELECT max(q.b) FROM sample AS s JOIN step_pass AS q ON q.sample_id = s.id WHERE point_id = ?1 AND q.model = 2)
FROM adapter WHERE part IS NOT NULL

-- name: proposes
-- Whether propose ran passes: of other models, of a part of the target, or of all of it besides the step's own.
SELECT EXISTS (
    SELECT 1 FROM sample AS s JOIN main.point AS p ON p.id = s.point_id JOIN model ON model.id = p.model_id
    JOIN step_pass AS q ON q.sample_id = s.id WHERE s.point_id = ?1
    GROUP BY s.id, q.number HAVING max(q.model <> 0 OR q.b < layers) OR sum(iif(q.a = 0 AND q.b = layers, q.count, 0)) > 1)

-- name: plain
SELECT EXISTS (SELECT 1 FROM point_param
               WHERE point_id = ?1 AND section = 'hardware' AND name = 'attention' AND value = 'plain')

-- name: batch
SELECT coalesce(max(CAST(value AS INTEGER)), 1) FROM point_param
WHERE point_id = ?1 AND section = 'hardware' AND name = 'batch'
