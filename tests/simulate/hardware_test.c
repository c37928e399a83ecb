#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/core/experts.h"
#include "engine/base/text.h"
#include "simulate/hardware.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const StepModel MISTRAL = {.layers = 32,
                                  .width = 4096,
                                  .q_width = 4096,
                                  .kv_width = 1024,
                                  .mlp_width = 14336,
                                  .vocab = 32000,
                                  .weight_bytes = 2,
                                  .cache_bytes = 2};

static void hardware_folder(char out[512]) {
    const char *root = getenv("OUTPACE_ROOT");
    snprintf(out, 512, "%s/configs/hardware", root ? root : ".");
}

static void open_machine(const char *name, Hardware *h) {
    char folder[512], path[1024];
    Error e = {0};
    hardware_folder(folder);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!hardware_open(path, h, &e)) fail_msg("%s", e.text);
}

static double number(Random *r, double low, double high) { return low * pow(high / low, random_uniform(r)); }

static Hardware draw_machine(Random *r) {
    Hardware h = {.bytes_per_s = number(r, 1e10, 5e12), .operations_per_s = number(r, 1e11, 1e15)};
    h.memory_bytes = 1e10;
    hardware_floor(&h);
    h.processors = test_between(r, 1, 200);
    h.least_rows = 1 << test_between(r, 0, 4);
    h.tile_rows = h.least_rows << test_between(r, 0, 4);
    h.tile_columns = 1 << test_between(r, 2, 8);
    h.launch_s = number(r, 1e-8, 1e-5), h.launches = test_between(r, 0, 12);
    h.read_share = number(r, 0.3, 1), h.compute_share = number(r, 0.3, 1);
    h.cache_share = number(r, 0.3, 1), h.attention_share = number(r, 0.05, 1);
    h.head_width = test_between(r, 0, 1) ? 0 : 64 * test_between(r, 1, 4);
    h.overlap = 1 + number(r, 0.1, 10);
    return h;
}

static StepModel draw_model(Random *r) {
    StepModel m = {.layers = test_between(r, 1, 40), .width = 64 * test_between(r, 1, 80)};
    m.q_width = m.width, m.kv_width = m.width / test_between(r, 1, 4);
    m.mlp_width = test_between(r, 0, 4) ? 3 * m.width : 0;
    m.heads = test_between(r, 0, 2) ? m.q_width / 64 : 0;
    m.vocab = test_between(r, 100, 50000);
    m.attention_width = test_between(r, 0, 3) ? 0 : 2 * m.width; // EAGLE's drafts
    m.fc_width = test_between(r, 0, 3) ? 0 : 2 * m.width;
    m.window = test_between(r, 0, 3) ? 0 : test_between(r, 1, 1000);
    m.weight_bytes = test_between(r, 0, 1) ? 2 : 4, m.cache_bytes = 2;
    m.ungated = test_between(r, 0, 3) == 0;
    if (test_between(r, 0, 1)) return m;
    m.experts = (StepExperts){.count = test_between(r, 1, 64), .width = 64 * test_between(r, 1, 20)};
    m.experts.chosen = test_between(r, 1, m.experts.count);
    m.experts.shared = test_between(r, 0, 1) ? 0 : 64 * test_between(r, 1, 20);
    m.experts.share = test_between(r, 0, 1) ? 1 : (double)test_between(r, 1, m.layers) / m.layers;
    return m;
}

static double price(const Hardware *h, const StepModel *m, StepPlan s) {
    return hardware_price(h, m, &s).total;
}

static void assert_not_less(const char *what, double more, double less) {
    if (!(more >= less * (1 - 1e-12))) fail_msg("%s: wanted %.12g or more, got %.12g", what, less, more);
}

