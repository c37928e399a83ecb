// Sweep expansion: random experiments against nested loops over plain arrays; order, hashes, and the effect
// of changing each part; conditions; limits.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "harness/config/sweep.h"

#include <stdio.h>
#include <string.h>

static void expand(const char *file, Experiment *x, Sweep *s) {
    Error e = {0};
    if (!experiment_parse(x, file, strlen(file), "x.yaml", NULL, &e) || !sweep_expand(x, s, &e))
        fail_msg("%s of\n%s", e.text, file);
}

static void release(Experiment *x, Sweep *s) {
    sweep_release(s);
    experiment_release(x);
}

// --- random experiments, and loops that list their points

enum { AXIS_COUNT = 5, VALUES = 4, EXPECTED = 20000, METHODS = 3 };

// Lookahead's parameters, with values from 1 to 5, and two settings.
static const char *const NAMES[AXIS_COUNT] = {"W", "G", "pool_cap", "threads", "top_k"};
enum { THREADS = 3 }; // the first setting

typedef struct Case {
    int models, datasets, methods;
    int shared[AXIS_COUNT][VALUES], shared_count[AXIS_COUNT]; // the experiment's; 0: none
    int own[METHODS][AXIS_COUNT][VALUES], own_count[METHODS][AXIS_COUNT];
    bool zipped[METHODS][AXIS_COUNT];  // walks with the others that are
    int order[METHODS][AXIS_COUNT];    // in which the axes are written
    int least[METHODS], most[METHODS]; // excluded: W >= least and G < most
} Case;

static void random_values(Random *r, int values[VALUES], int *count, int n) {
    int used = 0;
    for (*count = 0; *count < n;) {
        int v = test_between(r, 1, 5);
        if (used >> v & 1) continue;
        used |= 1 << v;
        values[(*count)++] = v;
    }
}

static void random_method(Random *r, Case *c, int m) {
    int zip_length = test_between(r, 1, VALUES);
    for (int a = 0; a < AXIS_COUNT; a++) {
        int swap = test_between(r, 0, a);
        c->order[m][a] = c->order[m][swap];
        c->order[m][swap] = a;
    }
    for (int a = 0; a < AXIS_COUNT; a++) {
        c->zipped[m][a] = test_between(r, 0, 3) == 0;
        int n = c->zipped[m][a] ? zip_length : test_between(r, -2, a < 2 ? VALUES : 2); // 0 or less: none
        random_values(r, c->own[m][a], &c->own_count[m][a], n);
    }
    c->least[m] = test_between(r, 1, 7);
    c->most[m] = test_between(r, 0, 7);
}

// The method before it with other values on one axis: the two have points in common.
static void vary_method(Random *r, Case *c, int m) {
    int a = test_between(r, 0, AXIS_COUNT - 1), last = m - 1;
    memcpy(c->own[m], c->own[last], sizeof c->own[m]);
    memcpy(c->own_count[m], c->own_count[last], sizeof c->own_count[m]);
    memcpy(c->zipped[m], c->zipped[last], sizeof c->zipped[m]);
    memcpy(c->order[m], c->order[last], sizeof c->order[m]);
    random_values(r, c->own[m][a], &c->own_count[m][a], c->own_count[m][a]);
    c->least[m] = test_between(r, 1, 7);
    c->most[m] = test_between(r, 0, 7);
}

static void random_case(Random *r, Case *c) {
    *c = (Case){.models = test_between(r, 1, 2),
                .datasets = test_between(r, 1, 2),
                .methods = test_between(r, 1, METHODS)};
    for (int a = THREADS; a < AXIS_COUNT; a++)
        random_values(r, c->shared[a], &c->shared_count[a], test_between(r, 0, 2));
    for (int m = 0; m < c->methods; m++)
        if (m == 0 || test_between(r, 0, 1)) random_method(r, c, m);
        else vary_method(r, c, m);
}

