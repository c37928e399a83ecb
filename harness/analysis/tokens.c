// Texts of a run token by token: which source guessed each, and where steps begin.
#include "harness/analysis/stored.h"

#include "engine/base/memory.h"
#include "plots/plots.h"
#include "results/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Column COLUMNS[] = {
    {"point label model dataset prompt turn", .help = "of the text: its point and prompt"},
    {"why", .help = "without `--prompt`: median, best or worst, by the point's S; null: another method's"},
    {"step text", .help = "from 1; what the step wrote"},
    {"emitted accepted", .help = "its tokens; the first of them, which were guessed"},
    {"source rank", .help = "who guessed these, and the place of that row among its own; null: nobody"},
    {"rows candidates levels",
     .help = "of the step: tokens run, those of them that are guesses, their levels"},
    {"propose_s forward_s verify_s observe_s", .help = "parts of its time"},
    {"margin rejected",
     .help =
         "of `run --record-guesses`: the target's last token over its second choice, in logits; guesses that "
         "were rejected, each with its place in the step, from 1"},
};
const TableForm stored_tokens_form = {
    "show --tokens", TABLE_COLUMNS(COLUMNS),
    .about = "With `--json` and `--csv`, a row for each step: `outpace show RUN --tokens --json`."};

// --- one text --------------------------------------------------------------------------------------------

enum { MOST_SOURCES = 8 };

// Sources have letters and colours in the order in which they come.
typedef struct Sources {
    char *names[MOST_SOURCES];
    int tokens[MOST_SOURCES]; // of the text
    int count, own;           // own: tokens of the target's
    bool colour;
} Sources;

// Far apart in hue and in lightness, for dark and light screens.
static const int COLOURS[MOST_SOURCES] = {33, 208, 35, 170, 44, 203, 141, 142};
#define PLAIN "\033[0m"

// The number of a source; further ones share the last.
static int source_of(Sources *s, const char *name) {
    int i = 0;
    while (i < s->count && strcmp(s->names[i], name) != 0) i++;
    if (i == MOST_SOURCES) return i - 1;
    if (i == s->count) s->names[s->count++] = mem_text(name, strlen(name));
    return i;
}

typedef struct TokenText {
    json_t *pieces; // an array
    size_t at;      // the next token
} TokenText;

// The next tokens, as the terminal may show them; fewer where the store has fewer.
static void take(TokenText *t, int count, Text *out) {
    LOCAL_TEXT raw = {0};
    for (; count > 0 && t->at < json_array_size(t->pieces); count--) {
        const char *piece = json_string_value(json_array_get(t->pieces, t->at++));
        text_puts(&raw, piece ? piece : "");
    }
    terminal_letters(text_get(&raw), out);
}

// In colour a guess has its source's, and every other step a line under it; without, a step begins with | and
// its guesses are in braces behind their source's letter.
static void put_step(Sources *s, TokenText *t, const Rows *r, Text *out) {
    int accepted = (int)rows_int(r, query_column(r, "accepted")),
        emitted = (int)rows_int(r, query_column(r, "emitted"));
    if (accepted > emitted) accepted = emitted;
    const char *name = rows_text(r, query_column(r, "source"));
    int source = accepted ? source_of(s, *name ? name : "guess") : 0;
    const char *line = rows_int(r, query_column(r, "step")) % 2 ? "" : "\033[4m";
    if (!s->colour && t->at) text_puts(out, "|");
    if (accepted && s->colour) text_printf(out, "%s\033[38;5;%dm", line, COLOURS[source]);
    if (accepted && !s->colour) text_printf(out, "%c{", 'a' + source);
    take(t, accepted, out);
    if (accepted) text_puts(out, s->colour ? PLAIN : "}");
    if (s->colour) text_puts(out, line);
    take(t, emitted - accepted, out);
    if (s->colour && *line) text_puts(out, PLAIN);
    if (accepted) s->tokens[source] += accepted;
    s->own += emitted - accepted;
}

static void put_legend(const Sources *s, Text *out) {
    for (int i = 0; i < s->count; i++) {
        if (!s->tokens[i]) continue;
        if (s->colour) text_printf(out, "\033[38;5;%dm%s" PLAIN, COLOURS[i], s->names[i]);
        else text_printf(out, "%c{}: %s", 'a' + i, s->names[i]);
        text_printf(out, " %d, ", s->tokens[i]);
    }
    text_printf(out, "the target itself %d\n\n", s->own);
}

