// Rules for every row of the table of methods, and opening a method from text.
#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include "engine/decode/method.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    Session target, draft;
    NullAdapters adapters;
    MethodEnv env;
} World;

static int open_world(void **state) {
    static const NullSetup tokens = {.vocab = 20, .context = 100};
    World *w = test_calloc(1, sizeof *w);
    null_session_open(&w->target, &tokens);
    null_session_open(&w->draft, &tokens);
    null_adapters_open(&w->adapters, &tokens);
    w->env = (MethodEnv){.target = &w->target, .draft = &w->draft, .seed = 1};
    null_adapters_give(&w->adapters, &w->env);
    *state = w;
    return 0;
}

static int close_world(void **state) {
    World *w = *state;
    session_release(&w->target);
    session_release(&w->draft);
    null_adapters_close(&w->adapters);
    test_free(w);
    return 0;
}

static void check_name(const char *name) {
    assert_in_range(strlen(name), 1, 32);
    for (const char *p = name; *p; p++) assert_true(islower(*p) || isdigit(*p) || *p == '-' || *p == '_');
}

// A paper's letter stays as it is: W, N, G.
static void check_parameter_name(const char *name) {
    if (!isupper(*name) || name[1]) check_name(name);
}

static void check_row(const MethodInfo *m) {
    check_name(m->name);
    assert_true(m->summary && *m->summary && !strchr(m->summary, '\n'));
    assert_true(m->begin && m->propose && m->observe);
    assert_true(m->param_count <= ARGS_MAX);
    for (size_t i = 0; i < m->param_count; i++) {
        const Arg *p = &m->params[i];
        check_parameter_name(p->name);
        assert_true(p->help && *p->help && !strchr(p->help, '\n'));
        assert_true((p->type == ARG_CHOICE) == (p->choices != NULL));
        assert_true(p->at < m->param_size);
        for (size_t k = 0; k < i; k++) assert_string_not_equal(p->name, m->params[k].name);
    }
}

static void table_is_sound(void **state) {
    (void)state;
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        check_row(table[i]);
        assert_ptr_equal(method_find(table[i]->name, NULL), table[i]); // so names are unique, too
    }
}

static void random_value(const Arg *p, Random *r, char *out, size_t size) {
    int choices = 0;
    while (p->choices && p->choices[choices]) choices++;
    switch (p->type) {
    case ARG_INT:
        snprintf(out, size, "%.0f", p->low + (double)random_below(r, (uint32_t)(p->high - p->low + 1)));
        break;
    case ARG_REAL: snprintf(out, size, "%.17g", p->low + (p->high - p->low) * random_uniform(r)); break;
    case ARG_FLAG: snprintf(out, size, "%s", test_between(r, 0, 1) ? "on" : "off"); break;
    case ARG_CHOICE: snprintf(out, size, "%s", p->choices[test_between(r, 0, choices - 1)]); break;
    case ARG_TEXT:
    case ARG_METHODS:
        snprintf(out, size, "a-%d(b=%d,c)", test_between(r, 0, 999), test_between(r, 0, 9));
        break;
    default: fail_msg("'%s' is of a type that no parameter has", p->name);
    }
}

static void check_round_trip(const MethodInfo *m, void *values, void *back) {
    Text text = {0}, again = {0};
    Error e = {0};
    args_write(m->params, m->param_count, values, &text);
    args_defaults(m->params, m->param_count, back);
    if (!args_parse(m->params, m->param_count, back, text_get(&text), &e))
        fail_msg("%s: '%s': %s", m->name, text_get(&text), e.text);
    args_write(m->params, m->param_count, back, &again);
    assert_string_equal(text_get(&text), text_get(&again));
    text_release(&text);
    text_release(&again);
}

static void check_parameters(const MethodInfo *m, Random *r) {
    char value[ARG_TEXT_SIZE];
    void *values = test_calloc(2, m->param_size + 8), *back = (char *)values + (m->param_size + 7) / 8 * 8;
    for (size_t i = 0; i < m->param_count; i++) {
        Error e = {0};
        if (!args_set(&m->params[i], 1, values, m->params[i].name, m->params[i].fallback, &e))
            fail_msg("%s: the default does not parse: %s", m->name, e.text);
    }
    check_round_trip(m, values, back);
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < m->param_count; i++) {
            random_value(&m->params[i], r, value, sizeof value);
            assert_true(args_set(m->params, m->param_count, values, m->params[i].name, value, NULL));
        }
        check_round_trip(m, values, back);
    }
    test_free(values);
}

