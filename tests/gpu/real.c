// Replaces the SIMT shim where the CUDA tests run on a GPU: there's nothing to set or ask.
#include "tests/simt/settings.h"

SimtSettings simt_settings = {.fail_after = -1, .driver = 13000};

size_t simt_live_bytes(void) { return 0; }
unsigned long simt_blocks(void) { return 1; }
const bool simt_emulated = false;
