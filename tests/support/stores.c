#include "tests/support/stores.h"

#include "tests/support/check.h"
#include "tests/support/folder.h"

#include <string.h>

static Store *open_db(const char *folder, const char *name) {
    Error e = {0};
    Store *s = store_open(folder_path(folder, name), STORE_READ, NULL, &e);
    if (!s) fail_msg("%s", e.text);
    return s;
}

static void add_rows(Store *s, const char *sql, Text *out) {
    Error e = {0};
    Rows *r = rows_open(s, sql, &e);
    if (!r) fail_msg("%s", e.text);
    while (rows_next(r)) {
        for (int i = 0; i < rows_columns(r); i++) text_printf(out, "%s ", rows_text(r, i));
        text_puts(out, "\n");
    }
    if (!rows_end(r, true, &e)) fail_msg("%s", e.text);
}

int64_t stores_ask(const char *folder, const char *name, const char *sql) {
    Error e = {0};
    int64_t value = -1;
    Store *s = open_db(folder, name);
    if (!rows_one_int(s, sql, 0, &value, &e)) fail_msg("%s: %s", sql, e.text);
    store_close(s);
    return value;
}

// All that a store says but times, moments, and what the machine was doing.
static void describe(const char *folder, const char *name, Text *out) {
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
    };
    Error e = {0};
    Store *s = open_db(folder, name);
    if (!store_check(s, &e)) fail_msg("%s", e.text);
    for (size_t i = 0; i < sizeof QUERIES / sizeof *QUERIES; i++) add_rows(s, QUERIES[i], out);
    store_close(s);
}

void stores_same(const char *folder, const char *one, const char *two) {
    Text a = {0}, b = {0};
    describe(folder, one, &a);
    describe(folder, two, &b);
    if (strcmp(text_get(&a), text_get(&b)) != 0) {
        size_t at = 0;
        while (text_get(&a)[at] == text_get(&b)[at]) at++;
        fail_msg("stores differ at byte %zu: wanted '%.80s', got '%.80s'", at, text_get(&a) + at,
                 text_get(&b) + at);
    }
    text_release(&a);
    text_release(&b);
}
