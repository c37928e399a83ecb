#include "tests/support/tile_product.h"

#include "engine/cpu/kernels/tiles.h"

void tile_product_real(TileProduct *p) {
    Tiles t;
    size_t row = sizeof *p->c * (size_t)p->columns;
    tiles_begin(&t, p->columns, p->columns);
    tiles_see_memory();
    tile_load(&t, 0, p->c, row);
    tile_load(&t, 4, p->a, sizeof *p->a);
    tile_load(&t, 6, p->b, row);
    tile_multiply(&t, 0, 4, 6);
    tile_store(&t, 0, p->c, row);
    tiles_end(&t);
}
