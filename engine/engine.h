// Opens a model on a named device: the one place that joins model files, tokenizer and backends.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/core/ranks.h"
#include "engine/core/session.h"
#include "engine/model/adapter.h"
#include "engine/model/model.h"
#include "engine/options.h"
#include "engine/text/tokenizer.h"

typedef struct Engine {
    Model model;
    ModelWeights weights; // empty in a rehearsal, whose model's weights are the caller's
    Session session;
    Session *more; // (more_count): of the other sequences of a batch
    int more_count;
    Tokenizer *tokenizer; // NULL where the directory has none
    int fits; // if no context was given and the model's own didn't fit on the device: the positions that
              // would; the session has half of them. Else 0
} Engine;

// Bytes that an open engine takes, or about as many as a refused one would have taken. All 0 if config.json
// could not be read, and for a device that needs no weights.
typedef struct EngineMemory {
    size_t weights, cache, step;
    size_t available; // before opening, from the system; 0 if the weights are in another memory
    bool from_file;   // the weights don't fit: a step reads them from their file
} EngineMemory;

// Opens. If memory doesn't suffice, the error names the context that would fit (a GPU takes a shorter one by
// itself if none was given). On failure returns false with e filled and `engine` empty. memory may be NULL.
bool engine_open(Engine *engine, const char *dir, const EngineOptions *o, EngineMemory *memory, Error *e);
void engine_close(Engine *engine); // takes an empty one

// The session of a sequence, from 0.
Session *engine_session(Engine *engine, int sequence);

// Another rank than 0: opens the model from the `opening` that rank 0's session has (core/ranks.h). Of a
// machine's ranks each has a card of its own, unless the device names one: `local` is the rank among them.
bool engine_open_shared(Engine *engine, const char *opening, const Team *team, int local, Error *e);
// "cuda" and "auto" for this rank.
void engine_local_device(const char *device, int local, char out[ARG_TEXT_SIZE]);

// The checks of engine_open that need no model: that the device is known and can follow the options.
bool engine_check(const EngineOptions *o, Error *e);

// All checks of engine_open except those of weights and tokenizer, for a model that is open or only described
// (no directory is read). The session has the model's shape on the null backend: methods can be opened with
// it as a trial, but steps can't run. `name` is for errors. memory may be NULL.
bool engine_rehearse(Engine *engine, const char *name, const Model *m, const EngineOptions *o,
                     EngineMemory *memory, Error *e);

// Whether a draft's ids have the target's meaning: equal pieces if both have a tokenizer, else as many ids.
// One vocabulary may be longer: ids that only one of them has are never proposed.
bool engine_same_vocabulary(const Engine *target, const Engine *draft, Error *e);

// A target's adapter or heads, on the target's device, the last card of several, closed before it. Their
// weights stay in the files.
typedef struct AdapterEngine {
    Adapter adapter;
    Session sessions[ADAPTER_HEADS_MAX]; // (count)
    int count;
    Session *more; // (more_count): the same for each of the other sequences, one after another
    int more_count;
} AdapterEngine;

Session *engine_adapter_sessions(AdapterEngine *a, int sequence); // (count)
bool engine_open_adapter(AdapterEngine *a, const Engine *target, const char *dir, const EngineOptions *o,
                         EngineMemory *memory, Error *e);
void engine_close_adapter(AdapterEngine *a); // takes an empty one

// Like engine_rehearse, for an adapter of such a target.
bool engine_rehearse_adapter(AdapterEngine *a, const char *name, const Adapter *adapter, const Engine *target,
                             Error *e);

// The kernels that a session on this device will use (`isa`: forced), as its report names them; NULL if only
// an open session knows.
const char *engine_kernels(const char *device, const char *isa);

// Bytes that a model's weights take in a GPU's memory, whether there is one or not; `decoded`: of them those
// of codes (tensor.h) that become values there. 0: these options open it elsewhere, or only its config is
// open.
size_t engine_gpu_weights(const Model *m, const EngineOptions *o, size_t *decoded);

// Threads of the CPU that an engine opened with these options has.
int engine_threads(const EngineOptions *o);

// Adds a device's GPUs (see EngineOptions) to a list, "cuda:0,cuda:1", which lacks them; the list is itself a
// device.
void engine_list_gpus(const char *device, Text *list);

// The number of GPUs that this machine's driver lists, "cuda:0" and so on, usable or not.
int engine_gpus(void);

// Whether "auto" skips this machine's first GPU, and why: it takes the next usable one, or the CPU. False for
// other devices, and if there is no GPU or no driver.
bool engine_passes_over(const char *device, Error *why);

// A GPU's own readings at this moment; card: its index among the device's, from 0. False without an error if
// the device is not a GPU or has no such card.
bool engine_gauge(const char *device, int card, Gauge *out, Error *e);

// Measures the device's limits; its slowest card counts. All zero for a device without arithmetic.
bool engine_ceilings(const char *device, const BackendOptions *o, Ceilings *out, Error *e);

// One line on CPU kernels that this processor claims but that can't be used, with the fix; NULL: none.
const char *engine_kernels_refused(void);

// Measures how many bytes a second a GPU copies within its own memory, reads plus writes: the figure that
// cards are sold by. False without an error if the device is not a GPU.
bool engine_copy_rate(const char *device, double *bytes_per_s, Error *e);
