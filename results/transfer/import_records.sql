-- One record of another program, ?1, as samples; ?2 is its place in the file. Columns:
--   error           what is wrong with it, or NULL; within: where in the record
--   model .. pass   NULL: as the command line has it, or 0
--   tokens, steps   sums, where nothing more is known
--   parts           else a JSON array of [steps alike, accepted, emitted, drafted or null] in order
--   params          a JSON array of [section, name, value]; once: the same sample may be in several records
--   text            of the output; may be left out

-- name: vllm
-- vLLM's metrics.speculative_decoding, or the same keys bare, as of AIPerf. drafted: in every step of a histogram, if that many
-- explain the sum. The last step's tokens beyond the output's end are cut where steps have an order.
WITH spec AS (
    SELECT *, coalesce(json_type(s, '$.per_step_accepted'), 'null') <> 'null' AS ordered,
           iif(json_type(?1, '$.usage') IS NULL, json_extract(?1, '$.completion_tokens'),
               json_extract(?1, '$.usage.completion_tokens')) AS completed,
           json_extract(s, '$.num_spec_tokens') AS most, json_extract(s, '$.num_draft_tokens') AS drafts,
           json_extract(s, '$.num_spec_steps') AS stated
    FROM (SELECT coalesce(json_extract(?1, '$.metrics.speculative_decoding'), ?1) AS s)),
part AS (
    SELECT key, type, value AS times, CAST(key AS INTEGER) AS accepted, CAST(key AS INTEGER) + 1 AS emitted,
           iif(most BETWEEN 1 AND 4096 AND drafts % most = 0 AND drafts / most = stated, most, NULL) AS drafted, ordered
    FROM spec, json_each(s, '$.acceptance_histogram') WHERE NOT ordered
    UNION ALL
    SELECT a.key, a.type, 1, a.value, a.value + 1, d.value, ordered
    FROM spec, json_each(s, '$.per_step_accepted') AS a LEFT JOIN json_each(s, '$.per_step_drafted') AS d ON d.key = a.key
    WHERE ordered),
sums AS (
    SELECT sum(times) AS steps, sum(times * accepted) AS accepted, sum(times * emitted) AS emitted,
           iif(count(drafted) = count(*), sum(times * drafted), NULL) AS drafted
    FROM part WHERE type = 'integer' AND times BETWEEN 0 AND 16777216 AND accepted BETWEEN 0 AND 16777216
        AND coalesce(drafted, 0) BETWEEN 0 AND 16777216),
beyond AS (
    SELECT iif(ordered AND completed < emitted, emitted - completed, 0) AS beyond FROM spec, sums)
