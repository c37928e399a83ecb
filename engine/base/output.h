// The files that a command writes for its user.
//
//      output_reads     names the command's inputs
//      output_check     checks, before the work, whether a path may be written
//      output_add       takes a file's content; output_open takes it as a stream
//      output_finish    gives all files their names
//      output_release   drops files without one, and directories that were made for them
//
// 1. An input is never replaced, whatever --force says: a path is refused if the command reads that file,
//    under any name or link. Without --force it's also refused if this program didn't write the file; one of
//    the same kind that this program wrote is replaced, and so is an empty one.
// 2. All files appear together and complete, or none does (file.h, FilePart).
// 3. "-", a device, a pipe, and standard output under any name are written at once.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>
#include <stdio.h>

// How this program recognizes a file that it wrote.
typedef struct OutputKind {
    const char *start; // its first bytes; NULL: any
    const char *holds; // a text in its first or last 4 KB; NULL: none
    // The suffix of a companion file ("PATH.gp"): if that has the text `holds`, the file counts as ours too.
    const char *beside;
} OutputKind;

typedef struct OutputPart OutputPart;

typedef struct OutputPaths {
    char **items; // (count)
    size_t count, capacity;
} OutputPaths;

typedef struct Output {
    bool force;        // replace any existing file that isn't an input
    bool streamed;     // content went to standard output, so messages must go elsewhere
    OutputPaths reads; // the inputs
    OutputPaths made;  // directories that were missing, the outer ones first
    OutputPart *parts; // (count), in the order of their names
    size_t count, capacity;
} Output;

// The command reads `path`: a file, a store with the files that SQLite puts next to it, a directory with the
// files in it, or all files of a pattern. NULL is ignored.
void output_reads(Output *o, const char *path);

// Empty, with the inputs and the force of another output: for files of the same command that are finished
// apart.
Output output_more(const Output *o);

// Whether content for this path is written at once: rule 3.
bool output_is_stream(const char *path);

// Also makes the file's directory, and those above it, as far as they're missing.
bool output_check(Output *o, const char *path, const OutputKind *kind, Error *e);

// output_check for a directory that the command fills: it must not be one that the command reads.
bool output_check_directory(const Output *o, const char *path, Error *e);

// Both check the path first. A stream that output_close doesn't close stays open until output_release.
bool output_add(Output *o, const char *path, const OutputKind *kind, const void *data, size_t size, Error *e);
FILE *output_open(Output *o, const char *path, const OutputKind *kind, Error *e);
// Closes the stream that was opened last. ok: whether its writer succeeded; if it didn't, e is filled already
// (unless the stream failed). A pipe whose reader left isn't a failure.
bool output_close(Output *o, bool ok, Error *e);

// The i-th file that was added, not counting streams (rule 3); NULL after the last.
const char *output_path(const Output *o, size_t i);

// Names the files in the order in which they were added. A failure leaves those before it in place.
bool output_finish(Output *o, Error *e);
void output_release(Output *o);
