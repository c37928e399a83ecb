// Completions of the shells, and the manual page, from the commands' tables: a command, its options, their
// values.
//
// A shell's script (shells/) knows nothing of the commands: at each key it asks 'outpace completions words'
// for the words that may end the line. A part that a word chooses ("store export") has an
// entry of its own. The options of a part that an option chooses ("bench --store") belong to the command's.
#include "harness/cli/command.h"

#include "engine/base/shipped.h"
#include "harness/cli/version.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// --- the entries

typedef struct Offer {
    ArgOption option;
    Text value; // as --help shows it; empty: a flag
} Offer;

enum { MOST_OFFERS = 2 * ARGS_MAX };

enum { MOST_FLAGS = 4 };

typedef struct Entry {
    const Command *command;
    Arg flags[MOST_FLAGS]; // the options that choose a part
    int flag_count;
    Offer offers[MOST_OFFERS];
    size_t count;
} Entry;

static bool is_option_part(const Command *part) { return *command_part(part) == '-'; }

static void add_option(Entry *x, const ArgOption *option) {
    for (size_t i = 0; i < x->count; i++)
        if (strcmp(x->offers[i].option.name, option->name) == 0) return;
    assert(x->count < MOST_OFFERS);
    Offer *o = &x->offers[x->count++];
    *o = (Offer){.option = *option};
    args_value(option->row, &o->value);
}

static void add_options(Entry *x, const Command *c) {
    ArgSet sets[COMMAND_SETS];
    ArgOption options[ARGS_MAX];
    command_sets(c, sets);
    size_t count = args_options(sets, COMMAND_SETS, options);
    for (size_t i = 0; i < count; i++) add_option(x, &options[i]);
}

static void entry_open(Entry *x, const Command *c) {
    *x = (Entry){.command = c};
    add_options(x, c);
    for (const Command *const *part = c->parts; part && *part; part++) {
        if (!is_option_part(*part)) continue;
        assert(x->flag_count < MOST_FLAGS);
        Arg *flag = &x->flags[x->flag_count++];
        *flag = (Arg){.name = command_part(*part) + 2, .type = ARG_FLAG, .help = (*part)->summary};
        ArgOption options[ARGS_MAX];
        args_options(&(ArgSet){.rows = flag, .count = 1}, 1, options);
        add_option(x, options);
        add_options(x, *part);
    }
}

static void entry_close(Entry *x) {
    for (size_t i = 0; i < x->count; i++) text_release(&x->offers[i].value);
}

// --- words: a line each, with a tab and its meaning if that isn't plain; FILES: a path is accepted, too

static const char FILES[] = ":files\n";

// "svg|png|pdf" is a list of words, "target=DIR[,draft=DIR]" isn't one.
static bool is_list(const char *value) {
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.|";
    return strchr(value, '|') && strspn(value, LETTERS) == strlen(value);
}

static void put_names(const WordKind *kind, const char *token, Text *out) {
    words_list(kind, token, out);
    if (kind->files) text_puts(out, FILES);
}

static void put_values(const Offer *o, const char *token, Text *out) {
    const char *value = text_get(&o->value);
    bool method = strcmp(o->option.row->name, "method") == 0 || o->option.row->type == ARG_METHODS;
    const WordKind *kind = words_kind(method ? "METHOD" : value);
    if (kind) put_names(kind, token, out);
    else if (!is_list(value)) text_puts(out, FILES);
    else
        for (size_t n; *value; value += n + (value[n] != 0))
            text_printf(out, "%.*s\n", (int)(n = strcspn(value, "|")), value);
}

// The first argument: a part, or the first word of the usage.
static void put_first(const Command *c, const char *token, Text *out) {
    const WordKind *kind = words_kind(c->usage);
    for (const Command *const *part = c->parts; part && *part; part++)
        if (!is_option_part(*part)) text_printf(out, "%s\t%s\n", command_part(*part), (*part)->summary);
    if (kind) put_names(kind, token, out);
    else if (!c->parts) text_puts(out, FILES);
}

// The option that the word is, if it takes a value: "--name" or "-n".
static const Offer *valued(const Entry *x, const char *word) {
    for (const Offer *o = x->offers; o < x->offers + x->count; o++) {
        bool is = strncmp(word, "--", 2) == 0
                      ? strcmp(word + 2, o->option.name) == 0
                      : word[0] == '-' && word[1] && word[1] == o->option.row->letter && !word[2];
        if (is && o->option.row->type != ARG_FLAG) return o;
    }
    return NULL;
}

// Lists the ways to complete the last of the words that follow the program's name.
static void put_words(const char *const *words, int count, Text *out) {
    const Command *c = NULL;
    const char *token = words[count - 1];
    const Offer *asked = NULL; // whose value the token is
    bool first = true;         // no argument is before it
    int at = 1;
    for (size_t i = 0; commands[i] && !c; i++) {
        if (count == 1) text_printf(out, "%s\t%s\n", commands[i]->name, commands[i]->summary);
        else if (strcmp(commands[i]->name, words[0]) == 0) c = commands[i];
    }
    if (count == 1) text_puts(out, "--help\tlist the commands\n--version\n");
    if (!c) return;
    for (const Command *const *part = c->parts; at == 1 && count > 2 && part && *part; part++)
        if (!is_option_part(*part) && strcmp(command_part(*part), words[1]) == 0) c = *part, at = 2;
    LOCAL(entry_close) Entry x;
    entry_open(&x, c);
    for (; at < count - 1; at++) {
        first = first && (asked || words[at][0] == '-');
        asked = asked ? NULL : valued(&x, words[at]);
    }
    if (asked) put_values(asked, token, out);
    else if (*token == '-') {
        for (size_t i = 0; i < x.count; i++)
            text_printf(out, "--%s\t%s\n", x.offers[i].option.name, x.offers[i].option.row->help);
        text_puts(out, "--help\tteach it\n");
    } else if (first) put_first(c, token, out);
    else text_puts(out, FILES);
}