static void parameters_round_trip(void **state) {
    (void)state;
    Random r = test_random(24);
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    for (size_t i = 0; i < count; i++) check_parameters(table[i], &r);
}

static void descriptions_name_everything(void **state) {
    (void)state;
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        Text text = {0};
        method_describe(table[i], &text);
        assert_non_null(strstr(text_get(&text), table[i]->name));
        assert_non_null(strstr(text_get(&text), table[i]->summary));
        for (size_t k = 0; k < table[i]->param_count; k++) {
            assert_non_null(strstr(text_get(&text), table[i]->params[k].name));
            assert_non_null(strstr(text_get(&text), table[i]->params[k].help));
        }
        text_release(&text);
    }
}

static void opens_from_text(void **state) {
    World *w = *state;
    static const char *const good[] = {"autoregressive",
                                       "jacobi",
                                       "jacobi:",
                                       "jacobi:m=3,start=pad,pad=19",
                                       "prompt-lookup:ngram_max=2,match=newest",
                                       "prompt-lookup:preset=hf-4.37",
                                       "lookahead",
                                       "ouroboros",
                                       "ouroboros:preset=code,mode=reference",
                                       "ouroboros:K=0,beta=2,W=1,window=1,warm=on",
                                       "lookahead:preset=paper-7b,mode=reference",
                                       "lookahead:W=1,N=2,G=0,ranks=16",
                                       "speculative:gamma=7,adaptive=confidence,confidence=0.5",
                                       "speculative:draft_temperature=0,draft_top_k=3"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        Method m;
        Error e = {0};
        if (!method_open(&m, good[i], &w->env, &e)) fail_msg("'%s': %s", good[i], e.text);
        assert_memory_equal(m.info->name, good[i], strlen(m.info->name));
        method_close(&m);
        method_close(&m); // takes an empty one
    }
}

// An adapter is found by its kind, never by words in the method's text; of two, the last is taken.
static void adapters_are_found_by_their_kind(void **state) {
    enum { HEADS = 5 }; // as deep as the tree called eagle
    static const char *const good[] = {"medusa:tree=eagle", "mix:medusa(tree=eagle)+recycling(tree=eagle)",
                                       "mix:recycling(tree=eagle)+kangaroo+medusa(tree=eagle)"};
    World *w = *state;
    Session heads[HEADS];
    MethodEnv env = w->env;
    for (int i = 0; i < HEADS; i++)
        null_session_open(&heads[i], &(NullSetup){.vocab = 20, .context = 100, .input = INPUT_HIDDEN});
    env.adapters[0] = env.adapters[1];
    env.adapters[1] = env.adapters[2];
    env.adapters[2] = (AdapterSet){.sessions = heads, .count = HEADS, .layer = NULL_LAYERS};
    env.adapters[3] = w->env.adapters[0];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        Method m;
        Error e = {0};
        if (!method_open(&m, good[i], &env, &e)) fail_msg("'%s': %s", good[i], e.text);
        method_close(&m);
    }
    for (int i = 0; i < HEADS; i++) session_release(&heads[i]);
}

static void refuses(void **state) {
    World *w = *state;
    static const char *const bad[][2] = {
        {"jakobi", "there is no method 'jakobi'; did you mean 'jacobi'?"},
        {"", "there is no method ''"},
        {"completely-different", "'outpace methods' lists them"},
        {"jacobi:n=3", "method 'jacobi': there is no parameter 'n'"},
        {"jacobi:m=0", "method 'jacobi': 'm' is '0'"},
        {"jacobi:start=pad,pad=20", "method 'jacobi': 'pad' is 20, outside the vocabulary of 20"},
        {"autoregressive:m=1", "method 'autoregressive': there is no parameter 'm': this method has none"},
        {"lookahead:W=200,N=20", "method 'lookahead': W=200, N=20 and G=15 make a step of 4085 tokens"},
        {"prompt-lookup:ngram_min=4", "method 'prompt-lookup': 'ngram_min' 4 is larger than 'ngram_max' 3"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Method m;
        Error e = {0};
        if (method_open(&m, bad[i][0], &w->env, &e)) fail_msg("'%s' was opened", bad[i][0]);
        assert_int_equal(e.kind, ERROR_INPUT);
        if (!strstr(e.text, bad[i][1])) fail_msg("'%s' says '%s', want '%s'", bad[i][0], e.text, bad[i][1]);
        assert_null(m.info); // nothing to close, and closing it is harmless
        method_close(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_sound),
        cmocka_unit_test(parameters_round_trip),
        cmocka_unit_test(descriptions_name_everything),
        cmocka_unit_test(opens_from_text),
        cmocka_unit_test(adapters_are_found_by_their_kind),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
