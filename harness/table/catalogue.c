// A copy of the files is cut where a tab or a line ends, and each row becomes pointers into it. The files are
// our own, so what is wrong with them is found by the test of this one, not by its reader.
#include "harness/table/catalogue.h"

#include "engine/base/shipped.h"
#include "engine/base/memory.h"
#include "engine/base/error.h"

#include <assert.h>
#include <string.h>

EMBED(items_tsv, "configs/catalogue.tsv")
EMBED(claims_tsv, "configs/claims.tsv")

enum { ITEM_FIELDS = 9, CLAIM_FIELDS = 7 };

// The fields of the line that ends at `end`, cut apart. Returns how many.
static int cut(char *line, char *end, const char **fields, int most) {
    int count = 0;
    *end = 0;
    for (char *at = line; count < most; at++) {
        char *tab = strchr(at, '\t');
        if (tab) *tab = 0;
        fields[count++] = strcmp(at, "-") == 0 ? NULL : at;
        if (!tab) break;
        at = tab;
    }
    return count;
}

typedef void (*TakeRow)(Catalogue *c, const char *const *fields);

static void take_item(Catalogue *c, const char *const *f) {
    assert(c->item_count < CATALOGUE_ITEMS);
    c->items[c->item_count++] = (CatalogueItem){f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]};
}

static void take_claim(Catalogue *c, const char *const *f) {
    assert(c->claim_count < CATALOGUE_CLAIMS);
    c->claims[c->claim_count++] = (CatalogueClaim){f[0], f[1], f[2], f[3], f[4], f[5], f[6]};
}

// The first line names the columns.
static void read_rows(Catalogue *c, char *text, int columns, TakeRow take) {
    const char *fields[ITEM_FIELDS];
    char *line = strchr(text, '\n');
    for (char *next; line && line[1]; line = next) {
        next = strchr(line + 1, '\n');
        assert(next);
        int count = cut(line + 1, next, fields, columns);
        assert(count == columns);
        (void)count;
        take(c, fields);
    }
}

bool catalogue_open(Catalogue *c) {
    size_t items = strlen(items_tsv) + 1, claims = strlen(claims_tsv) + 1;
    *c = (Catalogue){.text = mem_new(items + claims, 1)};
    memcpy(c->text, items_tsv, items);
    memcpy(c->text + items, claims_tsv, claims);
    read_rows(c, c->text, ITEM_FIELDS, take_item);
    read_rows(c, c->text + items, CLAIM_FIELDS, take_claim);
    return true;
}

void catalogue_release(Catalogue *c) {
    mem_free(c->text);
    *c = (Catalogue){0};
}

static const char *name_at(const void *table, size_t i) { return ((const CatalogueItem *)table)[i].name; }

const CatalogueItem *catalogue_find(const Catalogue *c, const char *name, Error *e) {
    for (int i = 0; i < c->item_count; i++)
        if (strcmp(c->items[i].name, name) == 0) return &c->items[i];
    const char *nearest = suggest(name, c->items, (size_t)c->item_count, name_at);
    if (nearest) error_input(e, "no table or figure is called '%s'; did you mean '%s'?", name, nearest);
    else error_input(e, "no table or figure is called '%s'; 'outpace table' names them", name);
    return NULL;
}

bool catalogue_none(const char *name, const char *db, Error *e) {
    Catalogue c;
    if (!catalogue_open(&c)) return false;
    const CatalogueItem *known = catalogue_find(&c, name, NULL);
    if (!known) error_input(e, "'%s' has nothing for %s: name a run of the same methods by --run", db, name);
    else if (known->smoke)
        error_input(e, "'%s' has nothing for %s: run '%s --db %s'", db, name, known->smoke, db);
    else
        error_input(e, "'%s' has nothing for %s: run 'outpace run configs/%s.yaml --scale smoke --db %s'", db,
                    name, known->experiment, db);
    catalogue_release(&c);
    return false;
}
