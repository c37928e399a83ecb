// Completions of the shells, and the manual page, from the commands' tables: a command, its options, their
// values.
//
// Values that are a kind of name (MODEL, RUN: completions_words.c) are asked for when they are wanted: the
// scripts call 'outpace completions words'. A part that a word chooses ("store export") has an entry of its
// own. The options of a part that an option chooses ("bench --store") belong to the command's entry.
#include "harness/cli/command.h"

#include "engine/base/shipped.h"
#include "engine/decode/method.h"
#include "harness/cli/version.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// --- the entries

typedef struct Offer {
    ArgOption option;
    Text value;           // as --help shows it; empty: a flag
    Text words;           // its possible values, separated by blanks; empty: any word
    const WordKind *kind; // of names; NULL: none
} Offer;

enum { MOST_OFFERS = 2 * ARGS_MAX };

enum { MOST_FLAGS = 4 };

typedef struct Entry {
    const Command *command;
    Arg flags[MOST_FLAGS]; // the options that choose a part
    int flag_count;
    Offer offers[MOST_OFFERS];
    size_t count;
    Text parts; // second words, separated by blanks
} Entry;

static bool is_option_part(const Command *part) { return *command_part(part) == '-'; }

// "svg|png|pdf" is a list of words, "target=DIR[,draft=DIR]" isn't one.
static void list_words(const char *value, Text *out) {
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.|";
    if (!strchr(value, '|') || strspn(value, LETTERS) != strlen(value)) return;
    for (; *value; value++) text_add(out, *value == '|' ? " " : value, 1);
}

static void add_option(Entry *x, const ArgOption *option) {
    for (size_t i = 0; i < x->count; i++)
        if (strcmp(x->offers[i].option.name, option->name) == 0) return;
    assert(x->count < MOST_OFFERS);
    Offer *o = &x->offers[x->count++];
    *o = (Offer){.option = *option};
    args_value(option->row, &o->value);
    list_words(text_get(&o->value), &o->words);
    bool method = strcmp(option->row->name, "method") == 0 || option->row->type == ARG_METHODS;
    o->kind = words_kind(method ? "METHOD" : text_get(&o->value));
}

static void add_options(Entry *x, const Command *c) {
    ArgSet sets[COMMAND_SETS];
    ArgOption options[ARGS_MAX];
    command_sets(c, sets);
    size_t count = args_options(sets, COMMAND_SETS, options);
    for (size_t i = 0; i < count; i++) add_option(x, &options[i]);
}

static void add_option_part(Entry *x, const Command *part) {
    assert(x->flag_count < MOST_FLAGS);
    Arg *flag = &x->flags[x->flag_count++];
    *flag = (Arg){.name = command_part(part) + 2, .type = ARG_FLAG, .help = part->summary};
    ArgOption options[ARGS_MAX];
    args_options(&(ArgSet){.rows = flag, .count = 1}, 1, options);
    add_option(x, options);
    add_options(x, part);
}

typedef void Write(const Entry *x, Text *out);

static void write_command(const Command *c, Write *write, Text *out) {
    Entry x = {.command = c};
    add_options(&x, c);
    for (const Command *const *part = c->parts; part && *part; part++) {
        if (is_option_part(*part)) add_option_part(&x, *part);
        else text_printf(&x.parts, "%s%s", x.parts.length ? " " : "", command_part(*part));
    }
    write(&x, out);
    for (size_t i = 0; i < x.count; i++) {
        text_release(&x.offers[i].value);
        text_release(&x.offers[i].words);
    }
    text_release(&x.parts);
}

static void write_all(Write *write, Text *out) {
    for (size_t i = 0; commands[i]; i++) {
        write_command(commands[i], write, out);
        for (const Command *const *part = commands[i]->parts; part && *part; part++)
            if (!is_option_part(*part)) write_command(*part, write, out);
    }
}

static const char *part_of(const Entry *x) { return strchr(x->command->name, ' '); }

// --- bash

