// The tables and figures of the papers, and the claims in their text: how to make each, what it
// needs, and which parts are not run. Both lists are files in configs/ that the program carries in itself
// (catalogue.tsv, claims.tsv): adding to them is adding a line.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "results/store.h"

#include <stdbool.h>
#include <stddef.h>

enum { CATALOGUE_ITEMS = 34, CATALOGUE_CLAIMS = 128 };

// "-" in the file is NULL here.
typedef struct CatalogueItem {
    const char *name;         // lookahead-table-3
    const char *title;        // what it shows
    const char *experiment;   // a run's name; of an experiment configs/NAME.yaml, too
    const char *full, *smoke; // what makes it at either scale; NULL: 'outpace run' with that config
    const char *then;         // what shows it, once it has run
    const char *needs;        // at full scale: models, data, devices
    const char *takes;        // points, prompts, tokens at full scale
    const char *limits;       // the parts not run, or simulated, and why; NULL: all measured
} CatalogueItem;

typedef struct CatalogueClaim {
    const char *paper, *where; // lookahead, section 5.2
    const char *claim;         // in our words
    const char *state;         // measured, computed, simulated, not run
    const char *stands;        // where our number is, or why there is none
    const char *holds_when;    // how `query` decides, or why none can
    const char *query;         // of a store: harness/table/claims.h; NULL: none decides it
} CatalogueClaim;

typedef struct Catalogue {
    CatalogueItem items[CATALOGUE_ITEMS];
    CatalogueClaim claims[CATALOGUE_CLAIMS];
    int item_count, claim_count;
    char *text; // what all of it points into
} Catalogue;

void catalogue_open(Catalogue *c);
void catalogue_release(Catalogue *c); // takes an empty one

// NULL with e filled, and the nearest name in it.
const CatalogueItem *catalogue_find(const Catalogue *c, const char *name, Error *e);

// False, with e filled: the store at `db` has nothing for an item, and this would make it.
bool catalogue_none(const char *name, const char *db, Error *e);

// --- the verdict on a claim

typedef enum { CLAIM_HOLDS, CLAIM_DOES_NOT, CLAIM_UNDECIDED, CLAIM_NOT_RUN, CLAIM_VERDICTS } ClaimVerdict;
extern const char *const claim_verdicts[CLAIM_VERDICTS];

typedef struct ClaimJudgement {
    ClaimVerdict verdict;
    bool counted; // exact: it can't be wrong by chance
    Text why;     // the comparison that speaks least for it, with its margin; "" where nothing was run
} ClaimJudgement;

// Without rows, and without a query: not run. False with e filled, and nothing to release.
bool claim_judge(Store *store, const CatalogueClaim *claim, ClaimJudgement *out, Error *e);
