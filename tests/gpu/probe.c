// What a card can do, by kernels that do nothing else: reading by bytes on their way, L2, what an idle moment
// is good for, wgmma by width and layout, the bits of every way to multiply, launches, instructions,
// latencies, decoding, and the host.
//
// One object of items; an item has rows. What the code that the device has loaded lacks is a name in
// `not_executed`, and nowhere else. Times are medians; rates of multiplication are held for 200 ms, since
// bursts are faster than what lasts.
#include "tests/gpu/card.h"
#include "tests/gpu/probe.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAUNCHES = 64, SUM_COLUMNS = 1024, SUM_ROWS = 64, SUM_WIDEST = 256 };

typedef struct Probe {
    Card card;
    json_t *root, *rows, *missing; // rows: of the item at hand
    void *data, *sink;
    size_t bytes; // of data; a read takes all of it, a small one less
    size_t read;
    double held;     // seconds that a rate is held
    int code, cores; // what the loaded code can do; processors
} Probe;

static json_t *item(Probe *p, const char *name) {
    p->rows = json_array();
    json_object_set_new(p->root, name, p->rows);
    return p->rows;
}
static bool row(Probe *p, json_t *row) { return json_array_append_new(p->rows, row) == 0; }
static bool missing(Probe *p, const char *name) {
    for (size_t i = 0; i < json_array_size(p->missing); i++)
        if (strcmp(json_string_value(json_array_get(p->missing, i)), name) == 0) return true;
    return json_array_append_new(p->missing, json_string(name)) == 0;
}

// --- P1, P2: reading

static void do_read(void *with, void *stream) { probe_read_way(with, stream); }

static bool read_row(Probe *p, Read r, int blocks_each, const char *missing_name, Error *e) {
    static const char *const names[READ_WAYS] = {"loads side by side", "loads, a part a block",
                                                 "copies of 2 KB a warp", "bulk copies"};
    double seconds;
    r.code = p->code;
    r.blocks = blocks_each * p->cores;
    r.data = p->data;
    r.sink = p->sink;
    if (!r.share) r.share = 1;
    if (r.share > 2)
        r.blocks =
            r.blocks * 10 / 11; // a group of processors may have room for fewer fours than it has fours
    r.blocks = r.blocks / r.share * r.share;
    if (read_shared(&r) * (size_t)blocks_each > p->card.facts.shared_bytes) return true;
    if ((r.way == READ_BULK || r.leaving) && !(p->code & CODE_HOPPER)) return missing(p, missing_name);
    if (!card_time(&p->card, do_read, &r, p->card.small ? 1 : 9, 0, &seconds, e)) return false;
    size_t flight = (size_t)blocks_each * read_in_flight(&r);
    return row(p, json_pack("{s:s, s:i, s:i, s:i, s:i, s:b, s:I, s:I, s:f}", "way", names[r.way], "depth",
                            r.depth, "piece", r.piece, "share", r.share, "blocks_each", blocks_each,
                            "leaving", r.leaving, "bytes",
                            (json_int_t)(read_bytes(&r) / (size_t)(r.passes * r.share)), "in_flight_each",
                            (json_int_t)flight, "bytes_per_s", (double)read_bytes(&r) / seconds));
}

static bool reading(Probe *p, Error *e) {
    static const int loads[] = {1, 2, 4, 8, 16}, rings[] = {3, 5, 8, 12}, pieces[] = {4096, 8192, 16384};
    static const int flights[] = {32, 64, 96, 128, 160, 200}; // KB
    item(p, "read");
    for (int w = 0; w < 2; w++)
        for (int d = 0; d < 5; d++)
            for (int blocks = 1; blocks <= 8; blocks *= 2)
                if (!read_row(p,
                              (Read){.way = w ? READ_CHUNKS : READ_STRIDE,
                                     .depth = loads[d],
                                     .bytes = p->read,
                                     .passes = 1},
                              blocks, "", e))
                    return false;
    for (int leaving = 0; leaving < 2; leaving++)
        for (int d = 0; d < 4; d++)
            for (int blocks = 1; blocks <= 4; blocks++)
                if (!read_row(p,
                              (Read){.way = READ_WARPS,
                                     .depth = rings[d],
                                     .bytes = p->read,
                                     .passes = 1,
                                     .leaving = leaving},
                              blocks, "read: evict_first", e))
                    return false;
    for (int leaving = 0; leaving < 2; leaving++)
        for (int i = 0; i < 3; i++)
            for (int f = 0; f < 6; f++)
                if (!read_row(p,
                              (Read){.way = READ_BULK,
                                     .depth = flights[f] * 1024 / pieces[i],
                                     .piece = pieces[i],
                                     .bytes = p->read,
                                     .passes = 1,
                                     .leaving = leaving},
                              1, "read: bulk copies", e))
                    return false;
    return true;
}

