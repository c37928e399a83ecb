// A training run as a YAML file says it: one flat mapping, read strictly.
#pragma once
#include "engine/train/trainer.h"

enum { TRAIN_FILES_MAX = 64 };

typedef struct TrainFile {
    char *out;       // directory of the model
    char *tokenizer; // a tokenizer.json
    char *eos;       // the piece that ends a document
    char *separator; // NULL: a file is a document
    char *isa;
    char *files[TRAIN_FILES_MAX]; // paths and patterns
    int file_count;
    int head_size;        // 0: width / heads
    int checkpoint_every; // steps
    int held_out_every;   // steps
    double norm_epsilon;
    TrainConfig config; // but for the vocabulary, which is the tokenizer's
} TrainFile;

// False with e filled: the message has the file, the line and the mend. Release with train_file_release.
bool train_file_parse(TrainFile *f, const char *bytes, size_t n, const char *place, Error *e);
bool train_file_open(TrainFile *f, const char *path, Error *e);
void train_file_release(TrainFile *f); // takes an empty one
