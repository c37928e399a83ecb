// Rows become prompts: look-alikes of every format, orders and limits against a slow model, malformed rows
// named by file, line and field; the published files too, if they're next to the checkout.
#include "tests/support/check.h"

#include "datasets/datasets.h"
#include "engine/base/file.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static const DatasetRequest PLAIN = {.name = "own"};

static void parse(Dataset *d, const char *text, const char *place, const DatasetRequest *q) {
    Error e = {0};
    if (!dataset_parse(d, text, strlen(text), place, q, &e))
        fail_msg("%s: wanted prompts, got '%s'", place, e.text);
}

// A row, the only turn that it gives, id, task and reference.
typedef struct {
    const char *format, *row, *turn, *id, *task, *reference;
    bool asks;
} Look;

#define TESTS "\"test_list\": [\"assert f(1) == 2\", \"assert f(2) == 3\"]"
#define ASKED                                                                                           \
    "You are an expert Python programmer, and here is your task: Add one. Your code should pass these " \
    "tests:\n\n"                                                                                        \
    "assert f(1) == 2\nassert f(2) == 3\n"
#define CLASS_ROW                                                                                           \
    "{\"task_id\": \"C_0\", \"skeleton\": \"class A:\\n    pass\", \"solution_code\": \"class A: ...\", "   \
    "\"import_statement\": [\"import os\", \"import re\"], \"class_description\": \"    \\\"It.\\\"\\n\", " \
    "\"class_constructor\": \"class A: \\n    def __init__(self):\\n        pass\\n\\n\"}"

static const Look LOOKS[] = {
    {NULL, "{\"prompt\": \"a\\r\\n\\u00e9\\ud83d\\ude00\"}", "a\r\n\xC3\xA9\xF0\x9F\x98\x80", "1", "", NULL,
     false},
    {NULL, "{\"prompt\": \"a\", \"id\": 7, \"task\": \"t\", \"reference\": \"r\"}", "a", "7", "t", "r",
     false},
    {NULL, "{\"turns\": [\"a\"], \"id\": \"x\", \"reference\": [\"r\"]}", "a", "x", "", "r", true},
    {NULL, "{\"question_id\": 81, \"category\": \"math\", \"turns\": [\"a\"], \"reference\": [[\"r\"]]}", "a",
     "81", "math", "r", true},
    {NULL, "{\"task_id\": \"H/0\", \"prompt\": \"def f():\\n\", \"canonical_solution\": \"    return 1\\n\"}",
     "def f():\n", "H/0", "code", "    return 1\n", false},
    {"humaneval:ouroboros",
     "{\"task_id\": \"H/0\", \"prompt\": \"def f():\\n\", \"canonical_solution\": \"r\"}",
     "Please complete the following Python code without providing any additional tasks such as testing or "
     "explanations\ndef f():\n",
     "H/0", "code", "r", false},
    {NULL, "{\"task_id\": 11, \"text\": \"Add one.\", \"code\": \"r\", " TESTS "}", ASKED, "11", "code", "r",
     true},
    {"mbpp:begin", "{\"task_id\": 11, \"text\": \"Add one.\", \"code\": \"r\", " TESTS "}", ASKED "[BEGIN]\n",
     "11", "code", "r", false},
    {"mbpp:bare", "{\"task_id\": 11, \"text\": \"Add one.\", \"code\": \"r\", " TESTS "}", "Add one.", "11",
     "code", "r", false},
    {NULL, "{\"task_id\": 11, \"prompt\": \"Add one.\", \"code\": \"r\", " TESTS "}", ASKED, "11", "code",
     "r", true},
    {NULL, "{\"question\": \"How many?\", \"answer\": \"2\\n#### 2\"}", "How many?", "1", "mathematics",
     "2\n#### 2", true},
    {"gsm8k:qa", "{\"question\": \"How many?\", \"answer\": \"r\"}", "Question: How many?\nAnswer:", "1",
     "mathematics", "r", false},
    {"gsm8k:ouroboros", "{\"question\": \"How many?\", \"answer\": \"r\"}", "Q: How many?\nA:", "1",
     "mathematics", "r", false},
    {NULL, CLASS_ROW, "class A:\n    pass", "C_0", "code", "class A: ...", false},
    {"classeval:lookahead", CLASS_ROW,
     "import os\nimport re\nclass A:  \n    \"It.\"\n\n    def __init__(self):\n        pass\n\n", "C_0",
     "code", "class A: ...", false},
    {NULL, "{\"id\": \"i\", \"article\": \"News.\", \"highlights\": \"r\"}", "Summarize: News.", "i",
     "summarization", "r", true},
    {"cnndm:ouroboros", "{\"id\": \"i\", \"article\": \"News.\", \"highlights\": \"r\"}",
     "Please summarize the following document within one sentence. Document: News.  Summary: ", "i",
     "summarization", "r", false},
    {NULL, "{\"query\": \"q\", \"docs\": [\"News.\"], \"result\": {\"text\": \"1####r\"}}", "q", "1",
     "summarization", "r", true},
    {"cnndm-llma:bare", "{\"query\": \"q\", \"docs\": [\"News.\"], \"result\": {\"text\": \"r\"}}",
     "Summarize: News.", "1", "summarization", "r", false},
    {NULL, "{\"id\": \"i\", \"document\": \"News.\", \"summary\": \"r\"}",
     "News.\n\nSummarize the above article in 1 sentence.\n", "i", "summarization", "r", true},
    {NULL, "{\"article\": \"q\", \"summary_gt\": \"r\"}", "q", "1", "summarization", "r", false},
    {NULL, "{\"translation\": {\"de\": \"Ja.\", \"en\": \"r\"}}", "Translate German to English: Ja.", "1",
     "translation", "r", true},
    {"wmt:ouroboros", "{\"translation\": {\"de\": \"Ja.\", \"en\": \"r\"}}",
     "Translate this German sentence to English. German: Ja. English: ", "1", "translation", "r", false},
    {NULL,
     "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\": \"a\"}]}",
     "a", "1", "chat", NULL, true},
    {NULL, "{\"instruction\": \"a\", \"input\": \"b\", \"output\": \"r\"}", "a\n\nb", "1", "chat", "r", true},
    {NULL, "{\"instruction\": \"a\", \"input\": \"\", \"output\": \"r\"}", "a", "1", "chat", "r", true},
    {"text", "{\"prompt\": 1", "{\"prompt\": 1", "1", "", NULL, false},
};

