SELECT kind, name, path, hash AS "SHA-256" FROM content WHERE run_id = ?1
UNION ALL SELECT 'run', name, config_file, hash FROM run WHERE id = ?1;
