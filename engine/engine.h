// Opens a model on a named backend: the one place that sees all the rooms of running a model.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/core/session.h"
#include "engine/model/adapter.h"
#include "engine/model/model.h"
#include "engine/options.h"
#include "engine/text/tokenizer.h"

typedef struct Engine {
    Model model;
    Session session;
    Tokenizer *tokenizer; // NULL where the directory has none
    int fits; // positions that the device had room for, where that was less than the model's context and none
              // was asked for: the session has half of them. 0: the session has what was wanted
} Engine;

// Bytes: of an open engine what it took, of a refused one what it would have taken, about. All 0 where
// config.json could not be read, and for a device that needs no weights.
typedef struct EngineMemory {
    size_t weights, cache, step;
    size_t available; // before opening, as the system says; 0 where the weights are not in its memory
} EngineMemory;

// Opens; refuses with the context that would fit where memory does not suffice (a GPU: a shorter one is taken
// where none was asked for). False with e filled, and
// `engine` empty, on failure. memory may be NULL.
bool engine_open(Engine *engine, const char *dir, const EngineOptions *o, EngineMemory *memory, Error *e);
void engine_close(Engine *engine); // takes an empty one

// Those checks of engine_open that need no model: whether there is such a device, and has what is asked of
// it.
bool engine_check(const EngineOptions *o, Error *e);

// All checks of engine_open, but of the weights and the tokenizer, for a model that is open or only described
// (no directory is read). The session has its shape, on the null backend: methods can be opened with it, to
// see whether they can, and no step run. `name` is for errors.
bool engine_rehearse(Engine *engine, const char *name, const Model *m, const EngineOptions *o, Error *e);

// Whether a draft's ids mean what the target's mean: as many, and the same pieces where both have a
// tokenizer.
bool engine_same_vocabulary(const Engine *target, const Engine *draft, Error *e);

// A target's adapter or heads, on the target's device, the last card of several, closed before it. Their
// weights stay in the files.
typedef struct AdapterEngine {
    Adapter adapter;
    Session sessions[ADAPTER_HEADS_MAX]; // (count)
    int count;
} AdapterEngine;

bool engine_open_adapter(AdapterEngine *a, const Engine *target, const char *dir, const EngineOptions *o,
                         EngineMemory *memory, Error *e);
void engine_close_adapter(AdapterEngine *a); // takes an empty one

// As engine_rehearse, beside such a target.
bool engine_rehearse_adapter(AdapterEngine *a, const char *name, const Adapter *adapter, const Engine *target,
                             Error *e);

// The kernels that a session on this device has (`isa`: forced), as its report names them; NULL where that is
// known only once it is open.
const char *engine_kernels(const char *device, const char *isa);

// Adds to a list, "cuda:0,cuda:1", the GPUs of a device (see EngineOptions) that it has not; it is a device,
// too.
void engine_list_gpus(const char *device, Text *list);

// How many GPUs this machine and its driver have, "cuda:0" and so on: of any kind, also such as cannot be
// used.
int engine_gpus(void);

// Whether "auto" passes over this machine's first GPU, and why: it takes the next, or the CPU. False for
// other devices, and where there is no GPU, or no driver for one.
bool engine_passes_over(const char *device, Error *why);

// A GPU's own readings (see EngineOptions) at this moment; card: its number among the device's, from 0. False
// without an error where the device is not a GPU, or has no such card.
bool engine_gauge(const char *device, int card, Gauge *out, Error *e);

// Measures the most that the device (see EngineOptions) can do; its slowest card counts. All zero for a
// device without arithmetic.
bool engine_ceilings(const char *device, const BackendOptions *o, Ceilings *out, Error *e);

// One line on CPU kernels that this processor names and that are not used all the same, with the mend; NULL
// where there are none.
const char *engine_kernels_refused(void);

// Bytes a second that a GPU copies within its own memory, those read and those written, measured now: what a
// card is often known by. False without an error where the device is none.
bool engine_copy_rate(const char *device, double *bytes_per_s, Error *e);
