// How far a run is, or an array of parts in stores of their own: shares, rate, expected end.
//
// An answer is one method's reply to one prompt in one pass. A point of a part that has not begun counts as
// many answers as the others have on average, and answers take as long as they took so far.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/analysis/stored.h"
#include "harness/cli/table.h"
#include "harness/run/cost.h"
#include "results/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    const char *db, *stores;
    bool live;
    Records records;
} StatusOptions;

#define AT(name) offsetof(StatusOptions, name)
static const Arg OPTIONS[] = {
    {"stores", ARG_WORD, AT(stores), .help = "the stores of an array's parts", .value = "'DIR/*.db'"},
    {"db", ARG_WORD, AT(db), .help = "or one store, and its newest run", .value = "FILE",
     .fallback = STORE_DEFAULT, .literal = true},
    {"live", ARG_FLAG, AT(live), .help = "renew it until all is measured; Ctrl-C ends it"},
    RECORDS_OPTIONS(AT(records)),
};

typedef struct Part {
    char name[64], shard[32], host[64], state[16];
    int shards;             // of the whole
    int points, all_points; // here, and of the whole, of a part
    bool whole;             // all parts were merged into it
    int other_cut;          // shards of another run of the same config in this store; 0: there is none
    double done, total;     // answers
    double busy_s;          // of all starts
    int starts;
    bool running, ended;
    char why[200]; // the store can't be read now
} Part;

// --- a part ------------------------------------------------------------------------------------------------

EMBED(status_sql, "harness/commands/status.sql")

static bool read_answers(Store *s, int64_t run, int all, int passes, Part *out, Error *e) {
    Rows *r = rows_named(s, status_sql, "answers", run, e);
    rows_bind_int(r, 2, all);
    rows_bind_int(r, 3, passes);
    if (rows_next(r)) {
        out->points = (int)rows_int(r, 0);
        out->done = (double)rows_int(r, 1);
        out->total = (double)rows_int(r, 2);
    }
    return rows_end(r, true, e);
}

static bool read_starts(Store *s, int64_t run, Part *out, Error *e) {
    Rows *r = rows_named(s, status_sql, "starts", run, e);
    if (rows_next(r)) {
        const char *state = rows_text(r, 3);
        out->starts = (int)rows_int(r, 0);
        out->busy_s = rows_real(r, 1);
        out->ended = strcmp(state, "done") == 0 || strcmp(state, "partial") == 0;
        snprintf(out->state, sizeof out->state, "%s",
                 out->running  ? "running"
                 : out->starts ? state
                               : "not begun");
        snprintf(out->host, sizeof out->host, "%s", rows_text(r, 4));
    }
    return rows_end(r, true, e);
}

static bool read_run(Store *s, int64_t run, Part *out, Error *e) {
    Measurement m = {0};
    int all = 0;
    Rows *r = rows_named(s, status_sql, "run", run, e);
    bool any = rows_next(r),
         ok = !any || plan_measurement(rows_text(r, 1), rows_text(r, 2), rows_text(r, 3), &m, &all, e);
    if (any && ok) {
        snprintf(out->name, sizeof out->name, "%s", rows_text(r, 0));
        snprintf(out->shard, sizeof out->shard, "%s", rows_text(r, 4));
        if (sscanf(out->shard, "%*d/%d", &out->shards) != 1) out->shards = 1;
        if (out->shards > 1 && rows_int(r, 5) != out->shards) out->other_cut = (int)rows_int(r, 5);
    }
    if (!rows_end(r, ok, e)) return false;
    if (!any) return error_input(e, "store '%s' has no sweep", store_path(s));
    out->running = store_claimed(s, run);
    if (!read_answers(s, run, all, m.passes, out, e) || !read_starts(s, run, out, e)) return false;
    if (out->shards > 1) out->all_points = all;
    else out->points = 0;
    out->whole = out->shards > 1 && out->points >= all;
    if (out->whole) snprintf(out->shard, sizeof out->shard, "all %d", out->shards);
    if (out->ended) out->total = out->done;
    return true;
}

