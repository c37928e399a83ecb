// `outpace show RUN --tokens` and the trace for Perfetto, of a run of the reference model: every text comes
// back token by token, and its steps are those of the store.
#include "tests/support/check.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static const char CONFIG[] = "name: tokens\n"
                             "models: [{name: reference, target: reference, draft: draft}]\n"
                             "datasets: [{name: mix, parts: [reference-code, reference-stories], limit: 3}]\n"
                             "generation: {max_tokens: 24}\n"
                             "methods: [autoregressive, {name: speculative, matrix: {gamma: [2, 3]}}, "
                             "{name: ngrammys, matrix: {k: 4, w: 4}}]\n"
                             "measurement: {warmup: 0, passes: 1, reruns: 0}\n";

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    scratch_write(*state, "t.yaml", CONFIG, sizeof CONFIG - 1);
    CHILD_OUTPACE(&c, *state, 0, "run", "t.yaml", "--db", "t.db");
    child_release(&c);
    return 0;
}

static sqlite3 *open_store(const char *folder, const char *name) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(folder_path(folder, name), &db, SQLITE_OPEN_READONLY, NULL), 0);
    return db;
}

// The text of a query's one value, for sqlite3_free.
static char *ask(sqlite3 *db, const char *sql) {
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), 0);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    char *text = sqlite3_mprintf("%s", sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    return text;
}

// Of each point's each prompt: the steps' texts are the output's, their tokens those of the sample.
static void steps_make_the_text(void **state) {
    Child c;
    sqlite3 *db = open_store(*state, "t.db");
    json_error_t why;
    int texts = 0;
    for (int prompt = 0; prompt < 3; prompt++) {
        char number[8];
        snprintf(number, sizeof number, "%d", prompt);
        CHILD_OUTPACE(&c, *state, 0, "show", "1", "--tokens", "--prompt", number, "--json", "--db", "t.db");
        json_t *rows = json_loads(text_get(&c.out), 0, &why);
        assert_true(json_array_size(rows) > 0);
        Text all = {0};
        int64_t tokens = 0;
        for (size_t i = 0; i < json_array_size(rows); i++) {
            const json_t *row = json_array_get(rows, i), *next = json_array_get(rows, i + 1);
            int64_t point = json_integer_value(json_object_get(row, "point"));
            text_puts(&all, json_string_value(json_object_get(row, "text")));
            tokens += json_integer_value(json_object_get(row, "emitted"));
            if (next && json_integer_value(json_object_get(next, "step")) != 1) continue;
            char *sql = sqlite3_mprintf(
                "SELECT text || '|' || sample.tokens FROM sample JOIN point ON point.id = point_id JOIN "
                "prompt ON "
                "prompt.id = prompt_id JOIN output ON output.id = output_id WHERE point.number = %lld AND "
                "prompt.name = '%q'",
                (long long)point, json_string_value(json_object_get(row, "prompt")));
            char *want = ask(db, sql);
            text_printf(&all, "|%lld", (long long)tokens);
            assert_string_equal(text_get(&all), want);
            sqlite3_free(want);
            sqlite3_free(sql);
            text_clear(&all);
            tokens = 0;
            texts++;
        }
        text_release(&all);
        json_decref(rows);
        child_release(&c);
    }
    sqlite3_close(db);
    assert_int_equal(texts, 4 * 3); // points, prompts
}

// Without the marks of a pipe, or the colours of a terminal, its lines are the text.
static void people_read_the_text(void **state) {
    Child c;
    sqlite3 *db = open_store(*state, "t.db");
    char *name = ask(db, "SELECT name FROM prompt ORDER BY id LIMIT 1"),
         *want = ask(
             db, "SELECT text FROM sample JOIN output ON output.id = output_id ORDER BY prompt_id LIMIT 1");
    for (int terminal = 0; terminal < 2; terminal++) {
        Text plain = {0};
        if (terminal)
            CHILD_TERMINAL(&c, *state, 100, 0, "show", "1", "--tokens", "--prompt", name, "--method",
                           "speculative", "--db", "t.db");
        else
            CHILD_OUTPACE(&c, *state, 0, "show", "1", "--tokens", "--prompt", name, "--method", "speculative",
                          "--db", "t.db");
        const char *out = text_get(&c.out);
        assert_non_null(strstr(out, terminal ? "\033[38;5;33mdraft\033[0m " : "a{}: draft "));
        assert_non_null(strstr(out, "the target itself"));
        for (const char *at = out; *at; at++)
            if (*at == '\033') at = strchr(at, 'm');
            else if (*at == 'a' && at[1] == '{') at++;
            else if (*at != '|' && *at != '}' && *at != '\r') text_add(&plain, at, 1);
        if (!strstr(text_get(&plain), want)) fail_msg("wanted '%s' in '%s'", want, text_get(&plain));
        text_release(&plain);
        child_release(&c);
    }
    sqlite3_free(name);
    sqlite3_free(want);
    sqlite3_close(db);
}