static void write_values(Text *out, const int *values, int count) {
    text_puts(out, "[");
    for (int i = 0; i < count; i++) text_printf(out, "%s%d", i ? ", " : "", values[i]);
    text_puts(out, "]\n");
}

static void write_maps(const Case *c, int m, bool zipped, Text *out) {
    text_printf(out, "    %s:%s\n", zipped ? "zip" : "matrix", "");
    int written = 0;
    for (int i = 0; i < AXIS_COUNT; i++) {
        int a = c->order[m][i];
        if (c->own_count[m][a] == 0 || c->zipped[m][a] != zipped) continue;
        text_printf(out, "      %s: ", NAMES[a]);
        write_values(out, c->own[m][a], c->own_count[m][a]);
        written++;
    }
    if (written == 0) text_puts(out, "      {}\n");
}

static void write_case(const Case *c, Text *out) {
    text_puts(out, "name: random\nmodels: [a");
    text_puts(out, c->models > 1 ? ", b]\ndatasets: [d" : "]\ndatasets: [d");
    text_puts(out, c->datasets > 1 ? ", e]\n" : "]\n");
    for (int a = THREADS; a < AXIS_COUNT; a++) {
        if (c->shared_count[a] == 0) continue;
        text_printf(out, "%s:\n  %s: ", a == THREADS ? "hardware" : "generation", NAMES[a]);
        write_values(out, c->shared[a], c->shared_count[a]);
    }
    text_puts(out, "methods:\n");
    for (int m = 0; m < c->methods; m++) {
        text_puts(out, "  - name: lookahead\n");
        write_maps(c, m, false, out);
        write_maps(c, m, true, out);
        text_printf(out, "    exclude where: W >= %d and G < %d\n", c->least[m], c->most[m]);
    }
}

typedef struct Expected {
    int model, dataset, method, values[AXIS_COUNT];
} Expected;

typedef struct Listing {
    Expected points[EXPECTED];
    int count, excluded, repeated;
} Listing;

static void list_point(const Case *c, Listing *l, const Expected *p) {
    if (p->values[0] >= c->least[p->method] && p->values[1] < c->most[p->method]) {
        l->excluded++;
        return;
    }
    for (int i = 0; i < l->count; i++) {
        const Expected *q = &l->points[i];
        // Without a cap of its own, the pool's is 0 in both.
        if (q->model == p->model && q->dataset == p->dataset &&
            memcmp(q->values, p->values, sizeof p->values) == 0) {
            l->repeated++;
            return;
        }
    }
    assert_true(l->count < EXPECTED);
    l->points[l->count++] = *p;
}

static bool is_shared(const Case *c, int m, int a) { return a >= THREADS && c->own_count[m][a] == 0; }

// The zip comes last; it is one loop.
static void list_zip(const Case *c, Listing *l, Expected p) {
    int length = 0;
    for (int a = 0; a < AXIS_COUNT; a++)
        if (c->zipped[p.method][a]) length = c->own_count[p.method][a];
    for (int i = 0; i < (length ? length : 1); i++) {
        for (int a = 0; a < AXIS_COUNT; a++)
            if (c->zipped[p.method][a]) p.values[a] = c->own[p.method][a][i];
        list_point(c, l, &p);
    }
}

// Loops 0..AXIS_COUNT-1: the experiment's settings; then the method's axes as written.
static void list_loop(const Case *c, Listing *l, Expected p, int loop) {
    if (loop == 2 * AXIS_COUNT) {
        list_zip(c, l, p);
        return;
    }
    int m = p.method, a = loop < AXIS_COUNT ? loop : c->order[m][loop - AXIS_COUNT];
    bool shared = loop < AXIS_COUNT;
    int count = shared ? c->shared_count[a] : c->own_count[m][a];
    if (count == 0 || is_shared(c, m, a) != shared || (!shared && c->zipped[m][a])) {
        list_loop(c, l, p, loop + 1);
        return;
    }
    for (int i = 0; i < count; i++) {
        p.values[a] = shared ? c->shared[a][i] : c->own[m][a][i];
        list_loop(c, l, p, loop + 1);
    }
}

