-- The store as it looks when only the points temp.chosen and the models temp.chosen_model are asked for.

-- A surface may have been measured of the same weights under another name.
INSERT OR IGNORE INTO temp.chosen_model
SELECT id FROM main.model WHERE hash IN (SELECT hash FROM main.model WHERE id IN (SELECT id FROM temp.chosen_model));

CREATE TEMP VIEW point AS SELECT * FROM main.point WHERE id IN (SELECT id FROM temp.chosen);
CREATE TEMP VIEW IF NOT EXISTS result AS SELECT * FROM main.result WHERE point_id IN (SELECT id FROM temp.chosen);
CREATE TEMP VIEW IF NOT EXISTS task_matrix AS
SELECT m.* FROM main.task_matrix AS m JOIN main.point AS p ON p.run_id = m.run_id AND p.number = m.point
WHERE p.id IN (SELECT id FROM temp.chosen);
CREATE TEMP VIEW surface AS SELECT * FROM main.surface WHERE model_id IN (SELECT id FROM temp.chosen_model);
CREATE TEMP VIEW IF NOT EXISTS heat AS SELECT * FROM main.heat WHERE model_id IN (SELECT id FROM temp.chosen_model);
