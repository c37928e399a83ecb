// Ctrl-C as a question that long work asks, so that it can end well.
#pragma once
#include <stdbool.h>

// From now on SIGINT and SIGTERM only set a mark; a second one ends the program at once.
void interrupt_catch(void);
bool interrupt_seen(void);
