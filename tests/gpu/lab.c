// Ways to do a product against each other, for each model and width of weights: by themselves, one layer's
// weights after another's so that none is in L2, and in a chain of layers, where all other products are as
// the engine does them. Weights are random and each layer's own, 3.2 GB of them for the shape of Llama-2 7B
// in 16 bits. Every output is compared with today's kernel, bit for bit.
//
// The fastest in the chain, over all rows of a launch's size, goes into a file that OUTPACE_PRODUCTS can
// name. After LAST_START no further model begins, so that tools/card gets what there is.
#include "tests/gpu/lab.h"

#include "tests/gpu/card.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/cuda/kernels/kernels.h"

#include <stdio.h>
#include <string.h>

enum { LAYERS = 8, SHAPES = LAB_SHAPES, ROWS_MOST = 512, GROUP = 32, LAST_START = 60 /* seconds */ };

#define CUT_RUN(cut_name)                                                                        \
    static void run_##cut_name(const Product *p, int most, const GpuFacts *card, void *stream) { \
        Product own = *p;                                                                        \
        own.w.cut[cut_size(most)] = cut_name;                                                    \
        gpu_product(&own, most, card, stream);                                                   \
    }
CUT_RUN(CUT_NARROW)
CUT_RUN(CUT_32)
CUT_RUN(CUT_32_DEEP)
CUT_RUN(CUT_64)
CUT_RUN(CUT_64_DEEP)
CUT_RUN(CUT_128)
CUT_RUN(CUT_128_DEEP)
CUT_RUN(CUT_WIDE)
CUT_RUN(CUT_WIDE_128)
CUT_RUN(CUT_WIDE_128_DEEP)
CUT_RUN(CUT_WIDE_192)

static const LabVariant VARIANTS[] = {
    {"today", gpu_product, NULL, 1, 512, CUT_BY_ROWS}, // the first
    {"narrow", run_CUT_NARROW, NULL, 1, 16, CUT_NARROW},
    {"32", run_CUT_32, NULL, 9, 32, CUT_32},
    {"32 deep", run_CUT_32_DEEP, NULL, 9, 32, CUT_32_DEEP},
    {"64", run_CUT_64, NULL, 17, 64, CUT_64},
    {"64 deep", run_CUT_64_DEEP, NULL, 17, 64, CUT_64_DEEP},
    {"128", run_CUT_128, NULL, 33, 512, CUT_128},
    {"128 deep", run_CUT_128_DEEP, NULL, 33, 512, CUT_128_DEEP},
    {"wide", run_CUT_WIDE, NULL, 17, 512, CUT_WIDE},
    {"wide codes", run_CUT_WIDE, NULL, 1, 16, CUT_WIDE}, // rows share what they fetch
    {"wide 128", run_CUT_WIDE_128, NULL, 17, 512, CUT_WIDE_128},
    {"wide 128 deep", run_CUT_WIDE_128_DEEP, NULL, 17, 512, CUT_WIDE_128_DEEP},
    {"wide 192", run_CUT_WIDE_192, NULL, 17, 512, CUT_WIDE_192},
};
enum { VARIANT_COUNT = sizeof VARIANTS / sizeof *VARIANTS };

static const LabModel LARGE[] =
    {
        {"llama2-7b",
         {{"q k v", 12288, 4096}, {"o", 4096, 4096}, {"gate up", 22016, 4096}, {"down", 4096, 11008}}},
        {"phi3-mini",
         {{"q k v", 9216, 3072}, {"o", 3072, 3072}, {"gate up", 16384, 3072}, {"down", 3072, 8192}}},
},
                      SMALL[] = {
                          {"small",
                           {{"q k v", 256, 64}, {"o", 128, 1024}, {"gate up", 128, 64}, {"down", 128, 128}}}};
static const int WIDTHS[] = {16, 4, 8};
static const int LARGE_ROWS[] = {1, 8, 16, 32, 64, 121, 128, 129, 192, 256, 384, 512}, SMALL_ROWS[] = {8, 20};

