// Chat templates by name: what a family's instruction tuning put around what a user says. No Jinja: a table
// of the published templates' parts.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <stdbool.h>
#include <stddef.h>

// In the order in which they are written. NULL is nothing.
typedef struct Template {
    const char *name;
    const char *about; // one line: whose template it is
    const char
        *begin; // written first, once: the BOS where the template has it. NULL: the tokenizer adds its own
    const char *system; // where none is given; NULL: none
    const char *system_before, *system_after;
    bool system_inside; // the system text stands after user_before, else before it
    const char *user_before, *user_after;
    const char *reply_before, *reply_after;
    const char *thought_end; // of a reply counts what stands behind the last of these and its line; NULL: all
    const char *again;       // before every user's text but the first
    bool trim; // replies, and what stands between user_before and user_after, lose white space at both ends
    bool trim_system; // the system text does
} Template;

// A turn: a user's text and the reply, which is NULL in the last turn.
typedef struct Turn {
    const char *user, *reply;
} Turn;

const Template *const *template_table(size_t *count);
const Template *template_find(const char *name, Error *e); // NULL with e filled

// Appends the prompt that asks for the reply to the last turn. system may be NULL. False with e filled if the
// template has no place for a system text. Encode it with add_special unless the template has a `begin`.
bool template_render(const Template *t, const char *system, const Turn *turns, size_t count, Text *out,
                     Error *e);
