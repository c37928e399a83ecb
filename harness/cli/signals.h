// Signals: requests to end (Ctrl-C, SIGTERM, and SIGHUP unless nohup ignores it), and mapped files that
// shrink.
//
//      interrupt_begin    the first signal ends the program with one line: SQLite's transactions, and files
//                         that get their names when they are complete, leave nothing half done
//      interrupt_catch    the first signal sets a mark, which Progress carries to the code that works, so
//                         that it can end well; work that does not see the mark in time is ended as above.
//                         A second signal, not within the same moment, ends the program at once
//      interrupt_gently   SIGUSR1, and in a Slurm job SIGTERM, ask for an end at the next good place: the
//                         program has time to finish work that it would do again. If that takes too long,
//                         it is interrupted as above
#pragma once
#include "results/store.h"

#include <stdbool.h>

// kept: what the end leaves behind ("nothing is written"), for that line; NULL prints nothing. The texts must
// outlive the program.
void interrupt_begin(const char *command, const char *kept);

void interrupt_catch(void);
bool interrupt_seen(void);

// Batch systems announce the end of a job: Slurm sends a signal that the job chose before the time limit, and
// SIGTERM half a minute (its KillWait) before it kills.
enum { GENTLY_S = 60, GENTLY_TERM_S = 20 };
void interrupt_gently(void);
bool interrupt_asked(void); // by one of these signals

// For a store that long work writes: waits for other processes' locks as long as they last, with a note on
// stderr, until the mark is set. A directory that is made for the store is noted there, too.
extern const StoreOptions interrupt_patience;

// While a file that must not be lost (a checkpoint) is saved, an interruption waits until it is; a second
// signal still ends the program.
void interrupt_wait(bool saving);

// From now on, touching a page that a mapped file no longer has ends the program with code 2 and a line on
// stderr that names the file, instead of death by SIGBUS. Costs nothing until then.
void shrunk_catch(void);
