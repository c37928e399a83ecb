// A training run as a YAML file says it: one flat mapping, read strictly. An adapter's has no shape and no
// tokenizer, which are its model's, and everything in it has a fallback.
#pragma once
#include "engine/train/trainer.h"
#include "harness/config/values.h"

// What a part of the text is called: a key of `domains`, or a file's name without directory and ending.
typedef struct DomainName {
    const char *text;
    int length;
} DomainName;

bool domain_same(const DomainName *a, const DomainName *b);

// Texts belong to the tree, which lives until train_file_release.
typedef struct TrainFile {
    const YamlNode *at;
    const char *out;       // directory of the model, or of the adapter
    const char *tokenizer; // a tokenizer.json
    const char *eos;       // the piece that ends a document
    const char *start;     // directory of the model whose weights it starts from; NULL: random ones
    const char *teacher;   // directory of the model whose distributions are learned; NULL: the text's tokens
    const char *separator; // NULL: a file is a document
    const char *isa;
    Words files;                   // paths and patterns, those of `domains` too
    DomainName domains[WORDS_MAX]; // of each of them
    const YamlNode *domain_map;
    int head_size;                   // 0: width / heads
    int checkpoint_every;            // steps
    int held_out_every;              // steps
    int optimizer, schedule, decays; // what config.optimizer has as enums
    double norm_epsilon;
    YamlTree tree;
    TrainConfig config; // but for the vocabulary, which is the tokenizer's
} TrainFile;

typedef enum { TRAIN_MODEL, TRAIN_ADAPTER } TrainKind;

// False with e filled: the message has file, line, column and mend. Release with train_file_release.
bool train_file_parse(TrainFile *f, const char *bytes, size_t n, const char *place, TrainKind kind, Error *e);
bool train_file_open(TrainFile *f, const char *path, TrainKind kind, Error *e);

// What the command line says of a model's training. A preset stands in for keys that the file does not have;
// all else is in place of the file's.
typedef struct TrainSaid {
    const char *preset, *out, *tokenizer, *separator; // NULL: not given
    const char *const *files;                         // (file_count)
    int file_count, steps, batch, begun;              // 0: not given
    double rate;                                      // likewise
} TrainSaid;

// path: of the file; NULL: there is none, and preset, out, tokenizer and files are needed.
bool train_file_open_said(TrainFile *f, const char *path, const TrainSaid *said, Error *e);

// What an empty file says.
void train_file_defaults(TrainFile *f, TrainKind kind);

// Domains of the files, in place of those there were.
void train_file_name_domains(TrainFile *f);

// The longest document, and the pass that follows from it where the file says none.
void train_file_set_context(TrainFile *f, int context);

void train_file_release(TrainFile *f); // takes an empty one