// Tiles dealt out to processors one after another, the slowest decides.
static void waves(void **state) {
    (void)state;
    Random r = test_random(1);
    Hardware h = {.processors = 108, .tile_rows = 128, .tile_columns = 128, .least_rows = 16};
    assert_true(hardware_waves(&h, 128, 108 * 128) == 1 && hardware_waves(&h, 128, 109 * 128) == 2);
    assert_true(hardware_waves(&h, 128, 54 * 128) == 0.5 && hardware_waves(&h, 129, 108 * 128) == 2);
    for (int n = 0; n < 500; n++) {
        h = draw_machine(&r);
        int rows = h.tile_rows * test_between(&r, 1, 5) - test_between(&r, 0, h.tile_rows - 1);
        int columns = test_between(&r, 1, 20000), most = 0, dealt[200] = {0}, next = 0;
        int tile = rows > h.tile_rows / 2 ? h.tile_rows : 0;
        if (!tile) continue; // smaller tiles: below
        for (int row = 0; row < rows; row += tile)
            for (int column = 0; column < columns; column += h.tile_columns) dealt[next++ % h.processors]++;
        for (int p = 0; p < h.processors; p++) most = dealt[p] > most ? dealt[p] : most;
        double wanted = next >= h.processors ? most : 1.0 / (h.processors / next);
        if (hardware_waves(&h, rows, columns) != wanted)
            fail_msg("%d x %d in tiles of %d x %d on %d: wanted %g, got %g", rows, columns, tile,
                     h.tile_columns, h.processors, wanted, hardware_waves(&h, rows, columns));
    }
    // A product of few rows takes small tiles, so that one row does not pay for 128.
    h = (Hardware){.processors = 1, .tile_rows = 128, .tile_columns = 128, .least_rows = 16};
    assert_true(hardware_waves(&h, 16, 128) == 1 && hardware_waves(&h, 17, 128) == 1);
}

// Weights of a layer that a row multiplies, or that a step reads which touches so many experts.
static double layer_weights(const StepModel *m, double experts) {
    const StepExperts *x = &m->experts;
    double input = m->attention_width ? m->attention_width : m->width, products = m->ungated ? 2 : 3;
    double dense = products * m->mlp_width, sparse = products * (experts * x->width + x->shared) + x->count;
    if (!x->count) sparse = dense;
    return input * (m->q_width + 2 * m->kv_width) +
           (double)m->width * (m->q_width + m->fc_width + (1 - x->share) * dense + x->share * sparse);
}

// No price is below what the bytes or the operations take; all is finite and the parts sum up.
static void floors(void **state) {
    (void)state;
    Random r = test_random(2);
    for (int n = 0; n < 2000; n++) {
        Hardware h = draw_machine(&r);
        StepModel m = draw_model(&r);
        StepPlan s = step_chain(test_between(&r, 1, 300), test_between(&r, 0, 4000));
        StepPrice p = hardware_price(&h, &m, &s);
        double head = (double)m.width * m.vocab, touched = experts_touched(&m.experts, s.rows);
        double all = m.layers * layer_weights(&m, m.experts.count) + head;
        assert_true(fabs(step_model_bytes(&m) - all * m.weight_bytes) <= 1e-12 * all * m.weight_bytes);
        double read = m.layers * layer_weights(&m, touched) + head,
               used = m.layers * layer_weights(&m, m.experts.chosen) + head;
        assert_not_less("products by bytes", p.products,
                        read * m.weight_bytes / (h.bytes_per_s * h.read_share));
        assert_not_less("products by operations", p.products,
                        2 * used * s.rows / (h.operations_per_s * h.compute_share));
        double sum = p.products + p.attention + p.copy + p.rows + p.launches;
        assert_true(isfinite(p.total) && fabs(sum - p.total) <= 1e-12 * p.total);
    }
}

static void assert_about(const char *what, double got, double wanted) {
    if (fabs(got / wanted - 1) > 1e-9) fail_msg("%s: wanted %.12g, got %.12g", what, wanted, got);
}

