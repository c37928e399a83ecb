// A mapped file's content in memory of the process's own.
#pragma once
#include "engine/base/file.h"
#include "engine/base/progress.h"

// Puts memory with the same content in the place of a view's mapping, in huge pages where the system has
// them, and so that byte `first` of it begins a cache line. It is then read faster than the file's pages
// (docs/speed.md), and a file that is cut shorter takes nothing with it. The view is elsewhere afterwards; on
// failure it is what it was.
bool file_hold(const char *path, FileView *view, size_t first, const Progress *progress, Error *e);
