#include "harness/program/command.h"

#include "harness/program/version.h"

#include <stdio.h>

static bool run(int argc, char **argv, int *code, Error *e) {
    (void)code;
    Positionals rest;
    bool stop;
    if (!command_parse(&command_version, argc, argv, NULL, &rest, &stop, e)) return false;
    if (!stop) printf("outpace %s, %s\n", version_text(), version_compiler());
    return true;
}

const Command command_version = {.name = "version",
                                 .usage = "",
                                 .summary = "print version, commit and compiler",
                                 .lesson =
                                     "Prints the version, the commit it was built from, and the compiler.\n",
                                 .run = run};
