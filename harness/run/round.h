// A group at work: methods open, and the rounds in which each answers one prompt.
#pragma once
#include "harness/models/models.h"
#include "harness/run/runner.h"

typedef struct Seat {
    int point; // its number in the schedule
    Method method;
    bool open;
    PointState *state;
    Text label;
    double prefill_s, step_s; // of a token of the prompt, and of a step, as it warmed up; 0: not known
} Seat;

typedef struct GroupRun {
    Ledger *ledger;
    Reporter *reporter;
    const Group *group;
    Measuring measuring;
    const Tokenizer *tokenizer;
    Seat *seats;  // (group->count)
    int baseline; // of the seats
    // What is measured and not stored yet.
    LedgerEntry *entries; // (entry_count); their `said` are owned
    size_t entry_count, entry_capacity;
    int rounds;
    double decode_s, round_s; // of all rounds: decoding with prefill, and everything
} GroupRun;

// Every seat that is open and asked (NULL: all; the baseline always) answers the prompt. A seat that cannot
// is failed. False with e filled where the run cannot go on.
bool round_run(GroupRun *g, int pass, int prompt, const bool *asked, Error *e);

// Stores what is measured, but of seats that failed, and forgets it.
bool round_store(GroupRun *g, Error *e);
void round_forget(GroupRun *g);

// A seat whose method cannot go on; without its baseline no other can.
bool round_fail(GroupRun *g, int seat, const char *why, Error *e);