static bool from_l2(Probe *p, Error *e) {
    static const int megabytes[] = {4, 8, 16, 24, 32, 40};
    item(p, "l2");
    for (int i = 0; i < 6; i++) {
        size_t bytes = p->card.small ? p->read : (size_t)megabytes[i] << 20;
        int passes = p->card.small ? 2 : 1 + 400 / megabytes[i];
        Read copies = {.way = READ_WARPS, .depth = 8, .bytes = bytes, .passes = passes};
        for (int blocks = 1; blocks <= 3; blocks++)
            if (!read_row(p, copies, blocks, "", e)) return false;
        for (int share = 1; share <= 4; share *= 2) {
            Read bulk = {.way = READ_BULK,
                         .depth = 12,
                         .piece = 16384,
                         .share = share,
                         .bytes = bytes,
                         .passes = passes};
            if (!read_row(p, bulk, 1, share == 1 ? "l2: bulk copies" : "l2: multicast", e)) return false;
        }
        if (p->card.small) break;
    }
    return true;
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// A row a processor: the clocks of its nearer and its farther quarter of lines, and which are nearer than
// their middle (1): those of the same pattern are on the same side.
static void distance_row(Probe *p, const Distances *d) {
    uint32_t sorted[DISTANCE_LINES];
    char side[DISTANCE_LINES + 1] = "";
    memcpy(sorted, d->clocks, sizeof sorted);
    qsort(sorted, DISTANCE_LINES, sizeof *sorted, by_number);
    uint32_t near = sorted[DISTANCE_LINES / 4], far = sorted[DISTANCE_LINES * 3 / 4];
    for (int i = 0; i < DISTANCE_LINES; i++) side[i] = 2 * d->clocks[i] < near + far ? '1' : '0';
    row(p, json_pack("{s:i, s:i, s:i, s:i, s:i, s:s}", "processor", (int)d->processor, "least",
                     (int)sorted[0], "near", (int)near, "far", (int)far, "most",
                     (int)sorted[DISTANCE_LINES - 1], "nearer", side));
}

static bool near_and_far(Probe *p, Error *e) {
    const size_t most = (size_t)128 << 10, bytes = (size_t)p->cores * sizeof(Distances);
    size_t pitch = p->bytes / DISTANCE_LINES < most ? p->bytes / DISTANCE_LINES : most;
    item(p, "near_far");
    if (!card_ok(gpu_fill(p->data, 0, pitch * DISTANCE_LINES, p->card.stream), "cannot fill", e))
        return false;
    if (!(p->code & CODE_HOPPER)) return missing(p, "l2: near and far"); // after what every card can do
    Distances *all = mem_new((size_t)p->cores, sizeof *all);
    bool ok = probe_distances(p->data, pitch, p->cores, p->code, p->sink, p->card.stream);
    ok = ok && card_ok(gpu_launched(), "a launch was refused", e) &&
         card_ok(gpu_copy(all, p->sink, bytes, p->card.stream), "cannot copy", e) &&
         card_ok(gpu_stream_wait(p->card.stream), "its work failed", e);
    for (int i = 0; ok && i < p->cores; i++) distance_row(p, &all[i]);
    mem_free(all);
    return ok;
}

// --- P3: a stream, a pause, another stream

typedef struct Pause {
    Probe *p;
    Read first, second;
    int turns;
    size_t ahead;
    bool second_runs;
} Pause;

static void do_pause(void *with, void *stream) {
    const Pause *w = with;
    probe_read_way(&w->first, stream);
    probe_idle(w->p->cores, w->turns, w->second.data, w->ahead, w->p->code, w->p->sink, stream);
    if (w->second_runs) probe_read_way(&w->second, stream);
}

static bool pauses(Probe *p, Error *e) {
    static const int megabytes[] = {0, 4, 8, 16, 24};
    size_t each = p->card.small ? p->read : (size_t)64 << 20;
    item(p, "prefetch");
    for (int turns = 0; turns <= 4000; turns += 1000) // four cycles each: 0 to 8 us
        for (int i = 0; i < 5; i++) {
            double with, without;
            Read a = {.way = READ_WARPS,
                      .depth = 8,
                      .bytes = each,
                      .passes = 1,
                      .blocks = 3 * p->cores,
                      .data = p->data,
                      .sink = p->sink,
                      .code = p->code,
                      .share = 1},
                 b = a;
            b.data = (unsigned char *)p->data + p->bytes / 2;
            Pause w = {p, a, b, p->card.small ? turns / 100 : turns, (size_t)megabytes[i] << 20, true},
                  alone = w;
            if (w.ahead > p->bytes / 2) w.ahead = alone.ahead = p->bytes / 2;
            alone.second_runs = false;
            if (w.ahead && !(p->code & CODE_HOPPER)) {
                if (!missing(p, "prefetch: into L2")) return false;
                continue;
            }
            if (!card_time(&p->card, do_pause, &w, 5, 0, &with, e) ||
                !card_time(&p->card, do_pause, &alone, 5, 0, &without, e))
                return false;
            row(p, json_pack("{s:i, s:i, s:I, s:f, s:f}", "idle_turns", turns, "ahead_mb", megabytes[i],
                             "bytes", (json_int_t)each, "seconds", with, "first_and_idle_s", without));
        }
    return true;
}

// --- P4, P9: rates of multiplication and decoding

typedef struct Rate {
    Probe *p;
    WgmmaWay way;
    int width, groups, wait, rounds, blocks, bits, columns;
    double done;
} Rate;
static void do_wgmma(void *with, void *stream) {
    Rate *r = with;
    r->done = probe_wgmma_way(r->way, r->width, r->groups, r->wait, r->rounds, r->blocks, r->p->code,
                              r->p->sink, stream);
}
static void do_decode(void *with, void *stream) {
    Rate *r = with;
    r->done = probe_decode(r->bits, r->columns, r->rounds, r->blocks, r->p->sink, stream);
}

// Clocks, power and heat in the midst of such work.
static json_t *gauge_under(Probe *p, CardWork *work, Rate *r) {
    for (int i = 0; i < (p->card.small ? 1 : 100); i++) work(r, p->card.stream);
    json_t *gauge = card_gauge_json();
    gpu_stream_wait(p->card.stream);
    return gauge;
}

// Runs long enough that a launch doesn't matter, then for the time that a rate is held.
static bool held(Probe *p, CardWork *work, Rate *r, double *rate, Error *e) {
    double seconds = 0;
    r->rounds = p->card.small ? 1 : 256;
    do {
        if (!card_time(&p->card, work, r, 1, 0, &seconds, e)) return false;
        if (seconds < 2e-3 && !p->card.small) r->rounds *= 2;
    } while (seconds < 2e-3 && r->rounds < 1 << 20 && !p->card.small);
    if (!card_time(&p->card, work, r, 1, p->held, &seconds, e)) return false;
    *rate = r->done / seconds;
    return true;
}

static bool multiplying(Probe *p, Error *e) {
    static const char *const names[WGMMA_WAYS] = {"shared", "shared, swizzled", "registers"};
    item(p, "wgmma");
    for (int way = 0; way < WGMMA_WAYS; way++)
        for (int i = 0; i < WGMMA_WIDTHS; i++)
            for (int wait = 0; wait < 2; wait++)
                for (int groups = 1; groups <= 2; groups++) {
                    Rate r = {.p = p,
                              .way = (WgmmaWay)way,
                              .width = WGMMA_WIDTH[i],
                              .groups = groups,
                              .wait = wait,
                              .blocks = p->card.small ? 1 : 2 * p->cores};
                    double rate;
                    char name[64];
                    if (groups == 1 && r.width & (r.width - 1)) continue; // widths between get half the time
                    snprintf(name, sizeof name, "wgmma: %s%s", names[way],
                             way == 0 && wait ? ", one unfinished" : "");
                    bool there =
                        p->code & CODE_HOPPER || (p->code & CODE_WARPGROUPS && way == WGMMA_SHARED && !wait);
                    if (!there && !missing(p, name)) return false;
                    if (!there) continue;
                    if (!held(p, do_wgmma, &r, &rate, e)) return false;
                    row(p, json_pack("{s:s, s:i, s:i, s:i, s:i, s:f, s:o}", "operand", names[way], "width",
                                     r.width, "unfinished", wait, "groups", groups, "blocks_each", 2,
                                     "operations_per_s", rate, "gauge",
                                     groups == 2 && r.width >= 128 ? gauge_under(p, do_wgmma, &r)
                                                                   : json_null()));
                }
    return true;
}

static bool decoding(Probe *p, Error *e) {
    item(p, "decode");
    for (int bits = 4; bits <= 8; bits += 4)
        for (int columns = 0; columns <= 16; columns += 8) {
            Rate r = {.p = p, .bits = bits, .columns = columns, .blocks = p->card.small ? 1 : 4 * p->cores};
            double rate;
            if (!held(p, do_decode, &r, &rate, e)) return false;
            row(p, json_pack("{s:i, s:i, s:f, s:f}", "bits", bits, "columns", columns, "weights_per_s", rate,
                             "weights_per_s_each", rate / p->cores));
        }
    return true;
}

// --- P5: bits

static void fill_numbers(uint16_t *x, int rows, int kind, uint64_t seed) {
    Random r = {.seed = seed, .stream = STREAM_TEST};
    for (int i = 0; i < rows * SUM_COLUMNS; i++) {
        float normal = random_normal(&r);
        uint32_t low = random_below(&r, 64);
        float v = normal;
        if (kind == 1) v = normal * 0x1p-130f;                                   // subnormal
        if (kind == 2) v = (i % 2 ? -1.0f : 1.0f) * 4096.0f + 0.5f * (float)low; // cancelling
        if (kind == 3 && low == 0) v = normal > 0 ? 3e38f : -3e38f;              // infinite, soon
        x[i] = f32_to_bf16(v);
    }
}

static bool bits(Probe *p, Error *e) {
    static const char *const kinds[] = {"normal", "subnormal", "cancelling", "infinite"};
    static const char *const ways[SUM_WAYS] = {"mma.sync", "wgmma, shared", "wgmma, shared, swizzled",
                                               "wgmma, registers"};
    size_t a_bytes = SUM_ROWS * SUM_COLUMNS * 2, b_bytes = SUM_WIDEST * SUM_COLUMNS * 2,
           out_bytes = SUM_ROWS * SUM_WIDEST * 4;
    uint16_t *a = mem_new(1, a_bytes), *b = mem_new(1, b_bytes);
    float *want = mem_new(1, out_bytes), *got = mem_new(1, out_bytes);
    unsigned char *on = p->data;
    bool ok = true;
    int columns = p->card.small ? 64 : SUM_COLUMNS;
    item(p, "bits");
    for (int kind = 0; ok && kind < 4; kind++) {
        fill_numbers(a, SUM_ROWS, kind, 1);
        fill_numbers(b, SUM_WIDEST, kind == 1 ? 0 : kind, 2);
        ok = card_ok(gpu_copy(on, a, a_bytes, p->card.stream), "cannot copy", e) &&
             card_ok(gpu_copy(on + a_bytes, b, b_bytes, p->card.stream), "cannot copy", e);
        for (int i = 0; ok && i < WGMMA_WIDTHS; i++)
            for (int way = 0; ok && way < SUM_WAYS; way++) {
                int n = SUM_ROWS * WGMMA_WIDTH[i], differ = 0, nan = 0;
                float *out = (float *)(void *)(on + a_bytes + b_bytes);
                if (!probe_sums(way, WGMMA_WIDTH[i], (const uint16_t *)(const void *)on,
                                (const uint16_t *)(const void *)(on + a_bytes), columns, p->code, out,
                                p->card.stream)) {
                    char name[64];
                    snprintf(name, sizeof name, "bits: %s", ways[way]);
                    ok = missing(p, name);
                    continue;
                }
                ok = card_ok(gpu_launched(), "a launch was refused", e) &&
                     card_ok(gpu_copy(way ? got : want, out, (size_t)n * 4, p->card.stream), "cannot copy",
                             e) &&
                     card_ok(gpu_stream_wait(p->card.stream), "its work failed", e);
                if (way == 0) continue;
                for (int k = 0; ok && k < n; k++) {
                    bool both = got[k] != got[k] && want[k] != want[k]; // NOLINT: NaN
                    nan += both;
                    differ += !both && memcmp(&got[k], &want[k], 4) != 0;
                }
                row(p, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i}", "numbers", kinds[kind], "way", ways[way],
                                 "width", WGMMA_WIDTH[i], "sums", n, "differ_from_mma", differ, "not_numbers",
                                 nan));
            }
    }
    mem_free(a);
    mem_free(b);
    mem_free(want);
    mem_free(got);
    return ok;
}

