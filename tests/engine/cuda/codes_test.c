// Products with coded weights: bit for bit the products with the values of tensor_decode_row, by every
// kernel. Then whole models of codes and of their values, whose logits are the same bits.
#include "tests/support/check.h"
#include "tests/support/random_model.h"
#include "tests/simt/settings.h"

#include "engine/base/memory.h"
#include "engine/core/session.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/cuda/kernels/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUTS = 150, ROWS = 200, EXPERTS = 3 };

typedef struct {
    void *stream;
    Activations x;
    float *y, *parts;
    RowList *rows;
    Slice *slices;
    GpuFacts card;
} World;

static void *take(size_t bytes) {
    void *block;
    assert_int_equal(gpu_take(&block, bytes), 0);
    return block;
}

static void world_open(World *w, int columns, Random *r) {
    int pitch = (columns + PACKED_K - 1) / PACKED_K * PACKED_K;
    uint16_t *x = mem_new(ROWS * (size_t)pitch, sizeof *x);
    *w = (World){.x = {.pitch = pitch, .form = FORM_PACKED, .dtype = DTYPE_BF16}};
    assert_int_equal(gpu_facts(0, &w->card), 0);
    assert_int_equal(gpu_stream_open(&w->stream), 0);
    w->x.data = take(ROWS * (size_t)pitch * sizeof *x);
    w->y = take(ROWS * OUTPUTS * sizeof(float));
    w->parts = take((size_t)PARTS_MAX * 2 * PANEL_ROWS * ((OUTPUTS + 15) / 16 * 16) * sizeof(float));
    w->rows = take(sizeof(RowList));
    w->slices = take(EXPERTS * sizeof(Slice));
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < columns; k++) // in blocks of 8x8
            x[(size_t)(row / 8 * (pitch / 8) + k / 8) * 64 + (size_t)(row % 8 * 8 + k % 8)] =
                f32_to_bf16(random_normal(r));
    gpu_copy(w->x.data, x, ROWS * (size_t)pitch * sizeof *x, w->stream);
    gpu_stream_wait(w->stream);
    mem_free(x);
}

static void world_close(World *w) {
    void *const all[] = {w->x.data, w->y, w->parts, w->rows, w->slices};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_give(all[i]);
    gpu_stream_close(w->stream);
}

static uint16_t any_half(Random *r) {
    static const uint16_t special[] = {0, 0x8000, 1, 0x83ff, 0x7bff};
    return random_below(r, 40) == 0 ? special[random_below(r, 5)] : f32_to_f16(0.05f * random_normal(r));
}

// Any codes; scales and lows of both signs, some of them 0, subnormal or as large as f16 has. Some have as
// many bits as their kind may.
static Tensor make_codes(const Codes *form, int columns, Random *r) {
    Tensor t = {.dtype = DTYPE_BF16, .rows = OUTPUTS, .columns = columns, .codes = *form};
    size_t bytes = OUTPUTS * tensor_row_bytes(&t), scales = OUTPUTS * tensor_row_scale_bytes(&t);
    unsigned char *codes = mem_new(bytes, 1), *scale = mem_new(scales, 1);
    const uint32_t most = form->group < GROUP_LEAST ? 64 : 256; // of 6 bits
    for (size_t i = 0; i < bytes; i++) codes[i] = (unsigned char)(random_below(r, most) - most / 2);
    for (size_t i = 0; i < scales;) {
        uint16_t half = any_half(r);
        float wide = f16_to_f32(half) * (float)(1 + random_below(r, form->bits == 4 ? 511 : 127));
        ScaleNest nest = {half, any_half(r), {0}, {0}};
        for (int k = 0; k < GROUPS_NESTED; k++)
            nest.factor[k] = (uint8_t)random_below(r, 64), nest.lows[k] = (uint8_t)random_below(r, 64);
        bool is_half = form->kind == SCALES_F16, is_nest = form->kind == SCALES_NESTED;
        size_t size = is_half ? sizeof half : is_nest ? sizeof nest : sizeof wide; // a low is like a scale
        memcpy(scale + i, is_half ? (void *)&half : is_nest ? (void *)&nest : &wide, size);
        i += size;
    }
    t.data = codes;
    t.codes.scales = scale;
    return t;
}

static void release_codes(Tensor *t) {
    mem_free((void *)(uintptr_t)t->data);
    mem_free((void *)(uintptr_t)t->codes.scales);
}

