// The lengths of drafts: the worth of one more guess against its cost.
#include "engine/decode/pace.h"

#include "engine/base/json.h"
#include "engine/core/batch.h"
#include "engine/decode/sources.h"

#include <assert.h>
#include <string.h>

// Of counts, a step; of the mean chance before anything is known; how many guesses a doubt is worth.
static const double FADE = 0.95, HOPE = 0.7, DOUBT = 4;

const char *const pace_kinds[] = {"off", "heuristic", "confidence", "learned", NULL};

void pace_init(Pace *x, const PaceParams *p, int first, int least, int most) {
    assert(least >= 0 && least <= 1 && least <= first && first <= most);
    *x = (Pace){.p = *p, .first = first, .least = least, .most = most};
    if (p->adaptive == PACE_LEARNED && most > PACE_PLACES) x->most = PACE_PLACES;
    pace_begin(x);
}

static bool has_schedule(const PaceParams *p) { return p->schedule[0] && strcmp(p->schedule, "none") != 0; }

bool pace_varies(const PaceParams *p) { return p->adaptive != PACE_OFF || has_schedule(p); }

bool pace_fixed(const PaceParams *p, const char *what, Error *e) {
    if (p->adaptive != PACE_OFF) return error_input(e, "adaptive=%s needs %s", pace_kinds[p->adaptive], what);
    return !has_schedule(p) || error_input(e, "a schedule needs %s", what);
}

// --- the schedule

enum { MOST_BYTES = 1 << 20, MOST_BATCH = 1 << 20, MOST_CONTEXT = 1 << 30 };

static bool is_whole(const json_t *x, int low, int high) {
    return json_is_integer(x) && json_integer_value(x) >= low && json_integer_value(x) <= high;
}

// Ranges of batches: [first, last, tokens], each from where the one before ends.
static bool read_ranges(Pace *x, const json_t *of, int context, Error *e) {
    const json_t *ranges = json_object_get(of, PACE_RANGES);
    int next = 1;
    if (!json_array_size(ranges))
        return error_input(e, "'%s' has no list '%s': 'outpace tune --schedule' writes such a file",
                           x->p.schedule, PACE_RANGES);
    for (size_t i = 0; i < json_array_size(ranges); i++) {
        const json_t *range = json_array_get(ranges, i), *last = json_array_get(range, 1),
                     *most = json_array_get(range, 2);
        if (json_array_size(range) != 3 || !is_whole(json_array_get(range, 0), next, next) ||
            !is_whole(last, next, MOST_BATCH) || !is_whole(most, 0, TREE_MAX_NODES))
            return error_input(e, "'%s': entry %zu of '%s' must be [first, last, tokens], its first batch %d",
                               x->p.schedule, i + 1, PACE_RANGES, next);
        if (x->row_count == PACE_ROWS)
            return error_input(e, "'%s' has more than %d ranges", x->p.schedule, PACE_ROWS);
        next = (int)json_integer_value(last) + 1;
        x->rows[x->row_count++] = (PaceRow){context, next - 1, (int)json_integer_value(most)};
    }
    return true;
}

static bool read_contexts(Pace *x, const json_t *root, Error *e) {
    const json_t *list = json_object_get(root, PACE_CONTEXTS);
    int64_t context = 0;
    bool ok = read_ranges(x, root, 0, e);
    for (size_t i = 0; ok && i < json_array_size(list); i++) {
        const json_t *of = json_array_get(list, i);
        ok = field_int(of, "context", context + 1, MOST_CONTEXT, &context, x->p.schedule, e) &&
             read_ranges(x, of, (int)context, e);
    }
    return ok;
}

bool pace_read(Pace *x, Error *e) {
    x->row_count = 0;
    if (!has_schedule(&x->p)) return true;
    json_t *root = json_from_file(x->p.schedule, MOST_BYTES, e);
    bool ok = root && read_contexts(x, root, e);
    json_decref(root);
    return ok;
}

int pace_limit(const Pace *x, int batch, int context) {
    int limit = x->most;
    for (int i = 0; i < x->row_count && x->rows[i].context <= context; i++)
        if (i == 0 || x->rows[i].context != x->rows[i - 1].context || x->rows[i - 1].last < batch)
            limit = x->rows[i].most;
    return limit < x->least ? x->least : limit < x->most ? limit : x->most;
}

int pace_step(Pace *x, const Session *target) {
    x->limit = pace_limit(x, target->lane ? lane_shared(target->lane).sequences : 1, target->cache.length);
    return x->length < x->limit ? x->length : x->limit;
}

// --- outputs and steps

void pace_begin(Pace *x) {
    x->limit = x->most;
    x->length = x->p.adaptive == PACE_LEARNED ? x->most : x->first;
    x->resting = x->drafted = 0;
    x->chance = x->tokens = x->time = 1;
    memset(x->reached, 0, sizeof x->reached);
    memset(x->right, 0, sizeof x->right);
}

static double mean_chance(const Pace *x) {
    double reached = DOUBT, right = HOPE * DOUBT;
    for (int i = 0; i < PACE_BINS; i++) reached += x->reached[i], right += x->right[i];
    return right / reached;
}

// Tokens that the text goes on by in the time of a guess.
static double price(const Pace *x) { return x->p.cost * x->tokens / x->time; }

bool pace_ends(Pace *x, int node, double confidence) {
    x->last = node;
    bool full = ++x->drafted >= x->length || x->drafted >= x->limit;
    if (x->p.adaptive != PACE_LEARNED)
        return full || (x->p.adaptive == PACE_CONFIDENCE && confidence <= x->p.confidence);
    int bin = (int)(confidence * PACE_BINS);
    bin = bin < 0 ? 0 : bin < PACE_BINS ? bin : PACE_BINS - 1;
    x->bin[x->drafted - 1] = bin;
    x->chance *= (x->right[bin] + DOUBT * confidence) / (x->reached[bin] + DOUBT);
    return full || x->chance * mean_chance(x) < price(x);
}

static void weigh(Pace *x, int accepted) {
    x->tokens = FADE * x->tokens + accepted + 1;
    x->time = FADE * x->time + 1 + x->drafted * x->p.cost;
    for (int i = 0; x->drafted > 0 && i < PACE_BINS; i++) x->reached[i] *= FADE, x->right[i] *= FADE;
    for (int i = 0; i < x->drafted && i <= accepted; i++) {
        x->reached[x->bin[i]]++;
        x->right[x->bin[i]] += i < accepted;
    }
    x->chance = 1;
    x->resting = mean_chance(x) < price(x) ? x->resting + 1 : 0;
    bool probe = x->resting % PACE_PROBE == 0 || (x->drafted > 0 && accepted == x->drafted);
    x->length = !x->resting ? x->most : probe ? 1 : x->least;
}

void pace_learn(Pace *x, int accepted) {
    if (x->p.adaptive == PACE_LEARNED) weigh(x, accepted);
    if (x->p.adaptive == PACE_HEURISTIC && x->drafted) {
        x->length += accepted >= x->drafted ? 2 : -1;
        if (x->length < 1) x->length = 1;
        if (x->length > x->most) x->length = x->most;
    }
    x->drafted = 0;
}

void pace_observe(Pace *x, const Observation *seen) {
    pace_learn(x, x->drafted ? sources_match(&seen->target->tree, x->last, seen->verdict->node) : 0);
}
