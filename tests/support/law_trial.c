// See law_trial.h. A law's parameters have the letters of its paper; each law takes a few rows of one table.
//
// An output's last step counts in full, and the oracle knows the answer beyond the output's end: so the steps
// of an output are those of the laws' process, which ends when it has enough tokens.
#include "tests/support/law_trial.h"

#include "engine/base/memory.h"
#include "engine/base/ranges.h"
#include "engine/decode/decode.h"
#include "engine/null/null.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VOCAB = 512, PROMPT = 8, BEYOND = 256, OUTPUTS = 4000, DRAWN_STEPS = 200000, BEST_GAMMA = 32 };

typedef struct Values {
    char levels[ARG_TEXT_SIZE], level_shares[ARG_TEXT_SIZE], alpha[ARG_TEXT_SIZE], shares[ARG_TEXT_SIZE];
    double eta, draft, verify, row, f;
    int gamma, b, bonus, filling;
} Values;

static const char *const BONUSES[] = {"keep", "drop", NULL};

#define AT(name) offsetof(Values, name)
static const Arg ROWS[] = {
    {"alpha", ARG_TEXT, AT(alpha), .fallback = "0.7",
     .help = "chance that a token is right; ctar: by position, a1:a2:...; drafting: by level"},
    {"gamma", ARG_INT, AT(gamma), 1, LAW_MOST_GAMMA, "4", .help = "tokens of a guess"},
    {"b", ARG_INT, AT(b), 0, LAW_MOST_GAMMA, "3", .help = "guesses of a step"},
    {"f", ARG_REAL, AT(f), 1, 1e6, "1", .help = "one step in f is good"},
    {"bonus", ARG_CHOICE, AT(bonus), .fallback = "keep", .choices = BONUSES,
     .help = "drop: a full match emits gamma tokens"},
    {"filling", ARG_INT, AT(filling), 0, 1 << 16, "0", .help = "first steps of an output, of one token each"},
    {"shares", ARG_TEXT, AT(shares), .fallback = "none",
     .help = "s0:s1:...: shares of steps with 0, 1, ... guesses, in place of b"},
    {"levels", ARG_TEXT, AT(levels), .fallback = "0.3:0.6:0.9", .help = "confidences of drafted tokens"},
    {"level_shares", ARG_TEXT, AT(level_shares), .fallback = "0.2:0.3:0.5", .help = "of all tokens"},
    {"eta", ARG_REAL, AT(eta), 0, 1, "0.3", .help = "drafting ends after a token of this confidence or less"},
    {"draft", ARG_REAL, AT(draft), 0, 1e6, "0.1", .help = "cost of a drafted token, in steps of one row"},
    {"verify", ARG_REAL, AT(verify), 1e-6, 1e6, "1", .help = "cost of a verification"},
    {"row", ARG_REAL, AT(row), 0, 1e6, "0", .help = "cost of a verified row"},
};
#undef AT
enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS };

// --- the loop ----------------------------------------------------------------------------------------------

typedef struct Loop {
    Session session;
    Method plain, oracle;
    const LawTrialSize *size;
    bool drops; // the bonus, after a full match
    int before; // tokens before the step
    LawTrialCounts *out;
} Loop;

// Every candidate below an accepted one has been looked at, so a full match has as many as the tree is deep.
static void count_step(void *state, const StepReport *r) {
    Loop *l = state;
    bool full = r->accepted > 0 && r->accepted == r->depth;
    int tokens = r->accepted + !(full && l->drops);
    l->before += r->emitted;
    assert(tokens == r->emitted || l->before == l->size->tokens);
    l->out->tokens += tokens;
    l->out->steps++;
    l->out->drafted += r->candidates;
    if (r->note.kind != STEP_STEADY) return;
    l->out->settled++;
    for (int i = 0; i <= LAW_TRIAL_DEPTH && i <= r->accepted; i++) l->out->reached[i]++;
}

static bool open_loop(Loop *l, const char *method, Error *e) {
    Model model = {.shape = {.layers = 1,
                             .width = 4,
                             .vocab = VOCAB,
                             .real_vocab = VOCAB,
                             .context = PROMPT + l->size->tokens + BEYOND}};
    BackendOptions o = {.slack = 16};
    void *self;
    if (!null_open(&model, &o, &self, e)) return false;
    session_init(&l->session, &null_backend, self, &model.shape, &o);
    MethodEnv env = {.target = &l->session, .sampling.top_p = 1};
    return method_open(&l->plain, "autoregressive", &env, e) && method_open(&l->oracle, method, &env, e);
}

