// The time of a plan: each method's steps by the rows and drafts that it plans, one step a token.
#include "tests/support/check.h"

#include "engine/model/model.h"
#include "harness/run/cost.h"

#include <string.h>

static const char CONFIG[] =
    "name: cost\n"
    "models: [{name: m, target: models/reference, draft: models/draft, adapter: models/reference-kangaroo-2,"
    " heads: models/reference-medusa, eagle: models/reference-eagle}]\n"
    "datasets: [{name: reference-stories, limit: 3}]\n"
    "hardware: {device: 'null'}\n"
    "generation: {max_tokens: 10}\n"
    "measurement: {passes: 2, warmup: 0}\n"
    "methods:\n- autoregressive\n- {name: jacobi, matrix: {m: 4}}\n- {name: lookahead, matrix: {W: 7, N: 5, "
    "G: 7}}\n"
    "- {name: prompt-lookup, matrix: {draft: 6}}\n- {name: ngrammys, matrix: {k: 3, w: 2}}\n"
    "- {name: suffix, matrix: {draft: 8, factor: 2, offset: 1}}\n- {name: ngram-mod, matrix: {draft: 5, "
    "warm: off}}\n"
    "- {name: recycling, matrix: {tree: 2x2, warm: off}}\n"
    "- {name: speculative, matrix: {gamma: 5}}\n"
    "- {name: speculative, matrix: {tree: 2x2}}\n"
    "- {name: ouroboros, matrix: {gamma: 4, K: 2, beta: 3, window: 5}}\n"
    "- {name: early-exit, matrix: {exit_layer: 1, gamma: 3}}\n- {name: kangaroo, matrix: {gamma: 3}}\n"
    "- {name: medusa, matrix: {nodes: 6, depth: 2}}\n- {name: eagle, matrix: {total: 9, depth: 2, top: 3}}\n"
    "- {name: oracle, matrix: {draft: 3, guesses: 2}}\n"
    "- {name: mix, matrix: {of: 'jacobi(m=4)+speculative(gamma=2)'}}\n"
    "- {name: mix, matrix: {of: 'jacobi(m=4)+jacobi(m=4)', rows: 6}}\n";

typedef enum { NO_DRAFT, SMALL, EXIT, KANGAROO, HEADS, EAGLE } Drafts;

// Rows and forwards, counted by hand.
static const struct {
    int longest;
    double rows;
    Drafts by;
    double forwards, further; // rows of the drafts after the first of each forward
} WANT[] = {
    {1, 1, NO_DRAFT, 0, 0}, {5, 5, NO_DRAFT, 0, 0}, {5, 56, NO_DRAFT, 0, 0}, {7, 7, NO_DRAFT, 0, 0},
    {3, 7, NO_DRAFT, 0, 0}, {9, 5, NO_DRAFT, 0, 0}, {6, 6, NO_DRAFT, 0, 0},  {3, 7, NO_DRAFT, 0, 0},
    {6, 6, SMALL, 5, 0},    {3, 7, SMALL, 2, 4},    {7, 9, SMALL, 4, 40},    {4, 4, EXIT, 3, 0},
    {4, 4, KANGAROO, 3, 0}, {3, 7, HEADS, 2, 0},    {4, 9, EAGLE, 3, 4},     {4, 7, NO_DRAFT, 0, 0},
    {5, 7, SMALL, 2, 0},    {5, 6, NO_DRAFT, 0, 0},
};
enum { POINTS = sizeof WANT / sizeof *WANT };

static double head(const Shape *s) { return (double)s->vocab * s->width; }

static double all(const Shape *s) { return (double)shape_layers_parameters(s) + head(s); }

static double share(const InputModel *m, Drafts by) {
    const Shape *s = &m->model.shape;
    double layer = (double)shape_layers_parameters(s) / s->layers;
    double part = by == SMALL      ? all(&m->draft.shape)
                  : by == EXIT     ? layer + head(s)
                  : by == KANGAROO ? 2 * layer + all(&m->adapters[ADAPTER_ANY].models[0].shape)
                  : by == HEADS    ? all(&m->adapters[ADAPTER_FOR_MEDUSA].models[0].shape)
                  : by == EAGLE    ? all(&m->adapters[ADAPTER_FOR_EAGLE].models[0].shape)
                                   : 0;
    return part / all(s);
}

// Methods that need the prompt's states, or to see its parts.
static bool reads_prompt(const char *decoder) {
    static const char *const NAMES[] = {"recycling", "kangaroo", "medusa", "eagle", "mix"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strncmp(decoder, NAMES[i], strlen(NAMES[i])) == 0) return true;
    return false;
}

static void steps_cost_their_rows(void **state) {
    (void)state;
    Error e = {0};
    Plan *p = calloc(1, sizeof *p);
    CostDone done = {.rounds = calloc(POINTS + 1, sizeof *done.rounds)};
    CostPrice price = {.token_s = 2, .row_s = 0.5};
    double step_s = 0, runs = 2; // of a prompt: the baseline's, and one that the others share
    if (!plan_reopen(p, CONFIG, "cost.yaml", "[]", &(SweepOptions){0}, &e)) fail_msg("%s", e.text);
    assert_int_equal(p->sweep.count, POINTS);
    for (int i = 0; i < POINTS; i++) {
        const PointWork *got = &p->inputs.work[i];
        double draft = share(&p->inputs.models[0], WANT[i].by);
        if (inputs_refusal(&p->inputs, i)) fail_msg("point %d: %s", i, inputs_refusal(&p->inputs, i));
        if (got->longest != WANT[i].longest || got->rows != WANT[i].rows ||
            fabs(got->drafts - draft * WANT[i].forwards) > 1e-9 ||
            fabs(got->draft_rows - draft * WANT[i].further) > 1e-9)
            fail_msg("point %d (%s): got %d tokens, %g rows, drafts %g and %g; wanted %d, %g, %g and %g", i,
                     p->sweep.points[i].decoder, got->longest, got->rows, got->drafts, got->draft_rows,
                     WANT[i].longest, WANT[i].rows, draft * WANT[i].forwards, draft * WANT[i].further);
        runs += reads_prompt(p->sweep.points[i].decoder);
        step_s += 2 * (1 + draft * WANT[i].forwards) + 0.5 * (WANT[i].rows - 1 + draft * WANT[i].further);
    }
    for (int measured = 0; measured < 2; measured++) {
        price.all_methods = measured;
        CostParts parts = cost_parts(p, &done, &price, NULL);
        double want = 3 * 2 * 10 * (measured ? 2 * POINTS : step_s);
        if (fabs(parts.decoding - want) > 1e-6 * want || parts.tokens != 60 * POINTS)
            fail_msg("%s: got %g s for %g tokens, wanted %g for %d", measured ? "measured" : "reckoned",
                     parts.decoding, parts.tokens, want, 60 * POINTS);
        want = 2 * p->inputs.prefill[0] * runs; // two passes
        if (parts.prompt_tokens != want || parts.prefill != 0.5 * want)
            fail_msg("got %g tokens of prompts in %g s, wanted %g", parts.prompt_tokens, parts.prefill, want);
    }
    plan_release(p);
    free(done.rounds);
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_cost_their_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
