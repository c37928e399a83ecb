-- The sections of a report of run ?1, by name; ?2: ReportOptions.computed (plots.h). Other commands ask doubt, tasks, priced and summary,
-- too.

-- name: surface
-- The newest run with a surface of its own, or of its models: adapters and drafts don't make them others.
SELECT max(attempt.run_id) FROM attempt JOIN surface ON attempt_id = attempt.id JOIN model ON model.id = model_id
WHERE attempt.run_id = ?1 OR model.hash IN (SELECT m.hash FROM point JOIN model AS m ON m.id = point.model_id WHERE run_id = ?1
                                            UNION SELECT hash FROM content WHERE run_id = ?1 AND kind = 'weights')

-- name: title
-- Machine and time are those of its last start.
SELECT 'Run ' || run.id || ', ' || run.name || coalesce(', ' || unfinished, '') || coalesce(': ' || about, ''),
       strftime('%Y-%m-%d %H:%M UTC', started, 'unixepoch') || coalesce(' on ' || coalesce(gpu || ' with ', '') || cpu, '') ||
       coalesce(', ' || nullif(cores, 0) || ' cores', '') || iif(virtual_machine, ', a virtual machine', '') ||
       iif(run.kind = 'import', ', imported', ', by outpace ' || run.version)
FROM run JOIN run_state ON run_state.run_id = run.id JOIN attempt ON attempt.run_id = run.id
JOIN environment ON environment.id = environment_id WHERE run.id = ?1 ORDER BY attempt.id DESC LIMIT 1

-- name: doubt
-- What disturbed run ?1, and the mark of its tables; no row where nothing did.
SELECT iif(disturbed, printf('something disturbed %d of %d samples (other processes, or changing clocks); ', disturbed, samples), '') ||
       iif(doubtful, '* marks times in doubt; ', '') || iif(above_S, 'a speedup above S means a disturbed baseline; ', '') ||
       'S and texts are not affected'
FROM (SELECT sum(disturbed) AS disturbed, max(doubtful) AS doubtful, max(above_S) AS above_S,
             (SELECT count(*) FROM sample WHERE point_id IN (SELECT id FROM point WHERE run_id = ?1)) AS samples
      FROM point JOIN point_doubt ON point_id = point.id WHERE run_id = ?1)
WHERE disturbed OR doubtful

-- name: summary
-- What to tell of run ?1: the method that gains most both here and on the machine of ?2, if its text is the baseline's.
WITH priced AS (
    SELECT json_extract(value, '$.point') AS number, json_extract(value, '$.speedup') AS speedup
    FROM json_each(?2, '$.prediction.points'))
SELECT 'On ' || iif(prompts = 1, 'this prompt ', 'these ' || prompts || ' prompts ') || method || ' wrote ' || printf('%.1f', S) ||
       ' tokens a step, the same text' || iif(prompts = 1, '', ' in every one') || '; here that is ' ||
       printf('%.1f', result.speedup) || ' times as fast as one token at a time' ||
       iif(doubtful, ' (in doubt: the machine was busy)', '') || ', and on ' ||
       replace(json_extract(?2, '$.prediction.machine'), ', measured', '') || ', at the size of ' ||
       json_extract(?2, '$.prediction.shape') || ', it would be ' || printf('%.1f', priced.speedup) || ' times (priced).' AS says
FROM result JOIN priced USING (number) JOIN point_doubt USING (point_id)
WHERE run_id = ?1 AND same_text = 'yes' AND method <> 'oracle' AND result.speedup IS NOT NULL
ORDER BY min(result.speedup, priced.speedup) DESC LIMIT 1