// Attention where only reading takes time, and where only computing does: positions counted as they are read
// and seen, the cache once a sequence, no further back than the window.
static void attention(void **state) {
    (void)state;
    Random r = test_random(4);
    for (int n = 0; n < 500; n++) {
        Hardware h = draw_machine(&r), reads = h, computes = h;
        StepModel m = draw_model(&r);
        int k = test_between(&r, 1, 9), w = test_between(&r, 0, 5), context = test_between(&r, 1, 3000);
        StepPlan s = step_batch(k, w, context), copied = s;
        copied.copied = true;
        reads.operations_per_s = 1e40, computes.bytes_per_s = 1e40;
        double visible = m.window && m.window < context ? m.window : context;
        double position = 2 * m.kv_width * m.cache_bytes * m.layers / (h.bytes_per_s * h.read_share);
        double seen = m.window && m.window * (double)s.rows < s.seen ? m.window * (double)s.rows : s.seen;
        double width = h.head_width && m.heads ? m.heads * h.head_width : m.q_width;
        assert_about("reading", hardware_price(&reads, &m, &s).attention,
                     position / h.cache_share * (visible * k + s.rows));
        assert_about("computing", hardware_price(&computes, &m, &s).attention,
                     4.0 * width * seen * m.layers / (h.operations_per_s * h.attention_share));
        if (k > 1)
            assert_about("copying", hardware_price(&h, &m, &copied).copy, position * visible * (1 + k));
        assert_true(hardware_price(&h, &m, &s).copy == 0);
    }
}

// Layers with a window of their own cost what they would in a model of such layers only.
static void local_windows(void **state) {
    (void)state;
    Random r = test_random(5);
    for (int n = 0; n < 500; n++) {
        Hardware h = draw_machine(&r);
        StepModel m = draw_model(&r), local;
        StepPlan s = step_batch(test_between(&r, 1, 9), test_between(&r, 0, 5), test_between(&r, 1, 3000));
        s.copied = true;
        m.plain = test_between(&r, 0, 1), m.score_bytes = 64;
        local = m;
        StepPrice without = hardware_price(&h, &m, &s);
        m.local_window = local.window = test_between(&r, 1, 3000);
        int locals = test_between(&r, 0, m.layers);
        m.local_share = (double)locals / m.layers;
        StepPrice all = hardware_price(&h, &local, &s), got = hardware_price(&h, &m, &s);
        double share = m.local_share;
        assert_about("attention", got.attention, (1 - share) * without.attention + share * all.attention);
        if (s.sequences > 1) assert_about("copy", got.copy, (1 - share) * without.copy + share * all.copy);
        assert_true(got.products == without.products && got.rows == without.rows);
    }
}

// --- experts ---------------------------------------------------------------------------------------------

// Experts that are touched, and tiles that are filled, by rows that draw theirs at random.
static void experts_drawn(void **state) {
    (void)state;
    Random r = test_random(6);
    enum { TRIALS = 600 };
    for (int n = 0; n < 30; n++) {
        StepExperts x = {.count = test_between(&r, 1, 40)};
        x.chosen = test_between(&r, 1, x.count);
        int rows = test_between(&r, 1, 40), order[40];
        double sum = 0, squares = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            bool touched[40] = {false};
            int count = 0;
            for (int row = 0; row < rows; row++) {
                for (int i = 0; i < x.count; i++) order[i] = i;
                for (int i = 0; i < x.chosen; i++) {
                    int other = test_between(&r, i, x.count - 1), expert = order[other];
                    order[other] = order[i];
                    count += !touched[expert];
                    touched[expert] = true;
                }
            }
            sum += count, squares += (double)count * count;
        }
        double mean = sum / TRIALS, error = sqrt(fmax(squares / TRIALS - mean * mean, 0) / TRIALS);
        double wanted = experts_touched(&x, rows);
        if (fabs(mean - wanted) > 5 * error + 10.0 / TRIALS)
            fail_msg("%d of %d, %d rows: %g touched, wanted %g", x.chosen, x.count, rows, mean, wanted);
    }
}

