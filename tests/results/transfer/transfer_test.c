// Export and import: imported rows equal the exported ones; Spec-Bench's code would give our numbers for our
// files; bad lines are named by file and line, and leave nothing behind.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "results/rows.h"
#include "results/transfer/transfer.h"
#include "tests/support/child.h"
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

// --- whole runs ------------------------------------------------------------------------------------------

// What an id stands for, in words that are the same in another store of one run; NULL: the column is left
// out.
static const char *meaning_of(const char *column) {
    static const struct {
        const char *column, *sql;
    } MEANINGS[] = {
        {"id", NULL},
        {"run_id", NULL},
        {"uid", NULL},
        {"point_id", "(SELECT number FROM point AS m WHERE m.id = t.point_id)"},
        {"baseline_id", "(SELECT number FROM point AS m WHERE m.id = t.baseline_id)"},
        {"same_path_id", "(SELECT number FROM point AS m WHERE m.id = t.same_path_id)"},
        {"base_id", "(SELECT number FROM point AS m WHERE m.id = t.base_id)"},
        {"model_id", "(SELECT name || hash FROM model AS m WHERE m.id = t.model_id)"},
        {"dataset_id", "(SELECT name || hash FROM dataset AS m WHERE m.id = t.dataset_id)"},
        {"prompt_id", "(SELECT d.name || m.number || '.' || m.turn FROM prompt AS m JOIN dataset AS d"
                      " ON d.id = m.dataset_id WHERE m.id = t.prompt_id)"},
        {"sample_id",
         "(SELECT p.number || '/' || m.pass || '/' || q.number || '.' || q.turn FROM sample AS m JOIN point"
         " AS p ON p.id = m.point_id JOIN prompt AS q ON q.id = m.prompt_id WHERE m.id = t.sample_id)"},
        {"attempt_id", "(SELECT count(*) FROM attempt AS m WHERE m.id < t.attempt_id)"},
        {"environment_id", "(SELECT hash FROM environment AS m WHERE m.id = t.environment_id)"},
        {"output_id", "(SELECT hash FROM output AS m WHERE m.id = t.output_id)"},
        {"source_id", "(SELECT name FROM source AS m WHERE m.id = t.source_id)"},
    };
    static char own[64];
    for (size_t i = 0; i < sizeof MEANINGS / sizeof *MEANINGS; i++)
        if (strcmp(column, MEANINGS[i].column) == 0) return MEANINGS[i].sql;
    snprintf(own, sizeof own, "t.\"%s\"", column);
    return own;
}

// All rows of a table or view, in an order of their own, to the last digit.
static void dump(Store *s, const char *name, Text *out) {
    Error e = {0};
    Text sql = {0}, order = {0};
    text_puts(&sql, "SELECT ");
    char columns[128];
    snprintf(columns, sizeof columns, "SELECT name FROM pragma_table_info('%s')", name);
    Rows *r = rows_open(s, columns, &e);
    if (!r) fail_msg("%s: %s", name, e.text);
    for (int n = 0; rows_next(r);) {
        const char *meaning = meaning_of(rows_text(r, 0));
        if (!meaning) continue;
        text_printf(&sql, "%s%s", n ? ", " : "", meaning);
        text_printf(&order, "%s%d", n ? ", " : " ORDER BY ", n + 1);
        n++;
    }
    assert_true(rows_end(r, true, NULL));
    text_printf(&sql, " FROM \"%s\" AS t%s%s", name,
                strcmp(name, "content") == 0 ? " WHERE kind <> 'import'" : "", text_get(&order));
    r = rows_open(s, text_get(&sql), &e);
    if (!r) fail_msg("%s: %s", text_get(&sql), e.text);
    while (rows_next(r)) {
        for (int i = 0; i < rows_columns(r); i++)
            if (rows_type(r, i) == VALUE_REAL) text_printf(out, "%a|", rows_real(r, i));
            else text_printf(out, "%s%s|", rows_type(r, i) == VALUE_NULL ? "NULL" : "", rows_text(r, i));
        text_puts(out, "\n");
    }
    if (!rows_end(r, true, &e)) fail_msg("%s: %s", text_get(&sql), e.text);
    text_release(&sql);
    text_release(&order);
}

