// A point's hash finds its results in a store, so it may never change: the hashes of all points that the
// configs run, added baselines included, at all scales, against those on record (tests/fixtures/hashes.txt).
// A config that changes changes its line.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "harness/config/schedule.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_config(const char *path, const char *scale, Text *out) {
    Experiment x = {0};
    Sweep sweep = {0};
    Schedule s = {0};
    Text all = {0};
    Error e = {0};
    char hash[SHA256_TEXT];
    const ExperimentChanges changes = {.scale = scale};
    if (!experiment_open(&x, path, &changes, &e)) {
        if (!strstr(e.text, "doesn't have that scale")) fail_msg("%s", e.text);
        return;
    }
    if (!sweep_expand(&x, &sweep, &e) || !schedule_make(&x, &sweep, &s, &e)) fail_msg("%s", e.text);
    for (int i = 0; i < s.point_count; i++) text_printf(&all, "%s\n", s.points[i].hash);
    assert_true(sha256_bytes(text_get(&all), all.length, hash, &e));
    text_printf(out, "%s %s %d %.16s\n", strrchr(path, '/') + 1, scale, s.point_count, hash);
    text_release(&all);
    schedule_release(&s);
    sweep_release(&sweep);
    experiment_release(&x);
}

static void hashes_are_kept(void **state) {
    (void)state;
    const char *configs = getenv("OUTPACE_CONFIGS"), *root = getenv("OUTPACE_ROOT");
    char *pattern = file_path(configs ? configs : "configs", "*.yaml"), *want;
    char *record = file_path(root ? root : ".", "tests/fixtures/hashes.txt");
    size_t n;
    Text got = {0};
    Error e = {0};
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        add_config(found.gl_pathv[i], "full", &got);
        add_config(found.gl_pathv[i], "small", &got);
        add_config(found.gl_pathv[i], "smoke", &got);
    }
    if (!file_read(record, 1 << 20, &want, &n, &e)) fail_msg("%s", e.text);
    if (strcmp(want, text_get(&got)) != 0) {
        puts(text_get(&got)); // longer than a message of cmocka's
        fail_msg("the hashes above are not those on record");
    }
    globfree(&found);
    mem_free(want);
    mem_free(pattern);
    mem_free(record);
    text_release(&got);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(hashes_are_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