// Without a prompt: of each method its best point, and the prompts of its median, best and worst S.
static void telling_prompts(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "show", "1", "--tokens", "--method", "speculative", "--db", "t.db");
    static const char *const WHY[] = {"(median)", "(best)", "(worst)"};
    const char *first = strstr(text_get(&c.out), "speculative gamma=");
    for (int i = 0; i < 3; i++) {
        const char *at = strstr(text_get(&c.out), WHY[i]);
        if (!at || strstr(at + 1, WHY[i])) fail_msg("%s isn't there once: %s", WHY[i], text_get(&c.out));
    }
    for (const char *at = first; (at = strstr(at, "speculative gamma=")); at++)
        assert_int_equal(at[18], first[18]);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "show", "1", "--tokens", "--prompt", "nobody", "--db", "t.db");
    assert_non_null(strstr(text_get(&c.err), "no text token by token of a prompt 'nobody'"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "show", "1", "--prompt", "0", "--db", "t.db");
    child_release(&c);
}

// A page of two runs, here twice the same: it compares them in a sentence and by rows, and has the texts.
static void two_on_a_page(void **state) {
    static const char *const WORDS[] = {
        "<p>Run 1, tokens, is B, and this run A: no clear difference, of fewer than ten prompts",
        "<caption>Each pair of points</caption>", "<div id=\"tokens\" hidden>"};
    Child c;
    size_t size;
    CHILD_OUTPACE(&c, *state, 0, "report", "1", "1", "--db", "t.db", "-o", "both.html");
    child_release(&c);
    char *page = scratch_read(*state, "both.html", &size);
    for (int i = 0; i < 3; i++)
        if (!strstr(page, WORDS[i])) fail_msg("the page lacks '%s'", WORDS[i]);
    assert_true(size < 2000000);
    mem_free(page);
    CHILD_OUTPACE(&c, *state, 2, "report", "1", "--run", "1", "--db", "t.db");
    child_release(&c);
}

// --- recorded guesses ------------------------------------------------------------------------------------

// Recording changes neither text nor steps. A rejected guess is not the token that took its place; of a
// drafted chain the first wrong token is rejected, and no other was tried there.
static void recorded(void **state) {
    static const char
        STEPS[] = "SELECT group_concat(rows || ' ' || accepted || ' ' || emitted) FROM (SELECT * FROM step "
                  "ORDER BY sample_id, number)",
        PASSES[] = "SELECT sum(rows * count) || ' ' || sum(count) FROM pass",
        TAKEN[] = "WITH t AS (SELECT sample_id, number, emitted, sum(emitted) OVER (PARTITION BY sample_id "
                  "ORDER BY number) - emitted AS first FROM step) "
                  "SELECT count(*) FROM step_guess JOIN t USING (sample_id, number) JOIN sample ON "
                  "sample.id = sample_id JOIN output ON output.id = output_id WHERE depth <= emitted AND "
                  "substr(hex(ids), 1 + 8 * (first + depth - 1), 8) = printf('%02X%02X0000', token & 255, "
                  "token >> 8)",
        CHAINS[] = "SELECT count(*) || ' ' || coalesce(sum(g.depth = t.accepted + 1), 0) || ' ' || "
                   "count(g.depth) FROM step AS t JOIN sample ON sample.id = t.sample_id JOIN point ON "
                   "point.id = point_id LEFT JOIN step_guess AS g USING (sample_id, number) "
                   "WHERE method = 'speculative' AND t.depth > t.accepted",
        MARGINS[] = "SELECT count(*) FROM step WHERE margin IS NULL OR margin < 0";
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "run", "t.yaml", "--db", "r.db", "--record-guesses");
    assert_non_null(strstr(text_get(&c.out), "recording "));
    child_release(&c);
    sqlite3 *without = open_store(*state, "t.db"), *with = open_store(*state, "r.db");
    const char *const same[] = {STEPS, PASSES};
    for (int i = 0; i < 2; i++) {
        char *a = ask(without, same[i]), *b = ask(with, same[i]);
        assert_string_equal(a, b);
        sqlite3_free(a);
        sqlite3_free(b);
    }
    const char *const none[] = {TAKEN, MARGINS};
    for (int i = 0; i < 2; i++) {
        char *n = ask(with, none[i]);
        assert_string_equal(n, "0");
        sqlite3_free(n);
    }
    char *chains = ask(with, CHAINS);
    int steps, there, all;
    assert_int_equal(sscanf(chains, "%d %d %d", &steps, &there, &all), 3);
    if (steps == 0 || there != steps || all != steps) fail_msg("chains cut, guesses there, all: %s", chains);
    sqlite3_free(chains);
    sqlite3_close(without);
    sqlite3_close(with);
}

