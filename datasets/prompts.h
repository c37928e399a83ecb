// The list of prompts that a dataset is: made from rows, cut, ordered, hashed.
#pragma once
#include "datasets/datasets.h"
#include "datasets/format.h"
#include "datasets/pattern.h"

// Appends the row's prompt. frame NULL: the format's own.
bool prompts_add(Dataset *d, const Format *format, const Frame *frame, const Row *row, Error *e);

// Removes the prompts from `from` on, or turns and their references.
void prompts_cut(Dataset *d, size_t from);
void prompts_cut_turns(Dataset *d, int turns);

// Moves all prompts of `from` after those of `to`.
bool prompts_move(Dataset *to, Dataset *from, Error *e);

// No two of a set may have the same id.
bool prompts_check_ids(const Dataset *d, const char *file, Error *e);

// by_set: sets take turns, else tasks.
bool prompts_order(Dataset *d, const DatasetRequest *request, bool by_set, Error *e);
bool prompts_hash(Dataset *d, bool own_file, Error *e);
