// make gpu-reckon: the times of steps on cards that are not here, reckoned (reckoned.h). None is measured.
//
//      build/ptx/reckon                                    every shape, card, number of rows, context: a page
//      of
//                                                          tables, in Markdown
//      build/ptx/reckon --shape llama2-7b --card h100 --rows 1,8,121 --context 100 --kernel product
//                                                          some of them; each kernel with all its numbers
#include "tests/ptx/reckoned.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/model/config.h"
#include "harness/analysis/priced.h"
#include "simulate/surface.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 16, MOST_CONTEXTS = 4, MOST_SHAPES = 8, MOST_STEPS = MOST_CONTEXTS * (MOST_ROWS + 1) };

typedef struct Asked {
    const char *shapes[MOST_SHAPES];
    int shape_count, rows[MOST_ROWS], row_count, contexts[MOST_CONTEXTS], context_count;
    const char *card, *kernel; // NULL: all
    const char *machines;      // where machines for simulate go; NULL: none are written
    bool details;
} Asked;

typedef struct Steps { // of a shape on a card
    CountedStep *counted;
    ReckonedStep reckoned[MOST_STEPS];
    int count;
} Steps;

static bool read_shape(const char *name, Shape *out, Error *e) {
    Model m = {0};
    char *data = NULL, *path = shape_file(name, e);
    size_t size;
    bool ok = path && file_read(path, 1 << 20, &data, &size, e) && config_parse(&m, data, size, path, e);
    if (ok) *out = m.shape;
    mem_free(data);
    mem_free(path);
    return ok;
}

// --- counting

// Steps at the first context in full, then attention alone at the others.
static bool count_steps(const Asked *a, const char *shape_name, const Shape *shape, const Card *card,
                        Steps *out, Error *e) {
    Counting *c = counting_open(shape, card, e);
    bool ok = c != NULL;
    out->count = 0;
    for (int k = 0; ok && k < a->context_count; k++)
        for (int i = 0, first = 0; ok && i < a->row_count; i++)
            for (int tree = TREE_CHAIN; ok && tree <= (a->rows[i] == 121 ? TREE_LOOKAHEAD : TREE_CHAIN);
                 tree++) {
                CountedStep *to = &out->counted[out->count];
                fprintf(stderr, "\r%s on %s: %d rows at %d      ", shape_name, card->name, a->rows[i],
                        a->contexts[k]);
                ok = counting_step(c, a->rows[i], (TreeKind)tree, a->contexts[k],
                                   k      ? &out->counted[first]
                                   : tree ? to - 1
                                          : NULL,
                                   to, e);
                out->count++;
                first++;
            }
    fputc('\r', stderr);
    counting_close(c);
    return ok;
}

// --- tables

static const char *tree_name(const CountedStep *s) {
    return s->tree == TREE_CHAIN ? "chain" : "lookahead 15,5,15";
}

static const ReckonedStep *of_one_row(const Steps *s, int context) {
    for (int i = 0; i < s->count; i++)
        if (s->counted[i].rows == 1 && s->counted[i].context == context) return &s->reckoned[i];
    return NULL;
}

static double step_time(const ReckonedStep *r, const Shape *s, bool worst) {
    return worst ? s->layers * r->layer_worst + r->once_worst : s->layers * r->layer + r->once;
}

static void print_steps(const Steps *s, const Shape *shape) {
    puts("| rows | tree | context | floor us | layer us | at worst | floor/layer | step ms | at worst | "
         "slowdown |"
         " at worst |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (int i = 0; i < s->count; i++) {
        const CountedStep *c = &s->counted[i];
        const ReckonedStep *r = &s->reckoned[i], *one = of_one_row(s, c->context);
        printf("| %d | %s | %d | %.1f | %.1f | %.1f | %.0f%% | %.2f | %.2f |", c->rows, tree_name(c),
               c->context, 1e6 * r->layer_floor, 1e6 * r->layer, 1e6 * r->layer_worst,
               100 * r->layer_floor / r->layer, 1e3 * step_time(r, shape, false),
               1e3 * step_time(r, shape, true));
        if (one)
            printf(" %.2f | %.2f |\n", step_time(r, shape, false) / step_time(one, shape, false),
                   step_time(r, shape, true) / step_time(one, shape, true));
        else puts(" - | - |");
    }
    putchar('\n');
}

