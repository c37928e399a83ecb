// Invariant: every turn but the last has a reply, and turns[i].reply is replies[i].

#include "engine/base/memory.h"
#include "harness/inputs/prompts.h"

#include <assert.h>
#include <string.h>

void conversation_begin(Conversation *c, const Tokenizer *tokenizer, const Template *t) {
    *c = (Conversation){.tokenizer = tokenizer, .template = t};
}

static void conversation_check(const Conversation *c) {
    assert(c->count >= 0 && c->count <= CONVERSATION_TURNS);
    for (int i = 0; i < c->count; i++) {
        assert(c->turns[i].user && c->turns[i].reply == c->replies[i]);
        assert(c->replies[i] || i == c->count - 1);
    }
}

bool conversation_ask(Conversation *c, const char *user, IdList *out, Error *e) {
    const Template *t = c->template;
    LOCAL_TEXT text = {0};
    assert(c->count < CONVERSATION_TURNS);
    c->turns[c->count++] = (Turn){.user = user};
    conversation_check(c);
    bool ok = !t || template_render(t, NULL, c->turns, (size_t)c->count, &text, e);
    for (int i = 0; !t && i < c->count; i++) {
        if (i) text_puts(&text, "\n\n");
        text_puts(&text, c->turns[i].user);
        if (c->turns[i].reply) text_puts(&text, c->turns[i].reply);
    }
    return ok && prompt_encode(c->tokenizer, text_get(&text), text.length, !(t && t->begin), out, e);
}

// A reply ends at its first NUL: templates read C strings.
bool conversation_reply(Conversation *c, const int *ids, int count, Error *e) {
    LOCAL_TEXT text = {0};
    assert(c->count > 0 && !c->replies[c->count - 1]);
    bool ok = tokenizer_decode(c->tokenizer, ids, (size_t)count, true, &text, e);
    if (ok) c->turns[c->count - 1].reply = c->replies[c->count - 1] = mem_text(text_get(&text), text.length);
    conversation_check(c);
    return ok;
}

void conversation_release(Conversation *c) {
    for (int i = 0; i < c->count; i++) mem_free(c->replies[i]);
    *c = (Conversation){0};
}

// --- stop strings ----------------------------------------------------------------------------------------

// Returns where the stop string begins that is complete first; n if there is none. Of two that end together,
// the longer one. Looking for the leftmost instead would make the output depend on how the text is cut into
// pieces.
static size_t find_stop(const StopFilter *f, const char *text, size_t n) {
    size_t first = n, first_end = n + 1;
    for (int i = 0; i < f->stops->count; i++) {
        size_t length = strlen(f->stops->items[i]);
        const char *found = memmem(text, n, f->stops->items[i], length);
        size_t at = found ? (size_t)(found - text) : n, end = at + length;
        if (!found || end > first_end || (end == first_end && at > first)) continue;
        first = at;
        first_end = end;
    }
    return first;
}

// Whether text, n bytes, is the beginning of a stop string.
static bool is_beginning(const StopFilter *f, const char *text, size_t n) {
    for (int i = 0; i < f->stops->count; i++)
        if (n < strlen(f->stops->items[i]) && memcmp(f->stops->items[i], text, n) == 0) return true;
    return false;
}

bool stop_feed(StopFilter *f, const char *text, size_t n, Text *out) {
    text_add(&f->held, text, n);
    const char *held = text_get(&f->held);
    size_t length = f->held.length, at = find_stop(f, held, length), safe = 0;
    if (at < length) {
        text_add(out, held, at);
        text_clear(&f->held);
        return true;
    }
    while (safe < length && !is_beginning(f, held + safe, length - safe)) safe++;
    text_add(out, held, safe);
    if (length) memmove(f->held.data, f->held.data + safe, length - safe + 1);
    f->held.length = length - safe;
    return false;
}

void stop_flush(StopFilter *f, Text *out) {
    text_add(out, text_get(&f->held), f->held.length);
    text_clear(&f->held);
}

void stop_release(StopFilter *f) { text_release(&f->held); }
