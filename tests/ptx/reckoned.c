// Counts a step's work and derives times from the counts. reckoned.h describes the model.
#include "tests/ptx/reckoned.h"

#include "engine/base/shipped.h"
#include "engine/base/memory.h"
#include "engine/core/session.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/instance.h"
#include "engine/model/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR_BYTES = 32, MMA_OPERATIONS = 2 * 16 * 8 * 16, ISSUED = 4, NODES = 128, CONTEXT = 1024 };

struct Counting {
    Model model;
    LayerWeights layer;
    void *zeros;
    Session session;
    bool open;
    const Cuda *cuda;
    bool only_attention, nothing, in_layer;
    CountedStep *to; // NULL: nothing is counted
    bool too_many;
};
static Counting *counting; // whose step runs: the machine's callbacks have no state

// --- registers, as ptxas reports them (make keeps its report next to the PTX)

// Of a kernel, in the report on both architectures.
static int registers_in(FILE *f, const char *kernel, const char *architecture) {
    char line[1024], entry[1024], *at;
    bool here = false;
    int n = 0;
    snprintf(entry, sizeof entry, "Compiling entry function '%s' for 'sm_%s'", kernel, architecture);
    while (n == 0 && fgets(line, sizeof line, f)) {
        if (strstr(line, "Compiling entry function '")) here = strstr(line, entry) != NULL;
        at = strstr(line, "Used ");
        if (here && at) n = atoi(at + 5);
    }
    return n;
}

static int registers_of(const Kernel *k) {
    char path[1024], architecture[8] = "";
    const char *end = strstr(k->file, ".compute_");
    if (end) sscanf(end, ".compute_%7[0-9]", architecture);
    snprintf(path, sizeof path, "%.*s.registers", (int)(end ? end - k->file : (long)strlen(k->file)),
             k->file);
    FILE *f = fopen(path, "r");
    int n = f ? registers_in(f, k->name, architecture) : 0;
    if (f) fclose(f);
    if (!n) machine_fault("'%s' has no registers of %s; run make gpu-reckon", path, k->name);
    return n;
}

// --- what runs of a grid

static bool is_attention(const Launch *l) { return strstr(l->kernel->name, "attention") != NULL; }

static bool runs(const Launch *l, uint32_t block) {
    uint32_t y = block / l->grid[0] % l->grid[1];
    if (counting->nothing || strstr(l->kernel->name, "pack")) return false;
    if (is_attention(l)) return y < l->grid[1] / (uint32_t)counting->cuda->heads.kv_heads; // a key head
    if (counting->only_attention) return false;
    if (strstr(l->kernel->name, "product")) return y == 0; // a tile, all its parts
    if (strstr(l->kernel->name, "3top")) return y == 0;    // a row
    return true;
}

// The function's name out of the mangled one: _Z9attentionIL.. is attention.
static void plain_name(const char *mangled, char *out, size_t size) {
    const char *p = strpbrk(mangled, "0123456789");
    char *end = NULL;
    size_t n = p ? strtoul(p, &end, 10) : 0;
    snprintf(out, size, "%.*s", (int)(p ? n : strlen(mangled)), p ? end : mangled);
}

static void name_launch(const Launch *l, Counted *c) {
    const Kernel *k = l->kernel;
    const GpuLayer *layer = counting->cuda->layers;
    const struct {
        const Matrix *matrix;
        const char *name;
    } MATRICES[] = {
        {&layer->qkv, "q k v"},          {&layer->o, "o"}, {&layer->in, "gate up"}, {&layer->down, "down"},
        {&counting->cuda->head, "head"},
    };
    plain_name(k->name, c->name, sizeof c->name);
    if (!strstr(k->name, "product") || !k->params || k->param_size[0] != sizeof(Product)) return;
    const Product *p = (const Product *)(const void *)(l->params + k->param_at[0]);
    for (size_t i = 0; i < sizeof MATRICES / sizeof *MATRICES; i++)
        if (MATRICES[i].matrix->data == p->w.data) snprintf(c->name, sizeof c->name, "%s", MATRICES[i].name);
}

