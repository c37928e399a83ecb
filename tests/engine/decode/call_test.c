// Shared steps: R ranks, threads here, emit what one process with R parts emits, and what R = 1 emits, token
// for token, greedy and sampled, on the real CPU backend and on one that draws by itself. The other ranks
// are followers, as in harness/ranks.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/random_model.h"
#include "tests/support/soft_null.h"
#include "tests/support/thread_team.h"

#include "engine/cpu/cpu.h"
#include "engine/decode/call.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 150, TOKENS = 40, MOST = 5, ANSWERS = 3 };

static const int EOS[] = {2};

typedef struct World {
    RandomModel *model; // NULL: soft null sessions
    Shape shape;
    bool draws;
    char method[160]; // without ranks
    int ranks;
    int prompt[CONTEXT], count;
    DecodeOptions o;
    int emitted, most; // emit ends the output after so many; 0: never
    int failing;       // this rank's head fails in its third step; -1: none
    int stray;         // this rank opens its method with another seed; -1: none
} World;

static void open_session(const World *w, Session *s) {
    if (!w->model) {
        soft_session_open(s, &(NullSetup){.vocab = w->shape.vocab, .context = CONTEXT, .max_nodes = 120},
                          &(Softness){.certain = 0, .scale = 0.4});
        soft_session_draws(s, w->draws);
        return;
    }
    BackendOptions o = {.compute = COMPUTE_F32, .context = CONTEXT, .max_nodes = 120, .threads = 1};
    void *self;
    assert_true(cpu_open(&w->model->model, &o, &self, NULL));
    session_init(s, &cpu_backend, self, &w->model->model.shape, &o);
}

static MethodEnv env_of(const World *w, Session *s) {
    return (MethodEnv){.target = s, .sampling = w->o.sampling, .seed = 5, .eos = EOS, .eos_count = 1};
}

// --- one process

static DecodeResult alone(const World *w, int ranks) {
    char text[200];
    Session s;
    Method m;
    DecodeResult out;
    Error e = {0};
    snprintf(text, sizeof text, "%s,ranks=%d", w->method, ranks);
    open_session(w, &s);
    MethodEnv env = env_of(w, &s);
    if (!method_open(&m, text, &env, &e)) fail_msg("%s: %s", text, e.text);
    for (int i = 0; i < ANSWERS; i++) {
        DecodeOptions o = w->o;
        o.ignore_eos = i == 0;
        if (i) decode_result_release(&out);
        if (!decode(&s, &m, w->prompt, w->count, &o, &out, &e)) fail_msg("%s: %s", text, e.text);
    }
    method_close(&m);
    session_release(&s);
    return out;
}

// --- ranks

typedef struct Rank {
    World *w;
    int number;
    Team team;
    pthread_t thread;
    DecodeResult out; // of the last answer
    bool ok;
    Error e;
    // a backend whose head fails at last
    Backend backend;
    const Backend *inner;
    int reads;
} Rank;

static _Thread_local Rank *failing;

static bool fail_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    if (failing->reads++ == 2) return error_system(e, "the card is gone");
    return failing->inner->head(self, nodes, count, want, out, e);
}

static void break_session(Rank *r, Session *s) {
    if (r->number != r->w->failing) return;
    failing = r;
    r->inner = s->backend;
    r->backend = *s->backend;
    r->backend.head = fail_head;
    s->backend = &r->backend;
}

// Asserts are the main thread's: a rank only notes what happened.
static void lead(Rank *r, Session *s) {
    char text[200];
    Method m;
    snprintf(text, sizeof text, "%s,ranks=%d", r->w->method, r->w->ranks);
    MethodEnv env = env_of(r->w, s);
    r->ok = method_open(&m, text, &env, &r->e);
    for (int i = 0; i < ANSWERS && r->ok; i++) {
        if (i) decode_result_release(&r->out);
        r->w->emitted = 0;
        r->w->o.ignore_eos = i == 0; // as in a warm-up
        r->ok = decode(s, &m, r->w->prompt, r->w->count, &r->w->o, &r->out, &r->e);
    }
    method_close(&m);
    call_quit(&r->team, NULL);
}

static void follow(Rank *r, Session *s) {
    Text message = {0};
    Method m = {0};
    CallView v;
    for (bool more = true; more;) {
        r->team.tell(r->team.self, &message, NULL);
        r->ok = call_read(&message, &v, &r->e);
        more = r->ok && v.call.kind != CALL_QUIT;
        if (v.call.kind == CALL_CLOSE) method_close(&m);
        if (v.call.kind == CALL_ANSWER) {
            MethodEnv env = call_env(&v, s, EOS, 1);
            if (r->number == r->w->stray) env.seed++;
            if (v.call.first) r->ok = method_open(&m, v.text, &env, &r->e);
            ranks_agree(&r->team, r->ok, &r->e);
            decode_result_release(&r->out);
            decode(s, &m, v.prompt, v.call.prompt_count, &v.call.o, &r->out, &r->e);
        }
        call_release(&v);
    }
    text_release(&message);
}

