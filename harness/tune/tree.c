// See tree.h. Calibration and check answer prompts as a run does, but nothing is stored: these are counts,
// and times that only weigh trees against each other.
#include "harness/tune/tree.h"

#include "engine/base/memory.h"
#include "harness/cli/signals.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// --- counts ----------------------------------------------------------------------------------------------

void tree_count(TreeCounts *c, const StepReport *r) {
    for (int depth = 0; depth < r->ranks.count; depth++)
        for (int rank = 0; rank < RANK_TREE_RANKS; rank++) {
            c->tried[depth][rank] += r->ranks.tried[depth] >> rank & 1;
            c->taken[depth][rank] += r->ranks.taken[depth] == rank;
        }
    c->steps++;
    c->tokens += r->accepted + 1;
    c->rows += r->rows;
    c->context += r->context;
    c->propose_s += r->propose_s;
    c->forward_s += r->forward_s;
    c->verify_s += r->verify_s;
    c->observe_s += r->observe_s;
}

double tree_chance(const TreeCounts *c, int rank) {
    double tried = 0, taken = 0;
    for (int depth = 0; depth <= RANK_TREE_DEPTH; depth++) {
        tried += c->tried[depth][rank];
        taken += c->taken[depth][rank];
    }
    return tried > 0 ? taken / tried : 0;
}

double tree_level_chance(const TreeCounts *c, int depth) {
    double nodes = c->tried[depth][0], taken = 0;
    for (int rank = 0; rank < RANK_TREE_RANKS; rank++) taken += c->taken[depth][rank];
    return nodes > 0 ? taken / nodes : 0;
}

// --- the choice ------------------------------------------------------------------------------------------

// Of all forwards of the draft, or the number of levels. The draft runs the nodes with children, level by
// level.
static double forward_seconds(const TuningCurve *c, const RankTree *t) {
    bool inner[RANK_TREE_MOST] = {false};
    int run[RANK_TREE_DEPTH + 1] = {1}, levels = rank_tree_levels(t);
    double sum = 0;
    for (int i = 0; i < t->count; i++)
        if (t->nodes[i].parent >= 0) inner[t->nodes[i].parent] = true;
    for (int i = 0; i < t->count; i++) run[t->nodes[i].depth + 1] += inner[i];
    for (int i = 0; i < levels; i++) sum += c->count ? tuning_curve_at(c, run[i]) : 1;
    return sum;
}

// The best tree of this size, level by level, as rank_tree.h wants it.
static void read_tree(const BestTrees *best, int guesses, int levels, RankTree *out) {
    int parents[RANK_TREE_MOST], ranks[RANK_TREE_MOST], depth[RANK_TREE_MOST], place[RANK_TREE_MOST];
    best_trees_read(best, guesses + 1, levels + 1, parents, ranks);
    for (int i = 0; i < guesses; i++) depth[i] = parents[i] < 0 ? 0 : depth[parents[i]] + 1;
    out->count = 0;
    for (int level = 0; level < levels; level++)
        for (int i = 0; i < guesses; i++) {
            if (depth[i] != level) continue;
            place[i] = out->count;
            out->nodes[out->count++] = (RankNode){level ? place[parents[i]] : -1, level, ranks[i]};
        }
}

void tree_choose(const double *chance, int nodes, int levels, const TreeCost *c, TreeChoice *out) {
    BestTrees *best = best_trees_make(chance, RANK_TREE_RANKS, nodes + 1, levels + 1);
    RankTree tree;
    int guesses = 0, depth = 0;
    assert(nodes >= 1 && nodes <= RANK_TREE_MOST && levels >= 1 && levels <= RANK_TREE_DEPTH);
    rank_tree_init(&tree);
    *out = (TreeChoice){.tokens = 1, .seconds = INFINITY};
    for (int l = 1; l <= levels; l++)
        for (int m = 1; m <= nodes; m++) {
            double tokens = best_trees_tokens(best, m + 1, l + 1);
            if (!(tokens > 0)) continue;
            read_tree(best, m, l, &tree);
            double rows = tree.count + 1;
            double seconds = tuning_curve_at(&c->target, rows) +
                             c->level_s * forward_seconds(&c->forward, &tree) + c->row_s * rows + c->step_s;
            if (seconds / tokens >= out->seconds / out->tokens) continue;
            out->tokens = tokens, out->seconds = seconds;
            guesses = m, depth = l;
        }
    assert(guesses >= 1);
    read_tree(best, guesses, depth, &tree);
    out->tree = tree;
    best_trees_free(best);
}

// --- the file --------------------------------------------------------------------------------------------

static const char FILE_START[] = "# tree of ranks, by outpace tune\n"; // without digits

const OutputKind TREE_FILE = {.start = FILE_START};