// --- P6, P7, P8: launches, instructions, latencies

static void run_graph(void *graph, void *stream) { gpu_graph_run(graph, stream); }

static bool gaps(Probe *p, Error *e) {
    static const size_t shared[] = {0, 72 << 10, 200 << 10};
    const int blocks[] = {1, p->cores, 3 * p->cores};
    item(p, "gap");
    for (int early = 0; early < 2; early++)
        for (int s = 0; s < 3; s++)
            for (int b = 0; b < 3; b++) {
                void *graph;
                double seconds;
                if (b == 2 && s == 2) continue; // they'd take turns
                if (!card_ok(gpu_graph_begin(p->card.stream), "cannot record", e)) return false;
                for (int i = 0; i < LAUNCHES; i++)
                    probe_nothing(blocks[b], shared[s], early, p->data, p->sink, p->card.stream);
                if (!card_ok(gpu_graph_end(p->card.stream, &graph), "cannot record", e)) return false;
                bool ok = card_time(&p->card, run_graph, graph, p->card.small ? 1 : 50, 0, &seconds, e);
                gpu_graph_close(graph);
                if (!ok) return false;
                row(p, json_pack("{s:b, s:i, s:i, s:f}", "early", early, "shared_kb", (int)(shared[s] >> 10),
                                 "blocks", blocks[b], "seconds_each", seconds / LAUNCHES));
            }
    return true;
}

