// The list of tables and figures against the configs: each item is made by an existing config or command,
// each config names its items, and each can be read at both scales, with data that look like the published
// ones.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "harness/papers/catalogue.h"
#include "harness/config/sweep.h"
#include "tests/support/child.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// --- the lists -------------------------------------------------------------------------------------------

static Catalogue *opened(void) {
    Catalogue *c = mem_new(1, sizeof *c);
    catalogue_open(c);
    return c;
}

static void closed(Catalogue *c) {
    catalogue_release(c);
    mem_free(c);
}

static void items_are_whole(void **state) {
    (void)state;
    static const char *const papers[] = {"lookahead-", "ngrammys-", "kangaroo-", "ouroboros-", "mistral-"};
    static const int wanted[] = {9, 10, 6, 7, 2};
    int counts[5] = {0};
    Catalogue *c = opened();
    assert_int_equal(c->item_count, CATALOGUE_ITEMS);
    for (int i = 0; i < c->item_count; i++) {
        const CatalogueItem *item = &c->items[i];
        for (int k = 0; k < 5; k++) counts[k] += strncmp(item->name, papers[k], strlen(papers[k])) == 0;
        if (!item->title || !item->experiment || !item->then || !item->needs || !item->takes)
            fail_msg("%s lacks something", item->name);
        if (!item->full != !item->smoke) fail_msg("%s has a command at one scale only", item->name);
        for (int k = 0; k < i; k++) assert_string_not_equal(c->items[k].name, item->name);
    }
    for (int k = 0; k < 5; k++)
        if (counts[k] != wanted[k]) fail_msg("%s: wanted %d, got %d", papers[k], wanted[k], counts[k]);
    closed(c);
}

static void claims_are_whole(void **state) {
    (void)state;
    static const char *const states[] = {"measured", "computed", "simulated", "not run"};
    Catalogue *c = opened();
    assert_true(c->claim_count > 40);
    for (int i = 0; i < c->claim_count; i++) {
        const CatalogueClaim *claim = &c->claims[i];
        bool known = false;
        assert_true(claim->paper && claim->where && claim->claim && claim->state && claim->stands &&
                    claim->holds_when);
        if ((strncmp(claim->holds_when, "no query: ", 10) == 0) != !claim->query)
            fail_msg("'%s': without a query it says why, and with one when it holds", claim->claim);
        for (int k = 0; k < 4; k++) known |= strcmp(states[k], claim->state) == 0;
        if (!known) fail_msg("'%s': there is no state '%s'", claim->claim, claim->state);
        const char *page = strstr(claim->stands, "results/"), *end = page ? strstr(page, ".md") : NULL;
        char path[256];
        if (end) {
            snprintf(path, sizeof path, "%.*s", (int)(end + 3 - page), page);
            if (!file_exists(path)) fail_msg("'%s': there is no '%s'", claim->claim, path);
        }
    }
    closed(c);
}

static void items_are_found(void **state) {
    (void)state;
    Error e = {0};
    Catalogue *c = opened();
    const CatalogueItem *item = catalogue_find(c, "lookahead-figure-4b", &e);
    assert_string_equal(item->experiment, "lookahead-figure-4");
    assert_null(catalogue_find(c, "lookahead-tabel-3", &e));
    assert_string_equal(
        e.text, "no table or figure is called 'lookahead-tabel-3'; did you mean 'lookahead-table-3'?");
    assert_null(catalogue_find(c, "elephants", &e));
    closed(c);
}

// --- the configs -----------------------------------------------------------------------------------------

static const char *const SCALES[] = {"full", "smoke"};

static bool is_listed(const Experiment *x, const char *name) {
    for (int i = 0; i < x->tables.count; i++)
        if (strcmp(x->tables.items[i], name) == 0) return true;
    for (int i = 0; i < x->plots.count; i++)
        if (strcmp(x->plots.items[i], name) == 0) return true;
    return false;
}

// Its points at a scale; the config stays open.
static int points_of(const char *name, const char *scale, Experiment *x) {
    char path[256];
    Error e = {0};
    Sweep sweep;
    const ExperimentChanges changes = {.scale = scale};
    snprintf(path, sizeof path, "configs/%s.yaml", name);
    if (!experiment_open(x, path, &changes, &e) || !sweep_expand(x, &sweep, &e)) fail_msg("%s", e.text);
    int count = sweep.count;
    sweep_release(&sweep);
    return count;
}

static void each_item_has_its_config(void **state) {
    (void)state;
    Catalogue *c = opened();
    Experiment *x = mem_new(1, sizeof *x);
    for (int i = 0; i < c->item_count; i++) {
        const CatalogueItem *item = &c->items[i];
        int points[2];
        if (item->full) continue; // of steps alone: no experiment
        for (int k = 0; k < 2; k++) {
            points[k] = points_of(item->experiment, SCALES[k], x);
            assert_string_equal(x->name, item->experiment);
            if (!is_listed(x, item->name)) fail_msg("%s does not say that it is for %s", x->name, item->name);
            if (!x->chosen.count) fail_msg("%s says nothing of what it chose", x->name);
            experiment_release(x);
        }
        if (points[0] < 2 || points[1] < 2)
            fail_msg("%s: %d and %d points", item->name, points[0], points[1]);
    }
    mem_free(x);
    closed(c);
}

