// Finds the subcommand, runs it; the only place that prints an error and picks the exit code.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "engine/model/make/synth.h"
#include "harness/cli/signals.h"
#include "harness/cli/version.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Commands of earlier versions, and what to write now.
static const struct {
    const char *name, *now;
} OLD[] = {{"surface", "bench --store"},
           {"tokenize", "tokenizer encode"},
           {"list", "table"},
           {"validate", "plan --check"},
           {"resume", "run RUN (or run last)"},
           {"datastore", "datasets index"},
           {"export", "store export"},
           {"import", "store import"},
           {"merge", "store merge"},
           {"gc", "store gc"},
           {"version", "--version"}};

// Options without a command.
static const char *const LONE[] = {"--help", "--version"};
static const Command *find(const char *name, Error *e) {
    size_t count = 0;
    for (; commands[count]; count++)
        if (strcmp(commands[count]->name, name) == 0) return commands[count];
    for (size_t i = 0; i < sizeof OLD / sizeof *OLD; i++)
        if (strcmp(OLD[i].name, name) == 0) {
            error_input(e, "'outpace %s' is now 'outpace %s'", name, OLD[i].now);
            return NULL;
        }
    bool option = name[0] == '-';
    const char *nearest = option ? suggest(name, LONE, sizeof LONE / sizeof *LONE, sizeof *LONE)
                                 : suggest(name, commands, count, 0);
    if (nearest)
        error_input(e, "there is no %s '%s'; did you mean '%s'?", option ? "option" : "command", name,
                    nearest);
    else error_input(e, "there is no command '%s'; 'outpace --help' lists them", name);
    return NULL;
}

bool command_misused(const Command *c, Error *e) {
    return error_input(e, "%s: usage: outpace %s%s%s", c->name, c->name, *c->usage ? " " : "", c->usage);
}

// Paragraphs are written in lines of 100 letters. A narrower terminal breaks them elsewhere: their lines, all
// that do not start with a blank, are joined.
static void put_lesson(const char *lesson, Text *out) {
    enum { WRITTEN = 100 };
    int width = terminal_width();
    for (bool prose = false; *lesson; lesson += *lesson != 0) {
        size_t n = strcspn(lesson, "\n");
        bool more = prose && n > 0 && lesson[0] != ' ';
        if (more && out->length) out->data[out->length - 1] = ' ';
        prose = width > 0 && width < WRITTEN && n > 0 && lesson[0] != ' ';
        text_add(out, lesson, n);
        lesson += n;
        text_puts(out, "\n");
    }
}

static void print_lesson(const Command *c, const ArgSet sets[COMMAND_SETS]) {
    Text text = {0};
    LOCAL_TEXT lesson = {0};
    command_lesson(c->name, &lesson);
    text_printf(&text, "usage: outpace %s%s%s\n\n", c->name, *c->usage ? " " : "", c->usage);
    put_lesson(text_get(&lesson), &text);
    if (c->option_count) text_puts(&text, "\nOptions:\n");
    args_help(sets, 1, &text);
    if (c->shared.count) text_puts(&text, "\nOptions of the model:\n");
    args_help(sets + 1, 1, &text);
    terminal_print(&text);
}

bool command_execute(const Command *c, int argc, char **argv, int *code, Error *e) {
    ArgSet sets[COMMAND_SETS];
    CommandLine line = {.command = c, .argc = argc, .argv = argv};
    const Words *words = &line.words;
    const char *isa = getenv("OUTPACE_ISA");
    bool help = false;
    LOCAL_MEMORY void *options = mem_new(1, c->size ? c->size : 1);
    command_sets(c, sets);
    args_start(sets, COMMAND_SETS, options);
    if (isa) (void)args_set_option(&c->shared, 1, options, "isa", isa, NULL); // of commands that have it
    bool ok = (!c->begin || c->begin(options, e)) &&
              (args_parse_line(sets, COMMAND_SETS, argc, argv, options, &line.words, &help, e) ||
               error_within(e, "%s", c->name));
    if (ok && help) print_lesson(c, sets);
    else if (ok)
        ok =
            ((words->count >= c->arguments[0] && words->count <= c->arguments[1]) || command_misused(c, e)) &&
            c->run(options, &line, e);
    *code = line.code;
    return ok;
}

// False if printed text did not arrive, unless its reader has left.
static bool is_written(Error *e) {
    bool failed = fflush(stdout) || ferror(stdout);
    return !failed || file_reader_left(STDOUT_FILENO) ||
           error_system(e, "cannot write to standard output: is the disk full?");
}

// The part of a command that argv asks for: its second word, or an option such as --store wherever it is.
// That word is taken out of argv.
static const Command *find_part(const Command *c, int *argc, char **argv) {
    for (const Command *const *part = c->parts; part && *part; part++) {
        const char *word = command_part(*part);
        for (int i = 1; i < (*word == '-' ? *argc : 2) && i < *argc; i++) {
            if (strcmp(argv[i], word) != 0) continue;
            memmove(argv + i, argv + i + 1, (size_t)(*argc - i) * sizeof *argv); // the NULL at its end, too
            argv[0] = (char *)(size_t)(*part)->name;
            --*argc;
            return *part;
        }
    }
    return c;
}

