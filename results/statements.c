#include "results/statements.h"

const char *const statement_sql[STATEMENTS] = {
    [STATEMENT_VIEWS_SAME] = "SELECT 1 FROM main.made WHERE what = 'views' AND hash = ?1",
    [STATEMENT_VIEWS_SET] = "INSERT OR REPLACE INTO made (what, hash) VALUES ('views', ?1)",

    [STATEMENT_RUN_FIND] = "SELECT id FROM run WHERE hash = ?1 ORDER BY id DESC LIMIT 1",
    [STATEMENT_RUN_ADD] =
        "INSERT INTO run (hash, kind, name, about, config_file, config, overrides, version, dirty)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [STATEMENT_CONTENT_ADD] =
        "INSERT INTO content (run_id, kind, name, hash, path) VALUES (?1, ?2, ?3, ?4, ?5)",

    [STATEMENT_ENVIRONMENT_FIND] = "SELECT id FROM environment WHERE hash = ?1",
    [STATEMENT_ENVIRONMENT_ADD] =
        "INSERT INTO environment (hash, version, compiler, flags, libraries, host, system, kernel, cpu, isa, "
        "governor,"
        " cores, threads, virtual_machine, l1d, l2, l3, memory, bandwidth, peak,"
        " gpu, gpu_uuid, driver, cuda, cublas, gpu_memory, gpu_bandwidth, gpu_peak)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,"
        " ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)",
    [STATEMENT_ATTEMPT_ADD] = "INSERT INTO attempt (run_id, environment_id, argv) VALUES (?1, ?2, ?3)",
    [STATEMENT_ATTEMPT_END] =
        "UPDATE attempt SET ended = (julianday('now') - 2440587.5) * 86400.0, result = ?2 WHERE id = ?1",
    [STATEMENT_READING_ADD] =
        "INSERT INTO reading (attempt_id, number, at, moment, device, clock_mhz, memory_clock_mhz, power_w,"
        " temperature_c, throttle, load, busy_others)"
        " SELECT ?1, coalesce(max(number) + 1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11"
        " FROM reading WHERE attempt_id = ?1",

    [STATEMENT_MODEL_FIND] = "SELECT id FROM model WHERE name = ?1 AND hash = ?2",
    [STATEMENT_MODEL_ADD] = "INSERT INTO model (name, hash, path, shape, layers, dtype, stand_in)"
                            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [STATEMENT_DATASET_FIND] = "SELECT id FROM dataset WHERE name = ?1 AND hash = ?2",
    [STATEMENT_DATASET_ADD] = "INSERT INTO dataset (name, hash, path) VALUES (?1, ?2, ?3)",
    [STATEMENT_PROMPT_FIND] = "SELECT id FROM prompt WHERE dataset_id = ?1 AND number = ?2 AND turn = ?3",
    [STATEMENT_PROMPT_ADD] =
        "INSERT INTO prompt (dataset_id, number, turn, name, task) VALUES (?1, ?2, ?3, ?4, ?5)",
    [STATEMENT_POINT_FIND] = "SELECT id FROM point WHERE run_id = ?1 AND hash = ?2",
    [STATEMENT_POINT_ADD] =
        "INSERT INTO point (run_id, number, hash, model_id, dataset_id, method, decoder, label, temperature,"
        " baseline_id, same_path_id, skipped) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    [STATEMENT_POINT_RENEW] =
        "UPDATE point SET baseline_id = ?2, same_path_id = ?3, skipped = ?4 WHERE id = ?1",
    [STATEMENT_PARAM_ADD] =
        "INSERT INTO point_param (point_id, section, name, value) VALUES (?1, ?2, ?3, ?4)",

    [STATEMENT_LAYERS_OF] = "SELECT layers FROM point JOIN model ON model.id = model_id WHERE point.id = ?1",
    [STATEMENT_SAMPLE_FIND] = "SELECT id FROM sample WHERE point_id = ?1 AND pass = ?2 AND prompt_id = ?3",
    [STATEMENT_SAMPLE_ADD] =
        "INSERT INTO sample (point_id, pass, prompt_id, attempt_id, output_id, position, started, flags, "
        "prompt_tokens,"
        " tokens, steps, prefill_tokens, prefill_steps, filling_steps, rows, asked, drafted, accepted, tried,"
        " prefill_ns, decode_ns, propose_ns, forward_ns, verify_ns, observe_ns, device_ns, device_head_ns, "
        "device_commit_ns)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, "
        "?21, ?22,"
        " ?23, ?24, ?25, ?26, ?27, ?28)",
    [STATEMENT_STEP_ADD] = "INSERT INTO step (sample_id, number, kind, context, rows, asked, depth, "
                           "candidates, probes, drafted, tried,"
                           " accepted, emitted, matches, pool, pool_hits, head_rows, propose_ns, forward_ns, "
                           "verify_ns, observe_ns,"
                           " device_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
                           "?15, ?16, ?17, ?18, ?19,"
                           " ?20, ?21, ?22)",
    [STATEMENT_PASS_ADD] =
        "INSERT INTO step_pass (sample_id, number, pass, model, a, b, rows, context, count)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [STATEMENT_SOURCE_FIND] = "SELECT id FROM source WHERE name = ?1",
    [STATEMENT_SOURCE_ADD] = "INSERT INTO source (name) VALUES (?1)",
    [STATEMENT_STEP_SOURCE_ADD] =
        "INSERT INTO step_source (sample_id, number, source_id, rows, length, rank, won)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [STATEMENT_SUM_ACCEPT] = "INSERT INTO sample_accept (sample_id, kind, accepted, steps)"
                             " SELECT sample_id, kind, accepted, count(*) FROM step WHERE sample_id = ?1"
                             " GROUP BY kind, accepted",
    [STATEMENT_SUM_SOURCE] = "INSERT INTO sample_source (sample_id, source_id, rows, steps, won, tokens)"
                             " SELECT sample_id, source_id, sum(rows), count(*), sum(won), sum(won * length)"
                             " FROM step_source WHERE sample_id = ?1 GROUP BY source_id",
    [STATEMENT_SUM_RANK] = "INSERT INTO sample_rank (sample_id, source_id, length, rank, steps)"
                           " SELECT sample_id, source_id, length, rank, count(*) FROM step_source"
                           " WHERE sample_id = ?1 AND won GROUP BY source_id, length, rank",
    [STATEMENT_DIVERGENCE_ADD] = "INSERT INTO divergence (sample_id, position, wanted, got, margin)"
                                 " VALUES (?1, ?2, ?3, ?4, ?5)",
    [STATEMENT_OUTPUT_FIND] = "SELECT id FROM output WHERE hash = ?1",
    [STATEMENT_OUTPUT_ADD] = "INSERT INTO output (hash, ids, tokens, text, bytes, repeated, looping)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [STATEMENT_OUTPUT_OF] =
        "SELECT output_id FROM sample WHERE point_id = ?1 AND pass = ?2 AND prompt_id = ?3"
        " AND output_id IS NOT NULL",

    [STATEMENT_ESTIMATES_DROP] = "DELETE FROM estimate WHERE point_id = ?1 OR point_id IN"
                                 " (SELECT id FROM point WHERE baseline_id = ?1 OR same_path_id = ?1)",
    [STATEMENT_ESTIMATE_SET] =
        "INSERT OR REPLACE INTO estimate (point_id, metric, value, low, high, deviation, resamples, seed)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [STATEMENT_FIT_ADD] =
        "INSERT OR IGNORE INTO fit (run_id, hash, points, title, law, bonus, output, estimator, fitted, "
        "prompts, resamples, seed, version)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    [STATEMENT_FIT_POINTS] = "INSERT INTO fit_point (fit_id, point_id, samples) SELECT ?1, value,"
                             " (SELECT count(*) FROM sample WHERE point_id = value) FROM json_each(?2)",
    [STATEMENT_FIT_ESTIMATE] =
        "INSERT INTO fit_estimate (fit_id, estimator, alpha, alpha_low, alpha_high, f, f_low, f_high, rms, "
        "condition, correlation, drawn)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    [STATEMENT_SCORE_SET] =
        "INSERT OR REPLACE INTO score (output_id, prompt_id, metric, value) VALUES (?1, ?2, ?3, ?4)",
    [STATEMENT_ONE_OFF_SET] =
        "INSERT OR REPLACE INTO one_off (point_id, name, ns, bytes) VALUES (?1, ?2, ?3, ?4)",
    [STATEMENT_SURFACE_ADD] =
        "INSERT INTO surface (attempt_id, model_id, kind, device, compute, layout, cache, k, w, a, b, rows, "
        "head_rows,"
        " context, samples, mean_ns, median_ns, deviation_ns, slowdown, floor_ns, bytes, operations, flags,"
        " weights, drift, low_ns, high_ns, slowdown_low, slowdown_high, disturbed)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, "
        "?21, ?22,"
        " ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30)",
    [STATEMENT_FAILURE_ADD] = "INSERT INTO failure (attempt_id, point_id, prompt_id, pass, message)"
                              " VALUES (?1, ?2, ?3, ?4, ?5)",
    [STATEMENT_FLAG_ADD] =
        "UPDATE sample SET flags = flags | ?4 WHERE point_id = ?1 AND pass = ?2 AND prompt_id = ?3",

    [STATEMENT_RUN_DELETE] = "DELETE FROM run WHERE id = ?1",
    [STATEMENT_OUTPUT_SWEEP] = "DELETE FROM output WHERE id NOT IN"
                               " (SELECT output_id FROM sample WHERE output_id IS NOT NULL)",
    [STATEMENT_PROMPT_SWEEP] =
        "DELETE FROM prompt WHERE NOT EXISTS (SELECT 1 FROM sample WHERE prompt_id = prompt.id)"
        " AND NOT EXISTS (SELECT 1 FROM failure WHERE prompt_id = prompt.id)"
        " AND NOT EXISTS (SELECT 1 FROM point WHERE point.dataset_id = prompt.dataset_id)",
    [STATEMENT_DATASET_SWEEP] = "DELETE FROM dataset WHERE id NOT IN (SELECT dataset_id FROM point)"
                                " AND id NOT IN (SELECT dataset_id FROM prompt)",
    [STATEMENT_MODEL_SWEEP] = "DELETE FROM model WHERE id NOT IN (SELECT model_id FROM point)"
                              " AND id NOT IN (SELECT model_id FROM surface)",
    [STATEMENT_ENVIRONMENT_SWEEP] =
        "DELETE FROM environment WHERE id NOT IN (SELECT environment_id FROM attempt)",

    [STATEMENT_IMPORT_RUN] =
        "UPDATE run SET kind = ?3, name = coalesce(?2, ?4), about = ?5, config_file = ?6, config = ?7,"
        " overrides = ?8, version = ?9, dirty = ?10, created = ?11 WHERE id = ?1",
    [STATEMENT_IMPORT_MODEL] = "INSERT INTO model (name, hash, path, shape, layers, dtype, stand_in)"
                               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
    [STATEMENT_IMPORT_DATASET] =
        "INSERT INTO dataset (name, hash, path) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    [STATEMENT_IMPORT_START] = "INSERT INTO attempt (run_id, environment_id, argv, started, ended, result)"
                               " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [STATEMENT_IMPORT_FAILURE] = "INSERT INTO failure (attempt_id, point_id, pass, at, message)"
                                 " VALUES (?1, ?2, ?3, ?4, ?5)",
    [STATEMENT_IMPORT_NUMBER] = "SELECT number = ?2 AND hash = ?3 FROM point WHERE run_id = ?1"
                                " AND (number = ?2 OR hash = ?3) ORDER BY 1 LIMIT 1",
    [STATEMENT_IMPORT_BASELINE] =
        "UPDATE point SET baseline_id = (SELECT id FROM point WHERE run_id = ?1 AND number = ?3),"
        " same_path_id = (SELECT id FROM point WHERE run_id = ?1 AND number = ?4) WHERE id = ?2",
    // The baseline of a line without a number: of the same settings, if there is one, and of these the last.
    [STATEMENT_IMPORT_BASELINES] =
        "WITH setting AS (SELECT p.id, (SELECT group_concat(section || name || '=' || value, ' ') FROM"
        " (SELECT * FROM point_param WHERE point_id = p.id AND section <> 'method' ORDER BY section, name))"
        " AS text FROM point AS p WHERE run_id = ?1)"
        " UPDATE point SET (baseline_id, same_path_id) = (SELECT b.id, b.id FROM setting AS own"
        " JOIN point AS b JOIN setting AS q ON q.id = b.id WHERE own.id = point.id AND"
        " b.run_id = ?1 AND b.method = 'autoregressive' AND b.model_id = point.model_id AND"
        " b.dataset_id = point.dataset_id AND b.temperature = point.temperature"
        " ORDER BY q.text IS own.text DESC, b.id DESC LIMIT 1)"
        " WHERE run_id = ?1 AND method <> 'autoregressive'",
    [STATEMENT_IMPORT_PART] =
        "UPDATE attempt SET result = 'incomplete' WHERE run_id = ?1 AND result IN ('done', 'partial')",
    [STATEMENT_ATTACH] = "ATTACH ?1 AS other",
    [STATEMENT_DETACH] = "DETACH other",
};
