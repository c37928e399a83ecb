// The published models of models/fetch, run by `make test-real`: greedy ids against those of Hugging Face
// transformers in f32 on the file's exact values (tests/oracle/published.py wrote tests/fixtures/published), and
// every method against autoregressive decoding, alone and in a batch. A model or data set that isn't here is skipped.
//
// Where the ids differ, decoding goes on from transformers' own, so that each position is judged. Its gap is how far
// transformers' best logit is above the second. A difference at a gap below `near` is a near tie, and is printed; at a
// larger gap it fails the test. The exact values are computed in f32, as transformers does; bf16, the program's own
// choice, rounds them and the activations, which turned over gaps of up to 0.071 logits in thousands of choices.
#include "tests/support/check.h"
#include "tests/support/child.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "engine/decode/decode.h"
#include "engine/engine.h"
#include "harness/inputs/prompts.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    double near;
} AS[] = {[WEIGHTS_MAPPED] = {"bf16", 0.1}, [WEIGHTS_EXACT] = {"exact", 1e-3}};
enum { TOKENS = 32, EACH = 8 };

static const char *const SETS[] = {"mt-bench", "humaneval", "gsm8k"};
enum { SET_COUNT = sizeof SETS / sizeof *SETS, ROWS = EACH * SET_COUNT };

typedef struct Published {
    const char *name, *draft; // draft: a smaller one of the same vocabulary; NULL: none
    bool chat;                // its prompts are in its own template
    bool slow;                // exact values: a prompt of each set, all by $OUTPACE_LONG
} Published;

// A row of a fixture: one prompt of a data set.
typedef struct Recorded {
    char set[16];
    int row, prompt_tokens, ids[TOKENS];
    uint64_t prompt_hash;
    double gaps[TOKENS];
} Recorded;

typedef struct World {
    const Published *model;
    Engine engine;
    Dataset sets[SET_COUNT];
    WeightsPlace weights;
    int positions, near, wrong;
} World;

// The path of a model that was fetched, for mem_free; the test is skipped without one.
static char *fetched(const char *name) {
    Error e = {0};
    char *path = shipped_model(name, &e);
    if (path) return path;
    print_message("%s isn't here: 'models/fetch %s' fetches it\n", name, name);
    skip();
    return NULL;
}

static void open_sets(World *w) {
    for (int i = 0; i < SET_COUNT; i++) {
        Error e = {0};
        DatasetRequest r = {.name = SETS[i], .folder = getenv("OUTPACE_DATA"), .limit = EACH, .turns = 1};
        if (dataset_open(&w->sets[i], &r, &e)) continue;
        print_message("%s: %s\n", w->model->name, e.text);
        skip();
    }
}

static void prompt_of(World *w, const Recorded *r, IdList *out) {
    Error e = {0};
    int set = 0;
    while (strcmp(SETS[set], r->set) != 0) assert_true(++set < SET_COUNT);
    assert_true(r->row >= 1 && r->row <= (int)w->sets[set].count);
    const Tokenizer *tokenizer = w->engine.tokenizer;
    const Template *template = w->model->chat ? tokenizer_template(tokenizer, TEMPLATE_OF_MODEL, &e) : NULL;
    if (w->model->chat && !template) fail_msg("%s", e.text);
    if (!prompt_of_dataset(&w->sets[set].prompts[r->row - 1], tokenizer, template, out, &e))
        fail_msg("%s", e.text);
    uint64_t hash = test_hash(out->ids, out->count * sizeof *out->ids);
    if ((int)out->count != r->prompt_tokens || hash != r->prompt_hash)
        fail_msg("%s, %s %d: the prompt has %zu tokens that hash to %016lx, wanted %d and %016lx",
                 w->model->name, r->set, r->row, out->count, (unsigned long)hash, r->prompt_tokens,
                 (unsigned long)r->prompt_hash);
}