-- name: verdict
-- The best point of each model and dataset, by how much, and whether its text is the baseline's; and where nobody knows by
-- how much. kind: finding (a method is faster, of which nothing makes doubt), open, or bad (it is not lossless).
WITH setting AS (
    SELECT *, row_number() OVER (PARTITION BY model, dataset, temperature
                                 ORDER BY diverged > 0 AND temperature = 0, speedup DESC NULLS LAST, number) AS place
    FROM result JOIN point_doubt USING (point_id)
    JOIN (SELECT point.id AS point_id, json_extract(shape, '$.quantised') AS quantised
          FROM point JOIN model ON model.id = model_id) USING (point_id)
    WHERE run_id = ?1 AND baseline_id IS NOT NULL AND speedup IS NOT NULL),
lost AS (
    SELECT model, dataset, temperature, count(*) AS points FROM setting WHERE diverged > 0 AND temperature = 0
    GROUP BY model, dataset, temperature)
SELECT * FROM (SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END ||
       coalesce(' (stand-in: ' || stand_in || ')', '') || coalesce(' (quantised: ' || quantised || ')', '') AS about,
       label || ': S = ' || measured(S, S_low, S_high) || ' tokens a step over ' || prompts || iif(prompts = 1, ' prompt', ' prompts') ||
       iif(above_S, ', and it seems ', ', and ') || measured(speedup, speedup_low, speedup_high) || iif(doubtful, ' times*', ' times') || ' as fast as its baseline' ||
       CASE WHEN few IS NOT NULL THEN ': too few to say, ' || few
            WHEN above_S THEN ': nothing can be said'
            WHEN speedup > 1 AND coalesce(speedup_low, speedup) > 1 THEN ', the fastest'
            WHEN speedup > 1 OR speedup_high > 1 THEN ', the nearest: no method is surely faster'
            ELSE ', the nearest: no method is faster' END || '. ' ||
       coalesce('In doubt: ' || reason || '. ', '') ||
       CASE WHEN temperature > 0 THEN 'Its text is sampled: ''outpace verify'' tests that.'
            WHEN diverged > 0 THEN 'NOT lossless: ' || diverged || ' of its ' || samples || ' texts are not the baseline''s.'
            WHEN (SELECT kind FROM run WHERE id = ?1) = 'import' THEN 'Whether its texts are the baseline''s was not compared.'
            ELSE 'Lossless here: each of its ' || samples || ' texts is the baseline''s.' END ||
       coalesce(' NOT lossless here: ' || points || iif(points = 1, ' other setting, which is', ' other settings, which are') || ' left out.', '') AS says,
       CASE WHEN diverged > 0 AND temperature = 0 THEN 'bad'
            WHEN few IS NULL AND NOT doubtful AND coalesce(speedup_low, 0) > 1 THEN 'finding' ELSE 'open' END AS kind
FROM setting LEFT JOIN lost USING (model, dataset, temperature)
WHERE place = 1
ORDER BY model, dataset, temperature)
UNION ALL
SELECT * FROM (SELECT model || ', ' || dataset AS about, group_concat(label, ', ') || ': no speedup is known, as no autoregressive baseline was '
       || 'imported with it (''outpace store import'' with --baseline FILE, or with its lines in the same file).' AS says, 'open' AS kind
FROM result WHERE run_id = ?1 AND samples > 0 AND base_id IS NULL
GROUP BY model, dataset ORDER BY model, dataset)

-- name: points
-- Intervals stand behind their values, in one text: it sorts by the value. *: the times are in doubt.
SELECT label AS method, measured(S, S_low, S_high) AS S,
       coalesce(measured(speedup, speedup_low, speedup_high) || iif(doubtful, ' *', ''), '-') AS speedup,
       same_text AS "same text",
       model, dataset, prompts, number AS point, rows_per_step AS "rows a step",
       coalesce((SELECT measured(value, low, high) FROM estimate WHERE point_id = result.point_id AND metric = 'tokens_per_s'),
                measured(tokens_per_s, NULL, NULL)) AS "tokens/s", speedup_e2e AS "with prefill", speedup_specbench AS "as Spec-Bench",
       speedup_same_path AS "over own settings", S_reference AS "S with prefill", passes, printf('%g', temperature) AS temperature
