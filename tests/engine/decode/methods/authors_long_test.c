// authors_test.c on every prompt.
#define EVERY 1
#include "authors_test.c"
