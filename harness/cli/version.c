// The only object that sees the commit: the Makefile passes it as OUTPACE_COMMIT.
#include "harness/cli/version.h"

#include "results/store.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <gsl/gsl_version.h>
#include <openssl/crypto.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>
#include <yaml.h>
#include <zlib.h>
#include <zstd.h>

#ifndef OUTPACE_COMMIT
#define OUTPACE_COMMIT "unknown"
#endif

const char *version_text(void) { return "0.1.0 (" OUTPACE_COMMIT ")"; }

bool version_is_commit(void) {
    static const char COMMIT[] = OUTPACE_COMMIT;
    return strcmp(COMMIT, "unknown") != 0 && !strstr(COMMIT, "-dirty");
}

const char *version_compiler(void) {
#ifdef __clang__
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

// --- libraries -------------------------------------------------------------------------------------------

enum { LIBRARIES = 9, VERSION = 64 };

typedef struct {
    const char *name;
    char version[VERSION];
} Library;

static void find_libraries(Library out[LIBRARIES]) {
    static const char *const names[LIBRARIES] = {"jansson", "pcre2",   "utf8proc", "libyaml", "sqlite",
                                                 "gsl",     "openssl", "zlib",     "zstd"};
    char pcre2[VERSION] = ""; // "10.42 2022-12-11"
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    const char *openssl = OpenSSL_version(OPENSSL_VERSION); // "OpenSSL 3.0.17 1 Jul 2025"
    openssl += strcspn(openssl, "0123456789");
    const char *const versions[LIBRARIES] = {
        jansson_version_str(), pcre2,   utf8proc_version(), yaml_get_version_string(), results_library(),
        gsl_version,           openssl, zlibVersion(),      ZSTD_versionString()};
    for (int i = 0; i < LIBRARIES; i++) {
        out[i].name = names[i];
        snprintf(out[i].version, VERSION, "%.*s", (int)strcspn(versions[i], " "), versions[i]);
    }
}

json_t *libraries_json(void) {
    Library list[LIBRARIES];
    json_t *root = json_object();
    find_libraries(list);
    for (int i = 0; i < LIBRARIES; i++) json_object_set_new(root, list[i].name, json_string(list[i].version));
    return root;
}

void libraries_text(Text *out) {
    Library list[LIBRARIES];
    find_libraries(list);
    for (int i = 0; i < LIBRARIES; i++)
        text_printf(out, "%s%s %s", i ? ", " : "", list[i].name, list[i].version);
}
