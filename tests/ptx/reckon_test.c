// The reckoner against counts that are known by hand: bytes, mma and floors of a small model's steps, with a
// tile of each product run instead of all; and times of launches whose counters are made up.
#include "tests/ptx/reckoned.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static const Shape SMALL = {
    .input = INPUT_TOKENS,
    .layers = 1,
    .width = 512,
    .heads = 8,
    .kv_heads = 4,
    .head_dim = 64,
    .mlp_width = 1024,
    .vocab = 1024,
    .real_vocab = 1024,
    .context = 1000,
    .norm_epsilon = 1e-5f,
    .rope = {.kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .pairs = 32, .attention_factor = 1}};
enum { QKV = 1024 * 512, O = 512 * 512, IN = 2048 * 512, DOWN = 512 * 1024, HEAD = 1024 * 512 }; // weights

static const Card *card(const char *name) {
    for (int i = 0; i < CARDS_COUNT; i++)
        if (strcmp(CARDS[i].name, name) == 0) return &CARDS[i];
    fail_msg("no card %s", name);
    return NULL;
}

static const Counted *launch(const CountedStep *s, const char *name) {
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->launch[i].name, name) == 0) return &s->launch[i];
    fail_msg("no launch of %s", name);
    return NULL;
}

static void near(const char *what, double got, double want, double within) {
    if (!(fabs(got - want) <= within * want)) fail_msg("%s: got %g, wanted %g", what, got, want);
}

static void check_product(const CountedStep *s, const ReckonedStep *r, const char *name, int weights) {
    const Counted *l = launch(s, name);
    const ReckonedLaunch *t = &r->launch[l - s->launch];
    if (l->c.blocks == 0 || l->blocks % l->c.blocks)
        fail_msg("%s: %llu blocks ran", name, (unsigned long long)l->c.blocks);
    near(name, t->bytes, 2.0 * weights, 1e-9);
    near(name, t->mmas, (double)weights / 256 * ((s->rows + 7) / 8), 1e-9); // of 16 weights by 16, and 8 rows
}

static void counts(void **state) {
    (void)state;
    const Card *h100 = card("h100");
    Hardware sheet;
    Error e = {0};
    CountedStep near_step, far_step;
    ReckonedStep one, far_one;
    Counting *c = counting_open(&SMALL, h100, &e);
    if (!c || !card_sheet(h100, &sheet, &e) || !counting_step(c, 8, TREE_CHAIN, 96, NULL, &near_step, &e) ||
        !counting_step(c, 8, TREE_CHAIN, 320, &near_step, &far_step, &e))
        fail_msg("%s", e.text);
    counting_close(c);
    reckon_step(&near_step, h100, &sheet, &one);
    reckon_step(&far_step, h100, &sheet, &far_one);
    check_product(&near_step, &one, "q k v", QKV);
    check_product(&near_step, &one, "o", O);
    check_product(&near_step, &one, "gate up", IN);
    check_product(&near_step, &one, "down", DOWN);
    check_product(&near_step, &one, "head", HEAD);
    // Keys and values of four heads, once, whatever the number of queries; beside them the step's own lists.
    near("attention at 96", one.launch[launch(&near_step, "attention") - near_step.launch].bytes,
         2 * 2 * 4 * 64 * 96, 0.1);
    near("attention at 320", far_one.launch[launch(&far_step, "attention") - far_step.launch].bytes,
         2 * 2 * 4 * 64 * 320, 0.1);
    double least = 2.0 * (QKV + O + IN + DOWN) / sheet.bytes_per_s;
    if (!(one.layer_floor >= least && one.layer_floor <= 1.1 * least && one.layer > one.layer_floor &&
          one.layer_worst > one.layer && far_one.layer >= one.layer))
        fail_msg("a layer: floor %g, reckoned %g, at worst %g; bytes alone %g", one.layer_floor, one.layer,
                 one.layer_worst, least);
}

// One launch of 132 blocks on 132 processors, a number at a time.
static void times(void **state) {
    (void)state;
    Card own = *card("h100");
    Hardware sheet = {.bytes_per_s = 1e12, .operations_per_s = 132e12, .processors = 132};
    CountedStep s = {.count = 1};
    ReckonedStep r;
    Counted *l = &s.launch[0];
    own.clock_hz = 1e9, own.mma_share = 0.5, own.l2_bytes_s = 1e13, own.dependent_s = 1e-6,
    own.launch_s = 2e-6;
    *l = (Counted){.blocks = 132, .threads = 128, .cluster = 1, .shared = 100 << 10, .registers = 32};
    l->c = (Counters){.blocks = 132, .mmas = 132 * 1000, .path = 5000, .tail = 3000};
    reckon_step(&s, &own, &sheet, &r);
    near("mma", r.launch[0].by[BY_MMA], 1000 * 4096 / (0.5 * 1e12), 1e-9);
    near("tail", r.launch[0].tail, 3e-6, 1e-9);
    near("once", r.once, 2e-6 + 1000 * 4096 / 0.5e12 + 3e-6, 1e-9);
    near("at worst", r.once_worst, 2e-6 + 1000 * 4096 / 0.5e12 + 1.4 * 3e-6, 1e-9);
    assert_int_equal(r.launch[0].held, 2); // by shared memory
    l->blocks = 4 * 132; // four a processor, two at a time: twice the path, four times the mma
    l->c.mmas = 132, l->c.path = 20000, l->c.tail = 0;
    reckon_step(&s, &own, &sheet, &r);
    near("waves", r.launch[0].by[BY_PATH], 2 * 20e-6, 1e-9);
    near("four blocks", r.launch[0].by[BY_MMA], 4 * 4096 / (0.5 * 1e12), 1e-9);
    l->registers = 255; // 128 threads of 256: two a processor; of 1,024 threads one at most
    l->threads = 256, l->shared = 0;
    reckon_step(&s, &own, &sheet, &r);
    assert_int_equal(r.launch[0].held, 1);
}

// A product behind a short kernel of a layer: what it fetched early is there.
static void hidden(void **state) {
    (void)state;
    Card own = *card("h100");
    Hardware sheet = {.bytes_per_s = 1e12, .operations_per_s = 1e15, .processors = 132};
    CountedStep s = {.count = 2};
    ReckonedStep r;
    own.clock_hz = 1e9, own.dependent_s = 1e-6;
    for (int i = 0; i < 2; i++)
        s.launch[i] = (Counted){
            .layer = true, .early = true, .blocks = 100, .threads = 128, .cluster = 1, .registers = 32};
    s.launch[0].c = (Counters){.blocks = 100, .path = 3000};
    s.launch[1].c = (Counters){.blocks = 100, .settled_sectors = 1000000, .early_sectors = 100000};
    reckon_step(&s, &own, &sheet, &r); // 3.2 MB of 32 within 1 + 3 us
    near("hidden", r.launch[1].hidden, 3.2e-6, 1e-9);
    near("layer", r.layer, 1e-6 + 3e-6 + 1e-6 + 32e-6 - 3.2e-6, 1e-9);
    s.launch[1].c.early_sectors = 1000000; // more than there is time for
    reckon_step(&s, &own, &sheet, &r);
    near("no longer than the gap", r.launch[1].hidden, 4e-6, 1e-9);
    s.launch[1].early = false;
    reckon_step(&s, &own, &sheet, &r);
    assert_true(r.launch[1].hidden == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts), cmocka_unit_test(times),
                                       cmocka_unit_test(hidden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