// The engine's choice among random logits touches as many as expected.
static void experts_routed(void **state) {
    (void)state;
    static const struct {
        int count, chosen, rows;
    } CASES[] = {{8, 2, 1}, {8, 2, 4}, {8, 2, 16}, {64, 8, 7}, {128, 8, 32}, {60, 4, 60}};
    enum { TRIALS = 300 };
    Random r = test_random(8);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Experts x = {.count = CASES[i].count, .chosen = CASES[i].chosen};
        StepExperts priced = {.count = x.count, .chosen = x.chosen};
        double sum = 0, wanted = experts_touched(&priced, CASES[i].rows);
        for (int trial = 0; trial < TRIALS; trial++) {
            bool touched[128] = {false};
            for (int row = 0; row < CASES[i].rows; row++) {
                float logits[128];
                Route route;
                for (int k = 0; k < x.count; k++) logits[k] = random_normal(&r);
                experts_choose(&x, logits, &route);
                for (int k = 0; k < x.chosen; k++) {
                    sum += !touched[route.expert[k]];
                    touched[route.expert[k]] = true;
                }
            }
        }
        if (fabs(sum / TRIALS / wanted - 1) > 0.03)
            fail_msg("%d of %d, %d rows: %g routed, wanted %g", x.chosen, x.count, CASES[i].rows,
                     sum / TRIALS, wanted);
    }
}

// One expert that all rows run is an MLP, beside the product that scores it.
static void one_expert(void **state) {
    (void)state;
    Random r = test_random(7);
    for (int n = 0; n < 500; n++) {
        Hardware h = draw_machine(&r);
        StepModel dense = draw_model(&r), sparse;
        StepPlan s = step_chain(test_between(&r, 1, 300), 100);
        dense.experts = (StepExperts){0};
        dense.mlp_width = dense.mlp_width ? dense.mlp_width : 64;
        sparse = dense;
        sparse.experts = (StepExperts){.count = 1, .chosen = 1, .width = dense.mlp_width, .share = 1};
        sparse.mlp_width = test_between(&r, 0, 1) ? 0 : 128;
        double router = dense.layers * hardware_product(&h, s.rows, dense.width, 1, dense.weight_bytes);
        assert_about("products", hardware_price(&h, &sparse, &s).products,
                     hardware_price(&h, &dense, &s).products + router);
        assert_about("rows", hardware_price(&h, &sparse, &s).rows, hardware_price(&h, &dense, &s).rows);
    }
}

// Counted experts take the place of expected ones: fewer are read, and get more rows each.
static void experts_counted(void **state) {
    (void)state;
    Random r = test_random(10);
    for (int n = 0; n < 500; n++) {
        Hardware h = draw_machine(&r), reads = h;
        StepModel m = draw_model(&r);
        StepPlan s = step_chain(test_between(&r, 1, 300), 100), counted = s;
        if (!m.experts.count) continue;
        counted.experts = test_between(&r, m.experts.chosen, m.experts.count);
        reads.operations_per_s = 1e40;
        double each = m.weight_bytes * (m.ungated ? 2 : 3) * (double)m.width * m.experts.width *
                      m.experts.share * m.layers / (h.bytes_per_s * h.read_share);
        double more = counted.experts - experts_touched(&m.experts, s.rows);
        double got = hardware_price(&reads, &m, &counted).products - hardware_price(&reads, &m, &s).products;
        if (!(fabs(got - each * more) <= 1e-9 * hardware_price(&reads, &m, &s).products))
            fail_msg("%g experts more take %g s, wanted %g", more, got, each * more);
        assert_not_less("operations", hardware_price(&h, &m, &counted).products,
                        m.layers * m.experts.share * 2 * s.rows * m.experts.chosen * (m.ungated ? 2 : 3) *
                            (double)m.width * m.experts.width / (h.operations_per_s * h.compute_share));
    }
}

