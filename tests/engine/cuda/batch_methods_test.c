// Methods whose sequences share steps on a card (tests/simt), with drafts and adapters that share theirs:
// captured and given states, the likeliest tokens, draws and early exits are each sequence's own.
#include "tests/support/batch_suite.h"
#include "tests/support/check.h"
#include "tests/simt/settings.h"

#include "engine/cuda/cuda.h"

static void methods_write_the_same(void **state) {
    static const char *const methods[] = {
        "eagle3:total=7,depth=2,top=2",    "speculative:adaptive=heuristic,draft_temperature=1,parallel=off",
        "speculative:gamma=5,parallel=on", "early-exit:gamma=2",
        "dflash:draft_temperature=1",      "mtp:gamma=3,top=2,recycle=normed"};
    (void)state;
    const ExactBackend card = {&cuda_backend, cuda_open, NULL, NULL, 0};
    Random r = test_random(64);
    BatchWorld w = {.on = &card, .lanes = 3, .prompts = 4, .most_prompt = 12, .most_tokens = 4};
    batch_world_open(&w, &r);
    batch_same_as_alone(&w, methods, sizeof methods / sizeof *methods, false, &r);
    batch_world_close(&w);
    assert_int_equal(simt_live_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(methods_write_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
