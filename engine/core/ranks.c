// Shared steps: see ranks.h. A rank's own tree is a copy of its part, below a chain of the tokens that the
// rank lacks:
//
//      tree (all ranks)      part 0: 0 1 2 3 | part 1: 4 5 6          rank 1 lacks the tokens x, y
//      own tree of rank 1    x y 4 5 6                                node 4 is number 2 there
#include "engine/core/ranks.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef enum { STATUS_STEP, STATUS_ENDED, STATUS_FAILED } Status;

// A message is a header and arrays of a fixed length: argmax (nodes); and if sampled, drawn (nodes), total
// (nodes) and chance (proposals), as in HeadDraws.
typedef struct Header {
    Status status;
    int nodes; // read by this rank
    int again; // tokens that it ran again
    uint64_t digest;
    double waited_s; // in the last collective
} Header;

struct Ranks {
    Team team;
    Text opening;
    RankLimits most;
    bool sampled;
    const Backend *inner;
    void *self;      // the inner backend's
    Backend backend; // wraps it
    int layers;
    const Tree *tree; // of the session's open step
    int first, last;  // the own part's nodes in it; none: first = last
    Tree own;
    Cache cache;  // the own one
    int *lacking; // (lacking_count): committed tokens that this rank has not run
    size_t lacking_capacity;
    int lacking_count;
    int *copies; // (nodes of the tree): the own tree's node of a canonical node, or TREE_NONE
    float *logits, *p;
    size_t logits_capacity;
    Sampler sampler;
    uint64_t digest;
    char *mine, *all; // a message; one of every rank
    size_t bytes;
    bool over; // a rank has ended or failed
    RankTimes times;
};

uint64_t ranks_hash(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ at[i]) * 0x100000001B3u; // FNV-1a
    return hash;
}

static void ranks_check(const Ranks *r) {
    assert(r->first <= r->last && r->lacking_count >= 0);
    assert(r->own.count <= r->own.capacity);
    assert(r->team.rank >= 0 && r->team.rank < r->team.count);
}

// --- messages

static Header *header_of(const Ranks *r, char *messages, int rank) {
    return (Header *)(void *)(messages + (size_t)rank * r->bytes);
}

static int *argmax_of(Header *h) { return (int *)(void *)(h + 1); }
static int *drawn_of(const Ranks *r, Header *h) { return argmax_of(h) + r->most.nodes; }
static double *total_of(const Ranks *r, Header *h) {
    return (double *)(void *)(argmax_of(h) + 2 * r->most.nodes);
}
static double *chance_of(const Ranks *r, Header *h) { return total_of(r, h) + r->most.nodes; }

bool ranks_agree(const Team *team, bool ok, Error *e) {
    Error mine = {0}, *all = mem_new((size_t)team->count, sizeof *all);
    if (!ok) mine = *e;
    int bad = 0;
    bool met = team->gather(team->self, &mine, all, sizeof mine, e);
    while (met && bad < team->count && all[bad].kind == ERROR_NONE) bad++;
    ok = met && bad == team->count;
    if (met && !ok) {
        *e = all[bad];
        if (bad != team->rank && e->kind != ERROR_INTERRUPTED)
            error_within(e, "rank %d of %d", bad, team->count);
    }
    mem_free(all);
    return ok;
}

static void add_times(Ranks *r) {
    double least = INFINITY;
    int again = 0;
    for (int i = 0; i < r->team.count; i++) {
        const Header *h = header_of(r, r->all, i);
        least = fmin(least, h->waited_s);
        if (h->status == STATUS_STEP && h->again > again) again = h->again;
    }
    r->times.message_s += least;
    r->times.again += again;
}

// Sends the own message, whose outputs are filled in, and receives all. False if this rank can't go on: e is
// then the error, or nothing if rank 0 has ended.
static bool exchange(Ranks *r, Status status, Error *e) {
    Header *h = header_of(r, r->mine, 0);
    h->status = status;
    h->digest = r->digest;
    Clock clock = clock_monotonic();
    double start = clock_now(clock);
    if (!r->team.gather(r->team.self, r->mine, r->all, r->bytes, e)) {
        r->over = true;
        return false;
    }
    double took = clock_now(clock) - start;
    add_times(r); // of the last one
    h->waited_s = took;
    if (status == STATUS_STEP) {
        r->times.collective_s += took;
        r->times.collectives++;
    } else h->waited_s = 0;
    bool failed = false, ended = false;
    for (int i = 0; i < r->team.count; i++) {
        failed |= header_of(r, r->all, i)->status == STATUS_FAILED;
        ended |= header_of(r, r->all, i)->status == STATUS_ENDED;
    }
    r->over = failed || ended;
    if (failed) return ranks_agree(&r->team, status != STATUS_FAILED, e);
    if (ended) return status == STATUS_ENDED;
    for (int i = 0; i < r->team.count; i++)
        if (header_of(r, r->all, i)->digest != r->digest)
            return error_system(e, "rank %d and rank %d hold different windows or n-grams: this is a bug", i,
                                r->team.rank);
    return true;
}