static void *run_rank(void *state) {
    Rank *r = state;
    Session s;
    Text opening = {0};
    text_puts(&opening, "a model");
    open_session(r->w, &s);
    break_session(r, &s);
    session_share(&s, &r->team, &opening);
    if (r->number == 0) lead(r, &s);
    else follow(r, &s);
    session_release(&s);
    text_release(&opening);
    return NULL;
}

static void run_ranks(World *w, Rank *ranks) {
    ThreadTeam team;
    thread_team_init(&team, w->ranks);
    for (int i = 0; i < w->ranks; i++) {
        ranks[i] = (Rank){.w = w, .number = i, .team = thread_team_rank(&team, i)};
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    }
    for (int i = 0; i < w->ranks; i++) pthread_join(ranks[i].thread, NULL);
    thread_team_release(&team);
}

static void release_ranks(World *w, Rank *ranks) {
    for (int i = 0; i < w->ranks; i++) decode_result_release(&ranks[i].out);
}

// --- worlds

static void random_method(World *w, Random *r) {
    static const char *const slides[] = {"one", "accepted"}, *const scopes[] = {"turn", "conversation"};
    snprintf(w->method, sizeof w->method, "lookahead:W=%d,N=%d,G=%d,slide=%s,pool_scope=%s,prompt_pool=%s",
             test_between(r, 1, 8), test_between(r, 2, 6), test_between(r, 0, 8),
             slides[test_between(r, 0, 1)], scopes[test_between(r, 0, 1)],
             test_between(r, 0, 1) ? "on" : "off");
    w->ranks = test_between(r, 2, MOST);
}

// Words come back, so that guesses are right now and then; some prompts end near the context's end, where
// parts of the tree have no room.
static void random_prompt(World *w, Random *r) {
    w->count =
        test_between(r, 0, 3) ? test_between(r, 1, CONTEXT - TOKENS) : CONTEXT - test_between(r, 1, 20);
    for (int i = 0; i < w->count; i++)
        w->prompt[i] = i > 4 && test_between(r, 0, 4) ? w->prompt[i - test_between(r, 2, 4)]
                                                      : test_between(r, 0, w->shape.vocab - 1);
}

static void random_options(World *w, Random *r, bool sampled) {
    static const Sampling some[] = {{1, 0, 1}, {0.7, 5, 1}, {1.3, 0, 0.8}};
    w->o = (DecodeOptions){.max_tokens = TOKENS,
                           .sampling = sampled ? some[test_between(r, 0, 2)] : (Sampling){.top_p = 1},
                           .seed = random_bits(r),
                           .eos = EOS,
                           .eos_count = 1,
                           .merge = test_between(r, 0, 3) > 0,
                           .layout = test_between(r, 0, 3) ? LAYOUT_TREE : LAYOUT_BATCH,
                           .max_rows = test_between(r, 0, 4) ? 0 : test_between(r, 1, 40),
                           .clock = still_clock()};
}

static void check_same(const World *w, const DecodeResult *want, const DecodeResult *got, const char *what) {
    int same = 0;
    while (same < want->tokens && same < got->tokens && want->ids[same] == got->ids[same]) same++;
    if (same < want->tokens || got->tokens != want->tokens)
        fail_msg("%s, %d ranks, %s: %d tokens, want %d, %d equal (prompt %d, seed %llu)", w->method, w->ranks,
                 what, got->tokens, want->tokens, same, w->count, (unsigned long long)test_seed());
}

static void check_equal(World *w, double *collectives) {
    Rank ranks[MOST];
    DecodeResult one = alone(w, 1), parts = alone(w, w->ranks);
    run_ranks(w, ranks);
    for (int i = 0; i < w->ranks; i++) {
        const DecodeResult *got = &ranks[i].out;
        if (!ranks[i].ok) fail_msg("%s: rank %d: %s", w->method, i, ranks[i].e.text);
        if (w->o.max_rows == 0) check_same(w, &one, got, "R = 1");
        check_same(w, &parts, got, "parts");
        assert_int_equal(got->ranks, w->ranks);
        assert_int_equal(got->steps, parts.steps);
        assert_int_equal(got->times.collectives, parts.steps);
        assert_true(got->rows == parts.rows && got->parts == parts.parts);
        *collectives += got->times.collectives;
    }
    release_ranks(w, ranks);
    decode_result_release(&one);
    decode_result_release(&parts);
}

