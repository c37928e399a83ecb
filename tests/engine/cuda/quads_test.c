// Attention by itself, on random queries, keys and values: a query has the same bits in a step of any size,
// whether its keys are committed or in the step, in a chain, in a tree or among other sequences, with and
// without windows, and however many launches there are. And it's near the sum in double.
#include "tests/support/check.h"
#include "tests/simt/settings.h"

#include "engine/base/memory.h"
#include "engine/cuda/sequence.h"

#include <math.h>
#include <string.h>

enum { MAIN = 2700, NODES = 160, NUMBERS = MAIN + NODES, LOOKED_AT = 6, SEQUENCES = 3 };

// q, k and v are found by number: a position on the common path, or MAIN + a node beside it.
typedef struct World {
    Cuda c;
    Attention a;
    Cache cache;
    uint16_t *q, *k, *v;       // (NUMBERS, heads, dim), (NUMBERS, kv heads, dim)
    uint16_t *host_k, *host_v; // (sequences, kv heads, slots, dim), (kv heads, nodes, dim) behind
    uint16_t *host_q, *out;    // (rows, heads, dim)
    Step *step;                // on the device, as all of `a`
    RowList *block;
    size_t slots, area; // elements of the caches, of the step area
} World;

static void *on_device(size_t bytes) {
    void *p;
    assert_int_equal(gpu_take(&p, bytes), 0);
    return p;
}

// Numbers in [-spread, spread].
static uint16_t *random_numbers(const World *w, int heads, float spread, Random *r) {
    size_t n = (size_t)NUMBERS * (size_t)(heads * w->c.heads.head_dim);
    uint16_t *to = mem_new(n, sizeof *to);
    for (size_t i = 0; i < n; i++) {
        float x = spread * (float)(test_between(r, -1000, 1000) * 0.001);
        to[i] = w->c.heads.dtype == DTYPE_F16 ? f32_to_f16(x) : f32_to_bf16(x);
    }
    return to;
}

static void open_world(World *w, Heads h, int window, bool ring, float spread, size_t parts_floats) {
    Random r = test_random(310);
    h.pitch = h.head_dim;
    *w = (World){.c = {.sequences = SEQUENCES, .max_nodes = NODES, .context = MAIN, .heads = h}};
    Cuda *c = &w->c;
    c->slots = ring ? window + 2 * NODES : MAIN;
    w->cache = (Cache){.window = ring ? window : 0, .ring = ring, .capacity = c->slots};
    c->cache = w->cache;
    w->q = random_numbers(w, h.heads, spread, &r);
    assert_int_equal(gpu_use(0), 0);
    assert_int_equal(gpu_stream_open(&c->stream), 0);
    w->k = random_numbers(w, h.kv_heads, 2, &r);
    w->v = random_numbers(w, h.kv_heads, 1, &r);
    size_t head = (size_t)(h.kv_heads * h.head_dim), rows = (size_t)(SEQUENCES * NODES),
           row = (size_t)(h.heads * h.head_dim);
    w->slots = (size_t)c->slots * head;
    w->area = rows * head;
    w->host_k = mem_new(SEQUENCES * w->slots + w->area, 2);
    w->host_v = mem_new(SEQUENCES * w->slots + w->area, 2);
    w->host_q = mem_new(rows * row, 2);
    w->out = mem_new(rows * row, 2);
    w->block = mem_new(1, cuda_step_size(c));
    void *block = on_device(cuda_step_size(c));
    size_t counters = 2 * (size_t)cuda_tiles_limit(c) * (size_t)h.heads * sizeof(unsigned);
    w->a = (Attention){
        .heads = h,
        .q = on_device(rows * row * 2),
        .cache_k = on_device((SEQUENCES * w->slots + w->area) * 2),
        .cache_v = on_device((SEQUENCES * w->slots + w->area) * 2),
        .slots = c->slots,
        .area = (int)rows,
        .window = window,
        .ring = ring,
        .cache_bytes = w->slots * 2,
        .to = {.data = on_device(rows * row * 2), .pitch = (int)row, .form = FORM_ROWS, .dtype = h.dtype},
        .parts = on_device(parts_floats * sizeof(float)),
        .parts_floats = parts_floats,
        .done = on_device(counters),
        .step = cuda_step_in(c, block)};
    w->a.step_k = (const uint16_t *)w->a.cache_k + SEQUENCES * w->slots;
    w->a.step_v = (const uint16_t *)w->a.cache_v + SEQUENCES * w->slots;
    attention_scale(&(Shape){.head_dim = h.head_dim}, &w->a);
    assert_int_equal(gpu_fill(w->a.done, 0, counters, c->stream), 0);
    w->step = block;
}

