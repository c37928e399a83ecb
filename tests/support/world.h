// A small target that is open for training, and what is trained on top of it.
#pragma once
#include "engine/train/trainer.h"
#include "tests/support/learner.h"
#include "tests/support/random_model.h"

enum { PASS = 64, LONGEST = 32 };

typedef struct World {
    RandomModel model;
    Session session;
    TargetChoice choice;
} World;

enum { PARALLEL = ADAPTER_DFLASH + 1, KINDS }; // P-EAGLE: EAGLE-3's with masks

Shape world_small_shape(void);
Shape world_shape(int v); // a draft of blocks needs an id that no text has, behind the real ones
AdapterKind world_kind(int v);
void world_open(World *w, const Shape *shape, const AdapterKind *kind, Random *r);
void world_close(World *w);

TrainConfig world_config(const World *w, int steps); // the small learner's run, of an adapter
Trainer world_trainer(const TrainConfig *c, const Corpus *corpus);

// Opens a world, trains an adapter for a step and exports it to `dir`.
Trainer world_export(World *w, Corpus *corpus, const AdapterKind *kind, const char *dir, Random *r);
