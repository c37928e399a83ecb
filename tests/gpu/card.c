// One program for a quarter of an hour with a card: every suite of the kernels' tests, the probe and the lab.
// `make card` links it for a card, and the tests' build for the simulated one (tests/simt), where it's
// rehearsed.
#include "tests/gpu/card.h"

#include <stdio.h>
#include <string.h>

// The tests' own main functions, renamed (cuda.mk).
#define SUITE(name) int name##_test(int argc, char **argv);
CARD_SUITES
#undef SUITE

typedef struct Part {
    const char *name;
    int (*run)(int argc, char **argv);
} Part;

#define SUITE(name) {#name, name##_test},
static const Part SUITES[] = {CARD_SUITES};
#undef SUITE
static const Part PARTS[] = {{"probe", card_probe}, {"lab", card_lab}, {"join", card_join}};

static int run(const Part *parts, size_t count, int argc, char **argv) {
    for (size_t i = 0; argc > 0 && i < count; i++)
        if (strcmp(argv[0], parts[i].name) == 0) return parts[i].run(argc, argv);
    return -1;
}

int main(int argc, char **argv) {
    const size_t suites = sizeof SUITES / sizeof *SUITES, parts = sizeof PARTS / sizeof *PARTS;
    bool test = argc > 1 && strcmp(argv[1], "test") == 0;
    if (test && argc == 2)
        for (size_t i = 0; i < suites; i++) puts(SUITES[i].name);
    int code =
        test ? argc > 2 ? run(SUITES, suites, argc - 2, argv + 2) : 0 : run(PARTS, parts, argc - 1, argv + 1);
    if (code < 0)
        fputs("usage: card test [SUITE] | probe [-o FILE] [--small] | lab [-o FILE] [--choice FILE] "
              "[--small] | join OUT KEY=FILE..\n",
              stderr);
    return code < 0 ? 2 : code;
}
