// Ctrl-C, and the other signals that ask a program to end: SIGINT, SIGTERM, and SIGHUP where nohup has not
// said to ignore it.
//
//      interrupt_begin    the first signal ends the program, with a line: SQLite's transactions, and files
//      that
//                         get their names when they are complete, leave nothing half done
//      interrupt_catch    the first signal sets a mark, which Progress carries to where the work is done, so
//      that
//                         it ends well; work that does not hear it in time is ended as above. So does a
//                         second signal, at once
#pragma once
#include "results/store.h"

#include <stdbool.h>

// kept: what an end leaves behind ("nothing is written"), for the line; NULL: nothing to say. The texts must
// outlive the program.
void interrupt_begin(const char *command, const char *kept);

void interrupt_catch(void);
bool interrupt_seen(void);

// For a store that long work writes: it waits for the locks of others as long as they last, and says so,
// until the mark is set.
extern const StoreOptions interrupt_patience;

// While something is saved that must not be lost (a checkpoint), it gets the time that it takes; a second
// signal still ends the program.
void interrupt_wait(bool saving);