// --- the own tree

// A chain of the first `count` lacking tokens; returns its last node.
static int begin_own(Ranks *r, int count) {
    tree_clear(&r->own, r->cache.length, r->cache.limit, false, LAYOUT_TREE);
    int node = TREE_NONE;
    for (int i = 0; i < count; i++)
        node = i ? tree_probe(&r->own, node, r->lacking[i], false) : tree_root(&r->own, r->lacking[0]);
    assert(r->own.count == count);
    return node;
}

static void copy_part(Ranks *r, int above) {
    const Tree *t = r->tree;
    int offset = r->own.count - r->first;
    for (int i = 0; i < t->count; i++) r->copies[i] = TREE_NONE;
    for (int i = r->first; i < r->last; i++) {
        int parent = t->parent[i] == TREE_NONE ? above : t->parent[i] + offset;
        int node = parent == TREE_NONE ? tree_root(&r->own, t->token[i])
                                       : tree_probe(&r->own, parent, t->token[i], false);
        assert(node == i + offset);
        if (r->copies[t->canonical[i]] == TREE_NONE) r->copies[t->canonical[i]] = node;
    }
}

static bool commit_chain(Ranks *r, int count, Error *e) {
    int nodes[TREE_MAX_NODES], slots[TREE_MAX_NODES];
    for (int i = 0; i < count; i++) {
        nodes[i] = i;
        slots[i] = cache_slot(&r->cache, r->cache.length + i);
    }
    if (count && !r->inner->commit(r->self, nodes, slots, count, e)) return false;
    cache_advance(&r->cache, count);
    r->lacking_count -= count;
    memmove(r->lacking, r->lacking + count, (size_t)r->lacking_count * sizeof *r->lacking);
    return true;
}

// Lacking tokens for which a step has no room are run by themselves.
static bool catch_up(Ranks *r, int room, Error *e) {
    while (r->lacking_count > room) {
        int count = r->lacking_count < r->own.capacity ? r->lacking_count : r->own.capacity;
        if (count > r->cache.capacity) count = r->cache.capacity;
        begin_own(r, count);
        StepRun run = {&r->own, &r->cache, 0, count, 0, r->layers, 0};
        if (!r->inner->run(r->self, &run, e) || !commit_chain(r, count, e)) return false;
    }
    return true;
}

static bool begin_step(Ranks *r, const StepRun *run, Error *e) {
    r->tree = run->tree;
    r->digest = ranks_hash(r->digest, r->tree->token, (size_t)r->tree->count * sizeof(int));
    r->digest = ranks_hash(r->digest, r->tree->parent, (size_t)r->tree->count * sizeof(int));
    assert(r->cache.length + r->lacking_count == run->cache->length);
    assert(r->tree->parts <= r->team.count);
    const Tree *t = r->tree;
    int part = r->team.rank;
    r->first = part < t->parts ? t->part_root[part] : t->count;
    r->last = part + 1 < t->parts ? t->part_root[part + 1] : t->count;
    header_of(r, r->mine, 0)->again = 0;
    if (r->first == r->last) return true;
    header_of(r, r->mine, 0)->again = r->lacking_count;
    int room = r->own.capacity - (r->last - r->first);
    if (room > r->cache.capacity) room = r->cache.capacity;
    if (!catch_up(r, room, e)) return false;
    copy_part(r, begin_own(r, r->lacking_count));
    ranks_check(r);
    return true;
}

// --- the backend

// The session runs part by part, the first one first, each through all layers or layer by layer.
static bool run_part(void *self, const StepRun *run, Error *e) {
    Ranks *r = self;
    if (run->first == 0 && run->a == 0 && !begin_step(r, run, e)) return false;
    if (r->first == r->last || run->first != r->first) return true;
    assert(run->last == r->last);
    StepRun own = {&r->own, &r->cache, 0, r->own.count, run->a, run->b, 0};
    return r->inner->run(r->self, &own, e);
}

