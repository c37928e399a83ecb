// The table of figures, in the order of the report. A row's texts are all shown to users: summary is the
// title, needs completes "nothing to draw: ".
#include "plots/figures.h"

#include "engine/base/shipped.h"

#include <string.h>

#define EMBED_FIGURE(symbol, name)                            \
    EMBED(plots_##symbol##_sql, "plots/figures/" name ".sql") \
    EMBED(plots_##symbol##_gp, "plots/figures/" name ".gp")

EMBED_FIGURE(speedup, "speedup")
EMBED_FIGURE(step_time, "step-time")
EMBED_FIGURE(ctar, "ctar")
EMBED_FIGURE(acceptance, "acceptance")
EMBED(plots_lookahead_sql, "plots/figures/lookahead.sql")
EMBED_FIGURE(law, "law")
EMBED_FIGURE(ngrammys, "ngrammys")
EMBED(plots_top_k_sql, "plots/figures/top-k.sql")
EMBED_FIGURE(exit_layer, "exit-layer")
EMBED_FIGURE(eta, "eta")
EMBED_FIGURE(temperature, "temperature")
EMBED_FIGURE(batch, "batch")
EMBED(plots_ridge_sql, "plots/figures/ridge.sql")
EMBED(plots_slowdown_sql, "plots/figures/slowdown.sql")
EMBED(plots_contexts_sql, "plots/figures/contexts.sql")
EMBED_FIGURE(rows, "rows")
EMBED_FIGURE(samples, "samples")
EMBED_FIGURE(sources, "sources")
EMBED_FIGURE(flops, "flops")
EMBED_FIGURE(phrases, "phrases")
EMBED_FIGURE(devices, "devices")
EMBED_FIGURE(match_k, "match-k")
EMBED_FIGURE(roofline, "roofline")
EMBED_FIGURE(row_cost, "row-cost")
EMBED_FIGURE(predicted, "predicted")
EMBED(plots_scaling_sql, "plots/figures/scaling.sql")
EMBED_FIGURE(experts, "experts")
EMBED(plots_curve_gp, "plots/figures/curve.gp")
EMBED(plots_heat_gp, "plots/figures/heat.gp")
__asm__(".pushsection .rodata\n.globl figures_style, figures_layout, figures_end, figures_notes\n"
        "figures_style:\n.incbin \"plots/figures/style.gp\"\n.byte 0\n"
        "figures_layout:\n.incbin \"plots/figures/layout.gp\"\n.byte 0\n"
        "figures_end:\n.incbin \"plots/figures/end.gp\"\n.byte 0\n"
        "figures_notes:\n.incbin \"plots/figures/notes.sql\"\n.byte 0\n.popsection\n");

#define ASKED(symbol) .query = plots_##symbol##_sql, .script = plots_##symbol##_gp
#define AT(value) \
    &(const double) { value }
#define SURFACE "measure one: outpace bench --store MODEL"
#define BATCHED                                                                                           \
    "run a config over batches, as configs/ridge.yaml; or price a run of single sequences: --on MACHINE " \
    "--shape SHAPE --batch 1,4,16 --bits 16,8,4"
#define CELLS  "A colour is the same value in every figure; hatched cells were not measured"
#define BESIDE ". Where priced / measured is 1, the price was right"
#define PRICED SURFACE ", or price one: --on MACHINE --shape SHAPE"

const Figure figures[] = {
    {.name = "speedup",
     .papers = "lookahead-figure-5 kangaroo-figure-1b ouroboros-figure-4",
     .summary = "Speedup of each method's fastest setting",
     .caption = "Speedup is over autoregressive decoding of the same prompts (dashed line)",
     .computed = COMPUTED_TABLES,
     .axes = {.x = "speedup"},
     ASKED(speedup),
     .drawing = "",
     .needs = "let a config name methods, and run it: outpace run CONFIG"},
    {.name = "row-cost",
     .summary = "What a row costs: each point by the rows of its steps, above what the machine allows",
     .caption =
         "A mark is the time of a row, the end of its stem that of a token: a stem is as long as a step "
         "has rows for a token. Both axes are logarithmic; the ridge is where the dashed line bends, from "
         "reading to computing",
     .axes = {.x = "rows of a step", .y = "ms a row, and a token", .logarithmic = true},
     ASKED(row_cost),
     .drawing = plots_roofline_gp,
     .needs = "no sample is stored: outpace run CONFIG"},
    {.name = "step-time",
     .summary = "A step's time in parts",
     .caption = "Each bar is the mean time of a step",
     .axes = {.x = "milliseconds a step"},
     ASKED(step_time),
     .drawing = "",
     .needs = "no sample is stored: outpace run CONFIG"},
    {.name = "ctar",
     .papers = "kangaroo-figure-1a",
     .summary = "CTAR(w): how often a step accepts w drafted tokens or more",
     .caption = "Of each method's fastest setting",
     .axes = {.x = "w: drafted tokens, or more, that a step accepted",
              .y = "share of steps",
              .from = AT(0),
              .to = AT(1.03)},
     ASKED(ctar),
     .drawing = plots_curve_gp,
     .needs = "run a config with methods that draft: outpace run CONFIG"},
    {.name = "acceptance",
     .summary = "Acceptance by position in the draft: of all steps, and given the one before",
     .caption = "Of each method's fastest setting",
     .axes =
         {.x = "position in the draft", .y = "share of steps that accept it", .from = AT(0), .to = AT(1.03)},
     ASKED(acceptance),
     .drawing = plots_curve_gp,
     .needs = "run a config with methods that draft: outpace run CONFIG"},
    {.name = "lookahead",
     .papers = "lookahead-figure-4a",
     .summary = "Lookahead: S over (W, N, G)",
     .caption = "S: tokens per step",
     .axes = {.x = "window W", .y = "S, tokens a step", .x_by_powers = 1, .from = AT(1)},
     .query = plots_lookahead_sql,
     .script = "",
     .drawing = plots_curve_gp,
     .needs = "run a config with lookahead over several W, as {name: lookahead, matrix: {W: [5, 10, 15]}}"},
    {.name = "law",
     .papers = "lookahead-figure-4b",
     .summary = "Lookahead: S by the law, as fitted and as published",
     .caption = "S: tokens per step. Shaded bands, and bars where there is one W, hold 95 of 100 "
                "resamples of prompts",
     .computed = COMPUTED_FITS,
     .axes = {.x = "window W", .y = "S by the law", .x_by_powers = 1, .from = AT(1)},
     ASKED(law),
     .drawing = plots_curve_gp,
     .needs = "run a config with lookahead over several W and N, as configs/lookahead-figure-4.yaml"},
    {.name = "flops",
     .summary = "S over the operations of a step",
     .caption = "S: tokens per step. Counted are the products of a step's rows with the target's weights",
     .axes = {.x = "GFLOP a step, of the target's products", .y = "S, tokens a step", .x_by_powers = 2},
     ASKED(flops),
     .drawing = plots_curve_gp,
     .needs = "no sample is stored of a model whose shape is known: outpace run CONFIG"},
    {.name = "devices",
     .papers = "lookahead-figure-8",
     .summary = "Lookahead: S and speedup against W on each machine",
     .caption = "S: tokens per step",
     .axes = {.x = "window W", .x_by_powers = 1},
     ASKED(devices),
     .drawing = plots_curve_gp,
     .needs = "run a config with lookahead over several W on each machine, then: outpace store merge"},
    {.name = "ngrammys",
     .papers = "ngrammys-figure-3 ngrammys-figure-5 ngrammys-figure-6 ngrammys-figure-7 ngrammys-figure-8 "
               "ngrammys-figure-9",
     .summary = "N-Grammys: S and speedup over (k, w)",
     .caption = "S: tokens per step. " CELLS,
     .axes = {.x = "tokens w of a row", .y = "rows k", .bar = "S, or speedup", .levels = {1, 1.5, 2}},
     ASKED(ngrammys),
     .drawing = plots_heat_gp,
     .needs =
         "run a config with ngrammys over k and w, as {name: ngrammys, matrix: {k: [1, 5, 10], w: [2, 4]}}"},
    {.name = "top-k",
     .papers = "ngrammys-figure-2",
     .summary = "N-Grammys: tokens per call against k, for each strategy",
     .caption = "S: tokens per step",
     .axes = {.x = "rows k", .y = "S, tokens a step"},
     .query = plots_top_k_sql,
     .script = "",
     .drawing = plots_curve_gp,
     .needs = "run a config with ngrammys over k, as {name: ngrammys, matrix: {k: [1, 5, 10]}}"},
    {.name = "exit-layer",
     .papers = "kangaroo-figure-3a",
     .summary = "Kangaroo: S and speedup against the exit layer",
     .caption = "The mean over sub-benchmarks, as Spec-Bench counts",
     .axes = {.x = "exit layer"},
     ASKED(exit_layer),
     .drawing = plots_curve_gp,
     .needs = "run a config with kangaroo and a model for each exit layer's adapter, as "
              "configs/kangaroo-figure-3a.yaml"},
    {.name = "eta",
     .papers = "kangaroo-figure-3b",
     .summary = "Kangaroo: S and speedup against eta, for each gamma",
     .caption = "The mean over sub-benchmarks, as Spec-Bench counts",
     .axes = {.x = "eta: a draft ends below this confidence"},
     ASKED(eta),
     .drawing = plots_curve_gp,
     .needs = "run a config with kangaroo over eta, as {name: kangaroo, matrix: {eta: [0.2, 0.4, 0.6]}}"},
    {.name = "temperature",
     .summary = "S and speedup of each method over the temperature",
     .caption = "S: tokens per step",
     .axes = {.x = "temperature"},
     ASKED(temperature),
     .drawing = plots_curve_gp,
     .needs = "run a config over temperature, as configs/temperature.yaml"},
    {.name = "batch",
     .summary = "Speedup of each method over the batch",
     .caption =
         "Speedup is over autoregressive decoding in the same batch with the same weights (dashed line)",
     .computed = COMPUTED_PREDICTION,
     .axes = {.x = "sequences that share each step", .y = "speedup", .x_by_powers = 1, .within = AT(1)},
     ASKED(batch),
     .drawing = plots_curve_gp,
     .needs = BATCHED},
    {.name = "ridge",
     .summary = "Speedup over batch and bits of weights: beyond the line at 1.0 a method doesn't pay",
     .caption = "Speedup is over autoregressive decoding in the same batch with the same weights. " CELLS,
     .computed = COMPUTED_PREDICTION,
     .axes =
         {.x = "sequences that share each step", .y = "bits of a weight", .bar = "speedup", .levels = {1}},
     .query = plots_ridge_sql,
     .script = "",
     .drawing = plots_heat_gp,
     .needs = BATCHED},
    {.name = "phrases",
     .papers = "ouroboros-figure-5",
     .summary = "Ouroboros: S and speedup against the phrases tried",
     .caption = "S: tokens per step",
     .axes = {.x = "phrases tried behind a draft, K"},
     ASKED(phrases),
     .drawing = plots_curve_gp,
     .needs = "run a config with ouroboros over K, as {name: ouroboros, matrix: {K: [0, 5, 10, 20]}}"},
    {.name = "sources",
     .papers = "ngrammys-figure-4",
     .summary = "Sources of drafts: length and rank of what won, and rows that each had",
     .caption = "Of each method's fastest setting",
     .axes = {.x = "tokens, or rows", .y = "share of the steps", .from = AT(0), .to = AT(1.03)},
     ASKED(sources),
     .drawing = plots_curve_gp,
     .needs = "run a config with a method of several sources, as ngrammys: outpace run CONFIG"},
    {.name = "match-k",
     .papers = "ouroboros-figure-3",
     .summary = "Match-k: what the target would have taken of rejected drafts",
     .caption = "Of each method's fastest setting",
     .axes = {.x = "k: rejected guesses in a row that the target says",
              .y = "places in a draft",
              .from = AT(0)},
     ASKED(match_k),
     .drawing = plots_curve_gp,
     .needs = "run a config with methods that draft chains, as speculative or jacobi: outpace run CONFIG"},
    {.name = "slowdown",
     .papers = "ngrammys-figure-1",
     .summary = "Slowdown of a step of k rows of w + 1 tokens",
     .caption = CELLS BESIDE,
     .kind = RUN_SURFACE,
     .computed = COMPUTED_SURFACE,
     .priced = PRICED_TREES,
     .axes =
         {.x = "w: each row has w + 1 tokens", .y = "k, rows", .bar = "slowdown", .levels = {1.1, 1.5, 2}},
     .query = plots_slowdown_sql,
     .script = "",
     .drawing = plots_heat_gp,
     .needs = PRICED},
    {.name = "contexts",
     .summary = "Slowdown over rows and context",
     .caption = CELLS BESIDE,
     .kind = RUN_SURFACE,
     .computed = COMPUTED_SURFACE,
     .priced = PRICED_CHAINS,
     .axes = {.x = "rows of a step", .y = "context, tokens", .bar = "slowdown", .levels = {1.1, 1.5, 2}},
     .query = plots_contexts_sql,
     .script = "",
     .drawing = plots_heat_gp,
     .needs = PRICED},
    {.name = "rows",
     .summary = "Slowdown by the rows of a step, and the roofline",
     .caption = "Both axes are logarithmic; dashed lines: the least time that reading and computing take",
     .kind = RUN_SURFACE,
     .axes = {.x = "rows of a step", .y = "time over that of one row", .logarithmic = true},
     ASKED(rows),
     .drawing = "",
     .needs = SURFACE},
    {.name = "roofline",
     .summary = "Steps and their parts under the machine's ceilings",
     .caption = "Dashed line: the machine's ceilings as measured",
     .kind = RUN_SURFACE,
     .axes = {.x = "operations a byte", .y = "GFLOP/s", .logarithmic = true},
     ASKED(roofline),
     .drawing = "",
     .needs = SURFACE},
    {.name = "predicted",
     .summary = "Predicted against measured",
     .caption = "On the dashed line both are the same",
     .computed = COMPUTED_FITS | COMPUTED_PREDICTION,
     .axes = {.x = "measured", .y = "predicted"},
     ASKED(predicted),
     .drawing = "",
     .needs = "run a config with lookahead over W and N; or name a machine and a run of it: "
              "--on MACHINE --shape SHAPE --against RUN"},
    {.name = "experts",
     .summary = "Speedup over the rows of a step, priced for a mixture of experts and a dense model",
     .computed = COMPUTED_PREDICTION,
     .axes = {.x = "rows of a step, the mean", .y = "speedup, priced", .x_by_powers = 1, .within = AT(1)},
     ASKED(experts),
     .drawing = plots_curve_gp,
     .needs = "run a config with methods of several sizes (configs/experts.yaml), and name a machine: "
              "--on h100 --shape mixtral-8x7b --beside llama2-13b"},
    {.name = "scaling",
     .papers = "lookahead-figure-6 lookahead-figure-7",
     .summary = "Strong scaling of lookahead over devices, as predicted",
     .computed = COMPUTED_PREDICTION,
     .axes = {.x = "devices", .y = "predicted speedup", .x_by_powers = 1},
     .query = plots_scaling_sql,
     .script = "",
     .drawing = plots_curve_gp,
     .needs = "name a machine and what joins several, for a run with lookahead: "
              "--on a100-40gb --shape llama2-7b --devices 1,2,4,8 --link 300,5"},
    {.name = "samples",
     .summary = "Samples in the order of measuring",
     .caption = "Crosses: disturbed samples; open triangles: the processor was throttled",
     .axes = {.x = "samples, in the order in which they began", .y = "milliseconds a token"},
     ASKED(samples),
     .drawing = "",
     .needs = "no sample is stored: outpace run CONFIG"},
};
const int figure_count = sizeof figures / sizeof *figures;

// Whether `name` is one of the words.
static bool holds(const char *words, const char *name) {
    size_t n = strlen(name);
    for (const char *at = words; at && *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (length == n && memcmp(at, name, n) == 0) return true;
        at += length;
    }
    return false;
}

int figure_levels(const FigureAxes *a) {
    int count = 0;
    while (count < (int)(sizeof a->levels / sizeof *a->levels) && a->levels[count] > 0) count++;
    return count;
}

const Figure *figure_find(const char *name) {
    for (int i = 0; i < figure_count; i++)
        if (strcmp(figures[i].name, name) == 0 || holds(figures[i].papers, name)) return &figures[i];
    return NULL;
}
