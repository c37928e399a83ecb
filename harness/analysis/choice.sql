-- Names that a choice may mean, and the rows it chooses from.

-- name: model
SELECT EXISTS (SELECT 1 FROM model WHERE name = ?1)

-- name: dataset
SELECT EXISTS (SELECT 1 FROM dataset WHERE name = ?1)

-- name: method
SELECT EXISTS (SELECT 1 FROM point WHERE method = ?1)

-- name: label
SELECT EXISTS (SELECT 1 FROM point WHERE label = ?1)

-- name: rows
-- Points, and surfaces, which have a model only.
SELECT run_id, model.id, point.id, model.name, dataset.name, method, label
FROM point JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id
UNION ALL SELECT DISTINCT attempt.run_id, model.id, NULL, model.name, NULL, NULL, NULL
FROM surface JOIN attempt ON attempt.id = attempt_id JOIN model ON model.id = model_id
