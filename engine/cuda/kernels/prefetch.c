// Bytes of the next product's weights that a product asks L2 for at its end, OUTPACE_PREFETCH=MB of them and
// at most a quarter of L2: so that memory has something to do until that product's own blocks can run. They
// are the first ones that each of its parts reads, in every tile of 16 rows:
//
//      tile 0:  | piece | ..        | piece | ..        (2 parts)
//      tile 1:  | piece | ..        | piece | ..
#include "engine/cuda/kernels/product.h"

#include <stdlib.h>

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
