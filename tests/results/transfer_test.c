// Out and in again: what comes back is what went out; what Spec-Bench's code would say of our files is what
// we say; lines that are no good are named by file and line, and leave nothing behind.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "results/rows.h"
#include "results/transfer.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <string.h>

enum { POINTS = 3, PROMPTS = 4 };

static FilledStore filled(const char *path) {
    FilledStore f;
    Error e = {0};
    if (!filled_open(&f, path, NULL, POINTS, PROMPTS, &e) || !filled_add_all(&f, 2, &e))
        fail_msg("%s", e.text);
    return f;
}

static StoreImport read_import(const char *path) {
    static char *words[] = {"outpace", "import"};
    StoreImport from = {
        .path = path, .name = "again", .argc = 2, .argv = words, .model = "m", .dataset = "d", .method = "x"};
    char *bytes;
    Error e = {0};
    if (!file_read(path, 1 << 24, &bytes, &from.size, &e)) fail_msg("%s", e.text);
    from.bytes = bytes;
    return from;
}

static void release(StoreImport *from) { mem_free((char *)(size_t)from->bytes); }

static FILE *create(const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    return f;
}

static double real(Store *s, const char *sql) {
    Error e = {0};
    Rows *r = rows_open(s, sql, &e);
    if (!r || !rows_next(r)) fail_msg("%s: %s", sql, e.text);
    double x = rows_real(r, 0);
    if (!rows_end(r, true, &e)) fail_msg("%s", e.text);
    return x;
}

static void expect_same(Store *a, Store *b, const char *sql) {
    Text x = {0}, y = {0};
    Store *const both[] = {a, b};
    Text *const to[] = {&x, &y};
    for (int i = 0; i < 2; i++) {
        Error e = {0};
        Rows *r = rows_open(both[i], sql, &e);
        if (!r) fail_msg("%s", e.text);
        while (rows_next(r))
            for (int c = 0; c < rows_columns(r); c++) text_printf(to[i], "%s|", rows_text(r, c));
        if (!rows_end(r, true, &e)) fail_msg("%s", e.text);
    }
    if (x.length == 0 || strcmp(text_get(&x), text_get(&y)))
        fail_msg("%s:\n%.400s\n%.400s", sql, text_get(&x), text_get(&y));
    text_release(&x);
    text_release(&y);
}

// --- steps -----------------------------------------------------------------------------------------------

static void steps_come_back(void **state) {
    static const char *const SAME[] = {
        "SELECT p.method, s.pass, q.number, q.turn, q.task, s.tokens, s.steps, s.rows, s.accepted, "
        "s.prefill_ns, s.decode_ns, s.device_head_ns, s.device_commit_ns,"
        " text FROM sample AS s JOIN point AS p ON p.id = point_id JOIN prompt AS q ON q.id = prompt_id JOIN "
        "output ON"
        " output.id = output_id ORDER BY p.number, s.pass, q.number, q.turn",
        "SELECT p.number, s.pass, q.number, q.turn, t.number, t.kind, t.context, t.rows, t.asked, t.depth, "
        "t.candidates,"
        " t.drafted, t.tried, t.accepted, t.emitted, hex(t.matches), t.pool, t.propose_ns, t.forward_ns, "
        "t.head_rows"
        " FROM sample AS s JOIN point AS p ON p.id = point_id JOIN prompt AS q ON q.id = prompt_id JOIN step "
        "AS t ON"
        " t.sample_id = s.id ORDER BY 1, 2, 3, 4, 5",
        "SELECT point.number, source, length, rank, steps FROM point_rank JOIN point ON point.id = point_id "
        "ORDER BY 1, 2, 3, 4",
        "SELECT point.number, source, rows, won, tokens FROM point_source JOIN point ON point.id = point_id "
        "ORDER BY 1, 2",
        "SELECT point.number, model, a, b, sum(rows), sum(count) FROM pass JOIN point ON point.id = point_id "
        "GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
        "SELECT number, S, speedup, speedup_e2e, speedup_specbench FROM result ORDER BY number",
        "SELECT value FROM point_param WHERE name = 'k' ORDER BY value",
    };
    FilledStore f = filled(folder_path(*state, "a.db"));
    Error e = {0};
    const char *path = folder_path(*state, "steps.jsonl");
    FILE *out = create(path);
    if (!store_export_steps(f.store, f.run, out, &e)) fail_msg("%s", e.text);
    fclose(out);
    StoreImport from = read_import(path);
    StoreImported done;
    Store *again = store_open(folder_path(*state, "b.db"), STORE_WRITE, NULL, &e);
    if (!store_import_steps(again, &from, &done, &e)) fail_msg("%s", e.text);
    assert_int_equal(done.samples, POINTS * PROMPTS * 2);
    assert_true(store_check(again, NULL));
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) expect_same(f.store, again, SAME[i]);
    assert_false(store_import_steps(again, &from, &done, &e)); // twice
    assert_non_null(strstr(e.text, "is in the store already"));
    release(&from);
    store_close(again);
    filled_close(&f);
}

