// The configs run their sources' settings at full scale: resolved parameters, so that a preset can't drift;
// and every published number has a comparable point.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "harness/config/sweep.h"
#include "harness/papers/catalogue.h"
#include "harness/papers/match.h"
#include "results/published.h"

#include <stdio.h>
#include <string.h>

// All points of `method`'s kind for the model and the dataset are one of the rows given for them.
typedef struct {
    const char *config, *model, *dataset, *method;
} Source;

static const Source SOURCES[] = {
    // thunlp/Ouroboros@7dac65b: gamma, W, level by defaults and last comments of benchmark/test_*.py; topk 3
    {"ouroboros-figure-4", "Yi-34B", "humaneval:ouroboros",
     "ouroboros:mode=reference,gamma=12,W=20,window=20,beta=7,K=3,warm=*"},
    {"ouroboros-figure-4", "DeepSeek-Coder-33B", "humaneval:ouroboros",
     "ouroboros:mode=reference,gamma=11,W=20,window=20,beta=7,K=3,warm=*"},
    {"ouroboros-figure-4", "CodeLlama-34B", "humaneval:ouroboros",
     "ouroboros:mode=reference,gamma=10,W=20,window=20,beta=6,K=3,warm=*"},
    {"ouroboros-figure-4", "Yi-34B", "mbpp",
     "ouroboros:mode=reference,gamma=12,W=18,window=18,beta=5,K=3,warm=*"},
    {"ouroboros-figure-4", "DeepSeek-Coder-33B", "mbpp",
     "ouroboros:mode=reference,gamma=7,W=15,window=15,beta=5,K=3,warm=*"},
    {"ouroboros-figure-4", "CodeLlama-34B", "mbpp",
     "ouroboros:mode=reference,gamma=8,W=16,window=16,beta=6,K=3,warm=*"},
    {"ouroboros-table-2", "Yi-34B", "gsm8k:ouroboros",
     "ouroboros:mode=reference,gamma=4,W=15,window=15,beta=6,K=3,warm=*"},
    {"ouroboros-table-2", "LLaMA-2-Chat-70B", "gsm8k:ouroboros",
     "ouroboros:mode=reference,gamma=6,W=17,window=17,beta=6,K=3,warm=*"},
    {"ouroboros-table-2", "Yi-34B", "cnndm:ouroboros",
     "ouroboros:mode=reference,gamma=10,W=15,window=15,beta=5,K=3,warm=*"},
    {"ouroboros-table-2", "LLaMA-2-Chat-70B", "cnndm:ouroboros",
     "ouroboros:mode=reference,gamma=4,W=13,window=13,beta=5,K=3,warm=*"},
    {"ouroboros-table-2", "Yi-34B", "wmt16:ouroboros",
     "ouroboros:mode=reference,gamma=4,W=20,window=20,beta=7,K=3,warm=*"},
    {"ouroboros-table-3", "Yi-34B", "humaneval:ouroboros",
     "ouroboros:mode=reference,gamma=12,W=20,window=20,beta=7,K=*,suffixes=*,inspiration=*,refine=*"},
    {"ouroboros-figure-5", "Yi-34B", "humaneval:ouroboros",
     "ouroboros:mode=reference,gamma=12,W=20,window=20,beta=7,K=*"},
    // hemingkx/Spec-Bench@fd2c1cd, eval.sh: --level 5 --window 7 --guess 7, for all sizes
    {"kangaroo-table-1", "Vicuna-7B", "spec-bench", "lookahead:mode=reference,N=5,W=7,G=7"},
    {"kangaroo-table-1", "Vicuna-13B", "spec-bench", "lookahead:mode=reference,N=5,W=7,G=7"},
    // Lookahead's paper, Table 4 for 7B; by its authors' code, and by the paper's algorithm beside it
    {"lookahead-table-2", "LLaMA-2-7B-Chat", "cnndm:lookahead", "lookahead:mode=reference,N=5,W=15,G=15"},
    {"lookahead-table-2", "LLaMA-2-7B-Chat", "cnndm:lookahead", "lookahead:N=5,W=15,G=15"},
    {"lookahead-figure-5", "CodeLlama-34B", "humaneval", "lookahead:mode=reference,N=5,W=7,G=7"},
    {"lookahead-figure-5", "CodeLlama-34B", "humaneval", "lookahead:N=5,W=7,G=7"},
    {"lookahead-figure-6", "LLaMA-2-Chat-7B", "mt-bench", "lookahead:mode=reference,N=5,W=15,G=15,ranks=*"},
    {"lookahead-figure-6", "LLaMA-2-Chat-7B", "mt-bench", "lookahead:N=5,W=15,G=15,ranks=*"},
    {"lookahead-figure-7", "LLaMA-2-Chat-13B", "mt-bench", "lookahead:mode=reference,N=5,W=10,G=10,ranks=*"},
    {"lookahead-figure-7", "LLaMA-2-Chat-13B", "mt-bench", "lookahead:N=5,W=10,G=10,ranks=*"},
    {"lookahead-figure-8", "LLaMA-2-7B-Chat", "mt-bench", "lookahead:mode=reference,N=5,W=*,G=*"},
    {"lookahead-figure-8", "LLaMA-2-7B-Chat", "mt-bench", "lookahead:N=5,W=*,G=*"},
    // N-Grammys: the unigram of its appendix, that of its text beside it
    {"ngrammys-figure-2", "Mistral-7B-Instruct", "humaneval",
     "ngrammys:strategy=unigram,order=inner,w=1,k=*"},
    {"ngrammys-figure-2", "Mistral-7B-Instruct", "humaneval",
     "ngrammys:strategy=unigram,order=distance,w=1,k=*"},
    {"ngrammys-figure-2", "Mistral-7B-Instruct", "humaneval", "ngrammys:strategy=bigram,w=1,k=*"},
    {"ngrammys-figure-2", "Mistral-7B-Instruct", "humaneval", "ngrammys:strategy=extended,w=*,k=*"},
};
enum { SOURCE_COUNT = sizeof SOURCES / sizeof *SOURCES };

