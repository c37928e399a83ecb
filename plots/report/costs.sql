SELECT number AS point, label AS method, iif(name = 'open', 'opening the method', name) AS cost,
       1e-9 * ns AS seconds, nullif(bytes, 0) AS bytes
FROM point JOIN one_off ON point_id = point.id WHERE run_id = ?1 AND (ns >= 1e6 OR bytes > 0)
ORDER BY number, name;