static void lines_that_are_no_good(void **state) {
#define GOOD "\"model\": \"m\", \"dataset\": \"d\", \"method\": \"x\", \"prompt\": 0, \"decode_s\": 1"
#define STEP "\"accepted\": 0, \"emitted\": 1"
    static const struct {
        const char *line, *want;
    } BAD[] = {
        {"{",                                                                                        "a.jsonl:2"               },
        {"[1]",                                                                                      "no JSON object"          },
        {"{\"dataset\": \"d\", \"steps\": [{" STEP "}]}",                                            "'decode_s'"              },
        {"{\"decode_s\": 1, \"prompt\": 0, \"dataset\": \"d\", \"steps\": [{" STEP "}]}",            "'model'"                 },
        {"{\"model\": \"m\", \"dataset\": \"d\", \"method\": \"x\", \"decode_s\": 1, \"steps\": [{" STEP
         "}]}",                                                                             "'prompt'"                },
        {"{" GOOD "}",                                                                               "'steps'"                 },
        {"{" GOOD ", \"steps\": []}",                                                                "'steps'"                 },
        {"{" GOOD ", \"steps\": [1]}",                                                               "'steps'"                 },
        {"{" GOOD ", \"steps\": [{\"accepted\": 1}]}",                                               "'accepted' and 'emitted'"},
        {"{" GOOD ", \"steps\": [{" STEP ", \"rows\": -1}]}",                                        "'rows'"                  },
        {"{" GOOD ", \"steps\": [{" STEP ", \"kind\": \"odd\"}]}",                                   "'kind'"                  },
        {"{" GOOD ", \"steps\": [{" STEP ", \"matches\": \"0g\"}]}",                                 "'matches'"               },
        {"{" GOOD ", \"steps\": [{" STEP ", \"sources\": [{\"rows\": 1}]}]}",                        "'name'"                  },
        {"{" GOOD ", \"steps\": [{" STEP ", \"sources\": [{\"name\": \"s\"}, {\"name\": \"s\"}]}]}",
         "stands twice"                                                                                                        },
        {"{" GOOD ", \"steps\": [{" STEP ", \"passes\": [{\"model\": \"z\"}]}]}",                    "'model'"                 },
        {"{" GOOD ", \"tokens\": 2, \"steps\": [{" STEP "}]}",                                       "'tokens' is 2"           },
        {"{" GOOD ", \"params\": {\"k\": [1]}, \"steps\": [{" STEP "}]}",                            "parameter 'k'"           },
        {"{" GOOD ", \"steps\": [{" STEP "}]}",                                                      "is there already"        }, // as the line before it
    };
    static const char FIRST[] = "{" GOOD ", \"steps\": [{" STEP "}]}\n";
    static char *words[] = {"outpace"};
    Store *s = store_open(folder_path(*state, "a.db"), STORE_WRITE, NULL, NULL);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        Error e = {0};
        Text t = {0};
        StoreImported done;
        text_printf(&t, "%s%s\n", FIRST, BAD[i].line);
        StoreImport from = {.path = "a.jsonl", .name = "a", .argc = 1, .argv = words};
        from.bytes = text_get(&t);
        from.size = t.length;
        bool ok = store_import_steps(s, &from, &done, &e);
        if (ok || !strstr(e.text, "a.jsonl:2") || !strstr(e.text, BAD[i].want) || e.kind != ERROR_INPUT)
            fail_msg("%s: wanted '%s', got '%s'", BAD[i].line, BAD[i].want, e.text);
        text_release(&t);
    }
    assert_true(real(s, "SELECT count(*) FROM run") == 0 && real(s, "SELECT count(*) FROM sample") == 0);
    store_close(s);
}