static void bash_part(const Entry *x, Text *out) {
    if (part_of(x)) text_printf(out, "    \"%s\") command=\"%s\" ;;\n", x->command->name, x->command->name);
}

static void bash_kind(const WordKind *kind, Text *out) {
    if (kind) text_printf(out, " kind='%s'", kind->name);
}

// After an option with a list of values; after one with any value, bash completes files.
static void bash_values(const Entry *x, Text *out) {
    for (size_t i = 0; i < x->count; i++) {
        const Offer *o = &x->offers[i];
        if (!o->value.length && !o->kind) continue;
        text_printf(out, "    \"%s --%s\"", x->command->name, o->option.name);
        if (o->option.row->letter) text_printf(out, "|\"%s -%c\"", x->command->name, o->option.row->letter);
        text_puts(out, ")");
        bash_kind(o->kind, out);
        text_printf(out, " words=\"%s\" value=yes ;;\n", text_get(&o->words));
    }
}

static void bash_words(const Entry *x, Text *out) {
    text_printf(out, "    \"%s\")", x->command->name);
    bash_kind(words_kind(x->command->usage), out);
    text_printf(out, " words=\"%s", text_get(&x->parts));
    for (size_t i = 0; i < x->count; i++) text_printf(out, " --%s", x->offers[i].option.name);
    text_puts(out, " --help\" ;;\n");
}

static void bash(Text *out) {
    text_puts(
        out,
        "# outpace completions bash\n"
        "_outpace() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= value= kind=\n"
        "    local command=${COMP_WORDS[1]} line=${COMP_LINE:0:COMP_POINT} first=2 IFS=$' \\t\\n'\n"
        "    local token=${line##* } piece=$word\n"
        "    if [[ $token == *:* ]]; then\n" // bash cuts words at : and =
        "        [[ $piece == [:=] ]] && piece=\n"
        "        before=${line%\"$token\"} before=${before%% } before=${before##* }\n"
        "    else token=$word\n"
        "    fi\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" = 1 ]; then\n        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; commands[i]; i++) text_printf(out, "%s%s", i ? " " : "", commands[i]->name);
    text_puts(out, " --help --version\" -- \"$word\"))\n        return\n    fi\n"
                   "    [ \"$COMP_CWORD\" = 2 ] || case \"$command ${COMP_WORDS[2]}\" in\n");
    write_all(bash_part, out);
    text_puts(out, "    esac\n    case \"$command $before\" in\n");
    write_all(bash_values, out);
    text_puts(out, "    esac\n    [ -n \"$value\" ] || case \"$command\" in\n");
    write_all(bash_words, out);
    text_puts(
        out,
        "    esac\n"
        "    [[ $command == *\\ * ]] && first=3\n"
        "    if [[ -z $value && $word != -* ]]; then\n"
        "        [[ $COMP_CWORD == \"$first\" ]] || return\n"
        "        words=${words%% --*}\n"
        "    elif [[ -z $value ]]; then kind=\n"
        "    fi\n"
        "    [[ -z $kind ]] ||\n"
        "        words+=\" $(\"${COMP_WORDS[0]}\" completions words \"$kind\" \"$token\" 2>/dev/null)\"\n"
        "    [[ $token != *:* ]] || compopt -o nospace 2>/dev/null\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$token\"))\n"
        "    COMPREPLY=(\"${COMPREPLY[@]#\"${token%\"$piece\"}\"}\")\n"
        "}\n"
        "complete -o default -F _outpace outpace\n");
}

// --- zsh: in single quotes, where only ' needs an escape; brackets and colons are _arguments' own.

static void zsh_text(Text *out, const char *text) {
    for (; *text; text++)
        if (*text == '\'') text_puts(out, "'\\''");
        else text_printf(out, "%s%c", strchr("[]:\\", *text) ? "\\" : "", *text);
}

// The action of _arguments that offers names of a kind, and other words.
static void zsh_kind(const WordKind *kind, const char *words, Text *out) {
    text_printf(out, ": _outpace_words \"%s\" \"%s\" %s", kind->name, kind->files ? "_files" : "", words);
}

