// The parts of a Parquet file: its metadata (parquet_meta.c), which are the footer and a header before each
// page, Thrift structs in the compact protocol of which only what reading needs is kept; and the pages, which
// become columns (parquet_pages.c). parquet.c makes rows of them.
//
//     "PAR1" | pages of column 0, group 0 | pages of column 1, group 0 | ... | footer | its size (4) | "PAR1"
//
// Numbers are as the file has them, unchecked, and -1 where the file has none.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ParquetBytes {
    const uint8_t *at; // in the file
    size_t n;
} ParquetBytes;

typedef enum {
    PARQUET_BOOLEAN,
    PARQUET_INT32,
    PARQUET_INT64,
    PARQUET_INT96,
    PARQUET_FLOAT,
    PARQUET_DOUBLE,
    PARQUET_BYTES
} ParquetType;
enum { PARQUET_REQUIRED, PARQUET_OPTIONAL, PARQUET_REPEATED };
enum { PARQUET_UTF8 = 0, PARQUET_UINT32 = 13 }; // converted types
enum { PARQUET_PLAIN = 0, PARQUET_PLAIN_DICTIONARY = 2, PARQUET_RLE = 3, PARQUET_DICTIONARY = 8 };
enum { PARQUET_PAGE_DATA = 0, PARQUET_PAGE_DICTIONARY = 2, PARQUET_PAGE_DATA_2 = 3 };

// A node of the schema, which is a tree written in depth-first order: the root, then each child and what is
// below it.
typedef struct ParquetElement {
    ParquetBytes name;
    int64_t type, repetition, children, converted; // a leaf has a type, a group has children
} ParquetElement;

typedef struct ParquetChunk {                      // the pages of one column in one group of rows
    ParquetBytes elsewhere;                        // the path of another file; must be empty
    int64_t codec, values, size, data, dictionary; // size in bytes, then offsets of the first pages
} ParquetChunk;

typedef struct ParquetList {
    void *items;
    size_t count, capacity;
} ParquetList;

typedef struct ParquetGroup {
    ParquetList chunks; // of ParquetChunk, one per leaf of the schema
    int64_t rows;
} ParquetGroup;

typedef struct ParquetFooter {
    ParquetList elements; // of ParquetElement
    ParquetList groups;   // of ParquetGroup
} ParquetFooter;

typedef struct ParquetPage {
    int64_t kind, unpacked, packed, crc; // bytes without the header, before and after compression
    int64_t values, encoding;            // values count nulls too
    int64_t level_encoding[2];           // of a PAGE_DATA: of definition levels, of repetition levels
    int64_t level_bytes[2]; // of a PAGE_DATA_2, which has them uncompressed: definition, repetition
    int64_t is_packed;      // of a PAGE_DATA_2: 0 if only its levels and plain bytes follow
} ParquetPage;

// Reads the footer of the file, n bytes. False with e filled. Release it in either case.
bool parquet_footer(ParquetFooter *out, const uint8_t *bytes, size_t n, const char *file, Error *e);
void parquet_footer_release(ParquetFooter *f);

// Reads a page's header at the beginning of `at`, and takes it off. False if it isn't one.
bool parquet_page(ParquetPage *out, ParquetBytes *at);

// --- pages -----------------------------------------------------------------------------------------------

typedef union ParquetValue {
    ParquetBytes text;
    int64_t number; // also of a truth value
    double real;
} ParquetValue;

// A column of a group of rows holds an entry for each value, null and empty list. An entry's definition level
// counts the nodes of its path that are there, of those that may be absent: if it's the column's highest,
// there is a value. Its repetition level is 0 at a row's first entry, else the depth of the list that gets
// another item.
typedef struct ParquetColumn {
    const ParquetElement *type;         // a leaf of the schema
    int definition, repetition;         // the highest levels
    uint8_t *definitions, *repetitions; // (entries)
    size_t entries, definition_capacity, repetition_capacity;
    ParquetValue *values; // (value_count): of the entries that have one; zeros if the type isn't read
    size_t value_count, value_capacity;
    ParquetValue *dictionary; // (dictionary_count)
    size_t dictionary_count;
    size_t entry, value; // the next of each, for who makes rows
} ParquetColumn;

typedef struct ParquetSource {
    const uint8_t *bytes; // (size) the file
    size_t size;
    const char *file;
    size_t left, most; // bytes that may still be unpacked, decoded or repeated, of how many
    void **kept;       // (kept_count) unpacked pages and dictionaries, which texts point to
    size_t kept_count, kept_capacity;
    const ParquetColumn *at; // the column and the page's offset that a message is about
    size_t page;
} ParquetSource;

#define PARQUET_NAME(bytes) (int)((bytes).n < 64 ? (bytes).n : 64), (const char *)(bytes).at
#define PARQUET_DAMAGED     "it is damaged; fetch it again"

// Appends the pages of a chunk to a column. False with e filled.
bool parquet_chunk(ParquetSource *s, ParquetColumn *c, const ParquetChunk *chunk, Error *e);
bool parquet_is_read(const ParquetColumn *c); // whether the column's type has values here
void parquet_forget(ParquetSource *s);        // frees what is kept: the texts of all columns are gone