static void expect_text(const Look *l, const char *what, const char *got, const char *want) {
    if (strcmp(got, want) != 0) fail_msg("%s: %s: wanted '%s', got '%s'", l->row, what, want, got);
}

static void check_look(const Look *l, const Dataset *d) {
    assert_int_equal(d->count, 1);
    const DatasetPrompt *p = d->prompts;
    assert_int_equal(p->turn_count, 1);
    expect_text(l, "turn", p->turns[0], l->turn);
    expect_text(l, "id", p->id, l->id);
    expect_text(l, "task", p->task, l->task);
    expect_text(l, "prompt", p->asks && dataset_asks(d) ? "asks" : "a text", l->asks ? "asks" : "a text");
    assert_int_equal(p->reference_count, l->reference != NULL);
    if (l->reference) expect_text(l, "reference", p->references[0].text, l->reference);
}

static void look_alikes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof LOOKS / sizeof *LOOKS; i++) {
        Dataset d;
        parse(&d, LOOKS[i].row, "look.jsonl", &(DatasetRequest){.name = "own", .format = LOOKS[i].format});
        check_look(&LOOKS[i], &d);
        dataset_release(&d);
    }
}

static void lines_arrays_and_space(void **state) {
    (void)state;
    static const char *const same[] = {
        "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n",
        "\xEF\xBB\xBF{\"prompt\": \"a\"}\r\n\r\n  \n{\"prompt\": \"b\"}",
        " [{\"prompt\": \"a\"},\n {\"prompt\": \"b\"}]\n",
    };
    for (size_t i = 0; i < 3; i++) {
        Dataset d;
        parse(&d, same[i], "same", &PLAIN);
        assert_int_equal(d.count, 2);
        assert_string_equal(d.prompts[0].turns[0], "a");
        assert_string_equal(d.prompts[1].turns[0], "b");
        assert_int_equal(d.prompts[1].row, i == 1 ? 4 : 2);
        dataset_release(&d);
    }
    Dataset d;
    parse(&d, "one\r\n\n[two\n", "own.txt", &PLAIN);
    assert_int_equal(d.count, 2);
    assert_string_equal(d.prompts[0].turns[0], "one");
    assert_string_equal(d.prompts[1].turns[0], "[two");
    dataset_release(&d);
}