typedef struct Meet {
    Probe *p;
    MeetKind kind;
    int rounds;
} Meet;
static void do_meet(void *with, void *stream) {
    const Meet *m = with;
    gpu_fill(m->p->sink, 0, 4, stream);
    probe_meet(m->kind, m->rounds, m->p->cores, m->p->code, m->p->sink, stream);
}

static bool meetings(Probe *p, Error *e) {
    static const char *const names[MEETS] = {"grid", "pair", "four", "load from a pair's other memory"};
    item(p, "barrier");
    for (int kind = 0; kind < MEETS; kind++) {
        double few, many;
        char name[64];
        snprintf(name, sizeof name, "barrier: %s", names[kind]);
        Meet a = {p, (MeetKind)kind, 100}, b = {p, (MeetKind)kind, 1100};
        if (!(p->code & CODE_HOPPER) && !missing(p, name)) return false;
        if (!(p->code & CODE_HOPPER)) continue;
        if (!card_time(&p->card, do_meet, &a, 5, 0, &few, e) ||
            !card_time(&p->card, do_meet, &b, 5, 0, &many, e))
            return false;
        row(p, json_pack("{s:s, s:f}", "between", names[kind], "seconds_each", (many - few) / 1000));
    }
    return true;
}

// 400 MB through L2, so that nothing else is in it.
static Read flush_of(const Probe *p) {
    return (Read){.way = READ_WARPS,
                  .depth = 8,
                  .passes = 1,
                  .blocks = p->cores,
                  .data = (unsigned char *)p->data + p->bytes / 2,
                  .share = 1,
                  .bytes = p->card.small ? p->read : (size_t)400 << 20,
                  .sink = p->sink,
                  .code = p->code};
}