typedef struct {
    Experiment x;
    Sweep sweep;
} Config;

static Config *config_open(const char *name) {
    char path[256];
    Error e = {0};
    Config *c = mem_new(1, sizeof *c);
    const ExperimentChanges changes = {.scale = "full"};
    snprintf(path, sizeof path, "configs/%s.yaml", name);
    if (!experiment_open(&c->x, path, &changes, &e) || !sweep_expand(&c->x, &c->sweep, &e))
        fail_msg("%s", e.text);
    return c;
}

static void config_close(Config *c) {
    sweep_release(&c->sweep);
    experiment_release(&c->x);
    mem_free(c);
}

static bool is_at(const Config *c, const Point *p, const Source *s) {
    return strcmp(c->x.models[p->model].name, s->model) == 0 &&
           strcmp(c->x.datasets[p->dataset].name, s->dataset) == 0;
}

static bool same_place(const Source *a, const Source *b) {
    return strcmp(a->config, b->config) == 0 && strcmp(a->model, b->model) == 0 &&
           strcmp(a->dataset, b->dataset) == 0 && method_text_same_method(a->method, b->method);
}

static bool named_by_one(const Source *of, const char *decoder) {
    for (int i = 0; i < SOURCE_COUNT; i++)
        if (same_place(&SOURCES[i], of) && method_text_differences(SOURCES[i].method, decoder, NULL) == 0)
            return true;
    return false;
}

static void configs_are_their_sources(void **state) {
    (void)state;
    for (int i = 0; i < SOURCE_COUNT; i++) {
        const Source *s = &SOURCES[i];
        Config *c = config_open(s->config);
        int exact = 0;
        for (int k = 0; k < c->sweep.count; k++) {
            const Point *p = &c->sweep.points[k];
            if (p->method < 0 || !is_at(c, p, s) || !method_text_same_method(s->method, p->decoder)) continue;
            exact += method_text_differences(s->method, p->decoder, NULL) == 0;
            if (!named_by_one(s, p->decoder))
                fail_msg("%s, %s, %s: no source names '%s'", s->config, s->model, s->dataset, p->decoder);
        }
        if (!exact) fail_msg("%s, %s, %s: no point is '%s'", s->config, s->model, s->dataset, s->method);
        config_close(c);
    }
}