// All that two stores of one run hold, tables and views, but a run's hash, which is the imported file's.
static void expect_alike(const char *a, const char *b) {
    Error e = {0};
    Store *x = store_open(a, STORE_READ, NULL, &e), *y = store_open(b, STORE_READ, NULL, &e);
    if (!x || !y) fail_msg("%s", e.text);
    Rows *r = rows_open(x,
                        "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
                        " AND name NOT GLOB 'sqlite_*' AND name NOT IN ('made', 'run')",
                        &e);
    int filled = 0;
    for (; rows_next(r);) {
        Text of_x = {0}, of_y = {0};
        dump(x, rows_text(r, 0), &of_x);
        dump(y, rows_text(r, 0), &of_y);
        filled += of_x.length > 0;
        const char *p = text_get(&of_x), *q = text_get(&of_y);
        while (*p && *p == *q) p++, q++;
        if (*p != *q)
            fail_msg("%s: '%.200s' has become '%.200s'", rows_text(r, 0),
                     p - text_get(&of_x) > 80 ? p - 80 : text_get(&of_x),
                     q - text_get(&of_y) > 80 ? q - 80 : text_get(&of_y));
        text_release(&of_x);
        text_release(&of_y);
    }
    assert_true(rows_end(r, true, &e) && filled > 30);
    store_close(x);
    store_close(y);
}

static const char RUN[] = "name: axes\n"
                          "models: [{name: a, target: tiny, draft: tiny}, {name: b, target: tiny}]\n"
                          "datasets: [{name: chat, limit: 2, turns: 2}, {name: summarisation, limit: 1}]\n"
                          "hardware: {device: 'null', layout: batch}\n"
                          "generation: {max_tokens: 8, temperature: [0, 0.7], seed: [1, 2], ignore_eos: on}\n"
                          "methods: [autoregressive, {name: lookahead, matrix: {W: 3, N: 3, G: 2}},"
                          " {name: ouroboros, matrix: {warm: [on, off]}}]\n"
                          "measurement: {passes: 2, warmup: 1}\n";

// Two starts, of which the first failed at a point; samples that were disturbed, one that diverged.
static void disturb(const char *path) {
    Error e = {0};
    Store *s = store_open(path, STORE_WRITE, NULL, &e);
    int64_t run = (int64_t)real(s, "SELECT max(id) FROM run"), first, second;
    StoreEnvironment on = {.version = "2", .cpu = "another", .cores = 3, .bandwidth = 1e11 / 3};
    StoreReading reading = {.at = 1e9 / 7, .moment = "during", .device = "cpu", .load = 0.1, .power_w = NAN};
    char word[] = "run", *argv[] = {word};
    assert_true(
        store_attempt(s, run, 1, argv, &on, &first, &e) && store_reading(s, first, &reading, &e) &&
        store_failure(s, first, (int64_t)real(s, "SELECT min(id) FROM point"), 0, -1, "it fell", &e) &&
        store_attempt_end(s, first, "failed", &e) && store_attempt(s, run, 1, argv, &on, &second, &e));
    static const char SAMPLE[] = "SELECT %s FROM sample WHERE id %% 7 = 0 ORDER BY id LIMIT 1 OFFSET %d";
    for (int i = 0; i < 30; i++) {
        int64_t of[3];
        static const char *const COLUMNS[] = {"point_id", "pass", "prompt_id"};
        for (int k = 0; k < 3; k++) {
            char sql[128];
            snprintf(sql, sizeof sql, SAMPLE, COLUMNS[k], i);
            of[k] = (int64_t)real(s, sql);
        }
        assert_true(store_flag(s, of[0], (int)of[1], of[2], 1 << i % 5, &e));
    }
    // One more, in another start, with a divergence and a text that has NULs in it.
    StoreStep step = {
        .accepted = 1, .emitted = 2, .context = -1, .rows = 2, .asked = -1, .pool = -1, .device_s = -1};
    StoreDivergence d = {.position = 1, .wanted = 3, .got = -1, .margin = 1.0 / 3};
    StoreOutput output = {.ids = (const int[]){-1, 70000},
                          .count = 2,
                          .text = "a\0\0b",
                          .text_bytes = 4,
                          .repeated = 1.0 / 7,
                          .looping = true,
                          .pieces = "[\"a\",\"b\"]"};
    StoreSample x = {.attempt = second,
                     .pass = 9,
                     .steps = &step,
                     .step_count = 1,
                     .tokens = 2,
                     .prefill_s = -1,
                     .output = &output,
                     .divergence = &d,
                     .started = 1e9 / 3};
    x.point = (int64_t)real(s, "SELECT max(point_id) FROM sample");
    x.prompt = (int64_t)real(s, "SELECT max(prompt_id) FROM sample");
    assert_true(store_samples(s, &x, 1, &e) && store_one_off(s, x.point, "table", 1.0 / 3, 77, &e) &&
                store_score(s, x.point, 9, x.prompt, "rouge1", 1.0 / 3, &e));
    store_close(s);
}

