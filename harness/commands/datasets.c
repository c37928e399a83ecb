// Which datasets are known and where they are; the first prompts of one; the formats of files.
#include "harness/cli/command.h"

#include "datasets/format.h"
#include "datasets/datasets.h"
#include "engine/base/memory.h"
#include "harness/cli/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int show;
    DatasetRequest of;
    bool formats;
    Records records;
} DatasetsOptions;

#define AT(name) offsetof(DatasetsOptions, name)
static const Arg OPTIONS[] = {
    {"show", ARG_INT, AT(show), 0, 1 << 24, "2", .help = "prompts to show", .value = "N", .letter = 'n'},
    {"split", ARG_WORD, AT(of.split), .help = "of a dataset that has several", .value = "NAME",
     .fallback = "its first"},
    {"path", ARG_WORD, AT(of.path), .help = "show the prompts of a file of your own", .value = "FILE"},
    {"format", ARG_WORD, AT(of.format), .help = "of that file, FORMAT or FORMAT:FRAME", .value = "NAME",
     .fallback = "told by its keys"},
    {"formats", ARG_FLAG, AT(formats), .help = "list the formats, and the frames for prompts"},
    RECORDS_OPTIONS(AT(records)),
};

static const Column COLUMNS[] = {
    {"name", "name", .help = "of the dataset"},
    {"split", "split", .help = "a part of it"},
    {.head = "rows", .kind = AS_COUNT}, // not known: a dash for people
    {"rows", .help = "how many it has"},
    {"state", "state", .help = "found, missing, built in, not as published"},
    {"about", "about", .least = 24, .help = "description"},
    {"licence path", .help = "licence; where the file is looked for"},
};
static const TableForm FORM = {"datasets", TABLE_COLUMNS(COLUMNS)};

static bool put_known(RecordTable *t, const KnownFile *f, const char *folder, Error *e) {
    bool changed = false;
    LOCAL_MEMORY char *path = folder && !f->content ? known_path(f, folder) : NULL,
                      *name = mem_text(f->name.at, f->name.n), *split = mem_text(f->split.at, f->split.n),
                      *about = mem_text(f->about.at, f->about.n),
                      *licence = mem_text(f->licence.at, f->licence.n),
                      *rows = mem_text(f->rows.at, f->rows.n);
    bool ok = !path || known_changed(f, path, &changed, e);
    const char *state = changed ? "not as published" : path ? "found" : f->content ? "built in" : "missing";
    TABLE_ROW(t, CELL(name), CELL(split), CELL(rows), CELL((int64_t)strtol(rows, NULL, 10)), CELL(state),
              CELL(about), CELL(licence), CELL(path));
    if (path) {
        LOCAL_TEXT line = {0};
        text_printf(&line, "%s; licence: %s", path, licence);
        table_line(t, 1, text_get(&line));
    }
    return ok;
}

// A foreign text on a terminal: what could move the cursor or change colours becomes '?'.
static void print_text(const char *mark, const char *s) {
    LOCAL_TEXT text = {0}, folded = {0};
    bool at_start = true;
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s, next = (unsigned char)s[1];
        if (at_start) text_puts(&text, mark);
        at_start = c == '\n';
        if (c == 0xC2 && next < 0xA0) s++, text_puts(&text, "?"); // a control character of Latin-1, as UTF-8
        else if (c == '\r') text_puts(&text, "\\r");
        else text_add(&text, (c < ' ' && c != '\n' && c != '\t') || c == 0x7F ? "?" : s, 1);
    }
    if (!at_start) text_puts(&text, "\n");
    terminal_fold(text_get(&text), terminal_width(), &folded);
    fputs(text_get(&folded), stdout);
}

static void print_prompt(const DatasetPrompt *p) {
    char mark[32];
    print_text("\n", p->id);
    if (p->task[0]) print_text("task: ", p->task);
    for (int i = 0; i < p->turn_count; i++) {
        snprintf(mark, sizeof mark, "  %d> ", i + 1);
        print_text(mark, p->turns[i]);
    }
    for (int i = 0; i < p->reference_count; i++) {
        snprintf(mark, sizeof mark, "  %d= ", p->references[i].turn + 1);
        print_text(mark, p->references[i].text);
    }
}

static bool show(const char *name, const DatasetsOptions *o, const char *folder, Error *e) {
    LOCAL(dataset_release) Dataset d = {0};
    KnownFile f;
    DatasetRequest q = o->of;
    q.name = name, q.folder = folder;
    if (!dataset_open(&d, &q, e)) return false;
    size_t several = 0, answered = 0;
    for (size_t i = 0; i < d.count; i++) {
        several += d.prompts[i].turn_count > 1;
        answered += d.prompts[i].reference_count > 0;
    }
    puts(SHOWN(d.name));
    terminal_printf(
        "%zu prompts, %zu of them of several turns, %zu with a reference\nsha256 of the prompts %s\n",
        d.count, several, answered, d.sha256);
    if (!o->of.path && known_find(name, o->of.split, &f, NULL)) {
        terminal_printf("%.*s\nlicence: %.*s\n", (int)f.about.n, f.about.at, (int)f.licence.n, f.licence.at);
        if (f.url.n > 1) terminal_printf("from %.*s\n", (int)f.url.n, f.url.at);
    }
    if (d.changed)
        terminal_printf(
            "NOT AS PUBLISHED: its bytes are not those of that address, which 'datasets/fetch' gets again\n");
    for (size_t i = 0; i < d.count && i < (size_t)o->show; i++) print_prompt(&d.prompts[i]);
    return true;
}

static bool run(void *options, CommandLine *line, Error *e) {
    DatasetsOptions *o = options;
    const char *folder = getenv("OUTPACE_DATA");
    if (folder && !*folder) folder = NULL;
    if (o->of.format && !o->of.path)
        return error_input(e, "--format is for a file of your own: give its --path");
    if (line->words.count && (o->of.path || o->formats)) return command_misused(line->command, e);
    if (o->formats) {
        size_t count;
        const Frame *f;
        const Format *const *table = format_table(&count);
        for (size_t i = 0; i < count; i++) {
            terminal_printf("%-16s %s\n", table[i]->name, table[i]->about);
            for (size_t k = 0; (f = format_frames(table[i], k)); k++)
                terminal_printf("  :%-13s %s\n", f->name, f->from);
        }
    } else if (o->of.path || line->words.count)
        return show(o->of.path ? o->of.path : line->words.items[0], o, folder, e);
    else {
        RecordTable t = {.form = &FORM, .as = &o->records};
        KnownFile file;
        bool ok = true;
        for (size_t i = 0; ok && known_at(i, &file); i++) ok = put_known(&t, &file, folder, e);
        ok = table_end(&t, ok, e);
        if (!ok || records_asked(&o->records)) return ok;
        static const char UNSET[] =
            "\nOUTPACE_DATA is not set: a folder for published files, which datasets/fetch FOLDER fills\n";
        if (folder) terminal_printf("\nlooked for in OUTPACE_DATA, %s\n", SHOWN(folder));
        else terminal_printf("%s", UNSET);
    }
    return true;
}

const Command command_datasets = {.name = "datasets",
                                  .usage = "[DATASET | --path FILE | --formats | index ...]",
                                  .summary = "list the datasets and where they are; show prompts of one",
                                  .arguments = {0, 1},
                                  COMMAND_OPTIONS(OPTIONS, DatasetsOptions),
                                  .run = run,
                                  .parts = (const Command *const[]){&command_datasets_index, NULL},
                                  .tables = TABLES(&FORM)};
