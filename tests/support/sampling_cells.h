// Sampling from a warm state, cell by cell: a method at a temperature, a top-k and a top-p, on a model small
// enough that the chance of every word of three tokens is known exactly.
//
// A model that is sure of the first WARM tokens makes every method warm up on the same text: windows are
// full, pools hold phrases, tables and indices have seen all there is. Then come three tokens that are drawn,
// and counted over many seeds. Method and verifier get the same seed, as the program gives it to them.
//
// A cell fails where the words' counts have a chance below 1e-6 (Pearson's test; so it is a false alarm once
// in a million cells, were the seeds not fixed), where a word came that cannot, and where it has not tried
// enough: of the proposals looked at after the warm-up a tenth must be accepted and a tenth rejected, and
// nine steps in ten must have candidates. One seed in sixteen runs once more on backends that draw by
// themselves (backend.h), and must give the same word.
#pragma once

void sampling_cells(int draws);