// Whatever a run was: its tables, their baselines and intervals, are the same after a round trip, and after
// one more of what came back.
static void runs_come_back(void **state) {
    static const char *const STORES[] = {"a.db", "b.db", "c.db"};
    Child c = {0};
    scratch_write(*state, "x.yaml", RUN, sizeof RUN - 1);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 3, "run", "x.yaml", "--db", "a.db");
    child_release(&c);
    disturb(folder_path(*state, "a.db"));
    CHILD_OUTPACE(&c, *state, 0, "show", "last", "--db", "a.db"); // makes estimates anew
    Text first = c.out;
    text_release(&c.err);
    for (int i = 0; i < 2; i++) {
        CHILD_OUTPACE(&c, *state, 0, "store", "export", "--format", "jsonl", "--what", "steps", "-o",
                      "s.jsonl", "--db", STORES[i]);
        child_release(&c);
        CHILD_OUTPACE(&c, *state, 0, "store", "import", "steps", "s.jsonl", "--db", STORES[i + 1]);
        child_release(&c);
        expect_alike(folder_path(*state, "a.db"), folder_path(*state, STORES[i + 1]));
        CHILD_OUTPACE(&c, *state, 0, "show", "last", "--db", STORES[i + 1]);
        assert_string_equal(strchr(text_get(&c.out), '\n'), strchr(text_get(&first), '\n'));
        child_release(&c);
    }
    text_release(&first);
}

