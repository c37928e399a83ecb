-- Events of run ?1 in the JSON of Chrome's traces, which Perfetto reads, an event a row: a point is a process, a prompt's turn a
-- thread, prefill and each step a slice, the parts of a step slices in it. Times in microseconds since the run's first sample
-- began; of a batch, each sequence's part.
WITH sequence AS (
    SELECT sample.id AS sample_id, point.number AS pid, 1 + prompt.id AS tid, label || ', ' || model.name AS point,
           dataset.name || ' ' || coalesce(prompt.name, prompt.number) || iif(turn, ', turn ' || (turn + 1), '') AS name, pass, prefill_tokens,
           prompt_tokens, coalesce(prefill_ns, 0) AS prefill_ns,
           CAST(round((started - min(started) OVER ()) * 1e9) AS INTEGER) AS began
    FROM point JOIN sample ON point_id = point.id JOIN prompt ON prompt.id = prompt_id JOIN dataset ON dataset.id = prompt.dataset_id
    JOIN model ON model.id = model_id WHERE run_id = ?1),
timed AS (
    SELECT t.*, pid, tid, began + prefill_ns AS first, coalesce(propose_ns, 0) AS propose, coalesce(forward_ns, 0) AS forward,
           coalesce(verify_ns, 0) AS verify, coalesce(observe_ns, 0) AS observe
    FROM sequence JOIN step_told AS t USING (sample_id)),
placed AS (
    SELECT *, propose + forward + verify + observe AS whole,
           first + coalesce(sum(propose + forward + verify + observe) OVER (
               PARTITION BY sample_id ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS began
    FROM timed),
slice AS (
    SELECT pid, tid, sample_id, -1 AS step, 0 AS place, 'prefill' AS name, began, prefill_ns AS ns,
           json_object('pass', pass, 'prompt_tokens', prompt_tokens) AS args
    FROM sequence
    UNION ALL
    SELECT pid, tid, sample_id, number, 0, 'step ' || (number + 1), began, whole,
           json_object('context', context, 'rows', rows, 'candidates', candidates, 'accepted', accepted, 'emitted', emitted,
                       'source', source, 'rank', rank, 'device_ms', device_ns / 1e6)
    FROM placed
    UNION ALL SELECT pid, tid, sample_id, number, 1, 'propose', began, propose, '{}' FROM placed
    UNION ALL SELECT pid, tid, sample_id, number, 2, 'forward', began + propose, forward, '{}' FROM placed
    UNION ALL SELECT pid, tid, sample_id, number, 3, 'verify', began + propose + forward, verify, '{}' FROM placed
    UNION ALL SELECT pid, tid, sample_id, number, 4, 'observe', began + whole - observe, observe, '{}' FROM placed)
SELECT json_object('ph', 'M', 'name', 'process_name', 'pid', pid, 'args', json_object('name', point)) AS event FROM sequence GROUP BY pid
UNION ALL
SELECT json_object('ph', 'M', 'name', 'thread_name', 'pid', pid, 'tid', tid, 'args', json_object('name', name)) FROM sequence GROUP BY pid, tid
UNION ALL
SELECT event FROM (
    SELECT json_object('ph', 'X', 'name', name, 'cat', iif(place, 'part', 'step'), 'pid', pid, 'tid', tid, 'ts', began / 1e3, 'dur', ns / 1e3,
                       'args', json(args)) AS event
    FROM slice ORDER BY sample_id, step, place)
