// A folder of a test's own under the system's temporary place, gone with all it holds when the test
// has passed; what a failed one wrote stays, to be looked at.
#pragma once
#include <stddef.h>

typedef struct Folder {
    char path[64];
} Folder;

// cmocka's setup and teardown of a test or group: *state becomes a Folder.
int folder_setup(void **state);
int folder_teardown(void **state);

// The path of `name` in it. Good until the next eight calls.
const char *folder_path(const Folder *f, const char *name);

int folder_count(const Folder *f); // files in it

// Writes or reads a small file with plain stdio, apart from the code under test. folder_read gives the number
// of bytes.
void folder_write(const Folder *f, const char *name, const void *data, size_t size);
size_t folder_read(const Folder *f, const char *name, void *data, size_t capacity);
