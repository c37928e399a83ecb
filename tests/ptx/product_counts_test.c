// The products of a layer of Llama-2 7B as an H100 would run them, counted: which kernel, its blocks and how
// many of them share a processor; the bytes that they ask L2 for, over those of the weights; the weights'
// bytes on their way to a processor; rounds of blocks; what its first block asks L2 for of the next product's
// weights, if all blocks may ask for 8 MB. tests/fixtures/product_counts.tsv has what they are
// today (OUTPACE_GOLDEN=write writes it): a change that makes one worse must say so.
#include "tests/ptx/machine.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/cuda/kernels/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FIXTURE[] = "product_counts.tsv";
enum {
    PROCESSORS = 132,
    PROCESSOR_KB = 228,
    OWN_KB = 1,
    MOST_ROWS = 256,
    ASKED = 8 << 20
}; // OWN: of each block, the system's
static const struct {
    const char *name;
    int outputs, inputs;
} PRODUCTS[] = {{"q k v", 12288, 4096}, {"o", 4096, 4096}, {"gate up", 22016, 4096}, {"down", 4096, 11008}};
static const int ROWS[] = {1, 8, 16, 32, 64, 121, 128, 129, MOST_ROWS};

// The launch of the product, and of its blocks those that differ: the first of each panel.
static Launch seen;
static int panels;
static bool some(const Launch *l, uint32_t block) {
    if (!strstr(l->kernel->name, "product")) return false;
    seen = *l;
    return block < (uint32_t)panels;
}

// "product" of _Z7product..
static void short_name(const char *mangled, char out[32]) {
    int n = (int)strtol(mangled + 2, (char **)&mangled, 10);
    snprintf(out, 32, "%.*s", n < 31 ? n : 31, mangled);
}

typedef struct Place {
    void *stream, *weights, *x, *out, *rows, *parts;
} Place;

static void count(const Place *at, int product, int rows, Text *to) {
    const int outputs = PRODUCTS[product].outputs, inputs = PRODUCTS[product].inputs;
    struct {
        int count, first;
    } list = {rows, 0};
    GpuFacts card;
    char name[32];
    Product p = {.rows = at->rows,
                 .w = {.data = at->weights,
                       .rows = outputs,
                       .columns = inputs,
                       .pitch = inputs,
                       .dtype = DTYPE_BF16,
                       .form = FORM_PACKED,
                       .splits = gpu_product_splits(outputs, inputs)},
                 .x = {.data = at->x, .pitch = inputs, .form = FORM_PACKED, .dtype = DTYPE_BF16},
                 .put = {.kind = PUT_LOGITS, .out = at->out, .stride = outputs, .real = outputs},
                 .parts = at->parts};
    const int after = (product + 1) % 4;
    Matrix next = p.w;
    next.rows = PRODUCTS[after].outputs, next.columns = next.pitch = PRODUCTS[after].inputs;
    next.splits = gpu_product_splits(next.rows, next.pitch);
    prefetch_next(&p.w, &next, ASKED);
    int most = 8;
    while (most < rows) most *= 2;
    panels = rows <= 16 ? 1 : product_panels(most);
    gpu_copy(at->rows, &list, sizeof list, at->stream);
    assert_int_equal(gpu_facts(0, &card), 0);
    ptx_counters_clear();
    gpu_product(&p, most, &card, at->stream);
    gpu_stream_wait(at->stream);
    const Counters *c = ptx_counters("product");
    assert_non_null(c);
    short_name(seen.kernel->name, name);
    double weights = 2.0 * outputs * inputs, blocks = (double)seen.grid[0] * seen.grid[1] * seen.grid[2],
           bytes = 32 * (double)c->copy_sectors * blocks / panels;
    int shared = (int)(seen.shared + seen.kernel->shared_bytes) / 1024 + OWN_KB,
        together = PROCESSOR_KB / shared, own = (int)(blocks + PROCESSORS - 1) / PROCESSORS;
    // A block's share of the weights, over all that it copies, is that of what is on its way.
    double flight = (double)c->flight * weights * panels / bytes * (own < together ? own : together);
    text_printf(to, "%s\t%d\t%s\t%.0f\t%d\t%.2f\t%.0f\t%.2f\t%.1f\n", PRODUCTS[product].name, rows, name,
                blocks, together, bytes / weights, flight / 1024, blocks / (PROCESSORS * together),
                (double)c->prefetched / panels / 1024);
}

static void as_they_were(void **state) {
    const size_t most = (size_t)22016 * 4096, sums = (size_t)MOST_ROWS * 22016 * sizeof(float);
    Place at;
    Text t = {0};
    (void)state;
    ptx_settings.processors = PROCESSORS;
    setenv("OUTPACE_FAKE_GPUS", "90:2048", 1);
    gpu_stream_open(&at.stream);
    gpu_take(&at.weights, 2 * most);
    gpu_take(&at.x, (size_t)MOST_ROWS * 11008 * 2);
    gpu_take(&at.out, sums);
    gpu_take(&at.parts, 4 * sums);
    gpu_take(&at.rows, 64);
    gpu_fill(at.x, 0, 64, at.stream);
    ptx_settings.checked = false, ptx_settings.counted = true, ptx_settings.only = some;
    text_puts(&t, "product\trows\tkernel\tblocks\ttogether\tl2\tflight_kb\trounds\tnext_kb\n");
    for (int i = 0; i < 4; i++)
        for (size_t r = 0; r < sizeof ROWS / sizeof *ROWS; r++) count(&at, i, ROWS[r], &t);
    ptx_settings = (PtxSettings){.checked = true, .processors = 4, .shared_kb = 227};
    void *const all[] = {at.weights, at.x, at.out, at.parts, at.rows};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_give(all[i]);
    gpu_stream_close(at.stream);
    const char *root = getenv("OUTPACE_ROOT"), *golden = getenv("OUTPACE_GOLDEN");
    char folder[512];
    size_t size;
    snprintf(folder, sizeof folder, "%s/tests/fixtures", root ? root : ".");
    if (golden && strcmp(golden, "write") == 0) scratch_write(folder, FIXTURE, text_get(&t), t.length);
    char *wanted = scratch_read(folder, FIXTURE, &size);
    for (const char *p = text_get(&t), *q = wanted; *p || *q;) {
        int n = (int)strcspn(p, "\n"), m = (int)strcspn(q, "\n");
        if (n != m || memcmp(p, q, (size_t)n)) fail_msg("'%.*s' became '%.*s'", m, q, n, p);
        p += n + (p[n] != 0), q += m + (q[m] != 0);
    }
    mem_free(wanted);
    text_release(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_they_were)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
