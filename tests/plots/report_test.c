// The report of a small store: as Markdown what tests/fixtures/plots says, as HTML one page that loads
// nothing and in which no text of the store is a tag. How it behaves in a browser is report_long_test.c.
//
// OUTPACE_GOLDEN=write writes the fixture anew.
#include "tests/support/check.h"

#include "engine/base/shipped.h"
#include "engine/base/memory.h"
#include "plots/plots.h"
#include "results/sql.h"
#include "tests/support/child.h"
#include "tests/support/plot_store.h"
#include "tests/support/scratch.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

EMBED(report_css, "plots/report/page.css")

static int set_up(void **state) {
    if (folder_setup(state)) return -1;
    plot_store_make(folder_path(*state, "plain.db"), 0);
    plot_store_make(folder_path(*state, "changed.db"), 1);
    return 0;
}

static bool write_report(Store *s, int64_t run, const ReportOptions *o, const char *path, Error *e) {
    Output out = {0};
    bool ok = report_write(s, run, o, path, &out, e) && output_finish(&out, e);
    output_release(&out);
    return ok;
}

// For mem_free.
static char *report(const char *folder, const char *store, int64_t run, PageFormat format, const char *name) {
    Error e = {0};
    size_t size;
    ReportOptions o = {.format = format, .computed = plot_computed};
    Store *s = store_open(folder_path(folder, store), STORE_READ, NULL, &e);
    if (!s || !write_report(s, run, &o, folder_path(folder, name), &e)) fail_msg("%s", e.text);
    store_close(s);
    return scratch_read(folder, name, &size);
}

static int count(const char *text, const char *word) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) n++;
    return n;
}

static void holds(const char *text, const char *word) {
    if (!strstr(text, word)) fail_msg("the report lacks: %s", word);
}

// --- as Markdown -----------------------------------------------------------------------------------------

// Moments differ from run to run: each digit of "2026-11-21 13:36:44 UTC" is a 0.
static void mask_moments(char *text) {
    for (char *at = text; (at = strstr(at, " UTC")); at += 4)
        for (int i = 1; i <= 19 && at - i >= text; i++)
            if (isdigit((unsigned char)at[-i])) at[-i] = '0';
}

static void markdown(void **state) {
    const char *root = getenv("OUTPACE_ROOT"), *golden = getenv("OUTPACE_GOLDEN");
    char folder[512];
    size_t size;
    snprintf(folder, sizeof folder, "%s/tests/fixtures/plots", root ? root : ".");
    char *got = report(*state, "plain.db", PLOT_SWEEP, PAGE_MD, "plain.md");
    char *changed = report(*state, "changed.db", PLOT_SWEEP, PAGE_MD, "changed.md");
    mask_moments(got);
    if (golden && strcmp(golden, "write") == 0) scratch_write(folder, "report.md", got, strlen(got));
    char *wanted = scratch_read(folder, "report.md", &size);
    assert_string_equal(got, wanted);
    mask_moments(changed);
    assert_string_not_equal(got, changed);
    // Its figures are next to it.
    mem_free(scratch_read(*state, "plain-figures/speedup.svg", &size));
    mem_free(got);
    mem_free(changed);
    mem_free(wanted);
}

static void latex(void **state) {
    char *text = report(*state, "plain.db", PLOT_SURFACE, PAGE_TEX, "grid.tex");
    size_t size;
    holds(text, "\\includegraphics[width=0.9\\linewidth,height=0.9\\textheight,keepaspectratio]{grid-figures/"
                "slowdown.pdf}");
    holds(text, "\\end{document}");
    holds(text, "name=it"); // the command line
    holds(text, "Where the machine changed");
    holds(text, "500 & 1.31");
    mem_free(scratch_read(*state, "grid-figures/rows.pdf", &size));
    mem_free(text);
}