static bool run_prompt(Loop *l, int number, Error *e) {
    Random random = {.seed = l->size->seed, .stream = STREAM_BENCH, .counter = (uint64_t)number * PROMPT};
    int prompt[PROMPT];
    for (int i = 0; i < PROMPT; i++) prompt[i] = (int)random_below(&random, VOCAB);
    DecodeOptions o = {.max_tokens = l->size->tokens + BEYOND, .merge = true, .clock = clock_monotonic()};
    DecodeResult answer = {0}, out = {0};
    bool ok = decode(&l->session, &l->plain, prompt, PROMPT, &o, &answer, e);
    o.max_tokens = l->size->tokens;
    o.seed = random_at(l->size->seed, STREAM_ORDER, (uint64_t)number);
    o.answer = answer.ids;
    o.answer_count = answer.tokens;
    o.step = count_step;
    o.state = l;
    l->before = 0;
    ok = ok && decode(&l->session, &l->oracle, prompt, PROMPT, &o, &out, e);
    assert(!ok || memcmp(out.ids, answer.ids, (size_t)out.tokens * sizeof *out.ids) == 0);
    decode_result_release(&answer);
    decode_result_release(&out);
    return ok;
}

bool law_trial_loop(const char *method, const LawTrialSize *size, LawTrialCounts *out, Error *e) {
    Loop l = {.size = size, .out = out, .drops = strstr(method, "bonus=drop") != NULL};
    *out = (LawTrialCounts){0};
    bool ok = open_loop(&l, method, e);
    for (int i = 0; ok && i < size->prompts; i++) ok = run_prompt(&l, i, e);
    method_close(&l.plain);
    method_close(&l.oracle);
    if (l.session.backend) session_release(&l.session);
    return ok;
}

// --- the laws ----------------------------------------------------------------------------------------------

typedef struct Question {
    Values v;
    RealList alpha, shares, levels, level_shares;
    const LawTrialSize *size;
    gsl_rng *random;
} Question;

// From a variance of a step's tokens: S is the mean over the steps that so many tokens take.
static double error_of(double variance, double S, const LawTrialSize *size) {
    return sqrt(variance * S / ((double)size->prompts * size->tokens));
}

static Law law_of(const Question *q, double output) {
    const Values *v = &q->v;
    unsigned terms = (v->bonus ? LAW_BONUS_DROPPED : 0u) | (v->filling ? LAW_FILLING : 0u) |
                     (q->shares.count ? LAW_CANDIDATES : 0u);
    return (Law){.alpha = q->alpha.items[0],
                 .f = v->f,
                 .gamma = v->gamma,
                 .b = v->b,
                 .terms = terms,
                 .filling = v->filling,
                 .output = output,
                 .share = q->shares.items,
                 .share_count = q->shares.count};
}

// Equations 4 to 7 are one process; each has a closed form of its own.
static bool draw_law(const Question *q, Law *law, LawTrial *t, Error *e) {
    double output;
    *law = law_of(q, q->size->tokens);
    if (q->alpha.count > 1) return error_input(e, "'alpha' has %d numbers, must be one", q->alpha.count);
    if (!law_is_valid(law)) return error_input(e, "the law has a parameter outside its domain");
    t->drawn = montecarlo_compression(law, OUTPUTS, q->size->tokens, &output, q->random);
    law->output = output;
    t->se = t->drawn.se * sqrt((double)OUTPUTS / q->size->prompts);
    for (int i = 0; i <= LAW_TRIAL_DEPTH; i++) t->tail[i] = law_tail(law, i);
    return true;
}

static bool ask_sequence(Question *q, LawTrial *t, Error *e) {
    Law law;
    q->v.b = 1;
    if (!draw_law(q, &law, t, e)) return false;
    t->S = 1;
    for (int i = 1; i <= law.gamma; i++) t->S += pow(law.alpha, i);
    return true;
}

