// The lengths of drafts: the worth of one more guess against its cost.
#include "engine/decode/pace.h"

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

void pace_begin(Pace *x) {
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
    bool full = ++x->drafted >= x->length;
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
