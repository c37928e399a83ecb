// Ways to spoil a good model directory. Each takes the directory and two texts, so that a case is a row of a
// table; a spoiler that finds nothing to spoil ends the test program.
#pragma once

typedef void Spoil(const char *dir, const char *a, const char *b);

// Whole files: `a` is the name.
Spoil spoil_replace; // content b
Spoil spoil_append;  // b after its end
Spoil spoil_remove;
Spoil spoil_cut;     // to b bytes, or by -b
Spoil spoil_folder;  // a directory in its place
Spoil spoil_fifo;    // a pipe that nobody writes to
Spoil spoil_loop;    // a link to itself
Spoil spoil_swap;    // with the file b
Spoil spoil_copy;    // over the file b
Spoil spoil_deep;    // b opening brackets
Spoil spoil_objects; // b KB of empty objects: the JSON that takes most memory when parsed

// JSON: `a` is "FILE/key/key/3", b the new value as JSON; "" takes it away, and a last key of "-" appends.
Spoil spoil_json;

// model.safetensors: the first occurrence of the text a in the header becomes b; the length stays correct.
Spoil spoil_header;
Spoil spoil_header_whole; // the header becomes a, the data stays
Spoil spoil_length;       // the length that the file claims becomes a
Spoil spoil_big_header;   // a valid header of a megabytes, all of it tensors
Spoil spoil_weight;       // element b of the tensor a becomes a NaN (BF16)
Spoil spoil_bytes;        // b is "AT:HEX..": bytes of the tensor a from AT on
