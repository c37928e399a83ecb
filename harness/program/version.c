#include "harness/program/version.h"

#ifndef OUTPACE_COMMIT
#define OUTPACE_COMMIT "unknown"
#endif

const char *version_text(void) { return "0.1.0 (" OUTPACE_COMMIT ")"; }

const char *version_compiler(void) {
#ifdef __clang__
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}