static bool ask_sequences(Question *q, LawTrial *t, Error *e) {
    Law law;
    if (!draw_law(q, &law, t, e)) return false;
    t->S = 1;
    for (int i = 1; i <= law.gamma; i++) t->S += 1 - pow(1 - pow(law.alpha, i), law.b);
    return true;
}

static bool ask_compression(Question *q, LawTrial *t, Error *e) {
    Law law;
    if (!draw_law(q, &law, t, e)) return false;
    t->S = law_compression(&law);
    return true;
}

static bool ask_ctar(Question *q, LawTrial *t, Error *e) {
    double ctar[LAW_MOST_GAMMA], squares = 0, all = 1;
    int last = q->v.gamma - q->v.bonus;
    (void)e;
    q->v.b = 1;
    t->tail[0] = 1;
    for (int i = 0; i < q->v.gamma; i++) {
        ctar[i] = all *= q->alpha.items[i < q->alpha.count ? i : q->alpha.count - 1];
        if (i < LAW_TRIAL_DEPTH) t->tail[i + 1] = all;
        if (i < last) squares += (2 * i + 1) * all; // the mean square of a count, from its tail
    }
    t->S = compression_from_ctar(ctar, q->v.gamma, q->v.bonus);
    t->se = error_of(squares - (t->S - 1) * (t->S - 1), t->S, q->size);
    return true;
}

static bool ask_drafting(Question *q, LawTrial *t, Error *e) {
    const Values *v = &q->v;
    ConfidenceBin bins[REAL_LIST_MAX];
    int count = q->levels.count;
    if (count != q->level_shares.count || count != q->alpha.count)
        return error_input(e,
                           "there are %d 'levels', %d 'level_shares' and %d numbers in 'alpha': give as many "
                           "of each",
                           count, q->level_shares.count, q->alpha.count);
    for (int i = 0; i < count; i++)
        bins[i] = (ConfidenceBin){q->levels.items[i], q->level_shares.items[i], q->alpha.items[i]};
    Draft draft = {.bins = bins, .count = (size_t)count, .cost = {v->draft, v->verify, v->row}};
    if (!draft_check(&draft, e)) return false;
    DraftEstimate drawn = montecarlo_draft(&draft, v->gamma, v->eta, DRAWN_STEPS, q->random);
    q->v.b = 1;
    t->drafts = true;
    t->at = draft_at(&draft, v->gamma, v->eta);
    t->best = draft_best(&draft, BEST_GAMMA);
    t->drawn = drawn.tokens;
    t->S = t->at.tokens;
    t->se = error_of(drawn.tokens.se * drawn.tokens.se * DRAWN_STEPS, t->S, q->size);
    t->drafted_se = error_of(drawn.drafted.se * drawn.drafted.se * DRAWN_STEPS, t->S, q->size);
    t->tail[0] = 1;
    for (int i = 1; i <= LAW_TRIAL_DEPTH && i <= v->gamma; i++)
        t->tail[i] = draft_at(&draft, i, v->eta).tokens - draft_at(&draft, i - 1, v->eta).tokens;
    return true;
}

// --- by name -----------------------------------------------------------------------------------------------

typedef struct NamedLaw {
    const char *name, *equation;
    const char *alpha; // default
    const char *rows;  // names, with blanks between them
    bool (*ask)(Question *q, LawTrial *t, Error *e);
} NamedLaw;

static const NamedLaw LAWS[] = {
    {"sequence", "one guess a step: Lookahead, Eq. 4", "0.7", "alpha gamma", ask_sequence},
    {"sequences", "b guesses a step: Lookahead, Eq. 5", "0.7", "alpha gamma b", ask_sequences},
    {"compression", "one good step in f, and the terms of implementations: Lookahead, Eq. 6 and 7", "0.7",
     "alpha gamma b f bonus filling shares", ask_compression},
    {"ctar", "one guess, right by position: compression from CTAR(w), Kangaroo, section 3", "0.7",
     "alpha gamma bonus", ask_ctar},
    {"drafting", "drafting until a token of low confidence: Kangaroo, section 3", "0.3:0.6:0.9",
     "alpha gamma levels level_shares eta draft verify row", ask_drafting},
};
enum { LAW_COUNT = sizeof LAWS / sizeof *LAWS };

static bool has_word(const char *words, const char *word) {
    size_t n = strlen(word);
    for (const char *p = words; (p = strstr(p, word)); p += n)
        if ((p == words || p[-1] == ' ') && (p[n] == ' ' || !p[n])) return true;
    return false;
}

