// The keys that commands print with --json, and the columns of --csv, are those of docs/json.md.
#include "tests/support/check.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char CONFIG[] = "name: small\n"
                             "models: [{name: tiny, target: tiny}]\n"
                             "datasets: [{name: own, path: own.jsonl}]\n"
                             "hardware: {device: 'null', threads: 1}\n"
                             "generation: {max_tokens: 12, ignore_eos: on}\n"
                             "methods: [jacobi, prompt-lookup]\n";

// Windows and depths enough to fit the law.
static const char SETS[] =
    "name: sets\n"
    "models: [{name: tiny, target: tiny}]\n"
    "datasets: [{name: own, path: own.jsonl}]\n"
    "hardware: {threads: 1}\n"
    "generation: {max_tokens: 48, ignore_eos: on}\n"
    "methods: [{name: lookahead, matrix: {N: [3, 4]}, zip: {W: [2, 4, 7], G: [2, 4, 7]}}]\n";
static const char POINTS[] = "N\tW\tG\tS\n5\t5\t5\t1.5\n5\t10\t10\t1.7\n5\t15\t15\t1.8\n4\t7\t7\t1.55\n";

typedef struct Case {
    const char *section;
    const char *words[20];
    enum { PLAIN, NESTED, JSON_ONLY } csv; // NESTED: it has one of the arrays
} Case;

static const Case CASES[] = {
    {"show", {"show", "1", "--db", "a.db"}, PLAIN},
    {"show --tokens", {"show", "1", "--tokens", "--db", "a.db"}, PLAIN},
    {"table", {"table", "--db", "a.db"}, PLAIN},
    {"compare", {"compare", "1/1", "1/2", "--absolute", "--db", "a.db"}, NESTED},
    {"compare --acceptance", {"compare", "1/1", "1/2", "--acceptance", "--db", "a.db"}, NESTED},
    {"datasets", {"datasets"}, PLAIN},
    {"methods", {"methods"}, PLAIN},
    {"status", {"status", "--db", "a.db"}, PLAIN},
    {"plan", {"plan", "x.yaml", "--db", "a.db"}, PLAIN},
    {"quality", {"quality", "tiny", "--against", "tiny", "--path", "own.jsonl", "--greedy", "4"}, PLAIN},
    {"replay", {"replay", "--path", "own.jsonl", "--model", "tiny"}, NESTED},
    {"bench",
     {"bench", "tiny", "--tokens", "1", "--context", "5", "--samples", "2", "--seconds", "0"},
     NESTED},
    {"fit", {"fit", "--points", "points.tsv", "--resamples", "100"}, JSON_ONLY},
    {"fit", {"fit", "1", "--db", "sets.db", "--resamples", "100"}, JSON_ONLY},
    {"fit --surface",
     {"fit", "--surface", "steps.csv", "--model", "tiny", "--on", "cpu-2core-zen4"},
     JSON_ONLY},
    {"simulate", {"simulate", "1", "--db", "a.db", "--on", "a100-80gb", "--shape", "llama2-7b"}, NESTED},
    {"simulate",
     {"simulate", "1", "--db", "sets.db", "--on", "a100-80gb", "--shape", "llama2-7b", "--against", "1",
      "--devices", "1,2", "--link", "300,5", "--cut", "0.8"},
     NESTED},
    {"simulate FILE", {"simulate", "lengths.yaml", "--on", "h100", "--shape", "llama2-7b"}, PLAIN},
    {"tune",
     {"tune", "tiny", "--method", "ngrammys", "--path", "own.jsonl", "--device", "null", "--budget", "5s",
      "-n", "8", "--db", "t.db"},
     NESTED},
    {"tune --schedule",
     {"tune", "tiny", "--method", "jacobi", "--axis", "m=1", "--path", "own.jsonl", "--device", "null",
      "--budget", "1s", "-n", "4", "--batches", "1", "--schedule", "k.json", "--force"},
     NESTED},
    {"tune --tree",
     {"tune", "tiny", "--method", "recycling", "--path", "own.jsonl", "--device", "null", "-n", "8", "--tree",
      "t.tree", "--force"},
     PLAIN},
    {"doctor", {"doctor", "--threads", "1"}, JSON_ONLY},
    {"generate", {"generate", "tiny", "abc", "-n", "4"}, JSON_ONLY},
    {"verify", {"verify", "tiny", "-n", "1", "--max-tokens", "4", "--sampling"}, PLAIN},
    {"model info", {"model", "info", "tiny"}, PLAIN},
    {"tokenizer encode", {"tokenizer", "encode", "tiny", "abc"}, JSON_ONLY},
    {"train",
     {"train", "adapter", "tiny", "--text", "lines.txt", "--separator", "-", "--config", "one.yaml", "-o",
      "adapted", "--fresh"},
     JSON_ONLY},
    {"store merge", {"store", "merge", "a.db", "--db", "m.db"}, PLAIN},
    {"store gc", {"store", "gc", "--db", "m.db"}, PLAIN},
    {"plot", {"plot", "speedup", "--db", "a.db"}, PLAIN},
    {"report", {"report", "--db", "a.db"}, PLAIN},
};

