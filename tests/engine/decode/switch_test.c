// The switch against a slow model that keeps every step and computes each mean from all its numbers, and what
// the rules choose.
#include "tests/support/check.h"

#include "engine/decode/switch.h"

#include <math.h>
#include <string.h>

enum { STEPS = 400, LONGEST = 12, TEXT = STEPS * 4 };

typedef struct {
    Outlook look;
    int token[LONGEST], parent[LONGEST];
    int start;       // tokens of the text before the step
    int rest, right; // rest, right: -1: not known
    int learnt;      // the number of the observation in which `right` became known
} Step;

typedef struct {
    Step steps[STEPS];
    int count;
    int text[TEXT], length;
    int chosen[STEPS], emitted[STEPS];
} Slow;

// A number as the mean of a list weighs it: the newest 64 or so count.
typedef struct {
    double x[STEPS];
    int n;
} List;

static double weight_of(const List *l, int i) {
    int after = l->n - 1 - i, full = l->n - 64; // numbers that came when the weight was 63 or more already
    double fading = fmin(after, full > 0 ? full : 0);
    return pow(63.0 / 64, fading);
}

static double sum_of(const List *l) {
    double sum = 0;
    for (int i = 0; i < l->n; i++) sum += weight_of(l, i) * l->x[i];
    return sum;
}

static double count_of(const List *l) {
    double sum = 0;
    for (int i = 0; i < l->n; i++) sum += weight_of(l, i);
    return sum;
}

static void put(List *l, double x) { l->x[l->n++] = x; }

static double shrunk(const List *l, double prior) { return (sum_of(l) + 2 * prior) / (count_of(l) + 2); }

