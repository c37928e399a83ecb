// A short name for a model's content: what is made of its weights is kept under it, and a run tells by it
// what it ran.
//
// Hashing every byte of a 7B model takes half a minute, so it is the SHA-256 of config.json, and of each
// file of weights its name, its size, its header (every tensor's name, type, shape and place) and
// IDENTITY_SAMPLES spots of IDENTITY_BYTES spread evenly from its first byte to its last; small files are
// taken whole. Another training or another conversion changes numbers everywhere, and so some in the spots. A
// change made by hand to fewer numbers than lie between two spots may go unseen.
#pragma once
#include "engine/base/file.h"
#include "engine/model/model.h"

enum { IDENTITY_SAMPLES = 4096, IDENTITY_BYTES = 64 };

// m is open; dir is where it was opened from.
bool model_identity(const Model *m, const char *dir, char out[SHA256_TEXT], Error *e);