// Mean seconds of straight code, behind other work, since an idle card would wait for the host's launch.
static bool straight_row(Probe *p, int size, bool warm, double *seconds, Error *e) {
    Read flush = flush_of(p);
    int runs = p->card.small ? 1 : 5;
    *seconds = 0;
    for (int k = 0; k < runs; k++) {
        double once;
        probe_read_way(&flush, p->card.stream);
        if (warm) probe_straight(size, p->cores, p->sink, p->card.stream);
        if (!card_ok(gpu_event_record(p->card.from, p->card.stream), "cannot mark", e)) return false;
        probe_straight(size, p->cores, p->sink, p->card.stream);
        if (!card_ok(gpu_event_record(p->card.to, p->card.stream), "cannot mark", e) ||
            !card_ok(gpu_event_wait(p->card.to), "its work failed", e) ||
            !card_ok(gpu_event_seconds(p->card.from, p->card.to, &once), "cannot time it", e))
            return false;
        *seconds += once / runs;
    }
    return true;
}

static bool instructions(Probe *p, Error *e) {
    item(p, "instructions");
    for (int i = 0; i < STRAIGHT_SIZES; i++) {
        double warm, cold;
        if (!straight_row(p, i, false, &cold, e) || !straight_row(p, i, true, &warm, e)) return false;
        row(p, json_pack("{s:i, s:f, s:f}", "kb", STRAIGHT_KB[i], "warm_s", warm, "cold_s", cold));
    }
    return true;
}

