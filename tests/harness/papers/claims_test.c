// The papers' claims against stores: every query of configs/claims.tsv runs on an empty store and on one with
// rows, and a margin's interval gives the verdict.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "harness/papers/catalogue.h"
#include "results/rows.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static Catalogue *opened(void) {
    Catalogue *c = mem_new(1, sizeof *c);
    catalogue_open(c);
    return c;
}

static void closed(Catalogue *c) {
    catalogue_release(c);
    mem_free(c);
}

static ClaimJudgement judged(Store *s, const CatalogueClaim *claim) {
    Error e = {0};
    ClaimJudgement out;
    if (!claim_judge(s, claim, &out, &e)) fail_msg("%s\n%s", e.text, claim->query);
    return out;
}

static ClaimVerdict verdict_of(Store *s, const char *query, char *why, size_t size) {
    const CatalogueClaim claim = {"paper", "where", "claim", "measured", "stands", "when", query};
    ClaimJudgement v = judged(s, &claim);
    snprintf(why, size, "%s", text_get(&v.why));
    text_release(&v.why);
    return v.verdict;
}

static const struct {
    const char *query;
    ClaimVerdict want;
    const char *why; // in it
} CASES[] = {
    {NULL, CLAIM_NOT_RUN, ""},
    {"SELECT 'x', 1.0 WHERE 0", CLAIM_NOT_RUN, ""},
    {"VALUES ('x', NULL)", CLAIM_NOT_RUN, ""},
    {"VALUES ('x', 1.0), ('x', 1.1), ('x', 0.9)", CLAIM_HOLDS, "x, margin +1"},
    {"VALUES ('x', -1.0), ('x', -1.1), ('x', -0.9)", CLAIM_DOES_NOT, "x, margin -1"},
    {"VALUES ('x', 1.0), ('x', -1.1), ('x', 0.9)", CLAIM_UNDECIDED, "3 prompts"},
    {"VALUES ('x', 9.0)", CLAIM_UNDECIDED, "1 prompts"},
    {"VALUES ('x', 2.0, NULL), ('x', 2.1, NULL), ('x', NULL, 1.0), ('x', NULL, 1.1)", CLAIM_HOLDS,
     "x, margin +1"},
    {"VALUES ('x', 2.0, NULL), ('x', 2.1, NULL), ('x', NULL, 1.0)", CLAIM_UNDECIDED, "3 prompts"},
    {"VALUES ('x', 1.0, 0.5, 1.5)", CLAIM_HOLDS, "+1.0 [0.5, 1.5]"},
    {"VALUES ('x', 1.0, -0.5, 1.5)", CLAIM_UNDECIDED, "[-0.5, 1.5]"},
    {"VALUES ('x', -1.0, -1.5, -0.5)", CLAIM_DOES_NOT, "[-1.5, -0.5]"},
    {"VALUES ('x', 1.0, 1.0, 1.0)", CLAIM_HOLDS, "counted"},
    // Of several comparisons the one against it decides, then the one that is open.
    {"VALUES ('x', 1.0, 0.5, 1.5), ('y', 2.0, -0.5, 4.5)", CLAIM_UNDECIDED, "y, margin +2"},
    {"VALUES ('x', -1.0, -1.5, -0.5), ('y', 2.0, -0.5, 4.5), ('z', 1.0, 1.0, 1.0)", CLAIM_DOES_NOT,
     "1 of 3 comparisons"},
    // All must hold, each at 95%; of those that speak against the claim the intervals are wider.
    {"VALUES ('x', 1.0), ('x', 1.6), ('x', 0.4)", CLAIM_UNDECIDED, "x"},
    {"VALUES ('x', 1.0), ('x', 1.3), ('x', 0.7)", CLAIM_HOLDS, "x"},
    {"VALUES ('x', 1.0), ('x', 1.3), ('x', 0.7), ('y', 1.0), ('y', 1.1), ('z', 1.0), ('z', 1.0)", CLAIM_HOLDS,
     "3 of 3"},
    {"VALUES ('x', -1.0), ('x', -1.3), ('x', -0.7)", CLAIM_DOES_NOT, "x"},
    {"VALUES ('x', -1.0), ('x', -1.3), ('x', -0.7), ('y', 1.0), ('y', 1.1), ('z', 1.0), ('z', 1.0)",
     CLAIM_UNDECIDED, "2 of 3"},
    // Shares: 30 trials without a hit may be one of twenty; sixty may not, nor 30 of 30 be nine of ten.
    {"SELECT 'x', 0 AS hits, 10 AS trials, 0.05 FROM (VALUES (1), (2), (3))", CLAIM_UNDECIDED,
     "-0.05 [-0.05, 0.07], 3 prompts"},
    {"SELECT 'x', 0 AS hits, 25 AS trials, 0.05 FROM (VALUES (1), (2), (3))", CLAIM_DOES_NOT,
     "[-0.050, -0.002]"},
    {"SELECT 'x', 20 AS hits, 20 AS trials, 0.9 FROM (VALUES (1), (2))", CLAIM_HOLDS, "+0.10 [0.01, 0.10]"},
    // Of 100 trials one half, in prompts that differ: wider than of trials on their own (0.40 to 0.60).
    {"SELECT 'x', column1 AS hits, 25 AS trials, 0 FROM (VALUES (5), (10), (15), (20))", CLAIM_HOLDS,
     "+0.5 [0.1, 0.9]"},
    {"SELECT 'x', column1 AS hits, column2 AS trials, 0 FROM (VALUES (5, 10), (10, 20), (2, 4))", CLAIM_HOLDS,
     "+0.5, counted"},
};