// A store that is being made, or locked for long, is shown as such.
static void read_part(const char *path, Part *out) {
    Error e = {0};
    int64_t run;
    *out = (Part){.state = "-"};
    LOCAL_STORE *s = store_open(path, STORE_READ, &(StoreOptions){.wait_s = 2}, &e);
    if (!s || !stored_run(s, NULL, &run, &e) || !read_run(s, run, out, &e)) {
        snprintf(out->why, sizeof out->why, "%.199s", e.text);
        out->done = out->total = 0;
    }
}

// --- all of them -------------------------------------------------------------------------------------------

static const Column COLUMNS[] = {
    {"store", .help = "its file"},
    {.head = "store", .least = 16},
    {"why", .kind = AS_REST, .optional = true,
     .help = "the store can't be read; all that follows is left out"},
    {"run", .help = "name of its newest run"},
    {"part", "part", AS_COUNT, .help = "which part of it, \"2/3\", or \"all 3\" where all were merged"},
    {"state", "state", .help = "running, ended, or how it was stopped"},
    {.head = "answers", .kind = AS_COUNT},
    {"done total", .help = "answers"},
    {.head = "share", .kind = AS_SHARE},
    {"starts", "starts", AS_COUNT, .drop = 2, .help = "how often it was started"},
    {"host", "host", .drop = 1, .help = "where it ran last"},
};
static const TableForm FORM = {"status", TABLE_COLUMNS(COLUMNS)};

static void put_part(RecordTable *t, const char *path, const Part *p) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char answers[64];
    if (p->why[0]) {
        TABLE_ROW(t, CELL(path), CELL(name), CELL(p->why));
        return;
    }
    snprintf(answers, sizeof answers, "%.0f/%.0f", p->done, p->total);
    TABLE_ROW(t, CELL(path), CELL(name), NO_CELL, CELL(p->name), CELL(p->shard), CELL(p->state),
              CELL(answers), CELL(p->done), CELL(p->total), CELL(p->total > 0 ? p->done / p->total : 0),
              CELL(p->starts), CELL(p->host));
}

typedef struct Sum {
    int stores, read, expected, ended, running, stopped; // parts
    int cuts[2];                                         // their whole: two that differ; 0: none
    int points, all_points;                              // in the stores, and of the whole
    double done, total, busy_s;
    const char *name;
} Sum;

static void note_cut(Sum *s, int shards) {
    if (!s->cuts[0]) s->cuts[0] = shards;
    else if (shards != s->cuts[0]) s->cuts[1] = shards;
}

// Points that are in no store count as the average of the others.
static Sum sum_up(const Part *parts, size_t count) {
    Sum s = {.name = ""};
    for (size_t i = 0; i < count; i++) {
        const Part *p = &parts[i];
        int held = !p->why[0] && p->whole ? p->shards : 1;
        s.stores += held;
        if (p->why[0]) continue;
        s.read += held;
        s.name = p->name;
        s.ended += p->ended && !p->running ? held : 0;
        s.running += p->running;
        s.stopped += !p->ended && !p->running ? held : 0;
        note_cut(&s, p->shards);
        if (p->other_cut) note_cut(&s, p->other_cut);
        s.done += p->done;
        s.total += p->total;
        s.points += p->points;
        if (p->all_points > s.all_points) s.all_points = p->all_points;
        s.busy_s += p->busy_s;
        if (p->shards > s.expected) s.expected = p->shards;
    }
    if (s.expected < s.stores) s.expected = s.stores;
    if (s.points && s.points < s.all_points) s.total *= (double)s.all_points / s.points;
    return s;
}

