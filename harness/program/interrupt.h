// Ctrl-C as a question that long work asks, so that it can end well.
#pragma once
#include <stdbool.h>

// From now on SIGINT and SIGTERM only set a mark; a second one ends the program at once. What is still waited
// for then ("this prompt") is said on a terminal; NULL: nothing is.
void interrupt_catch(const char *awaited);
bool interrupt_seen(void);