// Packs a tensor as codes, or as values, its last `split` rows before the others.
static void pack(World *w, const Tensor *t, const Matrix *to, int split) {
    size_t columns = (size_t)t->columns, row = to->bits ? tensor_row_bytes(t) : columns * sizeof(uint16_t);
    size_t groups = columns / (size_t)t->codes.group, rows = OUTPUTS;
    size_t scales = to->bits ? groups * matrix_scale_bytes(to) : 0;
    unsigned char *host = mem_new(rows * (row + scales), 1), *device = take(rows * (row + scales));
    for (size_t i = 0; i < rows && !to->bits; i++)
        tensor_decode_row(t, i, (uint16_t *)(void *)(host + i * row));
    if (to->bits) memcpy(host, t->data, rows * row);
    if (to->bits && !(to->full && to->bits == 4)) memcpy(host + rows * row, t->codes.scales, rows * scales);
    for (size_t i = 0; to->full && to->bits == 4 && i < rows * groups; i++) {
        ScalePair pair = tensor_scale(t, i / groups, i % groups);
        memcpy(host + rows * row + i * sizeof pair, &pair, sizeof pair);
    }
    gpu_copy(device, host, rows * (row + scales), w->stream);
    for (int first = OUTPUTS - split, count = split; count > 0; count = first, first = 0) {
        Pack p = {.from = device + (size_t)first * row,
                  .scales = device + rows * row + (size_t)first * scales,
                  .dtype = DTYPE_BF16,
                  .rows = count,
                  .columns = t->columns,
                  .first = first,
                  .stride = 1,
                  .head = 30,
                  .pairs = 10,
                  .to = *to};
        gpu_pack(&p, w->stream);
    }
    gpu_stream_wait(w->stream);
    gpu_give(device);
    mem_free(host);
}

static Matrix make_matrix(World *w, int columns, int splits, const Codes *codes, int experts) {
    Matrix m = {.rows = OUTPUTS,
                .columns = columns,
                .pitch = w->x.pitch,
                .dtype = DTYPE_BF16,
                .form = FORM_PACKED,
                .splits = splits,
                .experts = experts};
    if (codes) m.bits = codes->bits, m.group = codes->group, m.full = codes->kind != SCALES_F16;
    size_t bytes = gpu_matrix_bytes(&m) * (size_t)(experts ? experts : 1);
    m.data = take(bytes);
    gpu_fill(m.data, 0, bytes, w->stream);
    return m;
}

// y (ROWS, OUTPUTS), NaNs where nothing was written.
static void run(World *w, const Matrix *m, int count, int most, const GpuFacts *card, float *y) {
    RowList rows = {.count = count, .first = 0};
    gpu_copy(w->rows, &rows, sizeof rows, w->stream);
    gpu_fill(w->y, 0xff, ROWS * OUTPUTS * sizeof(float), w->stream);
    Product p = {.rows = w->rows,
                 .slices = m->experts ? w->slices : NULL,
                 .w = *m,
                 .x = w->x,
                 .put = {.kind = PUT_LOGITS, .out = w->y, .stride = OUTPUTS, .real = OUTPUTS},
                 .parts = w->parts,
                 .expert_bytes = gpu_matrix_bytes(m)};
    gpu_product(&p, most, card, w->stream);
    gpu_copy(y, w->y, ROWS * OUTPUTS * sizeof(float), w->stream);
    gpu_stream_wait(w->stream);
}

static void compare(World *w, const Matrix *codes, const Matrix *values, int count, int most,
                    const GpuFacts *card) {
    float *want = mem_new(ROWS * OUTPUTS, sizeof *want), *got = mem_new(ROWS * OUTPUTS, sizeof *got);
    run(w, values, count, most, card, want);
    run(w, codes, count, most, card, got);
    for (int i = 0; i < ROWS * OUTPUTS; i++)
        if (memcmp(&got[i], &want[i], sizeof *got))
            fail_msg("%d bits%s, groups of %d, %d parts, %d rows, cut %d: row %d, output %d is %.9g, "
                     "wanted %.9g",
                     codes->bits, codes->full ? ", full scales" : "", codes->group, codes->splits, count,
                     codes->cut[cut_size(most)], i / OUTPUTS, i % OUTPUTS, (double)got[i], (double)want[i]);
    assert_true(isfinite(want[0]));
    mem_free(want);
    mem_free(got);
}

