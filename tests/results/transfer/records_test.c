// Records of other programs: files made to each documented form give what their own sums say; bad ones give a
// line and no run.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "tests/support/child.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static void write_text(const char *folder, const char *name, const char *text) {
    if (!file_write(folder_path(folder, name), text, strlen(text), NULL)) fail_msg("cannot write %s", name);
}

// The rows of a query as text, a line each.
static char *ask(const char *folder, const char *store, const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *s;
    static char out[8][4096];
    static int next;
    char *text = out[next++ % 8];
    size_t n = 0;
    assert_int_equal(sqlite3_open(folder_path(folder, store), &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    *text = 0;
    while (sqlite3_step(s) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            const char *value = (const char *)sqlite3_column_text(s, i);
            n += (size_t)snprintf(text + n, sizeof out[0] - n, "%s%s", value ? value : "-",
                                  i + 1 < sqlite3_column_count(s) ? " " : "\n");
        }
    sqlite3_finalize(s);
    sqlite3_close(db);
    return text;
}

static void same(const char *folder, const char *store, const char *sql, const char *wanted) {
    char *got = ask(folder, store, sql);
    if (strcmp(got, wanted) != 0) fail_msg("%s: %s: wanted '%s', got '%s'", store, sql, wanted, got);
}

static void expect_import(const char *folder, const char *kind, const char *text, const char *store) {
    Child c;
    write_text(folder, "f.json", text);
    CHILD_OUTPACE(&c, folder, 0, "store", "import", kind, "f.json", "--db", store);
    child_release(&c);
}

// Two points of one request each, whose steps have an order; the second one's end cuts its last step. As vLLM
// and as AIPerf write them.
static void in_order(void **state) {
#define REQUEST(label)                                                                   \
    "{\"id\": \"chat-01\", \"model\": \"m\", \"dataset\": \"chat\", \"label\": \"" label \
    "\", \"prompt\": 4, \"category\": \"a\", "
#define FIRST                                                                                        \
    "\"acceptance_histogram\": [2, 0, 1], \"num_spec_steps\": 3, \"num_accepted_draft_tokens\": 2, " \
    "\"num_draft_tokens\": 7, \"per_step_accepted\": [0, 2, 0], \"per_step_drafted\": [1, 3, 3]"
#define SECOND                                                                                                  \
    "\"acceptance_histogram\": {\"0\": 1, \"3\": 1}, \"num_spec_steps\": 2, \"num_accepted_draft_tokens\": 3, " \
    "\"num_draft_tokens\": 6, \"per_step_accepted\": [0, 3], \"per_step_drafted\": [3, 3]"
    static const char STEPS[] =
        "SELECT label, prompt.number, task, t.number, t.accepted, t.emitted, t.drafted, t.candidates FROM step AS t"
        " JOIN sample ON sample.id = sample_id JOIN point ON point.id = point_id JOIN prompt"
        " ON prompt.id = prompt_id ORDER BY 1, 2, 4";
    static const char WANT[] =
        "x 4 a 0 0 1 1 1\nx 4 a 1 2 3 3 3\nx 4 a 2 0 1 3 3\ny 4 a 0 0 1 3 3\ny 4 a 1 3 2 3 3\n";
    expect_import(
        *state, "vllm",
        REQUEST("x") "\"metrics\": {\"speculative_decoding\": {" FIRST "}}}\n" REQUEST(
            "y") "\"usage\": {\"completion_tokens\": 3}, \"metrics\": {\"speculative_decoding\": {" SECOND
                 "}}}\n",
        "v.db");
    same(*state, "v.db", STEPS, WANT);
    expect_import(*state, "aiperf",
                  REQUEST("x") FIRST "}\n" REQUEST("y") "\"completion_tokens\": 3, " SECOND "}\n", "a.db");
    same(*state, "a.db", STEPS, WANT);
}

// Both files of specdec_bench; the responses keep their requests apart.
static void specdec(void **state) {
    static const char TOKENS[] = "SELECT count(*), sum(tokens), sum(steps) FROM sample";
    expect_import(*state, "specdec-bench",
                  "{\"question_id\": 3, \"category\": \"a\", \"acceptance_lengths\": [1, 3, 1]}\n"
                  "{\"question_id\": 5, \"category\": \"b\", \"acceptance_lengths\": [2]}\n",
                  "r.db");
    same(*state, "r.db", TOKENS, "2 7 4\n");
    same(*state, "r.db", "SELECT number, name, task FROM prompt ORDER BY 1", "3 3 a\n5 5 b\n");
    same(*state, "r.db", "SELECT accepted, sum(steps) FROM sample_accept GROUP BY 1", "0 2\n1 1\n2 1\n");
    expect_import(*state, "specdec-bench",
                  "{\"Average_AL\": 1.8, \"Acceptance_Length_Histogram\": {\"1\": 2, \"2\": 1, \"3\": 1}}",
                  "h.db");
    same(*state, "h.db", TOKENS, "1 7 4\n");
    same(*state, "h.db", "SELECT accepted, sum(steps) FROM sample_accept GROUP BY 1", "0 2\n1 1\n2 1\n");
    // A dense list begins with steps that gave no token.
    expect_import(*state, "specdec-bench", "{\"Acceptance_Length_Histogram\": [1, 2, 1]}", "l.db");
    same(*state, "l.db", TOKENS, "1 4 4\n");
    same(*state, "l.db", "SELECT accepted, sum(steps) FROM sample_accept GROUP BY 1", "0 3\n1 1\n");
}

// vLLM's documented example, with its text around it.
static void documented(void **state) {
    Child c;
    write_text(
        *state, "r.jsonl",
        "{\"id\": \"chatcmpl-1\", \"model\": \"m\", \"choices\": [], \"usage\": {\"prompt_tokens\": 12,"
        " \"completion_tokens\": 54}, \"metrics\": {\"speculative_decoding\": {\"mean_acceptance_length\":"
        " 1.2325581395348837, \"draft_acceptance_rate\": 0.07751937984496124, \"acceptance_histogram\":"
        " [39, 1, 0, 3], \"num_spec_steps\": 43, \"num_accepted_draft_tokens\": 10, \"num_draft_tokens\": "
        "129,"
        " \"num_spec_tokens\": 3}}}\n");
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "vllm", "r.jsonl", "--db", "x.db", "--method", "eagle3");
    child_release(&c);
    same(*state, "x.db", "SELECT model, method, round(S, 9) FROM result", "m eagle3 1.23255814\n");
    same(*state, "x.db", "SELECT accepted, sum(steps) FROM sample_accept GROUP BY 1", "0 39\n1 1\n3 3\n");
    same(*state, "x.db", "SELECT sum(drafted), max(prompt_tokens) FROM sample", "129 12\n");
    // A benchmark, and the same without speculation: speedup is the ratio of their times.
    write_text(*state, "b.json",
               "{\"model_id\": \"m\", \"duration\": 2.0, \"completed\": 4, \"total_input_tokens\": 9,"
               " \"total_output_tokens\": 14, \"spec_decode_acceptance_rate\": 50.0, "
               "\"spec_decode_acceptance_length\":"
               " 2.8, \"spec_decode_num_drafts\": 5, \"spec_decode_draft_tokens\": 18, "
               "\"spec_decode_accepted_tokens\":"
               " 9, \"spec_decode_per_position_acceptance_rates\": [1.0, 0.6, 0.2]}");
    write_text(*state, "base.json", "{\"model_id\": \"m\", \"duration\": 5.0, \"total_output_tokens\": 14}");
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "bench-serve", "b.json", "--baseline", "base.json",
                  "--db", "b.db", "--method", "eagle3");
    child_release(&c);
    same(*state, "b.db", "SELECT label, round(S, 6), speedup FROM result ORDER BY label",
         "autoregressive 1.0 1.0\neagle3 2.8 2.5\n");
    same(*state, "b.db", "SELECT accepted, sum(steps) FROM sample_accept GROUP BY 1", "1 2\n2 2\n3 1\n");
}

