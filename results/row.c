// A column of the store is a row here, and a line of schema.sql.
#include "results/row.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// clang-format off
#define AT(field)         offsetof(ROW, field)
#define TEXT(field)       {#field, COLUMN_TEXT, AT(field)}
#define FLAG(field)       {#field, COLUMN_FLAG, AT(field)}
#define INT(field)        {#field, COLUMN_INT, AT(field)}
#define COUNT(field)      {#field, COLUMN_COUNT, AT(field)}
#define SOME(field)       {#field, COLUMN_SOME, AT(field)}
#define LONG(field)       {#field, COLUMN_LONG, AT(field)}
#define LONG_COUNT(field) {#field, COLUMN_LONG_COUNT, AT(field)}
#define REAL(field)       {#field, COLUMN_REAL, AT(field)}
#define MEASURE(field)    {#field, COLUMN_MEASURE, AT(field)}
#define KNOWN(field)      {#field, COLUMN_KNOWN, AT(field)}
#define ID(field)         {#field "_id", COLUMN_LONG, AT(field)}
#define ID_OR_NONE(field) {#field "_id", COLUMN_ID, AT(field)}
#define TIME(field)       {#field "_ns", COLUMN_TIME, AT(field##_s)}
#define NS(field)         {#field "_ns", COLUMN_NS, AT(field##_s)}

#define ROW StoreContent
static const StoreColumn CONTENT[] = {TEXT(kind), TEXT(name), TEXT(hash), TEXT(path)};
#undef ROW
#define ROW StoreRun
static const StoreColumn RUN[] = {
    TEXT(kind), TEXT(name), TEXT(about), TEXT(config_file), TEXT(config), TEXT(overrides), TEXT(version),
    FLAG(dirty)};
#undef ROW
#define ROW StoreEnvironment
static const StoreColumn ENVIRONMENT[] = { // its hash is of the values in this order
    TEXT(version), TEXT(compiler), TEXT(flags), TEXT(libraries), TEXT(host), TEXT(system), TEXT(kernel),
    TEXT(cpu), TEXT(isa), TEXT(governor), LONG(cores), LONG(threads), LONG(virtual_machine), LONG(l1d),
    LONG(l2), LONG(l3), LONG(memory), KNOWN(bandwidth), KNOWN(peak), TEXT(gpu), TEXT(gpu_uuid), TEXT(driver),
    TEXT(cuda), TEXT(cublas), {"gpu_memory", COLUMN_ID, AT(gpu_memory)}, KNOWN(gpu_bandwidth),
    KNOWN(gpu_peak)};
#undef ROW
#define ROW StoreReading
static const StoreColumn READING[] = {
    REAL(at), TEXT(moment), TEXT(device), REAL(clock_mhz), REAL(memory_clock_mhz), REAL(power_w),
    REAL(temperature_c), TEXT(throttle), REAL(load), INT(busy_others)};
#undef ROW
#define ROW StoreModel
static const StoreColumn MODEL[] = {
    TEXT(name), TEXT(hash), TEXT(path), TEXT(shape), INT(layers), TEXT(dtype), TEXT(stand_in)};
#undef ROW
#define ROW StoreDataset
static const StoreColumn DATASET[] = {TEXT(name), TEXT(hash), TEXT(path)};
#undef ROW
#define ROW StorePrompt
static const StoreColumn PROMPT[] = {ID(dataset), INT(number), INT(turn), TEXT(name), TEXT(task)};
#undef ROW
#define ROW StorePoint
static const StoreColumn POINT[] = {
    INT(number), TEXT(hash), ID(model), ID(dataset), TEXT(method), TEXT(decoder), TEXT(label),
    REAL(temperature), ID_OR_NONE(baseline), ID_OR_NONE(same_path), TEXT(skipped)};
#undef ROW
#define ROW StoreSample
static const StoreColumn SAMPLE[] = {
    INT(prompt_tokens), INT(tokens), INT(prefill_tokens), INT(prefill_steps), TIME(prefill), TIME(decode),
    TIME(device_head), TIME(device_commit)};
