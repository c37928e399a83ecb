// Ctrl-C as a question that long work asks, so that it can end well.
#pragma once
#include "results/store.h"

#include <stdbool.h>

// From now on SIGINT and SIGTERM only set a mark; a second one ends the program at once. What is still waited
// for then ("this prompt") is said on a terminal; NULL: nothing is.
void interrupt_catch(const char *awaited);
bool interrupt_seen(void);

// For a store that long work writes: it waits for the locks of others as long as they last, and says so,
// until the mark is set.
extern const StoreOptions interrupt_patience;
