// Matrix tiles on a processor without them: there each of their instructions is illegal, and the signal's
// handler executes it by Intel's manual. So the same object code runs anywhere, and must keep the rules of
// its instructions: their encoding, valid configurations, shapes of products. A broken rule ends the program
// with a line.
//
// Each thread has tiles of its own, as on a processor.
#pragma once
#include <stdbool.h>

// False if it isn't possible: the processor has tiles, or lacks the kernels' other instructions.
bool tiles_trap(void);

// Ends it; returns the number of instructions that this thread executed meanwhile.
long tiles_trap_end(void);
