#include "tests/support/watched.h"

#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include <string.h>

void watched_prompt(Watched *w, int count, int vocab, Random *r) {
    assert_in_range(count, 1, WATCHED_MOST);
    for (int i = 0; i < count; i++) w->sequence[i] = test_between(r, 0, vocab - 1);
    w->length = w->before = count;
}

DecodeOptions watched_options(int max_tokens, int greedy, int of, Random *r) {
    return (DecodeOptions){.max_tokens = max_tokens,
                           .sampling = {.temperature = test_between(r, 1, of) <= greedy ? 0 : 3, .top_p = 1},
                           .seed = random_bits(r),
                           .merge = test_between(r, 0, 1),
                           .layout = test_between(r, 0, 1) ? LAYOUT_TREE : LAYOUT_BATCH,
                           .clock = still_clock()};
}

static bool keep_token(void *state, int token) {
    Watched *w = state;
    assert_in_range(w->length, 1, WATCHED_MOST - 1);
    w->sequence[w->length++] = token;
    return true;
}

static void show_step(void *state, const StepReport *r) {
    Watched *w = state;
    w->look(w, r);
    w->before = w->length;
}

DecodeResult watched_decode(Watched *w, void (*look)(void *watch, const StepReport *r), Session *s, Method *m,
                            const DecodeOptions *o) {
    DecodeOptions own = *o;
    DecodeResult out;
    Error e = {0};
    int prompt[WATCHED_MOST], count = w->length;
    memcpy(prompt, w->sequence, (size_t)count * sizeof *prompt);
    w->look = look;
    own.emit = keep_token;
    own.step = show_step;
    own.state = w;
    if (!decode(s, m, prompt, count, &own, &out, &e)) fail_msg("%s: %s", m->info->name, e.text);
    return out;
}