static void list_case(const Case *c, Listing *l) {
    l->count = l->excluded = l->repeated = 0;
    for (int model = 0; model < c->models; model++)
        for (int dataset = 0; dataset < c->datasets; dataset++)
            for (int m = 0; m < c->methods; m++)
                list_loop(c, l, (Expected){model, dataset, m, {15, 15, 0, 0, 0}},
                          0); // the defaults
}

static void compare_point(const Point *p, const Expected *q, int i, const char *file) {
    char decoder[64], *at = NULL;
    snprintf(decoder, sizeof decoder, ",W=%d,N=5,G=%d,", q->values[0], q->values[1]);
    bool same = p->model == q->model && p->dataset == q->dataset && p->method == q->method &&
                (at = strstr(p->decoder, decoder)) && p->settings.engine.threads == q->values[3] &&
                p->settings.top_k == q->values[4];
    snprintf(decoder, sizeof decoder, ",pool_cap=%d,", q->values[2]);
    if (!same || !strstr(at, decoder))
        fail_msg("point %d: wanted model %d, dataset %d, method %d, W=%d, G=%d, pool_cap=%d, threads=%d, "
                 "top_k=%d; got %d, %d, %d, %s, threads=%d, top_k=%d of\n%s",
                 i, q->model, q->dataset, q->method, q->values[0], q->values[1], q->values[2], q->values[3],
                 q->values[4], p->model, p->dataset, p->method, p->decoder, p->settings.engine.threads,
                 p->settings.top_k, file);
}

static void random_experiments(void **state) {
    (void)state;
    Random r = test_random(1);
    static Listing l;
    static Case c;
    int repeated = 0, excluded = 0;
    for (int round = 0; round < 60; round++) {
        Text file = {0};
        Experiment x;
        Sweep s;
        Error e = {0};
        random_case(&r, &c);
        write_case(&c, &file);
        list_case(&c, &l);
        if (!experiment_parse(&x, text_get(&file), file.length, "x.yaml", NULL, &e))
            fail_msg("%s of\n%s", e.text, text_get(&file));
        bool ok = sweep_expand(&x, &s, &e);
        if (ok != (l.count > 0)) fail_msg("%s of\n%s", e.text, text_get(&file));
        if (s.count != l.count || (ok && (s.excluded != l.excluded || s.repeated != l.repeated)))
            fail_msg("wanted %d points, %d excluded, %d repeated; got %d, %d, %d of\n%s", l.count, l.excluded,
                     l.repeated, s.count, s.excluded, s.repeated, text_get(&file));
        for (int i = 0; i < s.count; i++) compare_point(&s.points[i], &l.points[i], i, text_get(&file));
        repeated += l.repeated;
        excluded += l.excluded;
        release(&x, &s);
        text_release(&file);
    }
    if (repeated < 20 || excluded < 100) fail_msg("only %d repeated and %d excluded", repeated, excluded);
}

// --- hashes ----------------------------------------------------------------------------------------------

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static const char GRID[] =
    "name: grid\nmodels: [a, b]\ndatasets: [d, e]\n"
    "generation: {seed: 1..3, temperature: [0, 1]}\n"
    "methods:\n  - autoregressive\n  - {name: ngrammys, matrix: {k: [1, 5, 10], w: 2..14+2}}\n";

static void hashes_differ(void **state) {
    (void)state;
    Experiment x;
    Sweep s;
    static const char *hashes[4096];
    expand(GRID, &x, &s);
    assert_int_equal(s.count, 2 * 2 * 3 * 2 * (1 + 3 * 7));
    for (int i = 0; i < s.count; i++) {
        assert_int_equal(strlen(s.points[i].hash), 64);
        hashes[i] = s.points[i].hash;
    }
    qsort(hashes, (size_t)s.count, sizeof *hashes, by_text);
    for (int i = 1; i < s.count; i++) assert_string_not_equal(hashes[i - 1], hashes[i]);
    release(&x, &s);
}