static void launched(const Launch *l, const Counters *counters) {
    CountedStep *s = counting->to;
    if (!s) return;
    if (s->count == MOST_COUNTED) {
        counting->too_many = true;
        return;
    }
    Counted *c = &s->launch[s->count++];
    if (counting->only_attention && !is_attention(l)) return; // it is there
    *c = (Counted){.layer = counting->in_layer && !strstr(l->kernel->name, "embed"),
                   .early = l->early,
                   .blocks = l->grid[0] * l->grid[1] * l->grid[2],
                   .threads = l->threads,
                   .cluster = l->cluster,
                   .shared = l->shared,
                   .registers = registers_of(l->kernel),
                   .c = *counters};
    name_launch(l, c);
}

// --- a model of zeros, and its steps

static Tensor zeros(const Counting *c, int rows, int columns) {
    return (Tensor){.data = c->zeros, .dtype = DTYPE_BF16, .rows = rows, .columns = columns};
}

// One layer; the head is the embedding, which is read alike.
static bool make_model(Counting *c, const Shape *shape, Error *e) {
    Shape *s = &c->model.shape;
    *s = *shape;
    s->layers = 1, s->tied_head = true, s->context = CONTEXT;
    int width = s->width, mlp = s->mlp_width;
    size_t most = (size_t)width * (size_t)(mlp > s->vocab ? mlp : s->vocab);
    size_t square = (size_t)width * (size_t)shape_q_width(s);
    c->zeros = mem_try(most > square ? most : square, sizeof(uint16_t));
    if (!c->zeros) return error_system(e, "out of memory for a model of zeros");
    for (Weight w = 0; w < LAYER_WEIGHTS; w++) {
        WeightSpec x = weight_sized(s, w);
        c->layer.w[w] = weight_present(s, 0, w) ? zeros(c, x.rows, x.columns) : (Tensor){.data = NULL};
    }
    c->model.dtype = DTYPE_BF16, c->model.bos = -1, c->model.layers = &c->layer;
    c->model.embedding = c->model.head = zeros(c, s->vocab, width), c->model.final_norm = zeros(c, 1, width);
    return true;
}

Counting *counting_open(const Shape *shape, const Card *card, Error *e) {
    char capability[16];
    Counting *c = mem_new(1, sizeof *c);
    void *self = NULL;
    if (!c) {
        error_system(e, "out of memory for a count");
        return NULL;
    }
    *c = (Counting){.nothing = true};
    counting = c;
    snprintf(capability, sizeof capability, "%d:32768", card->capability);
    setenv("OUTPACE_FAKE_GPUS", capability, 1);
    Hardware sheet;
    BackendOptions o = {.compute = COMPUTE_BF16, .context = CONTEXT, .max_nodes = NODES, .slack = 16};
    if (!card_sheet(card, &sheet, e)) goto failed;
    ptx_settings = (PtxSettings){.timed = true,
                                 .skips = true,
                                 .only = runs,
                                 .launched = launched,
                                 .processors = sheet.processors,
                                 .shared_kb = card->shared_kb};
    if (!make_model(c, shape, e) || !cuda_open(&c->model, 0, &o, &self, e)) goto failed;
    c->cuda = self;
    c->open = true; // session_init takes it over
    session_init(&c->session, &cuda_backend, self, &c->model.shape, &o);
    return c;
failed:
    counting_close(c);
    return NULL;
}

void counting_close(Counting *c) {
    if (!c) return;
    if (c->open) session_release(&c->session);
    mem_free(c->zeros);
    mem_free(c);
    counting = NULL;
}