// Where only reading takes time, a step of a mixture rises while it touches more experts, then is flat; the
// dense model of equal active weights is flat throughout.
static void shape_of_transition(void **state) {
    (void)state;
    Hardware h;
    open_machine("h100.json", &h);
    h.operations_per_s = 1e30;
    StepModel m = MISTRAL, dense = MISTRAL; // Mixtral 8x7B
    m.experts = (StepExperts){.count = 8, .chosen = 2, .width = 14336, .share = 1};
    dense.mlp_width = 2 * 14336;
    double before = price(&h, &m, step_chain(1, 100)), first = before;
    assert_true(fabs(before / price(&h, &dense, step_chain(1, 100)) - 1) < 0.01);
    for (int rows = 2; rows <= 128; rows++) {
        double now = price(&h, &m, step_chain(rows, 100)), rise = now - before;
        if (rows < 16) assert_true(rise > 0.001 * first);
        if (rows > 64) assert_true(rise < 0.001 * first);
        before = now;
    }
    double factor = price(&h, &m, step_chain(64, 100)) / first;
    if (factor < 3 || factor > 4) fail_msg("64 rows take %g times one, wanted 3 to 4", factor);
    assert_true(price(&h, &dense, step_chain(64, 100)) / price(&h, &dense, step_chain(1, 100)) < 1.1);
}

static void monotone(void **state) {
    (void)state;
    Random r = test_random(3);
    for (int n = 0; n < 2000; n++) {
        Hardware h = draw_machine(&r), faster = h;
        StepModel m = draw_model(&r);
        int k = test_between(&r, 1, 20), w = test_between(&r, 0, 10), context = test_between(&r, 0, 3000);
        StepPlan batch = step_batch(k, w, context), copied = batch;
        copied.copied = true;
        assert_not_less("longer context", price(&h, &m, step_batch(k, w, context + 100)),
                        price(&h, &m, batch));
        assert_not_less("batch over tree", price(&h, &m, batch), price(&h, &m, step_tree(k, w, context)));
        assert_not_less("copied over viewed", price(&h, &m, copied), price(&h, &m, batch));
        faster.bytes_per_s *= 2;
        assert_not_less("slower memory", price(&h, &m, batch), price(&faster, &m, batch));
        faster = h, faster.operations_per_s *= 2;
        assert_not_less("slower processors", price(&h, &m, batch), price(&faster, &m, batch));
        // Up to a tile, rows are free where tiles bind; whole tiles more never cost less.
        StepPlan few = step_chain(h.tile_rows * k, context),
                 many = step_chain(h.tile_rows * (k + 1), context);
        assert_not_less("more tiles of rows", price(&h, &m, many), price(&h, &m, few));
    }
}

// Positions that nodes see, counted one by one.
// Plain attention moves a score for each row and key, masked ones too, and gains nothing by it.
static void plain_scores(void **state) {
    (void)state;
    Random r = test_random(9);
    for (int round = 0; round < 50; round++) {
        Hardware h = draw_machine(&r);
        StepModel m = draw_model(&r);
        m.score_bytes = 16.0 * test_between(&r, 1, 64);
        int tokens = test_between(&r, 1, 200), context = test_between(&r, 0, 3000);
        int seen = m.window && context > m.window ? m.window : context;
        StepPlan plan = step_chain(tokens, context);
        double flash = hardware_price(&h, &m, &plan).attention;
        m.plain = true;
        double wanted = m.layers * m.score_bytes * tokens * (seen + tokens) / (h.bytes_per_s * h.read_share);
        double got = hardware_price(&h, &m, &plan).attention - flash;
        if (!(fabs(got - wanted) <= 1e-9 * (wanted + flash)))
            fail_msg("%d rows after %d: scores take %g s, wanted %g", tokens, context, got, wanted);
    }
}