// As it is typed, with its blanks and its empty lines; and letters that no font of pdfLaTeX has.
static void latex_code(void **state) {
    (void)state;
    Text out = {0};
    const Page p = {PAGE_TEX, &out, NULL};
    page_code(&p, "run --db \"x\"\n\n  y: 'it' # \u6771\n");
    assert_string_equal(text_get(&out),
                        "\\begin{flushleft}\\ttfamily\\frenchspacing\n"
                        "run {-}{-}db \\textquotedbl{}x\\textquotedbl{}\\\\\n"
                        "\\mbox{}\\\\\n"
                        "~~y: \\textquotesingle{}it\\textquotesingle{} \\# \\letter{\u6771}{6771}\\\\\n"
                        "\\end{flushleft}\n");
    text_release(&out);
}

// Where there is a LaTeX, it takes the page without an error, and no figure is higher than it.
static void latex_compiles(void **state) {
    Child c;
    mem_free(report(*state, "plain.db", PLOT_SWEEP, PAGE_TEX, "whole.tex"));
    child_run(&c, *state, NULL,
              (const char *const[]){"sh", "-c",
                                    "command -v pdflatex >/dev/null || exit 77; "
                                    "pdflatex -draftmode -halt-on-error -interaction=batchmode whole >&2; "
                                    "! grep -E '^(!|Overfull .vbox)' whole.log",
                                    NULL});
    if (c.code && c.code != 77) fail_msg("pdflatex: %s%s", text_get(&c.out), text_get(&c.err));
    bool none = c.code == 77;
    child_release(&c);
    if (none) skip();
}

// Steps of another engine that say of their time only how much it is in all: that has no parts to be drawn.
static void of_another_engine(void **state) {
    Child c;
    FILE *f = fopen(folder_path(*state, "other.jsonl"), "w");
    for (int i = 0; i < 2; i++)
        fprintf(
            f,
            "{\"model\": \"m\", \"dataset\": \"d\", \"method\": \"%s\", \"prompt\": 0, \"decode_s\": 0.%d,"
            " \"steps\": [{\"accepted\": %d, \"emitted\": %d}]}\n",
            i ? "jacobi" : "autoregressive", i + 1, i, i + 1);
    fclose(f);
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "steps", "other.jsonl", "--db", "other.db");
    child_release(&c);
    char *text = report(*state, "other.db", 1, PAGE_MD, "other.md");
    holds(text, "other-figures/speedup.svg");
    assert_null(strstr(text, "other-figures/step-time.svg"));
    holds(text, " UTC, imported\n");
    holds(text, "Whether its texts are the baseline's was not compared.");
    holds(text, "| not compared |");
    assert_null(strstr(text, "Lossless"));
    mem_free(text);
    f = fopen(folder_path(*state, "alone.jsonl"), "w");
    fputs("{\"model\": \"m\", \"dataset\": \"d\", \"method\": \"eagle\", \"prompt\": 0, \"decode_s\": 0.1, "
          "\"steps\": [{\"accepted\": 0, \"emitted\": 1}]}\n",
          f);
    fclose(f);
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "steps", "alone.jsonl", "--db", "alone.db");
    child_release(&c);
    text = report(*state, "alone.db", 1, PAGE_MD, "alone.md");
    holds(text, "eagle: no speedup is known, as no autoregressive baseline was imported");
    holds(text, "| eagle | 1.00 | - | not compared | m | d |");
    mem_free(text);
}

// Nor are there speedups where no clock saw time; what was accepted is drawn all the same.
static void without_times(void **state) {
    static const char *const METHODS[][2] = {
        {"autoregressive", ""},
        {"lookahead", "\"W\": 5, \"N\": 5, \"G\": 5"},
        {"ngrammys", "\"k\": 2, \"w\": 3, \"strategy\": \"mixed\""},
        {"kangaroo", "\"exit_layer\": 2, \"gamma\": 3, \"eta\": 0.4"},
        {"ouroboros", "\"K\": 3, \"beta\": 4, \"gamma\": 3"},
    };
    static const char *const FIGURES[] = {"devices", "ngrammys", "exit-layer", "eta", "phrases"};
    Child c;
    FILE *f = fopen(folder_path(*state, "still.jsonl"), "w");
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
        fprintf(f,
                "{\"model\": \"m\", \"dataset\": \"d\", \"method\": \"%s\", \"params\": {%s}, \"prompt\": 0,"
                " \"decode_s\": 0, \"steps\": [{\"accepted\": 0, \"emitted\": 1}]}\n",
                METHODS[i][0], METHODS[i][1]);
    fclose(f);
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "steps", "still.jsonl", "--db", "still.db");
    child_release(&c);
    char *text = report(*state, "still.db", 1, PAGE_MD, "still.md");
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++) {
        char file[64];
        snprintf(file, sizeof file, "still-figures/%s.svg", FIGURES[i]);
        holds(text, file);
    }
    mem_free(text);
}

