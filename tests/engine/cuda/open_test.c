// Opening: every allocation of the device fails once, and nothing is left behind; models that can't fit or
// run are refused in one line; two models are open at once.
#include "tests/support/check.h"
#include "tests/support/random_model.h"
#include "tests/simt/settings.h"

#include "engine/core/session.h"
#include "engine/cuda/cuda.h"
#include "engine/engine.h"
#include "engine/model/make/synth.h"
#include "tests/support/child.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Shape some_shape(void) {
    Random r = test_random(97);
    Shape s = random_dense_shape(&r);
    s.window = 0;
    s.qkv_bias = true;
    s.qk_norm = QK_NORM_HEADS;
    return s;
}

static void every_allocation_fails_once(void **state) {
    (void)state;
    Random r = test_random(98);
    Shape shape = some_shape();
    RandomModel m;
    void *self = NULL;
    int failures = 0;
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    for (bool open = false; !open; failures++) {
        Error e = {0};
        BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = 8};
        simt_settings.fail_after = failures;
        open = cuda_open(&m.model, &o, &self, &e);
        simt_settings.fail_after = -1;
        if (open) break;
        assert_null(self);
        assert_non_null(strstr(e.text, "out of memory"));
        assert_int_equal(simt_live_bytes(), 0);
    }
    assert_true(failures > 30);
    cuda_backend.close(self);
    assert_int_equal(simt_live_bytes(), 0);
    random_model_release(&m);
}

// The shim's device has 1 GiB.
static void what_does_not_fit_is_told(void **state) {
    (void)state;
    Random r = test_random(98);
    Shape shape = some_shape();
    RandomModel m;
    void *self;
    Error e = {0};
    int fits = 0;
    shape.context = 1 << 24;
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = 8};
    assert_false(cuda_open(&m.model, &o, &self, &e));
    assert_int_equal(simt_blocks(), 0); // nothing was loaded
    const char *mend = strstr(e.text, "--context ");
    if (!mend || sscanf(mend, "--context %d would fit", &fits) != 1) fail_msg("no mend in: %s", e.text);
    o.context = fits;
    if (!cuda_open(&m.model, &o, &self, &e)) fail_msg("%s", e.text);
    assert_true(simt_live_bytes() < (size_t)1 << 30);
    cuda_backend.close(self);
    random_model_release(&m);
}

static void what_cannot_run_is_refused(void **state) {
    (void)state;
    Random r = test_random(98);
    Shape shape = some_shape();
    RandomModel m;
    void *self;
    Error e = {0};
    BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = 8};
    shape.head_dim = 258;
    shape.rope.pairs = 129;
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    o.cards = (Cards){1, {1}};
    assert_false(cuda_open(&m.model, &o, &self, &e));
    o.cards = (Cards){0};
    assert_string_equal(e.text, "cuda:1: this machine has 1 NVIDIA GPU, from cuda:0 on");
    assert_false(cuda_open(&m.model, &o, &self, &e));
    assert_non_null(strstr(e.text, "heads of 258 dimensions"));
    assert_true(cuda_usable(0, &e));
    assert_false(cuda_usable(1, &e));
    random_model_release(&m);
}

static void a_machine_without_a_driver_is_told(void **state) {
    (void)state;
    Random r = test_random(98);
    Shape shape = some_shape();
    RandomModel m;
    void *self;
    Error e = {0};
    BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = 8};
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    simt_settings.driver = 11080;
    assert_false(cuda_open(&m.model, &o, &self, &e));
    assert_non_null(strstr(e.text, "the NVIDIA driver here is for CUDA 11.8, this build needs one for "));
    simt_settings.driver = 0;
    assert_false(cuda_open(&m.model, &o, &self, &e));
    assert_non_null(strstr(e.text, "no NVIDIA GPU, or no driver for it"));
    assert_false(cuda_usable(0, &e));
    simt_settings.driver = 13000;
    random_model_release(&m);
}