// Judges the ids from position `first` on; gives the position after the first difference.
static int judge_from(World *w, const Recorded *r, const IdList *prompt, Method *method, int first) {
    Error e = {0};
    DecodeResult got;
    DecodeOptions o = {.max_tokens = TOKENS - first,
                       .ignore_eos = true,
                       .sampling = {.top_p = 1},
                       .merge = true,
                       .clock = clock_monotonic()};
    int given = (int)prompt->count + first, *ids = mem_new((size_t)given, sizeof *ids);
    memcpy(ids, prompt->ids, prompt->count * sizeof *ids);
    memcpy(ids + prompt->count, r->ids, (size_t)first * sizeof *ids);
    if (!decode(&w->engine.session, method, ids, given, &o, &got, &e)) fail_msg("%s", e.text);
    assert_int_equal(got.tokens, TOKENS - first);
    int at = first;
    while (at < TOKENS && got.ids[at - first] == r->ids[at]) at++;
    if (at < TOKENS) {
        bool near = r->gaps[at] < AS[w->weights].near;
        *(near ? &w->near : &w->wrong) += 1;
        print_message("  %s, %s %d, token %d: %d, wanted %d, whose logit is %.4f above the second's: %s\n",
                      AS[w->weights].name, r->set, r->row, at + 1, got.ids[at - first], r->ids[at],
                      r->gaps[at], near ? "a near tie" : "WRONG");
    }
    decode_result_release(&got);
    mem_free(ids);
    return at < TOKENS ? at + 1 : TOKENS;
}

static void judge(World *w, const Recorded *r, Method *method) {
    IdList prompt = {0};
    prompt_of(w, r, &prompt);
    for (int at = 0; at < TOKENS;) at = judge_from(w, r, &prompt, method, at);
    w->positions += TOKENS;
    ids_release(&prompt);
}

static void read_row(const char *line, Recorded *r) {
    int at;
    unsigned long hash;
    assert_int_equal(sscanf(line, "%15s %d %d %lx%n", r->set, &r->row, &r->prompt_tokens, &hash, &at), 4);
    r->prompt_hash = hash;
    char *end = (char *)line + at;
    for (int i = 0; i < TOKENS; i++) r->ids[i] = (int)strtol(end, &end, 10);
    for (int i = 0; i < TOKENS; i++) r->gaps[i] = strtod(end, &end);
    assert_true(*end == '\n');
}

static void read_rows(const char *model, Recorded *rows) {
    char file[512], *text;
    size_t size;
    int count = 0;
    Error e = {0};
    const char *root = getenv("OUTPACE_ROOT");
    snprintf(file, sizeof file, "%s/tests/fixtures/published/%s.tsv", root ? root : ".", model);
    if (!file_read(file, 1 << 20, &text, &size, &e)) fail_msg("%s", e.text);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        assert_true(count < ROWS);
        read_row(line, &rows[count++]);
    }
    assert_int_equal(count, ROWS);
    mem_free(text);
}

// Every step-th row.
static void judge_all(World *w, const Recorded *rows, int count, int step) {
    Error e = {0};
    Method method;
    MethodEnv env = {.target = &w->engine.session};
    if (!method_open(&method, "autoregressive", &env, &e)) fail_msg("%s", e.text);
    for (int i = 0; i < count; i += step) judge(w, &rows[i], &method);
    method_close(&method);
}

static void open_world(World *w, const Published *p, WeightsPlace weights) {
    char *path = fetched(p->name);
    Error e = {0};
    *w = (World){.model = p, .weights = weights};
    EngineOptions o = {.device = "cpu", .context = 1024, .weights = weights, .isa = getenv("OUTPACE_ISA")};
    open_sets(w);
    if (!engine_open(&w->engine, path, &o, NULL, &e)) fail_msg("%s", e.text);
    mem_free(path);
}

static void close_world(World *w) {
    engine_close(&w->engine);
    for (int i = 0; i < SET_COUNT; i++) dataset_release(&w->sets[i]);
}