static void close_world(World *w) {
    gpu_stream_wait(w->c.stream);
    void *device[] = {w->step, w->a.parts, w->a.done, w->a.to.data};
    const void *given[] = {w->a.q, w->a.cache_k, w->a.cache_v};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++) gpu_give(device[i]);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        void *p;
        memcpy(&p, &given[i], sizeof p);
        gpu_give(p);
    }
    gpu_stream_close(w->c.stream);
    void *host[] = {w->q, w->k, w->v, w->host_k, w->host_v, w->host_q, w->out, w->block};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) mem_free(host[i]);
}

// A sequence's step: `path`: the numbers of its committed positions, `node`: of its nodes.
typedef struct Part {
    Tree tree;
    int path[MAIN], node[NODES];
} Part;

static void place(World *w, size_t at, int stride, int i, int number) {
    const Heads *h = &w->c.heads;
    size_t dim = (size_t)h->head_dim;
    for (int kv = 0; kv < h->kv_heads; kv++) {
        size_t to = at + (size_t)(kv * stride + i) * dim, from = (size_t)(number * h->kv_heads + kv) * dim;
        memcpy(w->host_k + to, w->k + from, dim * 2);
        memcpy(w->host_v + to, w->v + from, dim * 2);
    }
}

// Runs nodes [first, ..) of each part. Slots and nodes that none should see aren't numbers.
static void run(World *w, const Part *parts, int count, int first) {
    const Heads *h = &w->c.heads;
    Sequence sequence[SEQUENCES];
    SequenceRun runs[SEQUENCES];
    StepRun steps[SEQUENCES];
    int rows = 0, spans = 1;
    size_t all = SEQUENCES * w->slots + w->area, row = (size_t)(h->heads * h->head_dim);
    memset(w->host_k, 0xff, all * 2);
    memset(w->host_v, 0xff, all * 2);
    for (int s = 0; s < count; s++) {
        const Tree *t = &parts[s].tree;
        sequence[s] = (Sequence){.cards = &w->c, .number = s};
        steps[s] = (StepRun){.tree = t, .cache = &w->cache, .first = first, .last = t->count};
        runs[s] = (SequenceRun){.sequence = &sequence[s], .run = &steps[s]};
        for (int p = 0; p < t->context; p++)
            place(w, (size_t)s * w->slots, w->c.slots, cache_slot(&w->cache, p), parts[s].path[p]);
        for (int i = 0; i < t->count; i++) {
            int position = tree_position(t, i);
            place(w, SEQUENCES * w->slots, w->a.area, cuda_node(&sequence[s], i), parts[s].node[i]);
            if (i < first) continue;
            memcpy(w->host_q + (size_t)rows++ * row, w->q + (size_t)parts[s].node[i] * row, row * 2);
            if (position / SPAN + 1 > spans) spans = position / SPAN + 1;
        }
    }
    size_t bytes = cuda_write_step(&w->c, runs, count, rows, w->block);
    const Step *step = cuda_step_in(&w->c, w->block);
    StepSizes sizes = {step->tiles, spans, step->quads, step->spans, count > 1};
    void *k, *v, *q;
    memcpy(&k, &w->a.cache_k, sizeof k);
    memcpy(&v, &w->a.cache_v, sizeof v);
    memcpy(&q, &w->a.q, sizeof q);
    gpu_copy(w->step, w->block, bytes, w->c.stream);
    gpu_copy(k, w->host_k, all * 2, w->c.stream);
    gpu_copy(v, w->host_v, all * 2, w->c.stream);
    gpu_copy(q, w->host_q, (size_t)rows * row * 2, w->c.stream);
    gpu_attention(&w->a, &sizes, w->c.stream);
    assert_int_equal(gpu_launched(), 0);
    gpu_copy(w->out, w->a.to.data, (size_t)rows * row * 2, w->c.stream);
    assert_int_equal(gpu_stream_wait(w->c.stream), 0);
}