typedef struct Lab {
    Card card;
    const LabModel *model;
    int bits;
    const int *rows;
    int row_count, layers;
    Matrix w[SHAPES][LAYERS];
    Activations x[SHAPES];
    float *out, *parts;
    RowList *list;
    float *want, *got;                              // (ROWS_MOST, outputs) of the largest
    double chain[VARIANT_COUNT][SHAPES][CUT_SIZES]; // seconds, over the rows of a size; 0: not measured
    json_t *alone;
} Lab;

// --- opening

static bool take(void *to, size_t bytes, Error *e) {
    void *memory = NULL;
    bool ok = card_ok(gpu_take(&memory, bytes), "no memory", e);
    memcpy(to, &memory, sizeof memory);
    return ok;
}

static bool fill(Lab *l, Numbers n, uint64_t stream, Error *e) {
    n.seed = 1, n.stream = stream;
    gpu_numbers(&n, l->card.stream);
    return card_ok(gpu_launched(), "a launch was refused", e);
}

// Packed numbers in whatever order: all of them are random. Codes are any bytes, their scales follow.
static bool take_matrix(Lab *l, Matrix *w, uint64_t stream, Error *e) {
    size_t bytes = gpu_matrix_bytes(w), codes = w->bits ? matrix_code_bytes(w) : 0;
    float spread = 1.7f / (float)w->columns;
    if (!take(&w->data, bytes, e)) return false;
    if (!w->bits)
        return fill(l, (Numbers){.to = w->data, .dtype = DTYPE_BF16, .count = bytes / 2, .spread = spread},
                    stream, e);
    return fill(l, (Numbers){.to = w->data, .bytes = true, .count = codes}, stream, e) &&
           fill(l,
                (Numbers){.to = (unsigned char *)w->data + codes,
                          .dtype = DTYPE_F16,
                          .count = (bytes - codes) / 2,
                          .centre = spread},
                stream + 1, e);
}

static bool open_model(Lab *l, Error *e) {
    size_t widest = 0, parts = 0, rows = (size_t)8 << cut_size(l->rows[l->row_count - 1]);
    for (int s = 0; s < SHAPES; s++) {
        const LabShape *shape = &l->model->shape[s];
        size_t out = (size_t)shape->outputs, inputs = (size_t)shape->inputs;
        int splits = gpu_product_splits(shape->outputs, shape->inputs);
        if (out > widest) widest = out;
        if ((size_t)splits * out > parts) parts = (size_t)splits * out;
        l->x[s] = (Activations){.pitch = shape->inputs, .form = FORM_PACKED, .dtype = DTYPE_BF16};
        if (!take(&l->x[s].data, rows * inputs * 2, e) ||
            !fill(l, (Numbers){.to = l->x[s].data, .dtype = DTYPE_BF16, .count = rows * inputs, .spread = 1},
                  (uint64_t)s, e))
            return false;
        for (int i = 0; i < l->layers; i++) {
            Matrix *w = &l->w[s][i];
            *w = (Matrix){.rows = shape->outputs,
                          .columns = shape->inputs,
                          .pitch = shape->inputs,
                          .dtype = DTYPE_BF16,
                          .form = FORM_PACKED,
                          .splits = splits,
                          .bits = l->bits < 16 ? l->bits : 0,
                          .group = l->bits < 16 ? GROUP : 0};
            if (!take_matrix(l, w, (uint64_t)(100 + 2 * (s * LAYERS + i)), e)) return false;
        }
    }
    l->want = mem_new(ROWS_MOST * widest, sizeof *l->want);
    l->got = mem_new(ROWS_MOST * widest, sizeof *l->got);
    return take(&l->out, ROWS_MOST * widest * sizeof(float), e) &&
           take(&l->parts, ROWS_MOST * parts * sizeof(float), e) && take(&l->list, sizeof(RowList), e);
}

static void give(void *pointer) {
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    gpu_give(memory);
    memset(pointer, 0, sizeof memory);
}

static void close_model(Lab *l) {
    if (l->card.stream) gpu_stream_wait(l->card.stream);
    for (int s = 0; s < SHAPES; s++) {
        give(&l->x[s].data);
        for (int i = 0; i < LAYERS; i++) give(&l->w[s][i].data);
    }
    give(&l->out);
    give(&l->parts);
    give(&l->list);
    mem_free(l->want);
    mem_free(l->got);
    l->want = l->got = NULL;
    memset(l->chain, 0, sizeof l->chain);
}