static void greedy(const Published *p, WeightsPlace weights) {
    World w;
    Recorded rows[ROWS];
    read_rows(p->name, rows);
    open_world(&w, p, weights);
    judge_all(&w, rows, ROWS, weights == WEIGHTS_EXACT && p->slow ? test_some(EACH, 1) : 1);
    print_message("%s, %s: %d of %d ids are transformers', %d others are near ties, %d wrong\n", p->name,
                  AS[weights].name, w.positions - w.near - w.wrong, w.positions, w.near, w.wrong);
    close_world(&w);
    assert_int_equal(w.wrong, 0);
}

// The judge is judged: a row whose last id is another one is wrong, and a near tie if its gap is small.
static void planted(void **model) {
    World w;
    Recorded rows[ROWS];
    const Published *p = *model;
    read_rows(p->name, rows);
    rows[1] = rows[0];
    rows[0].ids[TOKENS - 1]++;
    rows[0].gaps[TOKENS - 1] = AS[WEIGHTS_EXACT].near;
    rows[1].ids[TOKENS - 1]++;
    rows[1].gaps[TOKENS - 1] = AS[WEIGHTS_EXACT].near / 2;
    open_world(&w, p, WEIGHTS_EXACT);
    judge_all(&w, rows, 2, 1);
    close_world(&w);
    assert_int_equal(w.wrong, 1);
    assert_int_equal(w.near, 1);
}

static void greedy_rounded(void **model) { greedy(*model, WEIGHTS_MAPPED); }
static void greedy_exact(void **model) { greedy(*model, WEIGHTS_EXACT); }

// Every method that needs nothing but the given models was checked, none left out.
static void assert_checked(const char *out, bool draft) {
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    unsigned given = NEEDS_ANSWER | NEEDS_LAYERS | (draft ? NEEDS_DRAFT : 0);
    for (size_t i = 0; i < count; i++) {
        char line[64];
        snprintf(line, sizeof line, "ok    %s: greedy, 4 prompts", table[i]->name);
        if (!(table[i]->needs & ~given) && !strstr(out, line)) fail_msg("wanted '%s', got:\n%s", line, out);
    }
}

static void every_method(const Published *p, const char *batch) {
    char *path = fetched(p->name), *draft = p->draft ? fetched(p->draft) : NULL;
    Child c;
    CHILD_OUTPACE(&c, NULL, 0, "verify", path, "--method", "all", "--dataset", "chat", "--count", "4",
                  "--max-tokens", "8", "--batch", batch, "--cache", "", draft ? "--draft" : NULL, draft);
    printf("%s, batch %s:\n%s", p->name, batch, text_get(&c.out)); // print_message cuts long texts
    assert_checked(text_get(&c.out), draft);
    child_release(&c);
    mem_free(path);
    mem_free(draft);
}

static void alone(void **model) { every_method(*model, "1"); }
static void batched(void **model) { every_method(*model, "4"); }

#define TEST(what, function, p) \
    { what, function, NULL, NULL, &(p) }
#define METHODS_OF(p) TEST("methods: " #p, alone, p), TEST("methods, batch: " #p, batched, p)
#define TESTS_OF(p) \
    TEST("greedy, bf16: " #p, greedy_rounded, p), TEST("greedy, exact: " #p, greedy_exact, p), METHODS_OF(p)

int main(int argc, char **argv) {
    static Published smollm2_135m = {"smollm2-135m", "smollm2-135m", .chat = true},
                     gemma3_270m = {"gemma3-270m", .chat = false},
                     qwen_0_5b = {"qwen2.5-coder-0.5b", .chat = true},
                     qwen_1_5b = {"qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b", .chat = true, .slow = true};
    const struct CMUnitTest tests[] = {TEST("planted ids: smollm2_135m", planted, smollm2_135m),
                                       TESTS_OF(smollm2_135m), TESTS_OF(gemma3_270m), TESTS_OF(qwen_0_5b),
                                       TESTS_OF(qwen_1_5b)};
    if (argc > 1) cmocka_set_test_filter(argv[1]); // "*gemma*"
    return cmocka_run_group_tests(tests, NULL, NULL);
}