// Table 4 of Ouroboros varies the order: all orders have the same prompts.
static void orders_share_their_prompts(void **state) {
    (void)state;
    Config *c = config_open("ouroboros-table-4");
    assert_int_equal(c->x.dataset_count, 5);
    for (int i = 0; i < 5; i++) {
        const DatasetSpec *d = &c->x.datasets[i];
        assert_int_equal(d->limit, 20);
        assert_int_not_equal(d->order, 1); // shuffled: others than the first rows
        assert_int_equal(d->parts.count, 4);
    }
    config_close(c);
}

// Figures 5 to 7 of Lookahead: every point without FlashAttention and with it (section 5.2).
static void bars_have_both_attentions(void **state) {
    (void)state;
    static const char *const NAMES[] = {"lookahead-figure-5", "lookahead-figure-6", "lookahead-figure-7"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        Config *c = config_open(NAMES[i]);
        int count[2] = {0};
        for (int k = 0; k < c->sweep.count; k++) count[c->sweep.points[k].settings.engine.attention]++;
        assert_true(count[ATTENTION_FLASH] > 10);
        assert_int_equal(count[ATTENTION_FLASH], count[ATTENTION_PLAIN]);
        config_close(c);
    }
}

// One dataset serves three instruct models in N-Grammys' Table 1: each has its own chat template around it.
static void templates_are_the_models(void **state) {
    (void)state;
    static const char *const WANTED[] = {"mistral", "phi-3", "vicuna"};
    Config *c = config_open("ngrammys-table-1");
    assert_int_equal(c->x.model_count, 3);
    for (int m = 0; m < 3; m++) {
        assert_string_equal(experiment_template(&c->x, m, 0, true), WANTED[m]);
        assert_null(experiment_template(&c->x, m, 1, false)); // HumanEval is code to complete
        assert_string_equal(experiment_template(&c->x, m, 2, true), WANTED[m]);
    }
    assert_string_equal(experiment_template(&c->x, 0, 1, true), "mistral"); // by default, if it asks
    config_close(c);
}

// --- published rows

static bool has_point(const Config *c, const PublishedRow *row) {
    bool here = false;
    for (int k = 0; k < c->sweep.count; k++) {
        const Point *p = &c->sweep.points[k];
        const char *dataset = c->x.datasets[p->dataset].name;
        size_t n = strlen(row->dataset);
        bool model = !*row->model || table_match_same_model(row, c->x.models[p->model].name);
        bool set = !n || (strncmp(row->dataset, dataset, n) == 0 && (!dataset[n] || dataset[n] == ':'));
        if (!model || !set) continue;
        here = true;
        if (p->method < 0 ? strcmp(row->method, "autoregressive") == 0
                          : method_text_same_method(row->method, p->decoder) &&
                                method_text_differences(row->method, p->decoder, NULL) == 0)
            return true;
    }
    return !here || strcmp(row->method, "autoregressive") == 0; // a model or set that is left out
}

static void published_rows_have_points(void **state) {
    (void)state;
    static const char *const PREFIXES[] = {"lookahead-", "kangaroo-table-1", "ouroboros-"};
    Catalogue *all = mem_new(1, sizeof *all);
    int checked = 0;
    catalogue_open(all);
    for (int i = 0; i < all->item_count; i++) {
        const CatalogueItem *item = &all->items[i];
        bool wanted = false;
        for (size_t k = 0; k < sizeof PREFIXES / sizeof *PREFIXES; k++)
            wanted |= strncmp(item->name, PREFIXES[k], strlen(PREFIXES[k])) == 0;
        if (!wanted || item->full) continue;
        Published published;
        Config *c = config_open(item->experiment);
        const PublishedItem *found = published_find(item->name);
        assert_non_null(found);
        published_open(&published, found);
        for (size_t r = 0; r < published.row_count; r++) {
            const PublishedRow *row = &published.rows[r];
            if (!*row->method || strcmp(row->value, "NA") == 0) continue;
            if (!has_point(c, row))
                fail_msg("%s: no point is '%s' for '%s'", item->name, row->method, row->row);
            checked++;
        }
        published_release(&published);
        config_close(c);
    }
    print_message("%d rows\n", checked);
    assert_true(checked > 100);
    catalogue_release(all);
    mem_free(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configs_are_their_sources),  cmocka_unit_test(orders_share_their_prompts),
        cmocka_unit_test(bars_have_both_attentions),  cmocka_unit_test(templates_are_the_models),
        cmocka_unit_test(published_rows_have_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