// --- Spec-Bench ------------------------------------------------------------------------------------------

// What its speed() does: the mean over lines of summed tokens by summed time, and the mean of accept_lengths.
static double their_speed(const char *path, double *accepted) {
    StoreImport file = read_import(path);
    double speeds = 0, lines = 0, lengths = 0, sum = 0;
    for (const char *at = file.bytes, *end; (end = strchr(at, '\n')); at = end + 1) {
        json_t *line = json_from_bytes(at, (size_t)(end - at), path, NULL);
        const json_t *c = json_array_get(json_object_get(line, "choices"), 0);
        double tokens = 0, time = 0;
        for (size_t i = 0; i < json_array_size(json_object_get(c, "turns")); i++) {
            tokens += json_number_value(json_array_get(json_object_get(c, "new_tokens"), i));
            time += json_number_value(json_array_get(json_object_get(c, "wall_time"), i));
        }
        const json_t *list = json_object_get(c, "accept_lengths");
        for (size_t i = 0; i < json_array_size(list); i++, lengths++)
            sum += json_number_value(json_array_get(list, i));
        speeds += tokens / time;
        lines++;
        json_decref(line);
    }
    release(&file);
    *accepted = sum / lengths;
    assert_true(lines == PROMPTS / 2.0);
    return speeds / lines;
}

static void export_point(const FilledStore *f, int point, int pass, const char *path) {
    Error e = {0};
    int lines;
    FILE *out = create(path);
    if (!store_export_specbench(f->store, f->points[point], pass, out, &lines, &e)) fail_msg("%s", e.text);
    fclose(out);
    assert_int_equal(lines, PROMPTS / 2);
}

static void answers(void **state) {
    FilledStore f = filled(folder_path(*state, "a.db"));
    const char *own = folder_path(*state, "own.jsonl"), *base = folder_path(*state, "base.jsonl");
    double ratios = 0, accepted, ignored;
    for (int pass = 0; pass < 2; pass++) {
        export_point(&f, 2, pass, own);
        export_point(&f, 0, pass, base);
        ratios += their_speed(own, &accepted) / their_speed(base, &ignored);
    }
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT speedup_specbench FROM result WHERE point_id = %lld",
             (long long)f.points[2]);
    double ours = real(f.store, sql);
    if (fabs(ours - ratios / 2) > 1e-9 * ours) fail_msg("theirs %.12g, ours %.12g", ratios / 2, ours);
    // And in again: S is their mean of accept_lengths, the speedup that of the last pass.
    StoreImport from = read_import(own), from_base = read_import(base);
    StoreImported done;
    Error e = {0};
    Store *s = store_open(folder_path(*state, "b.db"), STORE_WRITE, NULL, NULL);
    if (!store_import_specbench(s, &from, &from_base, &done, &e)) fail_msg("%s", e.text);
    assert_int_equal(done.samples, 2 * PROMPTS);
    assert_true(fabs(real(s, "SELECT S FROM result WHERE method = 'x'") - accepted) < 1e-9);
    double want = their_speed(own, &ignored) / their_speed(base, &ignored);
    assert_true(fabs(real(s, "SELECT speedup_specbench FROM result WHERE method = 'x'") - want) <
                1e-6 * want);
    assert_true(real(s, "SELECT count(*) FROM ctar") > 0);
    release(&from);
    release(&from_base);
    store_close(s);
    filled_close(&f);
}

// --- CSV -------------------------------------------------------------------------------------------------

static void csv(void **state) {
    FilledStore f = filled(folder_path(*state, "a.db"));
    const char *path = folder_path(*state, "a.csv");
    size_t n;
    FILE *out = create(path);
    assert_true(store_export_csv(
        f.store, "SELECT 1 AS one, NULL AS \"a \"\"b\"\"\", 'x,y' AS t, 'q\"' AS q, 0.5 AS h", 0, out, NULL));
    fclose(out);
    char *text = scratch_read(*state, "a.csv", &n);
    assert_string_equal(text, "one,\"a \"\"b\"\"\",t,q,h\r\n1,,\"x,y\",\"q\"\"\",0.5\r\n");
    mem_free(text);
    filled_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_come_back, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(lines_that_are_no_good, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(answers, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(csv, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
