#include "engine/cpu/kernels/tiles_usable.h"

#include "engine/cpu/kernels/ops.h"

#include <stddef.h>

static Trial try_tiles(TilesState state) {
    return state == TILES_GRANTED ? trial_run(cpu_amx_works) : TRIAL_NOT_RUN;
}

bool tiles_usable(void) { return try_tiles(cpu_features().tiles) == TRIAL_PASSED; }

const char *tiles_refused(void) {
    TilesState state = cpu_features().tiles;
    return tiles_refusal(state, try_tiles(state));
}

#define LEFT_OUT "the kernels 'amx' are left out: this processor "

const char *tiles_refusal(TilesState state, Trial tried) {
    static const char *const by_state[] = {
        [TILES_UNSAVED] = LEFT_OUT "names matrix tiles, but the system does not save their registers; Linux "
                                   "does from 5.16 on, in a virtual machine if its settings pass tiles on",
        [TILES_DENIED] = LEFT_OUT "has matrix tiles, but the system refuses them to this process; let its "
                                  "seccomp profile allow arch_prctl",
        [TILES_GRANTED] = NULL,
    };
    static const char *const by_trial[] = {
        [TRIAL_FAILED] =
            LEFT_OUT "names matrix tiles, but they multiply wrongly; turn them off in the virtual "
                     "machine's settings",
        [TRIAL_KILLED] = LEFT_OUT "names matrix tiles, but their instructions kill; turn them off in the "
                                  "virtual machine's settings",
        [TRIAL_NOT_RUN] =
            LEFT_OUT "has matrix tiles that could not be tried in a process of their own; allow "
                     "one process more, and do not ignore SIGCHLD",
    };
    return state == TILES_GRANTED ? by_trial[tried] : by_state[state];
}