// The same rows in every kind of file that has columns; an empty field is absent.
static void separated(void **state) {
    (void)state;
    static const char *const same[][2] = {
        {"{\"id\": \"x\", \"prompt\": \"a, \\\"b\\\"\\nc\", \"reference\": \"\\u00fc\"}\n"
         "{\"prompt\": \"d\", \"id\": \"3\", \"reference\": \"e\"}",
         "a.jsonl"},
        {"id,prompt,reference\nx,\"a, \"\"b\"\"\nc\",\xC3\xBC\n3,d,e", "a"},
        {"\xEF\xBB\xBF\"prompt\",\"reference\",,\"id\"\r\n\"a, "
         "\"\"b\"\"\nc\",\xC3\xBC,9,\"x\"\r\n\r\nd,e,9,3\r\n",
         "a.CSV"},
        {"prompt\treference\tid\n\"a, \"\"b\"\"\nc\"\t\xC3\xBC\tx\nd\te\t3\n", "a.tsv.gz"},
    };
    Dataset first;
    parse(&first, same[0][0], same[0][1], &PLAIN);
    assert_string_equal(first.prompts[0].turns[0], "a, \"b\"\nc");
    for (size_t i = 1; i < 4; i++) {
        Dataset d;
        parse(&d, same[i][0], same[i][1], &PLAIN);
        assert_string_equal(d.sha256, first.sha256);
        assert_int_equal(d.prompts[1].row, i == 2 ? 5 : 4); // the line where it begins
        dataset_release(&d);
    }
    dataset_release(&first);
    parse(&first, "prompt,reference\na,\nb,\"\"\n", "b.csv", &PLAIN);
    assert_int_equal(first.count, 2);
    assert_int_equal(first.prompts[0].reference_count, 0);
    dataset_release(&first);
}

// The user's turns only; a conversation without any is left out.
static void conversations(void **state) {
    (void)state;
    static const char ROWS[] =
        "[{\"id\": \"x\", \"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", "
        "\"value\": \"b\"}, {\"from\": \"user\", \"value\": \"c\"}, {\"from\": \"human\", \"value\": "
        "\"\"}]},\n"
        "{\"id\": \"y\", \"conversations\": []},\n"
        "{\"conversations\": [{\"from\": \"human\", \"value\": \"d\"}]} ]\n";
    Dataset d;
    parse(&d, ROWS, "sharegpt.json", &PLAIN);
    assert_int_equal(d.count, 2);
    assert_int_equal(d.prompts[0].turn_count, 2);
    assert_string_equal(d.prompts[0].turns[1], "c");
    assert_string_equal(d.prompts[0].task, "chat");
    assert_string_equal(d.prompts[1].id, "3");
    dataset_release(&d);
    parse(&d, "{\"prompt\": \"own\", \"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", "own",
          &PLAIN);
    assert_string_equal(d.prompts[0].turns[0], "own"); // rows of our own keys remain so
    dataset_release(&d);
}

// References of an answer: an item per turn, several if there is one turn.
static void references_of_turns(void **state) {
    (void)state;
    static const char ROWS[] =
        "{\"question_id\": 1, \"category\": \"c\", \"turns\": [\"a\", \"b\"], \"reference\": [\"\", "
        "\"second\"]}\n"
        "{\"question_id\": 2, \"category\": \"c\", \"turns\": [\"a\", \"b\"], \"reference\": [\"x\", "
        "\"y\"]}\n"
        "{\"question_id\": 3, \"category\": \"c\", \"turns\": [\"a\"], \"reference\": [[\"x\", \"y\"]]}\n"
        "{\"question_id\": 4, \"category\": \"c\", \"turns\": [\"a\"], \"reference\": [\"x\", \"y\"]}\n";
    static const int turns[] = {1, 0, 1, 0, 0, 0, 0};
    Dataset d;
    int n = 0;
    parse(&d, ROWS, "rows", &PLAIN);
    for (size_t i = 0; i < d.count; i++)
        for (int k = 0; k < d.prompts[i].reference_count; k++)
            assert_int_equal(d.prompts[i].references[k].turn, turns[n++]);
    assert_int_equal(n, 7);
    dataset_release(&d);
    parse(&d, ROWS, "rows", &(DatasetRequest){.name = "own", .turns = 1});
    assert_int_equal(d.prompts[0].turn_count, 1);
    assert_int_equal(d.prompts[0].reference_count, 0);
    assert_int_equal(d.prompts[1].reference_count, 1);
    dataset_release(&d);
}

