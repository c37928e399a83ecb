// The program's peak memory (VmHWM) while a prompt of 500 tokens runs and a method of many rows follows:
// weights and cache, and for all else less than 15% of them, so a second copy can't hide anywhere.
#include "tests/support/check.h"
#include "tests/support/child.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PROMPT = 500 };
#ifdef __SANITIZE_ADDRESS__ // its own records of memory are held, too
static const bool measurable = false;
#else
static const bool measurable = true;
#endif

static void print_prompt(Text *ids) {
    for (int i = 0; i < PROMPT; i++) text_printf(ids, "%s%d", i ? "," : "", 3 + i * 7 % 1000);
}

// As --stats says.
static double cache_bytes(const Child *c) {
    double weights = 0, cache = 0;
    const char *line = strstr(text_get(&c->err), "memory ");
    if (!line || sscanf(line, "memory weights %lf GB, cache %lf GB", &weights, &cache) != 2)
        fail_msg("no line on memory in: %s", text_get(&c->err));
    return 1e9 * cache;
}

static void weights_and_cache(void **state) {
    Child c;
    Text ids = {0};
    struct stat weights;
    if (!measurable) skip();
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "68m", "m");
    child_release(&c);
    assert_int_equal(stat(folder_path(*state, "m/model.safetensors"), &weights), 0);
    print_prompt(&ids);
    CHILD_OUTPACE(&c, *state, 0, "generate", "m", "--ids", text_get(&ids), "-n", "20", "--method",
                  "lookahead", "--threads", "2", "--stats");
    double held = (double)weights.st_size + cache_bytes(&c);
    print_message("%.1f MB at most, of which %.1f are weights and cache\n", 1e-6 * (double)c.peak_bytes,
                  1e-6 * held);
    assert_true((double)c.peak_bytes > (double)weights.st_size); // or it is not this that is measured
    assert_true((double)c.peak_bytes <= 1.15 * held);
    child_release(&c);
    text_release(&ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(weights_and_cache, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
