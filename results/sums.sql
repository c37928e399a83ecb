-- Samples whose sums are not those of their steps (invariant 2 of schema.sql): the place and the sum of each, and their number.
-- Steps that an import left out can't be compared. A time may differ by the rounding of every step's.
WITH scan AS (
    SELECT sample_id, count(*) AS steps, sum(emitted) AS tokens, sum(kind = 1) AS filling_steps, sum(accepted) AS accepted,
        iif(count(rows) = count(*), sum(rows), NULL) AS rows, iif(count(asked) = count(*), sum(asked), NULL) AS asked,
        iif(count(drafted) = count(*), sum(drafted), NULL) AS drafted, iif(count(tried) = count(*), sum(tried), NULL) AS tried,
        iif(count(propose_ns) = count(*), sum(propose_ns), NULL) AS propose_ns,
        iif(count(forward_ns) = count(*), sum(forward_ns), NULL) AS forward_ns,
        iif(count(verify_ns) = count(*), sum(verify_ns), NULL) AS verify_ns,
        iif(count(observe_ns) = count(*), sum(observe_ns), NULL) AS observe_ns,
        iif(count(device_ns) = count(*), sum(device_ns), NULL) AS device_ns
    FROM step GROUP BY sample_id),
pair AS (
    SELECT x.id, key AS name, json_extract(value, '$[0]') AS stored, json_extract(value, '$[1]') AS scanned,
        n.steps * (key GLOB '*_ns') AS rounding
    FROM sample AS x JOIN scan AS n ON n.sample_id = x.id, json_each(json_object(
        'steps', json_array(x.steps, n.steps), 'tokens', json_array(x.tokens, n.tokens),
        'filling_steps', json_array(x.filling_steps, n.filling_steps), 'accepted', json_array(x.accepted, n.accepted),
        'rows', json_array(x.rows, n.rows), 'asked', json_array(x.asked, n.asked),
        'drafted', json_array(x.drafted, n.drafted), 'tried', json_array(x.tried, n.tried),
        'propose_ns', json_array(x.propose_ns, n.propose_ns), 'forward_ns', json_array(x.forward_ns, n.forward_ns),
        'verify_ns', json_array(x.verify_ns, n.verify_ns), 'observe_ns', json_array(x.observe_ns, n.observe_ns),
        'device_ns', json_array(x.device_ns, n.device_ns)))),
wrong AS (
    SELECT id, name || ' is ' || coalesce(stored, 'unknown') || ', but its steps give ' || coalesce(scanned, 'none') AS what
    FROM pair WHERE coalesce(abs(stored - scanned) > rounding, stored IS NOT scanned)
    UNION ALL
    SELECT sample.id, 'it has ' || steps || ' steps, and none of them is there'
    FROM sample JOIN point ON point.id = point_id JOIN run ON run.id = run_id
    WHERE steps > 0 AND kind <> 'import' AND NOT EXISTS (SELECT 1 FROM step WHERE sample_id = sample.id)
    UNION ALL
    SELECT sample_id, 'sample_accept is not what its steps give' FROM (
        SELECT sample_id, kind, accepted, count(*) AS steps FROM step GROUP BY sample_id, kind, accepted
        UNION ALL SELECT sample_id, kind, accepted, steps FROM sample_accept)
    GROUP BY sample_id, kind, accepted, steps HAVING count(*) <> 2
    UNION ALL
    SELECT sample_id, 'sample_source is not what its steps give' FROM (
        SELECT sample_id, source_id, sum(rows) AS rows, count(*) AS steps, sum(won) AS won, sum(won * length) AS tokens
        FROM step_source GROUP BY sample_id, source_id
        UNION ALL SELECT sample_id, source_id, rows, steps, won, tokens FROM sample_source)
    GROUP BY sample_id, source_id, rows, steps, won, tokens HAVING count(*) <> 2
    UNION ALL
    SELECT sample_id, 'sample_rank is not what its steps give' FROM (
        SELECT sample_id, source_id, length, rank, count(*) AS steps FROM step_source WHERE won
        GROUP BY sample_id, source_id, length, rank
        UNION ALL SELECT sample_id, source_id, length, rank, steps FROM sample_rank)
    GROUP BY sample_id, source_id, length, rank, steps HAVING count(*) <> 2)
SELECT 'run ' || run_id || ', point ' || point.number || ', pass ' || pass || ', prompt ' || prompt.number || ', turn ' || turn
       || ': ' || min(what), count(*) OVER ()
FROM wrong JOIN sample ON sample.id = wrong.id JOIN point ON point.id = point_id JOIN prompt ON prompt.id = prompt_id
GROUP BY sample.id ORDER BY sample.id;