// A text and what its message must hold.
static void malformed(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        {"", NULL, "'bad' has no rows"},
        {"\n \n", NULL, "'bad' has no rows"},
        {"{\"prompt\": \"a\"}\nhello", NULL, "'bad', line 2, column 5: is not JSON"},
        {"{\"prompt\": \"a\"}\n\n{\"prompt\": 3.5}", NULL, "'bad', line 3: field 'prompt' must be"},
        {"{\"prompt\": \"a\"}\n{\"promt\": \"b\"}", NULL, "'bad', line 2: field 'prompt' is missing"},
        {"{\"prompt\": \"\"}", NULL, "'bad', line 1: field 'prompt' is empty"},
        {"{\"prompt\": \"a\", \"prompt\": \"b\"}", NULL, "duplicate"},
        {"{\"prompt\": \"a\\u0000b\"}", NULL, "line 1"},
        {"{\"prompt\": \"\\ud800\"}", NULL, "line 1"},
        {"{\"prompt\": \"\xC3\"}", NULL, "line 1"},
        {"{\"prompt\": 5}", NULL, "'bad', line 1: field 'prompt' is a number, must be a string"},
        {"{\"prompt\": \"a\"}\n{\"prompt\": \"b\\u0000\"}", NULL, "is not JSON: the character \\u0000"},
        {"PAR1\x15\x04", NULL, "'bad' is a Parquet file without an end: it is cut short; fetch it again"},
        {"ARROW1", NULL, "'bad' is an Arrow file, which is not read: make it Parquet, as by: python3"},
        {"PK\3\4", NULL, "'bad' is a zip archive"},
        {"id,prompt\n1,hello\n2\n", NULL, "'bad', line 3: has 1 fields, the first line names 2"},
        {"id,prompt\n1,\"hello\n\n", NULL, "'bad', line 2: has a quote that is not closed"},
        {"id,prompt\n1,\"a\nb\"c\n", NULL, "'bad', line 3: has text after a quoted field"},
        {"id,prompt,id\n", NULL, "'bad', line 1: names the column 'id' twice"},
        {"id,prompt\n1,\xFF\n", NULL, "'bad', line 2: is not text in UTF-8"},
        {"id,prompt\n1,a\n2,\n", NULL, "'bad', line 3: field 'prompt' is missing"},
        {"id,prompt\n", NULL, "'bad' has no rows"},
        {"what, if anything, is this\n", NULL, "'bad', line 1, column 4: is not JSON"},
        {"{\"question_id\": 1, \"category\": \"c\", \"turns\": [\"a\"]}\n"
         "{\"question_id\": 2, \"category\": \"c\", \"turns\": [\"FULL BENCHMARK DATA SHOULD BE FETCHED FROM "
         "THE "
         "SOURCE USING SPECDEC_BENCH\"]}",
         NULL,
         "'bad', line 2: field 'turns' holds SPEED-Bench's placeholder, not a prompt: make the whole file "
         "with"},
        {"{\"conversations\": [\"a\"]}", NULL,
         "field 'conversations' must be a list of turns, each with its"},
        {"{\"conversations\": [{\"from\": \"human\", \"value\": 7}]}", NULL, "must be a list of turns, each"},
        {"{\"conversations\": 7}", NULL, "field 'conversations' must be a list of at most 1024 turns"},
        {"{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}", NULL, "'bad' has no rows"},
        {"7", NULL, "'bad', line 1: must be a JSON object"},
        {"[{\"prompt\": \"a\"}, 7]", NULL, "'bad', row 2: must be a JSON object"},
        {"[{\"prompt\": \"a\"}", NULL, "'bad', after row 1: has neither ',' nor ']': is the file cut short?"},
        {"[{\"prompt\": \"a\"}, {\"prompt\":]", NULL, "'bad', row 2, line 1 of it: is not JSON"},
        {"[{\"prompt\": \"a\"},]", NULL, "'bad', row 2: must be a JSON object"},
        {"[{\"prompt\": \"a\"}] []", NULL, "'bad', after row 1: has more after the array's end"},
        {"[", NULL, "'bad', row 1"},
        {"[]", NULL, "'bad' has no rows"},
        {"{\"turns\": []}", NULL, "field 'turns' must be a list"},
        {"{\"turns\": [\"a\", 7]}", NULL, "field 'turns' must be a list"},
        {"{\"turns\": [\"a\", \"\"]}", NULL, "field 'turns' is empty"},
        {"{\"turns\": \"a\"}", NULL, "field 'turns' must be a list"},
        {"{\"prompt\": \"a\", \"id\": [1]}", NULL, "field 'id' must be a string"},
        {"{\"prompt\": \"a\", \"id\": \"\"}", NULL, "field 'id' is empty"},
        {"{\"prompt\": \"a\", \"reference\": 7}", NULL, "field 'reference' must be"},
        {"{\"prompt\": \"a\", \"reference\": [[7]]}", NULL, "field 'reference' must be"},
        {"{\"prompt\": \"a\", \"id\": \"x\"}\n{\"prompt\": \"b\", \"id\": \"x\"}", NULL,
         "rows at 1 and 2 have the same id 'x'"},
        {"{\"question\": \"q\", \"answer\": \"a\"}\n{\"question\": \"q\"}", NULL,
         "line 2: field 'answer' is missing; a row of the format gsm8k has question answer"},
        {"{\"prompt\": \"a\"}", "gsm8k", "field 'question' is missing"},
        {"{\"prompt\": \"a\"}", "gsm9k", "did you mean 'gsm8k'"},
        {"{\"question\": \"q\", \"answer\": \"a\"}", "gsm8k:qb", "no frame 'qb'; it has 'qa'"},
        {"{\"prompt\": \"a\"}", "jsonl:qa", "leave ':qa' away"},
        {"{\"translation\": {\"de\": \"a\"}}", "wmt", "field 'translation/en' is missing"},
        {"a\nb\xFF\n", "text", "'bad', line 2: is not text in UTF-8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Dataset d;
        Error e = {0};
        DatasetRequest q = {.name = "own", .format = rows[i][1], .limit = 1};
        if (dataset_parse(&d, rows[i][0], strlen(rows[i][0]), "bad", &q, &e))
            fail_msg("%s: was taken", rows[i][0]);
        if (!strstr(e.text, rows[i][2]))
            fail_msg("%s: wanted '%s', got '%s'", rows[i][0], rows[i][2], e.text);
        assert_int_equal(e.kind, ERROR_INPUT);
        assert_null(d.prompts);
        dataset_release(&d);
    }
    Dataset d;
    Error e = {0};
    assert_false(dataset_parse(&d, "a\0b", 3, "bad", &(DatasetRequest){.name = "own", .format = "text"}, &e));
    assert_non_null(strstr(e.text, "line 1: is not text"));
}