SELECT coalesce(
    (SELECT '''' || key || ''' is ' || value || ', must be a whole number from 0 to 16777216' FROM (
         SELECT * FROM json_each(?1) UNION ALL SELECT * FROM json_each(?1, '$.usage'))
     WHERE key IN ('prompt', 'turn', 'pass', 'prompt_tokens') AND type <> 'null'
         AND (type <> 'integer' OR value NOT BETWEEN 0 AND 16777216)),
    iif(ordered, (
        SELECT '''per_step_accepted'' and ''per_step_drafted'' must be lists of one length'
        WHERE json_type(s, '$.per_step_accepted') <> 'array' OR json_type(s, '$.per_step_drafted') = 'array'
            AND json_array_length(s, '$.per_step_drafted') <> json_array_length(s, '$.per_step_accepted')
        UNION ALL
        SELECT 'step ' || key || ' accepts more than it drafted, or has no counts' FROM part
        WHERE type <> 'integer' OR accepted NOT BETWEEN 0 AND 16777216 OR drafted < accepted OR drafted > 16777216 LIMIT 1), (
        SELECT 'the histogram must be a list or an object'
        WHERE coalesce(json_type(s, '$.acceptance_histogram'), '') NOT IN ('array', 'object')
        UNION ALL
        SELECT '''' || key || ''' of the histogram isn''t a length' FROM part
        WHERE key GLOB '*[^0-9]*' OR key = '' OR accepted > 4096
        UNION ALL
        SELECT 'entry ' || key || ' of the histogram isn''t a number of steps' FROM part
        WHERE type <> 'integer' OR times NOT BETWEEN 0 AND 16777216 LIMIT 1)),
    (SELECT 'more than 1048576 steps' WHERE steps > 1048576),
    (SELECT '''' || key || coalesce(''' is ' || json_extract(s, '$.' || key) || ', but its steps have ' || sum, ''' is missing')
     FROM (SELECT 'num_spec_steps' AS key, coalesce(steps, 0) AS sum FROM sums
           UNION ALL SELECT 'num_accepted_draft_tokens', coalesce(accepted, 0) FROM sums
           UNION ALL SELECT 'num_draft_tokens', drafted FROM sums WHERE drafted IS NOT NULL)
     WHERE json_extract(s, '$.' || key) IS NOT sum LIMIT 1)) AS error, NULL AS within,
    json_extract(?1, '$.model') AS model, json_extract(?1, '$.dataset') AS dataset, json_extract(?1, '$.method') AS method,
    json_extract(?1, '$.label') AS label, json_extract(?1, '$.id') AS name, json_extract(?1, '$.category') AS task,
    coalesce(json_extract(?1, '$.prompt'), ?2) AS prompt, json_extract(?1, '$.turn') AS turn, json_extract(?1, '$.pass') AS pass,
    json_extract(?1, '$.usage.prompt_tokens') AS prompt_tokens, 0 AS decode_s, NULL AS tokens, NULL AS steps,
    (SELECT json_group_array(json_array(times, accepted, emitted - iif(last AND beyond < emitted, beyond, 0), drafted))
     FROM (SELECT *, ordered AND key = max(key) OVER () AS last FROM part ORDER BY iif(ordered, key, accepted))) AS parts,
    NULL AS params, 0 AS once
FROM spec, sums, beyond

-- name: bench
-- All requests of a benchmark are one sample: its counts are sums, its time that of all. Position j's rate is the share of steps
-- that accepted j or more: with the number of steps a histogram, if it is one of whole steps and of all accepted tokens.
WITH o AS (
    SELECT json_extract(?1, '$.spec_decode_num_drafts') AS drafts, json_extract(?1, '$.spec_decode_accepted_tokens') AS accepted,
           json_extract(?1, '$.total_output_tokens') AS output, json_extract(?1, '$.duration') AS duration),
reached AS (
    SELECT -1 AS key, drafts AS at FROM o
    UNION ALL SELECT key, value * drafts FROM o, json_each(?1, '$.spec_decode_per_position_acceptance_rates')
    UNION ALL SELECT json_array_length(?1, '$.spec_decode_per_position_acceptance_rates'), 0),
part AS (
    SELECT key + 1 AS accepted, at, round(at) AS count, round(at) - lead(round(at)) OVER (ORDER BY key) AS times FROM reached)
