// The authors' own programs, step for step: tests/oracle/authors.py ran them on the reference family, in f32,
// with our random draws, and recorded each prompt's passes of the target. Every row of
// tests/fixtures/authors/*.tsv is a setting; each must need as many steps here, and write greedy search's
// text.
#include "tests/support/check.h"
#include "tests/support/folder.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/decode/structures/datastore.h"
#include "engine/decode/decode.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

#ifndef EVERY
#define EVERY 64
#endif

enum { PROMPTS = 20, WARM_PROMPTS = 3, MOST_IDS = 600, TOKENS = 128, EOS = 2, NONE = -1 };

typedef struct {
    char name[40];
    int ids[MOST_IDS], count, greedy[TOKENS];
} Example;

typedef struct {
    Example examples[PROMPTS];
    Engine target, draft;
    AdapterEngine adapters; // of the open file's method
    char datastore[300];    // what its settings lack: where the datastore is
    int given; // tokens of the output at the prompt's end: theirs has them from a pass of its own
    int cells, steps;
} World;

static void path_in(char path[512], const char *folder, const char *name) {
    const char *root = getenv("OUTPACE_ROOT");
    snprintf(path, 512, "%s/%s/%s", root ? root : ".", folder, name);
}

static char *read_fixture(const char *name) {
    char path[512], *text;
    size_t size;
    Error e = {0};
    path_in(path, "tests/fixtures/authors", name);
    if (!file_read(path, 1 << 20, &text, &size, &e)) fail_msg("%s", e.text);
    return text;
}

// Numbers between spaces, "-" being NONE; gives how many.
static int read_numbers(const char *text, int *out, int most) {
    int n = 0;
    for (char *end; *text && n < most; text = end, n++) {
        if (*text == ' ') text++;
        out[n] = *text == '-' ? NONE : (int)strtol(text, &end, 10);
        if (*text == '-') end = (char *)text + 1;
    }
    return n;
}

// Cuts a line at its tabs; gives the next line.
static char *fields(char *line, char **out, int count) {
    char *next = strchr(line, '\n');
    assert_non_null(next);
    *next = 0;
    for (int i = 0; i < count; i++) {
        out[i] = line;
        line += strcspn(line, "\t");
        if (i < count - 1) *line++ = 0;
    }
    return next + 1;
}

static void read_prompts(World *w) {
    char *text = read_fixture("prompts.tsv"), *line = text, *f[3];
    for (int i = 0; i < PROMPTS; i++) {
        Example *x = &w->examples[i];
        line = fields(line, f, 3);
        snprintf(x->name, sizeof x->name, "%s", f[0]);
        x->count = read_numbers(f[1], x->ids, MOST_IDS);
        assert_int_equal(read_numbers(f[2], x->greedy, TOKENS), TOKENS);
    }
    assert_int_equal(*line, 0);
    mem_free(text);
}

static EngineOptions options(const Engine *beside) {
    return (EngineOptions){.device = "cpu",
                           .compute = CHOOSE_F32,
                           .threads = 1, // tests run side by side
                           .beside = beside,
                           .isa = getenv("OUTPACE_ISA"),
                           .max_nodes = 512,
                           .slack = 64};
}

static void open_model(Engine *engine, const char *name, const Engine *beside) {
    char path[512];
    Error e = {0};
    EngineOptions o = options(beside);
    path_in(path, "models", name);
    if (!engine_open(engine, path, &o, NULL, &e)) fail_msg("%s", e.text);
}

static int greedy_tokens(const Example *x, bool heeded) {
    int n = 0;
    while (n < TOKENS && !(heeded && n > 0 && x->greedy[n - 1] == EOS)) n++;
    return n;
}

// The passes that gave the first `given` tokens count as theirs do.
static void check_example(World *w, Method *m, const char *setting, const Example *x, bool heeded, int want) {
    static const int eos = EOS;
    int prompt[MOST_IDS + TOKENS], tokens = greedy_tokens(x, heeded) - w->given;
    Error e = {0};
    DecodeResult r;
    DecodeOptions o = {.max_tokens = TOKENS - w->given,
                       .eos = &eos,
                       .eos_count = heeded,
                       .sampling = {.top_p = 1},
                       .merge = true,
                       .clock = clock_monotonic()};
    memcpy(prompt, x->ids, (size_t)x->count * sizeof(int));
    memcpy(prompt + x->count, x->greedy, (size_t)w->given * sizeof(int));
    if (!decode(&w->target.session, m, prompt, x->count + w->given, &o, &r, &e)) fail_msg("%s", e.text);
    assert_int_equal(r.tokens, tokens);
    assert_memory_equal(r.ids, x->greedy + w->given, (size_t)tokens * sizeof(int));
    int steps = r.steps + w->given;
    if (want != NONE && steps != want)
        print_error("%s, EOS %s, %s: %d steps, the authors' program took %d\n", setting,
                    heeded ? "heeded" : "ignored", x->name, steps, want);
    w->cells += want != NONE && steps == want;
    w->steps += steps;
    decode_result_release(&r);
}