static void zsh_option(const Offer *o, Text *out) {
    char letter = o->option.row->letter;
    if (letter)
        text_printf(out, "      '(-%c --%s)'{-%c,--%s}'[", letter, o->option.name, letter, o->option.name);
    else text_printf(out, "      '%s--%s[", o->option.row->type == ARG_WORDS ? "*" : "", o->option.name);
    zsh_text(out, o->option.row->help);
    text_puts(out, "]");
    if (o->value.length || o->kind) {
        text_puts(out, ":");
        zsh_text(out, text_get(&o->value));
        if (o->kind) zsh_kind(o->kind, "", out);
        else if (o->words.length) text_printf(out, ":(%s)", text_get(&o->words));
        else text_puts(out, ":_files");
    }
    text_puts(out, "' \\\n");
}

static void zsh_entry(const Entry *x, Text *out) {
    text_printf(out, "  (\"%s\") _arguments \\\n", x->command->name);
    for (size_t i = 0; i < x->count; i++) zsh_option(&x->offers[i], out);
    const WordKind *kind = words_kind(x->command->usage);
    if (kind) {
        text_puts(out, "      '1:name");
        zsh_kind(kind, text_get(&x->parts), out);
        text_puts(out, "' \\\n");
    } else if (x->parts.length) text_printf(out, "      '1:part:(%s)' \\\n", text_get(&x->parts));
    text_puts(out, "      '--help[teach it]' '*:file:_files' ;;\n");
}

static void zsh_part(const Entry *x, Text *out) {
    if (part_of(x))
        text_printf(out, "  (\"%s\") command=\"%s\"; shift words; (( CURRENT-- )) ;;\n", x->command->name,
                    x->command->name);
}

static void zsh(Text *out) {
    text_puts(out,
              "#compdef outpace\n# outpace completions zsh\n"
              "_outpace_words() {\n" // KIND, _files or nothing, other words
              "  local -a found=(${(f)\"$($program completions words $1 $PREFIX 2>/dev/null)\"} ${@[3,-1]})\n"
              "  if [[ $1 == METHOD ]]; then compadd -S '' -a found; else compadd -a found; fi\n"
              "  [[ -z $2 ]] || $2\n}\n"
              "_outpace() {\n  local program=$words[1]\n  local -a names=(\n");
    for (size_t i = 0; commands[i]; i++) {
        text_printf(out, "    '%s:", commands[i]->name);
        zsh_text(out, commands[i]->summary);
        text_puts(out, "'\n");
    }
    text_puts(out, "  )\n  if (( CURRENT == 2 )); then _describe -t commands command names; return; fi\n"
                   "  local command=$words[2]\n"
                   "  (( CURRENT == 3 )) || case \"$command $words[3]\" in\n");
    write_all(zsh_part, out);
    text_puts(out, "  esac\n  shift words; (( CURRENT-- ))\n  case $command in\n");
    write_all(zsh_entry, out);
    text_puts(out, "  esac\n}\n_outpace \"$@\"\n");
}

// --- fish

static void fish_condition(const Entry *x, Text *out) {
    text_puts(out, "complete -c outpace -n '");
    for (const char *word = x->command->name; *word; word += strspn(word, " ")) {
        size_t n = strcspn(word, " ");
        text_printf(out, "%s__fish_seen_subcommand_from %.*s", word == x->command->name ? "" : "; and ",
                    (int)n, word);
        word += n;
    }
    if (x->parts.length) text_printf(out, "; and not __fish_seen_subcommand_from %s", text_get(&x->parts));
    text_puts(out, "'");
}

static void fish_help(Text *out, const char *help) {
    text_puts(out, " -d '");
    for (; *help; help++) text_printf(out, "%s%c", strchr("'\\", *help) ? "\\" : "", *help);
    text_puts(out, "'\n");
}

static void fish_kind(const WordKind *kind, const char *how, Text *out) {
    text_printf(out, "%s -a '(outpace completions words \"%s\" (commandline -ct))'", how, kind->name);
}

