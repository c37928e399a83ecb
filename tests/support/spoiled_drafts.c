#include "tests/support/spoiled_drafts.h"

#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fixture_path(const char *name, char path[512]) {
    const char *root = getenv("OUTPACE_ROOT");
    snprintf(path, 512, "%s/%s", root ? root : ".", name);
    return path;
}

void spoiled_drafts_are_refused(const Model *target, const char *folder, const SpoiledDraft *cases,
                                size_t count) {
    size_t wrong = 0;
    for (const SpoiledDraft *x = cases; x < cases + count; x++) {
        char dir[FOLDER_PATH_SIZE], path[512], name[128];
        Adapter a;
        Error e = {0};
        folder_make(dir);
        const char *copy = folder_path(dir, "a");
        snprintf(name, sizeof name, "%s/%s", folder, x->fixture);
        scratch_copy(fixture_path(name, path), copy);
        x->spoil(copy, x->a, x->b);
        bool ok = adapter_open(&a, target, copy, &e);
        bool said = !ok && e.kind == ERROR_INPUT && strstr(e.text, copy) && strstr(e.text, x->file) &&
                    strstr(e.text, x->words) && !strchr(e.text, '\n');
        if (!said) print_error("%s: got '%s'\n", x->name, ok ? "no refusal" : e.text);
        wrong += !said;
        assert_true(ok || (!a.models[0].layers && !a.draft_ids));
        if (ok) adapter_close(&a);
        folder_remove(dir);
    }
    if (wrong) fail_msg("%zu cases went wrong", wrong);
}
