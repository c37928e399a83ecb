// The files that a command writes for its user.
//
//      output_reads     names the command's input files
//      output_check     checks, before the work, whether a path may be written
//      output_add       takes a file's content; output_open takes it as a stream
//      output_finish    gives all files their names; output_release drops files without one
//
// 1. Nothing is lost without --force: a path is refused if the command reads that file, under any name or
//    link, or if this program didn't write it. A file of the same kind that this program wrote is replaced,
//    and so is an empty one.
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

enum { OUTPUT_READS_MAX = 80 };

typedef struct Output {
    bool force;    // replace any existing file
    bool streamed; // content went to standard output, so messages must go elsewhere
    const char *reads[OUTPUT_READS_MAX];
    int read_count;
    OutputPart *parts; // (count), in the order of their names
    size_t count, capacity;
} Output;

// The command reads `path`: a file, or a directory with the files in it. The string must outlive the output;
// NULL is ignored.
void output_reads(Output *o, const char *path);

// Whether content for this path is written at once: rule 3.
bool output_is_stream(const char *path);

// Also makes the file's directory, and those above it, as far as they're missing.
bool output_check(const Output *o, const char *path, const OutputKind *kind, Error *e);

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
