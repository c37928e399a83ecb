// Quantities of stored points, by name: a query or a view for each. Unknown is NaN, never a guess.
#include "harness/papers/ours.h"

#include "harness/analysis/estimates.h"
#include "results/rows.h"
#include "simulate/statistics.h"

#include <math.h>
#include <string.h>

static const Quantity UNKNOWN = {NAN, NAN, NAN};

// --- queries ---------------------------------------------------------------------------------------------

// ?1 the point, ?2 the measure's argument, ?3 the subtask or NULL. The first column is the value; three are
// the mean, its standard deviation and the number of values, which give an interval.
#define CHOSEN                                                                                               \
    " FROM sample JOIN prompt ON prompt.id = prompt_id WHERE point_id = ?1 AND (?3 IS NULL OR ?3 = (SELECT " \
    "subtask FROM subtask WHERE subtask.prompt_id = prompt.id))"

static const char CTAR[] =
    "WITH s AS (SELECT sample.id" CHOSEN ") SELECT 1.0 * total(steps) FILTER (WHERE accepted >= ?2)"
    " / nullif(sum(steps), 0) FROM sample_accept WHERE sample_id IN s";
static const char ASKED[] = "SELECT 1.0 * sum(asked) / nullif(sum(steps), 0)" CHOSEN;
static const char ROWS[] = "SELECT 1.0 * sum(rows) / nullif(sum(steps), 0)" CHOSEN;

// Steps that accepted nothing are nobody's.
static const char WON[] =
    "WITH q AS (SELECT source.name AS name, q.won, q.tokens FROM sample JOIN sample_source AS q ON "
    "q.sample_id"
    " = sample.id JOIN source ON source.id = source_id WHERE point_id = ?1)"
    " SELECT 1.0 * total(won) FILTER (WHERE name = ?2) / nullif(sum(won), 0) FROM q WHERE ?3 IS NULL";
static const char ROWS_OF[] =
    "WITH q AS (SELECT source.name AS name, q.rows FROM sample JOIN sample_source AS q ON q.sample_id"
    " = sample.id JOIN source ON source.id = source_id WHERE point_id = ?1)"
    " SELECT 1.0 * total(rows) FILTER (WHERE name = ?2) / nullif(sum(rows), 0) FROM q WHERE ?3 IS NULL";

// Drafts that ended early (at a limit) count as they are.
static const char PREFIX[] = "SELECT 1.0 * sum(accepted) / nullif(sum(steps), 0)" CHOSEN;

// Of the newest fit of the point under the paper's law; of a fit of other points nothing.
#define FITTED(x)                                                                                        \
    "SELECT " x ", " x "_low, " x "_high FROM fitted JOIN fit_point USING (fit_id) WHERE point_id = ?1 " \
    "AND law = 'paper' AND NOT other_points ORDER BY made DESC, fit_id DESC LIMIT 1"
static const char ALPHA[] = FITTED("alpha");
static const char F[] = FITTED("f");

// Millions, of the heads or adapter that the method runs; heads may have been given as the adapter.
static const char PARAMETERS[] =
    "SELECT 1e-6 * CASE method WHEN 'medusa' THEN coalesce(json_extract(shape, '$.parts.heads.parameters'),"
    " json_extract(shape, '$.parts.adapter.parameters')) WHEN 'kangaroo' THEN"
    " json_extract(shape, '$.parts.adapter.parameters') END"
    " FROM point JOIN model ON model.id = model_id WHERE point.id = ?1";

static const char PARAMETER[] =
    "SELECT value FROM point_param WHERE point_id = ?1 AND section = 'method' AND name = ?2";

// A value a prompt and pass; papers print them as percentages.
static const char SCORE[] =
    "SELECT avg(v), sqrt(max(0.0, avg(v * v) - avg(v) * avg(v)) * count(*) / max(count(*) - 1, 1)), count(*)"
    " FROM (SELECT 100 * value AS v FROM (SELECT output_id, sample.prompt_id AS prompt_id" CHOSEN
    ") AS s JOIN score ON score.output_id = s.output_id AND score.prompt_id = s.prompt_id AND metric = ?2)";
