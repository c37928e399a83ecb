// A folder of a test's own under $TMPDIR or /tmp.
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { FOLDER_PATH_SIZE = 256 };
void folder_make(char path[FOLDER_PATH_SIZE]); // makes a new one and writes its path into `path`
void folder_remove(const char *path);          // with all that is in it

// The same as cmocka's setup and teardown of a test: *state is the folder's path. The files of a failed
// test stay, for inspection.
int folder_setup(void **state);
int folder_teardown(void **state);

// The path of `name` in it. Good until the next eight calls.
const char *folder_path(const char *folder, const char *name);
void folder_write(const char *folder, const char *name, const char *text); // a file in it

int folder_count(const char *folder); // its number of entries

// Makes the folder `name` in it, on a disk of its own of so many KB that only this program and its children
// see. False if that isn't allowed.
bool folder_disk(const char *folder, const char *name, int kilobytes);
