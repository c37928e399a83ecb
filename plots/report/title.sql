-- Machine and time are those of its last start.
SELECT 'Run ' || run.id || ', ' || run.name || coalesce(', ' || unfinished, '') || coalesce(': ' || about, ''),
       strftime('%Y-%m-%d %H:%M UTC', started, 'unixepoch') || coalesce(' on ' || coalesce(gpu || ' beside ', '') || cpu, '') ||
       coalesce(', ' || nullif(cores, 0) || ' cores', '') || iif(virtual_machine, ', a virtual machine', '') ||
       iif(run.kind = 'import', ', imported', ', by outpace ' || run.version)
FROM run JOIN run_state ON run_state.run_id = run.id JOIN attempt ON attempt.run_id = run.id
JOIN environment ON environment.id = environment_id WHERE run.id = ?1 ORDER BY attempt.id DESC LIMIT 1;