static void write_path(const RankTree *t, int node, Text *out) {
    if (t->nodes[node].parent >= 0) write_path(t, t->nodes[node].parent, out);
    text_printf(out, "%d", t->nodes[node].rank);
}

// A line for each level.
static void write_tree(const RankTree *t, Text *out) {
    text_puts(out, FILE_START);
    for (int i = 0; i < t->count; i++) {
        bool starts = i == 0 || t->nodes[i].depth != t->nodes[i - 1].depth;
        if (i > 0) text_puts(out, starts ? "\n" : " ");
        write_path(t, i, out);
    }
    text_puts(out, "\n");
}

// --- measuring -------------------------------------------------------------------------------------------

typedef struct TreeTuner {
    const TreeAsk *ask;
    TreeResult *out;
    Models models;
    Reporter reporter;
    AnswerEnv env;
    Watch watch;
    Clock wall; // of the budget
    double began;
} TreeTuner;

static const Settings *settings_of(const TreeTuner *t) { return &t->ask->plan->sweep.points[0].settings; }

static bool open_tuner(TreeTuner *t, Error *e) {
    const Plan *p = t->ask->plan;
    reporter_begin(&t->reporter, false, 0, 0, interrupt_seen);
    t->reporter.line.on = !t->ask->quiet;
    if (!group_open_models(&p->inputs, 0, reporter_progress(&t->reporter), &t->models, e)) return false;
    Clock clock = t->ask->processor ? clock_processor() : clock_monotonic();
    t->wall = clock_monotonic();
    if (t->ask->clock) t->wall = clock = t->ask->clock(&t->models.target.session);
    watch_begin(&t->watch, t->wall);
    t->began = clock_now(t->wall);
    t->env = group_env(&p->inputs, &p->schedule.groups[0], &t->models, clock, &t->watch);
    return true;
}

static bool open_method(TreeTuner *t, const char *text, Method *m, Error *e) {
    const Settings *s = settings_of(t);
    Sampling sampling = {s->temperature, s->top_k, s->top_p};
    MethodEnv env = inputs_env(&t->ask->plan->inputs, 0, &t->models, 0, &sampling);
    return method_open(m, text, &env, e);
}

static bool answer_one(TreeTuner *t, Method *m, int number, TreeCounts *out, Error *e) {
    const DatasetPrompt *p = &t->ask->plan->inputs.datasets[0].prompts[number];
    LOCAL(answer_release) Answer a = {.prompt = number};
    bool ok = answer_prompt(&t->env, m, settings_of(t), p->turns, p->turn_count, NULL, &a, e);
    if (ok) out->prompts++;
    for (int turn = 0; ok && turn < a.count; turn++)
        for (int i = 0; i < a.turns[turn].result.steps; i++) tree_count(out, &a.turns[turn].steps[i]);
    return ok;
}

// The prompts [first, end), as many as end by `until`, one at least.
static bool answer_all(TreeTuner *t, Method *m, const char *what, int first, int end, double until,
                       TreeCounts *out, Error *e) {
    for (int i = first; i < end; i++) {
        double spent = clock_now(t->wall) - t->began, next = i > first ? spent / (i + 1) : 0;
        if (i > first && spent + next > until) break;
        reporter_place(&t->reporter, &(ReporterPlace){.phase = what});
        if (!answer_one(t, m, i, out, e)) return false;
    }
    return true;
}

static int halves(const TreeTuner *t) { return ((int)t->ask->plan->inputs.datasets[0].count + 1) / 2; }

// Wakes up memory and threads with tokens of no prompt, and opens the method again.
static bool warm_up(TreeTuner *t, const char *text, Error *e) {
    LOCAL(prompts_release) PromptList prompts = {0};
    LOCAL(method_close) Method m = {0};
    LOCAL(decode_result_release) DecodeResult r = {0};
    DecodeOptions o = {
        .max_tokens = WARM_UP_TOKENS, .ignore_eos = true, .clock = t->env.clock, .merge = true};
    o.sampling.top_p = 1;
    group_warm_up_prompts(&t->models, 1, &prompts);
    return open_method(t, text, &m, e) &&
           decode(t->env.target, &m, prompts.prompts[0].ids, (int)prompts.prompts[0].count, &o, &r, e);
}

static bool calibrate(TreeTuner *t, RankTree *shape, Error *e) {
    const char *text = t->ask->plan->sweep.points[0].decoder;
    TreeCounts *c = &t->out->calibrated;
    LOCAL(method_close) Method m = {0};
    if (!warm_up(t, text, e) || !open_method(t, text, &m, e)) return false;
    const RankTree *tree = m.info->rank_tree ? m.info->rank_tree(m.self) : NULL;
    if (!tree) return error_input(e, "tune: '%s' drafts no tree; give --method one, as tree=4x2x2", text);
    t->out->guesses = shape->count = tree->count;
    t->out->levels = rank_tree_levels(tree);
    memcpy(shape->nodes, tree->nodes, (size_t)tree->count * sizeof *tree->nodes);
    return answer_all(t, &m, "calibration", 0, halves(t), t->ask->budget_s / 2, c, e) &&
           (c->steps > 0 || error_input(e, "tune: no prompt was answered with a step; raise --max-tokens"));
}