static void plans(void **state) {
    (void)state;
    for (int k = 1; k < 5; k++)
        for (int w = 0; w < 5; w++) {
            double tree = 8, batch = 0;
            for (int row = 0; row < k; row++)
                for (int i = 0; i <= w; i++) {
                    batch += 7 + i + 1;
                    if (i > 0) tree += 7 + i + 1;
                }
            assert_true(step_tree(k, w, 7).seen == tree && step_batch(k, w, 7).seen == batch);
            assert_true(step_tree(k, w, 7).rows == 1 + k * w && step_batch(k, w, 7).sequences == k);
        }
    assert_true(step_chain(3, 7).seen == 8 + 9 + 10);
}

// Mistral 7B on the A100 with 40 GB, as in N-Grammys' Figure 1: a token takes what 14.2 GB take at 1,555
// GB/s; a few guesses are nearly free, 32 rows of 16 are not.
static void known_machine(void **state) {
    (void)state;
    Hardware h;
    open_machine("a100-40gb.json", &h);
    double one = price(&h, &MISTRAL, step_chain(1, 100));
    if (one < 0.0090 || one > 0.0105) fail_msg("one token: wanted about 9.5 ms, got %g", 1e3 * one);
    double few = price(&h, &MISTRAL, step_batch(4, 3, 100)) / one;
    double many = price(&h, &MISTRAL, step_batch(32, 15, 500)) / price(&h, &MISTRAL, step_chain(1, 500));
    if (few > 1.1 || many < 1.5)
        fail_msg("slowdowns: wanted under 1.1 and over 1.5, got %g and %g", few, many);
}

// Every file of the folder: adding a machine is adding a file.
static void files(void **state) {
    (void)state;
    char folder[512];
    hardware_folder(folder);
    DIR *d = opendir(folder);
    assert_non_null(d);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(d)); count++) {
        if (entry->d_name[0] == '.') continue;
        Hardware h;
        open_machine(entry->d_name, &h);
        double one = price(&h, &MISTRAL, step_chain(1, 25));
        double floor = 14.2e9 / h.bytes_per_s;
        double reads = h.read_share > 0 ? h.read_share : 1; // of one that was fitted
        if (one < floor || one * reads > 1.2 * floor)
            fail_msg("%s: one token in %g s, its bytes take %g", entry->d_name, one, floor);
    }
    closedir(d);
    assert_true(count > 2);
}

// What reading a machine with these two numbers says; "" where it is good.
static void machine_says(const char *bytes_per_s, const char *processors, char *said) {
    static const char *const REST[] = {"operations_per_s", "memory_bytes", "tile_rows", "tile_columns",
                                       "least_rows",       "launch_s",     "launches"};
    Error e = {0};
    Hardware h;
    Text t = {0};
    text_printf(&t, "{\"name\":\"x\",\"bytes_per_s\":{\"value\":%s,\"source\":\"s\"}", bytes_per_s);
    text_printf(&t, ",\"processors\":{\"value\":%s,\"source\":\"s\"}", processors);
    for (size_t i = 0; i < sizeof REST / sizeof *REST; i++)
        text_printf(&t, ",\"%s\":{\"value\":1,\"source\":\"s\"}", REST[i]);
    text_puts(&t, "}");
    if (hardware_parse(text_get(&t), t.length, "f.json", &h, &e)) assert_true(h.read_share == 1);
    text_release(&t);
    memcpy(said, e.text, sizeof e.text);
}

static void file_mistakes(void **state) {
    (void)state;
    static const char *const ROWS[][2] = {
        {"[]", "f.json: not a JSON object"},
        {"{", "f.json"},
        {"{\"name\":\"x\"}", "'bytes_per_s' must be an object"},
        {"{\"name\":\"x\",\"bytes_per_s\":5}", "'bytes_per_s' must be an object"},
        {"{\"name\":\"x\",\"bytes_per_s\":{\"value\":5}}", "source"},
        {"{\"name\":\"x\",\"bytes_per_s\":{\"value\":5,\"source\":\"\"}}", "\"source\" is empty"},
    };
    char said[sizeof(Error)];
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Hardware h;
        Error e = {0};
        if (hardware_parse(ROWS[i][0], strlen(ROWS[i][0]), "f.json", &h, &e) || !strstr(e.text, ROWS[i][1]))
            fail_msg("%s: wanted '%s', got '%s'", ROWS[i][0], ROWS[i][1], e.text);
    }
    machine_says("0", "2", said);
    assert_non_null(strstr(said, "bytes_per_s is 0"));
    machine_says("9", "2.5", said);
    assert_non_null(strstr(said, "must be a whole number"));
    machine_says("9", "2", said);
    assert_string_equal(said, "");
}

