#include "tests/support/sampling_cells.h"

#include "engine/decode/structures/datastore.h"
#include "engine/decode/decode.h"
#include "tests/support/check.h"
#include "tests/support/chi_square.h"
#include "tests/support/folder.h"
#include "tests/support/soft_null.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

enum { VOCAB = 4, LENGTH = 3, WORDS = 64, PROMPT = 12, WARM = 14, CONTEXT = 60, HEADS = 2, STORE = 400 };

static const char *const METHODS[] = {
    "jacobi:m=3,refill=fresh",
    "prompt-lookup:draft=3,match=newest,allow_short=on",
    "ngrammys:k=3,w=3",
    "ngrammys:k=4,w=2,strategy=extended,extend=model",
    "lookahead:W=3,N=3,G=3",
    "lookahead:W=3,N=3,G=3,bonus=drop,ranks=2,prompt_pool=on",
    "lookahead:W=3,N=2,G=4,mode=reference",
    "speculative:gamma=3,parallel=off",
    "speculative:gamma=3,draft_temperature=0,parallel=off",
    "speculative:gamma=3,parallel=on",
    "speculative:gamma=3,parallel=on,draft_temperature=2,draft_top_k=3,adaptive=confidence,confidence=0.3",
    "speculative:gamma=2,draft_temperature=2,draft_top_k=3,adaptive=confidence,confidence=0.3,parallel=off",
    "speculative:gamma=3,adaptive=learned,cost=0.05,parallel=off",
    "speculative:tree=3x2",
    "speculative:tree=0;1;00;2;01;10;000,draft_temperature=2,draft_top_k=2", // q ends before the tree
    "speculative:tree=2x1x1,draft_temperature=0",
    "kangaroo:gamma=3,eta=0.3",
    "early-exit:exit_layer=1,gamma=3,eta=0.3",
    "early-exit:exit_layer=2,gamma=2,draft_temperature=2,draft_top_k=3,adaptive=learned,cost=0.05",
    "ouroboros:gamma=3,K=3,beta=3,W=4,window=3",
    "ouroboros:gamma=2,K=2,beta=2,W=2,window=2,mode=reference,warm=on",
    "medusa:nodes=9,top=3",
    "eagle:total=9,depth=2,top=2",
    "eagle3:tree=0;1;00;01;10;000,parallel=off",
    "eagle3:total=9,depth=2,top=2,parallel=on",
    "mtp:gamma=3,top=2,total=9,recycle=normed",
    "mtp:gamma=3,adaptive=learned,cost=0.05",
    "dflash",
    "dflash:gamma=3,draft_temperature=2,draft_top_k=3,adaptive=confidence,confidence=0.3",
    "dflash:tree=best,total=7,top=2",
    "rest:longest=4,shortest=1,draft=3,nodes=8,datastore=",
    "mix:prompt-lookup(draft=3,allow_short=on)+lookahead(W=3,N=3,G=3)",
    "mix:speculative(gamma=1,parallel=off)+kangaroo(gamma=1,eta=0)", // two that draw, at one place
    "mix:prompt-lookup(draft=3,allow_short=on)+early-exit(gamma=2)", // a draw next to a guess
    "mix:prompt-lookup(draft=2,allow_short=on)+speculative(tree=2x2),rows=8",
    "mix:suffix(factor=4)+speculative(gamma=2,parallel=off),switch=learned,cost=0.5",
    "mix:prompt-lookup(draft=3,allow_short=on)+kangaroo(gamma=2,eta=0),switch=match,threshold=3",
    "mix:speculative(gamma=2,parallel=off)+ngrammys(k=3,w=2)+kangaroo(gamma=2,eta=0.2),rows=14",
    // by blocks
    "speculative:gamma=3,parallel=off",
    "speculative:gamma=3,parallel=on",
    "speculative:gamma=2,draft_temperature=2,draft_top_k=3,adaptive=confidence,confidence=0.3,parallel=off",
    "kangaroo:gamma=3,eta=0.3",
    "early-exit:exit_layer=1,gamma=3,eta=0.3",
    "dflash:gamma=2,draft_temperature=2",
};
enum { METHOD_COUNT = sizeof METHODS / sizeof *METHODS, FIRST_BLOCK = METHOD_COUNT - 6 };

