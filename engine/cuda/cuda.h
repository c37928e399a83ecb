// The CUDA backend. A build without a CUDA engine links a stub whose cuda_open says so.
#pragma once
#include "engine/core/backend.h"
#include "engine/model/model.h"

extern const Backend cuda_backend;

enum { CUDA_CARDS_MAX = 16 };
typedef struct CudaCards {
    int count;
    int ordinal[CUDA_CARDS_MAX]; // no two alike
} CudaCards;

// Like cpu_open; `ordinal` is the device's number. With its layers on several cards, in this order, a model
// has the same bits as on any one of them, where they are of one kind.
bool cuda_open(const Model *model, int ordinal, const BackendOptions *o, void **self, Error *e);
bool cuda_open_on(const Model *model, const CudaCards *cards, const BackendOptions *o, void **self, Error *e);

// The longest context, up to the one that is asked for, that the devices' memory has room for now; 0: none.
int cuda_fits(const Model *model, const CudaCards *cards, const BackendOptions *o);

// How many devices there are, 0 also where the driver does not answer; whether there is none, or no driver.
int cuda_count(void);
bool cuda_absent(void);

// Whether a device can run the engine, or why not.
bool cuda_usable(int ordinal, Error *e);

// Device `ordinal`, as it is now.
bool cuda_gauge(int ordinal, Gauge *out, Error *e);

// Of device `ordinal`, measured now.
bool cuda_ceilings(int ordinal, const BackendOptions *o, Ceilings *out, Error *e);

// Bytes a second that it copies within its memory, those read and those written, measured now.
bool cuda_copy_rate(int ordinal, double *bytes_per_s, Error *e);
