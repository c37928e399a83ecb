// Rows are kept as lines of text, cell behind cell, each ended by a control character, which no cell holds.
// Widths are known when all rows are there. Columns are left out while even the narrowest foldings do not
// fit; the room that is then left goes to the texts from left to right.
#include "harness/cli/terminal.h"

#include "plots/letters.h"
#include "plots/page.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    CELL_END = '\x1f',
    REST_END = '\x1e',
    HEAD_END = '\x1d',
    GAP = 2,
    NARROWEST = 40,
    USUAL = 80,
    USUAL_HEIGHT = 24
};

int terminal_width(void) {
    struct winsize size;
    if (!isatty(STDOUT_FILENO)) return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return USUAL;
    return size.ws_col < NARROWEST ? NARROWEST : size.ws_col;
}

int terminal_height(void) {
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : USUAL_HEIGHT;
}

// --- letters ---------------------------------------------------------------------------------------------

// Counts each letter as one column.
static int width_of(const char *text, size_t bytes) {
    int width = 0;
    for (size_t i = 0; i < bytes; i++) width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

// Bytes of `text` that go into a line of `width`: up to a blank, or a slash of a path, if there is one, and
// *next those with the blanks behind.
static size_t piece_of(const char *text, size_t bytes, int width, size_t *next) {
    size_t end = 0, blank = 0;
    for (int letters = 0; end < bytes; end++) {
        if (((unsigned char)text[end] & 0xc0) != 0x80 && letters++ == width) break;
        if (end > 0 && ((text[end] == ' ' && text[end - 1] != ' ') || text[end - 1] == '/')) blank = end;
    }
    if (end < bytes && text[end] != ' ' && blank) end = blank;
    if (end == 0 && bytes) end = 1;
    *next = end;
    while (*next < bytes && text[*next] == ' ') ++*next;
    return end;
}

// --- lines -----------------------------------------------------------------------------------------------

static void fold_line(const char *line, size_t bytes, int width, Text *out) {
    size_t indent = 0, next, start = strspn(line, " ");
    // Where the line's last column starts: behind two blanks or more, in its first half.
    for (size_t i = 2; i < bytes && i <= (size_t)width / 2; i++)
        if (line[i] != ' ' && line[i - 1] == ' ' && line[i - 2] == ' ') indent = i;
    int room = width;
    if (start >= bytes) return;
    text_add(out, line, start);
    line += start, bytes -= start, room -= (int)start;
    while (bytes) {
        size_t n = piece_of(line, bytes, room, &next);
        text_add(out, line, n);
        line += next, bytes -= next;
        if (!bytes) break;
        text_printf(out, "\n%*s", (int)indent, "");
        room = width - (int)indent;
    }
}

void terminal_fold(const char *text, int width, Text *out) {
    for (; *text; text += *text != 0) {
        size_t n = strcspn(text, "\n");
        if (width && width_of(text, n) > width) fold_line(text, n, width, out);
        else text_add(out, text, n);
        text += n;
        if (*text) text_puts(out, "\n");
    }
}

// Control characters except ends of lines would move the cursor, or worse.
void terminal_letters(const char *text, Text *out) {
    char letter[LETTER_SIZE];
    while (*text)
        if (*text == '\n') text_add(out, text++, 1);
        else if (letters_next(&text, letter)) text_puts(out, letter);
}

const char *terminal_shown(char out[SHOWN_SIZE], const char *name) {
    char letter[LETTER_SIZE];
    for (size_t n = 0, size; n + LETTER_SIZE <= SHOWN_SIZE && letters_next(&name, letter); n += size)
        memcpy(out + n, letter, (size = strlen(letter)) + 1);
    return out;
}

void terminal_print(Text *text) {
    LOCAL_TEXT letters = {0}, out = {0};
    terminal_letters(text_get(text), &letters);
    terminal_fold(text_get(&letters), terminal_width(), &out);
    fputs(text_get(&out), stdout);
    text_release(text);
}

void terminal_printf(const char *format, ...) {
    Text text = {0};
    va_list list;
    va_start(list, format);
    text_vprintf(&text, format, list);
    va_end(list);
    terminal_print(&text);
}

// --- rows ------------------------------------------------------------------------------------------------

// Appends g->cell and its mark to the rows.
static void take_cell(Grid *g, char mark) {
    char letter[LETTER_SIZE];
    for (const char *at = text_get(&g->cell); letters_next(&at, letter);) text_puts(&g->rows, letter);
    text_add(&g->rows, &mark, 1);
    text_clear(&g->cell);
}

void grid_next(Grid *g) { take_cell(g, CELL_END); }

void grid_end(Grid *g) {
    assert(g->cell.length == 0);
    text_puts(&g->rows, "\n");
}

void grid_rest(Grid *g) {
    take_cell(g, REST_END);
    text_puts(&g->rows, "\n");
}

void grid_heads(Grid *g) {
    for (int i = 0; i < g->count; i++) {
        text_puts(&g->rows, g->columns[i].head);
        text_add(&g->rows, (const char[]){HEAD_END}, 1);
    }
    text_puts(&g->rows, "\n");
}

// One row, cut into its cells.
typedef struct Row {
    struct Cell {
        const char *text;
        size_t bytes;
    } cells[GRID_MOST_COLUMNS + 1];
    int count;     // of cells
    bool has_rest; // the last one is the row's rest
    bool is_head;
} Row;

static bool next_row(const char **at, Row *out) {
    static const char MARKS[] = {CELL_END, REST_END, HEAD_END, '\n', 0};
    *out = (Row){0};
    if (!**at) return false;
    for (; **at != '\n'; ++*at) {
        size_t n = strcspn(*at, MARKS);
        assert(out->count <= GRID_MOST_COLUMNS);
        out->cells[out->count++] = (struct Cell){*at, n};
        *at += n;
        out->has_rest = **at == REST_END;
        out->is_head = **at == HEAD_END;
    }
    ++*at;
    return true;
}

// --- the fit ---------------------------------------------------------------------------------------------

// Widths of the columns as they will be shown; 0: not shown.
static void find_widths(const Grid *g, int widths[GRID_MOST_COLUMNS]) {
    Row row;
    for (const char *at = text_get(&g->rows); next_row(&at, &row);)
        for (int i = 0; !row.is_head && i < row.count - row.has_rest; i++) {
            int width = width_of(row.cells[i].text, row.cells[i].bytes);
            if (width > widths[i]) widths[i] = width;
        }
    for (int i = 0; i < g->count; i++) {
        int head = width_of(g->columns[i].head, strlen(g->columns[i].head));
        if (widths[i] && widths[i] < head) widths[i] = head;
    }
}

static int narrowest(const GridColumn *c, int width) {
    return c->least && c->least < width ? c->least : width;
}

static int total_of(const Grid *g, const int widths[GRID_MOST_COLUMNS], bool folded) {
    int total = -GAP;
    for (int i = 0; i < g->count; i++)
        if (widths[i]) total += GAP + (folded ? narrowest(&g->columns[i], widths[i]) : widths[i]);
    return total;
}

static void fit(const Grid *g, int width, int widths[GRID_MOST_COLUMNS], bool dropped[GRID_MOST_COLUMNS]) {
    for (int at = 0; at >= 0 && total_of(g, widths, true) > width;) {
        at = -1;
        for (int i = 0; i < g->count; i++)
            if (widths[i] && g->columns[i].drop > 0 && (at < 0 || g->columns[i].drop < g->columns[at].drop))
                at = i;
        if (at >= 0) widths[at] = 0, dropped[at] = true;
    }
    int room = width - total_of(g, widths, true);
    for (int i = 0; i < g->count; i++) {
        int least = narrowest(&g->columns[i], widths[i]), more = widths[i] - least;
        if (more > room) more = room > 0 ? room : 0;
        widths[i] = least + more;
        room -= more;
    }
}

// --- printing --------------------------------------------------------------------------------------------

// Appends the next line of each cell of a row; false if no cell had text left.
static bool put_line(const Grid *g, Row *row, const int widths[GRID_MOST_COLUMNS], Text *out) {
    int blanks = 0, cells = row->count - row->has_rest; // blanks go before the next text: none ends a line
    bool any = false;
    for (int i = 0; i < cells; i++) any = any || (widths[i] && row->cells[i].bytes);
    for (int i = 0; any && i < cells; i++) {
        struct Cell *c = &row->cells[i];
        size_t next, n = widths[i] ? piece_of(c->text, c->bytes, widths[i], &next) : 0;
        int own = width_of(c->text, n), before = g->columns[i].number ? widths[i] - own : 0;
        if (!widths[i]) continue;
        if (n) {
            text_printf(out, "%*s", blanks + before, "");
            text_add(out, c->text, n);
            blanks = widths[i] - own - before + GAP;
        } else blanks += widths[i] + GAP;
        c->text += next, c->bytes -= next;
    }
    return any;
}

// A rest is folded in its place, or under the row if there is no room.
static void put_rest(const Row *row, int width, const int widths[GRID_MOST_COLUMNS], int written, Text *out) {
    enum { UNDER = 7 };
    const char *text = row->cells[row->count - 1].text;
    size_t bytes = row->cells[row->count - 1].bytes, next;
    int indent = 0;
    for (int i = 0; i < row->count - 1; i++) indent += widths[i] ? widths[i] + GAP : 0;
    if (width && width - indent < NARROWEST / 2) {
        text_puts(out, "\n");
        indent = UNDER, written = 0;
    }
    text_printf(out, "%*s", indent - written, "");
    while (bytes) {
        text_add(out, text, piece_of(text, bytes, width ? width - indent : (int)bytes, &next));
        text += next, bytes -= next;
        if (bytes) text_printf(out, "\n%*s", indent, "");
    }
    text_puts(out, "\n");
}

static void put_row(const Grid *g, Row *row, int width, const int widths[GRID_MOST_COLUMNS], Text *out) {
    size_t from = out->length;
    bool more = put_line(g, row, widths, out);
    if (row->has_rest) {
        put_rest(row, width, widths, width_of(text_get(out) + from, out->length - from), out);
        return;
    }
    text_puts(out, "\n");
    while (more && put_line(g, row, widths, out)) text_puts(out, "\n");
}

void grid_print(const Grid *g, int width, Text *out) {
    int widths[GRID_MOST_COLUMNS] = {0};
    bool dropped[GRID_MOST_COLUMNS] = {0};
    Row row;
    assert(g->count <= GRID_MOST_COLUMNS);
    find_widths(g, widths);
    if (width) fit(g, width, widths, dropped);
    for (const char *at = text_get(&g->rows); next_row(&at, &row);) put_row(g, &row, width, widths, out);
    LOCAL_TEXT line = {0};
    for (int i = 0; i < g->count; i++)
        if (dropped[i])
            text_printf(&line, "%s%s", line.length ? ", " : "left out of this width: ", g->columns[i].head);
    if (line.length) text_puts(&line, "; a pipe gets all columns: '... | less -S'\n");
    terminal_fold(text_get(&line), width, out);
}

// In LaTeX a longer cell takes several lines.
void grid_page(const Grid *g, const Page *p, const char *caption) {
    enum { MOST_LETTERS = 30 };
    PageColumn columns[GRID_MOST_COLUMNS];
    int widths[GRID_MOST_COLUMNS] = {0}, count = 0;
    Row row;
    find_widths(g, widths);
    for (int i = 0; i < g->count; i++) {
        const GridColumn *c = &g->columns[i];
        const char *tex = widths[i] > MOST_LETTERS ? "p{30ex}" : c->number ? "r" : "l";
        if (widths[i]) columns[count++] = (PageColumn){c->head, c->number, tex};
    }
    page_table(p, caption, columns, count);
    for (const char *at = text_get(&g->rows); next_row(&at, &row);) {
        int column = 0;
        for (int i = 0; i < row.count && !row.is_head; i++) {
            LOCAL_TEXT cell = {0};
            text_add(&cell, row.cells[i].text, row.cells[i].bytes);
            if (widths[i]) page_cell(p, column++, text_get(&cell), g->columns[i].number);
        }
        if (column) page_end_row(p);
    }
    page_end_table(p);
}

void terminal_coloured(const char *text, Text *out) {
    static const struct {
        const char *word, *colour;
    } WORDS[] = {
        {"NO", "\033[31m"}, {"differ", "\033[31m"}, {"differs", "\033[31m"}, {"disturbed", "\033[2m"}};
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const char *off = getenv("NO_COLOR");
    for (size_t n; *text; text += n) {
        const char *colour = NULL;
        n = strspn(text, LETTERS);
        for (size_t i = 0; n && i < sizeof WORDS / sizeof *WORDS; i++)
            if (strlen(WORDS[i].word) == n && memcmp(WORDS[i].word, text, n) == 0) colour = WORDS[i].colour;
        if (!n) n = strcspn(text, LETTERS);
        bool plain = !colour || (off && *off);
        text_printf(out, "%s%.*s%s", plain ? "" : colour, (int)n, text, plain ? "" : "\033[0m");
    }
}

void grid_show(const Grid *g) {
    LOCAL_TEXT out = {0}, coloured = {0};
    int width = terminal_width();
    grid_print(g, width, &out);
    if (width) terminal_coloured(text_get(&out), &coloured);
    fputs(text_get(width ? &coloured : &out), stdout);
}

void grid_release(Grid *g) {
    text_release(&g->rows);
    text_release(&g->cell);
}
