// What the papers claim in their text, judged by a store: configs/claims.tsv has a query for each claim that
// runs can decide.
//
// A query's rows are of comparisons that all must hold; the first column names the row's comparison. Then
// comes
//
//      x                   a margin at one prompt: above 0 it speaks for the claim. Its mean decides
//      a, b                at a prompt of one kind or of another, NULL else: the mean of a less that of b
//      does value, low, high    a margin that has its interval already
//
// The interval is the 95% one, or wider by Bonferroni where comparisons are several.
#pragma once
#include "engine/base/text.h"
#include "harness/table/catalogue.h"
#include "results/store.h"

typedef enum { CLAIM_HOLDS, CLAIM_DOES_NOT, CLAIM_UNDECIDED, CLAIM_NOT_RUN, CLAIM_VERDICTS } ClaimVerdict;
extern const char *const claim_verdicts[CLAIM_VERDICTS];

typedef struct ClaimJudgement {
    ClaimVerdict verdict;
    Text why; // the comparison that speaks least for it, with its margin; "" where nothing was run
} ClaimJudgement;

// Without rows, and without a query: not run. False with e filled, and nothing to release.
bool claim_judge(Store *store, const CatalogueClaim *claim, ClaimJudgement *out, Error *e);