SELECT CASE WHEN duration NOT BETWEEN 0 AND 1e8 THEN '''duration'' is ' || duration || ', must be from 0 to 1e8'
            WHEN drafts IS NULL THEN iif(typeof(output) <> 'integer' OR output NOT BETWEEN 1 AND 16777216,
                '''total_output_tokens'' is ' || coalesce(output, 'missing') || ', must be a whole number from 1 to 16777216', NULL)
            WHEN typeof(drafts) <> 'integer' OR drafts NOT BETWEEN 1 AND 16777216
                THEN '''spec_decode_num_drafts'' is ' || coalesce(drafts, 'missing') || ', must be a whole number from 1 to 16777216'
            WHEN typeof(accepted) <> 'integer' OR accepted NOT BETWEEN 0 AND 16777216
                THEN '''spec_decode_accepted_tokens'' is ' || coalesce(accepted, 'missing') || ', must be a whole number from 0 to 16777216'
       END AS error, NULL AS within,
       coalesce(json_extract(?1, '$.model_id'), json_extract(?1, '$.model')) AS model, json_extract(?1, '$.dataset') AS dataset,
       iif(drafts, json_extract(?1, '$.method'), 'autoregressive') AS method,
       iif(drafts, json_extract(?1, '$.label'), 'autoregressive') AS label, 'all requests' AS name, NULL AS task,
       0 AS prompt, json_extract(?1, '$.turn') AS turn, json_extract(?1, '$.pass') AS pass, NULL AS prompt_tokens,
       coalesce(duration, 0) AS decode_s, iif(drafts, drafts + accepted, output) AS tokens, coalesce(drafts, output) AS steps,
       (SELECT nullif(json_group_array(json_array(CAST(times AS INTEGER), accepted, accepted + 1, NULL)), '[]') FROM part
        WHERE times > 0 AND (SELECT count(*) > 2 AND min(times) >= 0 AND max(abs(at - count)) < 1e-3
                                    AND sum(count) - o.drafts = o.accepted AND o.drafts <= 1048576 FROM part)) AS parts,
       NULL AS params, 0 AS once
FROM o

-- name: lengths
-- specdec_bench's responses.
WITH length AS (SELECT key, type, value FROM json_each(?1, '$.acceptance_lengths'))
SELECT coalesce(
           (SELECT '''' || key || ''' is ' || value || ', must be a whole number from 0 to 16777216' FROM json_each(?1)
            WHERE key IN ('prompt', 'turn', 'pass', 'question_id') AND type <> 'null'
                AND (type <> 'integer' OR value NOT BETWEEN 0 AND 16777216)),
           (SELECT 'entry ' || key || ' of ''acceptance_lengths'' isn''t a number of tokens' FROM length
            WHERE type <> 'integer' OR value NOT BETWEEN 0 AND 16777216)) AS error, NULL AS within,
       json_extract(?1, '$.model') AS model, json_extract(?1, '$.dataset') AS dataset, json_extract(?1, '$.method') AS method,
       json_extract(?1, '$.label') AS label, CAST(coalesce(json_extract(?1, '$.question_id'), ?2) AS TEXT) AS name,
       json_extract(?1, '$.category') AS task, coalesce(json_extract(?1, '$.question_id'), ?2) AS prompt,
       json_extract(?1, '$.turn') AS turn, json_extract(?1, '$.pass') AS pass, json_extract(?1, '$.usage.prompt_tokens') AS prompt_tokens,
       0 AS decode_s, NULL AS tokens, NULL AS steps,
       (SELECT json_group_array(json_array(1, max(value - 1, 0), value, NULL)) FROM length) AS parts, NULL AS params, 0 AS once

-- name: acceptance
-- specdec_bench's acceptance_rate.json has lengths of requests as means, and of all steps as a histogram: all requests are one
-- sample.
WITH part AS (
    SELECT key, type, value AS times, CAST(key AS INTEGER) AS length FROM json_each(?1, '$.Acceptance_Length_Histogram'))
SELECT (SELECT 'the histogram must be a list or an object'
        WHERE json_type(?1, '$.Acceptance_Length_Histogram') NOT IN ('array', 'object')
        UNION ALL
        SELECT '''' || key || ''' of the histogram isn''t a length' FROM part WHERE key GLOB '*[^0-9]*' OR key = '' OR length > 4096
        UNION ALL
        SELECT 'entry ' || key || ' of the histogram isn''t a number of steps' FROM part
        WHERE type <> 'integer' OR times NOT BETWEEN 0 AND 16777216
        UNION ALL SELECT 'more than 1048576 steps' WHERE (SELECT sum(times) FROM part WHERE type = 'integer' AND times < 16777217) > 1048576
        UNION ALL SELECT 'the histogram is empty' WHERE NOT EXISTS (SELECT 1 FROM part WHERE times > 0) LIMIT 1) AS error,
       NULL AS within, json_extract(?1, '$.model') AS model, json_extract(?1, '$.dataset') AS dataset,
       json_extract(?1, '$.method') AS method, json_extract(?1, '$.label') AS label, 'all requests' AS name,
       json_extract(?1, '$.category') AS task, ?2 AS prompt, NULL AS turn, NULL AS pass, NULL AS prompt_tokens, 0 AS decode_s,
       NULL AS tokens, NULL AS steps,
       (SELECT json_group_array(json_array(times, max(length - 1, 0), length, NULL)) FROM (SELECT * FROM part ORDER BY length))
           AS parts, NULL AS params, 0 AS once

