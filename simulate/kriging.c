// A mixture of Gaussian processes over a grid of lengths and deviations, weighed by the likelihood of the
// measurements; each needs one Cholesky factor.
#include "simulate/kriging.h"

#include "engine/base/memory.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdint.h>

const double KRIGING_UNKNOWN = 0.5;

// Lengths in units of an axis; deviations of logarithms, and so of shares.
static const double LENGTHS[] = {0.2, 0.35, 0.6, 1, 1.8},
                    DEVIATIONS[] = {0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64};
enum {
    LENGTH_COUNT = sizeof LENGTHS / sizeof *LENGTHS,
    DEVIATION_COUNT = sizeof DEVIATIONS / sizeof *DEVIATIONS,
    PROCESSES = LENGTH_COUNT * DEVIATION_COUNT
};
static const double NEGLIGIBLE = 1e-6; // a share

// Added to the diagonal, as a share of s^2: places that coincide leave the matrix regular.
static const double LEAST_NUGGET = 1e-6;

typedef struct Process {
    const KrigingData *data;
    double length, deviation;
    gsl_matrix *factor; // (count, count) Cholesky's
    gsl_vector *weights, *column;
} Process;

static double agreement(const Process *p, const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < p->data->axes; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return p->deviation * p->deviation * exp(-sum / (2 * p->length * p->length));
}

static bool factorise(Process *p) {
    const KrigingData *d = p->data;
    for (int i = 0; i < d->count; i++)
        for (int j = 0; j < d->count; j++) {
            double own =
                i == j ? d->errors[i] * d->errors[i] + LEAST_NUGGET * p->deviation * p->deviation : 0;
            gsl_matrix_set(p->factor, (size_t)i, (size_t)j,
                           own + agreement(p, d->places + i * d->axes, d->places + j * d->axes));
        }
    if (gsl_linalg_cholesky_decomp1(p->factor) != GSL_SUCCESS) return false;
    for (int i = 0; i < d->count; i++) gsl_vector_set(p->weights, (size_t)i, d->values[i]);
    return gsl_linalg_cholesky_svx(p->factor, p->weights) == GSL_SUCCESS;
}

// Up to a constant.
static double log_likelihood(const Process *p) {
    double fit = 0, volume = 0;
    for (int i = 0; i < p->data->count; i++) {
        fit += p->data->values[i] * gsl_vector_get(p->weights, (size_t)i);
        volume += log(gsl_matrix_get(p->factor, (size_t)i, (size_t)i));
    }
    return -0.5 * fit - volume;
}

static void answer(Process *p, const double *place, double *mean, double *square) {
    *mean = 0;
    for (int i = 0; i < p->data->count; i++) {
        double k = agreement(p, place, p->data->places + i * p->data->axes);
        *mean += k * gsl_vector_get(p->weights, (size_t)i);
        gsl_vector_set(p->column, (size_t)i, k);
    }
    gsl_blas_dtrsv(CblasLower, CblasNoTrans, CblasNonUnit, p->factor, p->column);
    double known = gsl_blas_dnrm2(p->column);
    *square = fmax(0, p->deviation * p->deviation - known * known);
}

// --- all that may be -------------------------------------------------------------------------------------

static void set_process(Process *p, int i) {
    p->length = LENGTHS[i / DEVIATION_COUNT];
    p->deviation = DEVIATIONS[i % DEVIATION_COUNT];
}

// Shares of belief in each length and deviation; false where none fits.
static bool weigh(Process *p, double *shares) {
    double best = -HUGE_VAL, sum = 0;
    for (int i = 0; i < PROCESSES; i++) {
        set_process(p, i);
        shares[i] = factorise(p) ? log_likelihood(p) : -HUGE_VAL;
        best = fmax(best, shares[i]);
    }
    if (!isfinite(best)) return false;
    for (int i = 0; i < PROCESSES; i++) sum += shares[i] = exp(shares[i] - best);
    for (int i = 0; i < PROCESSES; i++) shares[i] /= sum;
    return true;
}

// The mixture's mean, and its deviation: what each process leaves open, and how they differ.
static bool mix(Process *p, const double *places, int asked, double *mean, double *error) {
    double shares[PROCESSES];
    if (!weigh(p, shares)) return false;
    for (int i = 0; i < asked; i++) mean[i] = 0, error[i] = 0;
    for (int k = 0; k < PROCESSES; k++) {
        set_process(p, k);
        if (shares[k] < NEGLIGIBLE || !factorise(p)) continue;
        for (int i = 0; i < asked; i++) {
            double m, square;
            answer(p, places + i * p->data->axes, &m, &square);
            mean[i] += shares[k] * m;
            error[i] += shares[k] * (square + m * m);
        }
    }
    for (int i = 0; i < asked; i++) error[i] = sqrt(fmax(0, error[i] - mean[i] * mean[i]));
    return true;
}

bool kriging(const KrigingData *data, const double *places, int asked, double *mean, double *error,
             Error *e) {
    for (int i = 0; i < asked; i++) mean[i] = 0, error[i] = KRIGING_UNKNOWN;
    if (data->count == 0) return true;
    size_t n = (size_t)data->count;
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    Process p = {.data = data,
                 .factor = gsl_matrix_alloc(n, n),
                 .weights = gsl_vector_alloc(n),
                 .column = gsl_vector_alloc(n)};
    if (!p.factor || !p.weights || !p.column) mem_exhausted(SIZE_MAX);
    bool ok = mix(&p, places, asked, mean, error);
    gsl_matrix_free(p.factor);
    gsl_vector_free(p.weights);
    gsl_vector_free(p.column);
    gsl_set_error_handler(before);
    return ok || error_input(e, "kriging failed: the prediction is not finite");
}
