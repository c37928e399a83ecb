// Prepared statements, nested transactions, and SQLite's errors in one line.
//
// A transaction has a depth: SQLite begins at 0 -> 1 and commits at 1 -> 0. A failure at any depth marks the
// whole (Store.failed): the outermost sql_leave then rolls it back.
#include "results/sql.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

Value of_text(const char *text) {
    return (Value){
        .type = text ? VALUE_TEXT : VALUE_NULL, .bytes = text, .i = text ? (int64_t)strlen(text) : 0};
}

// --- errors ----------------------------------------------------------------------------------------------

// The meaning of SQLite's error codes for a store, and the fix.
typedef struct {
    int code;
    ErrorKind kind;
    const char *what;
} Meaning;

static const Meaning MEANINGS[] = {
    {SQLITE_FULL, ERROR_SYSTEM,
     "the disk is full; what was stored before is safe: make room and run the same command again"},
    {SQLITE_READONLY, ERROR_INPUT, "it may not be written: is the file or its directory read-only?"},
    {SQLITE_PERM, ERROR_INPUT, "it may not be written: is the file or its directory read-only?"},
    {SQLITE_NOTADB, ERROR_INPUT, "it is not a store: no SQLite database"},
    {SQLITE_CORRUPT, ERROR_SYSTEM,
     "it is damaged; 'sqlite3 FILE .recover' saves what can be read, then restore a copy"},
    {SQLITE_CANTOPEN, ERROR_INPUT,
     "it cannot be opened: is there such a directory, and may it be read and written?"},
    {SQLITE_NOMEM, ERROR_SYSTEM, "out of memory"},
    {SQLITE_TOOBIG, ERROR_INPUT, "a value of the query is too long"},
    {SQLITE_INTERRUPT, ERROR_SYSTEM, "interrupted"},
};
enum { MEANING_COUNT = sizeof MEANINGS / sizeof *MEANINGS };

bool sql_error(const Store *s, int code, Error *e) {
    int primary = code & 0xff;
    bool locked = primary == SQLITE_BUSY || primary == SQLITE_LOCKED;
    char wait[400];
    snprintf(wait, sizeof wait, "waiting for store '%s', which another process keeps locked", s->path);
    if (locked && s->ended) return error_interrupted(e, wait);
    if (locked)
        return error_input(
            e, "store '%s': another process has kept it locked for %.0f s; try again when it is done",
            s->path, s->waited);
    long long most_bytes = sqlite3_hard_heap_limit64(-1); // asks; 0: there is none
    if (primary == SQLITE_NOMEM && most_bytes)
        return error_input(e, "store '%s': the query takes more than %lld MB of memory: ask for less",
                           s->path, most_bytes / 1000000);
    if (primary == SQLITE_CONSTRAINT)
        return error_input(e, "store '%s': what is to be stored does not fit: %s", s->path,
                           sqlite3_errmsg(s->db));
    for (int i = 0; i < MEANING_COUNT; i++)
        if (MEANINGS[i].code == primary)
            return MEANINGS[i].kind == ERROR_INPUT
                       ? error_input(e, "store '%s': %s", s->path, MEANINGS[i].what)
                       : error_system(e, "store '%s': %s", s->path, MEANINGS[i].what);
    return error_system(e, "store '%s': %s (SQLite code %d)", s->path, s->db ? sqlite3_errmsg(s->db) : "?",
                        code);
}

// --- values and statements
// ------------------------------------------------------------------------------------------