-- name: specforge
-- The file has only means. Every point gets 10 million tokens, so that their times compare; the steps are as many as make the
-- mean, to seven digits. The baseline of a batch is repeated under each setting.
WITH benchmark AS (
    SELECT m.key AS model, b.key AS dataset, m.type AS type, b.value AS b
    FROM json_each(?1) AS m LEFT JOIN json_each(iif(m.type = 'object', m.value, json_object())) AS b),
result AS (
    SELECT model, dataset, r.key AS number, r.value AS r, json_type(r.value, '$.metrics') AS metrics
    FROM benchmark, json_each(iif(json_type(b, '$.results') = 'array', b, json_object()), '$.results') AS r),
metric AS (
    SELECT result.*, m.value AS m, json_extract(m.value, '$.Name') AS name, json_extract(m.value, '$.accept_length') AS length,
           json_extract(m.value, '$.output_throughput') AS rate,
           json_extract(m.value, '$.Name') GLOB 'Wi[ht][ht]out *' AS base, -- as the file spells it, or as it should
           json_array(json_array('generation', 'batch_size', coalesce(json_extract(r, '$.batch_size'), 1)),
                      json_array('method', 'steps', coalesce(json_extract(r, '$.steps'), 0)),
                      json_array('method', 'topk', coalesce(json_extract(r, '$.topk'), 0)),
                      json_array('method', 'num_draft_tokens', coalesce(json_extract(r, '$.num_draft_tokens'), 0))) AS params
    FROM result, json_each(iif(metrics = 'array', r, json_object()), '$.metrics') AS m)