// --- the manual page

static void man_text(Text *out, const char *text, size_t n) {
    if (n && strchr(".'", *text)) text_puts(out, "\\&");
    for (; n; n--, text++)
        if (*text == '\\') text_puts(out, "\\e");
        else text_printf(out, "%s%c", *text == '-' ? "\\" : "", *text);
}

// Paragraphs are filled; lines that begin with a blank are as written.
static void man_lesson(Text *out, const char *lesson) {
    bool as_written = false;
    for (size_t n; *lesson; lesson += n + (lesson[n] != 0)) {
        n = strcspn(lesson, "\n");
        if (n && (*lesson == ' ') != as_written) text_puts(out, as_written ? ".EE\n" : ".EX\n");
        if (n) as_written = *lesson == ' ';
        if (!n && !as_written) text_puts(out, ".PP");
        man_text(out, lesson, n);
        text_puts(out, "\n");
    }
    if (as_written) text_puts(out, ".EE\n");
}

static void man_option(const Offer *o, Text *out) {
    const Arg *row = o->option.row;
    text_puts(out, ".TP\n.B ");
    if (row->letter) text_printf(out, "\\-%c, ", row->letter);
    text_puts(out, "\\-\\-");
    man_text(out, o->option.name, strlen(o->option.name));
    if (o->value.length) text_puts(out, " ");
    man_text(out, text_get(&o->value), o->value.length);
    text_puts(out, "\n");
    man_text(out, row->help, strlen(row->help));
    if (row->fallback) {
        text_puts(out, " (");
        man_text(out, row->fallback, strlen(row->fallback));
        text_puts(out, ")");
    }
    text_puts(out, "\n");
}

static void man_entry(const Command *c, Text *out) {
    LOCAL(entry_close) Entry x;
    LOCAL_TEXT lesson = {0};
    entry_open(&x, c);
    command_lesson(c->name, &lesson);
    text_puts(out, ".SS outpace ");
    man_text(out, c->name, strlen(c->name));
    text_puts(out, " ");
    man_text(out, c->usage, strlen(c->usage));
    text_puts(out, "\n");
    man_text(out, c->summary, strlen(c->summary));
    text_puts(out, ".\n.PP\n");
    man_lesson(out, text_get(&lesson));
    for (size_t i = 0; i < x.count; i++) man_option(&x.offers[i], out);
}

static void man(Text *out) {
    text_printf(out, ".TH OUTPACE 1 \"\" \"outpace %s\"\n", version_text());
    text_puts(out, ".SH NAME\noutpace \\- a laboratory for lossless LLM decoding\n"
                   ".SH SYNOPSIS\n.B outpace\n.I COMMAND\n.RI [ ARGUMENTS ]\n.SH DESCRIPTION\n"
                   "Runs real language models with the published methods that get several tokens out of one\n"
                   "forward pass, measures what each gains and costs, and proves that output is unchanged.\n"
                   ".B outpace COMMAND \\-\\-help\nshows the same text as this page.\n.SH COMMANDS\n");
    for (size_t i = 0; commands[i]; i++) {
        man_entry(commands[i], out);
        for (const Command *const *part = commands[i]->parts; part && *part; part++)
            if (!is_option_part(*part)) man_entry(*part, out);
    }
}

// --- the command

EMBED(bash, "harness/commands/shells/outpace.bash")
EMBED(zsh, "harness/commands/shells/outpace.zsh")
EMBED(fish, "harness/commands/shells/outpace.fish")

static bool run(UNUSED void *options, CommandLine *line, Error *e) {
    static const char *const SHELLS[][2] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    const Words *asked = &line->words;
    const char *what = asked->items[0];
    LOCAL_TEXT text = {0};
    for (size_t i = 0; i < sizeof SHELLS / sizeof *SHELLS; i++)
        if (asked->count == 1 && strcmp(SHELLS[i][0], what) == 0) text_puts(&text, SHELLS[i][1]);
    if (asked->count == 1 && strcmp(what, "man") == 0) man(&text);
    bool words = asked->count > 1 && strcmp(what, "words") == 0;
    if (words) put_words(asked->items + 1, asked->count - 1, &text);
    bool ok =
        words || text.length ||
        error_input(
            e, "there are no completions for '%s': take bash, zsh or fish, or man for the manual page", what);
    fputs(text_get(&text), stdout);
    return ok;
}

const Command command_completions = {.name = "completions",
                                     .usage = "bash|zsh|fish|man | words -- WORD...",
                                     .summary = "print completions for a shell, or the manual page",
                                     .arguments = {1, WORDS_MAX},
                                     .run = run};