// A machine whose steps take longer by each token and each position before it.
static void write_surface(const char *folder) {
    char text[2048];
    int n = snprintf(text, sizeof text, "tokens,context,k,w,layout,median_s\n");
    for (int context = 25; context <= 100; context *= 2)
        for (int tokens = 1; tokens <= 16; tokens *= 2)
            n += snprintf(text + n, sizeof text - (size_t)n, "%d,%d,0,0,chain,%.9g\n", tokens, context,
                          1e-4 + 1e-5 * tokens + 1e-8 * tokens * context);
    folder_write(folder, "steps.csv", text);
}

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    folder_write(*state, "x.yaml", CONFIG);
    folder_write(*state, "own.jsonl",
                 "{\"turns\": [\"a text\"], \"reference\": \"an answer of words\"}\n"
                 "{\"turns\": [\"more\"], \"reference\": \"and more of them\"}\n");
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "a.db");
    child_release(&c);
    folder_write(*state, "sets.yaml", SETS);
    CHILD_OUTPACE(&c, *state, 0, "run", "sets.yaml", "--db", "sets.db");
    child_release(&c);
    folder_write(*state, "points.tsv", POINTS);
    folder_write(*state, "lengths.yaml", "m: {on: {1: 1.5}}\n");
    write_surface(*state);
    folder_write(*state, "lines.txt", "a text of words\n-\nmore of them\n-\nand a last text\n");
    folder_write(*state, "one.yaml", "{steps: 1, context: 8, batch: 8, held_out: 0.5}\n");
    return 0;
}

// --- documented keys: those in backticks in the first column

static void add_cell(const char *line, json_t *sure, json_t *optional) {
    json_t *to = strncmp(line, "| *optional*", 12) == 0 ? optional : sure;
    const char *end = strchr(line + 1, '|');
    for (const char *at = strchr(line, '`'); at && at < end;) {
        const char *close = strchr(at + 1, '`');
        json_object_setn_new(to, at + 1, (size_t)(close - at - 1), json_null());
        at = strchr(close + 1, '`');
    }
}

static void read_section(const char *name, json_t *sure, json_t *optional) {
    const char *root = getenv("OUTPACE_ROOT");
    char head[64];
    size_t size;
    snprintf(head, sizeof head, "\n## %s\n", name);
    char *page = scratch_read(root ? root : ".", "docs/json.md", &size), *at = strstr(page, head);
    if (!at) fail_msg("docs/json.md has no section '%s'", name);
    for (at += strlen(head); *at && strncmp(at, "## ", 3) != 0; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, "| ", 2) == 0) add_cell(at, sure, optional);
    mem_free(page);
}

// --- printed keys

static void add_keys(json_t *value, const char *before, json_t *out) {
    const char *key;
    json_t *x;
    size_t i;
    if (json_is_array(value)) json_array_foreach(value, i, x) add_keys(x, before, out);
    else if (json_is_object(value)) json_object_foreach(value, key, x) {
            char name[128];
            snprintf(name, sizeof name, "%s%s%s", before, *before ? "." : "", key);
            json_object_set_new(out, name, json_null());
            add_keys(x, name, out);
        }
}

static void ask(const char *folder, const Case *c, const char *as, Child *out) {
    const char *words[22];
    int n = 0;
    for (; c->words[n]; n++) words[n] = c->words[n];
    words[n++] = as;
    words[n] = NULL;
    child_outpace(out, folder, 0, words);
}

static void first_not_in(const char *section, json_t *keys, json_t *known, json_t *also, const char *what) {
    const char *key;
    json_t *ignored;
    json_object_foreach(keys, key, ignored) if (!json_object_get(known, key) && !json_object_get(also, key))
        fail_msg("%s: key '%s' %s", section, key, what);
}