typedef struct Wait {
    Probe *p;
    WaitKind kind;
    size_t bytes;
    int count;
    long long *clocks;
    bool cold; // nothing of it is in L2
} Wait;
static void do_wait(void *with, void *stream) {
    const Wait *w = with;
    Read flush = flush_of(w->p);
    if (w->cold) probe_read_way(&flush, stream);
    probe_wait(w->kind, w->p->data, w->bytes, w->count, w->p->cores, w->p->code, w->clocks, stream);
}

static bool latencies(Probe *p, Error *e) {
    static const struct {
        const char *name;
        WaitKind kind;
        int megabytes;
    } all[] = {{"load from L2", WAIT_LOAD, 8},
               {"load from memory", WAIT_LOAD, 2048},
               {"the same while others read", WAIT_LOADED, 2048},
               {"atomic", WAIT_ATOMIC, 8},
               {"store and fence", WAIT_FENCE, 8},
               {"fence of tensor cores", WAIT_PROXY_FENCE, 8},
               {"mbarrier", WAIT_MBARRIER, 8}};
    int count = p->card.small ? 10 : 20000;
    item(p, "latency");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        long long *at = (long long *)p->sink, clocks = 0;
        size_t bytes = (size_t)all[i].megabytes << 20;
        bool cold = all[i].kind == WAIT_LOAD && all[i].megabytes > 1000;
        Wait w = {p, all[i].kind, bytes < p->bytes ? bytes : p->read, count, at, cold}, twice = w;
        double once, both;
        char name[64];
        snprintf(name, sizeof name, "latency: %s", all[i].name);
        if (all[i].kind == WAIT_LOADED)
            w.count = twice.count = count / 80; // the others are done in half a millisecond
        twice.count *= 2;
        if (all[i].kind != WAIT_LOAD && all[i].kind != WAIT_ATOMIC && all[i].kind != WAIT_FENCE &&
            !(p->code & CODE_HOPPER)) {
            if (!missing(p, name)) return false;
            continue;
        }
        probe_chain(p->data, w.bytes, p->card.stream);
        if (!card_time(&p->card, do_wait, &w, 3, 0, &once, e) ||
            !card_time(&p->card, do_wait, &twice, 3, 0, &both, e) ||
            !card_ok(gpu_copy(&clocks, at, sizeof clocks, p->card.stream), "cannot copy", e) ||
            !card_ok(gpu_stream_wait(p->card.stream), "its work failed", e))
            return false;
        row(p, json_pack("{s:s, s:I, s:f, s:f}", "of", all[i].name, "bytes", (json_int_t)w.bytes,
                         "seconds_each", all[i].kind == WAIT_LOADED ? 0.0 : (both - once) / count,
                         "clocks_each", p->code & CODE_HOPPER ? (double)clocks / twice.count : 0.0));
    }
    return true;
}

// --- P10: the host

static bool host(Probe *p, Error *e) {
    const Clock clock = clock_monotonic();
    int runs = p->card.small ? 2 : 200;
    void *graph, *pinned;
    double submit = 0, trip = 0, back = 0, launch = 0;
    item(p, "host");
    if (!card_ok(gpu_graph_begin(p->card.stream), "cannot record", e)) return false;
    for (int i = 0; i < 200; i++) probe_nothing(p->cores, 0, true, p->data, p->sink, p->card.stream);
    if (!card_ok(gpu_graph_end(p->card.stream, &graph), "cannot record", e) ||
        !card_ok(gpu_take_pinned(&pinned, 8), "no pinned memory", e))
        return false;
    bool ok = true;
    for (int i = 0; ok && i < runs; i++) {
        double t = clock_now(clock);
        ok = card_ok(gpu_graph_run(graph, p->card.stream), "cannot run", e);
        submit += (clock_now(clock) - t) / runs;
        ok = ok && card_ok(gpu_stream_wait(p->card.stream), "its work failed", e);
        t = clock_now(clock);
        ok = ok && card_ok(gpu_event_record(p->card.to, p->card.stream), "cannot mark", e) &&
             card_ok(gpu_event_wait(p->card.to), "cannot wait", e);
        trip += (clock_now(clock) - t) / runs;
        t = clock_now(clock);
        ok = ok && card_ok(gpu_copy(pinned, p->sink, 8, p->card.stream), "cannot copy", e) &&
             card_ok(gpu_stream_wait(p->card.stream), "its work failed", e);
        back += (clock_now(clock) - t) / runs;
        t = clock_now(clock);
        probe_nothing(1, 0, false, p->data, p->sink, p->card.stream);
        launch += (clock_now(clock) - t) / runs;
        ok = ok && card_ok(gpu_stream_wait(p->card.stream), "its work failed", e);
    }
    gpu_graph_close(graph);
    gpu_give_pinned(pinned);
    row(p, json_pack("{s:f, s:f, s:f, s:f}", "graph_of_200_submit_s", submit, "event_round_trip_s", trip,
                     "eight_bytes_back_s", back, "launch_s", launch));
    return ok;
}