// The logits of a chain of three after each other, or in turns with another model.
static void run_chain(Session *s, Session *other, float *logits, size_t bytes) {
    Error e = {0};
    for (int i = 0; i < 3; i++) {
        if (other) run_chain(other, NULL, NULL, 0);
        session_begin_step(s, true, LAYOUT_TREE);
        int node = tree_root(&s->tree, i);
        if (!session_run(s, s->shape.layers, &e) || !session_read(s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
        if (logits) memcpy(logits, session_logits(s, node), bytes);
        if (!session_commit(s, node, 1, &e)) fail_msg("%s", e.text);
    }
}

static void two_models_side_by_side(void **state) {
    (void)state;
    enum { MOST = 300 };
    Random r = test_random(99);
    Shape shape = some_shape();
    RandomModel m[2];
    Session s[2];
    float alone[MOST], together[MOST];
    size_t bytes = (size_t)shape.vocab * sizeof(float);
    assert_true(shape.vocab <= MOST);
    for (int i = 0; i < 2; i++) {
        BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = 8, .context = 40};
        void *self;
        Error e = {0};
        random_model_init(&m[i], &shape, DTYPE_BF16, false, &r);
        if (!cuda_open(&m[i].model, &o, &self, &e)) fail_msg("%s", e.text);
        session_init(&s[i], &cuda_backend, self, &shape, &o);
    }
    run_chain(&s[0], NULL, alone, bytes);
    session_reset(&s[0]);
    run_chain(&s[0], &s[1], together, bytes);
    assert_memory_equal(alone, together, bytes);
    for (int i = 0; i < 2; i++) {
        session_release(&s[i]);
        random_model_release(&m[i]);
    }
    assert_int_equal(simt_live_bytes(), 0);
}

// Kernels go into the stream one by one where steps cannot be recorded, and begin in turn where that is
// asked for: with the same bits, and what the kernels are called says so.
static void slower_ways_are_told(void **state) {
    (void)state;
    enum { MOST = 300 };
    if (getenv("OUTPACE_FAKE_GPUS")) skip(); // 8.0 has no early launches to go without
    static const char *const names[] = {"sm_90", "sm_90, none early, steps not recorded: the "};
    Random r = test_random(99);
    Shape shape = some_shape();
    RandomModel m;
    float logits[2][MOST];
    size_t bytes = (size_t)shape.vocab * sizeof(float);
    assert_true(shape.vocab <= MOST);
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    for (int i = 0; i < 2; i++) {
        BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = 8, .context = 40};
        BackendReport report;
        Session s;
        void *self;
        Error e = {0};
        simt_settings.no_graphs = i == 1;
        setenv("OUTPACE_EARLY", i ? "no" : "yes", 1);
        if (!cuda_open(&m.model, &o, &self, &e)) fail_msg("%s", e.text);
        session_init(&s, &cuda_backend, self, &shape, &o);
        run_chain(&s, NULL, logits[i], bytes);
        s.backend->report(s.self, &report);
        assert_true(strncmp(report.isa, names[i], strlen(names[i])) == 0 && (i || !report.isa[5]));
        session_release(&s);
    }
    simt_settings.no_graphs = false;
    unsetenv("OUTPACE_EARLY");
    assert_memory_equal(logits[0], logits[1], bytes);
    random_model_release(&m);
    assert_int_equal(simt_live_bytes(), 0);
}

// What L2 is asked for has no effect on a number.
static void asked_of_l2(void **state) {
    (void)state;
    enum { MOST = 512 };
    static const char *const mega[] = {"0", "1"};
    Random r = test_random(101);
    Shape shape = some_shape();
    RandomModel m;
    float logits[2][MOST];
    size_t bytes = (size_t)shape.vocab * sizeof(float);
    assert_true(shape.vocab <= MOST);
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    for (int i = 0; i < 2; i++) {
        BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = 8, .context = 40};
        Session s;
        void *self;
        Error e = {0};
        size_t before = simt_prefetched();
        setenv("OUTPACE_PREFETCH", mega[i], 1);
        if (!cuda_open(&m.model, &o, &self, &e)) fail_msg("%s", e.text);
        session_init(&s, &cuda_backend, self, &shape, &o);
        run_chain(&s, NULL, logits[i], bytes);
        session_release(&s);
        assert_true((simt_prefetched() > before) == (i == 1));
    }
    unsetenv("OUTPACE_PREFETCH");
    assert_memory_equal(logits[0], logits[1], bytes);
    random_model_release(&m);
}

