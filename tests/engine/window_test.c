// The rolling cache of a sliding window: it takes the window's memory whatever the context, predicts as a
// model without it while the window covers all, and differently beyond.
#include "tests/support/check.h"

#include "engine/engine.h"
#include "engine/model/make/synth.h"
#include "tests/support/child.h"

#include <stdio.h>
#include <string.h>

enum { WINDOW = 64, CONTEXT = 4096, TOKENS = 150 };

typedef struct {
    char folder[FOLDER_PATH_SIZE], model[FOLDER_PATH_SIZE + 8];
} Fixture;

static int set_up(void **state) {
    static Fixture f;
    static const char *const sets[] = {"model_type=mistral", "sliding_window=64",
                                       "max_position_embeddings=4096"};
    Error e = {0};
    folder_make(f.folder);
    snprintf(f.model, sizeof f.model, "%s/model", f.folder);
    *state = &f;
    return model_synth(f.model, &(SynthOptions){.shape = "tiny", .sets = sets, .set_count = 3}, &e) ? 0 : -1;
}

static int tear_down(void **state) {
    folder_remove(((Fixture *)*state)->folder);
    return 0;
}

// The best token after each of a fixed row of tokens, and the cache's bytes.
static size_t run(const Fixture *f, bool no_window, int said[TOKENS]) {
    Engine engine;
    EngineMemory memory;
    Error e = {0};
    EngineOptions o = {.no_window = no_window, .threads = 1};
    if (!engine_open(&engine, f->model, &o, &memory, &e)) fail_msg("%s", e.text);
    Session *s = &engine.session;
    for (int i = 0; i < TOKENS; i++) {
        session_begin_step(s, true, LAYOUT_TREE);
        int node = tree_root(&s->tree, 5 + i * 31 % 400);
        assert_true(session_run(s, s->shape.layers, &e) && session_read(s, HEAD_ARGMAX, &e));
        said[i] = session_argmax(s, node);
        assert_true(session_commit(s, node, 1, &e));
    }
    engine_close(&engine);
    return memory.cache;
}

static void memory_and_tokens(void **state) {
    int with[TOKENS], without[TOKENS], different = 0;
    size_t ring = run(*state, false, with), line = run(*state, true, without);
    print_message("cache: %zu bytes with a window of %d, %zu with all of %d\n", ring, WINDOW, line, CONTEXT);
    assert_int_equal(line / ring, CONTEXT / (WINDOW + CACHE_SLACK));
    assert_memory_equal(with, without, WINDOW * sizeof *with);
    for (int i = WINDOW; i < TOKENS; i++) different += with[i] != without[i];
    assert_true(different > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_and_tokens)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