static void splits(void **state) {
    (void)state;
    static const char OWN[] = "{\"prompt\": \"a\", \"split\": \"x\"}\n{\"prompt\": \"b\", \"split\": \"y\"}";
    static const char MBPP[] = "{\"task_id\": 10, \"text\": \"t\", \"code\": \"c\", \"test_list\": []}\n"
                               "{\"task_id\": 11, \"text\": \"t\", \"code\": \"c\", \"test_list\": []}\n"
                               "{\"task_id\": 511, \"text\": \"t\", \"code\": \"c\", \"test_list\": []}\n";
    Dataset d;
    Error e = {0};
    parse(&d, OWN, "own", &(DatasetRequest){.name = "own", .split = "y"});
    assert_int_equal(d.count, 1);
    assert_string_equal(d.prompts[0].turns[0], "b");
    dataset_release(&d);
    parse(&d, MBPP, "mbpp", &(DatasetRequest){.name = "own", .split = "test"});
    assert_int_equal(d.count, 1);
    assert_string_equal(d.prompts[0].id, "11");
    dataset_release(&d);
    assert_false(
        dataset_parse(&d, OWN, strlen(OWN), "own", &(DatasetRequest){.name = "own", .split = "z"}, &e));
    assert_non_null(strstr(e.text, "no row of the split 'z'"));
    assert_false(
        dataset_parse(&d, MBPP, strlen(MBPP), "m", &(DatasetRequest){.name = "own", .split = "tset"}, &e));
    assert_non_null(strstr(e.text, "no split 'tset'"));
}

// Rows after the limit are checked, ids too, but not kept.
static void rows_after_the_limit(void **state) {
    (void)state;
    enum { ROWS = 1000 };
    static char text[16 * ROWS], rows[64 * ROWS];
    size_t a = 0, b = 0;
    Dataset d;
    for (int i = 0; i < ROWS; i++) {
        a += (size_t)snprintf(text + a, sizeof text - a, "text %d\n", i);
        b += (size_t)snprintf(rows + b, sizeof rows - b, "{\"id\": \"a%d\", \"prompt\": \"p%d\"}\n", i, i);
    }
    parse(&d, text, "text", &(DatasetRequest){.name = "own", .format = "text", .limit = 2});
    if (d.count != 2 || d.capacity > ROWS / 4) fail_msg("%zu of %zu prompts kept", d.count, d.capacity);
    assert_string_equal(d.prompts[1].turns[0], "text 1");
    dataset_release(&d);
    parse(&d, rows, "rows", &(DatasetRequest){.name = "own", .limit = 2});
    assert_int_equal(d.count, 2);
    assert_string_equal(d.prompts[1].id, "a1");
    dataset_release(&d);
    Error e = {0};
    snprintf(rows + b, sizeof rows - b, "{\"id\": \"a%d\", \"prompt\": \"again\"}\n", ROWS - 2);
    assert_false(
        dataset_parse(&d, rows, strlen(rows), "rows", &(DatasetRequest){.name = "own", .limit = 2}, &e));
    if (!strstr(e.text, "the rows at 999 and 1001 have the same id 'a998'")) fail_msg("%s", e.text);
}

// 30 rows of three tasks, the n-th of task n % 3 or so.
static void make_rows(char *out, size_t size) {
    size_t n = 0;
    for (int i = 0; i < 30; i++)
        n += (size_t)snprintf(out + n, size - n, "{\"prompt\": \"p%d\", \"id\": %d, \"task\": \"t%d\"}\n", i,
                              i, i < 20 ? i % 2 : 2);
}