static void specforge(void **state) {
    Child c;
    write_text(
        *state, "data.json",
        "{\"M\": {\"gsm8k\": {\"benchmark_name\": \"gsm8k\", \"results\": ["
        "{\"batch_size\": 8, \"steps\": 3, \"topk\": 1, \"num_draft_tokens\": 4, \"metrics\": ["
        "{\"Name\": \"Wihtout EAGLE3\", \"output_throughput\": 337.92445122816076, \"accept_length\": 1.0},"
        "{\"Name\": \"d\", \"output_throughput\": 498.355967400969, \"accept_length\": 3.271389121751566}]},"
        "{\"batch_size\": 8, \"steps\": 5, \"topk\": 1, \"num_draft_tokens\": 6, \"metrics\": ["
        "{\"Name\": \"Wihtout EAGLE3\", \"output_throughput\": 337.92445122816076, \"accept_length\": 1.0},"
        "{\"Name\": \"d\", \"output_throughput\": 538.7660865, \"accept_length\": 4.120435815920245}]}]}}}");
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "specforge", "data.json", "--db", "x.db", "--method",
                  "eagle3");
    child_release(&c);
    same(*state, "x.db",
         "SELECT label, round(S, 5), round(speedup, 4), round(tokens_per_s, 4) FROM result ORDER BY S",
         "autoregressive 1.0 1.0 337.9245\nd 8-3-1-4 3.27139 1.4748 498.356\nd 8-5-1-6 4.12044 1.5943 "
         "538.7661\n");
}

