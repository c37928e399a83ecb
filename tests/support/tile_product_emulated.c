#define tile_product_real tile_product_emulated
#include "tests/support/tile_product_real.c" // compiled without the flags that make tiles real
