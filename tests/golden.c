// golden unpack | pack FROM TO: see tests/support/golden_files.c.
#include "tests/support/packed.h"

int main(int argc, char **argv) { return golden_files(argc, argv); }
