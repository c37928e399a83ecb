-- Words are in single quotes where a shell would read more into them.
SELECT 'With outpace ' || version || iif(dirty, ' (its commit does not tell all of the code)', '') || ', run:' AS says,
       'outpace ' || (SELECT group_concat(iif(value GLOB '*[^-A-Za-z0-9_./=,:]*' OR value = '', '''' || replace(value, '''', '''\''''') || '''', value), ' ')
        FROM (SELECT value FROM attempt, json_each(attempt.argv)
              WHERE attempt.id = (SELECT min(id) FROM attempt WHERE run_id = ?1) ORDER BY "key")) AS code
FROM run WHERE id = ?1
UNION ALL
SELECT 'The config, ' || coalesce(config_file, 'as it was written') || ':', config FROM run WHERE id = ?1 AND config IS NOT NULL
UNION ALL
SELECT 'What the command line changed in it:', overrides FROM run WHERE id = ?1 AND overrides IS NOT NULL AND overrides NOT IN ('', '[]');
