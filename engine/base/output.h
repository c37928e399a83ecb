// The files that a command writes for its user.
//
//      output_reads     names what the command reads
//      output_check     asks whether a path may be written, before the work
//      output_add       takes a file's content; output_open takes it as a stream
//      output_finish    gives all of them their names; output_release drops what has none yet
//
// 1. Nothing is lost unless the user says --force: a path is refused where it is a file that the command
//    reads, by whatever name or link, or a file that this program did not write. A file of the same kind
//    that this program wrote is replaced, and so is an empty one.
// 2. All files appear together, each whole, or none does (file.h, FilePart).
// 3. "-", a device, a pipe, and standard output by any name are written as the content comes.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>
#include <stdio.h>

// How a file of a kind that this program writes is known.
typedef struct OutputKind {
    const char *start; // its first bytes; NULL: any
    const char *holds; // stands in its first or last 4 KB; NULL: nothing particular
    // The end of the name of a file beside it ("PATH.gp") that is as good as `holds`, where it holds this
    // itself.
    const char *beside;
} OutputKind;

typedef struct OutputPart OutputPart;

enum { OUTPUT_READS_MAX = 80 };

typedef struct Output {
    bool force;    // replace whatever is there
    bool streamed; // something went to standard output: what else is to be said belongs elsewhere
    const char *reads[OUTPUT_READS_MAX];
    int read_count;
    OutputPart *parts; // (count), in the order of their names
    size_t count, capacity;
} Output;

// `path` is read: a file, or a directory with the files in it. It lives as long as the output; NULL is
// nothing.
void output_reads(Output *o, const char *path);

// Whether what is written there goes at once, and cannot be replaced: rule 3.
bool output_is_stream(const char *path);

// Also makes the directory that the file will be in, and those above it, where they are missing.
bool output_check(const Output *o, const char *path, const OutputKind *kind, Error *e);

// output_check for a directory that the command fills: the command must not read it.
bool output_check_directory(const Output *o, const char *path, Error *e);

// Both check the path first. A stream that is not closed by output_close stays open until output_release.
bool output_add(Output *o, const char *path, const OutputKind *kind, const void *data, size_t size, Error *e);
FILE *output_open(Output *o, const char *path, const OutputKind *kind, Error *e);
// The stream that was opened last. ok: what wrote into it thinks so; where it did not, and the stream did not
// fail, e is filled already. A pipe whose reader left is no failure.
bool output_close(Output *o, bool ok, Error *e);

// The i-th file that was added, NULL after the last. What went to a stream is none.
const char *output_path(const Output *o, size_t i);

// In the order in which they were added. A failure leaves those before it.
bool output_finish(Output *o, Error *e);
void output_release(Output *o);
