// Functions of Python's lists and strings, for grammars whose documents hold computed examples. Values are
// texts as Python prints them: 7, 'word', [3, 1], ['a', 'b'].
#pragma once
#include "engine/base/random.h"
#include "engine/base/text.h"

// Appends what the function named first in the n words gives:
//
//     numbers N LOW HIGH        a list of N drawn numbers
//     count LOW HIGH            the numbers from LOW to HIGH
//     pairs CHANGE LIST LIST    each item of the first list changed with that of the second one
//     keep TEST LIST [K]        the items that pass, of a list or the letters of a string; drop: the others
//     mask TEST TEXT K OTHER    a text with OTHER in place of the letters that pass
//     map CHANGE LIST [K]       every item changed
//     sum product len max min range first last sort fall reverse unique tally running steps join take LIST
//     [K] item CHANGE VALUE [K]     one value changed test TEST VALUE [K]       True or False
//
// False where there is no such function or it has no value (the largest of nothing).
bool lists_apply(const char *const *words, int n, Random *r, Text *out);
