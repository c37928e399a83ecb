// The CUDA backend. A build without CUDA links a stub (none.c) whose cuda_open fails with an error.
#pragma once
#include "engine/core/backend.h"
#include "engine/model/model.h"

extern const Backend cuda_backend;

bool cuda_open(const Model *model, const BackendOptions *o, void **self, Error *e); // like cpu_open

// Returns the longest context, up to the one in o, that the cards' free memory has room for; 0: none.
int cuda_fits(const Model *model, const BackendOptions *o);

// Bytes of an open model's weights on cards; `decoded`: of them those of values that files have as codes,
// since no kernel reads these codes. No card is needed.
size_t cuda_weights(const Model *model, const BackendOptions *o, size_t *decoded);

int cuda_count(void);   // devices; 0 also if the driver doesn't answer
bool cuda_absent(void); // there is no device, or no driver

// Whether a device can run the engine; if not, e has the reason.
bool cuda_usable(int ordinal, Error *e);

// Reads the device's name and gauges.
bool cuda_gauge(int ordinal, Gauge *out, Error *e);

// Measures the first of o's cards.
bool cuda_ceilings(const BackendOptions *o, Ceilings *out, Error *e);

// Measures bytes per second of copies within the device's memory: those read plus those written.
bool cuda_copy_rate(int ordinal, double *bytes_per_s, Error *e);
