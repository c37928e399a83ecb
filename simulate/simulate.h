// Numbers in, numbers out: laws of decoding, fits (GSL), hardware models, Monte Carlo, tuning, statistics.
//
// Nothing lives here yet. This room knows no model and no method: it may include engine/base only, so that
// anybody's measurements can be fitted and priced.
#pragma once