static void same_again(void **state) {
    (void)state;
    Experiment x, y;
    Sweep s, t;
    expand(GRID, &x, &s);
    expand(GRID, &y, &t);
    assert_int_equal(s.count, t.count);
    assert_string_equal(s.hash, t.hash);
    for (int i = 0; i < s.count; i++) assert_string_equal(s.points[i].hash, t.points[i].hash);
    release(&x, &s);
    release(&y, &t);
}

// A file with one point, and changes to it: to a hash's content or not.
static const char ONE[] = "name: one\nmodels: {target: m, draft: s, inflate: i, inflate_draft: "
                          "none}\ndatasets: {name: d, limit: 5}\n"
                          "hardware: {threads: 2}\ngeneration: {seed: 3, ignore_eos: on}\n"
                          "methods: {name: jacobi, matrix: {m: 7}}\nmeasurement: {passes: 2}\n";

static void what_a_hash_is_of(void **state) {
    (void)state;
    static const struct {
        const char *set;
        bool point, sweep; // whether these hashes change
    } cases[] = {
        {"name=two", false, false},
        {"about=words", false, false},
        {"tables=t", false, false},
        {"models.name=n", false, false},
        {"methods.label=l", false, false},
        {"hardware.threads=[2]", false, false},
        {"generation.ignore_eos=true", false, false}, // said otherwise
        {"generation.temperature=0", false, false},   // the default, written out
        {"generation.temperature=0.0", false, false},
        {"hardware.weights=mapped", false, false},
        {"generation.verification=token", false, false},
        {"methods.matrix.m=7..7", false, false},
        {"methods.matrix.seed=3", false, false}, // by the method in place of the experiment
        {"measurement.passes=3", false, true},
        {"measurement.warmup=3", false, true},
        {"models.target=n", true, true},
        {"models.draft=n", true, true},
        {"models.adapter=n", true, true},
        {"models.heads=n", true, true},
        {"models.inflate=n", true, true},
        {"models.inflate_draft=n", true, true},
        {"models.template=vicuna", true, true},
        {"models.seed=1", true, true},
        {"datasets.name=e", true, true},
        {"datasets.path=p", true, true},
        {"datasets.format=p", true, true},
        {"datasets.split=p", true, true},
        {"datasets.template=none", true, true},
        {"datasets.limit=6", true, true},
        {"datasets.turns=2", true, true},
        {"datasets.order=shuffled", true, true},
        {"datasets.consecutive=2", true, true},
        {"datasets.seed=2", true, true},
        {"datasets.parts=[q]", true, true},
        {"hardware.threads=3", true, true},
        {"hardware.compute=f32", true, true},
        {"hardware.weights=held", true, true},
        {"generation.seed=4", true, true},
        {"generation.max_tokens=4", true, true},
        {"methods.matrix.m=8", true, true},
        {"methods.matrix.seed=4", true, true},
        {"methods=autoregressive", true, true},
    };
    Experiment x;
    Sweep was, is;
    expand(ONE, &x, &was);
    assert_int_equal(was.count, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Experiment y;
        Error e = {0};
        Words sets = {{cases[i].set}, 1};
        const ExperimentChanges changes = {.sets = &sets};
        if (!experiment_parse(&y, ONE, strlen(ONE), "x.yaml", &changes, &e) || !sweep_expand(&y, &is, &e))
            fail_msg("%s: %s", cases[i].set, e.text);
        assert_int_equal(is.count, 1);
        bool point = strcmp(was.points->hash, is.points->hash) != 0, sweep = strcmp(was.hash, is.hash) != 0;
        if (point != cases[i].point || sweep != cases[i].sweep)
            fail_msg("--set %s %s the point's hash and %s the sweep's", cases[i].set,
                     point ? "changes" : "keeps", sweep ? "changes" : "keeps");
        release(&y, &is);
    }
    release(&x, &was);
}

