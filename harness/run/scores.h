// How good an output is, where its dataset has references: ROUGE against the best of them.
#pragma once
#include "harness/run/ledger.h"

// Of one turn of an entry that is stored, `text` its output. Nothing without references.
bool scores_add(Ledger *l, const LedgerEntry *entry, int turn, const char *text, Error *e);
