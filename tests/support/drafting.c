// A choice of (gamma, eta) costs two geometric series; there are few choices, so draft_best tries them all.
#include "tests/support/drafting.h"

#include <assert.h>
#include <math.h>

double ctar_measured(const int *accepted, size_t steps, int w) {
    size_t passed = 0;
    assert(steps > 0);
    for (size_t i = 0; i < steps; i++) passed += accepted[i] >= w;
    return (double)passed / (double)steps;
}

double compression_from_ctar(const double *ctar, int gamma, bool bonus_dropped) {
    double sum = 1;
    for (int w = 1; w <= gamma - bonus_dropped; w++) sum += ctar[w - 1];
    return sum;
}

static bool fraction(double x) { return x >= 0 && x <= 1; }

static bool cost_is_valid(const DraftCost *c) {
    return c->draft >= 0 && c->verify > 0 && c->row >= 0 && isfinite(c->draft + c->verify + c->row);
}

bool draft_check(const Draft *draft, Error *e) {
    double sum = 0;
    for (size_t i = 0; i < draft->count; i++) {
        const ConfidenceBin *b = &draft->bins[i];
        if (!fraction(b->level) || !fraction(b->share) || !fraction(b->right))
            return error_input(e, "draft: bin %zu has level %g, share %g, right %g; each must be in [0, 1]",
                               i + 1, b->level, b->share, b->right);
        sum += b->share;
    }
    if (!(fabs(sum - 1) <= 1e-9)) return error_input(e, "draft: the bins' shares sum to %g, must be 1", sum);
    return cost_is_valid(&draft->cost) ||
           error_input(e,
                       "draft: costs are %g a token, %g a verification, %g a row; must be 0 or more, the "
                       "verification above 0",
                       draft->cost.draft, draft->cost.verify, draft->cost.row);
}

// 1 + x + ... + x^(n-1)
static double geometric(double x, int n) {
    double sum = 0, power = 1;
    for (int i = 0; i < n; i++, power *= x) sum += power;
    return sum;
}

DraftChoice draft_at(const Draft *draft, int gamma, double eta) {
    double right = 0, above = 0, above_right = 0;
    assert(draft_check(draft, NULL) && gamma >= 0 && gamma <= DRAFT_MOST_GAMMA);
    for (size_t i = 0; i < draft->count; i++) {
        const ConfidenceBin *b = &draft->bins[i];
        right += b->share * b->right;
        // A level of exactly 0 goes on where eta is 0: a fixed number of steps means no stopping at all.
        if (b->level <= eta && eta > 0) continue;
        above += b->share;
        above_right += b->share * b->right;
    }
    DraftChoice c = {.gamma = gamma, .eta = eta};
    c.tokens = 1 + right * geometric(above_right, gamma);
    c.drafted = geometric(above, gamma);
    c.speedup = c.tokens / (draft->cost.verify + (draft->cost.draft + draft->cost.row) * c.drafted);
    return c;
}

static bool better(const DraftChoice *a, const DraftChoice *b) {
    if (a->speedup != b->speedup) return a->speedup > b->speedup;
    return a->gamma != b->gamma ? a->gamma < b->gamma : a->eta < b->eta;
}

DraftChoice draft_best(const Draft *draft, int most) {
    DraftChoice best = draft_at(draft, 0, 0);
    for (int gamma = 1; gamma <= most; gamma++)
        for (size_t i = 0; i <= draft->count; i++) {
            DraftChoice c = draft_at(draft, gamma, i ? draft->bins[i - 1].level : 0);
            if (better(&c, &best)) best = c;
        }
    return best;
}
