// What rank 0 sends the other ranks (core/ranks.h) so that they decode the same answer at the same time: how
// to open the model, the method with its parameters, the prompt, and the options. The others answer whether
// they are ready; then every rank calls decode.
//
// A method that remembers earlier prompts (pool_scope=conversation) is kept by the others, too, until rank 0
// closes its own. After an answer that only rank 0 ended (a stop string, Ctrl-C) such a method can't go on:
// the others have read more of the text.
#pragma once
#include "engine/decode/decode.h"

typedef enum { CALL_ANSWER, CALL_CLOSE, CALL_QUIT } CallKind;

// A message as received. It begins with a Call, whose arrays follow it.
typedef struct Call {
    CallKind kind;
    uint64_t method; // rank 0's name for its open method
    bool first;      // the others have not decoded with it yet
    uint64_t seed;   // this and the next two: as the method was opened; the options may differ by now
    Sampling sampling;
    bool eos;
    DecodeOptions o; // its pointers are void
    int prompt_count;
    size_t opening_bytes, text_bytes; // the text is "name:key=value,..."
} Call;

typedef struct CallView {
    Call call;
    const char *opening, *text; // (opening_bytes, text_bytes); the text ends in a NUL
    int *eos, *prompt;          // copies, for mem_free
} CallView;

// Whether the method's steps are shared by the target's team: as many ranks, and more than one.
bool call_is_shared(const Session *target, const Method *method);

// Rank 0, before it decodes: the others prepare. False if any of them could not.
bool call_answer(Session *target, Method *method, const int *prompt, int count, const DecodeOptions *o,
                 Error *e);
void call_close(Method *method); // called by method_close
bool call_quit(const Team *team, Error *e);

// The other ranks. False if the bytes are not a call.
bool call_read(const Text *message, CallView *out, Error *e);
void call_release(CallView *v);

// What the method is to be opened with; eos: the model's.
MethodEnv call_env(const CallView *v, Session *target, const int *eos, int eos_count);