// The results of a device that draws, computed from logits.
static void draw_row(Ranks *r, const float *logits, const HeadDraws *d, int i) {
    int count = d->first[i + 1] - d->first[i];
    const int *tokens = d->token + d->first[i];
    sampler_distribution(&r->sampler, logits, r->p);
    d->total[i] = sampler_sum(r->p, d->vocab);
    for (int k = 0; k < count; k++) d->chance[d->first[i] + k] = (double)r->p[tokens[k]];
    d->drawn[i] = sampler_rest(r->p, d->vocab, tokens, count, d->u[i]);
}

static bool draw_from_logits(Ranks *r, const int *nodes, const int *own, int count, HeadOut *out, Error *e) {
    size_t vocab = (size_t)r->own.vocab;
    HeadDraws *d = out->draws;
    if (!r->p) {
        sampler_init(&r->sampler, &d->sampling, d->vocab);
        r->p = mem_new((size_t)d->vocab, sizeof *r->p);
    }
    mem_grow(&r->logits, &r->logits_capacity, (size_t)count * vocab, sizeof *r->logits);
    out->logits = r->logits;
    if (!r->inner->head(r->self, own, count, HEAD_ARGMAX | HEAD_LOGITS, out, e)) return false;
    for (int i = 0; i < count; i++) {
        bool draws = r->tree->flags[nodes[i]] & NODE_CANDIDATE || r->tree->parent[nodes[i]] == TREE_NONE;
        if (draws && out->argmax[i] != HEAD_BAD) draw_row(r, r->logits + (size_t)i * vocab, d, i);
    }
    return true;
}

// Reads `count` nodes of the own part into the message; `own` are their numbers in the own tree. draws:
// theirs alone, from `first` on; NULL if greedy.
static bool read_into(Ranks *r, const int *nodes, const int *own, int count, HeadDraws *draws, Error *e) {
    Header *h = header_of(r, r->mine, 0);
    HeadOut out = {.argmax = argmax_of(h), .draws = draws};
    if (!draws) return r->inner->head(r->self, own, count, HEAD_ARGMAX, &out, e);
    draws->drawn = drawn_of(r, h);
    draws->total = total_of(r, h);
    draws->chance = chance_of(r, h);
    for (int i = 0; i < count; i++) {
        draws->drawn[i] = -1;
        draws->total[i] = 1;
    }
    return r->inner->distribution ? r->inner->head(r->self, own, count, HEAD_ARGMAX | HEAD_DRAW, &out, e)
                                  : draw_from_logits(r, nodes, own, count, &out, e);
}

static bool read_own(Ranks *r, const int *nodes, int count, const HeadDraws *draws, Error *e) {
    int own[TREE_MAX_NODES], first[TREE_MAX_NODES + 1], from = 0, n = 0;
    HeadDraws part = {0};
    while (from < count && nodes[from] < r->first) from++;
    for (; from + n < count && nodes[from + n] < r->last; n++)
        own[n] = nodes[from + n] - r->first + r->own.count - (r->last - r->first);
    assert(n <= r->most.nodes);
    header_of(r, r->mine, 0)->nodes = n;
    if (draws) {
        assert(draws->first[from + n] - draws->first[from] <= r->most.proposals);
        first[0] = 0;
        for (int i = 0; i < n; i++) first[i + 1] = draws->first[from + i + 1] - draws->first[from];
        part = (HeadDraws){.sampling = draws->sampling,
                           .vocab = draws->vocab,
                           .u = draws->u + from,
                           .first = first,
                           .token = draws->token + draws->first[from]};
    }
    return n == 0 || read_into(r, nodes + from, own, n, draws ? &part : NULL, e);
}

// Nodes are in order, and so are the ranks' parts.
static void take_outputs(Ranks *r, UNUSED int count, HeadOut *out) {
    int row = 0;
    for (int rank = 0; rank < r->team.count; rank++) {
        Header *h = header_of(r, r->all, rank);
        const double *chances = chance_of(r, h);
        HeadDraws *d = out->draws;
        for (int i = 0; i < h->nodes; i++, row++) {
            assert(row < count);
            out->argmax[row] = argmax_of(h)[i];
            if (!d) continue;
            d->drawn[row] = drawn_of(r, h)[i];
            d->total[row] = total_of(r, h)[i];
            for (int k = d->first[row]; k < d->first[row + 1]; k++) d->chance[k] = *chances++;
        }
    }
    assert(row == count);
}

static bool read_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    Ranks *r = self;
    assert(!(want & ~(unsigned)(HEAD_ARGMAX | HEAD_DRAW)) && !r->over);
    HeadDraws *draws = want & HEAD_DRAW ? out->draws : NULL;
    assert(!draws || (r->sampled && !draws->confidence));
    out->draws = draws;
    if (!read_own(r, nodes, count, draws, e) || !exchange(r, STATUS_STEP, e)) return false;
    take_outputs(r, count, out);
    return true;
}

