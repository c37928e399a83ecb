// See choices.c.
#pragma once
#include "engine/base/error.h"
#include "engine/cuda/product.h"

enum { CHOICES_MOST = 512 };
typedef struct Choice {
    int outputs, inputs, bits, rows, cut;
} Choice;
typedef struct Choices {
    int count;
    Choice choice[CHOICES_MOST];
} Choices;

bool choices_read(Choices *c, Error *e); // none without a file
void choices_apply(const Choices *c, Matrix *m);