static const char SCORE_ABOVE[] =
    "SELECT avg(v), sqrt(max(0.0, avg(v * v) - avg(v) * avg(v)) * count(*) / max(count(*) - 1, 1)), count(*)"
    " FROM (SELECT 100 * (x.value - y.value) AS v FROM sample AS a JOIN sample AS b ON b.point_id = ?4"
    " AND b.pass = a.pass AND b.prompt_id = a.prompt_id JOIN score AS x ON x.output_id = a.output_id AND"
    " x.prompt_id = a.prompt_id AND x.metric = ?2 JOIN score AS y ON y.output_id = b.output_id AND "
    "y.prompt_id"
    " = b.prompt_id AND y.metric = ?2 WHERE a.point_id = ?1 AND ?3 IS NULL)";

// ?1 the point, ?2 its baseline, ?3 the measure.
#define PASS_OF(point)                                                                     \
    "(SELECT pass, 1.0 * sum(tokens) AS n, sum(steps) AS steps, sum(decode_ns) AS decode," \
    " sum(decode_ns + prefill_ns) AS whole FROM sample WHERE point_id = " point " GROUP BY pass)"
// Of two points alone; the view pass_specbench looks at all.
#define CONVERSATION_OF(point)                                                         \
    "(SELECT pass, dataset_id, number,"                                                \
    " 1.0 * sum(tokens) / nullif(sum(decode_ns + coalesce(prefill_ns, 0)), 0) AS rate" \
    " FROM sample JOIN prompt ON prompt.id = prompt_id WHERE point_id = " point " AND" \
    " ?3 = 'speedup_specbench' GROUP BY pass, dataset_id, number)"
#define BASE "(SELECT base_id FROM point_base WHERE point_id = ?1)"
#define SPECBENCH                                                             \
    "(SELECT pass, avg(m.rate) / avg(b.rate) AS ratio FROM " CONVERSATION_OF( \
        "?1") " AS m JOIN " CONVERSATION_OF(BASE) " AS b USING (pass, dataset_id, number) GROUP BY pass)"
static const char PASSES[] =
    "SELECT avg(v), sqrt(max(0.0, avg(v * v) - avg(v) * avg(v)) * count(v) / max(count(v) - 1, 1)), count(v)"
    " FROM (SELECT CASE ?3 WHEN 'S' THEN p.n / nullif(p.steps, 0)"
    " WHEN 'speedup' THEN (b.decode / b.n) / (p.decode / p.n)"
    " WHEN 'speedup_e2e' THEN (b.whole / b.n) / (p.whole / p.n)"
    " WHEN 'speedup_specbench' THEN ratio WHEN 'tokens_per_s' THEN 1e9 * p.n / nullif(p.decode, 0)"
    " WHEN 'tokens_per_s_e2e' THEN 1e9 * p.n / nullif(p.whole, 0) END AS v"
    " FROM " PASS_OF("?1") " AS p LEFT JOIN " PASS_OF("?2") " AS b USING (pass) LEFT JOIN " SPECBENCH
                                                            " USING (pass))";

// --- the table -------------------------------------------------------------------------------------------

typedef struct QuantityInfo {
    const char *name, *own;
    int tally;            // TallyMetric; below 0: a query
    const char *query;    // NULL: tally
    const char *argument; // NULL: the part of the name after its point
} QuantityInfo;