FROM result LEFT JOIN point_doubt USING (point_id) WHERE run_id = ?1 AND result.samples > 0
ORDER BY model, dataset, result.temperature, baseline_id IS NOT NULL, result.speedup DESC

-- name: against
-- In short, how run ?1 and another compare (?2).
SELECT 'Run ' || run.id || ', ' || name || ', is B, and this run A: ' || json_extract(a, '$.says') ||
       iif(json_extract(a, '$.prompts') < 10, ', of fewer than ten prompts', '') ||
       iif(json_extract(a, '$.disturbed') > 0, ' (something disturbed ' || json_extract(a, '$.disturbed') || ' of ' ||
           json_extract(a, '$.samples') || ' samples)', '') || '. ' ||
       iif(json_extract(a, '$.of') = 'speedup', 'B''s speedups are ', 'By absolute times B is ') ||
       coalesce(measured(json_extract(a, '$.ratio'), json_extract(a, '$.low'), json_extract(a, '$.high')), 'an unknown number of') ||
       iif(json_extract(a, '$.of') = 'speedup', ' times A''s', ' times as fast as A') || ', over ' || json_extract(a, '$.prompts') ||
       iif(json_extract(a, '$.prompts') = 1, ' prompt', ' prompts') ||
       iif(alone, '; ' || alone || iif(alone = 1, ' point is', ' points are') || ' in one of the runs only.', '.') AS says
FROM run, (SELECT json_extract(?2, '$.against.all') AS a, json_extract(?2, '$.against.alone') AS alone)
WHERE run.id = json_extract(?2, '$.against.run')

-- name: pairs
-- Each pair of points of run ?1 and another (?2).
SELECT json_extract(value, '$.label') AS method, json_extract(value, '$.dataset') AS dataset, json_extract(value, '$.says') AS verdict,
       coalesce(measured(json_extract(value, '$.ratio'), json_extract(value, '$.low'), json_extract(value, '$.high')), '-') AS ratio,
       json_extract(value, '$.of') AS "of", json_extract(value, '$.prompts') AS prompts,
       json_extract(value, '$.disturbed') || ' of ' || json_extract(value, '$.samples') AS disturbed,
       json_extract(value, '$.S_a') AS "S of A", json_extract(value, '$.S_b') AS "S of B",
       json_extract(value, '$.speedup_a') AS "speedup of A", json_extract(value, '$.speedup_b') AS "speedup of B"
FROM json_each(?2, '$.against.points')

-- name: priced
-- The speedups of run ?1 here and as priced on another machine (?2). *: the times here are in doubt. A price of more rows than
-- the machine was fitted to has them behind it.
WITH priced AS (
    SELECT json_extract(value, '$.point') AS number, json_extract(value, '$.speedup') AS speedup,
           json_extract(value, '$.speedup_low') AS low, json_extract(value, '$.speedup_high') AS high,
           json_extract(value, '$.beyond_rows') AS beyond
    FROM json_each(?2, '$.prediction.points'))
SELECT label AS method, measured(S, S_low, S_high) AS S, rows_per_step AS rows, same_text AS "same text",
       coalesce(measured(result.speedup, speedup_low, speedup_high) || iif(doubtful, ' *', ''), '-') AS here,
       coalesce(measured(priced.speedup, low, high) ||
                coalesce(', ' || beyond || ' rows, fitted to ' || json_extract(?2, '$.prediction.most_rows'), ''), '-') AS priced,
       model, dataset, number AS point
FROM result JOIN priced USING (number) LEFT JOIN point_doubt USING (point_id) WHERE run_id = ?1 AND samples > 0
ORDER BY model, dataset, temperature, baseline_id IS NOT NULL, priced.speedup DESC

-- name: tasks
-- By category of data of several tasks, in the report, and in `outpace table tasks` as Markdown and LaTeX. Intervals are behind
-- their values, in one text: it sorts by the value.
SELECT model, dataset, task, point, method, prompts, measured(S, S_low, S_high) AS S,
       measured(acceptance, acceptance_low, acceptance_high) AS acceptance,
       measured(speedup, speedup_low, speedup_high) || iif(doubtful, ' *', '') AS speedup
