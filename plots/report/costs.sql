SELECT number AS point, label AS method, CASE name WHEN 'open' THEN 'opening the method' WHEN 'state' THEN 'memory at its end' ELSE name END AS cost,
       1e-9 * nullif(ns, 0) AS seconds, nullif(bytes, 0) AS bytes
FROM point JOIN one_off ON point_id = point.id WHERE run_id = ?1 AND (ns >= 1e6 OR bytes > 0)
ORDER BY number, name;