// --- all of it

static bool take(Probe *p, Error *e) {
    const size_t most = (size_t)4 << 30;
    unsigned flags = 0;
    p->cores = p->card.facts.multiprocessors;
    p->bytes = p->card.small ? (size_t)1 << 20 : p->card.facts.free_bytes / 4 / (1 << 20) * (1 << 20);
    if (p->bytes > most) p->bytes = most;
    p->read = p->card.small ? p->bytes / 8 : p->bytes;
    size_t sink = (size_t)p->cores * 8 * 256 * sizeof(float);
    if (!card_ok(gpu_take(&p->data, p->bytes), "no memory", e) ||
        !card_ok(gpu_take(&p->sink, sink), "no memory", e) ||
        !card_ok(gpu_fill(p->data, 0x3c, p->bytes, p->card.stream), "cannot fill", e) ||
        !card_ok(gpu_fill(p->sink, 0, sink, p->card.stream), "cannot fill", e))
        return false;
    probe_code(p->sink, p->card.stream);
    if (!card_ok(gpu_launched(), "a launch was refused", e) ||
        !card_ok(gpu_copy(&flags, p->sink, sizeof flags, p->card.stream), "cannot copy", e) ||
        !card_ok(gpu_stream_wait(p->card.stream), "its work failed", e))
        return false;
    p->code = (int)flags;
    return true;
}

typedef bool Item(Probe *p, Error *e);
static Item *const ITEMS[] = {bits, reading,  from_l2,      near_and_far, pauses,   multiplying,
                              gaps, meetings, instructions, latencies,    decoding, host};

// What was measured before a failure is written all the same.
static bool probe(Probe *p, const char *out, Error *e) {
    const Clock clock = clock_monotonic();
    json_t *seconds = json_array();
    bool ok = take(p, e);
    json_object_set_new(p->root, "card", card_facts_json(&p->card));
    json_object_set_new(p->root, "gauge_before", card_gauge_json());
    json_object_set_new(p->root, "small", json_boolean(p->card.small));
    json_object_set_new(p->root, "code", json_integer(p->code));
    json_object_set(p->root, "not_executed", p->missing);
    for (size_t i = 0; ok && i < sizeof ITEMS / sizeof *ITEMS; i++) {
        double start = clock_now(clock);
        ok = ITEMS[i](p, e);
        json_array_append_new(seconds, json_real(clock_now(clock) - start));
    }
    json_object_set_new(p->root, "seconds", seconds);
    json_object_set_new(p->root, "gauge_after", card_gauge_json());
    if (!ok) json_object_set_new(p->root, "failed", json_string(e->text));
    Error unwritten = {0};
    bool written = card_write(json_incref(p->root), out, &unwritten);
    if (ok && !written) *e = unwritten;
    return ok && written;
}

int card_probe(int argc, char **argv) {
    CardOptions o;
    Error e = {0};
    Probe p = {.root = json_object(), .missing = json_array()};
    bool ok = card_options(argc, argv, &o, &e) && card_open(&p.card, o.small, &e);
    p.held = o.small ? 0 : 0.2;
    ok = ok && probe(&p, o.out, &e);
    gpu_give(p.data);
    gpu_give(p.sink);
    card_close(&p.card);
    json_decref(p.missing);
    json_decref(p.root);
    if (!ok) fprintf(stderr, "%s\n", e.text);
    return ok ? 0 : 1;
}