static int id_of(const Dataset *d, size_t i) { return (int)strtol(d->prompts[i].id, NULL, 10); }

static void orders(void **state) {
    (void)state;
    char rows[4096];
    Dataset a, b, c;
    make_rows(rows, sizeof rows);
    DatasetRequest q = {.name = "own", .order = ORDER_SHUFFLED, .seed = 1};
    parse(&a, rows, "rows", &q);
    q.limit = 7;
    parse(&b, rows, "rows", &q);
    assert_int_equal(b.count, 7);
    for (size_t i = 0; i < 7; i++) assert_int_equal(id_of(&a, i), id_of(&b, i));
    bool seen[30] = {0}, moved = false;
    for (size_t i = 0; i < 30; i++) {
        assert_false(seen[id_of(&a, i)]);
        seen[id_of(&a, i)] = true;
        moved |= id_of(&a, i) != (int)i;
    }
    assert_true(moved);
    q.seed = 2;
    parse(&c, rows, "rows", &q);
    assert_string_not_equal(b.sha256, c.sha256);
    dataset_release(&c);
    q.order = ORDER_FIRST_SHUFFLED; // the first seven as written, in another order
    parse(&c, rows, "rows", &q);
    assert_int_equal(c.count, 7);
    int sum = 0, in_place = 0;
    for (size_t i = 0; i < 7; i++) {
        sum += 1 << id_of(&c, i);
        in_place += id_of(&c, i) == (int)i;
    }
    assert_int_equal(sum, 127);
    assert_true(in_place < 7);
    dataset_release(&a);
    dataset_release(&b);
    dataset_release(&c);
}

// The same prompts as where the parts take turns, so that the order alone differs.
static void first_of_parts_shuffled(void **state) {
    (void)state;
    static const char *const parts[] = {"code", "mathematics", "chat"};
    DatasetRequest q = {.name = "mix", .parts = parts, .part_count = 3, .limit = 5, .order = ORDER_BY_TASK};
    Dataset turns, shuffled;
    size_t in_place = 0;
    Error e = {0};
    if (!dataset_open(&turns, &q, &e)) fail_msg("%s", e.text);
    q.order = ORDER_FIRST_SHUFFLED;
    q.seed = 1;
    if (!dataset_open(&shuffled, &q, &e)) fail_msg("%s", e.text);
    assert_int_equal(turns.count, 15);
    assert_int_equal(shuffled.count, 15);
    for (size_t i = 0; i < 15; i++) {
        size_t k = 0;
        while (k < 15 && strcmp(turns.prompts[i].id, shuffled.prompts[k].id) != 0) k++;
        assert_true(k < 15);
        in_place += k == i;
    }
    assert_true(in_place < 15);
    dataset_release(&turns);
    dataset_release(&shuffled);
}

// The slow model: walk over the tasks, each time take the next rows of the task that were not taken.
static void turns_of_tasks(void **state) {
    (void)state;
    char rows[4096];
    make_rows(rows, sizeof rows);
    for (int consecutive = 0; consecutive <= 11; consecutive++) {
        Dataset d;
        bool taken[30] = {0};
        size_t n = 0;
        parse(&d, rows, "rows",
              &(DatasetRequest){.name = "own", .order = ORDER_BY_TASK, .consecutive = consecutive});
        while (n < 30)
            for (int task = 0; task < 3; task++) {
                int left = consecutive ? consecutive : 30;
                for (int i = 0; i < 30 && left > 0; i++) {
                    if (taken[i] || (i < 20 ? i % 2 : 2) != task) continue;
                    taken[i] = true;
                    left--;
                    assert_int_equal(id_of(&d, n++), i);
                }
            }
        dataset_release(&d);
    }
}

static void one_task_takes_no_turns(void **state) {
    (void)state;
    static const char rows[] = "{\"prompt\": \"a\", \"task\": \"t\"}\n{\"prompt\": \"b\", \"task\": \"t\"}\n";
    DatasetRequest q = {.name = "own", .order = ORDER_BY_TASK, .consecutive = 1};
    Dataset d;
    Error e = {0};
    assert_false(dataset_parse(&d, rows, sizeof rows - 1, "rows", &q, &e));
    assert_string_equal(e.text, "all prompts of 'own' are of one task: nothing can take turns by task");
}

