// Which datasets are known and where they are; the first prompts of one; the formats of files.
#include "harness/cli/command.h"

#include "harness/cli/records.h"
#include "datasets/datasets.h"
#include "datasets/format.h"
#include "datasets/known.h"
#include "engine/base/memory.h"
#include "harness/cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int show;
    const char *split, *format, *path;
    bool formats;
    Records records;
} DatasetsOptions;

#define AT(name) offsetof(DatasetsOptions, name)
static const Arg OPTIONS[] = {
    {"show", ARG_INT, AT(show), 0, 1 << 24, "2", .help = "prompts to show", .value = "N", .letter = 'n'},
    {"split", ARG_WORD, AT(split), .help = "of a dataset that has several", .value = "NAME",
     .fallback = "its first"},
    {"path", ARG_WORD, AT(path), .help = "show the prompts of a file of your own", .value = "FILE"},
    {"format", ARG_WORD, AT(format), .help = "of that file, FORMAT or FORMAT:FRAME", .value = "NAME",
     .fallback = "told by its keys"},
    {"formats", ARG_FLAG, AT(formats), .help = "list the formats, and the frames for prompts"},
    RECORDS_OPTIONS(AT(records)),
};
#undef AT

static void print_formats(void) {
    size_t count;
    const Format *const *table = format_table(&count);
    for (size_t i = 0; i < count; i++) {
        const Frame *f;
        terminal_printf("%-16s %s\n", table[i]->name, table[i]->about);
        for (size_t k = 0; (f = format_frames(table[i], k)); k++)
            terminal_printf("  :%-13s %s\n", f->name, f->from);
    }
}

static bool state_of(const KnownFile *file, const char *path, const char **out, Error *e) {
    bool changed = false;
    if (path && !known_changed(file, path, &changed, e)) return false;
    *out = changed ? "not as published" : path ? "found" : file->content ? "built in" : "missing";
    return true;
}

static const GridColumn COLUMNS[] = {
    {"name", false, 0, 0},  {"split", false, 0, 0},  {"rows", true, 0, 0},
    {"state", false, 0, 0}, {"about", false, 24, 0},
};

static bool put_known(Grid *g, const KnownFile *f, const char *folder, Error *e) {
    const char *state = "";
    char *path = folder && !f->content ? known_path(f, folder) : NULL;
    bool ok = state_of(f, path, &state, e);
    text_add(&g->cell, f->name.at, f->name.n), grid_next(g);
    text_add(&g->cell, f->split.at, f->split.n), grid_next(g);
    text_add(&g->cell, f->rows.at, f->rows.n), grid_next(g);
    text_puts(&g->cell, state), grid_next(g);
    text_add(&g->cell, f->about.at, f->about.n), grid_next(g);
    grid_end(g);
    if (ok && path) {
        grid_next(g);
        text_printf(&g->cell, "%s; licence: %.*s", path, (int)f->licence.n, f->licence.at), grid_rest(g);
    }
    mem_free(path);
    return ok;
}

static json_t *piece_json(const char *at, size_t n) { return json_stringn(at, n); }

static bool list_records(const char *folder, const Records *as, Error *e) {
    json_t *list = json_array();
    KnownFile f;
    bool ok = true;
    for (size_t i = 0; ok && known_at(i, &f); i++) {
        const char *state = "";
        char *path = folder && !f.content ? known_path(&f, folder) : NULL;
        ok = state_of(&f, path, &state, e);
        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:s?}", "name",
                                              piece_json(f.name.at, f.name.n), "split",
                                              piece_json(f.split.at, f.split.n), "rows",
                                              json_integer(strtol(f.rows.at, NULL, 10)), "state", state,
                                              "about", piece_json(f.about.at, f.about.n), "licence",
                                              piece_json(f.licence.at, f.licence.n), "path", path));
        mem_free(path);
    }
    if (ok) return records_print(list, NULL, as, e);
    json_decref(list);
    return false;
}