static const QuantityInfo QUANTITIES[] = {
    {"S", NULL, TALLY_S, NULL, NULL},
    {"S_reference", "S", TALLY_S_REFERENCE, NULL, NULL},
    {"speedup", NULL, TALLY_SPEEDUP, NULL, NULL},
    {"speedup_e2e", "speedup", TALLY_SPEEDUP_E2E, NULL, NULL},
    {"speedup_specbench", "speedup", TALLY_SPECBENCH, NULL, NULL},
    {"tokens_per_s", NULL, TALLY_RATE, NULL, NULL},
    {"tokens_per_s_e2e", "tokens_per_s", TALLY_RATE_E2E, NULL, NULL},
    {"ctar", NULL, -1, CTAR, NULL},
    {"asked_per_step", "rows_per_step", -1, ASKED, ""},
    {"rows_per_step", NULL, -1, ROWS, ""},
    {"won", NULL, -1, WON, NULL},
    {"rows", NULL, -1, ROWS_OF, NULL},
    {"common_prefix", NULL, -1, PREFIX, ""},
    {"matched", NULL, -1, NULL, ""},
    {"best", NULL, -1, PARAMETER, NULL},
    {"parameters", NULL, -1, PARAMETERS, ""},
    {"alpha", NULL, -1, ALPHA, ""},
    {"f", NULL, -1, F, ""},
    {"cache_saving", NULL, -1, NULL, ""},
    {"window_speedup", NULL, -1, NULL, ""},
    {"rouge1", NULL, -1, SCORE, "rouge1"},
    {"rouge2", NULL, -1, SCORE, "rouge2"},
    {"rougeL", NULL, -1, SCORE, "rougeL"},
    {"slowdown", NULL, -1, NULL, ""}, // the last three: harness/papers/table.h
    {"-", NULL, -1, NULL, ""},
};

static const QuantityInfo *find(const char *name) {
    size_t n = strcspn(name, ".");
    for (size_t i = 0; i < sizeof QUANTITIES / sizeof *QUANTITIES; i++)
        if (strlen(QUANTITIES[i].name) == n && strncmp(QUANTITIES[i].name, name, n) == 0)
            return (name[n] != 0) == (QUANTITIES[i].argument == NULL && QUANTITIES[i].query != NULL)
                       ? &QUANTITIES[i]
                       : NULL;
    return NULL;
}

bool quantity_known(const char *name) { return find(name) != NULL; }

bool quantity_is_quality(const char *name) {
    const QuantityInfo *m = find(name);
    return m && m->query == SCORE;
}

bool quantity_is_fitted(const char *name) {
    const QuantityInfo *m = find(name);
    return m && (m->query == ALPHA || m->query == F);
}

bool quantity_is_time(const char *name) {
    const QuantityInfo *m = find(name);
    return m && m->tally >= 0 && m->tally != TALLY_S && m->tally != TALLY_S_REFERENCE;
}

const char *quantity_own(const char *name) {
    const QuantityInfo *m = find(name);
    return m ? m->own : NULL;
}

const char *quantity_best(const char *name) {
    const QuantityInfo *m = find(name);
    return m && m->query == PARAMETER ? strchr(name, '.') + 1 : NULL;
}

// --- asking ----------------------------------------------------------------------------------------------

static void take_row(const Rows *r, Quantity *out) {
    out->value = rows_real(r, 0);
    if (rows_columns(r) == 1 || rows_int(r, 2) < 2) return;
    mean_reach(rows_real(r, 0), rows_real(r, 1), (size_t)rows_int(r, 2), 0.95, &out->low, &out->high);
}

static void take_interval(const Rows *r, Quantity *out) {
    *out = (Quantity){rows_real(r, 0), rows_real(r, 1), rows_real(r, 2)};
}

static bool ask(Store *store, const QuantityPart *part, const char *sql, const char *argument, Quantity *out,
                Error *e) {
    Rows *r = rows_open(store, sql, e);
    if (!r) return false;
    int parameters = rows_parameters(r);
    rows_bind_int(r, 1, part->point);
    if (parameters > 1) rows_bind_text(r, 2, argument);
    if (parameters > 2) rows_bind_text(r, 3, part->subtask);
    if (parameters > 3) rows_bind_int(r, 4, part->baseline);
    *out = UNKNOWN;
    if (rows_next(r)) (sql == ALPHA || sql == F ? take_interval : take_row)(r, out);
    return rows_end(r, true, e);
}

