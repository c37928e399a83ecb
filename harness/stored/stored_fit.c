#include "harness/stored/stored_fit.h"

#include "harness/cli/version.h"
#include "results/rows.h"

#include <math.h>
#include <string.h>

static const char *const DRAWN[] = {"prompts", "errors", "residuals", "steps"};

static void add_estimate(StoreFit *to, const char *estimator, const FitEstimate *x) {
    if (!x->given) return;
    bool known = x->interval;
    to->estimates[to->estimate_count++] = (StoreFitEstimate){.estimator = estimator,
                                                             .alpha = x->alpha.value,
                                                             .alpha_low = known ? x->alpha.low : NAN,
                                                             .alpha_high = known ? x->alpha.high : NAN,
                                                             .f = x->f.value,
                                                             .f_low = known ? x->f.low : NAN,
                                                             .f_high = known ? x->f.high : NAN,
                                                             .rms = x->rms,
                                                             .condition = x->condition,
                                                             .correlation = x->correlation,
                                                             .drawn = known ? DRAWN[x->drawn] : NULL};
}

static bool hash_all(StoredFit *out, const char *tsv, Error *e) {
    const StoreFit *f = &out->fit;
    Text all = {0};
    bool ok = sha256_bytes(tsv, strlen(tsv), out->points, e);
    text_printf(&all, "%s\n%s\n%s\n%s\n%.17g\n%d\n%lld\n", out->points, f->title, f->law, f->bonus, f->output,
                f->resamples, (long long)f->seed);
    ok = ok && sha256_bytes(text_get(&all), all.length, out->hash, e);
    text_release(&all);
    return ok;
}

bool stored_fit_make(StoredFit *out, const StoredSet *set, const char *tsv, const FitOptions *o,
                     const Fit *fit, Error *e) {
    *out = (StoredFit){.fit = {.hash = out->hash,
                               .points = out->points,
                               .point_ids = set->points,
                               .title = set->title,
                               .law = o->law == FIT_PAPER ? "paper" : "corrected",
                               .bonus = o->bonus_dropped ? "dropped" : "kept",
                               .output = o->output,
                               .estimator = fit->best == &fit->likelihood ? "likelihood" : "least_squares",
                               .fitted = fit->fitted,
                               .prompts = fit->prompts,
                               .resamples = o->resamples,
                               .seed = (int64_t)o->seed,
                               .version = version_text()}};
    add_estimate(&out->fit, "least_squares", &fit->least_squares);
    add_estimate(&out->fit, "likelihood", &fit->likelihood);
    return hash_all(out, tsv, e);
}

bool stored_fits_keep(const char *db, int64_t run, const StoredFit *fits, size_t count, Error *e) {
    bool added;
    Store *store = store_open(db, STORE_WRITE, NULL, e);
    bool ok = store && store_begin(store, e);
    for (size_t i = 0; ok && i < count; i++) ok = store_fit(store, run, &fits[i].fit, &added, e);
    ok = ok && store_commit(store, e);
    store_close(store);
    return ok;
}

bool stored_fits_text(Store *store, int64_t run, Text *out, Error *e) {
    static const char SQL[] =
        "SELECT printf('%s: alpha %s, f %s (law %s, bonus %s%s; %s, %d settings, %d prompts; %s)%s', title,"
        " measured(alpha, alpha_low, alpha_high), measured(f, f_low, f_high), law, bonus,"
        " iif(output, printf(', filling in outputs of %g tokens', output), ''),"
        " replace(estimator, '_', ' '), settings, prompts, date(made, 'unixepoch'),"
        " iif(other_points, '; of other points than the run has now: fit it again', ''))"
        " FROM fitted WHERE run_id = ?1 ORDER BY title, made DESC, fit_id DESC";
    Rows *r = rows_open(store, SQL, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    while (rows_next(r)) text_printf(out, "fit of %s\n", rows_text(r, 0));
    return rows_end(r, true, e);
}
