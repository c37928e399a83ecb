#include "harness/stored/stored_points.h"

#include "engine/base/memory.h"
#include "results/rows.h"

#include <string.h>

#define PARAM(name)                                                                             \
    "(SELECT value FROM point_param AS q WHERE q.point_id = p.id AND q.section = 'method' AND " \
    "q.name = '" name "')"

// What may differ within a set: N, W, G, and what changes neither S nor which tokens are accepted.
#define THE_SAME                                                                                     \
    "(SELECT group_concat(name || '=' || value, ' ') FROM (SELECT name, value FROM point_param AS q" \
    " WHERE q.point_id = p.id AND (section <> 'hardware' OR name = 'max_rows')"                      \
    " AND name NOT IN ('N', 'W', 'G', 'preset', 'ranks', 'mode', 'seed') ORDER BY section DESC, name))"

#define DROPPED "(" PARAM("mode") " = 'reference' OR " PARAM("bonus") " = 'drop')"

// A preset's N, W and G are not among a point's parameters. What was imported need not know of presets.
#define READABLE "coalesce(" PARAM("preset") ", 'none') = 'none' AND " PARAM("G") " > 0"

static const char SETS[] =
    "SELECT model || ', ' || dataset, same, json_group_array(id), dropped,"
    " min(same) OVER w <> max(same) OVER w, min(dropped) OVER w <> max(dropped) OVER w FROM ("
    "SELECT p.id, model.name AS model, dataset.name AS dataset, " DROPPED " AS dropped, " THE_SAME " AS same"
    " FROM point AS p JOIN model ON model.id = model_id JOIN dataset ON dataset.id = dataset_id"
    " WHERE run_id = ?1 AND method = 'lookahead' AND " READABLE
    " AND EXISTS (SELECT 1 FROM sample WHERE point_id = p.id)"
    ") GROUP BY model, dataset, same, dropped WINDOW w AS (PARTITION BY model, dataset) ORDER BY min(id)";

// The steps past filling of a prompt at a point by some number, as number:count,number:count.
#define COUNTS(number, from)                                                                         \
    "(SELECT group_concat(x || ':' || n) FROM (SELECT " number " AS x, sum(q.steps) AS n FROM " from \
    " AS q JOIN sample AS t ON t.id = q.sample_id JOIN chosen AS c ON c.id = t.point_id"             \
    " WHERE q.kind = 0 AND c.N = seen.N AND c.W = seen.W AND c.G = seen.G AND t.prompt_id = prompt"  \
    " GROUP BY 1))"
#define ACCEPTED   COUNTS("q.accepted", "sample_accept")
#define CANDIDATES COUNTS("q.pool_hits", "(SELECT sample_id, kind, pool_hits, 1 AS steps FROM step)")
#define CHOSEN     "SELECT p.id, " PARAM("N") " AS N, " PARAM("W") " AS W, " PARAM("G") " AS G"

static const char POINTS[] =
    "WITH chosen AS (" CHOSEN " FROM json_each(?1) AS j JOIN point AS p ON p.id = j.value),"
    "seen AS (SELECT N, W, G, prompt_id AS prompt, sum(tokens) AS tokens, sum(steps) AS steps,"
    " count(*) AS outputs, sum(filling_steps) AS filling"
    " FROM chosen JOIN sample ON point_id = chosen.id GROUP BY 1, 2, 3, 4),"
    "whole AS (SELECT prompt FROM seen WHERE steps > filling GROUP BY 1"
    " HAVING count(*) = (SELECT count(*) FROM (SELECT DISTINCT N, W, G FROM chosen)))"
    "SELECT *, min(accepted IS NOT NULL) OVER (), min(candidates IS NOT NULL) OVER () FROM ("
    "SELECT N, W, G, prompt, tokens, steps, outputs, filling, " ACCEPTED " AS accepted, " CANDIDATES
    " AS candidates FROM seen WHERE prompt IN whole) ORDER BY 1, 2, 3, 4";

