SELECT number AS point, label AS method, name AS cost, 1e-9 * ns AS seconds, bytes
FROM point JOIN one_off ON point_id = point.id WHERE run_id = ?1
ORDER BY number, name;