FROM task_matrix WHERE run_id = ?1
ORDER BY model, dataset, task, point

-- name: published
-- Papers' numbers beside this run's (?2), computed as the paper does; a difference where both were measured on the same.
WITH entry AS (
    SELECT t."key" AS t, r."key" AS r, json_extract(t.value, '$.name') AS "table", json_extract(r.value, '$.row') AS row,
           json_extract(r.value, '$.model') AS model, json_extract(r.value, '$.dataset') AS dataset,
           nullif(json_extract(r.value, '$.task'), '') AS task, json_extract(r.value, '$.metric') AS metric,
           nullif(json_extract(r.value, '$.published'), '') AS published, json_extract(r.value, '$.ours') AS ours,
           json_extract(r.value, '$.low') AS low, json_extract(r.value, '$.high') AS high,
           json_extract(r.value, '$.difference') AS difference, json_extract(r.value, '$.difference_low') AS difference_low,
           json_extract(r.value, '$.difference_high') AS difference_high, nullif(json_extract(r.value, '$.why_not'), '') AS why_not,
           nullif(json_extract(r.value, '$.our_method'), '') AS our_method, json_extract(r.value, '$.our_model') AS our_model,
           nullif(json_extract(r.value, '$.our_dataset'), '') AS our_dataset, nullif(json_extract(r.value, '$.stand_in'), '') AS stand_in
    FROM json_each(?2, '$.tables') AS t, json_each(t.value, '$.rows') AS r
    WHERE json_extract(?2, '$.run') = ?1)
SELECT "table", row, model || ', ' || dataset || coalesce(', ' || task, '') AS "of", metric, published,
       measured(ours, low, high) AS ours,
       iif(difference IS NULL, 'none: ' || why_not,
           iif(difference >= 0, '+', '') || measured(difference, difference_low, difference_high)) AS difference,
       our_method AS method,
       nullif(our_model || coalesce(', ' || our_dataset, '') || coalesce(' (stand-in: ' || stand_in || ')', ''), '') AS "ours on"
FROM entry WHERE published IS NOT NULL ORDER BY t, r

-- name: missing
SELECT number AS point, model, dataset, label AS method,
       CASE WHEN skipped IS NOT NULL THEN 'skipped' WHEN failures > 0 THEN 'failed' ELSE 'not measured yet' END AS state,
       coalesce(skipped, (SELECT message FROM failure WHERE failure.point_id = result.point_id ORDER BY id DESC LIMIT 1)) AS why
FROM result WHERE run_id = ?1 AND (samples IS NULL OR failures > 0)
ORDER BY number

-- name: text
-- Points whose texts are the baseline's have its scores: one row says them for all of these points.
WITH scored AS (
    SELECT *, iif(base_id IS NOT NULL AND temperature = 0 AND coalesce(diverged, 0) = 0
                  AND (SELECT kind FROM run WHERE id = ?1) <> 'import', base_id, point_id) AS text_of
    FROM result JOIN point_score USING (point_id) WHERE run_id = ?1)
SELECT min(number) AS point, model, dataset,
       iif(count(DISTINCT point_id) = 1, label,
           (SELECT label FROM point WHERE id = text_of) || ', and ' || (count(DISTINCT point_id) - 1) || ' with the same texts') AS method,
       outputs, max(value) FILTER (WHERE metric = 'rouge1') AS "ROUGE-1",
       max(value) FILTER (WHERE metric = 'rouge2') AS "ROUGE-2", max(value) FILTER (WHERE metric = 'rougeL') AS "ROUGE-L"
FROM scored GROUP BY model, dataset, text_of
ORDER BY model, dataset, point

