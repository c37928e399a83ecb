// What of a schedule is measured, and what is left to do. It is read from the ledger when a run starts, so
// that a resumed run decides as the interrupted one would have; then each round that ends updates it.
#pragma once
#include "harness/run/ledger.h"
#include "harness/run/point_state.h"

typedef struct Agenda {
    const Ledger *ledger;
    const Inputs *in;
    const Schedule *schedule;
    const Measurement *measurement;
    PointState *states; // (points of the schedule)
} Agenda;

// The ledger outlives it.
bool agenda_open(Agenda *a, const Ledger *ledger, Error *e);
void agenda_release(Agenda *a); // takes an empty one

bool agenda_skips(const Agenda *a, int point); // it cannot be run: see inputs_refusal

// Which of a group's members want another pass after `passes`; false: none does.
bool agenda_ask(const Agenda *a, const Group *g, int passes, bool *asked);
bool agenda_is_done(const Agenda *a, const Group *g);
bool agenda_is_left(const Agenda *a, const Group *g, int member); // it is not measured yet, and can be

// The first prompt from `from` on whose round is not there; the number of prompts: all are.
int agenda_next(const Agenda *a, const Group *g, int pass, int from);

// Tokens, as if every output were as long as it may be: of a group's pass, and of all that is left.
double agenda_tokens(const Agenda *a, const Group *g);
double agenda_work(const Agenda *a);