static Part *part_new(int context) {
    Part *p = mem_new(1, sizeof *p);
    tree_init(&p->tree, NODES, NODES);
    tree_clear(&p->tree, context, MAIN, false, LAYOUT_TREE);
    for (int i = 0; i < MAIN; i++) p->path[i] = i;
    return p;
}
static void part_free(Part *p) {
    tree_release(&p->tree);
    mem_free(p);
}

static void add_chain(Part *p, int rows) {
    for (int i = 0, last = 0; i < rows; i++) {
        last = i ? tree_probe(&p->tree, last, i, false) : tree_root(&p->tree, 0);
        p->node[last] = p->tree.context + i;
    }
}

// Runs one node alone, with everything before it committed.
static void run_alone(World *w, const Part *p, int node) {
    int path[NODES], length = tree_path(&p->tree, node, path), context = p->tree.context;
    Part *alone = part_new(context + length - 1);
    for (int i = 0; i < context; i++) alone->path[i] = p->path[i];
    for (int i = 0; i < length - 1; i++) alone->path[context + i] = p->node[path[i]];
    tree_root(&alone->tree, 0);
    alone->node[0] = p->node[node];
    run(w, alone, 1, 0);
    part_free(alone);
}

// Two numbers of the same bits, or neither is one: then its sign and bits aren't defined.
static bool same(const World *w, uint16_t x, uint16_t y) {
    const unsigned infinity = w->c.heads.dtype == DTYPE_F16 ? 0x7c00 : 0x7f80;
    return x == y || ((x & 0x7fffu) > infinity && (y & 0x7fffu) > infinity);
}

static void compare(World *w, const Part *p, int node, const uint16_t *row, const char *what) {
    run_alone(w, p, node);
    for (int i = 0; i < w->c.heads.heads * w->c.heads.head_dim; i++)
        if (!same(w, row[i], w->out[i]))
            fail_msg("%s: context %d, node %d of %d, number %d: %#x, and alone %#x", what, p->tree.context,
                     node, p->tree.count, i, row[i], w->out[i]);
}

// Some nodes of a part, whose rows begin at `row` of the run, against each alone.
static void look(World *w, const Part *p, int row, int first, Random *r, const char *what) {
    size_t size = (size_t)(w->c.heads.heads * w->c.heads.head_dim);
    int count = p->tree.count - first, looked = count < LOOKED_AT ? count : LOOKED_AT;
    uint16_t *rows = mem_new((size_t)count * size, 2);
    memcpy(rows, w->out + (size_t)row * size, (size_t)count * size * 2);
    for (int i = 0; i < looked; i++) {
        int at = i == 0 ? count - 1 : i == 1 ? 0 : test_between(r, 0, count - 1);
        compare(w, p, first + at, rows + (size_t)at * size, what);
    }
    mem_free(rows);
}

static void check_chain(World *w, int context, int rows, const char *what) {
    Random r = test_random((uint64_t)(320 + context + rows));
    Part *p = part_new(context);
    add_chain(p, rows);
    run(w, p, 1, 0);
    look(w, p, 0, 0, &r, what);
    part_free(p);
}

static const size_t ROOM = (size_t)4 << 20;

