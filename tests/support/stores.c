#include "tests/support/stores.h"

#include "tests/support/check.h"
#include "tests/support/folder.h"

#include <string.h>

static bool add_rows(Store *s, const char *sql, Text *out, Error *e) {
    Rows *r = rows_open(s, sql, e);
    if (!r) return false;
    while (rows_next(r)) {
        for (int i = 0; i < rows_columns(r); i++) text_printf(out, "%s ", rows_text(r, i));
        text_puts(out, "\n");
    }
    return rows_end(r, true, e);
}

int64_t stores_ask(const char *folder, const char *name, const char *sql) {
    Error e = {0};
    int64_t value = -1;
    Store *s = store_open(folder_path(folder, name), STORE_READ, NULL, &e);
    if (!s || !rows_one_int(s, sql, 0, &value, &e)) fail_msg("%s: %s", sql, e.text);
    store_close(s);
    return value;
}

bool stores_describe(const char *path, Text *out, Error *e) {
    static const char *const QUERIES[] = {
        "SELECT hash, name, kind FROM run",
        "SELECT number, hash, method, decoder, label, baseline_id IS NULL FROM point ORDER BY number",
        "SELECT point.number, pass, prompt.number, turn, position, flags & 48, prompt_tokens, sample.tokens, "
        "steps,"
        " rows, asked, drafted, accepted, tried, output.hash, repeated, looping FROM sample"
        " JOIN point ON point.id = point_id JOIN prompt ON prompt.id = prompt_id JOIN output ON output.id = "
        "output_id"
        " ORDER BY 1, 2, 3, 4",
        "SELECT point.number, sample.pass, prompt.number, turn, step.number, step.kind, context, step.rows, "
        "step.asked,"
        " depth, candidates, probes, step.drafted, step.tried, step.accepted, emitted, hex(matches), pool, "
        "pool_hits,"
        " head_rows FROM step JOIN sample ON sample.id = sample_id JOIN point ON point.id = point_id"
        " JOIN prompt ON prompt.id = prompt_id ORDER BY 1, 2, 3, 4, 5",
        ("SELECT number, metric, value, low, high FROM estimate JOIN point ON point.id = point_id"
         " WHERE metric = 'S' ORDER BY 1, 2"),
        "SELECT count(*) FROM divergence",
        // A point that others disturbed is measured again, with more samples.
        "SELECT kind, layout, k, w, a, b, rows, head_rows, context, samples > 0, sequences FROM surface"
        " ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 11",
    };
    Store *s = store_open(path, STORE_READ, NULL, e);
    bool ok = s && store_check(s, e);
    for (size_t i = 0; ok && i < sizeof QUERIES / sizeof *QUERIES; i++) ok = add_rows(s, QUERIES[i], out, e);
    store_close(s);
    return ok;
}

void stores_same(const char *folder, const char *one, const char *two) {
    Text a = {0}, b = {0};
    Error e = {0};
    if (!stores_describe(folder_path(folder, one), &a, &e) ||
        !stores_describe(folder_path(folder, two), &b, &e))
        fail_msg("%s", e.text);
    if (strcmp(text_get(&a), text_get(&b)) != 0) {
        size_t at = 0;
        while (text_get(&a)[at] == text_get(&b)[at]) at++;
        fail_msg("stores differ at byte %zu: wanted '%.80s', got '%.80s'", at, text_get(&a) + at,
                 text_get(&b) + at);
    }
    text_release(&a);
    text_release(&b);
}
