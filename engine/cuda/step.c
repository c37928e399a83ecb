// A run: what changes from step to step goes up in one copy, then the layers follow as one graph.
//
// Graphs are kept by what sizes their launches: rows, tiles and spans, all rounded up (to powers of two,
// mostly), and the range of layers. So nothing is captured anew as the context grows, but at every doubling.
#include "engine/cuda/fast.h"

#include <stdio.h>
#include <string.h>

int cuda_spans(const Cuda *c, int from, int to) {
    int lowest = cache_first_visible(&c->cache, from), all = to / SPAN - lowest / SPAN + 1;
    int limit = c->context / SPAN + 1;
    return all < limit ? all : limit;
}

static int round_to_power(int n, int least) {
    while (least < n) least *= 2;
    return least;
}

static int spans_of(const Cuda *c, const StepRun *run) {
    int from = tree_position(run->tree, run->first), to = from;
    for (int i = run->first; i < run->last; i++) {
        int p = tree_position(run->tree, i);
        if (p < from) from = p;
        if (p > to) to = p;
    }
    int spans = round_to_power(cuda_spans(c, from, to), 1), limit = cuda_spans(c, 0, c->context - 1);
    return spans < limit ? spans : limit;
}

// The one that was used last long ago makes room.
static StepGraph *find_graph(Cuda *c, const StepGraph *want) {
    StepGraph *oldest = c->graphs;
    for (int i = 0; i < GRAPHS; i++) {
        StepGraph *g = &c->graphs[i];
        if (g->most == want->most && g->tiles == want->tiles && g->spans == want->spans && g->a == want->a &&
            g->b == want->b)
            return g;
        if (g->used < oldest->used) oldest = g;
    }
    if (oldest->graph) {
        gpu_stream_wait(c->stream); // it may still be running
        gpu_graph_close(oldest->graph);
    }
    *oldest = *want;
    return oldest;
}

// Gives 0, or why not as the runtime says it.
static int record(Cuda *c, StepGraph *g) {
    int code = gpu_graph_begin(c->stream);
    if (code) return code;
    cuda_layers(c, g);
    return gpu_graph_end(c->stream, &g->graph);
}

// Where steps cannot be recorded, kernels go into the stream one by one: later, with the same bits. Who asks
// for the kernels' name hears of it.
static void do_without_graphs(Cuda *c, int code) {
    char *isa = c->first->isa;
    size_t n = strlen(isa);
    c->no_graphs = true;
    snprintf(isa + n, sizeof c->isa - n, ", steps not recorded: %s", gpu_error(code));
}

static bool put_layers(Cuda *c, StepGraph *g, Error *e) {
    if (!g->graph && !c->no_graphs) {
        int code = record(c, g);
        if (code) do_without_graphs(c, code);
    }
    if (g->graph) {
        if (fast_ok(c, e)) return cuda_ok(c, gpu_graph_run(g->graph, c->stream), "cannot run a step", e);
        gpu_graph_close(g->graph);
        *g = (StepGraph){.most = 0};
        return false;
    }
    cuda_layers(c, g);
    return cuda_ok(c, gpu_launched(), "cannot run a step", e) && fast_ok(c, e);
}

bool cuda_step(Cuda *c, const StepRun *run, Error *e) {
    Staging *s = &c->steps[c->turn ^= 1];
    if (run->first == run->last || run->a == run->b) return true;
    int rows = run->last - run->first, most = c->fast ? fast_rows(rows) : round_to_power(rows, 8);
    Step *step = staging_begin(s);
    size_t bytes = cuda_write_step(c, run, most, step);
    StepGraph want = {most, step->tiles, spans_of(c, run), run->a, run->b, NULL, 0};
    if ((c->fast && !fast_prepare(c, most, run->a, run->b, e)) || !cuda_begin(c, PHASE_RUN, e) ||
        !staging_send(c, s, c->step, bytes, e))
        return false;
    StepGraph *g = find_graph(c, &want);
    g->used = ++c->graph_clock;
    c->unread = true;
    return put_layers(c, g, e);
}
