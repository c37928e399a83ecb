#include "tests/support/draft_plan.h"

#include "tests/support/check.h"

#include <math.h>
#include <string.h>

int plan_place(const Plan *plan, const int *tokens, int slot) {
    int parent = plan->slots[slot].parent;
    return parent < 0 ? 0 : place_below(plan_place(plan, tokens, parent), tokens[parent]);
}

// Zeros are common: mistakes hide at tokens that one side never gives.
static void random_distribution(Random *r, float *p) {
    double total = 0, x[PLAN_VOCAB];
    for (int i = 0; i < PLAN_VOCAB; i++) total += x[i] = test_between(r, 0, 3) ? random_uniform(r) : 0;
    if (total == 0) total = x[0] = 1;
    for (int i = 0; i < PLAN_VOCAB; i++) p[i] = (float)(x[i] / total);
}

static int depth_of(const Plan *plan, int slot) {
    return slot < 0 ? 0 : 1 + depth_of(plan, plan->slots[slot].parent);
}

Plan plan_random(Random *r) {
    Plan plan = {.count = test_between(r, 1, PLAN_SLOTS),
                 .room = test_between(r, 0, 1) ? PLAN_NODES : test_between(r, 2, PLAN_SLOTS),
                 .merge = test_between(r, 0, 1),
                 .layout = test_between(r, 0, 2) ? LAYOUT_TREE : LAYOUT_BATCH};
    for (int i = 0; i < PLAN_PLACES; i++) {
        random_distribution(r, plan.p[i]);
        random_distribution(r, plan.q[i]);
    }
    for (int i = 0; i < plan.count; i++) {
        PlanSlot *s = &plan.slots[i];
        do s->parent = test_between(r, 0, 1) ? -1 : test_between(r, -1, i - 1);
        while (depth_of(&plan, s->parent) >= PLAN_LENGTH);
        s->kind = (SlotKind)test_between(r, SLOT_ONE_HOT, SLOT_DRAWN_DISTINCT);
        s->token = test_between(r, 0, PLAN_VOCAB - 1);
    }
    return plan;
}

Plan plan_example(bool one_hot_first) {
    static const float p[] = {.5f, .3f, .2f}, q[] = {.6f, .3f, .1f};
    Plan plan = {.count = 2, .room = PLAN_NODES, .merge = true};
    plan.slots[0] = plan.slots[1] = (PlanSlot){.parent = -1, .kind = SLOT_ONE_HOT, .token = 0};
    plan.slots[one_hot_first].kind = SLOT_DRAWN;
    for (int i = 0; i < PLAN_PLACES; i++) {
        memcpy(plan.p[i], p, sizeof p);
        memcpy(plan.q[i], q, sizeof q);
    }
    return plan;
}

void plan_chances(const Plan *plan, const int *tokens, int slot, double *chance) {
    const PlanSlot *s = &plan->slots[slot];
    memset(chance, 0, PLAN_VOCAB * sizeof *chance);
    if (s->parent >= 0 && tokens[s->parent] < 0) return;
    if (s->kind == SLOT_ONE_HOT) {
        chance[s->token] = 1;
        return;
    }
    const float *q = plan->q[plan_place(plan, tokens, slot)];
    double total = 0;
    for (int i = 0; i < PLAN_VOCAB; i++) chance[i] = (double)q[i];
    for (int i = 0; i < slot && s->kind == SLOT_DRAWN_DISTINCT; i++)
        if (plan->slots[i].parent == s->parent && plan->slots[i].kind != SLOT_ONE_HOT && tokens[i] >= 0)
            chance[tokens[i]] = 0;
    for (int i = 0; i < PLAN_VOCAB; i++) total += chance[i];
    for (int i = 0; i < PLAN_VOCAB && total > 0; i++) chance[i] /= total;
}

void plan_draw(const Plan *plan, Random *r, int *tokens) {
    for (int slot = 0; slot < plan->count; slot++) {
        double chance[PLAN_VOCAB], u = random_uniform(r);
        plan_chances(plan, tokens, slot, chance);
        tokens[slot] = -1;
        for (int i = 0; i < PLAN_VOCAB && u >= 0; i++) {
            if (chance[i] > 0) tokens[slot] = i;
            u -= chance[i];
        }
    }
}

// The distribution that the slots below one parent share, as a draft would give it: once.
static int shared_distribution(const Plan *plan, const int *tokens, int slot, Tree *t, int *made) {
    int *number = &made[plan->slots[slot].parent + 1];
    if (*number < 0) {
        float *q;
        *number = tree_distribution(t, &q);
        memcpy(q, plan->q[plan_place(plan, tokens, slot)], PLAN_VOCAB * sizeof *q);
    }
    return *number;
}

void plan_build(const Plan *plan, const int *tokens, Session *s, bool keeps_merging) {
    int node[PLAN_SLOTS], made[PLAN_SLOTS + 1];
    Tree *t = &s->tree;
    for (int i = 0; i <= PLAN_SLOTS; i++) made[i] = -1;
    session_begin_step(s, plan->merge, plan->layout);
    tree_limit_rows(t, plan->room);
    tree_root(t, 0);
    for (int i = 0; i < plan->count; i++) {
        const PlanSlot *slot = &plan->slots[i];
        int parent = slot->parent < 0 ? tree_row(t) : node[slot->parent], token = tokens[i];
        node[i] = TREE_NONE;
        if (token < 0 || parent == TREE_NONE) continue;
        bool stays = keeps_merging && t->merge && tree_child(t, parent, token) != TREE_NONE;
        tree_limit_rows(t, stays ? PLAN_NODES : plan->room);
        if (slot->kind == SLOT_ONE_HOT) node[i] = tree_propose(t, parent, token);
        else
            node[i] = tree_propose_sampled(t, parent, token, shared_distribution(plan, tokens, i, t, made),
                                           slot->kind == SLOT_DRAWN_DISTINCT);
    }
    tree_limit_rows(t, PLAN_NODES);
}

static int place_of_node(const Tree *t, int node) {
    return t->parent[node] == TREE_NONE ? 0 : place_below(place_of_node(t, t->parent[node]), t->token[node]);
}

void plan_speak(const Plan *plan, Session *s) {
    assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_LOGITS, NULL));
    for (int node = 0; node < s->tree.count; node++) {
        if (s->logit_row[node] < 0 || s->tree.depth[node] >= PLAN_LENGTH) continue;
        float *row = s->logits + s->logit_row[node] * PLAN_VOCAB;
        for (int i = 0; i < PLAN_VOCAB; i++) row[i] = logf(plan->p[place_of_node(&s->tree, node)][i]);
    }
}

double plan_word_chance(const Plan *plan, int word) {
    int digits[PLAN_LENGTH], place = 0;
    double chance = 1;
    for (int i = PLAN_LENGTH - 1; i >= 0; i--, word /= PLAN_VOCAB) digits[i] = word % PLAN_VOCAB;
    for (int i = 0; i < PLAN_LENGTH; i++) {
        chance *= (double)plan->p[place][digits[i]];
        if (i < PLAN_LENGTH - 1) place = place_below(place, digits[i]);
    }
    return chance;
}