// What is reached of a machine is written beside its data sheet, and read again.
static void written_and_read(void **state) {
    (void)state;
    Hardware h, back;
    Error e = {0};
    open_machine("v100-32gb.json", &h);
    h.read_share = 0.8125, h.compute_share = 0.1, h.attention_share = 1.0 / 3;
    h.row_passes = 7, h.overlap = 1.5, h.step_s = 1e-4, h.cache_share = 0.75;
    h.most_rows = 300, h.head_width = 128;
    char *text = hardware_write(&h, "a sheet", "fitted");
    assert_true(hardware_parse(text, strlen(text), "f.json", &back, &e));
    assert_string_equal(h.name, back.name);
    assert_true(price(&h, &MISTRAL, step_tree(7, 5, 300)) == price(&back, &MISTRAL, step_tree(7, 5, 300)));
    assert_true(back.most_rows == 300 && back.head_width == 128 && back.cache_share == 0.75);
    assert_true(back.row_passes == 7 && back.attention_share == 1.0 / 3 &&
                back.memory_bytes == h.memory_bytes);
    mem_free(text);
    h.overlap = 0.5;
    text = hardware_write(&h, "a sheet", "fitted");
    assert_false(hardware_parse(text, strlen(text), "f.json", &back, &e));
    assert_non_null(strstr(e.text, "overlap is 0.5"));
    mem_free(text);
}

// A data sheet's, until anything of what it reaches is another.
static void floor_or_fitted(void **state) {
    (void)state;
    static const size_t REACHED[] = {offsetof(Hardware, read_share),      offsetof(Hardware, compute_share),
                                     offsetof(Hardware, attention_share), offsetof(Hardware, row_passes),
                                     offsetof(Hardware, overlap),         offsetof(Hardware, step_s),
                                     offsetof(Hardware, cache_share)};
    Hardware h = {.bytes_per_s = 1e12, .operations_per_s = 1e14};
    hardware_floor(&h);
    assert_true(hardware_is_floor(&h));
    for (size_t i = 0; i < sizeof REACHED / sizeof *REACHED; i++) {
        Hardware fitted = h;
        double *reached = (double *)((char *)&fitted + REACHED[i]);
        *reached = *reached > 0 ? 0.9 * *reached : 1e-6;
        if (REACHED[i] == offsetof(Hardware, row_passes)) *reached = 3;
        if (hardware_is_floor(&fitted)) fail_msg("number %zu was fitted", i);
    }
}

// A machine that only reads, one byte a second: prices are bytes.
static Hardware reader(void) {
    Hardware h = {.name = "reader", .bytes_per_s = 1, .operations_per_s = 1e30, .memory_bytes = 1};
    hardware_floor(&h);
    h.row_passes = 0;
    h.processors = h.tile_rows = h.tile_columns = h.least_rows = 1;
    return h;
}

static void assert_bytes(const char *what, double got, double wanted) {
    if (fabs(got - wanted) > 1e-9 * wanted) fail_msg("%s: wanted %.17g bytes, got %.17g", what, wanted, got);
}

