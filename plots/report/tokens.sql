-- Texts token by token, in the report and in `outpace show RUN --tokens`.

-- name: texts
-- Of run ?1, in its first pass: the texts of prompt ?2, by its name or number. If that is NULL, those of each method's best point,
-- on the prompts where a method's S was its median, best and worst; `why` is what the prompt was for the text's own method. Where
-- no method accepted anything, the first prompt.
-- ?3: bytes that the texts and their steps may take on a page, about; what is most telling comes first.
WITH kept AS (
    SELECT sample.id AS sample_id, point.id AS point_id, point.number, label, point.method, prompt.id AS prompt_id, dataset.name AS dataset,
           model.name AS model, coalesce(prompt.name, prompt.number) AS prompt, prompt.number AS prompt_number, turn, pieces, sample.tokens,
           steps, 1.0 * sample.tokens / steps AS S, decode_ns, divergence.position AS differs, length(pieces) + 90 * steps + 200 AS bytes
    FROM point JOIN sample ON point_id = point.id JOIN output ON output.id = output_id JOIN prompt ON prompt.id = sample.prompt_id
    JOIN dataset ON dataset.id = prompt.dataset_id JOIN model ON model.id = model_id LEFT JOIN divergence ON divergence.sample_id = sample.id
    WHERE run_id = ?1 AND steps > 0 AND json_valid(pieces)
      AND pass = (SELECT min(pass) FROM sample AS first WHERE first.point_id = point.id)),
best AS (
    SELECT point_id, speedup, row_number() OVER (PARTITION BY model, dataset, method ORDER BY speedup DESC NULLS LAST, number) AS place
    FROM result WHERE run_id = ?1 AND samples > 0),
placed AS (
    SELECT kept.*, speedup, row_number() OVER (PARTITION BY point_id ORDER BY S DESC, prompt_id) AS place,
           count(*) OVER (PARTITION BY point_id) AS prompts, max(S) OVER (PARTITION BY point_id) AS most
    FROM kept JOIN best USING (point_id) WHERE ?2 IS NOT NULL OR best.place = 1),
told AS (
    SELECT *, CASE WHEN most = 1 THEN NULL WHEN place = (prompts + 1) / 2 THEN 'median' WHEN place = 1 THEN 'best'
              WHEN place = prompts THEN 'worst' END AS why
    FROM placed),
ranked AS (
    SELECT *, CASE WHEN ?2 IS NOT NULL THEN iif(?2 IN (prompt || '', prompt_number || ''), 0, NULL) WHEN why IS NOT NULL THEN 0
              WHEN prompt_id IN (SELECT prompt_id FROM told WHERE why = 'median') THEN 1
              WHEN prompt_id IN (SELECT prompt_id FROM told WHERE why IS NOT NULL) THEN 2
              WHEN place = 1 AND NOT EXISTS (SELECT 1 FROM told WHERE why IS NOT NULL) THEN 3 END AS turn_comes
    FROM told),
chosen AS (
    SELECT *, sum(bytes) OVER (ORDER BY turn_comes, speedup DESC NULLS LAST, number, prompt_id) AS total
    FROM ranked WHERE turn_comes IS NOT NULL)
SELECT sample_id, ?1 AS run, number AS point, method, label, model, dataset, prompt, turn, why, tokens, steps, S, decode_ns / 1e6 AS ms, differs, pieces
FROM chosen WHERE total <= coalesce(?3, total) ORDER BY model, dataset, prompt_number, turn, speedup DESC NULLS LAST, number

-- name: steps
-- Of sample ?1; times in milliseconds.
SELECT number + 1 AS step, emitted, accepted, source, rank, rows, candidates, depth AS levels, propose_ns / 1e6 AS propose,
       forward_ns / 1e6 AS forward, verify_ns / 1e6 AS verify, observe_ns / 1e6 AS observe, margin,
       (SELECT nullif(json_group_array(json_array(g.depth, coalesce(piece, token || ''))), '[]') FROM step_guess AS g
        WHERE g.sample_id = ?1 AND g.number = step_told.number) AS rejected
FROM step_told WHERE sample_id = ?1 ORDER BY number