// --- as HTML ---------------------------------------------------------------------------------------------

// Links and labels lead to ids: no two may be equal.
static void ids_are_unique(char *page) {
    static const char BEFORE[] = " id=\"";
    for (char *at = page; (at = strstr(at, BEFORE)); at++) {
        char whole[128];
        size_t n = strlen(BEFORE), length = strcspn(at + n, "\"");
        snprintf(whole, sizeof whole, "%.*s", (int)(n + length + 1), at);
        if (count(at, whole) > 1) fail_msg("twice in the page:%s", whole);
    }
}

static void html(void **state) {
    char *page = report(*state, "plain.db", PLOT_SWEEP, PAGE_HTML, "plain.html");
    holds(page, "`id` &lt;script&gt;alert(1)&lt;/script&gt; it&#39;s &quot;50%&quot; @x_{2} \\n");
    assert_null(strstr(page, "<script>alert(1)"));
    holds(page, "\\u003cscript>alert(1)"); // a panel's title
    holds(page, "default-src 'none'");
    assert_int_equal(count(page, "<figure"), figure_count - 3); // all but those over temperature and batches
    assert_int_equal(count(page, "</figure>"), figure_count - 3);
    assert_int_equal(count(page, "<script"),
                     figure_count - 3 + 4); // the points, their steps, the colours, the program
    assert_int_equal(count(page, "<table"), count(page, "</table>"));
    assert_int_equal(count(page, "<table"), count(page, "<caption>"));
    assert_int_equal(count(page, "<section"), count(page, "</section>"));
    assert_null(strstr(page, "src="));
    assert_int_equal(count(page, "http"), 1 + count(page, "http://www.w3.org/2000/svg")); // http-equiv
    assert_true(strstr(page, "Verdict") < strstr(page, "<table"));
    holds(page,
          "ngrammys k=5 w=4 strategy=mixed: S = 2.21 [2.18, 2.34] tokens a step over 3 prompts, and 1.68 "
          "[1.66, 1.89] times* as fast as its baseline: too few to say, fewer than ten prompts. Lossless");
    // Day, machine and program are under the title, and the machine's state is before every number, once.
    holds(page, "</h1><p>20");
    holds(page, " on made-up processor, 2 cores, by outpace 0.1.0</p></header>");
    static const char STATE[] =
        "<p>Something disturbed 20 of 120 samples (other processes, or changing clocks); * marks "
        "times in doubt; S and texts are not affected.</p>";
    assert_int_equal(count(page, STATE), 1);
    assert_true(strstr(page, STATE) < strstr(page, "<h2"));
    holds(
        page,
        "<th scope=col>method<th scope=col>S<th scope=col>speedup<th scope=col>same text<th scope=col>model");
    holds(page, "<div class=\"verdict open\"><h3>small, chat (stand-in: ");
    holds(page, "</h3> <span class=badge>no finding</span> <p>");
    holds(page,
          "<td>ngrammys k=5 w=4 strategy=mixed<td>2.21 [2.18, 2.34]<td>1.68 [1.66, 1.89] *<td>yes<td>small");
    holds(page, ",\"1 of 3 disturbed\"]"); // of a point, for its tip
    holds(page, "NOT lossless here: 1 other setting, which is left out.");
    holds(page, "a warning &lt;b&gt;");
    holds(page, "another model: small");
    holds(
        page,
        "{\"columns\":[\"point\",\"rows\",\"accepted\",\"steps\",\"emitted\",\"ms\"],\"rows\":[["); // what a point opens
    holds(page,
          "{\"columns\":[\"point\",\"prompt\",\"turn\",\"S\",\"steps\",\"ms\",\"speedup\"],\"rows\":[[");
    holds(page, "<td>(3) &lt;i&gt;");
    holds(page, "0.90 [0.80, 1.00]");
    holds(page, "41 rows are more than the 32 of max_rows");
    holds(page, "# &lt;b&gt;&amp;\n");
    holds(page, "./outpace run demo.yaml --set &#39;name=it&#39;\\&#39;&#39;s&#39; --db repeat.db\n");
    holds(page, "./outpace sql &quot;SELECT kind, name, hash FROM content&quot; --db repeat.db");
    holds(page, "<li><a href=\"#Verdict\">Verdict</a>"); // the contents, and where they lead
    holds(page, "<li class=figure><a href=\"#slowdown\">Slowdown of a step");
    holds(page, "<section id=\"Verdict\" aria-labelledby=\"Verdict-title\">\n<h2 id=\"Verdict-title\">");
    holds(page, "<figure id=\"slowdown\" class=chart>");
    assert_true(strstr(page, "</nav>") < strstr(page, "<h2"));
    ids_are_unique(page);
    mem_free(page);
}

