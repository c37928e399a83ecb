// Which autoregressive point a speedup divides by: of those that make the same output with the same numbers
// in other ways (more threads, faster sums), the fastest. The one with a point's own settings stands beside
// it.
#pragma once
#include "harness/run/ledger.h"

// When all of a run is measured. One transaction.
bool baselines_choose(Ledger *l, Error *e);
