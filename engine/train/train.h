// Learning: backward passes and AdamW or Muon, for small reference models. Only the harness uses this room.
//
//      kernels     the products and row operations of each instruction set, forward and backward
//      network     a whole model: loss and gradients of a batch (forward.c, backward.c, head.c, attention.c)
//      target      the frozen model that an adapter or heads learn from
//      matrices    a layer's weights as its products read them, packed once for all rows
//      parameters  its numbers by name           optimizer   what moves them
//      corpus      documents, split, batches     trainer     steps over them
//      checkpoint  a run that can go on          export      the model that it gives
//
// Opening allocates all; a step allocates nothing. Results are the same bit for bit for any number of
// threads, and for a run that was stopped and resumed.
#pragma once
#include "engine/train/checkpoint.h"
#include "engine/train/export.h"
#include "engine/train/trainer.h"