// --- the trace -------------------------------------------------------------------------------------------

static double number(const json_t *event, const char *key) {
    return json_number_value(json_object_get(event, key));
}

// A slice for each step, which its four parts fill; the steps of a sequence follow each other.
static void trace(void **state) {
    Child c;
    json_error_t why;
    sqlite3 *db = open_store(*state, "t.db");
    CHILD_OUTPACE(&c, *state, 0, "store", "export", "1", "--format", "perfetto", "-o", "trace.json", "--db",
                  "t.db");
    child_release(&c);
    json_t *all = json_load_file(folder_path(*state, "trace.json"), 0, &why);
    if (!all) fail_msg("%s", why.text);
    const json_t *events = json_object_get(all, "traceEvents"), *step = NULL;
    int64_t steps = 0, parts = 0, names = 0;
    double end = 0, part_end = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const char *name = json_string_value(json_object_get(event, "name")),
                   *cat = json_string_value(json_object_get(event, "cat"));
        names += cat == NULL;
        if (!cat) continue;
        double ts = number(event, "ts"), dur = number(event, "dur");
        assert_true(ts >= 0 && dur >= 0);
        if (strcmp(cat, "part") == 0) {
            parts++;
            if (ts < part_end - 0.002 || ts + dur > number(step, "ts") + number(step, "dur") + 0.002)
                fail_msg("%s at %.3f isn't in its step", name, ts);
            part_end = ts + dur;
            continue;
        }
        bool same = step && number(step, "tid") == number(event, "tid") &&
                    number(step, "pid") == number(event, "pid");
        if (same && ts < end - 0.002)
            fail_msg("%s begins at %.3f, the one before it ends at %.3f", name, ts, end);
        steps += strcmp(name, "prefill") != 0;
        step = event, part_end = ts, end = ts + dur;
    }
    json_decref(all);
    static const char COUNT[] =
        "SELECT printf('%d %d %d', count(*), 4 * count(*), (SELECT count(DISTINCT point_id) + "
        "count(DISTINCT point_id || '/' || prompt_id) FROM sample)) FROM step";
    char *want = ask(db, COUNT), got[64];
    snprintf(got, sizeof got, "%lld %lld %lld", (long long)steps, (long long)parts, (long long)names);
    assert_string_equal(got, want);
    sqlite3_free(want);
    sqlite3_close(db);
}

// Perfetto's own reader finds them: no slice is lost, and none has a wrong parent.
static void perfetto_reads_it(void **state) {
    static const char QUERY[] =
        "SELECT 'found', (SELECT count(*) FROM slice WHERE category = 'step' AND depth = 0), "
        "(SELECT count(*) FROM slice WHERE category = 'part' AND depth = 1), "
        "(SELECT count(*) FROM slice), "
        "(SELECT count(*) FROM stats WHERE value > 0 AND severity <> 'info');\n";
    static const char READ[] =
        "for p in trace_processor_shell trace_processor; do command -v $p >/dev/null && "
        "exec $p trace.json --query-file q.sql; done; exit 77";
    Child c;
    scratch_write(*state, "q.sql", QUERY, sizeof QUERY - 1);
    CHILD_OUTPACE(&c, *state, 0, "store", "export", "1", "--format", "perfetto", "-o", "trace.json",
                  "--force", "--db", "t.db");
    child_release(&c);
    child_run(&c, *state, NULL, (const char *const[]){"sh", "-c", READ, NULL});
    if (c.code == 77) {
        print_message("skipped: Perfetto's reader, trace_processor_shell, isn't here\n");
        child_release(&c);
        skip();
    }
    sqlite3 *db = open_store(*state, "t.db");
    char *want = ask(
        db,
        "SELECT printf('\"found\",%d,%d,%d,0', steps + samples, 4 * steps, 5 * steps + samples) FROM (SELECT "
        "(SELECT count(*) FROM step) AS steps, (SELECT count(*) FROM sample) AS samples)");
    if (!strstr(text_get(&c.out), want)) fail_msg("wanted %s, got %s", want, text_get(&c.out));
    sqlite3_free(want);
    sqlite3_close(db);
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_make_the_text),
        cmocka_unit_test(people_read_the_text),
        cmocka_unit_test(telling_prompts),
        cmocka_unit_test(two_on_a_page),
        cmocka_unit_test(recorded),
        cmocka_unit_test(trace),
        cmocka_unit_test(perfetto_reads_it),
    };
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