// Every row is read. Tokens differ, so that nothing is merged.
static void grow(Tree *t, int rows, TreeKind kind) {
    int token = 1, root = tree_root(t, token++), at = root;
    enum { W = 15, N = 5, G = 15 };
    int column[W];
    for (int i = 1; kind == TREE_CHAIN && i < rows; i++) at = tree_probe(t, at, token++, true);
    if (kind == TREE_CHAIN) return;
    for (int i = 0; i < W; i++) at = column[i] = tree_probe(t, at, token++, true);
    for (int i = 0; i < W; i++) {
        at = column[i];
        for (int n = 0; n < N - 2; n++) at = tree_probe(t, at, token++, true);
    }
    for (int i = 0; i < G; i++) {
        at = root;
        for (int n = 0; n < N - 1; n++) at = tree_probe(t, at, token++, true);
    }
}

static bool reach(Counting *c, int context, Error *e) {
    int tokens[NODES];
    c->nothing = true;
    for (int i = 0; i < NODES; i++) tokens[i] = i;
    for (int n; c->session.cache.length < context;) {
        n = context - c->session.cache.length < NODES ? context - c->session.cache.length : NODES;
        if (!session_prefill(&c->session, tokens, n, 0, 0, NULL, e)) return false;
    }
    c->nothing = false;
    return true;
}

bool counting_step(Counting *c, int rows, TreeKind tree, int context, const CountedStep *same,
                   CountedStep *out, Error *e) {
    Session *s = &c->session;
    if (!reach(c, context, e)) return false;
    if (same) *out = *same;
    out->rows = rows, out->tree = tree, out->context = context, out->count = 0;
    c->only_attention = same != NULL;
    session_begin_step(s, true, LAYOUT_TREE);
    grow(&s->tree, rows, tree);
    ptx_settle();
    c->to = out;
    c->in_layer = true;
    bool ok = session_run(s, s->shape.layers, e);
    gpu_stream_wait(c->cuda->stream);
    c->in_layer = false;
    ok = ok && session_read(s, HEAD_ARGMAX, e);
    c->to = NULL;
    return ok && (!c->too_many || error_system(e, "a step of more than %d launches", MOST_COUNTED));
}

// --- times

const char *const BOUND_NAMES[BOUNDS] = {"memory", "L2", "mma", "issue", "shared", "path"};

bool card_sheet(const Card *card, Hardware *out, Error *e) {
    char *path = shipped_named("hardware", "machine", card->sheet, e);
    bool ok = path && hardware_open(path, out, e);
    mem_free(path);
    return ok;
}

static int least(int a, int b) { return a < b ? a : b; }

static int blocks_held(const Counted *l, const Card *card) {
    int warps = (int)l->threads / LANES, registers = (l->registers * LANES + 255) / 256 * 256 * warps;
    int shared = card->processor_shared_kb * 1024 / ((int)l->shared + 1024);
    int held = least(PROCESSOR_REGISTERS / registers, card->processor_threads / (int)l->threads);
    held = least(least(held, shared), card->processor_blocks);
    return held < 1 ? 1 : held;
}

// Sectors of the busiest processor, and of all.
static double l2_time(const Card *card, double busiest, double all) {
    return SECTOR_BYTES * fmax(busiest / (PORT_BYTES * card->clock_hz), all / card->l2_bytes_s);
}