#undef ROW
#define NAMED(column) {.name = #column}
static const StoreColumn SUMS[] = {
    NAMED(steps), NAMED(filling_steps), NAMED(accepted), NAMED(rows), NAMED(asked), NAMED(drafted),
    NAMED(tried), NAMED(propose_ns), NAMED(forward_ns), NAMED(verify_ns), NAMED(observe_ns),
    NAMED(device_ns)};
#define ROW StoreStep
static const StoreColumn STEP[] = {
    COUNT(context), COUNT(rows), COUNT(asked), COUNT(depth), COUNT(candidates), COUNT(probes), COUNT(drafted),
    COUNT(tried), COUNT(accepted), COUNT(emitted), COUNT(pool), COUNT(pool_hits), TIME(propose),
    TIME(forward), TIME(verify), TIME(observe), TIME(device), MEASURE(margin)};
static const StoreColumn BATCH[] = {COUNT(sequences), TIME(latency)};
#undef ROW
#define ROW StorePass
static const StoreColumn PASS[] = {INT(a), INT(b), INT(rows), INT(context), INT(count)};
#undef ROW
#define ROW StoreSource
static const StoreColumn SOURCE[] = {INT(rows), INT(length), INT(rank)};
#undef ROW
#define ROW StoreGuess
static const StoreColumn GUESS[] = {INT(depth), INT(token), TEXT(piece)};
#undef ROW
#define ROW StoreDivergence
static const StoreColumn DIVERGENCE[] = {INT(position), INT(wanted), INT(got), REAL(margin)};
#undef ROW
#define ROW StoreSurface
static const StoreColumn SURFACE[] = {
    TEXT(kind), TEXT(device), TEXT(compute), TEXT(layout), TEXT(cache), COUNT(k), COUNT(w), COUNT(a),
    COUNT(b), INT(rows), COUNT(head_rows), INT(context), INT(samples), NS(mean), NS(median), NS(deviation),
    MEASURE(slowdown), NS(floor), MEASURE(bytes), MEASURE(operations), INT(flags), TEXT(weights),
    MEASURE(drift), NS(low), NS(high), MEASURE(slowdown_low), MEASURE(slowdown_high), INT(disturbed),
    SOME(sequences)};
#undef ROW
#define ROW StoreEstimate
static const StoreColumn ESTIMATE[] = {
    TEXT(metric), REAL(value), REAL(low), REAL(high), REAL(deviation), LONG(resamples), LONG(seed)};
#undef ROW
#define ROW StoreFit
static const StoreColumn FIT[] = {
    TEXT(hash), TEXT(points), TEXT(title), TEXT(law), TEXT(bonus), KNOWN(output), TEXT(estimator),
    INT(fitted), INT(prompts), INT(resamples), LONG(seed), TEXT(version)};
#undef ROW
#define ROW StoreFitEstimate
static const StoreColumn FIT_ESTIMATE[] = {
    TEXT(estimator), REAL(alpha), REAL(alpha_low), REAL(alpha_high), REAL(f), REAL(f_low), REAL(f_high),
    REAL(rms), REAL(condition), REAL(correlation), TEXT(drawn)};
#undef ROW

static const char ONCE[] = " ON CONFLICT DO NOTHING";