// Weights that stand in another format than the model's are told with the kernels' name, which every report
// has.
static void rounded_weights_are_told(void **state) {
    static const struct {
        Dtype dtype;
        Compute compute;
        const char *said;
    } rows[] = {
        {DTYPE_F16, COMPUTE_BF16, ", f16 weights rounded to bf16"},
        {DTYPE_BF16, COMPUTE_F16, ", bf16 weights rounded to f16"},
        {DTYPE_F16, COMPUTE_F16, NULL},
        {DTYPE_F16, COMPUTE_F32, NULL},
        {DTYPE_F32, COMPUTE_BF16, NULL},
    };
    Random r = test_random(99);
    Shape shape = some_shape();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        RandomModel m;
        void *self;
        Error e = {0};
        BackendReport report;
        BackendOptions o = {.compute = rows[i].compute, .max_nodes = 8};
        random_model_init(&m, &shape, rows[i].dtype, false, &r);
        if (!cuda_open(&m.model, &o, &self, &e)) fail_msg("%s", e.text);
        cuda_backend.report(self, &report);
        bool told = strstr(report.isa, rows[i].said ? rows[i].said : "rounded") != NULL;
        if (told != (rows[i].said != NULL))
            fail_msg("%s weights, compute %s: '%s'", dtype_name(rows[i].dtype), compute_name(rows[i].compute),
                     report.isa);
        cuda_backend.close(self);
        random_model_release(&m);
    }
}

// Logits of the third of three tokens.
static void logits_of(const char *model, float *logits, size_t bytes) {
    Engine engine;
    Error e = {0};
    EngineOptions o = {.device = "cuda", .context = 64};
    if (!engine_open(&engine, model, &o, NULL, &e)) fail_msg("%s: %s", model, e.text);
    run_chain(&engine.session, NULL, logits, bytes);
    engine_close(&engine);
}

// A shape opens the model that synth writes, without files, in every form of its tensors; and in 8 and 4
// bits.
static void a_shape_needs_no_files(void **state) {
    static const char *const shapes[] = {"tiny", "phi3-mini", "160m-moe"}; // phi3's tensors are fused
    static const char *const sets[] = {
        "hidden_size=64",      "intermediate_size=160",       "moe_intermediate_size=96",
        "num_hidden_layers=2", "num_attention_heads=4",       "num_key_value_heads=2",
        "vocab_size=512",      "num_local_experts=4",         "num_experts_per_tok=2",
        "head_dim=16",         "max_position_embeddings=512", "eos_token_id=2",
        "pad_token_id=0"};
    enum { VOCABULARY = 512, SETS = sizeof sets / sizeof *sets };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        float files[VOCABULARY], none[VOCABULARY], coded[VOCABULARY];
        char name[4096], bits[4200];
        Error e = {0};
        SynthOptions o = {.shape = shapes[i], .sets = sets, .set_count = i ? SETS : 0};
        snprintf(name, sizeof name, "%s", folder_path(*state, shapes[i]));
        if (!model_synth(name, &o, &e)) fail_msg("%s: %s", shapes[i], e.text);
        logits_of(name, files, sizeof files);
        snprintf(name, sizeof name, "%s/config.json", folder_path(*state, shapes[i]));
        logits_of(i ? name : "tiny", none, sizeof none);
        if (memcmp(files, none, sizeof files))
            fail_msg("%s: the first logit is %.9g without files, wanted %.9g", shapes[i], (double)none[0],
                     (double)files[0]);
        for (int b = 4; b <= 8; b += 4) {
            snprintf(bits, sizeof bits, "%s:%d", i ? name : "tiny", b);
            logits_of(bits, coded, sizeof coded);
            assert_true(memcmp(coded, none, sizeof coded) != 0 && isfinite(coded[0]));
        }
    }
    Engine engine;
    Error e = {0};
    assert_false(engine_open(&engine, "tiny", &(EngineOptions){.device = "cpu"}, NULL, &e));
    assert_string_equal(
        e.text,
        "'tiny' is a shape, whose weights only device cuda makes: 'outpace model synth tiny DIR' writes "
        "them into a directory");
    assert_int_equal(simt_live_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_told),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(what_cannot_run_is_refused),
        cmocka_unit_test(a_machine_without_a_driver_is_told),
        cmocka_unit_test(two_models_side_by_side),
        cmocka_unit_test(slower_ways_are_told),
        cmocka_unit_test(asked_of_l2),
        cmocka_unit_test(rounded_weights_are_told),
        cmocka_unit_test_setup_teardown(a_shape_needs_no_files, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
