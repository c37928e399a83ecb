// Values that are made of what nobody wrote: registers before their first write, and rows of shared memory
// that ldmatrix read (a tile may end before its matrix does). A lane's value of a register is unknown, or it
// is not. Arithmetic passes it on; a choice, `and` and `or` only where it decides; an mma to the rows and
// columns that it enters. It may be kept in shared memory, and comes back from there. It is a fault where it
// matters: as an address, a predicate that is asked for, a value that is stored elsewhere or voted with.
#include "tests/ptx/machine.h"

static uint32_t of(const Warp *w, const Operand *o) { return w->unknown[o->id]; } // 0 of a constant

static void refuse(const Warp *w, const Operand *o, uint32_t lanes, const char *what) {
    lanes &= of(w, o);
    if (lanes) fault(w, __builtin_ctz(lanes), "%s is made of what nobody has written", what);
}

// Lane t has rows t/4 and t/4 + 8 of a and d, and column t/4 of b; columns t%4*2 and t%4*2 + 1 of d.
static void pass_mma(Warp *w, const Instruction *o) {
    uint32_t row[16] = {0}, column[8] = {0}, d[4];
    for (int t = 0; t < LANES; t++) {
        for (int i = 0; i < 4; i++) row[t / 4 + i % 2 * 8] |= of(w, &o->s[i]) >> t & 1;
        for (int i = 4; i < 6; i++) column[t / 4] |= of(w, &o->s[i]) >> t & 1;
    }
    for (int i = 0; i < 4; i++) {
        d[i] = of(w, &o->s[6 + i]);
        for (int t = 0; t < LANES; t++) d[i] |= (row[t / 4 + i / 2 * 8] | column[t % 4 * 2 + i % 2]) << t;
    }
    for (int i = 0; i < 4; i++) w->unknown[o->d[i].id] = d[i];
}

static uint32_t passed(const Warp *w, const Instruction *o) {
    const uint32_t a = of(w, &o->s[0]), b = o->sources > 1 ? of(w, &o->s[1]) : 0;
    uint32_t any = 0;
    for (int i = 0; i < o->sources; i++) any |= of(w, &o->s[i]);
    if (o->pass == PASS_ANY) return any;
    if (o->pass == PASS_CHOSEN) {
        uint32_t p = *(const uint32_t *)operand_at(w, &o->s[2]);
        return of(w, &o->s[2]) | (p & a) | (~p & b);
    }
    uint32_t p = *(const uint32_t *)operand_at(w, &o->s[0]), q = *(const uint32_t *)operand_at(w, &o->s[1]);
    if (o->pass == PASS_OR) p = ~p, q = ~q;
    return (a | b) & ~(~a & ~p) & ~(~b & ~q); // one that is known and false decides
}

// Those of wgmma are in warpgroups.c.
static bool pass_asynchronous(Warp *w, const Instruction *o, uint32_t lanes) {
    bool wgmma = o->count == COUNT_WGMMA;
    if (!wgmma && o->count != COUNT_MBARRIER && o->count != COUNT_BULK) return false;
    for (int i = 0; i < (wgmma && o->sources > 3 ? 2 : o->sources); i++)
        refuse(w, &o->s[i], lanes, "an operand");
    for (int i = 0; i < o->results; i++) w->unknown[o->d[i].id] &= ~lanes;
    return true;
}

void known_pass(Warp *w, const Instruction *o, uint32_t lanes) {
    if (o->execute == run_mma) {
        pass_mma(w, o);
        return;
    }
    if (pass_asynchronous(w, o, lanes)) return;
    bool copies = o->execute == run_copy,
         writes = copies || o->execute == run_store || o->execute == run_atomic;
    if (writes || o->execute == run_load || o->execute == run_load_param || o->execute == run_matrices)
        refuse(w, &o->s[0], lanes, "an address");
    bool kept = o->execute == run_store && o->space == SPACE_SHARED; // until somebody reads it
    for (int i = 1; writes && !kept && i < o->sources; i++)
        refuse(w, &o->s[i], lanes,
               copies && i == 1 ? "an address"
               : copies         ? "a size"
                                : "a value that is stored");
    if (o->execute == run_ballot) refuse(w, &o->s[0], lanes, "a vote");
    if (o->execute == run_shuffle) { // its value: see there
        refuse(w, &o->s[1], lanes, "a lane to shuffle from");
        return;
    }
    uint32_t unknown = passed(w, o) & lanes;
    for (int i = 0; i < o->results; i++) w->unknown[o->d[i].id] = (w->unknown[o->d[i].id] & ~lanes) | unknown;
}