// Three sequences of 4 rows over 10 tokens: rows are 12, the weights are read once, each context once. And no
// sequence pays for the scores of the others.
static void shared_steps(void **state) {
    (void)state;
    const StepModel m = {.layers = 2,
                         .width = 8,
                         .q_width = 8,
                         .kv_width = 4,
                         .mlp_width = 12,
                         .vocab = 20,
                         .weight_bytes = 2,
                         .cache_bytes = 2};
    const double layer = 8 * (8 + 2 * 4) + 8 * 8 + 3 * 8 * 12, rows = 12;
    const double moved = 2 * rows * ((8 + 16) + (8 + 8) + (8 + 24) + (12 + 8)), head = 2 * rows * (8 + 20);
    Hardware h = reader();
    StepPlan plan = step_shared(step_chain(4, 10), 3);
    assert_true(plan.rows == 12 && plan.read == 12 && plan.context == 10 && plan.sequences == 3);
    assert_true(plan.seen == 3 * (11 + 12 + 13 + 14));
    StepPrice p = hardware_price(&h, &m, &plan);
    assert_bytes("weights and rows", p.products, 2 * (2 * layer + moved) + 2 * 20 * 8 + head);
    assert_bytes("caches", p.attention, 2 * (2 * (3 * 10 + 12) * 4 * 2));
    h.bytes_per_s = 1e30, h.operations_per_s = 1;
    assert_bytes("scores", hardware_price(&h, &m, &plan).attention, 2 * 4 * 8 * plan.seen);
    StepPlan tree = step_shared(step_tree(3, 2, 10), 5), batch = step_shared(step_batch(3, 2, 10), 5);
    assert_true(tree.rows == 35 && tree.sequences == 5 && batch.rows == 45 && batch.sequences == 15);
}

// A group of 64 codes has a scale of two bytes; the head has 8 bits, routers and adapters stay as they were;
// products cost as many operations.
static void codes(void **state) {
    (void)state;
    for (int bits = 4; bits <= 16; bits *= 2)
        for (int experts = 0; experts < 2; experts++) {
            StepModel m = {.layers = 2,
                           .width = 64,
                           .q_width = 64,
                           .kv_width = 32,
                           .mlp_width = 96,
                           .vocab = 200,
                           .weight_bytes = 2,
                           .cache_bytes = 2};
            if (experts) m.experts = (StepExperts){.count = 4, .chosen = 4, .width = 96, .share = 1};
            StepModel coded = m;
            Hardware h = reader();
            StepPlan one = step_chain(1, 0);
            step_model_code(&coded, bits, 64);
            double mlps = experts ? 4 : 1, layer = 64 * (64 + 2 * 32) + 64 * 64 + mlps * 3 * 64 * 96;
            double router = experts ? 64 * 4 : 0, head = 200 * 64;
            double each = bits == 16 ? 2 : bits / 8.0 + 2.0 / 64, of_head = bits == 16 ? 2 : 1 + 2.0 / 64;
            double wanted = 2 * (each * layer + 2 * router) + of_head * head;
            assert_bytes("weights", step_model_bytes(&coded), wanted);
            double moved = hardware_price(&h, &m, &one).products - step_model_bytes(&m); // by rows
            assert_bytes("a step", hardware_price(&h, &coded, &one).products, wanted + moved);
            h.bytes_per_s = 1e30, h.operations_per_s = 1;
            assert_true(hardware_price(&h, &coded, &one).total == hardware_price(&h, &m, &one).total);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floor_or_fitted), cmocka_unit_test(written_and_read),
        cmocka_unit_test(waves),           cmocka_unit_test(floors),
        cmocka_unit_test(local_windows),   cmocka_unit_test(experts_drawn),
        cmocka_unit_test(one_expert),      cmocka_unit_test(experts_routed),
        cmocka_unit_test(experts_counted), cmocka_unit_test(shape_of_transition),
        cmocka_unit_test(monotone),        cmocka_unit_test(attention),
        cmocka_unit_test(plain_scores),    cmocka_unit_test(plans),
        cmocka_unit_test(known_machine),   cmocka_unit_test(files),
        cmocka_unit_test(file_mistakes),   cmocka_unit_test(shared_steps),
        cmocka_unit_test(codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