static void intervals_decide(void **state) {
    (void)state;
    Error e = {0};
    char why[256];
    Store *s = store_open("trial", STORE_TRIAL, NULL, &e);
    assert_non_null(s);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        ClaimVerdict got = verdict_of(s, CASES[i].query, why, sizeof why);
        if (got != CASES[i].want || !strstr(why, CASES[i].why))
            fail_msg("%s: wanted %s, '%s', got %s, '%s'", CASES[i].query, claim_verdicts[CASES[i].want],
                     CASES[i].why, claim_verdicts[got], why);
    }
    const CatalogueClaim broken = {.paper = "p", .where = "w", .claim = "c", .query = "SELECT 1"};
    ClaimJudgement out;
    assert_false(claim_judge(s, &broken, &out, &e));
    assert_non_null(strstr(e.text, "has 1 columns"));
    store_close(s);
}

// Of the last claims arithmetic alone decides.
static void nothing_was_run(void **state) {
    (void)state;
    Error e = {0};
    Catalogue *c = opened();
    Store *s = store_open("trial", STORE_TRIAL, NULL, &e);
    assert_non_null(s);
    for (int i = 0; i < c->claim_count; i++) {
        ClaimJudgement v = judged(s, &c->claims[i]);
        bool computed = strcmp(c->claims[i].state, "computed") == 0 && c->claims[i].query &&
                        !strstr(c->claims[i].query, "fitted");
        if (v.verdict != (computed ? CLAIM_HOLDS : CLAIM_NOT_RUN))
            fail_msg("'%s': %s", c->claims[i].claim, claim_verdicts[v.verdict]);
        text_release(&v.why);
    }
    store_close(s);
    closed(c);
}

static void change(const char *path, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL)) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

// The run is called as the claim's first run is.
static void call(const char *path, const char *query) {
    static const char RUN[] = "run = '";
    char sql[128];
    const char *at = strstr(query, RUN);
    if (!at) return;
    at += strlen(RUN);
    snprintf(sql, sizeof sql, "UPDATE run SET name = '%.*s'", (int)strcspn(at, "'"), at);
    change(path, sql);
}

static void with_rows(void **state) {
    const char *path = folder_path(*state, "a.db");
    Error e = {0};
    FilledStore f;
    Catalogue *c = opened();
    int decided = 0;
    if (!filled_open(&f, path, NULL, 3, 4, &e) || !filled_add_all(&f, 2, &e)) fail_msg("%s", e.text);
    filled_close(&f);
    change(path, "UPDATE point SET method = 'lookahead' WHERE number = 2; UPDATE point SET method = 'jacobi',"
                 " label = '(8)' WHERE number = 3");
    for (int i = 0; i < c->claim_count; i++) {
        if (!c->claims[i].query) continue;
        call(path, c->claims[i].query);
        Store *s = store_open(path, STORE_READ, NULL, &e);
        if (!s) fail_msg("%s", e.text);
        ClaimJudgement v = judged(s, &c->claims[i]);
        decided += v.verdict != CLAIM_NOT_RUN;
        if (strstr(c->claims[i].claim, "Jacobi decoding hardly") &&
            (v.verdict != CLAIM_DOES_NOT || !strstr(text_get(&v.why), "2 prompts")))
            fail_msg("%s: %s", claim_verdicts[v.verdict], text_get(&v.why));
        text_release(&v.why);
        store_close(s);
    }
    assert_true(decided >= 6);
    closed(c);
}