// The law's rows, (ROW_COUNT) at most, alpha first; returns how many.
static size_t rows_of(const NamedLaw *law, Arg *out) {
    size_t count = 0;
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (has_word(law->rows, ROWS[i].name)) out[count++] = ROWS[i];
    out[0].fallback = law->alpha;
    return count;
}

static const NamedLaw *find_law(const char *text, size_t length, Error *e) {
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
    for (size_t i = 0; i < LAW_COUNT; i++)
        if (strcmp(LAWS[i].name, name) == 0) return &LAWS[i];
    const char *nearest = suggest(name, LAWS, LAW_COUNT, sizeof *LAWS);
    error_input(e, "there is no law '%s'%s%s%s; 'outpace simulate --law list' lists them", name,
                nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    return NULL;
}

static bool read_list(const char *text, const char *what, RealList *out, Error *e) {
    return strcmp(text, "none") == 0 || real_list_parse(text, what, 0, 1, out, e);
}

static bool read_question(const NamedLaw *law, const char *text, Question *q, Error *e) {
    const Values *v = &q->v;
    bool drafts = law->ask == ask_drafting;
    Arg rows[ROW_COUNT];
    size_t count = rows_of(law, rows);
    args_defaults(ROWS, ROW_COUNT, &q->v);
    args_defaults(rows, count, &q->v);
    return args_parse(rows, count, &q->v, text, e) &&
           real_list_parse(v->alpha, "'alpha'", 0, 1, &q->alpha, e) &&
           read_list(v->shares, "'shares'", &q->shares, e) &&
           (!drafts || (read_list(v->levels, "'levels'", &q->levels, e) &&
                        read_list(v->level_shares, "'level_shares'", &q->level_shares, e)));
}

// The oracle's parameters, those that aren't its defaults.
static void write_method(const Question *q, Text *out) {
    const Values *v = &q->v;
    text_printf(out, "oracle:accept=%s,draft=%d", v->alpha, v->gamma);
    if (q->shares.count) text_printf(out, ",guess_shares=%s", v->shares);
    else if (v->b != 1) text_printf(out, ",guesses=%d", v->b);
    if (v->f > 1) text_printf(out, ",f=%.15g", v->f);
    if (v->filling) text_printf(out, ",filling=%d", v->filling);
    if (v->bonus) text_puts(out, ",bonus=drop");
    if (q->levels.count)
        text_printf(out, ",levels=%s,level_shares=%s,eta=%.15g", v->levels, v->level_shares, v->eta);
}

static bool ask(const NamedLaw *law, Question *q, const char *text, LawTrial *out, Error *e) {
    Arg rows[ROW_COUNT];
    size_t count = rows_of(law, rows);
    if (!read_question(law, text, q, e) || !law->ask(q, out, e)) return false;
    text_printf(&out->law, "%s:", law->name);
    args_write(rows, count, &q->v, &out->law);
    write_method(q, &out->method);
    out->equation = law->equation;
    return law_trial_loop(text_get(&out->method), q->size, &out->seen, e);
}

bool law_trial_run(const char *text, const LawTrialSize *size, LawTrial *out, Error *e) {
    size_t n = strcspn(text, ":");
    *out = (LawTrial){.drawn.se = -1};
    assert(size->prompts >= 2 && size->tokens >= 1);
    const NamedLaw *law = find_law(text, n, e);
    if (!law) return false;
    Question q = {.size = size, .random = gsl_rng_alloc(gsl_rng_mt19937)};
    gsl_rng_set(q.random, (unsigned long)size->seed);
    bool ok = ask(law, &q, text[n] ? text + n + 1 : "", out, e) || error_within(e, "law '%s'", law->name);
    gsl_rng_free(q.random);
    return ok;
}

void law_trial_release(LawTrial *t) {
    text_release(&t->law);
    text_release(&t->method);
}

void law_trial_describe(Text *out) {
    for (size_t i = 0; i < LAW_COUNT; i++) {
        Arg rows[ROW_COUNT];
        size_t count = rows_of(&LAWS[i], rows);
        text_printf(out, "%s\n    %s\n", LAWS[i].name, LAWS[i].equation);
        args_describe(rows, count, out);
    }
}