static void put_end(const Sum *s, Text *out) {
    double each_s = s->done > 0 ? s->busy_s / s->done : 0, left_s = (s->total - s->done) * each_s;
    char left[32], at[32] = "";
    if (!s->running || !(each_s > 0)) return;
    left_s /= s->running;
    time_t end = time(NULL) + (time_t)left_s;
    struct tm day;
    if (localtime_r(&end, &day)) strftime(at, sizeof at, left_s < 72000 ? "%H:%M" : "%Y-%m-%d %H:%M", &day);
    text_printf(out, "; %.3g a minute; about %s left, until %s", 60 * s->running / each_s,
                cost_time_text(left_s, left), at);
}

static void print_sum(const Sum *s) {
    Text line = {0};
    text_printf(&line, "%s: ", SHOWN(s->name));
    if (s->expected > 1)
        text_printf(&line, "%d of %d parts measured, %d running, %d stopped, %d not begun\n", s->ended,
                    s->expected, s->running, s->stopped, s->expected - s->read);
    if (s->total > 0) {
        text_printf(&line, "%.0f of %s%.0f answers, %.0f%%", s->done,
                    s->points < s->all_points ? "about " : "", s->total, 100 * s->done / s->total);
        put_end(s, &line);
        text_puts(&line, "\n");
    }
    if (s->cuts[1])
        text_printf(&line,
                    "there are parts of %d and parts of %d: they make no run together, and points may be "
                    "missing from both\n",
                    s->cuts[0], s->cuts[1]);
    if (s->stopped && !s->running)
        text_puts(&line, "nothing is running: the command of a part, or its task, continues it\n");
    terminal_print(&line);
}

static bool print_status(char *const *paths, size_t count, const Records *as, bool clear, bool *ended,
                         Error *e) {
    LOCAL_MEMORY Part *parts = mem_new(count, sizeof *parts);
    RecordTable t = {.form = &FORM, .as = as};
    bool records = records_asked(as);
    for (size_t i = 0; i < count; i++) {
        read_part(paths[i], &parts[i]);
        put_part(&t, paths[i], &parts[i]);
    }
    Sum s = sum_up(parts, count);
    bool ok = records || count > 1 || !parts[0].why[0] || error_input(e, "%s", parts[0].why);
    if (ok && clear) fputs("\033[H\033[J", stdout);
    ok = table_end(&t, ok, e);
    if (ok && !records) puts(""), print_sum(&s);
    *ended = records || s.ended == s.expected;
    return ok;
}

// 1.db, 2.db, 10.db: by length first where names differ only in their numbers.
static int by_number(const void *a, const void *b) {
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

static bool print_stores(const StatusOptions *o, bool clear, bool *ended, Error *e) {
    LOCAL(globfree) glob_t found = {0};
    char *one = (char *)(size_t)o->db;
    if (!o->stores) return print_status(&one, 1, &o->records, clear, ended, e);
    if (!stored_match(o->stores, &found, e)) return false;
    qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_number);
    return print_status(found.gl_pathv, found.gl_pathc, &o->records, clear, ended, e);
}

static bool status(void *options, UNUSED CommandLine *line, Error *e) {
    const StatusOptions *o = options;
    enum { TERMINAL_S = 2, ELSEWHERE_S = 60 };
    bool ended = false, terminal = terminal_width() > 0;
    bool ok = print_stores(o, terminal && o->live, &ended, e);
    while (ok && o->live && !ended) {
        fflush(stdout);
        sleep(terminal ? TERMINAL_S : ELSEWHERE_S);
        ok = print_stores(o, terminal, &ended, e);
    }
    return ok;
}

const Command command_status = {.name = "status",
                                .usage = "[--stores 'DIR/*.db'] [OPTIONS]",
                                .summary =
                                    "how far a run or an array of parts is, how fast, and when it will end",
                                .arguments = {0, 0},
                                COMMAND_OPTIONS(OPTIONS, StatusOptions),
                                .run = status,
                                .tables = TABLES(&FORM)};