// --- running

static void run_product(Lab *l, const LabVariant *v, int shape, int layer, int most, void *stream) {
    int outputs = l->model->shape[shape].outputs;
    Product p = {.rows = l->list,
                 .w = l->w[shape][layer],
                 .x = l->x[shape],
                 .put = {.kind = PUT_LOGITS, .out = l->out, .stride = outputs, .real = outputs},
                 .parts = l->parts};
    v->run(&p, most, &l->card.facts, stream);
}

static void run_graph(void *graph, void *stream) { gpu_graph_run(graph, stream); }

// Seconds of a layer: of one product in all layers (alone), or of all of a layer's, this one by the variant.
static bool time_layers(Lab *l, const LabVariant *v, int shape, int most, bool alone, double *seconds,
                        Error *e) {
    void *graph;
    if (!card_ok(gpu_graph_begin(l->card.stream), "cannot record", e)) return false;
    for (int i = 0; i < l->layers; i++)
        for (int s = 0; s < SHAPES; s++)
            if (!alone || s == shape)
                run_product(l, s == shape ? v : &VARIANTS[0], s, i, most, l->card.stream);
    if (!card_ok(gpu_graph_end(l->card.stream, &graph), "cannot record", e)) return false;
    bool ok = card_time(&l->card, run_graph, graph, l->card.small ? 1 : 9, 0, seconds, e);
    gpu_graph_close(graph);
    *seconds /= l->layers;
    return ok;
}

static uint64_t hash_of(const float *x, size_t count) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        h = (h ^ bits) * 0x100000001b3u;
    }
    return h;
}

static bool output_of(Lab *l, const LabVariant *v, int shape, int rows, int most, float *to, Error *e) {
    size_t bytes = (size_t)rows * (size_t)l->model->shape[shape].outputs * sizeof *to;
    if (!card_ok(gpu_fill(l->out, 0xff, bytes, l->card.stream), "cannot fill", e)) return false;
    run_product(l, v, shape, 0, most, l->card.stream);
    return card_ok(gpu_launched(), "a launch was refused", e) &&
           card_ok(gpu_copy(to, l->out, bytes, l->card.stream), "cannot copy", e) &&
           card_ok(gpu_stream_wait(l->card.stream), "its work failed", e);
}

// Codes have one wide cut.
static bool is_for(const LabVariant *v, const LabShape *shape, int most, int bits) {
    bool coded = bits < 16, wide = v->cut >= CUT_WIDE;
    if (wide && (coded ? v->cut != CUT_WIDE : v->least < 17)) return false;
    return most >= v->least && most <= v->most && (!v->shape || strcmp(v->shape, shape->name) == 0);
}

static bool measure_variant(Lab *l, int variant, int shape, int rows, int most, Error *e) {
    const LabVariant *v = &VARIANTS[variant];
    const LabShape *s = &l->model->shape[shape];
    size_t count = (size_t)rows * (size_t)s->outputs;
    double alone, chain;
    if (!is_for(v, s, most, l->bits)) return true;
    if (!output_of(l, v, shape, rows, most, variant ? l->got : l->want, e)) return false;
    bool same = variant == 0 || memcmp(l->got, l->want, count * sizeof *l->got) == 0;
    if (!time_layers(l, v, shape, most, true, &alone, e) || !time_layers(l, v, shape, most, false, &chain, e))
        return false;
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)hash_of(variant ? l->got : l->want, count));
    json_array_append_new(l->alone,
                          json_pack("{s:s, s:i, s:s, s:s, s:i, s:i, s:b, s:s, s:f, s:f, s:f}", "model",
                                    l->model->name, "bits", l->bits, "shape", s->name, "variant", v->name,
                                    "rows", rows, "most", most, "same_bits", same, "hash", hash, "alone_s",
                                    alone, "chain_layer_s", chain, "bytes_per_s",
                                    (double)gpu_matrix_bytes(&l->w[shape][0]) / alone));
    if (same) l->chain[variant][shape][cut_size(most)] += chain;
    return true;
}

// --- the choice: today's where nothing is faster by 3%, since equal kernels differ by as much

