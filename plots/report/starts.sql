SELECT datetime(started, 'unixepoch') || ' UTC' AS started, datetime(ended, 'unixepoch') || ' UTC' AS ended,
       coalesce(result, 'runs, or was killed') AS result,
       (SELECT count(*) FROM sample WHERE attempt_id = attempt.id) AS samples
FROM attempt WHERE run_id = ?1 ORDER BY id;