-- name: fits
-- Laws fitted to this run (?2): by the estimator that is held best.
WITH fits AS (
    SELECT model.name AS model, dataset.name AS dataset, json_extract(f.value, '$.fit') AS fit
    FROM json_each(?2, '$.fits') AS f
    JOIN point ON point.id = json_extract(f.value, '$.points_of[0]') JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
    WHERE run_id = ?1 AND json_extract(f.value, '$.fit') IS NOT NULL),
best AS (SELECT *, json_extract(fit, '$.' || json_extract(fit, '$.estimator')) AS best FROM fits)
SELECT model, dataset, iif(json_extract(fit, '$.law') = 'paper', 'b = W = G', 'each step''s own candidates') AS law,
       json_extract(fit, '$.bonus') AS bonus, json_extract(fit, '$.filling') AS "filling, tokens of an output",
       json_extract(fit, '$.fitted') || ' of ' || json_extract(fit, '$.points') AS "points fitted",
       replace(json_extract(fit, '$.estimator'), '_', ' ') AS estimator,
       measured(json_extract(fit, '$.alpha.value'), json_extract(fit, '$.alpha.low'),
                json_extract(fit, '$.alpha.high')) AS alpha,
       measured(json_extract(fit, '$.f.value'), json_extract(fit, '$.f.low'),
                json_extract(fit, '$.f.high')) AS f,
       json_extract(best, '$.rms') AS "rms of residuals", json_extract(best, '$.condition') AS condition,
       json_extract(best, '$.correlation') AS correlation,
       (SELECT group_concat(value, '; ') FROM json_each(best, '$.warnings')) AS warnings
FROM best ORDER BY model, dataset, law

-- name: residuals
-- What the fitted law says of each point (?2), and how far off it is.
SELECT model.name AS model, dataset.name AS dataset, json_extract(p.value, '$.N') AS N, json_extract(p.value, '$.W') AS W,
       json_extract(p.value, '$.G') AS G, json_extract(p.value, '$.S') AS S,
       measured(json_extract(p.value, '$.predicted'), json_extract(p.value, '$.low'),
                json_extract(p.value, '$.high')) AS law,
       json_extract(p.value, '$.predicted') - json_extract(p.value, '$.S') AS error,
       iif(json_extract(p.value, '$.fitted'), 'fitted', 'predicted') AS point
FROM json_each(?2, '$.fits') AS f
JOIN point ON point.id = json_extract(f.value, '$.points_of[0]') JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id,
json_each(f.value, '$.fit.predictions') AS p
WHERE run_id = ?1
ORDER BY model.name, dataset.name, f."key", N, W, G

-- name: rivals
-- How far off S is where a W, or an N, was left out of the fit (?2): the law, and other explanations.
SELECT model.name AS model, dataset.name AS dataset, coalesce(w."key", n."key") AS explanation,
       json_extract(w.value, '$.rms') AS "one W left out", json_extract(n.value, '$.rms') AS "one N left out"
FROM json_each(?2, '$.fits') AS f
JOIN point ON point.id = json_extract(f.value, '$.points_of[0]') JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
JOIN (json_each(f.value, '$.fit.leave_one_W_out')) AS w
LEFT JOIN json_each(f.value, '$.fit.leave_one_N_out') AS n ON n."key" = w."key"
WHERE run_id = ?1 ORDER BY model.name, dataset.name

-- name: costs
SELECT number AS point, label AS method, CASE name WHEN 'open' THEN 'opening the method' WHEN 'state' THEN 'memory at its end' ELSE name END AS cost,
       1e-9 * nullif(ns, 0) AS seconds, nullif(bytes, 0) AS bytes
FROM point JOIN one_off ON point_id = point.id WHERE run_id = ?1 AND (ns >= 1e6 OR bytes > 0)
ORDER BY number, name

-- name: diverged
SELECT point.number AS point, label AS method, dataset.name AS dataset, coalesce(prompt.name, prompt.number) AS prompt, turn, pass,
       divergence.position AS "at token", wanted, got, margin