// The bucket as a number: equal drafts, equal numbers.
static int kind_of(const Outlook *o) {
    static const double SCORES[] = {0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    int score = 0;
    if (!o->count) return -1;
    for (int i = 0; i < 12; i++) score += o->score > SCORES[i];
    return 100 * score + (o->match >= 4) + (o->match >= 8);
}

// Follows the draft along the text; whether its right tokens are known.
static bool judge(const Slow *s, Step *x) {
    int node = -1, right = 0;
    for (int i = x->start; i <= s->length; i++) {
        int next = -1;
        bool leaf = true;
        for (int k = x->look.count - 1; k >= 0; k--) {
            int parent = x->look.parent ? x->parent[k] : k - 1;
            leaf &= parent != node;
            if (parent == node && i < s->length && x->token[k] == s->text[i]) next = k;
        }
        if (leaf || (i < s->length && next < 0)) {
            x->right = right;
            return true;
        }
        node = next;
        right++;
    }
    return false;
}

static int slow_choose(const Slow *s, const SwitchParams *p, const Outlook *o, bool fit) {
    List first = {.n = 0}, rest = {.n = 0}, gain = {.n = 0}, right = {.n = 0}, score = {.n = 0},
         all = {.n = 0};
    List tokens = {.n = 0}, price = {.n = 0};
    int kind = kind_of(o), left_out = 0;
    put(&tokens, 1);
    put(&price, 1);
    for (int now = 0; now < s->count; now++) {
        const Step *x = &s->steps[now];
        bool same = kind_of(&x->look) == kind;
        put(&tokens, s->emitted[now]);
        put(&price, 1 + (x->rest >= 0 ? p->cost : 0));
        if (x->rest >= 0) put(&all, x->rest);
        if (x->rest >= 0 && same) put(&rest, x->rest);
        if (same) left_out = x->rest >= 0 ? 0 : left_out + 1;
        for (int i = 0; i <= now; i++) { // what became known then, oldest first
            const Step *y = &s->steps[i];
            if (y->learnt != now) continue;
            put(&right, y->right);
            put(&score, y->look.score);
            if (kind_of(&y->look) != kind) continue;
            put(&first, y->right);
            if (y->rest >= 0) put(&gain, fmax(y->right - y->rest, 0));
        }
    }
    double truth = (sum_of(&right) + 2) / (sum_of(&score) + 2), rate = sum_of(&tokens) / sum_of(&price);
    double one = o->count ? shrunk(&first, o->score * truth) : 0;
    double others = shrunk(&rest, shrunk(&all, 3)), most = fmin(count_of(&rest), 16);
    bool both = p->both && fit && o->count;
    if (both) others += shrunk(&gain, fmax(one - others, 0));
    if (left_out < most && fabs(one - (others - rate * p->cost)) < 1e-9) return 0; // too close to tell
    if (left_out < most && one > others - rate * p->cost) return DRAFT_FIRST;
    return both ? DRAFT_FIRST | DRAFT_REST : DRAFT_REST;
}

static void random_look(Step *x, Random *r) {
    *x = (Step){.right = -1, .rest = -1, .learnt = -1};
    x->look.count = test_between(r, 0, 2) ? test_between(r, 1, LONGEST) : 0;
    x->look.match = x->look.count ? test_between(r, 1, 10) : 0;
    x->look.score = x->look.count ? test_between(r, 1, 8) * 0.25 * x->look.count : 0;
    for (int i = 0; i < x->look.count; i++) {
        x->token[i] = test_between(r, 0, 1);
        x->parent[i] = i ? test_between(r, -1, i - 1) : -1;
        for (int k = 0; k < i; k++) // siblings differ
            if (x->parent[k] == x->parent[i] && x->token[k] == x->token[i]) x->token[i] = 2 + i;
    }
    x->look.token = x->token;
    x->look.parent = test_between(r, 0, 1) ? x->parent : NULL;
}

static void observe(Slow *s, Switch *fast, int rest, Random *r) {
    Step *x = &s->steps[s->count];
    int n = test_between(r, 1, 4);
    for (int i = 0; i < n; i++) s->text[s->length + i] = test_between(r, 0, 1);
    switch_observe(fast, s->text + s->length, n, rest);
    s->length += n;
    s->emitted[s->count] = n;
    x->rest = rest;
    for (int i = 0; i <= s->count; i++)
        if (s->steps[i].learnt < 0 && judge(s, &s->steps[i])) s->steps[i].learnt = s->count;
    s->count++;
}

static void learns_as_described(void **state) {
    (void)state;
    static Slow s;
    static Switch fast;
    Random r = test_random(98);
    int chosen[4] = {0}, close = 0;
    for (int round = 0; round < 12; round++) {
        SwitchParams p = {SWITCH_LEARNED, 5, test_between(&r, 0, 8) * 0.1, test_between(&r, 0, 1)};
        s.count = s.length = 0;
        switch_init(&fast, &p);
        for (int i = 0; i < 250; i++) {
            Step *x = &s.steps[s.count];
            bool fit = test_between(&r, 0, 3) > 0;
            random_look(x, &r);
            x->start = s.length;
            int got = switch_choose(&fast, &x->look, fit), want = slow_choose(&s, &p, &x->look, fit);
            if (want && got != want)
                fail_msg("round %d, step %d: %d, want %d (cost %g, both %d)", round, i, got, want, p.cost,
                         p.both);
            chosen[got]++;
            close += !want;
            observe(&s, &fast, got & DRAFT_REST ? test_between(&r, 0, 3) : -1, &r);
        }
    }
    print_message("first %d, others %d, both %d; %d too close\n", chosen[1], chosen[2], chosen[3], close);
    assert_true(chosen[1] > 200 && chosen[2] > 200 && chosen[3] > 200 && close < 100);
}

// A switch between a source whose drafts are right where the score is high, and others that have two right
// tokens everywhere: it finds the score where they change places, though scores are twice too hopeful.
static void finds_the_place(void **state) {
    (void)state;
    static Switch s;
    Random r = test_random(99);
    int token[16] = {0}, right = 0, wrong = 0;
    SwitchParams p = {SWITCH_LEARNED, 0, 0, false};
    switch_init(&s, &p);
    for (int i = 0; i < 600; i++) {
        int true_tokens = test_between(&r, 0, 8), text[17] = {0};
        Outlook o = {.match = 5, .count = 2 * true_tokens, .score = 2 * true_tokens, .token = token};
        int got = switch_choose(&s, &o, true), n = got & DRAFT_FIRST ? true_tokens : 2;
        text[n] = 1; // from here on the draft is wrong
        int emitted = n + 1;
        if (!(got & DRAFT_FIRST) && true_tokens < 2) emitted = true_tokens + 1, text[true_tokens] = 1;
        switch_observe(&s, text, emitted, got & DRAFT_REST ? 2 : -1);
        if (i < 300 || true_tokens == 2) continue;
        right += (got & DRAFT_FIRST) == (true_tokens > 2);
        wrong += (got & DRAFT_FIRST) != (true_tokens > 2);
    }
    print_message("%d choices right, %d wrong\n", right, wrong);
    assert_true(wrong < 0.1 * right);
}

static void plain_rules(void **state) {
    (void)state;
    static Switch s;
    int token[9] = {0};
    Outlook o = {.match = 5, .count = 9, .score = 3, .token = token}, none = {.match = 0};
    switch_init(&s, &(SwitchParams){.rule = SWITCH_MATCH, .threshold = 5});
    assert_int_equal(switch_choose(&s, &o, true), DRAFT_FIRST);
    assert_int_equal(switch_choose(&s, &none, true), DRAFT_REST);
    o.match = 4;
    assert_int_equal(switch_choose(&s, &o, true), DRAFT_REST);
    switch_init(&s, &(SwitchParams){.rule = SWITCH_SCORE, .threshold = 3});
    assert_int_equal(switch_choose(&s, &o, true), DRAFT_FIRST);
    o.score = 2.9;
    assert_int_equal(switch_choose(&s, &o, true), DRAFT_REST);
    switch_init(&s, &(SwitchParams){.rule = SWITCH_OFF});
    assert_int_equal(switch_choose(&s, &none, true), DRAFT_FIRST | DRAFT_REST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns_as_described),
        cmocka_unit_test(finds_the_place),
        cmocka_unit_test(plain_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