#define SPEC(histogram, steps, accepted, drafted)                                   \
    "{\"acceptance_histogram\": " histogram ", \"num_spec_steps\": " steps          \
    ", \"num_accepted_draft_tokens\": " accepted ", \"num_draft_tokens\": " drafted \
    ", \"num_spec_tokens\": 3}\n"

static void bad(void **state) {
    static const char *const ROWS[][3] = {
        {"vllm", SPEC("[1]", "1", "0", "3") SPEC("[2, 1]", "4", "1", "12"),
         "f.json:2: 'num_spec_steps' is 4, but its steps have 3"},
        {"aiperf", SPEC("{\"0\": 2, \"1\": 1}", "3", "2", "9"),
         "'num_accepted_draft_tokens' is 2, but its steps have 1"},
        {"aiperf", SPEC("{\"x\": 2}", "0", "0", "0"), "'x' of the histogram isn't a length"},
        {"vllm", SPEC("[-1]", "1", "0", "3"), "entry 0 of the histogram isn't a number of steps"},
        {"vllm", SPEC("7", "1", "0", "3"), "the histogram must be a list or an object"},
        {"vllm",
         "{\"acceptance_histogram\": [1], \"per_step_accepted\": [2], \"per_step_drafted\": [1],"
         " \"num_spec_steps\": 1, \"num_accepted_draft_tokens\": 2}",
         "step 0 accepts more than it drafted"},
        {"vllm", "{\"text\": \"hello\"}", "has neither 'metrics.speculative_decoding'"},
        {"vllm", "{\"acceptance_hist", "f.json:1"},
        {"specdec-bench", "{\"Request_AL\": {}}", "has neither 'Acceptance_Length_Histogram'"},
        {"specdec-bench", "{\"Acceptance_Length_Histogram\": {}}", "the histogram is empty"},
        {"specdec-bench", "{\"acceptance_lengths\": [1, \"2\"]}", "entry 1 of 'acceptance_lengths'"},
        {"specforge", "{\"M\": {\"b\": {}}}", "f.json: M, b: has no list 'results'"},
        {"specforge", "{\"M\": 3}", "'M' isn't an object of benchmarks"},
        {"vllm", "", "holds no records"},
        {"sglang", "{}", "'sglang' isn't a format"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Child c;
        write_text(*state, "f.json", ROWS[i][1]);
        CHILD_OUTPACE(&c, *state, 2, "store", "import", ROWS[i][0], "f.json", "--db", "x.db");
        if (!strstr(text_get(&c.err), ROWS[i][2]))
            fail_msg("row %zu: wanted '%s', got '%s'", i, ROWS[i][2], text_get(&c.err));
        assert_false(file_exists(folder_path(*state, "x.db")));
        child_release(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(in_order, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(specdec, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(documented, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(specforge, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(bad, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
