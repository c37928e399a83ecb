#include "harness/prompts/conversation.h"

#include "engine/base/memory.h"
#include "harness/prompts/prompt.h"

#include <assert.h>

void conversation_begin(Conversation *c, const Tokenizer *tokenizer, const Template *t) {
    *c = (Conversation){.tokenizer = tokenizer, .template = t};
}

static bool render_plain(const Conversation *c, Text *out, Error *e) {
    for (int i = 0; i < c->count; i++) {
        if (i) text_puts(out, "\n\n");
        text_puts(out, c->turns[i].user);
        if (c->turns[i].reply) text_puts(out, c->turns[i].reply);
    }
    return !out->failed || error_system(e, "out of memory");
}

bool conversation_ask(Conversation *c, const char *user, IdList *out, Error *e) {
    const Template *t = c->template;
    Text text = {0};
    assert(c->count < CONVERSATION_TURNS);
    c->turns[c->count++] = (Turn){.user = user};
    bool ok = t ? template_render(t, NULL, c->turns, (size_t)c->count, &text, e) : render_plain(c, &text, e);
    ok = ok && prompt_encode(c->tokenizer, text_get(&text), text.length, !(t && t->begin), out, e);
    text_release(&text);
    return ok;
}

// A reply with a NUL ends there: templates know texts by their end.
bool conversation_reply(Conversation *c, const int *ids, int count, Error *e) {
    Text text = {0};
    bool ok = tokenizer_decode(c->tokenizer, ids, (size_t)count, true, &text, e);
    char *reply = ok ? mem_text(text_get(&text), text.length) : NULL;
    text_release(&text);
    if (!reply) return ok ? error_system(e, "out of memory") : false;
    c->replies[c->count - 1] = reply;
    c->turns[c->count - 1].reply = reply;
    return true;
}

void conversation_release(Conversation *c) {
    for (int i = 0; i < c->count; i++) mem_free(c->replies[i]);
    *c = (Conversation){0};
}
