#include "tests/support/golden.h"

#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>

static int read_ids(const json_t *array, int *out) {
    for (size_t i = 0; i < json_array_size(array); i++)
        out[i] = (int)json_integer_value(json_array_get(array, i));
    return (int)json_array_size(array);
}

// The folder of the models: that of the repository, or $OUTPACE_GOLDENS.
static void find_models(char *out, size_t n) {
    const char *root = getenv("OUTPACE_ROOT"), *own = getenv("OUTPACE_GOLDENS");
    if (own) snprintf(out, n, "%s", own);
    else snprintf(out, n, "%s/build/golden", root ? root : ".");
}

void golden_open(Golden *g, const char *name) {
    char path[1024], models[256];
    size_t size;
    Error e = {0};
    find_models(models, sizeof models);
    snprintf(g->dir, sizeof g->dir, "%s/%s", models, name);
    snprintf(path, sizeof path, "%s/golden.json", g->dir);
    json_t *j = json_from_file(path, 1 << 20, &e);
    if (!j) fail_msg("%s", e.text);
    g->prompt_count = read_ids(json_object_get(j, "prompt"), g->ids);
    g->greedy_count = read_ids(json_object_get(j, "greedy"), g->ids + g->prompt_count);
    g->vocab = (int)json_integer_value(json_object_get(j, "vocab"));
    g->bf16_error = json_real_value(json_object_get(j, "bf16_error"));
    g->f16_error = json_number_value(json_object_get(j, "f16_error"));
    json_decref(j);
    snprintf(path, sizeof path, "%s/logits.f32", g->dir);
    if (!file_read(path, 1 << 24, &g->logit_bytes, &size, &e)) fail_msg("%s", e.text);
    g->logits = (const float *)(const void *)g->logit_bytes;
    assert_int_equal(size, (size_t)(g->prompt_count + g->greedy_count) * (size_t)g->vocab * sizeof(float));
}

void golden_release(Golden *g) { mem_free(g->logit_bytes); }

int golden_each(void (*check)(const char *name)) {
    char path[512];
    int models = 0;
    find_models(path, sizeof path);
    DIR *d = opendir(path);
    if (!d) fail_msg("cannot open '%s': run from the repository's root, or set OUTPACE_ROOT", path);
    for (struct dirent *f; (f = readdir(d));)
        if (f->d_name[0] != '.') {
            check(f->d_name);
            models++;
        }
    closedir(d);
    return models;
}

// The largest difference at a position, relative to the position's largest wanted logit.
static double row_error(const float *got, const float *want, int n) {
    double scale = 0, worst = 0;
    for (int i = 0; i < n; i++) {
        double size = fabs((double)want[i]);
        if (size > scale) scale = size;
        worst = test_worse(worst, fabs((double)got[i] - (double)want[i]));
    }
    return worst / scale;
}

// All ids as one chain, in steps of at most `chunk` nodes: the error of each.
static void find_errors(Session *s, const Golden *g, int chunk, double *errors) {
    int count = g->prompt_count + g->greedy_count;
    Error e = {0};
    session_reset(s);
    for (int done = 0; done < count;) {
        int n = count - done < chunk ? count - done : chunk;
        session_begin_step(s, true, LAYOUT_TREE);
        int node = tree_root(&s->tree, g->ids[done]);
        for (int i = 1; i < n; i++) node = tree_probe(&s->tree, node, g->ids[done + i], true);
        if (!session_run(s, s->shape.layers, &e) || !session_read(s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
        for (int i = 0; i < n; i++)
            errors[done + i] =
                row_error(session_logits(s, i), g->logits + (size_t)(done + i) * (size_t)g->vocab, g->vocab);
        if (!session_commit(s, node, n, &e)) fail_msg("%s", e.text);
        done += n;
    }
}

double golden_error(Session *s, const Golden *g, int chunk) {
    double errors[GOLDEN_MAX_IDS], worst = 0;
    find_errors(s, g, chunk, errors);
    for (int i = 0; i < g->prompt_count + g->greedy_count; i++) worst = test_worse(worst, errors[i]);
    return worst;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double golden_rounded_error(Session *s, const Golden *g, int chunk) {
    double errors[GOLDEN_MAX_IDS], worst = golden_error(s, g, chunk);
    int count = g->prompt_count + g->greedy_count;
    if (!s->shape.experts.count || !isfinite(worst)) return worst;
    find_errors(s, g, chunk, errors);
    qsort(errors, (size_t)count, sizeof *errors, by_size);
    return errors[count / 4];
}