static void hash_of_what_is_loaded(void **state) {
    (void)state;
    static const char *const differ[] = {
        "{\"prompt\": \"a\"}",
        "{\"prompt\": \"b\"}",
        "{\"prompt\": \"a\", \"id\": \"2\"}",
        "{\"prompt\": \"a\", \"task\": \"t\"}",
        "{\"prompt\": \"a\", \"reference\": \"r\"}",
        "{\"turns\": [\"a\", \"a\"]}",
    };
    Dataset list[6], other;
    for (size_t i = 0; i < 6; i++) {
        parse(&list[i], differ[i], "place", &PLAIN);
        for (size_t k = 0; k < i; k++) assert_string_not_equal(list[i].sha256, list[k].sha256);
    }
    parse(&other, " {\"extra\": 1, \"prompt\":\"a\"}\n\n", "other", &PLAIN);
    assert_string_equal(other.sha256, list[0].sha256);
    dataset_release(&other);
    for (size_t i = 0; i < 6; i++) dataset_release(&list[i]);
}

// A file of the user's own is its bytes, whatever it is called; with its name it is what older programs wrote
// down.
static void hash_of_a_file(void **state) {
    static const char ROWS[] = "one\ntwo\n";
    Dataset list[2];
    const char *const NAMES[2] = {"a.txt", "b.txt"};
    for (int i = 0; i < 2; i++) {
        Error e = {0};
        scratch_write(*state, NAMES[i], ROWS, sizeof ROWS - 1);
        DatasetRequest q = {.name = NAMES[i], .path = folder_path(*state, NAMES[i])};
        if (!dataset_open(&list[i], &q, &e)) fail_msg("%s", e.text);
    }
    assert_string_equal(list[0].sha256, list[1].sha256);
    assert_string_not_equal(list[0].named_sha256, list[1].named_sha256);
    for (int i = 0; i < 2; i++) dataset_release(&list[i]);
    parse(&list[0], ROWS, "a.txt", &(DatasetRequest){.name = "chat"});
    parse(&list[1], ROWS, "a.txt", &(DatasetRequest){.name = "code"});
    assert_string_not_equal(list[0].sha256, list[1].sha256); // known sets: the name is content
    assert_string_equal(list[0].sha256, list[0].named_sha256);
    for (int i = 0; i < 2; i++) dataset_release(&list[i]);
}