static void reckon_launch(const Counted *l, const Card *card, const Hardware *sheet, double stretch,
                          ReckonedLaunch *r) {
    const Counters *c = &l->c;
    double scale = c->blocks ? (double)l->blocks / (double)c->blocks : 0, issued = 0;
    double one = c->blocks ? 1.0 / (double)c->blocks : 0; // of a block
    int processors = sheet->processors;
    *r = (ReckonedLaunch){.held = blocks_held(l, card),
                          .busiest = ((int)l->blocks + processors - 1) / processors};
    int waves = (r->busiest + r->held - 1) / r->held;
    double busy = r->busiest * one, share = 1.0 / processors;
    uint64_t sectors = c->load_sectors + c->store_sectors + c->copy_sectors;
    uint64_t tail = c->mmas ? c->tail : 0, body = c->path - tail;
    for (int i = 0; i < COUNTS; i++) issued += (double)c->warp[i];
    r->bytes = SECTOR_BYTES * scale * (double)c->settled_sectors;
    r->mmas = scale * (double)c->mmas;
    r->dependency = l->early && card->dependent_s > 0 ? card->dependent_s : card->launch_s;
    r->by[BY_MEMORY] = r->bytes / sheet->bytes_per_s;
    r->by[BY_L2] = l2_time(card, (double)sectors * busy, (double)sectors * scale);
    r->by[BY_MMA] =
        MMA_OPERATIONS * (double)c->mmas * busy / (sheet->operations_per_s * card->mma_share * share);
    r->by[BY_ISSUE] = issued * busy / ISSUED / card->clock_hz;
    r->by[BY_SHARED] = (double)c->shared_waves * busy / card->clock_hz;
    r->by[BY_PATH] = stretch * (double)body * waves / card->clock_hz;
    r->tail = fmax(stretch * (double)tail / card->clock_hz,
                   l2_time(card, (double)c->most_tail_sectors, (double)c->tail_sectors * scale));
    if (!c->mmas) r->tail = 0;
}

// `gap`: seconds since memory was last busy. Gives what it is behind this launch.
static double put_launch(const Counted *l, const Card *card, const Hardware *sheet, double gap,
                         double stretch, ReckonedLaunch *r) {
    reckon_launch(l, card, sheet, stretch, r);
    double held = fmin(1, (double)sheet->processors * r->held / l->blocks);
    double scale = l->c.blocks ? (double)l->blocks / (double)l->c.blocks : 0;
    double early =
        l->early ? SECTOR_BYTES * held * scale * (double)l->c.early_sectors / sheet->bytes_per_s : 0;
    r->hidden = fmin(fmin(early, gap), r->by[BY_MEMORY]);
    double memory = r->by[BY_MEMORY] - r->hidden;
    bool streams = r->by[BY_MEMORY] > 0.5 * fmax(r->by[BY_PATH], r->by[BY_MMA]);
    if (l->c.settled_sectors && r->hidden <= 0) memory += MEMORY_CYCLES / card->clock_hz;
    r->bound = BY_MEMORY;
    r->body = memory;
    for (int i = BY_MEMORY + 1; i < BOUNDS; i++)
        if (r->by[i] > r->body) r->body = r->by[i], r->bound = (Bound)i;
    r->total = r->dependency + r->body + r->tail;
    return streams ? r->tail : gap + r->total;
}

// A layer stands behind another: its second pass counts.
static void put_step(const CountedStep *s, const Card *card, const Hardware *sheet, double stretch,
                     ReckonedStep *out, double *layer, double *once) {
    double gap = 0;
    *layer = *once = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < s->count; i++) {
            const Counted *l = &s->launch[i];
            if (!l->layer && (l->c.blocks == 0 || (pass == 0) != (i == 0))) continue;
            gap = put_launch(l, card, sheet, gap, stretch, &out->launch[i]);
            if (!l->layer) *once += out->launch[i].total;
            else if (pass == 1) *layer += out->launch[i].total;
        }
}

void reckon_step(const CountedStep *s, const Card *card, const Hardware *sheet, ReckonedStep *out) {
    *out = (ReckonedStep){.layer = 0};
    put_step(s, card, sheet, 1 + PATH_ERROR, out, &out->layer_worst, &out->once_worst);
    put_step(s, card, sheet, 1, out, &out->layer, &out->once);
    double bytes[2] = {0}, mmas[2] = {0};
    for (int i = 0; i < s->count; i++) {
        bytes[s->launch[i].layer] += out->launch[i].bytes;
        mmas[s->launch[i].layer] += out->launch[i].mmas;
    }
    double floors[2];
    for (int i = 0; i < 2; i++)
        floors[i] = fmax(bytes[i] / sheet->bytes_per_s, MMA_OPERATIONS * mmas[i] / sheet->operations_per_s);
    out->once_floor = floors[0], out->layer_floor = floors[1];
}
