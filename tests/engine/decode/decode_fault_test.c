// Every allocation of a run fails once: opening the session and the method, prefill, each step. The run then
// ends the program with one line, or returns a system error and leaves nothing allocated. And a step
// allocates nothing.
#include "tests/support/check.h"
#include "tests/support/fault.h"
#include "tests/support/null_session.h"
#include "tests/support/test_methods.h"

#include "engine/decode/decode.h"
#include "engine/null/null.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VOCAB = 4, CONTEXT = 60, PROMPT = 20, TOKENS = 25 };

typedef struct {
    int prompt[PROMPT], truth[TOKENS];
    const char *method; // NULL: scatter
    double temperature;
} Run;

static bool open_session(Session *s, Error *e) {
    Model model = {
        .shape = {.layers = 2, .width = 2, .vocab = VOCAB, .real_vocab = VOCAB, .context = CONTEXT}};
    BackendOptions o = {.max_nodes = 64};
    void *self;
    if (!null_open(&model, &o, &self, e)) return false;
    session_init(s, &null_backend, self, &model.shape, &o);
    return true;
}

static bool decode_with(const Run *run, Session *s, Method *m, DecodeResult *out, Error *e) {
    DecodeOptions o = {.max_tokens = TOKENS,
                       .sampling = {.temperature = run->temperature, .top_p = 1},
                       .seed = 5,
                       .merge = true,
                       .clock = still_clock()};
    return decode(s, m, run->prompt, PROMPT, &o, out, e);
}

static bool run_method(const Run *run, Session *s, Session *draft, DecodeResult *out, Error *e) {
    Scatter scatter = {.seed = 3, .vocab = VOCAB};
    Method m = scatter_method(&scatter);
    MethodEnv env = {.target = s, .draft = draft};
    if (run->method && !method_open(&m, run->method, &env, e)) return false;
    bool ok = decode_with(run, s, &m, out, e);
    if (run->method) method_close(&m);
    return ok;
}

static bool run_all(void *state, Error *e) {
    const Run *run = state;
    Session s = {.backend = NULL}, draft = s;
    DecodeResult out = {0};
    bool ok = open_session(&s, e) && open_session(&draft, e) && run_method(run, &s, &draft, &out, e);
    bool right =
        out.tokens == TOKENS && (run->temperature > 0 || memcmp(out.ids, run->truth, sizeof run->truth) == 0);
    if (ok && !right) ok = error_input(e, "%s: wrong tokens", run->method ? run->method : "scatter");
    decode_result_release(&out);
    session_release(&s);
    session_release(&draft);
    return ok;
}

static const char *const METHODS[] = {"autoregressive",
                                      "speculative:gamma=3",
                                      "jacobi",
                                      "prompt-lookup",
                                      "ngrammys:k=3,w=3,extend=model",
                                      "lookahead:W=3,N=3,G=2,ranks=2,prompt_pool=on",
                                      "ouroboros:gamma=4,K=2,beta=3,W=3,window=3",
                                      "mix:jacobi+ngrammys(k=2,w=2)+speculative(gamma=2),rows=9",
                                      NULL};

static void every_allocation(void **state) {
    (void)state;
    Random r = test_random(80);
    Run run = {.method = NULL};
    Session s;
    for (int i = 0; i < PROMPT; i++) run.prompt[i] = test_between(&r, 0, VOCAB - 1);
    assert_true(open_session(&s, NULL));
    slow_greedy(&s, run.prompt, PROMPT, TOKENS, run.truth);
    session_release(&s);
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
        for (int hot = 0; hot < 2; hot++) {
            run.method = METHODS[i];
            run.temperature = 2 * hot;
            assert_true(fault_each(FAULT_ALLOCATION, run_all, NULL, &run) > 15);
        }
}

// --- steps take no memory

static void arm_after_the_first(void *state, const StepReport *r) {
    (void)state;
    if (r->number == 0) fault_after(1);
}

// Once one text has been written, the steps of the next allocate nothing: the first that did would end the
// program.
static void take_steps(const char *text, double temperature) {
    Session s, draft;
    Method m;
    DecodeOptions o = {.max_tokens = TOKENS,
                       .sampling = {.temperature = temperature, .top_p = 1},
                       .seed = 5,
                       .clock = still_clock()};
    int prompt[PROMPT];
    for (int i = 0; i < PROMPT; i++) prompt[i] = i * i % VOCAB;
    assert_true(open_session(&s, NULL) && open_session(&draft, NULL));
    MethodEnv env = {.target = &s, .draft = &draft, .sampling = o.sampling};
    assert_true(method_open(&m, text, &env, NULL));
    for (int again = 0; again < 2; again++) {
        DecodeResult out;
        o.step = again ? arm_after_the_first : NULL;
        bool ok = decode(&s, &m, prompt, PROMPT, &o, &out, NULL);
        bool allocated = fault_seen();
        fault_after(0);
        assert_true(ok && !allocated && out.steps > 1);
        decode_result_release(&out);
    }
    method_close(&m);
    session_release(&s);
    session_release(&draft);
}

// In a process of its own, which a failing allocation may end.
static void check_steps(const char *text, double temperature) {
    int code;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        take_steps(text, temperature);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    if (code != 0) fail_msg("%s at temperature %g takes memory in a step", text, temperature);
}

static void steps_allocate_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
        for (int hot = 0; hot < 2 && METHODS[i]; hot++) check_steps(METHODS[i], 2 * hot);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation),
                                       cmocka_unit_test(steps_allocate_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