// Of a step's guesses.
static int most_nodes(const TreeTuner *t) {
    int rows = settings_of(t)->engine.max_rows;
    return rows > 1 && rows - 1 < t->ask->nodes ? rows - 1 : t->ask->nodes;
}

static bool measure_surface(TreeTuner *t, Engine *engine, double most_rows, TuneSurface *out, Error *e) {
    const TreeCounts *c = &t->out->calibrated;
    int context = (int)(c->context / c->steps), room = engine->session.context - 1;
    TuneSurfaceAsk ask = {.context = context < room ? context : room,
                          .most_rows = most_rows,
                          .longest = RANK_TREE_DEPTH + 1,
                          .seconds = t->ask->budget_s / 10,
                          .steps = 1e9,
                          .clock = t->env.clock,
                          .watch = t->ask->processor || t->ask->clock ? NULL : &t->watch};
    reporter_place(&t->reporter, &(ReporterPlace){.phase = "surface"});
    return tune_surface(engine, &ask, out, e);
}

// The measured time of drafting, over the same by levels or by the draft's own curve.
static bool measure_cost(TreeTuner *t, const RankTree *shape, Error *e) {
    TreeResult *r = t->out;
    const TreeCounts *c = &r->calibrated;
    bool drafts = t->models.has_draft && t->ask->plan->experiment.methods[0].info->needs & NEEDS_DRAFT;
    if (!measure_surface(t, &t->models.target, most_nodes(t) + 1, &r->target, e)) return false;
    if (drafts && !measure_surface(t, &t->models.draft, most_nodes(t), &r->draft, e)) return false;
    r->cost.target = tune_curve(&r->target, r->target_s);
    if (drafts) r->cost.forward = tune_curve(&r->draft, r->draft_s);
    r->cost.level_s = c->propose_s / c->steps / forward_seconds(&r->cost.forward, shape);
    r->cost.row_s = c->observe_s / c->rows;
    r->cost.step_s = c->verify_s / c->steps;
    return true;
}

// The method's own words with the file in place of a tree.
static void name_method(const TreeAsk *ask, Text *out) {
    const char *colon = strchr(ask->ask->method, ':'), *p = colon ? colon + 1 : "";
    text_printf(out, "%.*s:", colon ? (int)(colon - ask->ask->method) : 1000, ask->ask->method);
    for (size_t n; *p; p += n + (p[n] == ',')) {
        n = args_span(p, ',');
        if (strncmp(p, "tree=", 5) != 0) text_printf(out, "%.*s,", (int)n, p);
    }
    text_printf(out, "tree=%s", ask->path);
}

static bool check_choice(TreeTuner *t, Error *e) {
    LOCAL(method_close) Method m = {0};
    int first = halves(t), end = (int)t->ask->plan->inputs.datasets[0].count;
    if (first == end) return true;
    return open_method(t, text_get(&t->out->method), &m, e) &&
           answer_all(t, &m, "check", first, end, t->ask->budget_s, &t->out->checked, e);
}

bool tree_tune(const TreeAsk *ask, Output *files, TreeResult *out, Error *e) {
    TreeTuner t = {.ask = ask, .out = out};
    LOCAL(rank_tree_release) RankTree shape;
    *out = (TreeResult){0};
    rank_tree_init(&shape);
    name_method(ask, &out->method);
    bool ok = open_tuner(&t, e) && calibrate(&t, &shape, e) && measure_cost(&t, &shape, e);
    if (ok) {
        LOCAL_TEXT text = {0};
        int levels = RANK_TREE_DEPTH;
        if (ask->plan->experiment.methods[0].info->needs & NEEDS_HEADS) levels = out->levels; // a head each
        for (int rank = 0; rank < RANK_TREE_RANKS; rank++)
            out->chance[rank] = tree_chance(&out->calibrated, rank);
        tree_choose(out->chance, most_nodes(&t), levels, &out->cost, &out->choice);
        write_tree(&out->choice.tree, &text);
        ok = output_add(files, ask->path, &TREE_FILE, text_get(&text), text.length, e) &&
             output_finish(files, e) && check_choice(&t, e);
    }
    reporter_clear(&t.reporter);
    models_close(&t.models);
    return ok;
}

void tree_result_release(TreeResult *r) {
    text_release(&r->method);
    rank_tree_release(&r->choice.tree);
}