static void lines_that_are_no_good(void **state) {
#define GOOD "\"model\": \"m\", \"dataset\": \"d\", \"method\": \"x\", \"prompt\": 0, \"decode_s\": 1"
#define STEP "\"accepted\": 0, \"emitted\": 1"
    static const struct {
        const char *line, *want;
    } BAD[] = {
        {"{", "a.jsonl:2"},
        {"[1]", "no JSON object"},
        {"{\"dataset\": \"d\", \"steps\": [{" STEP "}]}", "'decode_s'"},
        {"{\"decode_s\": 1, \"prompt\": 0, \"dataset\": \"d\", \"steps\": [{" STEP "}]}", "'model'"},
        {"{\"model\": \"m\", \"dataset\": \"d\", \"method\": \"x\", \"decode_s\": 1, \"steps\": [{" STEP
         "}]}",
         "'prompt'"},
        {"{" GOOD "}", "'steps'"},
        {"{" GOOD ", \"steps\": []}", "'steps'"},
        {"{" GOOD ", \"steps\": [1]}", "'steps'"},
        {"{" GOOD ", \"steps\": [{\"accepted\": 1}]}", "'accepted' and 'emitted'"},
        {"{" GOOD ", \"steps\": [{" STEP ", \"rows\": -1}]}", "'rows'"},
        {"{" GOOD ", \"steps\": [{" STEP ", \"kind\": \"odd\"}]}", "'kind'"},
        {"{" GOOD ", \"steps\": [{" STEP ", \"matches\": \"0g\"}]}", "'matches'"},
        {"{" GOOD ", \"steps\": [{" STEP ", \"sources\": [{\"rows\": 1}]}]}", "'name'"},
        {"{" GOOD ", \"steps\": [{" STEP ", \"sources\": [{\"name\": \"s\"}, {\"name\": \"s\"}]}]}",
         "in a step twice"},
        {"{" GOOD ", \"steps\": [{" STEP ", \"passes\": [{\"model\": \"z\"}]}]}", "'model'"},
        {"{" GOOD ", \"tokens\": 2, \"steps\": [{" STEP "}]}", "'tokens' is 2"},
        {"{" GOOD ", \"params\": {\"k\": [1]}, \"steps\": [{" STEP "}]}", "parameter 'k'"},
        {"{" GOOD ", \"settings\": 1, \"steps\": [{" STEP "}]}", "'settings'"},
        {"{" GOOD ", \"ids\": [\"a\"], \"steps\": [{" STEP "}]}", "'ids'"},
        {"{" GOOD ", \"text\": \"a\", \"more_text\": [1], \"steps\": [{" STEP "}]}", "'more_text'"},
        {"{" GOOD ", \"pass\": 1, \"scores\": [], \"steps\": [{" STEP "}]}", "'scores'"},
        {"{" GOOD ", \"divergence\": {\"got\": 1}, \"steps\": [{" STEP "}]}", "'wanted'"},
        {"{" GOOD ", \"point\": 1, \"steps\": [{" STEP "}]}", "several files"},
        {"{\"run\": {\"kind\": \"sweep\"}}", "another run begins"},
        {"{" GOOD ", \"steps\": [{" STEP "}]}", "on an earlier line"}, // as the line before it
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

// A run as it is exported, with something wrong in it; or right, and then cut short.
static void runs_that_are_no_good(void **state) {
#define POINT                                                                                              \
    "\"model\": \"m\", \"dataset\": \"d\", \"method\": \"x\", \"prompt\": 0, \"decode_s\": 1, \"steps\": " \
    "[{" STEP "}]"
#define STARTS "\"starts\": [{\"argv\": \"[]\", \"started\": 1, \"result\": \"done\"}]"
#define RUN_OF "\"kind\": \"sweep\", \"name\": \"r\", \"version\": \"1\", \"dirty\": 0, \"created\": 1"
    static const struct {
        const char *text, *want;
    } ROWS[] = {
        {"{\"run\": 1}", "a.jsonl:1: 'run' must be"},
        {"{\"run\": {}}", "'kind'"},
        {"{\"run\": {\"kind\": \"surface\"}}", "must be sweep or import"},
        {"{\"run\": {\"kind\": \"sweep\"}}", "a.jsonl:1: 'run'"},
        {"{\"run\": {" RUN_OF ", \"version\": 7}}", "a.jsonl:1"},
        {"{\"run\": {" RUN_OF ", \"models\": [{\"name\": \"m\"}]}}", "a.jsonl:1: 'run'"},
        {"{\"run\": {" RUN_OF ", \"models\": 3}}", "must be a list"},
        {"{\"run\": {" RUN_OF ", \"starts\": [{}]}}", "a.jsonl:1: 'run'"},
        {"{\"run\": {" RUN_OF ", \"starts\": [{\"argv\": {}}]}}", "a.jsonl:1: 'argv'"},
        {"{\"run\": {" RUN_OF ", \"points\": [{\"model\": \"m\"}]}}", "'dataset'"},
        {"{\"run\": {" RUN_OF "}}", "holds no samples"},
        {"{\"run\": {" RUN_OF ", " STARTS "}, \"point\": 1, " POINT "}", "'start'"},
        {"{\"run\": {" RUN_OF ", " STARTS "}, \"start\": 1, \"point\": 1, " POINT "}", "'start'"},
        {"{\"point\": 1, " POINT "}\n{\"point\": 2, " POINT "}", "a.jsonl:2: point 2"},
        {"{\"point\": 1, " POINT "}\n{\"point\": 1, \"hash\": \"a\", " POINT "}", "a.jsonl:2: point 1"},
        {"{\"point\": 1, " POINT "}\n{\"run\": {" RUN_OF "}, \"point\": 2, \"pass\": 1, " POINT "}",
         "a.jsonl:2: another run"},
    };
    static const char CUT[] =
        "{\"run\": {" RUN_OF ", " STARTS ", \"samples\": 2}, \"start\": 0, \"point\": 4, "
        "\"baseline\": 2, " POINT "}";
    static const char NONE[] =
        "{\"run\": {" RUN_OF ", \"samples\": 0, \"points\": [{\"point\": 3, \"model\": \"m\", "
        "\"dataset\": \"d\", \"method\": \"x\", \"skipped\": \"why\"}]}}";
    static char *words[] = {"outpace"};
    Store *s = store_open(folder_path(*state, "a.db"), STORE_WRITE, NULL, NULL);
    StoreImport from = {.path = "a.jsonl", .argc = 1, .argv = words};
    StoreImported done;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Error e = {0};
        from.bytes = ROWS[i].text;
        from.size = strlen(ROWS[i].text);
        if (store_import_steps(s, &from, &done, &e) || !strstr(e.text, ROWS[i].want) || e.kind != ERROR_INPUT)
            fail_msg("%s: wanted '%s', got '%s'", ROWS[i].text, ROWS[i].want, e.text);
    }
    assert_true(real(s, "SELECT count(*) FROM run") == 0 && real(s, "SELECT count(*) FROM point") == 0);
    Error e = {0};
    from.bytes = CUT;
    from.size = strlen(CUT);
    if (!store_import_steps(s, &from, &done, &e)) fail_msg("%s", e.text);
    assert_true(done.promised == 2 && done.samples == 1 && done.alone == 1);
    assert_true(real(s, "SELECT count(*) FROM run_state WHERE unfinished = 'incomplete' AND name = 'r'") ==
                1);
    from.bytes = NONE;
    from.size = strlen(NONE);
    if (!store_import_steps(s, &from, &done, &e)) fail_msg("%s", e.text);
    assert_true(real(s, "SELECT count(*) FROM point WHERE number = 3 AND skipped = 'why'") == 1);
    store_close(s);
}

// Lines of other engines that vary more than the method: the baseline of a point has its settings, if any
// has.
static void baselines_of_others(void **state) {
    static char *words[] = {"outpace"};
    Text t = {0};
    for (int seed = 1; seed <= 3; seed++)
        for (int base = seed < 3; base >= 0; base--)
            text_printf(&t,
                        "{\"model\": \"m\", \"dataset\": \"d\", \"method\": \"%s\", \"settings\": "
                        "{\"generation\": {\"seed\": %d}}, \"prompt\": 0, \"decode_s\": %d, \"steps\": "
                        "[{\"accepted\": 0, \"emitted\": 1}]}\n",
                        base ? "autoregressive" : "x", seed, base ? 10 * seed : 1);
    Store *s = store_open(folder_path(*state, "a.db"), STORE_WRITE, NULL, NULL);
    StoreImport from = {.path = "a.jsonl", .argc = 1, .argv = words, .bytes = text_get(&t), .size = t.length};
    StoreImported done;
    Error e = {0};
    if (!store_import_steps(s, &from, &done, &e)) fail_msg("%s", e.text);
    Rows *r = rows_open(s, "SELECT speedup FROM result WHERE method = 'x' ORDER BY number", &e);
    for (int seed = 1; seed <= 3; seed++) // the third has none of its own: the last
        assert_true(rows_next(r) && (int)rows_real(r, 0) == (seed == 1 ? 10 : 20));
    assert_true(rows_end(r, true, &e));
    assert_true(real(s, "SELECT count(*) FROM run WHERE kind = 'import' AND name = 'a.jsonl'") == 1);
    text_release(&t);
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
    from_base.method = "autoregressive";
    if (!store_import_records(s, RECORDS_SPECBENCH, &from, &from_base, &done, &e)) fail_msg("%s", e.text);
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
        cmocka_unit_test_setup_teardown(runs_come_back, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(lines_that_are_no_good, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(runs_that_are_no_good, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(baselines_of_others, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(answers, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(csv, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