// Columns that 64 doesn't divide, where the group allows it; parts that begin in the middle of a group; more
// stages than are on their way at once. Each wide kernel has a shape of its own, and so have those of
// product_wide.cu.
static const struct {
    Codes codes;
    int columns, splits;
} SHAPES[] = {{{4, 32, SCALES_F16, NULL}, 736, 1},    {{8, 32, SCALES_F16, NULL}, 736, 1},
              {{4, 64, SCALES_F16, NULL}, 576, 2},    {{8, 64, SCALES_F16, NULL}, 576, 2},
              {{4, 128, SCALES_F16, NULL}, 384, 4},   {{8, 128, SCALES_F16, NULL}, 384, 4},
              {{4, 32, SCALES_PAIRS, NULL}, 736, 1},  {{8, 16, SCALES_F32, NULL}, 720, 1},
              {{4, 128, SCALES_PAIRS, NULL}, 384, 4}, {{8, 16, SCALES_F32, NULL}, 400, 2},
              {{4, 32, SCALES_NESTED, NULL}, 512, 2}, {{4, 64, SCALES_F32, NULL}, 576, 2}};
static const struct { int count, most; } SIZES[] = {{7, 8}, {16, 16}, {17, 32}, {40, 64}, {73, 128}};
static const struct {
    int count, most;
} WIDE[] = {{40, 64}, {73, 128}, {11, 16}, {200, 256}, {31, 32}, {1, 8}, {121, 128}};

static void every_kernel(void **state) {
    (void)state;
    Random r = test_random(97);
    simt_settings.early = true; // what is read too soon ends the program
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        const Codes *form = &SHAPES[i].codes;
        int columns = SHAPES[i].columns, splits = SHAPES[i].splits;
        World w;
        Tensor t = make_codes(form, columns, &r);
        world_open(&w, columns, &r);
        GpuFacts busy = w.card; // every tile shares its processor with another
        busy.multiprocessors = 1;
        Matrix values = make_matrix(&w, columns, splits, NULL, 0);
        Matrix codes = make_matrix(&w, columns, splits, form, 0);
        assert_true(gpu_matrix_bytes(&codes) * (codes.full ? 2 : 3) <
                    gpu_matrix_bytes(&values) * (size_t)(form->bits == 8 ? 2 : 1));
        pack(&w, &t, &values, OUTPUTS);
        pack(&w, &t, &codes, 53);
        for (size_t k = 0; k < sizeof SIZES / sizeof *SIZES; k++) {
            if (k > 1 && k - 2 != (codes.full ? i % 3 : i / 2)) continue;
            simt_settings.order = (SimtOrder)(k % SIMT_ORDERS);
            compare(&w, &codes, &values, SIZES[k].count, SIZES[k].most, (i + k) % 2 ? &busy : &w.card);
        }
        GpuFacts differs = w.card; // products don't use wgmma
        differs.wgmma_differs = true;
        compare(&w, &codes, &values, 40, 64, &differs);
        for (size_t k = 0; k < sizeof WIDE / sizeof *WIDE; k++) {
            if (k % 3 != i % 3 && k % 2 != i % 4) continue;
            simt_settings.order = (SimtOrder)(k % SIMT_ORDERS);
            codes.cut[cut_size(WIDE[k].most)] = CUT_WIDE;
            compare(&w, &codes, &values, WIDE[k].count, WIDE[k].most, &w.card);
        }
        gpu_give(values.data);
        gpu_give(codes.data);
        world_close(&w);
        release_codes(&t);
    }
    simt_settings.early = false;
    assert_int_equal(simt_live_bytes(), 0);
}

static void experts(void **state) {
    (void)state;
    static const Slice slices[EXPERTS] = {{0, 5}, {8, 0}, {8, 39}};
    Random r = test_random(98);
    static const Codes forms[] = {{4, 32, SCALES_F16, NULL},
                                  {8, 32, SCALES_F16, NULL},
                                  {4, 32, SCALES_PAIRS, NULL},
                                  {8, 16, SCALES_F32, NULL}};
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
        World w;
        world_open(&w, 160, &r);
        Matrix values = make_matrix(&w, 160, 1, NULL, EXPERTS);
        Matrix codes = make_matrix(&w, 160, 1, &forms[form], EXPERTS);
        gpu_copy(w.slices, slices, sizeof slices, w.stream);
        for (size_t i = 0; i < EXPERTS; i++) {
            Tensor t = make_codes(&forms[form], 160, &r);
            Matrix value = values, code = codes;
            value.data = (char *)values.data + i * gpu_matrix_bytes(&values);
            code.data = (char *)codes.data + i * gpu_matrix_bytes(&codes);
            pack(&w, &t, &value, OUTPUTS);
            pack(&w, &t, &code, OUTPUTS);
            release_codes(&t);
        }
        for (int most = 16; most <= 64; most *= 4) compare(&w, &codes, &values, 44, most, &w.card);
        gpu_give(values.data);
        gpu_give(codes.data);
        world_close(&w);
    }
    assert_int_equal(simt_live_bytes(), 0);
}

