// A mapped file's content in memory of the process's own.
#pragma once
#include "engine/base/file.h"

// Puts memory with the same content in the place of a mapping, in huge pages where the system has them, so
// that pointers into it stay good. It is then read faster than the file's pages (docs/speed.md), and a file
// that is cut shorter takes nothing with it. On failure the view is only good for file_unmap.
bool file_hold(const char *path, const FileView *view, Error *e);
