// Whether every weight is a number. One NaN or infinity in a weight makes every logit a NaN, and nothing that
// is generated afterwards says so; looking for it reads the whole model, so it is done on request.
#pragma once
#include "engine/model/model.h"

// Scans all weights that the model uses. False with e filled if some are not finite: it names the first one's
// tensor, file and place, and tells how many there are.
bool model_check_finite(const Model *m, const char *dir, Error *e);
