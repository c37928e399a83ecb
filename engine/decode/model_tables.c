#include "engine/decode/model_tables.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/decode/bigram.h"

#include <string.h>

// Rows that are made whatever was asked for: the largest k that the paper looks at (Figure 1), so that one
// table serves a sweep over k.
enum { USUAL_K = 32 };

typedef struct Wanted {
    const MethodEnv *env;
    const char *name;
    Text made_how;
    int tokens, k, w;
    bool prefix;             // of bigrams
    UnigramOrder order;      // of unigrams
    double rows, operations; // that making it takes: see Rehearsal
    bool (*make)(const struct Wanted *wanted, int k, int w, TokenTable *out, Error *e);
} Wanted;

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }

static bool serves(const Wanted *x, const TokenTable *t) { return t->k >= x->k && t->w >= x->w; }

// The file is left empty where nothing is kept.
static bool name_file(const Wanted *x, TableFile *file, Error *e) {
    const MethodEnv *env = x->env;
    char identity[SHA256_TEXT];
    Text made_of = {0};
    if (!env->cache || !env->facts.identify) return true;
    if (!env->facts.identify(env->facts.self, identity, e)) return false;
    text_printf(&made_of, "%s of %s", text_get(&x->made_how), identity);
    bool ok = !x->made_how.failed && !made_of.failed
                  ? table_file_init(file, env->cache, x->name, text_get(&made_of), e)
                  : error_system(e, "out of memory");
    text_release(&made_of);
    return ok;
}

// That it cannot be kept is told before it is made where that is an error.
static bool make_and_keep(const Wanted *x, const TableFile *file, int k, int w, TokenTable *out, Error *e) {
    const MethodEnv *env = x->env;
    Error why = {0};
    bool ok = !file->path || file_make_directory(env->cache, &why);
    if ((ok || env->unkept) && !x->make(x, k, w, out, e)) return false;
    ok = ok && table_file_save(file, out, &why);
    if (env->unkept && !(ok && file->path)) {
        env->unkept(env->unkept_state, &why);
        return true;
    }
    if (ok) return true;
    if (e) *e = why;
    token_table_release(out);
    return error_within(e, "a table of n-grams cannot be kept (give another --cache)");
}

static bool is_added(const Wanted *x, const Rehearsal *r) {
    for (int i = 0; i < r->table_count; i++)
        if (strcmp(r->tables[i].name, x->name) == 0 && r->tables[i].prefix == x->prefix &&
            r->tables[i].k >= x->k && r->tables[i].w >= x->w)
            return true;
    return false;
}

// An empty table in its place.
static bool rehearse(const Wanted *x, TokenTable *out, Error *e) {
    Rehearsal *r = x->env->rehearsal;
    if (!is_added(x, r)) {
        r->rows += x->rows;
        r->operations += x->operations;
        if (r->table_count < (int)(sizeof r->tables / sizeof *r->tables)) {
            PlannedTable added = {x->name, x->prefix, x->k, x->w};
            r->tables[r->table_count++] = added;
        }
    }
    return token_table_init(out, 1, x->k, x->w, e);
}

// A kept table that is too small is made anew, as large as both together.
static bool obtain(const Wanted *x, TokenTable *out, Error *e) {
    TableFile file = {0};
    *out = (TokenTable){0};
    if (!name_file(x, &file, e)) return false;
    bool ok = table_file_load(&file, x->tokens, x->env->target->shape.vocab, out);
    if (x->env->rehearsal && !(ok && serves(x, out))) {
        token_table_release(out);
        ok = rehearse(x, out, e);
    } else if (!ok || !serves(x, out)) {
        int k = larger(x->k, out->k), w = larger(x->w, out->w);
        token_table_release(out);
        ok = make_and_keep(x, &file, k, w, out, e);
    }
    table_file_release(&file);
    return ok;
}

static bool make_bigrams(const Wanted *x, int k, int w, TokenTable *out, Error *e) {
    const TargetFacts *facts = &x->env->facts;
    BigramSetup setup = {facts->prefix, x->prefix ? facts->prefix_count : 0, k, w};
    return bigram_make(x->env->target, &setup, x->env->progress, out, e);
}

// All that decides what the model says, but for the weights' bits below the last: kernels differ in those.
static void write_origin(const MethodEnv *env, bool prefix, int room, Text *out) {
    BackendReport r;
    env->target->backend->report(env->target->self, &r);
    if (env->rehearsal) r.name = env->rehearsal->backend, r.isa = env->rehearsal->kernels;
    text_printf(out, "bigrams on %s, kernels %s, compute %d, room %d, behind", r.name, r.isa,
                (int)env->target->compute, room);
    for (int i = 0; prefix && i < env->facts.prefix_count; i++) text_printf(out, " %d", env->facts.prefix[i]);
}

bool bigram_table(const MethodEnv *env, bool prefix, int k, int w, TokenTable *out, Error *e) {
    const Shape *shape = &env->target->shape;
    int most = smaller(TOKEN_TABLE_MAX_K, shape->real_vocab), room = env->target->context;
    Wanted x = {.env = env,
                .name = w > 1 ? "extended-bigram" : "bigram",
                .tokens = shape->vocab,
                .k = smaller(w > 1 ? k : larger(k, USUAL_K), most),
                .w = w,
                .prefix = prefix,
                .make = make_bigrams};
    x.rows = (double)shape->vocab * (w > 1 ? 1 + x.k * (w - 1) + 1 : 1);
    if (prefix && env->facts.prefix_count == 0)
        return error_input(e, "'bos' is on, but nothing stands before this model's texts");
    // A longer context changes nothing: continuations end before.
    write_origin(env, prefix, smaller(room, TOKEN_TABLE_MAX_W + env->facts.prefix_count), &x.made_how);
    bool ok = obtain(&x, out, e);
    text_release(&x.made_how);
    return ok;
}

static bool make_unigrams(const Wanted *x, int k, int w, TokenTable *out, Error *e) {
    const Shape *shape = &x->env->target->shape;
    if (!token_table_init(out, 1, k, w, e)) return false;
    if (unigram_order(&x->env->facts, shape->real_vocab, shape->width, x->order, k, x->env->progress,
                      out->ids, e))
        return true;
    token_table_release(out);
    return error_within(e, "model '%s'", x->env->target->name);
}

bool unigram_table(const MethodEnv *env, UnigramOrder order, int k, TokenTable *out, Error *e) {
    int most = smaller(TOKEN_TABLE_MAX_K, env->target->shape.real_vocab);
    Wanted x = {.env = env,
                .name = "unigram",
                .tokens = 1,
                .k = smaller(larger(k, USUAL_K), most),
                .w = 1,
                .order = order,
                .make = make_unigrams};
    x.operations = 2.0 * x.env->target->shape.real_vocab * env->target->shape.width *
                   (order == UNIGRAM_DISTANCE ? env->target->shape.width : 3);
    if (!env->facts.embedding)
        return error_input(e, "unigrams are made of the model's embeddings: this device has no weights");
    text_printf(&x.made_how, "unigrams, order %d", (int)order);
    bool ok = obtain(&x, out, e);
    text_release(&x.made_how);
    return ok;
}