static void ranks_on_the_cpu_equal_one_process(void **state) {
    (void)state;
    enum { MODELS = 14, ROUNDS = 4 };
    Random r = test_random(410);
    double collectives = 0;
    for (int i = 0; i < MODELS; i++) {
        RandomModel m;
        World w = {.model = &m, .shape = random_shape(&r), .failing = -1, .stray = -1};
        random_model_init(&m, &w.shape, DTYPE_F32, false, &r);
        for (int k = 0; k < ROUNDS; k++) {
            random_method(&w, &r);
            random_prompt(&w, &r);
            random_options(&w, &r, k % 2);
            check_equal(&w, &collectives);
        }
        random_model_release(&m);
    }
    assert_true(collectives > MODELS * ROUNDS * 10);
}

static World null_world(Random *r, bool sampled) {
    World w = {.shape.vocab = test_between(r, 4, 30), .failing = -1, .stray = -1};
    random_method(&w, r);
    random_prompt(&w, r);
    random_options(&w, r, sampled);
    return w;
}

static void ranks_equal_one_process_whoever_draws(void **state) {
    (void)state;
    Random r = test_random(411);
    double collectives = 0;
    for (int i = 0; i < 80; i++) {
        World w = null_world(&r, i % 4 > 0);
        w.draws = i % 2;
        check_equal(&w, &collectives);
    }
}

// --- ends

static bool stop_soon(void *state, int token) {
    World *w = state;
    (void)token;
    return ++w->emitted < w->most;
}

// As by a stop string or Ctrl-C, which only rank 0 sees; the next answer is whole again.
static void rank_0_may_end_early(void **state) {
    (void)state;
    Random r = test_random(412);
    for (int i = 0; i < 20; i++) {
        World w = null_world(&r, i % 2);
        Rank ranks[MOST];
        snprintf(w.method, sizeof w.method, "lookahead:W=5,N=4,G=3,prompt_pool=on");
        w.count = 10;
        w.o.eos_count = 0;
        w.most = test_between(&r, 1, TOKENS);
        w.o.emit = stop_soon;
        w.o.state = &w;
        run_ranks(&w, ranks);
        for (int k = 0; k < w.ranks; k++)
            if (!ranks[k].ok) fail_msg("%s: rank %d of %d: %s", w.method, k, w.ranks, ranks[k].e.text);
        assert_int_equal(ranks[0].out.tokens, w.most);
        release_ranks(&w, ranks);
    }
}

// All end in the same step, and rank 0 names the rank that failed.
static void a_failed_rank_is_named(void **state) {
    (void)state;
    Random r = test_random(413);
    for (int i = 0; i < 20; i++) {
        World w = null_world(&r, i % 2);
        Rank ranks[MOST];
        char want[100];
        snprintf(w.method, sizeof w.method, "lookahead:W=15,N=3,G=2");
        w.count = 10;
        w.o.eos_count = 0;
        w.o.max_rows = 0;
        w.failing = test_between(&r, 0, w.ranks - 1);
        run_ranks(&w, ranks);
        assert_false(ranks[0].ok);
        snprintf(want, sizeof want, "rank %d of %d: the card is gone", w.failing, w.ranks);
        assert_string_equal(ranks[0].e.text, w.failing ? want : "the card is gone");
        release_ranks(&w, ranks);
    }
}

static void ranks_that_drift_apart_fail(void **state) {
    (void)state;
    Random r = test_random(414);
    for (int i = 0; i < 20; i++) {
        World w = null_world(&r, i % 2);
        Rank ranks[MOST];
        snprintf(w.method, sizeof w.method, "lookahead:W=6,N=4,G=4");
        w.count = 40;
        w.stray = test_between(&r, 1, w.ranks - 1);
        run_ranks(&w, ranks);
        assert_false(ranks[0].ok);
        assert_non_null(strstr(ranks[0].e.text, "hold different windows or n-grams"));
        release_ranks(&w, ranks);
    }
}

static void damaged_calls_are_refused(void **state) {
    (void)state;
    Text message = {0};
    CallView v;
    Error e = {0};
    Call call = {.kind = CALL_ANSWER, .prompt_count = 3};
    assert_false(call_read(&message, &v, &e));
    text_add(&message, (const char *)&call, sizeof call);
    assert_false(call_read(&message, &v, &e));
    text_add(&message, (const char *)(int[]){7, 8, 9}, 3 * sizeof(int));
    assert_true(call_read(&message, &v, &e));
    assert_true(v.prompt[0] == 7 && v.prompt[2] == 9);
    call_release(&v);
    text_release(&message);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_on_the_cpu_equal_one_process),
        cmocka_unit_test(ranks_equal_one_process_whoever_draws),
        cmocka_unit_test(rank_0_may_end_early),
        cmocka_unit_test(a_failed_rank_is_named),
        cmocka_unit_test(ranks_that_drift_apart_fail),
        cmocka_unit_test(damaged_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