static void print_kernels(const Asked *a, const CountedStep *c, const ReckonedStep *r) {
    printf("%d rows, %s, context %d:\n\n", c->rows, tree_name(c), c->context);
    puts("| kernel | blocks | at once | MB | memory us | hidden | mma us | L2 us | issue us | path us | tail "
         "us |"
         " trips | total us | by |\n"
         "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (int i = 0; i < c->count; i++) {
        const Counted *l = &c->launch[i];
        const ReckonedLaunch *t = &r->launch[i];
        const double *by = t->by;
        if (a->kernel && !strstr(l->name, a->kernel)) continue;
        printf("| %s%s | %u | %d x %d | %.2f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %llu | %.1f "
               "| %s |\n",
               l->name, l->layer ? "" : " (once)", l->blocks, t->held, l->cluster > 1 ? (int)l->cluster : 1,
               1e-6 * t->bytes, 1e6 * by[BY_MEMORY], 1e6 * t->hidden, 1e6 * by[BY_MMA], 1e6 * by[BY_L2],
               1e6 * by[BY_ISSUE], 1e6 * by[BY_PATH], 1e6 * t->tail, (unsigned long long)l->c.tail_trips,
               1e6 * t->total, BOUND_NAMES[t->bound]);
    }
    putchar('\n');
}

// Of every kernel at the first context: its time at each number of rows, and what bounds it.
static void print_overview(const Steps *s) {
    int columns = 0;
    fputs("| kernel |", stdout);
    for (int i = 0; i < s->count && s->counted[i].context == s->counted[0].context; i++, columns++)
        printf(" %d%s |", s->counted[i].rows, s->counted[i].tree ? " lookahead" : "");
    fputs("\n| --- |", stdout);
    for (int i = 0; i < columns; i++) fputs(" --- |", stdout);
    putchar('\n');
    for (int k = 0; k < s->counted[0].count; k++) {
        const Counted *l = &s->counted[0].launch[k];
        printf("| %s%s |", l->name, l->layer ? "" : " (once)");
        for (int i = 0; i < columns; i++)
            printf(" %.1f %s |", 1e6 * s->reckoned[i].launch[k].total,
                   BOUND_NAMES[s->reckoned[i].launch[k].bound]);
        putchar('\n');
    }
    putchar('\n');
}

// --- a machine for simulate

// The shares of the data sheet that fit the chains' reckoned times.
static bool write_machine(const Asked *a, const char *shape_name, const Shape *shape, const Card *card,
                          const Hardware *sheet, const Steps *s, Error *e) {
    SurfacePoint points[MOST_STEPS];
    Surface surface = {points, 0};
    SurfaceFit fit;
    Hardware start = *sheet;
    StepModel model = step_model(shape, 2);
    char path[512], reached[512];
    start.launches = 0;
    for (int i = 0; i < s->counted[0].count; i++) {
        start.launches += s->counted[0].launch[i].layer;
        start.launch_s = s->reckoned[0].launch[i].dependency;
    }
    for (int i = 0; i < s->count; i++)
        if (s->counted[i].tree == TREE_CHAIN)
            points[surface.count++] = (SurfacePoint){step_chain(s->counted[i].rows, s->counted[i].context),
                                                     step_time(&s->reckoned[i], shape, false), false};
    if (!surface_fit(&surface, &start, &model, &fit, e)) return false;
    snprintf(fit.machine.name, sizeof fit.machine.name, "%.60s, reckoned", sheet->name);
    fit.machine.reckoned = true;
    snprintf(path, sizeof path, "%s/%s-reckoned.json", a->machines, card->name);
    snprintf(reached, sizeof reached,
             "reckoned, never measured: fitted to %d steps of %s from make gpu-reckon (docs/cuda.md), which "
             "it meets"
             " within %.1f%% in the median, %.1f%% at worst",
             surface.count, shape_name, 100 * fit.fitted.median, 100 * fit.fitted.worst);
    char *text =
        hardware_write(&fit.machine,
                       "as in the data sheet's file, which names its source; launches counted, their time"
                       " from tests/ptx/cards.h",
                       reached);
    FILE *f = text ? fopen(path, "w") : NULL;
    bool ok = f && fputs(text, f) >= 0;
    ok = f && fclose(f) == 0 && ok;
    mem_free(text);
    fprintf(stderr, "%s: %s\n", path, reached);
    return ok || error_system(e, "cannot write '%s'", path);
}

