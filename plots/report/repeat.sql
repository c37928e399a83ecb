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
SELECT 'What the command line changed in it:', overrides FROM run WHERE id = ?1 AND overrides IS NOT NULL AND overrides NOT IN ('', '[]');