// It needs no gnuplot, and a cell of the surface has the least that the machine allows: 32 rows at
// context 25.
static void html_alone(void **state) {
    Error e = {0};
    size_t size;
    ReportOptions o = {.format = PAGE_HTML, .gnuplot = "/no/gnuplot", .computed = plot_computed};
    Store *s = store_open(folder_path(*state, "plain.db"), STORE_READ, NULL, &e);
    if (!s || !write_report(s, PLOT_SURFACE, &o, folder_path(*state, "alone.html"), &e))
        fail_msg("%s", e.text);
    store_close(s);
    char *page = scratch_read(*state, "alone.html", &size);
    holds(
        page,
        "\"columns\":[\"x\",\"y\",\"value\",\"label_x\",\"label_y\",\"low\",\"high\",\"floor\",\"ms\",\"n\","
        "\"doubtful\",\"step_rows\"]");
    holds(page, "[6,1,1.635,7,2,1.6023,1.6841,1.12,");
    // The same as priced, and the price over it.
    holds(page, "priced by a machine fitted to the steps of the other contexts");
    holds(page, "\"title\":\"priced / measured, batch: small\"");
    // Its axes and lines are those of the figure that 'outpace plot contexts' draws.
    char *chart = strstr(page, "<figure id=\"contexts\"");
    assert_non_null(chart);
    *strstr(chart, "</figure>") = 0;
    holds(chart, "\"x\":\"rows of a step\",\"y\":\"context, tokens\",");
    holds(chart, "\"levels\":[1.1,1.5,2],");
    mem_free(page);
}