// --- models

enum { NODES = 21 };

// Calls `each` on every tensor that may be coded, of both models.
static void walk(Model *m, const Model *coded, void (*each)(Tensor *t, const Tensor *coded)) {
    int experts = m->shape.experts.count * EXPERT_WEIGHTS;
    for (int i = 0; i < m->shape.layers; i++) {
        for (int k = 0; k < LAYER_WEIGHTS; k++) each(&m->layers[i].w[k], &coded->layers[i].w[k]);
        for (int k = 0; m->layers[i].experts && k < experts; k++)
            each(&m->layers[i].experts[k], &coded->layers[i].experts[k]);
    }
    each(&m->embedding, &coded->embedding);
    if (coded->head.data != coded->embedding.data) each(&m->head, &coded->head);
}

static void decode_tensor(Tensor *t, const Tensor *coded) {
    if (!coded->codes.bits) return;
    uint16_t *values = mem_new((size_t)t->rows * (size_t)t->columns, sizeof *values);
    for (size_t i = 0; i < (size_t)t->rows; i++) tensor_decode_row(t, i, values + i * (size_t)t->columns);
    t->data = values;
    t->codes.bits = 0;
}

static void free_decoded(Tensor *t, const Tensor *coded) {
    if (coded->codes.bits) mem_free((void *)(uintptr_t)t->data);
}

// The same model with values in place of codes.
static void decode_model(Model *m, const Model *coded) {
    *m = *coded;
    m->layers = mem_new((size_t)m->shape.layers, sizeof *m->layers);
    memcpy(m->layers, coded->layers, (size_t)m->shape.layers * sizeof *m->layers);
    size_t experts = (size_t)m->shape.experts.count * EXPERT_WEIGHTS;
    for (int i = 0; i < m->shape.layers; i++) {
        if (!coded->layers[i].experts) continue;
        m->layers[i].experts = mem_new(experts, sizeof *m->layers->experts);
        memcpy(m->layers[i].experts, coded->layers[i].experts, experts * sizeof *m->layers->experts);
    }
    walk(m, coded, decode_tensor);
    if (coded->head.data == coded->embedding.data) m->head = m->embedding;
}

static void release_decoded(Model *m, const Model *coded) {
    walk(m, coded, free_decoded);
    for (int i = 0; i < m->shape.layers; i++) mem_free(m->layers[i].experts);
    mem_free(m->layers);
}

static void open_model(Session *s, const Model *m, Compute compute, BackendReport *report) {
    BackendOptions o = {.compute = compute, .context = 100, .max_nodes = NODES, .slack = 16};
    void *self;
    Error e = {0};
    if (!cuda_open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cuda_backend, self, &m->shape, &o);
    cuda_backend.report(self, report);
}