static void chains(void **state) {
    static const int rows[] = {17, 1, 16, 64, 65, 121},
                     contexts[] = {0, 127, 513, 1025, 1, 128, 129, 511, 512, 1023, 1024, 2047, 2500};
    (void)state;
    World w;
    open_world(&w, (Heads){.heads = 1, .kv_heads = 1, .head_dim = 64, .dtype = DTYPE_BF16}, 0, false, 1,
               ROOM);
    for (int c = 0; c < test_some(4, sizeof contexts / sizeof *contexts); c++)
        for (int i = 0; i < test_some(6, sizeof rows / sizeof *rows); i += test_some(5, 1))
            check_chain(&w, contexts[c], rows[i], "chain");
    close_world(&w);
}

// Heads of a group together, padded sizes, both formats, and more heads of a key head than a tile's queries.
static void heads(void **state) {
    static const Heads kinds[] = {{.heads = 4, .kv_heads = 2, .head_dim = 128, .dtype = DTYPE_F16},
                                  {.heads = 8, .kv_heads = 1, .head_dim = 96, .dtype = DTYPE_BF16},
                                  {.heads = 20, .kv_heads = 1, .head_dim = 16, .dtype = DTYPE_BF16},
                                  {.heads = 3, .kv_heads = 1, .head_dim = 128, .dtype = DTYPE_BF16},
                                  {.heads = 2, .kv_heads = 1, .head_dim = 256, .dtype = DTYPE_F16}};
    (void)state;
    for (int i = 0; i < test_some(4, 5); i++) {
        World w;
        simt_settings.order = (SimtOrder)(i % SIMT_ORDERS);
        simt_settings.early = i == 0;
        open_world(&w, kinds[i], 0, false, 1, ROOM);
        check_chain(&w, 530, 30, "heads");
        close_world(&w);
    }
    simt_settings.early = false;
}

static void windows(void **state) {
    (void)state;
    for (int ring = 0; ring < 2; ring++)
        for (int window = 20; window <= 700; window += 340) {
            World w;
            open_world(&w, (Heads){.heads = 2, .kv_heads = 1, .head_dim = 16, .dtype = DTYPE_BF16}, window,
                       ring, 1, ROOM);
            check_chain(&w, 900, 70, ring ? "ring" : "window");
            check_chain(&w, 100, 121, ring ? "ring" : "window");
            close_world(&w);
        }
}

// Room for the parts of three tiles, less than a quad; and for a quad at a time.
static void rooms(void **state) {
    (void)state;
    for (int tiles = 3; tiles <= 5; tiles += 2) {
        World w;
        Heads h = {.heads = 1, .kv_heads = 1, .head_dim = 16, .dtype = DTYPE_BF16};
        open_world(&w, h, 0, false, 1, (size_t)tiles * gpu_attention_part(&h, 3));
        check_chain(&w, 1030, 121, "room");
        close_world(&w);
    }
}

static void grow(Part *p, int nodes, Random *r) {
    Tree *t = &p->tree;
    p->node[tree_root(t, 0)] = MAIN;
    for (int i = 1; i < nodes; i++) {
        int node = tree_probe(t, test_between(r, i > 12 ? i - 12 : 0, i - 1), i, false);
        p->node[node] = MAIN + node;
    }
}

// Trees, also when some of their nodes have run before; and several sequences, of one and of more tiles.
static void trees(void **state) {
    (void)state;
    static const int contexts[] = {100, 600, 1100};
    Random r = test_random(340);
    World w;
    open_world(&w, (Heads){.heads = 2, .kv_heads = 1, .head_dim = 64, .dtype = DTYPE_BF16}, 0, false, 1,
               ROOM);
    for (int i = 0; i < 3; i++) {
        Part *p = part_new(contexts[i]);
        grow(p, 70, &r);
        run(&w, p, 1, i * 7);
        look(&w, p, 0, i * 7, &r, "tree");
        part_free(p);
    }
    Part *all = mem_new(SEQUENCES, sizeof *all), *p[] = {part_new(300), part_new(650), part_new(20)};
    grow(p[0], 40, &r);
    add_chain(p[1], 33);
    add_chain(p[2], 3);
    for (int s = 0; s < SEQUENCES; s++) all[s] = *p[s];
    run(&w, all, SEQUENCES, 0);
    size_t size = (size_t)(w.c.heads.heads * w.c.heads.head_dim);
    uint16_t *rows = mem_new(76 * size, 2);
    memcpy(rows, w.out, 76 * size * 2);
    for (int s = 0, row = 0; s < SEQUENCES; row += p[s++]->tree.count)
        for (int node = 0; node < p[s]->tree.count; node += 9)
            compare(&w, p[s], node, rows + (size_t)(row + node) * size, "batch");
    mem_free(rows);
    mem_free(all);
    for (int s = 0; s < SEQUENCES; s++) part_free(p[s]);
    close_world(&w);
}

