// The authors' own programs, step for step: tests/oracle/authors.py ran them on a frozen model, in f32, with
// our random draws, and recorded each prompt's passes of the target. Every row of
// tests/fixtures/authors/*.tsv is a setting; each must need as many steps here, and write greedy search's
// text.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/decode/decode.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

#ifndef EVERY
#define EVERY 8
#endif

enum { PROMPTS = 20, MOST_IDS = 600, TOKENS = 128, EOS = 2, NONE = -1 };

typedef struct {
    char name[40];
    int ids[MOST_IDS], count, greedy[TOKENS];
} Example;

typedef struct {
    Example examples[PROMPTS];
    Engine target, draft;
    int cells, steps;
} World;

static void fixture_path(char *path, size_t size, const char *name) {
    const char *root = getenv("OUTPACE_ROOT");
    snprintf(path, size, "%s/tests/fixtures/authors/%s", root ? root : ".", name);
}

static char *read_fixture(const char *name) {
    char path[512], *text;
    size_t size;
    Error e = {0};
    fixture_path(path, sizeof path, name);
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

static void open_model(Engine *engine, const char *name, const Engine *beside) {
    char path[512];
    Error e = {0};
    EngineOptions o = {.device = "cpu",
                       .compute = CHOOSE_F32,
                       .beside = beside,
                       .isa = getenv("OUTPACE_ISA"),
                       .max_nodes = 512,
                       .slack = 64};
    fixture_path(path, sizeof path, name);
    if (!engine_open(engine, path, &o, NULL, &e)) fail_msg("%s", e.text);
}

static int greedy_tokens(const Example *x, bool heeded) {
    int n = 0;
    while (n < TOKENS && !(heeded && n > 0 && x->greedy[n - 1] == EOS)) n++;
    return n;
}

static void check_example(World *w, Method *m, const char *setting, const Example *x, bool heeded, int want) {
    static const int eos = EOS;
    Error e = {0};
    DecodeResult r;
    DecodeOptions o = {.max_tokens = TOKENS,
                       .eos = &eos,
                       .eos_count = heeded,
                       .sampling = {.top_p = 1},
                       .merge = true,
                       .clock = clock_monotonic()};
    if (!decode(&w->target.session, m, x->ids, x->count, &o, &r, &e)) fail_msg("%s", e.text);
    assert_int_equal(r.tokens, greedy_tokens(x, heeded));
    assert_memory_equal(r.ids, x->greedy, (size_t)r.tokens * sizeof(int));
    if (want != NONE && r.steps != want)
        print_error("%s, EOS %s, %s: %d steps, the authors' program took %d\n", setting,
                    heeded ? "heeded" : "ignored", x->name, r.steps, want);
    w->cells += want != NONE && r.steps == want;
    w->steps += r.steps;
    decode_result_release(&r);
}

static void check_row(World *w, const char *setting, bool heeded, const char *counts, int first) {
    static const int eos = EOS;
    int want[PROMPTS], held = 0, before = w->cells;
    Error e = {0};
    Method m;
    MethodEnv env = {.target = &w->target.session,
                     .draft = &w->draft.session,
                     .sampling = {.top_p = 1},
                     .eos = &eos,
                     .eos_count = heeded};
    assert_int_equal(read_numbers(counts, want, PROMPTS), PROMPTS);
    if (!method_open(&m, setting, &env, &e)) fail_msg("'%s': %s", setting, e.text);
    for (int i = first; i < PROMPTS; i += EVERY) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookahead),
        cmocka_unit_test(ouroboros),
        cmocka_unit_test(prompt_lookup),

    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