// Values of all of a point's samples were computed when its run ended.
static bool ask_estimate(Store *store, const QuantityPart *part, const char *name, Quantity *out, Error *e) {
    static const char SQL[] = "SELECT value, low, high FROM estimate WHERE point_id = ?1 AND metric = ?2";
    Rows *r = rows_open(store, SQL, e);
    if (!r) return false;
    rows_bind_int(r, 1, part->point);
    rows_bind_text(r, 2, name);
    *out = UNKNOWN;
    if (rows_next(r)) take_interval(r, out);
    return rows_end(r, true, e);
}

static int bits_of(const unsigned char *bytes, size_t n) {
    int bits = 0;
    for (size_t i = 0; i < n; i++) bits += __builtin_popcount(bytes[i]);
    return bits;
}

// Drafted tokens of a step that are the target's at their place, whatever precedes them.
static bool ask_matched(Store *store, const QuantityPart *part, Quantity *out, Error *e) {
    static const char SQL[] =
        "SELECT matches FROM sample JOIN step ON sample_id = sample.id WHERE point_id = ?1"
        " AND matches IS NOT NULL";
    double bits = 0, steps = 0;
    Rows *r = rows_open(store, SQL, e);
    if (!r) return false;
    rows_bind_int(r, 1, part->point);
    for (; rows_next(r); steps++) {
        size_t n;
        const void *bytes = rows_blob(r, 0, &n);
        bits += bits_of(bytes, n);
    }
    out->value = steps > 0 ? bits / steps : NAN;
    return rows_end(r, true, e);
}

static bool ask_tally(Store *store, const QuantityPart *part, int metric, Quantity *out, Error *e) {
    SampleChoice choice = {.subtask = part->subtask, .parity = part->parity, .plain = part->plain};
    Tally t;
    if (!estimates_tally(store, part->point, part->sampled, &choice, &t, e)) return false;
    *out = (Quantity){t.value[metric], NAN, NAN};
    if (t.has_interval) *out = (Quantity){t.value[metric], t.interval[metric].low, t.interval[metric].high};
    return true;
}

bool quantity(Store *store, const QuantityPart *part, const char *name, Quantity *out, Error *e) {
    const QuantityInfo *m = find(name);
    *out = UNKNOWN;
    if (m && m->query && !(quantity_is_fitted(name) && (part->subtask || part->parity >= 0)))
        return ask(store, part, m->query, m->argument ? m->argument : strchr(name, '.') + 1, out, e);
    if (m && strcmp(m->name, "matched") == 0 && !part->subtask) return ask_matched(store, part, out, e);
    if (!m || m->tally < 0) return true;
    return part->subtask || part->parity >= 0 ? ask_tally(store, part, m->tally, out, e)
                                              : ask_estimate(store, part, tally_names[m->tally], out, e);
}

bool quantity_above_baseline(Store *store, const QuantityPart *part, const char *name, Quantity *out,
                             Error *e) {
    *out = UNKNOWN;
    if (!quantity_is_quality(name) || !part->baseline) return true;
    return ask(store, part, SCORE_ABOVE, name, out, e);
}

bool quantity_passes(Store *store, int64_t point, int64_t baseline, const char *name, QuantityPasses *out,
                     Error *e) {
    *out = (QuantityPasses){NAN, NAN, 0};
    Rows *r = rows_open(store, PASSES, e);
    if (!r) return false;
    rows_bind_int(r, 1, point);
    rows_bind_int(r, 2, baseline);
    rows_bind_text(r, 3, name);
    if (rows_next(r) && rows_int(r, 2) > 1)
        *out = (QuantityPasses){rows_real(r, 0), rows_real(r, 1), (int)rows_int(r, 2)};
    return rows_end(r, true, e);
}