static bool reckon_card(const Asked *a, const char *shape_name, const Shape *shape, const Card *card,
                        Steps *s, Error *e) {
    Hardware sheet;
    if (!card_sheet(card, &sheet, e)) return false;
    for (int i = 0; i < s->count; i++) reckon_step(&s->counted[i], card, &sheet, &s->reckoned[i]);
    printf("## %s on %s, reckoned\n\n", shape_name, sheet.name);
    print_steps(s, shape);
    if (a->details)
        for (int i = 0; i < s->count; i++) print_kernels(a, &s->counted[i], &s->reckoned[i]);
    else print_overview(s);
    fflush(stdout);
    return !a->machines || write_machine(a, shape_name, shape, card, &sheet, s, e);
}

// Cards that the engine sees alike run the same launches.
static bool alike(const Card *a, const Card *b) {
    return a->capability == b->capability && a->shared_kb == b->shared_kb && strcmp(a->name, b->name) != 0;
}

static bool reckon_shape(const Asked *a, const char *name, Error *e) {
    Shape shape;
    Steps s = {.counted = mem_new(MOST_STEPS, sizeof *s.counted)};
    const Card *counted = NULL;
    bool ok = read_shape(name, &shape, e);
    for (int i = 0; ok && i < CARDS_COUNT; i++) {
        const Card *card = &CARDS[i];
        if (a->card && strcmp(card->name, a->card) != 0) continue;
        ok = ((counted && alike(counted, card)) || count_steps(a, name, &shape, card, &s, e)) &&
             reckon_card(a, name, &shape, card, &s, e);
        counted = card;
    }
    mem_free(s.counted);
    return ok;
}

// --- queries

static int read_list(const char *text, long highest, int *out, int most) {
    int n = 0;
    for (const char *p = text; *p && n < most; p += *p == ',') {
        char *end;
        long value = strtol(p, &end, 10);
        if (end == p || value < 1 || value > highest) return 0;
        out[n++] = (int)value;
        p = end;
    }
    return n;
}

static int usage(void) {
    fputs("reckon: --shape NAME (llama2-7b, ..)   --card a100|h100|h200|rtx4090   --rows 1,8,.. (up to 128)\n"
          "        --context 100,500 (ascending, up to 900)   --kernel PART-OF-ITS-NAME   --details (each "
          "kernel's "
          "numbers)\n"
          "        --machines FOLDER (of one shape: CARD-reckoned.json, for outpace simulate --on)\n",
          stderr);
    return 2;
}

int main(int count, char **arguments) {
    static const struct option OPTIONS[] = {
        {"shape", required_argument, NULL, 's'},    {"card", required_argument, NULL, 'c'},
        {"rows", required_argument, NULL, 'r'},     {"context", required_argument, NULL, 'x'},
        {"kernel", required_argument, NULL, 'k'},   {"details", no_argument, NULL, 'd'},
        {"machines", required_argument, NULL, 'm'}, {NULL, 0, NULL, 0},
    };
    Asked a = {.shapes = {"llama2-7b", "llama2-13b", "mistral-7b", "phi3-mini"}, .shape_count = 4};
    const char *rows = NULL, *contexts = NULL;
    Error e = {0};
    for (int o; (o = getopt_long(count, arguments, "", OPTIONS, NULL)) != -1;) {
        if (o == 's') a.shapes[0] = optarg, a.shape_count = 1;
        else if (o == 'c') a.card = optarg;
        else if (o == 'r') rows = optarg;
        else if (o == 'x') contexts = optarg;
        else if (o == 'k') a.kernel = optarg, a.details = true;
        else if (o == 'd') a.details = true;
        else if (o == 'm') a.machines = optarg;
        else return usage();
    }
    // Machines price steps of any size, and are fitted to more of them.
    if (!rows) rows = a.machines ? "1,2,4,8,16,32,48,64,96,121,128" : "1,8,16,32,64,121";
    if (!contexts) contexts = a.machines ? "25,100,500,900" : "100,500";
    a.row_count = read_list(rows, 128, a.rows, MOST_ROWS);
    a.context_count = read_list(contexts, 900, a.contexts, MOST_CONTEXTS);
    if (optind < count || !a.row_count || !a.context_count) return usage();
    puts(
        "# Steps of the CUDA engine, reckoned\n\nNo number here was measured: what the kernels do was counted"
        " (tests/ptx), what it takes is made of constants\n(tests/ptx/cards.h, with their sources) as"
        " tests/ptx/reckoned.h says. `at worst` has paths 40% longer.\n");
    for (int i = 0; i < a.shape_count; i++)
        if (!reckon_shape(&a, a.shapes[i], &e)) {
            fprintf(stderr, "reckon: %s\n", e.text);
            return 1;
        }
    return 0;
}