// Stores keep rows under these hashes: the texts may only change with a reason.
static void describes(void **state) {
    (void)state;
    Experiment x;
    Sweep s;
    Text text = {0};
    expand(ONE, &x, &s);
    sweep_describe(&x, s.points, &text);
    const char *want =
        "target 1 m\ninflate 1 i\ndraft 1 s\ninflate-draft 4 none\nmodel-seed 0\ndataset 1 d\n"
        "rows limit=5,turns=1,order=0,consecutive=1,seed=0\n"
        "settings device=cpu,math=exact,compute=weights,threads=2,layout=tree,merge=on,"
        "max_rows=0,sliding_window=on,max_tokens=128,temperature=0,top_k=0,top_p=1,seed=3,ignore_eos=on\n"
        "method ";
    if (strncmp(text_get(&text), want, strlen(want)) != 0)
        fail_msg("wanted\n%sgot\n%s", want, text_get(&text));
    s.points->settings.engine.weights = WEIGHTS_HELD; // the one word of what came later
    text_clear(&text);
    sweep_describe(&x, s.points, &text);
    if (!strstr(text_get(&text), ",sliding_window=on,weights=held,max_tokens=128,"))
        fail_msg("got\n%s", text_get(&text));
    s.points->settings.engine.attention = ATTENTION_PLAIN;
    text_clear(&text);
    sweep_describe(&x, s.points, &text);
    if (!strstr(text_get(&text), ",weights=held,attention=plain,max_tokens=128,"))
        fail_msg("got\n%s", text_get(&text));
    text_release(&text);
    release(&x, &s);
}

// Blocks remain where they change anything; the other points are those of verification by tokens, once.
static void blocks_where_they_matter(void **state) {
    (void)state;
    static const char BLOCKS[] = "name: one\nmodels: {target: m, draft: s}\ndatasets: d\n"
                                 "generation: {temperature: [0, 0.5], verification: [token, block]}\n"
                                 "methods: [autoregressive, prompt-lookup, speculative, kangaroo]\n";
    Experiment x;
    Sweep s;
    Error e = {0};
    int blocks = 0;
    expand(BLOCKS, &x, &s);
    for (int i = 0; i < s.count; i++) blocks += s.points[i].settings.verification == VERIFICATION_BLOCK;
    assert_int_equal(blocks, 2);
    assert_int_equal(s.count, 10);
    assert_int_equal(s.repeated, 6);
    release(&x, &s);
    Words sets = {{"methods=prompt-lookup", "generation.verification=block"}, 2};
    const ExperimentChanges changes = {.sets = &sets};
    assert_true(experiment_parse(&x, BLOCKS, strlen(BLOCKS), "x.yaml", &changes, &e));
    assert_false(sweep_expand(&x, &s, &e));
    assert_non_null(strstr(e.text, "'verification: block' changes no point"));
    experiment_release(&x);
}

// --- conditions, limits, tables --------------------------------------------------------------------------

