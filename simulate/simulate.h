// Numbers in, numbers out: laws of decoding, fits (GSL), hardware models, Monte Carlo, statistics.
//
// This room knows no model and no method: it may include engine/base only, so that anybody's measurements can
// be fitted and priced. Each header is one idea:
//   laws.h        tokens a step, and S, from (alpha, f): Lookahead Eq. 4 to 7
//   drafting.h    CTAR, the cost of drafting, the best gamma and eta (Kangaroo)
//   montecarlo.h  the same processes drawn at random, which the closed forms are held against
//   statistics.h  median, deviation, quantiles
//   bootstrap.h   intervals by drawing again, paired and nested
//   uniformity.h  whether numbers are uniform on [0, 1)
//   search.h      the least value of a function of one variable
//   points.h      measured points of S, from a TSV file
//   sample.h      points as a law sees them, weighed by prompt
//   fit.h         (alpha, f) from points, and its warnings; its estimators: least_squares.h, likelihood.h
//   leave_out.h   how well the law and its rivals predict points that they have not seen
//   hardware.h    the time of a step on a machine
//   surface.h     measured step times, and a machine fitted to them
//   recorded.h    passes that were recorded on one machine, priced on another
//   scaling.h     one step on several devices
//   design.h      which points of a space to measure first
//   kriging.h     what measured places say of the others
//   tuning.h      what all of a method's space would do, from a few points of it
//   plan.h        what of tuning fits into a time
//   race.h        who is fastest, from times taken side by side
#pragma once