static void fish_entry(const Entry *x, Text *out) {
    const WordKind *kind = words_kind(x->command->usage); // of the first argument
    if (kind) {
        fish_condition(x, out);
        fish_kind(kind, kind->files ? "" : " -f", out);
        text_puts(out, "\n");
    }
    for (size_t i = 0; i < x->count; i++) {
        const Offer *o = &x->offers[i];
        fish_condition(x, out);
        text_printf(out, " -l %s", o->option.name);
        if (o->option.row->letter) text_printf(out, " -s %c", o->option.row->letter);
        if (o->kind) fish_kind(o->kind, o->kind->files ? " -r" : " -x", out);
        else if (o->words.length) text_printf(out, " -x -a '%s'", text_get(&o->words));
        else if (o->value.length) text_puts(out, " -r");
        fish_help(out, o->option.row->help);
    }
    for (const Command *const *part = x->command->parts; part && *part; part++) {
        if (is_option_part(*part)) continue;
        fish_condition(x, out);
        text_printf(out, " -a %s", command_part(*part));
        fish_help(out, (*part)->summary);
    }
}

static void fish(Text *out) {
    text_puts(out, "# outpace completions fish\n");
    for (size_t i = 0; commands[i]; i++) {
        text_printf(out, "complete -c outpace -n __fish_use_subcommand -x -a %s", commands[i]->name);
        fish_help(out, commands[i]->summary);
    }
    write_all(fish_entry, out);
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

static void man_entry(const Entry *x, Text *out) {
    const Command *c = x->command;
    text_puts(out, ".SS outpace ");
    man_text(out, c->name, strlen(c->name));
    text_puts(out, " ");
    man_text(out, c->usage, strlen(c->usage));
    text_puts(out, "\n");
    man_text(out, c->summary, strlen(c->summary));
    text_puts(out, ".\n.PP\n");
    if (c->lesson) man_lesson(out, c->lesson);
    for (size_t i = 0; i < x->count; i++) man_option(&x->offers[i], out);
}

static void man(Text *out) {
    text_printf(out, ".TH OUTPACE 1 \"\" \"outpace %s\"\n", version_text());
    text_puts(out, ".SH NAME\noutpace \\- a laboratory for lossless LLM decoding\n"
                   ".SH SYNOPSIS\n.B outpace\n.I COMMAND\n.RI [ ARGUMENTS ]\n.SH DESCRIPTION\n"
                   "Runs real language models with the published methods that get several tokens out of one\n"
                   "forward pass, measures what each gains and costs, and proves that output is unchanged.\n"
                   ".B outpace COMMAND \\-\\-help\nshows the same text as this page.\n.SH COMMANDS\n");
    write_all(man_entry, out);
}

// --- the command

static const struct {
    const char *name;
    void (*write)(Text *out);
} KINDS[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}, {"man", man}};

static bool run(void *options, CommandLine *line, Error *e) {
    (void)options;
    const char *const *asked = line->words.items;
    Text text = {0};
    bool words = strcmp(asked[0], "words") == 0, found = false;
    const WordKind *kind = words && asked[1] ? words_kind(asked[1]) : NULL;
    if (words && !kind) return error_input(e, "completions words: give a kind of name, such as MODEL");
    if (words) words_list(kind, asked[2] ? asked[2] : "", &text);
    for (size_t i = 0; line->words.count == 1 && i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(KINDS[i].name, asked[0]) == 0) KINDS[i].write(&text), found = true;
    if (!words && !found)
        return error_input(
            e, "there are no completions for '%s': take bash, zsh or fish, or man for the manual page",
            asked[0]);
    fputs(text_get(&text), stdout);
    text_release(&text);
    return true;
}

EMBED(completions_lesson, "harness/commands/lessons/completions.txt")

const Command command_completions = {.name = "completions",
                                     .usage = "bash|zsh|fish|man | words KIND [TOKEN]",
                                     .summary = "print completions for a shell, or the manual page",
                                     .arguments = {1, 3},
                                     .lesson = completions_lesson,
                                     .run = run};
