// The report in a browser, headless Chromium: sorting, filters, keys, tips, widths of 1280 and 400 pixels,
// and paper. Skipped where there is no Chromium.
//
// The page is shown in a frame of the given width: a browser's window has 500 pixels at least.
// report_reader.js, added at its end, acts as a reader would, and writes its faults to the console, from
// where they come here.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "tests/support/child.h"
#include "tests/support/plot_store.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

EMBED(reader_js, "tests/plots/report_reader.js")

static const char FIND[] = "for p in chromium chromium-browser google-chrome; do "
                           "command -v $p && exit; done; exit 77";

static const char CONFIG[] = "name: tokens\n"
                             "models: [{name: reference, target: reference, draft: draft}]\n"
                             "datasets: [{name: code, parts: [reference-code], limit: 3}, "
                             "{name: stories, parts: [reference-stories], limit: 3}]\n"
                             "generation: {max_tokens: 24}\n"
                             "methods: [autoregressive, speculative, prompt-lookup]\n"
                             "measurement: {warmup: 0, passes: 1, reruns: 0}\n";

typedef struct Browser {
    char *folder;
    Text program; // empty: there is none
} Browser;

static int set_up(void **state) {
    static Browser b;
    Child c;
    if (folder_setup((void **)&b.folder)) return -1;
    child_run(&c, NULL, NULL, (const char *const[]){"sh", "-c", FIND, NULL});
    if (!c.code) text_add(&b.program, text_get(&c.out), strcspn(text_get(&c.out), "\n"));
    child_release(&c);
    plot_store_make(folder_path(b.folder, "plain.db"), 0);
    if (b.program.length) { // a run with texts
        scratch_write(b.folder, "t.yaml", CONFIG, sizeof CONFIG - 1);
        CHILD_OUTPACE(&c, b.folder, 0, "run", "t.yaml", "--db", "tokens.db", "--record-guesses");
        child_release(&c);
    }
    *state = &b;
    return 0;
}

static int tear_down(void **state) {
    Browser *b = *state;
    text_release(&b->program);
    return folder_teardown((void **)&b->folder);
}

// Writes the report of a store's run, with the reader at its end.
static void write_page(const Browser *b, const char *db, const char *run, const char *name) {
    Child c;
    Text page = {0};
    size_t size;
    CHILD_OUTPACE(&c, b->folder, 0, "report", "--db", db, "--run", run, "--force", "-o", "r.html");
    child_release(&c);
    char *html = scratch_read(b->folder, "r.html", &size), *end = strstr(html, "</body>");
    assert_non_null(end);
    text_add(&page, html, (size_t)(end - html));
    text_printf(&page, "<script>\n%s</script>\n%s", reader_js, end);
    scratch_write(b->folder, name, text_get(&page), page.length);
    text_release(&page);
    mem_free(html);
}

#define SAID "the reader has done"
#define BROWSER                                                                                    \
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", \
        "--window-size=1400,900"

static void address(const Browser *b, const char *page, char out[512], char profile[512]) {
    snprintf(out, 512, "file://%s/%s", b->folder, page);
    snprintf(profile, 512, "--user-data-dir=%s/profile", b->folder);
}

// Reads what the browser writes until the reader has done or failed, or the browser ends.
static void listen_to(int from, Text *out) {
    char bytes[4096];
    for (ssize_t n; (n = read(from, bytes, sizeof bytes)) > 0;) {
        text_add(out, bytes, (size_t)n);
        if (strstr(text_get(out), SAID) || strstr(text_get(out), "Uncaught")) return;
    }
}

// The first line on the browser's console is that the reader has done.
static void check_console(const char *run, int width, const char *written) {
    const char *line = strstr(written, "CONSOLE");
    if (!line) fail_msg("%s at %d: the reader hasn't ended: %s", run, width, written);
    if (!strstr(line, SAID) || strcspn(line, "\n") < (size_t)(strstr(line, SAID) - line))
        fail_msg("%s at %d: %.*s", run, width, (int)strcspn(line, "\n"), line);
}

// Shows a run's report in a frame, and fails with the first fault or the first error on the console.
static void read_at(const Browser *b, const char *db, const char *run, int width) {
    char frame[256], url[512], profile[512];
    int ends[2];
    Text written = {0};
    write_page(b, db, run, "page.html");
    int n = snprintf(
        frame, sizeof frame,
        "<!DOCTYPE html><iframe src='page.html' width=%d height=800 style='border: 0'></iframe>\n", width);
    scratch_write(b->folder, "frame.html", frame, (size_t)n);
    address(b, "frame.html", url, profile);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = child_start(
        b->folder,
        (const char *const[]){"timeout", "120", text_get(&b->program), BROWSER, profile, url, NULL},
        STDIN_FILENO, STDOUT_FILENO, ends[1]);
    close(ends[1]);
    listen_to(ends[0], &written);
    kill(pid, SIGTERM); // to `timeout`, which passes it on
    child_wait(pid);
    close(ends[0]);
    check_console(run, width, text_get(&written));
    text_release(&written);
}

static void wide(void **state) {
    const Browser *b = *state;
    if (!b->program.length) skip();
    read_at(b, "plain.db", "1", 1280);
    read_at(b, "plain.db", "2", 1280);
    read_at(b, "tokens.db", "1", 1280);
}

static void narrow(void **state) {
    const Browser *b = *state;
    if (!b->program.length) skip();
    read_at(b, "plain.db", "1", 400);
    read_at(b, "plain.db", "2", 400);
    read_at(b, "tokens.db", "1", 400);
}

// Every figure is on paper, too: also those that nobody has scrolled to.
static void on_paper(void **state) {
    const Browser *b = *state;
    Child c;
    size_t size;
    if (!b->program.length) skip();
    char url[512], profile[512];
    write_page(b, "plain.db", "1", "page.html");
    address(b, "r.html", url, profile); // nobody reads it before
    child_run(
        &c, b->folder, NULL,
        (const char *const[]){text_get(&b->program), BROWSER, profile, "--print-to-pdf=page.pdf", url, NULL});
    assert_int_equal(c.code, 0);
    assert_null(strstr(text_get(&c.err), "CONSOLE"));
    child_release(&c);
    char *pdf = scratch_read(b->folder, "page.pdf", &size);
    assert_int_equal(strncmp(pdf, "%PDF-", 5), 0);
    mem_free(pdf);
    child_run(&c, b->folder, NULL,
              (const char *const[]){
                  "sh", "-c", "command -v pdftotext >/dev/null || exit 77; pdftotext page.pdf -", NULL});
    if (c.code == 77) {
        child_release(&c);
        skip();
    }
    // A heading, an axis of the first figure that has one, an axis of the last, the end of the page.
    static const char *const WORDS[] = {"Verdict", "w: drafted tokens, or more, that a step accepted",
                                        "samples, in the order in which they began", "To repeat it"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (!strstr(text_get(&c.out), WORDS[i])) fail_msg("paper lacks: %s", WORDS[i]);
    if (strstr(text_get(&c.out), "find in tables")) fail_msg("paper has the filters");
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide),
        cmocka_unit_test(narrow),
        cmocka_unit_test(on_paper),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