static bool list(const char *folder, Error *e) {
    Grid g = {.columns = COLUMNS, .count = sizeof COLUMNS / sizeof *COLUMNS};
    KnownFile file;
    bool ok = true;
    grid_heads(&g);
    for (size_t i = 0; ok && known_at(i, &file); i++) ok = put_known(&g, &file, folder, e);
    ok = ok && grid_show(&g, e);
    grid_release(&g);
    if (ok && folder) terminal_printf("\nlooked for in OUTPACE_DATA, %s\n", SHOWN(folder));
    else if (ok)
        terminal_printf(
            "\nOUTPACE_DATA is not set: a folder for published files, which datasets/fetch FOLDER "
            "fills\n");
    return ok;
}

// A foreign text on a terminal: what could move the cursor or change colours becomes '?'.
static void print_text(const char *mark, const char *s) {
    Text text = {0}, folded = {0};
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
    text_release(&text);
    text_release(&folded);
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

static void print_facts(const Dataset *d) {
    size_t several = 0, answered = 0;
    for (size_t i = 0; i < d->count; i++) {
        several += d->prompts[i].turn_count > 1;
        answered += d->prompts[i].reference_count > 0;
    }
    puts(SHOWN(d->name));
    terminal_printf(
        "%zu prompts, %zu of them of several turns, %zu with a reference\nsha256 of the prompts %s\n",
        d->count, several, answered, d->sha256);
}

static void print_source(const char *name, const char *split) {
    KnownFile f;
    if (!known_find(name, split, &f, NULL)) return;
    terminal_printf("%.*s\nlicence: %.*s\n", (int)f.about.n, f.about.at, (int)f.licence.n, f.licence.at);
    if (f.url.n > 1) terminal_printf("from %.*s\n", (int)f.url.n, f.url.at);
}

static bool show(const char *name, const DatasetsOptions *o, const char *folder, Error *e) {
    Dataset d;
    DatasetRequest q = {
        .name = name, .path = o->path, .format = o->format, .split = o->split, .folder = folder};
    if (!dataset_open(&d, &q, e)) return false;
    print_facts(&d);
    if (!o->path) print_source(name, o->split);
    if (d.changed)
        terminal_printf(
            "NOT AS PUBLISHED: its bytes are not those of that address, which 'datasets/fetch' gets again\n");
    for (size_t i = 0; i < d.count && i < (size_t)o->show; i++) print_prompt(&d.prompts[i]);
    dataset_release(&d);
    return true;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    (void)code;
    DatasetsOptions o = {.show = 2};
    Words rest;
    bool stop;
    const char *folder = getenv("OUTPACE_DATA");
    if (!command_parse(&command_datasets, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    if (folder && !*folder) folder = NULL;
    if (o.format && !o.path) return error_input(e, "--format is for a file of your own: give its --path");
    if (rest.count && (o.path || o.formats)) return command_misused(&command_datasets, e);
    if (o.formats) print_formats();
    else if (o.path || rest.count) return show(o.path ? o.path : rest.items[0], &o, folder, e);
    else return records_asked(&o.records) ? list_records(folder, &o.records, e) : list(folder, e);
    return true;
}

const Command command_datasets = {
    .name = "datasets",
    .usage = "[DATASET | --path FILE | --formats | index ...]",
    .summary = "list the datasets and where they are; show prompts of one",
    .arguments = {0, 1},
    .lesson =
        "Lists the datasets that an experiment may name: small ones of our own, which are in the program,\n"
        "and published ones, which are looked for in the folder OUTPACE_DATA. With a name, shows its\n"
        "first prompts (1> the first turn, 1= an answer to it). NAME:FRAME puts the same rows into\n"
        "another prompt. A file of your own is JSON Lines, CSV, Parquet, ShareGPT or text, perhaps gzipped.\n"
        "\n"
        "  outpace datasets mathematics\n"
        "  datasets/fetch data gsm8k && OUTPACE_DATA=data outpace datasets gsm8k:qa --split train\n"
        "  outpace datasets --path prompts.jsonl -n 5\n"
        "  outpace datasets index --help        texts for the method 'rest'\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run,
    .parts = (const Command *const[]){&command_datasets_index, NULL}};