// --- names of models

// Which argument the usage calls MODEL: "CONFIG | adapter MODEL" has it at 1; -1: none.
static int model_argument(const char *usage) {
    int at = 0;
    for (size_t n; *usage; usage += n + strspn(usage + n, " ")) {
        n = strcspn(usage, " ");
        if (n == 5 && strncmp(usage, "MODEL", n) == 0) return at;
        at = n == 1 && *usage == '|' ? 0 : at + 1;
    }
    return -1;
}

// Replaces names of models in argv by their paths, which `found` keeps. Mistakes in the line are left to the
// command.
static bool find_models(const Command *c, int argc, char **argv, Words *found, Error *e) {
    ArgSet sets[COMMAND_SETS];
    ArgOption option;
    ArgLine line = {.sets = sets, .n = COMMAND_SETS, .argc = argc, .argv = argv, .at = 1};
    const char *name;
    int left = model_argument(c->usage);
    command_sets(c, sets);
    while (found->count < WORDS_MAX && args_next(&line, &option, &name, NULL)) {
        const char *value = option.row ? option.row->value : NULL;
        if (option.row ? !value || strcmp(value, "MODEL") != 0 : left-- != 0) continue;
        char **word = &argv[line.at - 1],
             *path = synth_named(name) ? mem_text(name, strlen(name)) : shipped_model(name, e);
        if (!path) return option.row ? error_within(e, "--%s", option.name) : false;
        *word =
            mem_printf("%.*s%s", (int)(name - *word), *word, path); // of "--draft=NAME" the beginning, too
        found->items[found->count++] = *word;
        mem_free(path);
    }
    return true;
}

static bool is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    const Command *c = find(argv[0], e);
    if (!c) return false;
    c = find_part(c, &argc, argv);
    if (!c->run && argc > 1 && !is_help(argv[1])) return command_misused(c, e);
    if (!c->run) {
        terminal_printf("usage: outpace %s %s\n\n", c->name, c->usage);
        for (const Command *const *part = c->parts; *part; part++)
            terminal_printf("  %-14s %s\n", (*part)->name, (*part)->summary);
        terminal_printf("\n'outpace %s --help' teaches one.\n", c->parts[0]->name);
        return is_written(e);
    }
    // Output that takes hours is flushed line by line, in pipes and files, too.
    if (!c->bulk) setvbuf(stdout, NULL, _IOLBF, 0);
    interrupt_begin(c->name, c->kept);
    Words found = {.count = 0};
    bool ok = find_models(c, argc, argv, &found, e) && command_execute(c, argc, argv, code, e);
    for (int i = 0; i < found.count; i++) mem_free((char *)(size_t)found.items[i]);
    if (!ok &&
        e->kind == ERROR_INTERRUPTED) { // "bench: interrupted while making bigrams; nothing is written"
        Error what = *e;
        snprintf(e->text, sizeof e->text, "%s: %.500s%s%s", c->name, what.text, c->kept ? "; " : "",
                 c->kept ? c->kept : "");
    }
    return ok && is_written(e);
}

int main(int argc, char **argv) {
    char help[] = "--help";
    Error e = {0};
    int code = EXIT_DONE;
    signal(SIGPIPE, SIG_IGN); // a reader that left is a failed write, not our death
    shrunk_catch();
    if (argc > 2 && is_help(argv[1])) { // "help run" is "run --help"
        memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof *argv);
        argv[argc - 1] = help;
    }
    if (argc < 2 || is_help(argv[1])) {
        Text lesson = {0};
        command_lesson("outpace", &lesson);
        terminal_print(&lesson);
        for (size_t i = 0; commands[i]; i++) {
            if (command_group(i)) terminal_printf("\n%s:\n", command_group(i));
            terminal_printf("  %-11s %s\n", commands[i]->name, commands[i]->summary);
        }
        if (argc < 2) return EXIT_USAGE;
        if (is_written(&e)) return EXIT_DONE;
    } else if (strcmp(argv[1], "--version") == 0) {
        LOCAL_TEXT libraries = {0};
        libraries_text(&libraries);
        printf("outpace %s, %s\n", version_text(), version_compiler());
        terminal_printf("with %s\n", text_get(&libraries));
        puts(
            "under the MIT licence; a copy that you pass on is under the GPL, version 3 or later, as GSL is");
        if (is_written(&e)) return EXIT_DONE;
    } else if (run(argc - 1, argv + 1, &code, &e)) return code;
    if (e.kind == ERROR_NONE)
        error_system(&e, "%s failed without an error message: this is a bug in outpace", argv[1]);
    fprintf(stderr, "outpace: %s\n", e.text);
    return error_exit_code(&e);
}