#define OF(list) .columns = list, .count = sizeof list / sizeof *list
const StoreRow store_rows[ROW_KINDS] = {
    [ROW_CONTENT] = {"content", "content", .keys = "run_id", OF(CONTENT)},
    [ROW_RUN] = {"run", "run", .keys = "hash", OF(RUN)},
    [ROW_ENVIRONMENT] = {"environment", "environment", .keys = "hash", OF(ENVIRONMENT)},
    [ROW_READING] = {"reading", "reading", .keys = "attempt_id, number", OF(READING)},
    [ROW_MODEL] = {"model", "model", .keys = "", .end = ONCE, OF(MODEL)},
    [ROW_DATASET] = {"dataset", "dataset", .keys = "", .end = ONCE, OF(DATASET)},
    [ROW_PROMPT] = {"prompt", "prompt", .keys = "", OF(PROMPT)},
    [ROW_POINT] = {"point", "point", .keys = "run_id", OF(POINT)},
    [ROW_SAMPLE] = {"sample", "sample", OF(SAMPLE),
                    .keys = "point_id, pass, prompt_id, attempt_id, output_id, position, started, flags"},
    [ROW_SUMS] = {"sums", "sample", .keys = "", OF(SUMS)},
    [ROW_STEP] = {"step", "step", .keys = "sample_id, number, kind, matches, head_rows", OF(STEP)},
    [ROW_BATCH] = {"batch", "step_batch", .keys = "sample_id, number, run", OF(BATCH)},
    [ROW_PASS] = {"pass", "step_pass", .keys = "sample_id, number, pass, model", OF(PASS)},
    [ROW_SOURCE] = {"source", "step_source", .keys = "sample_id, number, source_id, won", OF(SOURCE)},
    [ROW_GUESS] = {"guess", "step_guess", .keys = "sample_id, number, guess", OF(GUESS)},
    [ROW_DIVERGENCE] = {"divergence", "divergence", .keys = "sample_id", OF(DIVERGENCE)},
    [ROW_SURFACE] = {"surface", "surface", .keys = "attempt_id, model_id", OF(SURFACE)},
    [ROW_ESTIMATE] = {"estimate", "estimate", .keys = "point_id", .replaces = true, OF(ESTIMATE)},
    [ROW_FIT] = {"fit", "fit", .keys = "run_id", .end = ONCE, OF(FIT)},
    [ROW_FIT_ESTIMATE] = {"fit_estimate", "fit_estimate", .keys = "fit_id", OF(FIT_ESTIMATE)},
};
// clang-format on

enum { MOST = 1 << 24 }; // of a number that JSON has
static const double LONG_S = 1e8;

// --- values ----------------------------------------------------------------------------------------------

static Value value_of(const StoreColumn *c, const void *row) {
    const char *at = (const char *)row + c->at;
    const int *i = (const int *)(const void *)at;
    const int64_t *n = (const int64_t *)(const void *)at;
    const double *x = (const double *)(const void *)at;
    switch (c->kind) {
    case COLUMN_TEXT: return of_text(*(const char *const *)(const void *)at);
    case COLUMN_FLAG: return of_int(*(const bool *)(const void *)at);
    case COLUMN_INT: return of_int(*i);
    case COLUMN_COUNT: return of_count(*i);
    case COLUMN_SOME: return of_id(*i);
    case COLUMN_LONG: return of_int(*n);
    case COLUMN_LONG_COUNT: return of_count(*n);
    case COLUMN_ID: return of_id(*n);
    case COLUMN_REAL: return of_real(*x);
    case COLUMN_MEASURE: return of_measure(*x);
    case COLUMN_KNOWN: return of_known(*x);
    case COLUMN_TIME: return of_ns(*x);
    case COLUMN_NS: return of_measure(*x * 1e9);
    }
    return of_text(NULL);
}

void row_values(RowId id, const void *row, Value *values, int *count) {
    const StoreRow *r = &store_rows[id];
    assert(*count + r->count <= ROW_MOST);
    for (int i = 0; i < r->count; i++) values[(*count)++] = value_of(&r->columns[i], row);
}