static void run_chain(Session *s, int count) {
    Error e = {0};
    session_begin_step(s, false, LAYOUT_TREE);
    int node = tree_root(&s->tree, 1);
    for (int i = 1; i < count; i++) node = tree_probe(&s->tree, node, (7 * i + 2) % s->shape.vocab, true);
    if (!session_run(s, s->shape.layers, &e) || !session_read(s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
}

static void same_logits(const Model *coded, const Model *values, BackendReport *of_codes,
                        BackendReport *of_values, char isa[200]) {
    static const int counts[] = {1, NODES};
    Session a, b;
    open_model(&a, coded, COMPUTE_BF16, of_codes);
    size_t bytes = simt_live_bytes();
    open_model(&b, values, COMPUTE_BF16, of_values);
    snprintf(isa, 200, "%s", of_codes->isa);
    assert_true(!simt_emulated || bytes < simt_live_bytes() - bytes || strstr(isa, "decoded"));
    assert_null(strstr(of_values->isa, "decoded"));
    for (int i = 0; i < 2; i++) {
        run_chain(&a, counts[i]);
        run_chain(&b, counts[i]);
        for (int n = 0; n < counts[i]; n++)
            if (memcmp(session_logits(&a, n), session_logits(&b, n),
                       (size_t)coded->shape.vocab * sizeof(float)))
                fail_msg("%s: node %d of %d has other logits than with the values", isa, n, counts[i]);
    }
    session_release(&a);
    session_release(&b);
}

// What a plan tells of the weights, without a card.
static size_t planned(const Model *m, Compute compute, size_t *decoded) {
    return cuda_weights(m, &(BackendOptions){.compute = compute}, decoded);
}

// Layers and the head's weights, the head read once whatever it is tied to.
static size_t bytes_of(const Model *m) {
    size_t bytes = tensor_bytes(&m->head) + tensor_bytes(&m->final_norm);
    for (int i = 0; i < m->shape.layers; i++) bytes += model_layer_bytes(m, i);
    return bytes;
}

// Codes of one kind are kept, and are all that a step reads, with scales of f16. Of several kinds some are
// decoded, and of f32 and f16 compute all.
static void models(void **state) {
    (void)state;
    static const Codes kinds[] = {{4, 32, SCALES_F16, NULL},   {8, 32, SCALES_F16, NULL},
                                  {4, 32, SCALES_PAIRS, NULL}, {8, 16, SCALES_F32, NULL},
                                  {6, 16, SCALES_F32, NULL},   {5, 32, SCALES_F16, NULL}};
    const int kind_count = sizeof kinds / sizeof *kinds;
    Random r = test_random(99);
    int mixed = 0;
    for (int round = 0; round < kind_count + 2; round++) {
        RandomModel m;
        Model values;
        BackendReport of_codes, of_values;
        char isa[200];
        Shape shape = random_shape(&r);
        bool uniform = round < kind_count;
        random_coded_shape(&shape);
        shape.heads = shape.kv_heads = 2, shape.head_dim = 32; // so that o's columns are groups, too
        if (shape.rope.pairs > 16) shape.rope.pairs = 16;
        random_model_init(&m, &shape, DTYPE_BF16, false, &r);
        random_model_code(&m, uniform ? &kinds[round] : NULL, &r);
        decode_model(&values, &m.model);
        same_logits(&m.model, &values, &of_codes, &of_values, isa);
        assert_int_equal(of_values.weight_bytes, bytes_of(&values));
        if (uniform) {
            assert_null(strstr(isa, "decoded"));
            if (kinds[round].kind == SCALES_F16 && kinds[round].bits != 5) // which take 8 there
                assert_int_equal(of_codes.weight_bytes, bytes_of(&m.model));
            assert_true(of_codes.weight_bytes < of_values.weight_bytes);
            size_t decoded, of_model = planned(&m.model, COMPUTE_BF16, &decoded);
            assert_int_equal(decoded, 0);
            assert_true(of_model < planned(&values, COMPUTE_BF16, &decoded));
        } else mixed += strstr(isa, ", some weights of") != NULL;
        release_decoded(&values, &m.model);
        random_model_release(&m);
    }
    assert_true(mixed > 0 || getenv("OUTPACE_SEED"));
    assert_int_equal(simt_live_bytes(), 0);
}

static void other_computes(void **state) {
    (void)state;
    Random r = test_random(100);
    Shape shape = random_dense_shape(&r);
    Codes all = {.bits = 4, .group = GROUP_LEAST, .kind = SCALES_F16};
    RandomModel m;
    Model values;
    random_coded_shape(&shape);
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    random_model_code(&m, &all, &r);
    decode_model(&values, &m.model);
    for (int compute = COMPUTE_F32; compute < COMPUTE_INT8; compute++) {
        Session s;
        BackendReport report;
        if (compute == COMPUTE_BF16) continue;
        open_model(&s, &m.model, (Compute)compute, &report);
        assert_non_null(strstr(report.isa, ", weights of 4 bits decoded at the start"));
        assert_int_equal(report.weight_bytes, bytes_of(&values));
        size_t decoded, bytes = planned(&m.model, (Compute)compute, &decoded), none;
        assert_true(decoded > 0 && decoded < bytes);
        assert_int_equal(bytes, planned(&values, (Compute)compute, &none));
        assert_int_equal(none, 0);
        session_release(&s);
    }
    release_decoded(&values, &m.model);
    random_model_release(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kernel), cmocka_unit_test(experts),
                                       cmocka_unit_test(models), cmocka_unit_test(other_computes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