static const char *const SQL[STATEMENTS] = {
    [STATEMENT_VIEWS_SAME] = "SELECT 1 FROM main.made WHERE what = 'views' AND hash = ?1",
    [STATEMENT_VIEWS_SET] = "INSERT OR REPLACE INTO made (what, hash) VALUES ('views', ?1)",

    [STATEMENT_RUN_FIND] = "SELECT id FROM run WHERE hash = ?1 ORDER BY id DESC LIMIT 1",
    [STATEMENT_RUN_ADD] =
        "INSERT INTO run (hash, kind, name, about, config_file, config, overrides, version, dirty, uid)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, coalesce(?10, lower(hex(randomblob(16)))))",
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
    [STATEMENT_BATCH_ADD] =
        "INSERT INTO step_batch (sample_id, number, run, sequences, latency_ns) VALUES (?1, ?2, ?3, ?4, ?5)",
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
        " weights, drift, low_ns, high_ns, slowdown_low, slowdown_high, disturbed, sequences)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, "
        "?21, ?22,"
        " ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31)",
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
    // The baseline of a line without a number: the last one with the same settings, else the last one.
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

void sql_bind(sqlite3_stmt *statement, int at, Value v) {
    switch (v.type) {
    case VALUE_INT: sqlite3_bind_int64(statement, at, v.i); break;
    case VALUE_REAL: sqlite3_bind_double(statement, at, v.r); break;
    case VALUE_TEXT:
        sqlite3_bind_text64(statement, at, v.bytes, (sqlite3_uint64)v.i, SQLITE_STATIC, SQLITE_UTF8);
        break;
    case VALUE_BLOB:
        sqlite3_bind_blob64(statement, at, v.i ? v.bytes : "", (sqlite3_uint64)v.i, SQLITE_STATIC);
        break;
    case VALUE_NULL: sqlite3_bind_null(statement, at); break;
    }
}

// Returns the statement with its values bound; NULL with e filled.
static sqlite3_stmt *prepare(Store *s, StatementId id, const Value *values, int count, Error *e) {
    sqlite3_stmt **p = &s->prepared[id];
    int code = *p ? SQLITE_OK : sqlite3_prepare_v3(s->db, SQL[id], -1, SQLITE_PREPARE_PERSISTENT, p, NULL);
    if (code) {
        sql_error(s, code, e);
        return NULL;
    }
    assert(sqlite3_bind_parameter_count(*p) == count);
    for (int i = 0; i < count; i++) sql_bind(*p, i + 1, values[i]);
    return *p;
}

// Resets a statement that stepped to `code`. False with e filled if that is an error.
static bool finish(Store *s, sqlite3_stmt *statement, int code, Error *e) {
    bool ok = code == SQLITE_DONE || code == SQLITE_ROW || sql_error(s, code, e);
    sqlite3_reset(statement);
    return ok;
}

bool sql_run(Store *s, StatementId id, const Value *values, int count, Error *e) {
    sqlite3_stmt *statement = prepare(s, id, values, count, e);
    return statement && finish(s, statement, sqlite3_step(statement), e);
}

bool sql_find(Store *s, StatementId id, const Value *values, int count, int64_t *out, bool *found, Error *e) {
    sqlite3_stmt *statement = prepare(s, id, values, count, e);
    if (!statement) return false;
    int code = sqlite3_step(statement);
    *out = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    if (found) *found = code == SQLITE_ROW;
    return finish(s, statement, code, e);
}

int64_t sql_last_id(const Store *s) { return sqlite3_last_insert_rowid(s->db); }
int sql_changes(const Store *s) { return sqlite3_changes(s->db); }

bool sql_script(Store *s, const char *script, Error *e) {
    int code = sqlite3_exec(s->db, script, NULL, NULL, NULL);
    return code == SQLITE_OK || sql_error(s, code, e);
}

// --- transactions ----------------------------------------------------------------------------------------

// SQLite changes the sync level only between transactions.
static bool set_light(Store *s, bool light, Error *e) {
    if (s->light == light) return true;
    s->light = light;
    return sql_script(s, light ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL", e);
}

static void check(const Store *s) {
    assert(s->db && s->depth >= 0);
    assert(s->depth > 0 || !s->failed); // a failure is forgotten with its transaction
    assert(!s->light || s->logged);     // only a log may leave out the sync
    assert(s->writable || s->depth == 0);
}

static bool enter(Store *s, bool light, Error *e) {
    check(s);
    if (!s->writable) return error_input(e, "store '%s': it was opened to be read only", s->path);
    if (s->depth == 0) {
        s->failed = false;
        if (!set_light(s, light, e) || !sql_script(s, "BEGIN IMMEDIATE", e)) return false;
    }
    s->depth++;
    check(s);
    return true;
}

bool sql_enter(Store *s, Error *e) { return enter(s, false, e); }

bool sql_leave(Store *s, bool ok, Error *e) {
    assert(s->depth > 0);
    if (!ok) s->failed = true;
    if (--s->depth > 0) return ok;
    if (s->failed && ok)
        error_system(e, "store '%s': a part of this could not be stored, so nothing of it was", s->path);
    ok = !s->failed && store_there(s, e) && sql_script(s, "COMMIT", e);
    // SQLite may already have rolled back, for instance on a full disk.
    if (!ok && !sqlite3_get_autocommit(s->db)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    s->failed = false;
    check(s);
    return ok;
}

bool store_begin(Store *s, Error *e) { return sql_enter(s, e); }
bool store_begin_lightly(Store *s, Error *e) { return enter(s, s->logged, e); }
bool store_commit(Store *s, Error *e) { return sql_leave(s, true, e); }

void store_rollback(Store *s) {
    if (s->depth == 0) return;
    s->depth = 1;
    sql_leave(s, false, NULL);
}
