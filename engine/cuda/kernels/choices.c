// The fastest way to cut each product's rows into blocks, as measured (tests/gpu/lab.c): a file of lines
//
//      outputs inputs bits rows cut        22016 4096 16 64 CUT_64_DEEP's number
//
// named by OUTPACE_PRODUCTS. A line counts for launches of up to so many rows, which are powers of two from 8
// to 512. Whatever it says, the numbers are the same.
#include "engine/cuda/kernels/product.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool take_line(Choices *c, const char *line, const char *path, int number, Error *e) {
    Choice x;
    if (line[0] == '#' || line[0] == '\n') return true;
    if (sscanf(line, "%d %d %d %d %d", &x.outputs, &x.inputs, &x.bits, &x.rows, &x.cut) != 5 || x.rows < 8 ||
        x.rows != 8 << cut_size(x.rows) || x.cut < 0 || x.cut >= CUTS ||
        !gpu_cut_takes((Cutting)x.cut, x.rows))
        return error_input(
            e, "'%s', line %d: 'outputs inputs bits rows cut' are needed, as 'card lab' writes them", path,
            number);
    if (c->count == CHOICES_MOST) return error_input(e, "'%s' has more than %d lines", path, CHOICES_MOST);
    c->choice[c->count++] = x;
    return true;
}

bool choices_read(Choices *c, Error *e) {
    const char *path = getenv("OUTPACE_PRODUCTS");
    char line[256];
    bool ok = true;
    c->count = 0;
    if (!path || !*path) return true;
    FILE *f = fopen(path, "re");
    if (!f)
        return error_input(e, "cannot read '%s', which OUTPACE_PRODUCTS names: %s", path, strerror(errno));
    for (int n = 1; ok && fgets(line, sizeof line, f); n++) ok = take_line(c, line, path, n, e);
    fclose(f);
    return ok;
}

void choices_apply(const Choices *c, Matrix *m) {
    int bits = m->bits ? m->bits : 16;
    const char *wide = getenv("OUTPACE_WIDE");
    if (m->form == FORM_PACKED && wide && strcmp(wide, "1") == 0)
        for (int i = cut_size(m->bits ? 16 : 32); i < CUT_SIZES; i++) m->cut[i] = CUT_WIDE;
    for (int i = 0; m->form == FORM_PACKED && i < c->count; i++) {
        const Choice *x = &c->choice[i];
        if (x->outputs == m->rows && x->inputs == m->columns && x->bits == bits)
            m->cut[cut_size(x->rows)] = (uint8_t)x->cut;
    }
}

// --- asked of L2

// Bytes of the next product's weights that a product asks L2 for at its end, OUTPACE_PREFETCH=MB of them and
// at most a quarter of L2: so that memory has something to do until that product's own blocks can run. They
// are the first ones that each of its parts reads, in every tile of 16 rows:
//
//      tile 0:  | piece | ..        | piece | ..        (2 parts)
//      tile 1:  | piece | ..        | piece | ..

size_t prefetch_bytes(const GpuFacts *card) {
    const char *wanted = getenv("OUTPACE_PREFETCH");
    const size_t most = card->l2_bytes / 4, mega = (size_t)1 << 20;
    size_t n = wanted && *wanted ? (size_t)strtoul(wanted, NULL, 10) : 0;
    return n < most / mega ? n * mega : most / mega * mega;
}

// Packed weights are in tiles one after another, their stages of PACKED_K columns too.
void prefetch_next(Matrix *m, const Matrix *next, size_t bytes) {
    const size_t bits = next->bits ? (size_t)next->bits : 16, stage = 16 * PACKED_K * bits / 8,
                 stages = (size_t)(next->pitch / PACKED_K), tiles = (size_t)(next->rows + 15) / 16;
    size_t parts = stages % (size_t)next->splits ? 1 : (size_t)next->splits, step = stages / parts * stage,
           count = tiles * parts, each = bytes / count / stage * stage;
    if (!each) each = stage, count = bytes / stage; // too few for all pieces
    m->next = (Prefetch){next->data, step, (int)count, (int)(each < step ? each : step)};
}