SELECT iif(type = 'object', 'has no list ''results''', '''' || model || ''' isn''t an object of benchmarks') AS error,
       iif(type = 'object', model || ', ' || dataset, NULL) AS within, NULL AS model, NULL AS dataset, NULL AS method, NULL AS label,
       NULL AS name, NULL AS task, 0 AS prompt, NULL AS turn, NULL AS pass, NULL AS prompt_tokens, 0 AS decode_s, 0 AS tokens,
       0 AS steps, NULL AS parts, NULL AS params, 0 AS once
FROM benchmark
WHERE type <> 'object' OR dataset IS NOT NULL AND coalesce(json_type(b, '$.results'), '') <> 'array'
UNION ALL
SELECT 'result ' || (number + 1) || ' has no ''metrics''', model || ', ' || dataset, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL,
       0, 0, 0, NULL, NULL, 0
FROM result WHERE coalesce(metrics, '') <> 'array'
UNION ALL
SELECT coalesce(
           (SELECT '''' || key || ''' is ' || value || ', must be a whole number from 0 to 16777216' FROM json_each(r)
            WHERE key IN ('batch_size', 'steps', 'topk', 'num_draft_tokens') AND type <> 'null'
                AND (type <> 'integer' OR value NOT BETWEEN 0 AND 16777216)),
           CASE WHEN typeof(name) <> 'text' THEN '''Name'' is missing or isn''t a text'
                WHEN coalesce(length NOT BETWEEN 1 AND 4096, 1)
                    THEN '''accept_length'' is ' || coalesce(length, 'missing') || ', must be from 1 to 4096'
                WHEN rate NOT BETWEEN 0 AND 1e12 THEN '''output_throughput'' must be from 0 to 1e12' END),
       model || ', ' || dataset, model, dataset, iif(base, 'autoregressive', NULL),
       iif(base, 'autoregressive', printf('%s %d-%d-%d-%d', name, json_extract(params, '$[0][2]'), json_extract(params, '$[1][2]'),
                                          json_extract(params, '$[2][2]'), json_extract(params, '$[3][2]'))),
       'all requests', NULL, 0, NULL, NULL, NULL, iif(rate > 0, 1e7 / rate, 0), 10000000, CAST(1e7 / length + 0.5 AS INTEGER),
       NULL, iif(base, json_array(json(json_extract(params, '$[0]'))), params), base
FROM metric

-- name: specbench
-- Steps, tokens and times of Spec-Bench's answers include prefill, which cannot be separated again: S is Spec-Bench's own. Only the
-- first choice of a line counts, as in Spec-Bench. Its accept_lengths go on over the turns; a turn's share makes its steps if it
-- agrees with their number and tokens.
WITH answer AS (
    SELECT json_extract(?1, '$.question_id') AS id, json_extract(?1, '$.choices[0]') AS c),
turn AS (
    SELECT t.key AS turn, t.value AS text, s.value AS steps, n.value AS tokens, w.value AS time,
           coalesce(sum(s.value) OVER (ORDER BY t.key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS first
    FROM answer, json_each(c, '$.turns') AS t LEFT JOIN json_each(c, '$.decoding_steps') AS s ON s.key = t.key
    LEFT JOIN json_each(c, '$.new_tokens') AS n ON n.key = t.key LEFT JOIN json_each(c, '$.wall_time') AS w ON w.key = t.key),
entry AS (
    SELECT turn, 'decoding_steps' AS list, 1048576 AS most, steps AS value FROM turn
    UNION ALL SELECT turn, 'new_tokens', 16777216, tokens FROM turn UNION ALL SELECT turn, 'wall_time', 100000000, time FROM turn
    UNION ALL SELECT key, 'accept_lengths', 16777216, value FROM answer, json_each(c, '$.accept_lengths'))
SELECT coalesce(
           iif(typeof(id) = 'integer' AND id BETWEEN 0 AND 16777216, NULL, '''question_id'' must be a whole number from 0 to 16777216'),
           iif(json_array_length(c, '$.turns') BETWEEN 1 AND 64 AND json_array_length(c, '$.turns') = json_array_length(c, '$.decoding_steps')
                   AND json_array_length(c, '$.turns') = json_array_length(c, '$.new_tokens')
                   AND json_array_length(c, '$.turns') = json_array_length(c, '$.wall_time'), NULL,
               'a choice needs ''turns'', ''decoding_steps'', ''new_tokens'' and ''wall_time'' of equal length'),
           (SELECT 'entry ' || turn || ' of ''' || list || ''' must be a number from 0 to ' || most FROM entry
            WHERE typeof(value) NOT IN ('integer', 'real') OR value NOT BETWEEN 0 AND most)) AS error, NULL AS within,
       NULL AS model, NULL AS dataset, NULL AS method, NULL AS label, CAST(id AS TEXT) AS name, json_extract(?1, '$.category') AS task,
       id AS prompt, turn, NULL AS pass, NULL AS prompt_tokens, time AS decode_s, tokens, steps,
       (SELECT iif(count(*) = CAST(steps AS INTEGER) AND sum(value) = tokens, json_group_array(json_array(1, max(value - 1, 0), value, NULL)), NULL)
        FROM (SELECT CAST(value AS INTEGER) AS value FROM json_each(c, '$.accept_lengths')
              WHERE key >= first AND key < first + steps ORDER BY key)) AS parts, NULL AS params, 0 AS once, text
FROM answer LEFT JOIN turn