// A margin of time that every pass has alone is open where passes differ by more, and where there is one pass;
// S isn't of time.
static void passes_drift(void **state) {
    static const struct {
        int passes;
        const char *query;
        ClaimVerdict want;
        const char *why;
    } ROWS[] = {
        {3, "SELECT 'x', 2 + 0.1 * prompt AS speedup FROM newest_prompt", CLAIM_HOLDS, "3 passes"},
        {3, "SELECT 'x', 2 + 0.1 * prompt + pass AS speedup FROM newest_prompt", CLAIM_HOLDS, "3 passes"},
        {3, "SELECT 'x', 1 + 0.1 * prompt + pass AS speedup FROM newest_prompt", CLAIM_UNDECIDED, "3 passes"},
        {1, "SELECT 'x', 2 + 0.1 * prompt AS speedup FROM newest_prompt", CLAIM_UNDECIDED, "drift unknown"},
        {1, "SELECT 'strategy', 2 + 0.1 * prompt FROM newest_prompt", CLAIM_HOLDS, "prompts"},
        {1, "SELECT 'x', 2 + 0.1 * prompt AS rate FROM newest_prompt", CLAIM_UNDECIDED, "drift unknown"},
        {1, "SELECT 'S of x', 2 + 0.1 * prompt AS speedup FROM newest_prompt", CLAIM_HOLDS, "prompts"},
        {1,
         "WITH c AS (SELECT prompt FROM newest_prompt) SELECT 'S of x', 2 + 0.1 * prompt AS speedup FROM c",
         CLAIM_HOLDS, "prompts"},
    };
    const char *path = folder_path(*state, "a.db");
    Error e = {0};
    FilledStore f;
    char why[256];
    if (!filled_open(&f, path, NULL, 3, 8, &e)) fail_msg("%s", e.text);
    for (int passes = 1; passes <= 3; passes += 2) {
        if (!filled_add_all(&f, passes, &e)) fail_msg("%s", e.text);
        for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
            if (ROWS[i].passes != passes) continue;
            ClaimVerdict got = verdict_of(f.store, ROWS[i].query, why, sizeof why);
            if (got != ROWS[i].want || !strstr(why, ROWS[i].why))
                fail_msg("%s: %s, '%s'", ROWS[i].query, claim_verdicts[got], why);
        }
    }
    filled_close(&f);
}

// A newer run of the same name, by a stand-in or the reference, has the last point: it is asked only where no
// other run is.
static void stand_ins_come_last(void **state) {
    static const char ASK[] = "SELECT 'run', 2.5 - run_id, 2.5 - run_id, 2.5 - run_id FROM newest_point";
    const char *path = folder_path(*state, "a.db");
    Error e = {0};
    FilledStore f;
    char why[256];
    if (!filled_open(&f, path, NULL, 3, 4, &e) || !filled_add_all(&f, 1, &e)) fail_msg("%s", e.text);
    filled_close(&f);
    change(
        path,
        "CREATE TABLE r AS SELECT * FROM run; UPDATE r SET id = 2, hash = 'b', uid = 'b'; INSERT INTO run SELECT * FROM r;"
        "CREATE TABLE m AS SELECT * FROM model; UPDATE model SET stand_in = NULL;"
        "UPDATE m SET id = 2, hash = 'b', stand_in = 'x';"
        "INSERT INTO model SELECT * FROM m; DROP TABLE r; DROP TABLE m;"
        "UPDATE point SET run_id = 2, model_id = 2 WHERE number = 3");
    for (int real = 2; real >= 0; real--) {
        Store *s = store_open(path, STORE_READ, NULL, &e);
        if (!s) fail_msg("%s", e.text);
        verdict_of(s, ASK, why, sizeof why);
        const char *want = real ? "run, margin +1.5, counted" : "run, margin +0.5, counted";
        if (strncmp(why, want, strlen(want)) != 0) fail_msg("'%s', want '%s'", why, want);
        store_close(s);
        change(path, real == 2 ? "UPDATE model SET stand_in = NULL, path = '/x/models/reference' WHERE id = 2"
                               : "UPDATE model SET stand_in = 'y'");
    }
}

// The query that a claim suggests: "outpace sql '...'".
static void told_queries(void **state) {
    static const char SQL[] = "outpace sql '";
    const char *path = folder_path(*state, "a.db");
    Error e = {0};
    FilledStore f;
    Catalogue *c = opened();
    int count = 0;
    if (!filled_open(&f, path, NULL, 3, 4, &e) || !filled_add_all(&f, 1, &e)) fail_msg("%s", e.text);
    for (int i = 0; i < c->claim_count; i++) {
        const char *at = strstr(c->claims[i].stands, SQL);
        if (!at) continue;
        at += strlen(SQL);
        char *query = mem_text(at, strcspn(at, "'"));
        Rows *r = rows_open(f.store, query, &e);
        while (r && rows_next(r)) continue;
        if (!rows_end(r, r != NULL, &e)) fail_msg("%s: %s", query, e.text);
        mem_free(query);
        count++;
    }
    assert_true(count >= 2);
    filled_close(&f);
    closed(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_decide),
        cmocka_unit_test(nothing_was_run),
        cmocka_unit_test_setup_teardown(with_rows, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(passes_drift, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(stand_ins_come_last, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(told_queries, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