static Verification verification_of(int method) {
    return method < FIRST_BLOCK ? VERIFICATION_TOKEN : VERIFICATION_BLOCK;
}

static const Sampling SAMPLINGS[] = {
    {0.5, 0, 1}, {1, 0, 1}, {1.5, 0, 1}, {0.5, 3, 1}, {1.5, 0, 0.8}, {1, 3, 0.95},
};
enum { SAMPLING_COUNT = sizeof SAMPLINGS / sizeof *SAMPLINGS };

typedef struct {
    Session target, draft, adapter, heads[HEADS], slow;
    NullAdapters drafts;                // EAGLE's
    int prompt[PROMPT + WARM + LENGTH]; // then what the model is sure of, then room for words
    double chance[WORDS];
    char store[FOLDER_PATH_SIZE + 8];
    double tried, accepted, steps, bare; // after the warm-up; bare: steps without candidates
} World;

// --- known beforehand

static void fill_chances(World *w, const Sampling *sampling, int length, int word, double chance) {
    float logits[VOCAB], p[VOCAB];
    Sampler sampler;
    if (length == PROMPT + WARM + LENGTH) {
        w->chance[word] = chance;
        return;
    }
    slow_next(&w->slow, w->prompt, length, logits);
    sampler_init(&sampler, sampling, VOCAB);
    sampler_distribution(&sampler, logits, p);
    sampler_release(&sampler);
    for (int i = 0; i < VOCAB; i++) {
        w->prompt[length] = i;
        fill_chances(w, sampling, length + 1, word * VOCAB + i, chance * (double)p[i]);
    }
}

// Text of the model's own kind, with many other turns.
static void write_store(World *w) {
    int tokens[STORE];
    Random r = test_random(90);
    for (int i = 0; i < STORE; i++)
        tokens[i] = test_between(&r, 0, 2) ? w->prompt[i % (PROMPT + WARM)] : test_between(&r, 0, VOCAB - 1);
    assert_true(datastore_write(w->store, tokens, STORE, VOCAB, NULL));
}

static void open_world(World *w, const char *folder) {
    static const int prompt[PROMPT] = {1, 3, 0, 1, 3, 2, 0, 1, 3, 2, 2, 0};
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT, .max_nodes = 128};
    Softness target = {PROMPT + WARM, 0.3}, other = {0, 0.3};
    *w = (World){0};
    soft_session_open(&w->target, &setup, &target);
    soft_session_open(&w->slow, &setup, &target);
    setup.window = 2; // its predictions differ from the target's
    soft_session_open(&w->draft, &setup, &other);
    w->draft.shape.mask_token = 1; // for `parallel`
    setup.window = 0;
    setup.input = INPUT_HIDDEN;
    soft_session_open(&w->adapter, &setup, &other);
    for (int i = 0; i < HEADS; i++) soft_session_open(&w->heads[i], &setup, &other);
    null_adapters_open(&w->drafts, &setup);
    for (int i = 0; i < ADAPTER_SETS; i++) // EAGLE-3's, for `parallel`
        if (w->drafts.sessions[i].shape.input == INPUT_PAIRED) w->drafts.sessions[i].shape.mask_token = 1;
    memcpy(w->prompt, prompt, sizeof prompt);
    slow_greedy(&w->slow, prompt, PROMPT, WARM, w->prompt + PROMPT);
    snprintf(w->store, sizeof w->store, "%s/store", folder);
    write_store(w);
}

static void close_world(World *w) {
    session_release(&w->target);
    session_release(&w->draft);
    session_release(&w->slow);
    null_adapters_close(&w->drafts);
    session_release(&w->adapter);
    for (int i = 0; i < HEADS; i++) session_release(&w->heads[i]);
}

// --- one draw, one cell

static void count_trials(void *state, const StepReport *r) {
    World *w = state;
    if (r->context + 1 < PROMPT + WARM) return; // its root is still sure of what follows
    assert_int_equal(r->note.kind, STEP_STEADY);
    w->steps++;
    w->bare += r->candidates == 0;
    w->tried += r->tried;
    w->accepted += r->accepted;
}