static void conditions_see_all(void **state) {
    (void)state;
    static const struct {
        const char *condition;
        int left;
    } cases[] = {
        {"W == 1", 12},
        {"model == b", 12},
        {"dataset == 'e'", 12},
        {"threads > 1", 12},
        {"[model == b, W == 1]", 6},
        {"model == b and W == 1", 18},
        {"preset != none", 24},
        {"prompt_pool == on", 12},
        {"temperature > 0", 24},
        {"not (W == 2 and dataset == d)", 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char file[512];
        Experiment x;
        Sweep s;
        snprintf(file, sizeof file,
                 "name: n\nmodels: [a, b]\ndatasets: [d, e]\nhardware: {threads: [1, 2]}\nmethods:\n"
                 "  - name: lookahead\n    matrix: {W: [1, 2], prompt_pool: [on, off]}\n"
                 "    exclude where: %s\n",
                 cases[i].condition);
        expand(file, &x, &s);
        int want = cases[i].left * 32 / 24; // of 24ths, to be read easily
        if (s.count != want || s.excluded != 32 - want)
            fail_msg("'%s': wanted %d points, got %d and %d excluded", cases[i].condition, want, s.count,
                     s.excluded);
        release(&x, &s);
    }
}

static void refuse(const char *methods, const char *want) {
    Text file = {0};
    Experiment x;
    Sweep s;
    Error e = {0};
    text_printf(&file, "name: n\nmodels: [a, b]\ndatasets: [d, e]\nmethods:\n%s", methods);
    if (!experiment_parse(&x, text_get(&file), file.length, "x.yaml", NULL, &e)) fail_msg("%s", e.text);
    if (sweep_expand(&x, &s, &e)) fail_msg("'%s' was taken", methods);
    if (strcmp(e.text, want) != 0) fail_msg("'%s': wanted '%s', got '%s'", methods, want, e.text);
    assert_true(s.count == 0 && s.points == NULL);
    release(&x, &s);
    text_release(&file);
}

static void refusals(void **state) {
    (void)state;
    refuse("  - name: lookahead\n    exclude where: Wx > 3\n",
           "x.yaml:6:20: exclude where: there is no parameter 'Wx'; did you mean 'W'?");
    refuse("  - name: lookahead\n    exclude where: [W == 0, mode == x]\n",
           "x.yaml:6:29: exclude where: 'mode' is never 'x'");
    refuse("  - name: lookahead\n    exclude where: gamma == 0\n",
           "x.yaml:6:20: exclude where: there is no parameter 'gamma'");
    refuse("  - {name: lookahead, exclude where: W == 15}\n",
           "x.yaml:1:1: no points are left: 'exclude where' takes all 4 away");
    refuse("  - autoregressive\n  - {name: lookahead, matrix: {W: 1..256, G: 0..255}}\n",
           "x.yaml:6:5: up to this method there are 262148 points, 32768 at most: take values away or split "
           "the experiment");
    refuse("  - {name: lookahead, matrix: {W: 1..256, G: 0..255, N: 2..32, pool_cap: 0..1000, top_k: 0..999, "
           "threads: 0..999, max_tokens: 1..1000, seed: 1..1000, ranks: 1..4}}\n",
           "x.yaml:5:5: up to this method there are 3.253836186e+22 points, 32768 at most: take values away "
           "or split the experiment");
}

static void fits_to_the_brim(void **state) {
    (void)state;
    Experiment x;
    Sweep s;
    expand("name: n\nmodels: m\ndatasets: d\nmethods: {name: lookahead, matrix: {W: 1..128, G: 0..255}}\n",
           &x, &s);
    assert_int_equal(s.count, SWEEP_MAX);
    release(&x, &s);
}

// A condition and an axis name a parameter by its name alone.
static void names_mean_one_thing(void **state) {
    (void)state;
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < table[i]->param_count; k++) {
            const char *name = table[i]->params[k].name;
            assert_string_not_equal(name, "model");
            assert_string_not_equal(name, "dataset");
            if (settings_find(name))
                fail_msg("'%s' is a setting and a parameter of '%s'", name, table[i]->name);
        }
}

// Every point's text opens as the method that it names.
static void decoders_parse(void **state) {
    (void)state;
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        char file[256], values[1 << 14];
        Experiment x;
        Sweep s;
        Error e = {0};
        snprintf(file, sizeof file, "name: n\nmodels: m\ndatasets: d\nmethods: %s\n", table[i]->name);
        expand(file, &x, &s);
        const char *colon = strchr(s.points->decoder, ':');
        assert_true(table[i]->param_size <= sizeof values);
        assert_memory_equal(s.points->decoder, table[i]->name, strlen(table[i]->name));
        if (!args_parse(table[i]->params, table[i]->param_count, values, colon ? colon + 1 : "", &e))
            fail_msg("%s: %s", s.points->decoder, e.text);
        release(&x, &s);
    }
}