// Relative luminance and contrast as of WCAG 2.
static double luminance(unsigned colour) {
    static const double WEIGHTS[] = {0.2126, 0.7152, 0.0722};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        double c = (colour >> (16 - 8 * i) & 0xff) / 255.0;
        sum += WEIGHTS[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static unsigned colour_of(const char *root, const char *name) {
    char key[32];
    unsigned colour = 0;
    snprintf(key, sizeof key, "--%s: #", name);
    const char *at = strstr(root, key);
    if (!at || sscanf(at + strlen(key), "%6x", &colour) != 1) fail_msg("page.css lacks the colour %s", name);
    return colour;
}

// Every text of a light page, of a dark one and on paper is legible on what is behind it.
static void contrast(void **state) {
    (void)state;
    static const char *const TEXTS[][2] = {{"ink", "paper"},   {"faint", "paper"},    {"faint", "band"},
                                           {"ink", "band"},    {"good", "good-band"}, {"bad", "bad-band"},
                                           {"ink", "bad-band"}};
    int roots = 0;
    for (const char *root = report_css; (root = strstr(root, ":root {")); root++, roots++)
        for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
            double a = luminance(colour_of(root, TEXTS[i][0])), b = luminance(colour_of(root, TEXTS[i][1]));
            double ratio = (fmax(a, b) + 0.05) / (fmin(a, b) + 0.05);
            if (ratio < 4.5)
                fail_msg("set %d of page.css: %s on %s has a contrast of %.2f, wanted 4.5", roots,
                         TEXTS[i][0], TEXTS[i][1], ratio);
        }
    assert_int_equal(roots, 3);
}

// --- failures --------------------------------------------------------------------------------------------

// Four times as many prompts, with samples like those that there are.
#define TWELVE_PROMPTS                                                                                     \
    "INSERT INTO prompt (dataset_id, number, turn) SELECT dataset_id, number + 3 * n, turn FROM prompt"    \
    " JOIN (SELECT 1 AS n UNION VALUES (2), (3)) ORDER BY n;"                                              \
    "INSERT INTO sample (point_id, pass, prompt_id, attempt_id, position, started, flags, prompt_tokens,"  \
    " tokens, steps, prefill_tokens, prefill_steps, filling_steps, accepted, prefill_ns, decode_ns)"       \
    " SELECT point_id, pass, more.id, attempt_id, position, started, flags, prompt_tokens, tokens, steps," \
    " prefill_tokens, prefill_steps, filling_steps, accepted, prefill_ns, decode_ns FROM sample"           \
    " JOIN prompt ON prompt.id = prompt_id JOIN prompt AS more ON more.dataset_id = prompt.dataset_id"     \
    " AND more.number % 3 = prompt.number AND more.number > 2;"

// The kind of the first verdict on the dataset, and its words, after a change of the store.
static void verdict_is(Store *s, const char *change, const char *kind, const char *words) {
    Error e = {0};
    if (!sql_script(s, change, &e)) fail_msg("%s", e.text);
    Rows *r = rows_named(s, report_sql, "verdict", 0, &e);
    if (!r) fail_msg("%s", e.text);
    rows_bind_int(r, 1, PLOT_SWEEP);
    while (rows_next(r) && strncmp(rows_text(r, 0), "small, chat", 11) != 0) {}
    if (strcmp(rows_text(r, 2), kind) != 0 || !strstr(rows_text(r, 1), words))
        fail_msg("wanted %s, '%s', got %s, '%s'", kind, words, rows_text(r, 2), rows_text(r, 1));
    assert_true(rows_end(r, true, &e));
}

// A finding is green. What few samples, a disturbed machine or a disturbed baseline may have made is none.
static void verdicts(void **state) {
    Error e = {0};
    const char *path = folder_path(*state, "verdict.db");
    plot_store_make(path, 0);
    Store *s = store_open(path, STORE_WRITE, NULL, &e);
    assert_non_null(s);
    verdict_is(s, "", "open",
               "ngrammys k=5 w=4 strategy=mixed: S = 2.21 [2.18, 2.34] tokens a step over 3 prompts, and "
               "1.68 [1.66, "
               "1.89] times* as fast as its baseline: too few to say, fewer than ten prompts. Lossless");
    verdict_is(
        s, TWELVE_PROMPTS "UPDATE sample SET flags = flags & 16", "finding",
        "S = 2.21 [2.18, 2.34] tokens a step over 12 prompts, and 1.68 [1.66, 1.89] times as fast as its "
        "baseline, the fastest. Loss");
    verdict_is(
        s, "UPDATE sample SET flags = flags | 8 WHERE prompt_id % 3 = 0", "open",
        "over 12 prompts, and 1.68 [1.66, 1.89] times* as fast as its baseline, the fastest. Lossless");
    verdict_is(s, "UPDATE sample SET flags = flags & 16, decode_ns = iif(point_id = 1, 2, 1) * decode_ns",
               "open", "over 12 prompts, and it seems 3.37");
    verdict_is(
        s, "", "open",
        "baseline: nothing can be said. In doubt: speedup is 1.52 times S: its baseline was disturbed.");
    store_close(s);
}

// Behind the figures; memory took no time.
static void costs(void **state) {
    Error e = {0};
    const char *path = folder_path(*state, "costs.db");
    plot_store_make(path, 0);
    Store *s = store_open(path, STORE_WRITE, NULL, &e);
    if (!s ||
        !sql_script(s, "INSERT INTO one_off (point_id, name, ns, bytes) VALUES (1, 'state', 0, 9024)", &e))
        fail_msg("%s", e.text);
    store_close(s);
    char *page = report(*state, "costs.db", PLOT_SWEEP, PAGE_HTML, "costs.html");
    holds(page, "<td>memory at its end<td>-<td class=n>9024");
    assert_true(strstr(page, "id=\"Costs-that-come-once-title\"") > strstr(page, "<figure"));
    mem_free(page);
}

// Of a small model at its fastest: tens of thousands of tokens a second are written out, to be compared by
// eye; and where only the interval reaches past 1, that is not taken for slower.
static void fast_and_unsure(void **state) {
    static const char CHANGES[] = TWELVE_PROMPTS
        "UPDATE sample SET decode_ns = decode_ns / 100;"
        "UPDATE sample SET decode_ns = decode_ns / 3 WHERE point_id IN (SELECT id FROM point WHERE "
        "baseline_id IS NULL);"
        "UPDATE estimate SET value = 0.9, low = 0.8, high = 1.1 WHERE metric = 'speedup';";
    Error e = {0};
    plot_store_make(folder_path(*state, "fast.db"), 0);
    Store *s = store_open(folder_path(*state, "fast.db"), STORE_WRITE, NULL, &e);
    if (!s || !sql_script(s, CHANGES, &e)) fail_msg("%s", e.text);
    store_close(s);
    char *page = report(*state, "fast.db", PLOT_SWEEP, PAGE_MD, "fast.md");
    assert_null(strstr(page, "e+0"));
    holds(page, ", the nearest: no method is surely faster.");
    assert_null(strstr(page, "no method is faster"));
    mem_free(page);
}

static void mistakes(void **state) {
    Error e = {0};
    Child c;
    Store *s = store_open(folder_path(*state, "plain.db"), STORE_READ, NULL, &e);
    assert_false(write_report(s, 99, &(ReportOptions){0}, folder_path(*state, "x.html"), &e));
    holds(e.text, "has no run 99");
    assert_false(write_report(s, 1, &(ReportOptions){.format = PAGE_MD, .gnuplot = "/no/gnuplot"},
                              folder_path(*state, "x.md"), &e));
    holds(e.text, "cannot find '/no/gnuplot'");
    store_close(s);
    CHILD_OUTPACE(&c, *state, 2, "report", "--db", "plain.db", "-o", "x.odt");
    holds(text_get(&c.err), "a report cannot be 'odt'");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "report", "--db", "none.db");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "report", "--db", "plain.db", "--run", "grid", "-o", "grid.html");
    assert_string_equal(text_get(&c.out), "grid.html: run 2\n");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "report", "--db", "plain.db", "--run", "grid", "-o", "grid.html"); // its own
    child_release(&c);
    scratch_write(*state, "mine.md", "mine", 4);
    CHILD_OUTPACE(&c, *state, 2, "report", "--db", "plain.db", "--run", "grid", "-o", "mine.md");
    holds(text_get(&c.err), "'mine.md' exists, and this command did not write it");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "report", "--db", "plain.db", "--run", "grid", "-o", "its.md");
    assert_string_equal(text_get(&c.out), "its.md: run 2, with 12 files of figures in its-figures\n");
    child_release(&c);
}

// A disk that is full before the last figure is on it: nothing is.
static void full_disk(void **state) {
    Child c;
    if (!folder_disk(*state, "disk", 40)) skip();
    CHILD_OUTPACE(&c, *state, 1, "report", "--db", "plain.db", "--run", "grid", "-o", "disk/r.md");
    holds(text_get(&c.err), "No space left on device");
    child_release(&c);
    assert_int_equal(folder_count(folder_path(*state, "disk")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markdown),
        cmocka_unit_test(latex),
        cmocka_unit_test(latex_code),
        cmocka_unit_test(latex_compiles),
        cmocka_unit_test(html),
        cmocka_unit_test(html_alone),
        cmocka_unit_test(contrast),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(of_another_engine),
        cmocka_unit_test(without_times),
        cmocka_unit_test(fast_and_unsure),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(costs),
        cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