// Scores that differ by far more than a float's exponents, and keys that overflow.
static void extremes(void **state) {
    (void)state;
    World w;
    Heads h = {.heads = 1, .kv_heads = 1, .head_dim = 16, .dtype = DTYPE_BF16};
    open_world(&w, h, 0, false, 300, ROOM);
    check_chain(&w, 600, 40, "large scores");
    for (int d = 0; d < h.head_dim; d++) w.k[200 * h.head_dim + d] = 0x7f00; // 1.7e38
    check_chain(&w, 600, 40, "infinite scores");
    close_world(&w);
    open_world(&w, h, 0, false, 1, ROOM);
    for (int i = 0; i < MAIN * h.head_dim; i++) w.k[i] = i / h.head_dim % 128 ? 0xff7f : 0x7f7f;
    for (int i = 0; i < NUMBERS * h.head_dim; i++) w.q[i] = 0x7f7f;
    check_chain(&w, 600, 20, "nothing but infinities");
    close_world(&w);
}

static float number(const World *w, uint16_t x) {
    return w->c.heads.dtype == DTYPE_F16 ? f16_to_f32(x) : bf16_to_f32(x);
}

static void check_sum(double cap) {
    enum { CONTEXT = 1100, ROWS = 20, DIM = 64 };
    World w;
    open_world(&w, (Heads){.heads = 1, .kv_heads = 1, .head_dim = DIM, .dtype = DTYPE_F16}, 0, false, 4,
               ROOM);
    attention_scale(&(Shape){.head_dim = DIM, .score_cap = (float)cap}, &w.a);
    Part *p = part_new(CONTEXT);
    add_chain(p, ROWS);
    run(&w, p, 1, 0);
    double worst = 0;
    for (int row = 0; row < ROWS; row++) {
        double x[DIM] = {0}, all = 0;
        for (int at = 0; at <= CONTEXT + row; at++) {
            double score = 0;
            for (int d = 0; d < DIM; d++)
                score += (double)number(&w, w.q[(CONTEXT + row) * DIM + d]) *
                         (double)number(&w, w.k[at * DIM + d]);
            score /= sqrt(DIM);
            double weight = exp(cap > 0 ? cap * tanh(score / cap) : score);
            all += weight;
            for (int d = 0; d < DIM; d++) x[d] += weight * (double)number(&w, w.v[at * DIM + d]);
        }
        for (int d = 0; d < DIM; d++)
            worst = test_worse(worst, fabs(x[d] / all - (double)number(&w, w.out[row * DIM + d])));
    }
    print_message("cap %g: worst error %.2e\n", cap, worst);
    assert_true(worst < 2e-3);
    part_free(p);
    close_world(&w);
    assert_int_equal(simt_live_bytes(), 0);
}

static void near_the_sum_in_double(void **state) {
    (void)state;
    check_sum(0);
    check_sum(3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(chains),
                                       cmocka_unit_test(heads),
                                       cmocka_unit_test(windows),
                                       cmocka_unit_test(rooms),
                                       cmocka_unit_test(trees),
                                       cmocka_unit_test(extremes),
                                       cmocka_unit_test(near_the_sum_in_double)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