// A method as on the command line is the point that its axes make, under the name as written.
static void as_on_the_command_line(void **state) {
    (void)state;
    static const char *const FORMS[][2] = {
        {"mix:ngrammys(k=5)+lookahead(W=5,G=5),rows=32",
         "{name: mix, matrix: {of: \"ngrammys(k=5)+lookahead(W=5,G=5)\", rows: 32}}"},
        {"lookahead:W=5,N=3", "{name: lookahead, matrix: {W: 5, N: 3}}"},
        {"jacobi", "{name: jacobi}"},
        {"{name: \"lookahead:W=5\", label: five}", "{name: lookahead, matrix: {W: 5}}"},
    };
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        Text file = {0};
        Experiment x;
        Sweep s;
        text_printf(&file, "name: n\nmodels: [a]\ndatasets: [d]\nmethods:\n  - %s\n  - %s\n", FORMS[i][0],
                    FORMS[i][1]);
        expand(text_get(&file), &x, &s);
        if (s.count != 1 || s.repeated != 1)
            fail_msg("'%s' and '%s': wanted one point, got %d", FORMS[i][0], FORMS[i][1], s.count);
        PointName name;
        const char *want = FORMS[i][0][0] == '{' ? "five" : FORMS[i][0];
        point_name(&x, s.points, &name);
        if (strcmp(text_get(&name.label), want) != 0)
            fail_msg("wanted the label '%s', got '%s'", want, text_get(&name.label));
        point_name_release(&name);
        release(&x, &s);
        text_release(&file);
    }
}

// A file is named without its folders, unless there are several.
static void files_by_their_names(void **state) {
    (void)state;
    static const char *const FORMS[][2] = {
        {"{name: rest, matrix: {datastore: a/b/x.store, nodes: 16}}", "rest datastore=x.store nodes=16"},
        {"{name: rest, matrix: {datastore: [a/x.store, b/x.store]}}", "rest datastore=a/x.store"},
    };
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        Text file = {0};
        Experiment x;
        Sweep s;
        PointName name;
        text_printf(&file, "name: n\nmodels: [a]\ndatasets: [d]\nmethods: [%s]\n", FORMS[i][0]);
        expand(text_get(&file), &x, &s);
        point_name(&x, s.points, &name);
        if (strcmp(text_get(&name.label), FORMS[i][1]) != 0)
            fail_msg("%s: wanted the label '%s', got '%s'", FORMS[i][0], FORMS[i][1], text_get(&name.label));
        point_name_release(&name);
        release(&x, &s);
        text_release(&file);
    }
}

// The example of configs/README.md is one.
static void readme_is_true(void **state) {
    (void)state;
    char *text, path[4096];
    size_t n;
    const char *root = getenv("OUTPACE_ROOT");
    Experiment x;
    Sweep s;
    Error e = {0};
    snprintf(path, sizeof path, "%s/configs/README.md", root ? root : ".");
    if (!file_read(path, 1 << 20, &text, &n, &e)) fail_msg("%s", e.text);
    char *begin = strstr(text, "```yaml\n") + 8, *end = strstr(begin, "```");
    assert_non_null(end);
    *end = 0;
    expand(begin, &x, &s);
    // Datasets, compute; seeds of two, W, N, pool_cap and zip of the other, whose zip replaces the seeds.
    assert_int_equal(s.count + s.excluded, 3 * 2 * (3 + 3 + 3 * 3 * 4 * 2));
    assert_int_equal(s.excluded, 2 * (3 * 4) * (1 + 1 + 0)); // W = 15: G = 5 but where the dataset is mix
    release(&x, &s);
    mem_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_experiments),
        cmocka_unit_test(hashes_differ),
        cmocka_unit_test(same_again),
        cmocka_unit_test(what_a_hash_is_of),
        cmocka_unit_test(blocks_where_they_matter),
        cmocka_unit_test(describes),
        cmocka_unit_test(conditions_see_all),
        cmocka_unit_test(refusals),
        cmocka_unit_test(fits_to_the_brim),
        cmocka_unit_test(names_mean_one_thing),
        cmocka_unit_test(decoders_parse),
        cmocka_unit_test(as_on_the_command_line),
        cmocka_unit_test(files_by_their_names),
        cmocka_unit_test(readme_is_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
