// Matrix tiles on a processor that has none: there each of their instructions is an illegal one, and whoever
// handles that signal does in the processor's place what Intel's manual says. So the very object code that is
// made for tiles runs anywhere, and is held to the rules of its instructions: how they are encoded, what a
// configuration may be, which shapes a product takes. A rule that is broken ends the program with a line.
//
// Each thread has tiles of its own, as on a processor.
#pragma once
#include <stdbool.h>

// False where it cannot be done: the processor has tiles, or lacks what the kernels need beside them.
bool tiles_trap(void);

// No longer; gives how many instructions were done meanwhile, by this thread.
long tiles_trap_end(void);
