// Which of a run's points is compared with a published row, and in what it differs.
//
// A point fits a row by its method (harness/table/method_text.h), its temperature, its dataset and its model.
// Where the run has not the very model or dataset, one that can stand in for it is taken, and `why` says so;
// where the method's parameters are others, the nearest is taken only if the paper has one setting of that
// method.
#pragma once
#include "engine/base/text.h"
#include "harness/table/points.h"
#include "results/published.h"

enum { MATCH_PARTS = 8 };

typedef struct TableMatch {
    const TableGroup *groups[MATCH_PARTS]; // (count): several only for a mean over subtasks
    const char *subtasks[MATCH_PARTS];     // NULL: all of the dataset
    int count;                             // 0: nothing fits
    Text why;                              // what keeps the row from being compared; "": nothing
} TableMatch;

// Of several candidates for a method that the paper takes the fastest of, `faster` says which: the speed of a
// group, below 0: unknown. False with e filled.
typedef struct TableJudge {
    bool (*speed)(void *state, const TableGroup *g, const char *subtask, double *out, Error *e);
    void *state;
} TableJudge;

bool table_match(const Published *item, const PublishedRow *row, const TablePoints *points,
                 const TableJudge *judge, TableMatch *out, Error *e);
void table_match_release(TableMatch *m);

// Whether `ours` is the row's model by name, but for case, order and what is neither letter nor digit
// ("LLaMA-2-7B-Chat" is llama2-7b-chat); or is meant for it, as "reference for Vicuna-7B" is for Vicuna-7B.
bool table_match_same_model(const PublishedRow *row, const char *ours);
bool table_match_like_model(const PublishedRow *row, const char *ours);