static void each_config_is_for_an_item(void **state) {
    (void)state;
    Catalogue *c = opened();
    Experiment *x = mem_new(1, sizeof *x);
    DIR *dir = opendir("configs");
    int count = 0;
    assert_non_null(dir);
    for (struct dirent *f; (f = readdir(dir));) {
        char name[256];
        size_t n = strlen(f->d_name);
        if (n < 6 || n > 200 || strcmp(f->d_name + n - 5, ".yaml") != 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)(n - 5), f->d_name);
        points_of(name, NULL, x);
        for (int i = 0; i < x->tables.count + x->plots.count; i++) {
            Error e = {0};
            const char *item = i < x->tables.count ? x->tables.items[i] : x->plots.items[i - x->tables.count];
            if (!catalogue_find(c, item, &e)) fail_msg("%s: %s", name, e.text);
        }
        count += x->tables.count + x->plots.count > 0;
        experiment_release(x);
    }
    assert_int_equal(count, 21);
    closedir(dir);
    mem_free(x);
    closed(c);
}

// --- with a model, and look-alikes of published data -----------------------------------------------------

static const struct {
    const char *folder, *file, *row;
} LOOKS[] = {
    {"mt_bench", "question.jsonl",
     "{\"question_id\": %d, \"category\": \"math\", \"turns\": [\"a\", \"b\"]}"},
    {"spec_bench", "question.jsonl", "{\"question_id\": %d, \"category\": \"rag\", \"turns\": [\"a\"]}"},
    {"humaneval", "HumanEval.jsonl",
     "{\"task_id\": \"H/%d\", \"prompt\": \"def f():\\n\", \"canonical_solution\": \"r\"}"},
    {"mbpp", "mbpp.jsonl",
     "{\"task_id\": %d, \"text\": \"Add one.\", \"code\": \"r\", \"test_list\": [\"assert f(1) == 2\"]}"},
    {"gsm8k", "test.jsonl", "{\"question\": \"How many are %d?\", \"answer\": \"2\\n#### 2\"}"},
    {"classeval", "ClassEval_data.json",
     "{\"task_id\": \"C_%d\", \"skeleton\": \"class A:\\n    pass\", \"solution_code\": \"r\", "
     "\"import_statement\": "
     "[\"import os\"], \"class_description\": \"    \\\"It.\\\"\\n\", \"class_constructor\": \"class A: "
     "\\n\"}"},
    {"cnndm", "validation.jsonl", "{\"id\": \"i%d\", \"article\": \"News.\", \"highlights\": \"r\"}"},
    {"cnndm", "test.jsonl", "{\"id\": \"i%d\", \"article\": \"News.\", \"highlights\": \"r\"}"},
    {"xsum", "validation.jsonl", "{\"id\": \"i%d\", \"document\": \"News.\", \"summary\": \"r\"}"},
    {"wmt16", "test.jsonl", "{\"translation\": {\"de\": \"Ja %d.\", \"en\": \"r\"}}"},
};

// MBPP's splits are by the number of the task: 500 to 520 lie in two of them.
static void write_looks(const char *folder) {
    for (size_t i = 0; i < sizeof LOOKS / sizeof *LOOKS; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, LOOKS[i].folder);
        assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
        snprintf(path, sizeof path, "%s/%s/%s", folder, LOOKS[i].folder, LOOKS[i].file);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        for (int row = 500; row <= 520; row++) {
            fprintf(f, LOOKS[i].row, row);
            fputs("\n", f);
        }
        fclose(f);
    }
}

static void both_scales_are_in_order(void **state) {
    const char *f = *state;
    Child c;
    char here[PATH_MAX];
    Catalogue *all = opened();
    assert_non_null(realpath("configs", here));
    CHILD_OUTPACE(&c, f, 0, "model", "synth", "tiny", "tiny", "--set", "max_position_embeddings=8192");
    child_release(&c);
    CHILD_OUTPACE(&c, f, 0, "model", "adapter", "tiny", "exit", "--exit-layer", "1");
    child_release(&c);
    CHILD_OUTPACE(&c, f, 0, "model", "adapter", "tiny", "heads", "--variant", "medusa", "--heads", "3");
    child_release(&c);
    write_looks(f);
    for (int i = 0; i < 2; i++) { // what REST's configs look things up in
        static const char *const stores[] = {"data/sharegpt.store", "models/reference.store"};
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%s/%s", f, stores[i]);
        *strrchr(folder, '/') = 0;
        assert_true(file_make_directory(folder, NULL));
        CHILD_OUTPACE(&c, f, 0, "datasets", "index", "tiny/config.json", "--model", "tiny", "-o", stores[i]);
        child_release(&c);
    }
    setenv("OUTPACE_DATA", f, 1);
    for (int i = 0; i < all->item_count; i++) {
        char path[2 * PATH_MAX];
        const CatalogueItem *item = &all->items[i];
        if (item->full || (i > 0 && strcmp(all->items[i - 1].experiment, item->experiment) == 0)) continue;
        snprintf(path, sizeof path, "%s/%s.yaml", here, item->experiment);
        for (int k = 0; k < 2; k++) {
            CHILD_OUTPACE(&c, f, 0, "plan", "--check", path, "--scale", SCALES[k], "--device", "cpu",
                          "--model", "target=tiny,draft=tiny,adapter=exit,heads=heads");
            child_release(&c);
        }
    }
    unsetenv("OUTPACE_DATA");
    closed(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_whole),
        cmocka_unit_test(claims_are_whole),
        cmocka_unit_test(items_are_found),
        cmocka_unit_test(each_item_has_its_config),
        cmocka_unit_test(each_config_is_for_an_item),
        cmocka_unit_test(both_scales_are_in_order),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