FROM point JOIN sample ON point_id = point.id JOIN divergence ON sample_id = sample.id JOIN prompt ON prompt.id = prompt_id
JOIN dataset ON dataset.id = prompt.dataset_id
WHERE run_id = ?1
ORDER BY point.number, prompt.number, turn, pass LIMIT 1000

-- name: disturbed
-- At most a thousand of them.
SELECT point.number AS point, label AS method, dataset.name AS dataset, coalesce(prompt.name, prompt.number) AS prompt, turn, pass,
       flag, meaning
FROM point JOIN flagged ON flagged.point_id = point.id JOIN prompt ON prompt.id = prompt_id JOIN dataset ON dataset.id = prompt.dataset_id
WHERE run_id = ?1
ORDER BY point.number, prompt.number, turn, pass, flag LIMIT 1000

-- name: drifted
SELECT context, printf('%.2f', drift) AS "one token's time, after the grid over before it"
FROM drifted WHERE run_id = ?1 ORDER BY context

-- name: environment
SELECT version AS outpace, compiler, flags, libraries, host, system, kernel, cpu, isa, governor, nullif(cores, 0) AS cores, nullif(threads, 0) AS threads,
       (SELECT weights FROM run_weights WHERE run_id = ?1) AS weights,
       iif(virtual_machine, 'yes', 'no') AS "virtual machine", nullif(l1d, 0) AS "L1 bytes", nullif(l2, 0) AS "L2 bytes", nullif(l3, 0) AS "L3 bytes",
       nullif(memory, 0) AS "memory bytes", bandwidth AS "bandwidth, bytes/s", peak AS "peak, operations/s",
       gpu, driver, cuda AS "CUDA", cublas AS "cuBLAS", gpu_memory AS "GPU memory bytes",
       gpu_bandwidth AS "GPU bandwidth, bytes/s", gpu_peak AS "GPU peak, operations/s"
FROM environment WHERE id IN (SELECT environment_id FROM attempt WHERE run_id = ?1)
ORDER BY id

-- name: starts
SELECT datetime(started, 'unixepoch') || ' UTC' AS started, datetime(ended, 'unixepoch') || ' UTC' AS ended,
       coalesce(result, 'runs, or was killed') AS result,
       (SELECT count(*) FROM sample WHERE attempt_id = attempt.id) AS samples
FROM attempt WHERE run_id = ?1 ORDER BY id

-- name: content
SELECT kind, name, path, hash AS "SHA-256" FROM content WHERE run_id = ?1
UNION ALL SELECT 'run', name, config_file, hash FROM run WHERE id = ?1

-- name: repeat
-- A shell's commands; the store is another one, since in its own nothing is left to run. Words are in single quotes where a
-- shell would read more into them.
WITH first AS (SELECT argv FROM attempt WHERE id = (SELECT min(id) FROM attempt WHERE run_id = ?1)),
word AS (
    SELECT "key" AS at, CASE WHEN value GLOB '--db=*' THEN '--db=repeat.db'
                             WHEN lag(value) OVER (ORDER BY "key") = '--db' THEN 'repeat.db' ELSE value END AS value
    FROM first, json_each(first.argv) WHERE NOT ("key" = 0 AND value = 'outpace')),
