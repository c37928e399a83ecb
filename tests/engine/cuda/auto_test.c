// Device auto takes the first usable GPU, else the CPU, and gives the reason why the first is skipped
// (tests/simt). Sizes beyond a GPU's memory are cut, or refused.
#include "tests/support/check.h"

#include "engine/engine.h"
#include "engine/model/make/synth.h"
#include "tests/simt/settings.h"
#include "tests/support/folder.h"

#include <stdlib.h>
#include <string.h>

static void check_taken(const char *model, const char *gpus, const char *isa, const char *uuid_end) {
    Engine engine;
    BackendReport r;
    Gauge g;
    Error e = {0};
    EngineOptions o = {.device = "auto", .context = 8, .threads = 1, .isa = "portable"};
    if (!engine_open(&engine, model, &o, NULL, &e)) fail_msg("GPUs '%s': %s", gpus, e.text);
    engine.session.backend->report(engine.session.self, &r);
    if (strcmp(r.isa, isa) != 0) fail_msg("GPUs '%s': wanted %s, got %s", gpus, isa, r.isa);
    engine_close(&engine);
    bool is_gpu = engine_gauge("auto", 0, &g, &e);
    if (is_gpu != (uuid_end != NULL) || e.kind != ERROR_NONE) fail_msg("GPUs '%s': %s", gpus, e.text);
    if (is_gpu && strcmp(g.uuid + strlen(g.uuid) - 2, uuid_end) != 0)
        fail_msg("GPUs '%s': wanted that of %s, got %s", gpus, uuid_end, g.uuid);
}

static void the_first_of_use(void **state) {
    static const struct {
        const char *gpus, *isa, *uuid_end; // NULL: the CPU
        bool passes_over;
    } rows[] = {
        {"", "portable", NULL, false},     {"90,75", "sm_90", "01", false}, {"75,80", "sm_80", "02", true},
        {"75,70,90", "sm_90", "03", true}, {"75", "portable", NULL, true},
    };
    const char *model = folder_path(*state, "model");
    Error e = {0};
    if (!model_synth(model, &(SynthOptions){.shape = "tiny"}, &e)) fail_msg("%s", e.text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Error why = {0};
        setenv("OUTPACE_FAKE_GPUS", rows[i].gpus, 1);
        check_taken(model, rows[i].gpus, rows[i].isa, rows[i].uuid_end);
        if (engine_passes_over("auto", &why) != rows[i].passes_over)
            fail_msg("GPUs '%s' are told of with '%s'", rows[i].gpus, why.text);
        if (rows[i].passes_over && !strstr(why.text, "cuda:0: 'SIMT shim' is of compute capability 7.5"))
            fail_msg("GPUs '%s': got '%s'", rows[i].gpus, why.text);
        assert_false(engine_passes_over("cuda", &why) || engine_passes_over(NULL, &why));
    }
}

// A driver that is too old for this build hides all GPUs: the CPU is not taken without a word.
static void an_old_driver_is_told(void **state) {
    (void)state;
    Error why = {0};
    Gauge g;
    simt_settings.driver = 12040;
    assert_true(engine_passes_over("auto", &why));
    assert_non_null(strstr(
        why.text,
        "the NVIDIA driver here is for CUDA 12.4, this build needs one for 13: update it (580 or later), or "
        "install cuda-compat-13-0 (data-centre cards), or build with CUDA 12"));
    assert_false(engine_gauge("auto", 0, &g, &why));
    simt_settings.driver = 0; // none
    assert_false(engine_passes_over("auto", &why));
    simt_settings.driver = 13000;
}

// Several cards of one device, and what a run of several devices is on.
static void lists_of_cards(void **state) {
    static const char *const refused[] = {"cuda:0,cuda:0", "cuda:0,cpu", "cuda:0,", "cpu,cuda:0",
                                          "cuda:0 cuda:1"};
    (void)state;
    Text list = {0};
    Gauge g;
    setenv("OUTPACE_FAKE_GPUS", "90,90,80", 1);
    engine_list_gpus("cuda:1+cuda:0", &list);
    engine_list_gpus("cpu", &list);
    engine_list_gpus("auto", &list);
    engine_list_gpus("cuda:2", &list);
    assert_string_equal(text_get(&list), "cuda:1,cuda:0,cuda:2");
    assert_true(engine_gauge(text_get(&list), 2, &g, NULL) && g.uuid[strlen(g.uuid) - 1] == '3');
    assert_false(engine_gauge(text_get(&list), 3, &g, NULL));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        Error e = {0};
        assert_false(engine_gauge(refused[i], 0, &g, &e));
        if (!strstr(e.text, refused[i])) fail_msg("'%s' is told as '%s'", refused[i], e.text);
    }
    text_release(&list);
}

// Each rank of a machine has the card of its number, unless the device names one.
static void cards_of_ranks(void **state) {
    static const struct {
        const char *device, *want;
        int local;
    } cases[] = {{"cuda", "cuda:1", 1},   {"auto", "cuda:2", 2}, {"auto", "auto", 3},
                 {"cuda:0", "cuda:0", 1}, {"cpu", "cpu", 1},     {"cuda:0,cuda:1", "cuda:0,cuda:1", 1}};
    (void)state;
    setenv("OUTPACE_FAKE_GPUS", "90,90,80", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[ARG_TEXT_SIZE];
        engine_local_device(cases[i].device, cases[i].local, out);
        assert_string_equal(out, cases[i].want);
    }
}

// The shim's device has 1 GiB: a context that nobody asked for is cut to half of what fits, one that is asked
// for is taken, or refused.
static void a_context_that_fits(void **state) {
    static const char *const sets[] = {"max_position_embeddings=16777216"};
    const char *model = folder_path(*state, "long");
    EngineOptions o = {.device = "cuda"}, half = o;
    Engine engine;
    Error e = {0};
    unsetenv("OUTPACE_FAKE_GPUS");
    if (!model_synth(model, &(SynthOptions){.shape = "tiny", .sets = sets, .set_count = 1}, &e) ||
        !engine_open(&engine, model, &o, NULL, &e))
        fail_msg("%s", e.text);
    int fits = engine.fits;
    assert_in_range(fits, 1 << 16, (1 << 24) - 1);
    assert_int_equal(engine.session.context, fits / 2);
    half.beside = &engine; // as a draft of half its size
    half.context = engine.session.context / 2;
    Engine draft;
    if (!engine_open(&draft, model, &half, NULL, &e)) fail_msg("%s", e.text);
    assert_int_equal(draft.fits, 0);
    engine_close(&draft);
    engine_close(&engine);
    o.context = fits;
    if (!engine_open(&engine, model, &o, NULL, &e)) fail_msg("%s", e.text);
    assert_true(engine.fits == 0 && engine.session.context == fits);
    engine_close(&engine);
    o.context = 1 << 24;
    assert_false(engine_open(&engine, model, &o, NULL, &e));
    assert_non_null(strstr(e.text, "would fit"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_of_use, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_context_that_fits, folder_setup, folder_teardown),
        cmocka_unit_test(lists_of_cards), cmocka_unit_test(cards_of_ranks),
        cmocka_unit_test(an_old_driver_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