// Only a method that draws its proposals from a distribution may need all of p.
static bool refuse_distribution(UNUSED void *self, UNUSED int node, UNUSED const Sampling *sampling,
                                UNUSED int vocab, UNUSED float *p, Error *e) {
    return error_system(e, "ranks do not exchange whole distributions");
}

static bool commit_path(void *self, const int *nodes, const int *slots, int count, Error *e) {
    Ranks *r = self;
    int own[TREE_MAX_NODES], have = 0;
    bool ran = r->first < r->last;
    assert(count <= r->cache.capacity);
    while (ran && have < count && r->copies[r->tree->canonical[nodes[have]]] != TREE_NONE) {
        own[have] = r->copies[r->tree->canonical[nodes[have]]];
        have++;
    }
    if (ran && !commit_chain(r, r->lacking_count, e)) return false;
    if (have && !r->inner->commit(r->self, own, slots, have, e)) return false;
    cache_advance(&r->cache, have);
    size_t need = (size_t)(r->lacking_count + count - have);
    mem_grow(&r->lacking, &r->lacking_capacity, need, sizeof *r->lacking);
    for (int i = have; i < count; i++) r->lacking[r->lacking_count++] = r->tree->token[nodes[i]];
    ranks_check(r);
    return true;
}

static void report(const void *self, BackendReport *out) {
    const Ranks *r = self;
    r->inner->report(r->self, out);
}

// --- life

void session_share(Session *s, const Team *team, const Text *opening) {
    Ranks *r = mem_new(1, sizeof *r);
    assert(!s->ranks && team->count >= 1 && team->count <= TREE_MAX_PARTS);
    *r = (Ranks){.team = *team, .layers = s->shape.layers};
    text_add(&r->opening, text_get(opening), opening->length);
    tree_init(&r->own, s->tree.capacity, shape_tokens(&s->shape));
    r->copies = mem_new((size_t)s->tree.capacity, sizeof *r->copies);
    s->ranks = r;
}

void ranks_release(Ranks *r) {
    if (!r) return;
    text_release(&r->opening);
    tree_release(&r->own);
    MEM_FREE(r->copies, r->lacking, r->mine, r->all, r->logits, r);
}

const Team *ranks_team(const Ranks *r) { return &r->team; }
const Text *ranks_opening(const Ranks *r) { return &r->opening; }

static void make_room(Ranks *r, const RankLimits *most, bool sampled) {
    MEM_FREE(r->mine, r->all);
    r->most = *most;
    size_t nodes = (size_t)most->nodes, proposals = (size_t)most->proposals;
    r->bytes = sizeof(Header) + (sampled ? nodes * (2 * sizeof(int) + sizeof(double)) : nodes * sizeof(int)) +
               (sampled ? proposals * sizeof(double) : 0);
    r->bytes = (r->bytes + sizeof(double) - 1) / sizeof(double) * sizeof(double);
    r->mine = mem_new(1, r->bytes);
    r->all = mem_new((size_t)r->team.count, r->bytes);
}

void ranks_begin(Session *s, const RankLimits *most, bool sampled) {
    Ranks *r = s->ranks;
    assert(r && !r->inner);
    make_room(r, most, sampled);
    r->sampled = sampled;
    r->inner = s->backend;
    r->self = s->self;
    r->backend = (Backend){.name = r->inner->name,
                           .cuts = r->inner->cuts,
                           .run = run_part,
                           .head = read_head,
                           .distribution = sampled ? refuse_distribution : NULL,
                           .commit = commit_path,
                           .report = report};
    r->cache = s->cache;
    r->first = r->last = r->lacking_count = 0;
    r->over = false;
    r->times = (RankTimes){.bytes = r->bytes};
    s->backend = &r->backend;
    s->self = r;
    ranks_check(r);
}

bool ranks_end(Session *s, bool ok, RankTimes *times, Error *e) {
    Ranks *r = s->ranks;
    if (!r->over) ok = exchange(r, ok ? STATUS_ENDED : STATUS_FAILED, e) && ok;
    *times = r->times;
    s->backend = r->inner;
    s->self = r->self;
    r->inner = NULL;
    if (r->p) sampler_release(&r->sampler);
    mem_free(r->p);
    r->p = NULL;
    return ok;
}

void ranks_digest(Session *s, uint64_t digest) { s->ranks->digest = digest; }