static int draw_word(World *w, Method *m, const Sampling *sampling, Verification verification,
                     uint64_t seed) {
    DecodeOptions o = {.max_tokens = WARM + LENGTH,
                       .sampling = *sampling,
                       .verification = verification,
                       .seed = seed,
                       .merge = seed % 4 != 3,
                       .layout = seed % 3 ? LAYOUT_TREE : LAYOUT_BATCH,
                       .clock = still_clock(),
                       .step = count_trials,
                       .state = w};
    DecodeResult out;
    int word = 0;
    assert_true(decode(&w->target, m, w->prompt, PROMPT, &o, &out, NULL));
    assert_int_equal(out.tokens, WARM + LENGTH);
    assert_memory_equal(out.ids, w->prompt + PROMPT, WARM * sizeof *out.ids);
    for (int i = WARM; i < out.tokens; i++) word = word * VOCAB + out.ids[i];
    decode_result_release(&out);
    return word;
}

static void let_draw(World *w, bool draws) {
    soft_session_draws(&w->target, draws);
    soft_session_draws(&w->draft, draws);
    soft_session_draws(&w->adapter, draws);
    for (int i = 0; i < HEADS; i++) soft_session_draws(&w->heads[i], draws);
}

static int draw_word_by(World *w, int method, const char *text, const Sampling *sampling, uint64_t seed) {
    MethodEnv env = {.target = &w->target, .draft = &w->draft, .sampling = *sampling, .seed = seed};
    Method m;
    Error e = {0};
    null_adapters_give(&w->drafts, &env);
    env.adapters[0].sessions = &w->adapter;
    env.adapters[1].sessions = w->heads;
    env.adapters[1].count = HEADS;
    if (!method_open(&m, text, &env, &e)) fail_msg("%s: %s", text, e.text);
    int word = draw_word(w, &m, sampling, verification_of(method), seed);
    method_close(&m);
    return word;
}

// Backends that draw by themselves: the seed's word is the same.
static void check_drawing(World *w, int method, const char *text, const Sampling *sampling, uint64_t seed,
                          int want) {
    let_draw(w, true);
    int got = draw_word_by(w, method, text, sampling, seed);
    let_draw(w, false);
    if (got != want)
        fail_msg("%s, seed %d: word %d where backends draw, %d where they do not", text, (int)seed, got,
                 want);
}

static void check_cell(World *w, int method, const Sampling *sampling, int draws) {
    double count[WORDS] = {0};
    char text[2 * ARG_TEXT_SIZE];
    const char *name = METHODS[method];
    snprintf(text, sizeof text, "%s%s", name, strncmp(name, "rest", 4) == 0 ? w->store : "");
    w->tried = w->accepted = w->steps = w->bare = 0;
    for (int i = 0; i < draws; i++) {
        int word = draw_word_by(w, method, text, sampling, (uint64_t)i);
        count[word]++;
        if (i % 16 == 0) check_drawing(w, method, text, sampling, (uint64_t)i, word);
    }
    double alarm = chi_square(count, w->chance, WORDS, draws), share = w->accepted / w->tried;
    if (alarm < 1e-6 || !(share >= 0.1 && share <= 0.9) || w->bare > 0.1 * w->steps)
        fail_msg("%s%s at temperature %g, top-k %d, top-p %g: the counts have a chance of %g; %.0f%% of "
                 "proposals accepted; %.0f%% of steps had none",
                 name, verification_of(method) ? " by blocks" : "", sampling->temperature, sampling->top_k,
                 sampling->top_p, alarm, 100 * share, 100 * w->bare / w->steps);
}

// A method is opened for every draw: its blocks aren't given back to the system and taken from it each time.
static void keep_memory(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 16 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

void sampling_cells(int draws) {
    World w;
    char folder[FOLDER_PATH_SIZE];
    keep_memory();
    folder_make(folder);
    open_world(&w, folder);
    for (int s = 0; s < SAMPLING_COUNT; s++) {
        fill_chances(&w, &SAMPLINGS[s], PROMPT + WARM, 0, 1);
        for (int m = 0; m < METHOD_COUNT; m++) check_cell(&w, m, &SAMPLINGS[s], draws);
    }
    print_message("%d cells of %d draws\n", SAMPLING_COUNT * METHOD_COUNT, draws);
    close_world(&w);
    folder_remove(folder);
}