static bool add_set(StoredSets *out, size_t *capacity, const Rows *r) {
    mem_grow(&out->sets, capacity, out->count + 1, sizeof *out->sets);
    StoredSet *s = &out->sets[out->count++];
    Text title = {0};
    text_puts(&title, rows_text(r, 0));
    if (rows_int(r, 4)) text_printf(&title, "; %s", rows_text(r, 1)); // a title is of one set alone
    if (rows_int(r, 5)) text_printf(&title, "; bonus %s", rows_int(r, 3) ? "dropped" : "kept");
    *s = (StoredSet){.title = mem_text(text_get(&title), title.length),
                     .points = mem_text(rows_text(r, 2), strlen(rows_text(r, 2))),
                     .bonus_dropped = rows_int(r, 3) != 0};
    text_release(&title);
    return (s->title && s->points);
}

bool stored_sets(Store *store, int64_t run, StoredSets *out, Error *e) {
    size_t capacity = 0;
    *out = (StoredSets){0};
    Rows *r = rows_open(store, SETS, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    bool ok = true;
    while (ok && rows_next(r)) ok = add_set(out, &capacity, r);
    if (!rows_end(r, ok, e)) return false;
    return out->count || error_input(e,
                                     "run %lld of '%s' has no point whose law is known: measured, of "
                                     "lookahead, with its own N, W and G above 0",
                                     (long long)run, store_path(store));
}

void stored_sets_release(StoredSets *s) {
    for (size_t i = 0; i < s->count; i++) {
        mem_free(s->sets[i].title);
        mem_free(s->sets[i].points);
    }
    mem_free(s->sets);
    *s = (StoredSets){0};
}

// Runs that were imported may not know what steps accepted, or what guesses they had: a column is there where
// each row has it.
enum { TOKENS = 4, STEPS, OUTPUTS, FILLING, ACCEPTED_AT, CANDIDATES_AT, ALL_ACCEPTED, ALL_CANDIDATES };

static void put_head(Text *tsv, const Rows *r) {
    text_puts(tsv, "N\tW\tG\tS\tprompt\tsteps");
    if (rows_int(r, ALL_ACCEPTED)) text_puts(tsv, "\taccepted");
    if (rows_int(r, ALL_CANDIDATES)) text_puts(tsv, "\tcandidates");
    text_puts(tsv, "\n");
}

static void put_row(Text *tsv, const Rows *r) {
    double tokens = rows_real(r, TOKENS), steps = rows_real(r, STEPS);
    for (int i = 0; i < 3; i++) text_printf(tsv, "%s\t", rows_text(r, i));
    text_printf(tsv, "%.17g\t%s\t%s", tokens / steps, rows_text(r, 3), rows_text(r, STEPS));
    if (rows_int(r, ALL_ACCEPTED)) text_printf(tsv, "\t%s", rows_text(r, ACCEPTED_AT));
    if (rows_int(r, ALL_CANDIDATES)) text_printf(tsv, "\t%s", rows_text(r, CANDIDATES_AT));
    text_puts(tsv, "\n");
}

bool stored_points(Store *store, const StoredSet *set, Text *tsv, double *output, Error *e) {
    double tokens = 0, outputs = 0, filling = 0;
    int count = 0;
    Rows *r = rows_open(store, POINTS, e);
    if (!r) return false;
    rows_bind_text(r, 1, set->points);
    for (; rows_next(r); count++) {
        if (count == 0) put_head(tsv, r);
        put_row(tsv, r);
        tokens += rows_real(r, TOKENS), outputs += rows_real(r, OUTPUTS), filling += rows_real(r, FILLING);
    }
    if (!rows_end(r, true, e)) return false;
    *output = filling > 0 ? tokens / outputs : 0;
    return count > 0 || error_input(e, "%s: no prompt with a step past filling at every point", set->title);
}