void row_unknown(RowId id, void *row) {
    for (const StoreColumn *c = store_rows[id].columns; c < store_rows[id].columns + store_rows[id].count;
         c++) {
        void *at = (char *)row + c->at;
        switch (c->kind) {
        case COLUMN_TEXT: *(const char **)at = NULL; break;
        case COLUMN_FLAG: *(bool *)at = false; break;
        case COLUMN_INT:
        case COLUMN_SOME: *(int *)at = 0; break;
        case COLUMN_COUNT: *(int *)at = -1; break;
        case COLUMN_LONG:
        case COLUMN_ID: *(int64_t *)at = 0; break;
        case COLUMN_LONG_COUNT: *(int64_t *)at = -1; break;
        case COLUMN_REAL: *(double *)at = NAN; break;
        case COLUMN_KNOWN: *(double *)at = 0; break;
        case COLUMN_MEASURE:
        case COLUMN_TIME:
        case COLUMN_NS: *(double *)at = -1; break;
        }
    }
}

// --- statements ------------------------------------------------------------------------------------------

bool row_insert(Store *s, RowId id, const Value *keys, int key_count, const void *row, Error *e) {
    Value values[ROW_MOST];
    int count = 0;
    while (count < key_count) values[count] = keys[count], count++;
    row_values(id, row, values, &count);
    return sql_insert(s, &store_rows[id], values, count, e);
}

// For each column the first n bytes of `each`, with its name in place of @.
static void put_list(const StoreRow *r, const char *each, size_t n, Text *out) {
    for (int i = 0; i < r->count; i++) {
        text_puts(out, i ? ", " : "");
        for (const char *at = each; at < each + n; at++)
            if (*at == '@') text_puts(out, r->columns[i].name);
            else text_add(out, at, 1);
    }
}

void row_expand(const char *sql, Text *out) {
    for (const char *open; (open = strchr(sql, '{')); sql = strchr(open, '}') + 1) {
        size_t name = strcspn(open + 1, "|}");
        const char *each = open + 1 + name;
        text_add(out, sql, (size_t)(open - sql));
        const StoreRow *r = store_rows;
        while (r < store_rows + ROW_KINDS &&
               (strlen(r->name) != name || strncmp(r->name, open + 1, name) != 0))
            r++;
        assert(r < store_rows + ROW_KINDS);
        if (*each == '}') put_list(r, "@", 1, out);
        else put_list(r, each + 1, strcspn(each + 1, "}"), out);
    }
    text_puts(out, sql);
}

void row_insert_text(const StoreRow *r, Text *out) {
    const char *keys = r->keys, *comma = *keys ? ", " : "";
    text_printf(out, "INSERT %sINTO %s (%s%s", r->replaces ? "OR REPLACE " : "", r->table, keys, comma);
    put_list(r, "@", 1, out);
    text_puts(out, ") VALUES (");
    for (const char *key = keys; *key; key += strcspn(key, ","), key += *key == ',') text_puts(out, "?, ");
    put_list(r, "?", 1, out);
    text_printf(out, ")%s", r->end ? r->end : "");
}

// --- JSON ------------------------------------------------------------------------------------------------

static bool read_column(const StoreColumn *c, const json_t *object, void *row, const char *place, Error *e) {
    void *at = (char *)row + c->at;
    char key[64];
    int64_t n;
    snprintf(key, sizeof key, "%s", c->name);
    if (c->kind == COLUMN_TIME) snprintf(key + strlen(key) - 2, 3, "s");
    if (!field_present(object, key)) return true;
    switch (c->kind) {
    case COLUMN_TIME: return field_real(object, key, 0, LONG_S, at, place, e);
    case COLUMN_TEXT: return (*(const char **)at = field_text(object, key, place, e)) != NULL;
    case COLUMN_INT:
    case COLUMN_COUNT:
        if (!field_int(object, key, 0, MOST, &n, place, e)) return false;
        *(int *)at = (int)n;
        return true;
    case COLUMN_MEASURE: return field_real(object, key, 0, LONG_S, at, place, e);
    default: assert(!"a column of this kind isn't read"); return true;
    }
}

bool row_from_json(RowId id, const json_t *object, void *row, const char *place, Error *e) {
    for (int i = 0; i < store_rows[id].count; i++)
        if (!read_column(&store_rows[id].columns[i], object, row, place, e)) return false;
    return true;
}
