// Greedy identity of every method at several settings, over small random models on the CPU, where it is
// hardest: an end of text inside an accepted prefix, prompts of one token, prompts at the context's edge,
// sliding windows wrapped several times, every number of ranks. Each of these is counted, and must have come.
#pragma once

void greedy_cells(int models);
