// Files that a command left in its folder, compared with those of an undisturbed run. A difference is added
// to `problem`, and the result is false. Stores are compared by their content, without times; their journals
// aren't compared.
#pragma once
#include "engine/base/text.h"

#include <stdint.h>

typedef struct Folders {
    const char *before; // as it was before the command
    const char *after;  // as an undisturbed command leaves it
    const char *now;    // as it is
} Folders;

// All files of `want` are in `got`, with the same content.
bool folders_same(const char *want, const char *got, Text *problem);

// A failed command may leave the files that were there before, those of an undisturbed one, both whole; a
// sound store; a checkpoint and the losses up to it; if it was killed, temporary files, too.
bool folders_left_whole(const Folders *f, bool killed, Text *problem);

// A replaced file is there until the replacement.
bool folders_kept(const Folders *f, Text *problem);

// The rows that are committed in the stores of a folder.
int64_t folders_rows(const char *folder);