static void put_head(const Rows *r, Text *out) {
    const char *why = rows_text(r, query_column(r, "why"));
    int64_t turn = rows_int(r, query_column(r, "turn"));
    text_printf(out, "%s, ", SHOWN(rows_text(r, query_column(r, "label"))));
    text_printf(out, "%s, ", SHOWN(rows_text(r, query_column(r, "model"))));
    text_printf(out, "%s, ", SHOWN(rows_text(r, query_column(r, "dataset"))));
    text_printf(out, "prompt %s", SHOWN(rows_text(r, query_column(r, "prompt"))));
    if (turn) text_printf(out, ", turn %d", (int)turn + 1);
    text_printf(out, "%s%s%s: %d tokens, %d steps, %.2f a step\n", *why ? " (" : "", why, *why ? ")" : "",
                (int)rows_int(r, query_column(r, "tokens")), (int)rows_int(r, query_column(r, "steps")),
                rows_real(r, query_column(r, "S")));
}

// --- for programs ----------------------------------------------------------------------------------------

static Cell cell_of(const Rows *r, const char *name) { return query_cell(r, query_column(r, name)); }

static Cell seconds(const Rows *r, const char *name) {
    return CELL(rows_real(r, query_column(r, name)) / 1e3);
}

static void put_record(RecordTable *table, const Rows *text, const Rows *r, TokenText *t) {
    LOCAL_TEXT wrote = {0};
    take(t, (int)rows_int(r, query_column(r, "emitted")), &wrote);
    TABLE_ROW(table, cell_of(text, "point"), cell_of(text, "label"), cell_of(text, "model"),
              cell_of(text, "dataset"), cell_of(text, "prompt"), cell_of(text, "turn"), cell_of(text, "why"),
              cell_of(r, "step"), CELL(text_get(&wrote)), cell_of(r, "emitted"), cell_of(r, "accepted"),
              cell_of(r, "source"), cell_of(r, "rank"), cell_of(r, "rows"), cell_of(r, "candidates"),
              cell_of(r, "levels"), seconds(r, "propose"), seconds(r, "forward"), seconds(r, "verify"),
              seconds(r, "observe"), cell_of(r, "margin"), cell_of(r, "rejected"));
}

// --- all of them -----------------------------------------------------------------------------------------

static bool show_text(Store *store, const Rows *text, Sources *s, RecordTable *table, Error *e) {
    TokenText t = {.pieces = json_loads(rows_text(text, query_column(text, "pieces")), 0, NULL)};
    LOCAL_TEXT out = {0};
    bool records = records_asked(table->as);
    if (!records) put_head(text, &out);
    memset(s->tokens, 0, sizeof s->tokens), s->own = 0;
    Rows *r = rows_named(store, tokens_sql, "steps", rows_int(text, query_column(text, "sample_id")), e);
    while (rows_next(r))
        if (records) put_record(table, text, r, &t);
        else put_step(s, &t, r, &out);
    if (!records) {
        text_puts(&out, "\n");
        put_legend(s, &out);
        fputs(text_get(&out), stdout);
    }
    json_decref(t.pieces);
    return rows_end(r, true, e);
}

bool stored_tokens(Store *store, int64_t run, const char *prompt, const Records *as, Error *e) {
    RecordTable table = {.form = &stored_tokens_form, .as = as};
    const char *off = getenv("NO_COLOR");
    Sources s = {.colour = terminal_width() && (!off || !*off)};
    bool ok = true, any = false;
    Rows *r = rows_named(store, tokens_sql, "texts", run, e);
    rows_bind_text(r, 2, prompt);
    for (; ok && rows_next(r); any = true) ok = show_text(store, r, &s, &table, e);
    ok = rows_end(r, ok, e);
    for (int i = 0; i < s.count; i++) mem_free(s.names[i]);
    if (ok && !any)
        ok = error_input(e,
                         prompt ? "run %lld has no text token by token of a prompt '%s': 'outpace sql' lists "
                                  "them (SELECT number, name FROM prompt)"
                                : "run %lld has no text token by token: it is of an engine or of a program "
                                  "that didn't keep the tokens' texts%s",
                         (long long)run, prompt ? SHOWN(prompt) : "");
    if (records_asked(as)) return table_end(&table, ok, e);
    return ok;
}