static void check_row(World *w, const char *setting, bool heeded, const char *counts, int first) {
    static const int eos = EOS;
    int want[PROMPTS], held = 0, before = w->cells;
    Error e = {0};
    Method m;
    MethodEnv env = {.target = &w->target.session,
                     .draft = &w->draft.session,
                     .adapters = {{.sessions = w->adapters.sessions,
                                   .count = w->adapters.count,
                                   .layer = w->adapters.adapter.kind.exit_layer,
                                   .captures = &w->adapters.adapter.captures,
                                   .draft_ids = w->adapters.adapter.draft_ids}},
                     .sampling = {.top_p = 1},
                     .eos = &eos,
                     .eos_count = heeded};
    char text[600];
    snprintf(text, sizeof text, "%s%s", setting, w->datastore);
    assert_int_equal(read_numbers(counts, want, PROMPTS), PROMPTS);
    if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
    bool warm = strstr(setting, "warm=on"); // then a prompt needs those in front of it
    int step = warm ? 1 : EVERY, end = warm && EVERY > 1 ? WARM_PROMPTS : PROMPTS;
    for (int i = warm ? 0 : first; i < end; i += step) {
        check_example(w, &m, setting, &w->examples[i], heeded, want[i]);
        held += want[i] != NONE;
    }
    method_close(&m);
    print_message("%s, EOS %s: %d of %d\n", setting, heeded ? "heeded" : "ignored", w->cells - before, held);
    assert_int_equal(w->cells - before, held);
}

static void check_file(World *w, const char *name, int rows) {
    char *text = read_fixture(name), *line = text, *f[4];
    int row = 0;
    for (; *line; row++) {
        line = fields(line, f, 4);
        bool heeded = strcmp(f[1], "eos") == 0;
        check_row(w, f[0], heeded, f[3], heeded ? 0 : row % EVERY);
    }
    assert_int_equal(row, rows);
    mem_free(text);
}

static World world;

static int open_world(void **state) {
    (void)state;
    read_prompts(&world);
    open_model(&world.target, "reference", NULL);
    open_model(&world.draft, "draft", &world.target);
    return 0;
}

static int close_world(void **state) {
    (void)state;
    engine_close(&world.draft);
    engine_close(&world.target);
    return 0;
}

static void lookahead(void **state) {
    (void)state;
    check_file(&world, "lade.tsv", 11);
}

static void ouroboros(void **state) {
    (void)state;
    check_file(&world, "ouroboros.tsv", 2);
}

static void prompt_lookup(void **state) {
    (void)state;
    check_file(&world, "spec-bench.tsv", 2);
}

static void hugging_face(void **state) {
    (void)state;
    check_file(&world, "hugging-face.tsv", 12);
}

static void speculative(void **state) {
    (void)state;
    check_file(&world, "sps.tsv", 2);
}

static void recycling(void **state) {
    (void)state;
    check_file(&world, "recycling.tsv", 1);
}

static void suffix(void **state) {
    (void)state;
    check_file(&world, "suffix.tsv", 8);
}

static void early_exit(void **state) {
    (void)state;
    check_file(&world, "layerskip.tsv", 4);
}

// --- Kangaroo, Medusa, EAGLE, SAM-Decoding, REST: theirs has the first token from a pass over the prompt that
// tries nothing

static void check_adapters(const char *model, const char *name, int rows) {
    World *w = &world;
    char path[512];
    Error e = {0};
    EngineOptions o = options(NULL);
    path_in(path, "models", model);
    if (!engine_open_adapter(&w->adapters, &w->target, path, &o, NULL, &e)) fail_msg("%s", e.text);
    w->given = 1;
    check_file(w, name, rows);
    w->given = 0;
    engine_close_adapter(&w->adapters);
}

static void kangaroo(void **state) {
    (void)state;
    check_adapters("reference-kangaroo-2", "kangaroo.tsv", 3);
}

static void medusa(void **state) {
    (void)state;
    check_adapters("reference-medusa", "medusa.tsv", 1);
    check_adapters("reference-medusa", "medusa-own.tsv", 2);
}

static void eagle(void **state) {
    (void)state;
    check_adapters("reference-eagle", "eagle-fixed.tsv", 1);
    check_adapters("reference-eagle", "eagle.tsv", 3);
}

static void eagle3(void **state) {
    (void)state;
    check_adapters("reference-eagle3", "eagle3.tsv", 2);
}

static void sam(void **state) {
    (void)state;
    world.given = 1;
    check_file(&world, "sam.tsv", 4);
    world.given = 0;
}

// The store that theirs had: each prompt, then the first quarter of its text.
static void rest(void **state) {
    int store[PROMPTS * (MOST_IDS + TOKENS)], count = 0;
    Error e = {0};
    for (int i = 0; i < PROMPTS; i++) {
        const Example *x = &world.examples[i];
        memcpy(store + count, x->ids, (size_t)x->count * sizeof(int));
        count += x->count;
        memcpy(store + count, x->greedy, TOKENS / 4 * sizeof(int));
        count += TOKENS / 4;
    }
    const char *path = folder_path(*state, "store");
    if (!datastore_write(path, store, count, world.target.session.shape.vocab, &e)) fail_msg("%s", e.text);
    snprintf(world.datastore, sizeof world.datastore, ",datastore=%s", path);
    world.given = 1;
    check_file(&world, "rest.tsv", 2);
    world.given = 0;
    world.datastore[0] = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookahead),     cmocka_unit_test(ouroboros),
        cmocka_unit_test(prompt_lookup), cmocka_unit_test(hugging_face),
        cmocka_unit_test(speculative),   cmocka_unit_test(recycling),
        cmocka_unit_test(suffix),        cmocka_unit_test(early_exit),
        cmocka_unit_test(kangaroo),      cmocka_unit_test(medusa),
        cmocka_unit_test(eagle),         cmocka_unit_test(eagle3),
        cmocka_unit_test(sam),           cmocka_unit_test_setup_teardown(rest, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