static int fastest(const Lab *l, int shape, int size) {
    int best = 0;
    for (int v = 1; v < VARIANT_COUNT; v++) {
        double own = l->chain[v][shape][size];
        if (own > 0 && VARIANTS[v].cut != CUT_BY_ROWS && own < l->chain[0][shape][size] * 0.97 &&
            (!best || own < l->chain[best][shape][size]))
            best = v;
    }
    return best;
}

static void write_choices(const Lab *l, FILE *f) {
    for (int s = 0; f && s < SHAPES; s++)
        for (int size = 0; size < CUT_SIZES; size++) {
            int v = fastest(l, s, size);
            if (v)
                fprintf(f, "%d %d %d %d %d # %s\n", l->model->shape[s].outputs, l->model->shape[s].inputs,
                        l->bits, 8 << size, VARIANTS[v].cut, VARIANTS[v].name);
        }
}

// --- all of it

static bool measure(Lab *l, Error *e) {
    for (int r = 0; r < l->row_count; r++) {
        int rows = l->rows[r], most = 8 << cut_size(rows);
        RowList list = {.count = rows, .first = 0};
        if (!card_ok(gpu_copy(l->list, &list, sizeof list, l->card.stream), "cannot copy", e) ||
            !card_ok(gpu_stream_wait(l->card.stream), "its work failed", e))
            return false;
        for (int s = 0; s < SHAPES; s++)
            for (int v = 0; v < VARIANT_COUNT; v++)
                if (!measure_variant(l, v, s, rows, most, e)) return false;
    }
    return true;
}

static bool measure_all(Lab *l, FILE *choices, json_t *left_out, Error *e) {
    const LabModel *models = l->card.small ? SMALL : LARGE;
    size_t count = l->card.small ? sizeof SMALL / sizeof *SMALL : sizeof LARGE / sizeof *LARGE;
    Clock clock = clock_monotonic();
    double begun = clock_now(clock);
    bool ok = true;
    for (size_t b = 0; ok && b < sizeof WIDTHS / sizeof *WIDTHS; b++)
        for (size_t m = 0; ok && m < count; m++) {
            l->model = &models[m], l->bits = WIDTHS[b];
            if (clock_now(clock) - begun > LAST_START) {
                json_array_append_new(left_out, json_sprintf("%s, %d bits", l->model->name, l->bits));
                continue;
            }
            ok = open_model(l, e) && measure(l, e);
            if (ok) write_choices(l, choices);
            close_model(l);
        }
    return ok;
}

int card_lab(int argc, char **argv) {
    CardOptions o;
    Error e = {0}, unwritten = {0};
    Lab *l = mem_new(1, sizeof *l);
    FILE *choices = NULL;
    bool ok = card_options(argc, argv, &o, &e) && card_open(&l->card, o.small, &e);
    if (ok && o.choice && !(choices = fopen(o.choice, "we")))
        ok = error_system(&e, "cannot write '%s'", o.choice);
    if (ok) {
        l->rows = o.small ? SMALL_ROWS : LARGE_ROWS;
        l->row_count =
            (int)(o.small ? sizeof SMALL_ROWS / sizeof *SMALL_ROWS : sizeof LARGE_ROWS / sizeof *LARGE_ROWS);
        l->layers = o.small ? 2 : LAYERS;
        l->alone = json_array();
        json_t *before = card_gauge_json(), *left_out = json_array();
        if (choices) fprintf(choices, "# %s: outputs inputs bits rows cut\n", l->card.facts.name);
        ok = measure_all(l, choices, left_out, &e);
        json_t *root = json_pack("{s:o, s:o, s:o, s:b, s:o, s:o}", "card", card_facts_json(&l->card),
                                 "gauge_before", before, "gauge_after", card_gauge_json(), "small", o.small,
                                 "products", l->alone, "left_out", left_out);
        if (!ok) json_object_set_new(root, "failed", json_string(e.text));
        bool written = card_write(root, o.out, &unwritten); // what there is, after a failure too
        if (ok && !written) e = unwritten, ok = false;
    }
    if (choices && fclose(choices) != 0 && ok) ok = error_system(&e, "cannot write '%s'", o.choice);
    card_close(&l->card);
    mem_free(l);
    if (!ok) fprintf(stderr, "%s\n", e.text);
    return ok ? 0 : 1;
}
