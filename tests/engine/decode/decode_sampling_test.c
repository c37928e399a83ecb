// Sampling through the whole loop: the distribution of the first tokens is the model's own, with any method.
// The exact chance of every word comes from the null backend's logits; the words are counted over many seeds.
// This catches errors that the verifier's own tests can't: dependent random streams, wrongly dropped bonuses,
// a step that starts from the wrong distribution.
#include "tests/support/check.h"
#include "tests/support/chi_square.h"
#include "tests/support/null_session.h"
#include "tests/support/test_methods.h"

#include "engine/base/memory.h"
#include "engine/decode/decode.h"

#include <string.h>

enum { VOCAB = 4, LENGTH = 3, WORDS = 64, PROMPT = 9, DRAWS = 20000 };

// The null backend's logits differ by up to 8: at 4 every token has its share.
static const Sampling SAMPLING = {.temperature = 4, .top_p = 1};

typedef struct {
    Session session, slow, draft;
    int prompt[PROMPT];
    double chance[WORDS];
} World;

static void fill_chances(World *w, int *sequence, int length, int word, double chance) {
    float logits[VOCAB], p[VOCAB];
    Sampler sampler;
    if (length == PROMPT + LENGTH) {
        w->chance[word] = chance;
        return;
    }
    slow_next(&w->slow, sequence, length, logits);
    sampler_init(&sampler, &SAMPLING, VOCAB);
    sampler_distribution(&sampler, logits, p);
    sampler_release(&sampler);
    for (int i = 0; i < VOCAB; i++) {
        sequence[length] = i;
        fill_chances(w, sequence, length + 1, word * VOCAB + i, chance * (double)p[i]);
    }
}

static int open_world(void **state) {
    World *w = test_calloc(1, sizeof *w);
    NullSetup setup = {.vocab = VOCAB, .context = 60, .max_nodes = 256};
    int sequence[PROMPT + LENGTH] = {1, 3, 0, 1, 3, 2, 0, 1, 3}; // repeats itself, for lookups
    null_session_open(&w->session, &setup);
    null_session_open(&w->slow, &setup);
    setup.window = 2; // predicts other tokens than the target
    null_session_open(&w->draft, &setup);
    memcpy(w->prompt, sequence, sizeof w->prompt);
    fill_chances(w, sequence, PROMPT, 0, 1);
    *state = w;
    return 0;
}

static int close_world(void **state) {
    World *w = *state;
    session_release(&w->session);
    session_release(&w->slow);
    session_release(&w->draft);
    test_free(w);
    return 0;
}

// The word that the seed gives; seeds are used by method and verifier alike, as the program does it.
static int draw_word(World *w, Method *m, uint64_t seed, int *steps) {
    DecodeOptions o = {.max_tokens = LENGTH,
                       .sampling = SAMPLING,
                       .seed = seed,
                       .merge = seed % 2,
                       .layout = seed % 3 ? LAYOUT_TREE : LAYOUT_BATCH,
                       .clock = still_clock()};
    DecodeResult out;
    int word = 0;
    assert_true(decode(&w->session, m, w->prompt, PROMPT, &o, &out, NULL));
    for (int i = 0; i < LENGTH; i++) word = word * VOCAB + out.ids[i];
    *steps += out.steps;
    decode_result_release(&out);
    return word;
}

// False alarms have a chance of 1e-6 each, and the seeds are fixed.
static void check_counts(const World *w, const double *count, const char *name) {
    double alarm = chi_square(count, w->chance, WORDS, DRAWS);
    if (alarm < 1e-6) fail_msg("%s: the counts have a chance of %g", name, alarm);
}

static void methods_of_the_table(void **state) {
    World *w = *state;
    static const char *const settings[] = {"autoregressive",
                                           "jacobi:m=3",
                                           "jacobi:m=4,refill=fresh",
                                           "lookahead:W=3,N=2,G=3,prompt_pool=on",
                                           "lookahead:W=2,N=3,G=3,prompt_pool=on,bonus=drop,ranks=2",
                                           "prompt-lookup:draft=3,match=newest,allow_short=on",
                                           "prompt-lookup:draft=2",
                                           "ouroboros:gamma=2,K=2,beta=2,W=2,window=2"};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        double count[WORDS] = {0};
        int steps = 0;
        for (uint64_t seed = 0; seed < DRAWS; seed++) {
            MethodEnv env = {.target = &w->session, .draft = &w->draft, .sampling = SAMPLING, .seed = seed};
            Method m;
            assert_true(method_open(&m, settings[i], &env, NULL));
            count[draw_word(w, &m, seed, &steps)]++;
            method_close(&m);
        }
        check_counts(w, count, settings[i]);
        if (i) assert_true(steps < (int)(0.95 * LENGTH * DRAWS)); // something was accepted
    }
}

// Most one-hots are the model's favourites: proposals that a mistake would favour, and not all alike.
static void all_kinds_of_proposals(void **state) {
    World *w = *state;
    int likely[LENGTH];
    slow_greedy(&w->slow, w->prompt, PROMPT, LENGTH, likely);
    static const char *const ways[] = {"scatter", "scatter that drops bonuses", "scatter in a narrow tree"};
    int capacity = w->session.tree.capacity;
    for (int way = 0; way < 3; way++) {
        bool drops = way == 1;
        w->session.tree.capacity = way == 2 ? 9 : capacity;
        double count[WORDS] = {0};
        int steps = 0, dropped = 0;
        for (uint64_t seed = 0; seed < DRAWS; seed++) {
            Scatter scatter = {
                .truth = likely, .truth_count = LENGTH, .seed = seed, .vocab = VOCAB, .drops_bonus = drops};
            Method m = scatter_method(&scatter);
            count[draw_word(w, &m, seed, &steps)]++;
            dropped += scatter.dropped;
        }
        check_counts(w, count, ways[way]);
        assert_true(steps < (int)(0.8 * LENGTH * DRAWS) && dropped >= 1000 * drops);
    }
    w->session.tree.capacity = capacity;
}

static void the_seed_decides(void **state) {
    World *w = *state;
    int steps = 0, different = 0;
    MethodEnv env = {.target = &w->session, .sampling = SAMPLING};
    Method m;
    assert_true(method_open(&m, "autoregressive", &env, NULL));
    for (uint64_t seed = 0; seed < 200; seed++) {
        int word = draw_word(w, &m, seed, &steps);
        assert_int_equal(draw_word(w, &m, seed, &steps), word);
        different += draw_word(w, &m, seed + 1, &steps) != word;
    }
    assert_true(different > 150);
    method_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_of_the_table),
        cmocka_unit_test(all_kinds_of_proposals),
        cmocka_unit_test(the_seed_decides),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
