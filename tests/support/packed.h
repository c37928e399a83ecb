// Fixtures packed by zstd. A prefix is bytes that the reader has anyway and the file repeats: they aren't
// stored. Each file ends with a checksum of its content; one that doesn't fit ends the program.
#pragma once
#include "engine/base/text.h"

// The content of DIR/NAME; for mem_free.
char *packed_read(const char *dir, const char *name, const Text *prefix, size_t *size);
void packed_write(const char *dir, const char *name, const Text *prefix, const char *bytes, size_t size);

// Adds the bytes of all safetensors of a folder, by name.
void packed_add_tensors(Text *prefix, const char *dir);

// The program tests/golden, which a GPU's golden_test is, too: golden unpack | pack FROM TO.
int golden_files(int argc, char **argv);