static void check_json(const char *folder, const Case *c) {
    Child child;
    Error e = {0};
    json_t *sure = json_object(), *optional = json_object(), *printed = json_object();
    read_section(c->section, sure, optional);
    ask(folder, c, "--json", &child);
    json_t *value = json_from_bytes(text_get(&child.out), child.out.length, c->section, &e);
    if (!value) fail_msg("%s", e.text);
    add_keys(value, "", printed);
    first_not_in(c->section, printed, sure, optional, "is printed, but not in docs/json.md");
    first_not_in(c->section, sure, printed, printed, "is in docs/json.md, but not printed");
    assert_true(json_object_size(printed) > 3);
    child_release(&child);
    json_decref(value);
    json_decref(printed);
    json_decref(optional);
    json_decref(sure);
}

static void keys_are_documented(void **state) {
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) check_json(*state, &CASES[i]);
}

static bool is_column(const Case *c, const json_t *keys, const char *column) {
    char points[128], methods[128];
    snprintf(points, sizeof points, "points.%s", column);
    snprintf(methods, sizeof methods, "methods.%s", column);
    return json_object_get(keys, column) ||
           (c->csv == NESTED && (json_object_get(keys, points) || json_object_get(keys, methods)));
}

// Each column is a key, alone or after the array that CSV shows; rows are complete.
static void csv_has_the_same(void **state) {
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const Case *c = &CASES[i];
        if (c->csv == JSON_ONLY) continue;
        Child child;
        json_t *sure = json_object(), *optional = json_object();
        int columns = 0;
        read_section(c->section, sure, optional);
        ask(*state, c, "--csv", &child);
        char *line = mem_text(text_get(&child.out), strcspn(text_get(&child.out), "\r\n")), *rest = NULL;
        for (char *column = strtok_r(line, ",", &rest); column; column = strtok_r(NULL, ",", &rest)) {
            if (!is_column(c, sure, column) && !is_column(c, optional, column))
                fail_msg("%s: column '%s' is not in docs/json.md", c->section, column);
            columns++;
        }
        assert_true(columns > 3 && strlen(strchr(text_get(&child.out), '\n')) > 1);
        mem_free(line);
        child_release(&child);
        json_decref(optional);
        json_decref(sure);
    }
}

// The columns are the query's own, with their types.
static void sql_as_everywhere(void **state) {
    static const char QUERY[] =
        "SELECT 1 AS n, 2.5 AS x, 'a, b' AS t, NULL AS none UNION ALL SELECT 2, 0, '', 1";
    static const char *const ROWS[][3] = {
        {QUERY, "--json",
         "[{\"n\":1,\"x\":2.5,\"t\":\"a, b\",\"none\":null},{\"n\":2,\"x\":0,\"t\":\"\",\"none\":1}]\n"},
        {"SELECT 1 AS n WHERE 0", "--json", "[]\n"},
        {"SELECT 1 AS n, 'a, b' AS t", "--csv", "n,t\r\n1,\"a, b\"\r\n"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Child c;
        CHILD_OUTPACE(&c, *state, 0, "sql", ROWS[i][0], ROWS[i][1], "--db", "a.db");
        if (strcmp(text_get(&c.out), ROWS[i][2]) != 0)
            fail_msg("%s %s: wanted '%s', got '%s'", ROWS[i][0], ROWS[i][1], ROWS[i][2], text_get(&c.out));
        child_release(&c);
    }
}

// The page has every row that 'outpace schema records' prints, in the section of that name.
static void page_is_current(void **state) {
    const char *root = getenv("OUTPACE_ROOT");
    size_t size;
    Child c;
    char *page = scratch_read(root ? root : ".", "docs/json.md", &size), *section = NULL;
    int rows = 0;
    CHILD_OUTPACE(&c, *state, 0, "schema", "records");
    char *rest = NULL;
    for (char *line = strtok_r(c.out.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char row[1024];
        snprintf(row, sizeof row, "\n%s\n", line);
        if (strncmp(line, "## ", 3) == 0) section = strstr(page, row);
        const char *at = section ? strstr(section, row) : NULL,
                   *next = section ? strstr(section + 1, "\n## ") : NULL;
        if (!at || (next && at > next))
            fail_msg("docs/json.md is not current ('outpace schema records'): wanted '%s'", line);
        rows += strncmp(line, "| ", 2) == 0;
    }
    assert_true(rows > 50);
    mem_free(page);
    child_release(&c);
}

static void not_both(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 2, "datasets", "--json", "--csv");
    assert_non_null(strstr(text_get(&c.err), "--json and --csv do not go together"));
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_documented), cmocka_unit_test(csv_has_the_same), cmocka_unit_test(not_both),
        cmocka_unit_test(sql_as_everywhere), cmocka_unit_test(page_is_current)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
