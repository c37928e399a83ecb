// Chat templates by name: the text that a family's instruction tuning put around a user's text. No Jinja,
// only a table of the published templates' parts.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <stdbool.h>
#include <stddef.h>

// Parts in the order in which they are written. NULL: the template has no such part.
typedef struct Template {
    const char *name;
    const char *about;  // one line: whose template it is
    const char *begin;  // once: the BOS, if the template has it. NULL: the tokenizer adds its own
    const char *system; // the default system text
    const char *system_before, *system_after;
    bool system_inside; // the system text comes after user_before, else before it
    const char *user_before, *user_after;
    const char *reply_before, *reply_after;
    const char *thought_end; // only the part of a reply after the last of these, and its line, is written
    const char *again;       // before every user's text except the first
    bool trim_system, trim_user, trim_reply; // white space around these is removed. A system text inside the
                                             // user's counts as part of that, unless it is kept_apart
    bool kept_apart;
} Template;

// A turn: a user's text and the reply, which is NULL in the last turn.
typedef struct Turn {
    const char *user, *reply;
} Turn;

const Template *template_table(size_t *count);
const Template *template_find(const char *name, Error *e); // NULL with e filled
void template_names(Text *out);                            // appends them, with commas between

// In place of a name: the template that the model's own files have (tokenizer_template in tokenizer.h).
#define TEMPLATE_OF_MODEL "model"

// Recognises a published template by its Jinja text, n bytes. bos and eos: the tokens that the text may name;
// NULL: there's none. NULL: the text is not known to render what one of ours does.
const Template *template_recognise(const char *text, size_t n, const char *bos, const char *eos);

// Appends the prompt that asks for the reply to the last turn. system may be NULL. False with e filled if the
// template takes no system text. Encode the prompt with add_special unless the template has a `begin`.
bool template_render(const Template *t, const char *system, const Turn *turns, size_t count, Text *out,
                     Error *e);
