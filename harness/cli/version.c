// The only object that sees the commit: the Makefile passes it as OUTPACE_COMMIT.
#include "harness/cli/version.h"

#include "results/store.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <gsl/gsl_version.h>
#include <openssl/crypto.h>
#include <pcre2.h>
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

json_t *libraries_json(void) {
    char pcre2[64] = ""; // "10.42 2022-12-11"
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    const char *openssl = OpenSSL_version(OPENSSL_VERSION); // "OpenSSL 3.0.17 1 Jul 2025"
    openssl += strcspn(openssl, "0123456789");
    const char *const all[][2] = {{"jansson", jansson_version_str()},
                                  {"pcre2", pcre2},
                                  {"utf8proc", utf8proc_version()},
                                  {"libyaml", yaml_get_version_string()},
                                  {"sqlite", results_library()},
                                  {"gsl", gsl_version},
                                  {"openssl", openssl},
                                  {"zlib", zlibVersion()},
                                  {"zstd", ZSTD_versionString()}};
    json_t *root = json_object();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        json_object_set_new(root, all[i][0], json_stringn(all[i][1], strcspn(all[i][1], " ")));
    return root;
}

void libraries_text(Text *out) {
    json_auto_t *all = libraries_json();
    json_t *version;
    const char *name;
    json_object_foreach(all, name, version) {
        text_printf(out, "%s%s %s", out->length ? ", " : "", name, json_string_value(version));
    }
}
