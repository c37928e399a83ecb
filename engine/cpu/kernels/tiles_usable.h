// Whether the kernels on matrix tiles are used on this machine, and why not where the processor names tiles.
#pragma once
#include "engine/cpu/kernels/features.h"
#include "engine/cpu/kernels/trial.h"

// Asks the system, then the tiles themselves: a virtual machine may name what it cannot do.
bool tiles_usable(void);

// One line: what is missing, and the mend. NULL where they are used, and where the processor names none.
const char *tiles_refused(void);

// The same of given answers. tried: of tiles that are granted.
const char *tiles_refusal(TilesState state, Trial tried);
