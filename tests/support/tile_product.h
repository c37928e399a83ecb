// One tile product, by this processor's tiles and by those that are emulated (engine/cpu/kernels/tiles.h).
#pragma once
#include <stdint.h>

// c (16, columns) += a (16, 32) . b (16 pairs along k, columns x 2), rows of b and c `columns` wide.
typedef struct TileProduct {
    int columns;
    uint16_t a[16][32];
    uint32_t b[16 * 16];
    float c[16 * 16];
} TileProduct;

void tile_product_real(TileProduct *p); // only where there are tiles
void tile_product_emulated(TileProduct *p);