static size_t compress_to(unsigned char *out, size_t most, const void *bytes, size_t n) {
    z_stream s = {0};
    assert_int_equal(deflateInit2(&s, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
    s.next_in = (Bytef *)(uintptr_t)bytes;
    s.avail_in = (uInt)n;
    s.next_out = out;
    s.avail_out = (uInt)most;
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    deflateEnd(&s);
    return s.total_out;
}

static void compressed(void **state) {
    (void)state;
    static const char first[] = "{\"prompt\": \"a\"}\n", second[] = "{\"prompt\": \"b\"}\n";
    unsigned char gz[512];
    size_t n = compress_to(gz, sizeof gz, first, sizeof first - 1);
    size_t both = n + compress_to(gz + n, sizeof gz - n, second, sizeof second - 1);
    Dataset d;
    Error e = {0};
    if (!dataset_parse(&d, (char *)gz, both, "two.gz", &PLAIN, &e)) fail_msg("%s", e.text);
    assert_int_equal(d.count, 2);
    dataset_release(&d);
    for (size_t cut = 3; cut < n; cut++) { // any cut is seen
        if (dataset_parse(&d, (char *)gz, cut, "cut.gz", &PLAIN, &e))
            fail_msg("cut to %zu of %zu: was taken", cut, n);
        if (!strstr(e.text, "fetch it again")) fail_msg("cut to %zu: got '%s'", cut, e.text);
    }
    for (size_t i = 10; i < n; i++) { // any changed byte of the data or its check sum too
        gz[i] ^= 0x55;
        assert_false(dataset_parse(&d, (char *)gz, n, "bad.gz", &PLAIN, &e));
        gz[i] ^= 0x55;
    }
}

// A thousand times its size: refused by its real size, not by the stated one.
static void bomb(void **state) {
    (void)state;
    enum { BLOCK = 1 << 20, MEMBERS = 300 };
    char *zeros = calloc(BLOCK, 1);
    unsigned char *gz = malloc(BLOCK);
    size_t one = compress_to(gz, BLOCK, zeros, BLOCK), n = one;
    for (; n < MEMBERS * one; n += one) memcpy(gz + n, gz, one);
    assert_true(n < BLOCK / 2);
    Dataset d;
    Error e = {0};
    assert_false(dataset_parse(&d, (char *)gz, n, "bomb.gz", &PLAIN, &e));
    assert_non_null(strstr(e.text, "'bomb.gz' unpacks to more than"));
    free(zeros);
    free(gz);
}

static void files(void **state) {
    const char *folder = *state;
    static const char ROWS[] = "{\"question\": \"q\", \"answer\": \"a\"}\n";
    Dataset d;
    Error e = {0};
    assert_true(file_make_directory(folder_path(folder, "gsm8k"), NULL));
    scratch_write(folder, "gsm8k/train.jsonl", ROWS, sizeof ROWS - 1);
    DatasetRequest q = {.name = "gsm8k:qa", .folder = folder, .split = "train"};
    if (!dataset_open(&d, &q, &e)) fail_msg("%s", e.text);
    assert_string_equal(d.prompts[0].turns[0], "Question: q\nAnswer:");
    assert_string_equal(d.prompts[0].set, "gsm8k:qa");
    dataset_release(&d);
    q.split = NULL;
    assert_false(dataset_open(&d, &q, &e));
    assert_non_null(strstr(e.text, "gsm8k/test.jsonl"));
    scratch_write(folder, "gsm8k/test-00000-of-00001.parquet", "PAR1", 4); // found, by a hub's name
    assert_false(dataset_open(&d, &q, &e));
    assert_non_null(strstr(e.text, "gsm8k/test-00000-of-00001.parquet' is a Parquet file without an end"));
    static const char *const nowhere[] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        q.folder = nowhere[i];
        assert_false(dataset_open(&d, &q, &e));
        assert_non_null(strstr(e.text, "OUTPACE_DATA"));
    }
    assert_false(dataset_open(&d, &(DatasetRequest){.name = "gsm8"}, &e));
    assert_non_null(strstr(e.text, "did you mean 'gsm8k'"));
    assert_false(dataset_open(&d, &(DatasetRequest){.name = "x", .path = "/nowhere/x.jsonl"}, &e));
    assert_non_null(strstr(e.text, "/nowhere/x.jsonl"));
    DatasetRequest own = {
        .name = "x", .path = folder_path(folder, "gsm8k/train.jsonl"), .format = "gsm8k:ouroboros"};
    if (!dataset_open(&d, &own, &e)) fail_msg("%s", e.text);
    assert_string_equal(d.prompts[0].turns[0], "Q: q\nA:");
    dataset_release(&d);
    own = (DatasetRequest){.name = folder_path(folder, "gsm8k/train.jsonl"), .folder = folder};
    if (!dataset_open(&d, &own, &e)) fail_msg("a file by its name: %s", e.text);
    assert_string_equal(d.name, own.name);
    assert_int_equal(d.count, 1);
    dataset_release(&d);
}

// Every published file that is there equals the one in sources.tsv.
static void published(void **state) {
    (void)state;
    static const struct {
        const char *name, *split;
        size_t rows;
    } files[] = {{"mt-bench", NULL, 80},
                 {"spec-bench", NULL, 480},
                 {"humaneval", NULL, 164},
                 {"mbpp", NULL, 974},
                 {"mbpp", "test", 500},
                 {"mbpp", "validation", 90},
                 {"mbpp", "train", 374},
                 {"mbpp", "prompt", 10},
                 {"mbpp-sanitized", NULL, 427},
                 {"gsm8k", NULL, 1319},
                 {"gsm8k", "train", 7473},
                 {"classeval", NULL, 100},
                 {"cnndm-llma", NULL, 100},
                 {"xsum-helm", NULL, 100},
                 {"classeval:lookahead", NULL, 100},
                 {"humaneval:ouroboros", NULL, 164}};
    const char *said = getenv("OUTPACE_DATA"), *folder = said ? said : "../shared/datasets";
    if (!file_exists(folder)) skip();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        Dataset d;
        Error e = {0};
        DatasetRequest q = {.name = files[i].name, .split = files[i].split, .folder = folder};
        if (!dataset_open(&d, &q, &e)) fail_msg("%s: %s", files[i].name, e.text);
        if (d.count != files[i].rows)
            fail_msg("%s: wanted %zu rows, got %zu", files[i].name, files[i].rows, d.count);
        dataset_release(&d);
    }
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(look_alikes),
        cmocka_unit_test(lines_arrays_and_space),
        cmocka_unit_test(separated),
        cmocka_unit_test(conversations),
        cmocka_unit_test(references_of_turns),
        cmocka_unit_test(malformed),
        cmocka_unit_test(splits),
        cmocka_unit_test(rows_after_the_limit),
        cmocka_unit_test(orders),
        cmocka_unit_test(first_of_parts_shuffled),
        cmocka_unit_test(turns_of_tasks),
        cmocka_unit_test(one_task_takes_no_turns),
        cmocka_unit_test(hash_of_what_is_loaded),
        cmocka_unit_test_setup_teardown(hash_of_a_file, folder_setup, folder_teardown),
        cmocka_unit_test(compressed),
        cmocka_unit_test(bomb),
        cmocka_unit_test_setup_teardown(files, folder_setup, folder_teardown),
        cmocka_unit_test(published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