command AS (
    SELECT group_concat(iif(value GLOB '*[^-A-Za-z0-9_./=,:]*' OR value = '', '''' || replace(value, '''', '''\''''') || '''', value), ' ') ||
           iif(max(value GLOB '--db*'), '', ' --db repeat.db') AS text
    FROM (SELECT value FROM word ORDER BY at)),
needed AS (
    SELECT group_concat('# ' || kind || ' ' || name || coalesce(', ' || path, '') || ': ' || hash, char(10)) AS text,
           group_concat(iif(kind = 'dataset' AND path IS NULL, './outpace datasets ' || name || ' -n 1 # or how to fetch it' || char(10), ''), '') AS known
    FROM (SELECT * FROM content WHERE run_id = ?1 AND kind NOT IN ('machine', 'program') ORDER BY kind, name))
SELECT iif(kind = 'import', 'Imported by:', 'With outpace ' || version || iif(dirty, ' (its commit does not tell all of the code)', '') ||
                                           ', in a clone of its sources:') AS says,
       iif(version GLOB '*(*)', 'git checkout ' || replace(rtrim(substr(version, instr(version, '(') + 1), ')'), '-dirty', '') || ' && make' || char(10), '') ||
       iif(kind = 'import', '', coalesce(known, '')) || './outpace ' || command.text ||
       iif(kind = 'import', '', char(10) || './outpace sql "SELECT kind, name, hash FROM content" --db repeat.db') ||
       coalesce(char(10) || '# what was read here, by hashes of its content, which are not those of files:' || char(10) || needed.text, '') AS code
FROM run, command, needed WHERE run.id = ?1
UNION ALL
SELECT 'The config, ' || coalesce(config_file || ' (save it under this name, where the sources have none such)', 'as it was written') || ':', config FROM run WHERE id = ?1 AND config IS NOT NULL
UNION ALL
SELECT 'What the command line changed in it:', overrides FROM run WHERE id = ?1 AND overrides IS NOT NULL AND overrides NOT IN ('', '[]')

-- name: inside_steps
-- Steps of each point by their rows and the guesses that they accepted; ms: of one, the mean. The fastest points first, as a
-- page has room for so many.
SELECT point, rows, accepted, steps, emitted, ms FROM (
    SELECT result.number AS point, s.rows, s.accepted, count(*) AS steps, avg(s.emitted) AS emitted,
           avg(s.propose_ns + s.forward_ns + s.verify_ns + s.observe_ns) / 1e6 AS ms, speedup
    FROM result JOIN sample USING (point_id) JOIN step AS s ON s.sample_id = sample.id
    WHERE run_id = ?1 AND s.kind < 2 GROUP BY point_id, s.rows, s.accepted)
ORDER BY speedup DESC NULLS LAST, point, rows, accepted LIMIT 8000

-- name: inside_prompts
-- Prompts of each point, means over its passes.
SELECT number AS point, prompt, turn, tokens / steps AS S, steps, decode_ns / 1e6 AS ms, speedup FROM (
    SELECT r.number, coalesce(prompt.name, prompt.number) || '' AS prompt, prompt.number AS place, turn, p.tokens, p.steps, p.decode_ns,
           (base_decode_ns / base_tokens) / (p.decode_ns / p.tokens) AS speedup, r.speedup AS best
    FROM result AS r JOIN prompt_speedup AS p USING (point_id) JOIN prompt ON prompt.id = p.prompt_id WHERE run_id = ?1)
ORDER BY best DESC NULLS LAST, point, place, turn LIMIT 8000

-- name: conditions
-- Of each measured point, for what shows under the pointer: its model, dataset, method, label, prompts, passes, samples, how
-- many of those were disturbed, the settings that everybody asks for or that differ in this run, and why its times are in doubt.
WITH named AS (
    SELECT section, name FROM point_param JOIN point ON point.id = point_id
    WHERE run_id = ?1 AND section IN ('generation', 'hardware') GROUP BY section, name
    HAVING count(DISTINCT value) > 1 OR name IN ('temperature', 'max_tokens', 'device', 'compute', 'layout', 'threads'))
SELECT json_group_array(json_array(
    number, model, dataset, method, label, prompts, passes, samples, coalesce(disturbed, 0),
    (SELECT group_concat(replace(name, '_', ' ') || ' ' || iif(name = 'threads' AND value = 0, 'all', value), ', ')
     FROM point_param JOIN named USING (section, name) WHERE point_id = result.point_id),
    iif(doubtful, doubt, NULL)))
FROM result LEFT JOIN point_doubt USING (point_id) WHERE run_id = ?1 AND samples > 0
