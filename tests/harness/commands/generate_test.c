// `generate` as a child in a folder of its own: what it prints, how it streams, and what it ends with.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/model/safetensors.h"
#include "engine/text/utf8.h"
#include "tests/support/cli.h"
#include "tests/support/scratch.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *text_of(const json_t *j) { return json_string_value(json_object_get(j, "text")); }
static int int_of(const json_t *j, const char *key) {
    return (int)json_integer_value(json_object_get(j, key));
}

static void expect_equal(const json_t *a, const json_t *b, const char *key, const char *what) {
    const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
    if (json_equal(x, y)) return;
    char *wanted = json_dumps(x, JSON_COMPACT | JSON_ENCODE_ANY),
         *got = json_dumps(y, JSON_COMPACT | JSON_ENCODE_ANY);
    fail_msg("%s: %s: wanted %s, got %s", what, key, wanted, got);
}

// --- what it generates -----------------------------------------------------------------------------------

static void methods_agree(void **state) {
    Cli *cli = *state;
    static const char *const rows[] = {
        "jacobi", "prompt-lookup", "prompt-lookup:allow_short=on --layout batch",
        "jacobi --no-merge --prefill-chunk 3", "oracle:accept=0.6,draft=3,guesses=2"};
    for (int null = 0; null < 2; null++) {
        char line[256];
        snprintf(line, sizeof line, "generate tiny 'a b a b a' -n 80 --json %s", null ? "--device null" : "");
        json_t *want = cli_json(cli, line);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            snprintf(line, sizeof line, "generate tiny 'a b a b a' -n 80 --json %s -m %s",
                     null ? "--device null" : "", rows[i]);
            json_t *got = cli_json(cli, line);
            expect_equal(want, got, "ids", rows[i]);
            expect_equal(want, got, "text", rows[i]);
            json_decref(got);
        }
        json_decref(want);
    }
}

static void threads_agree(void **state) {
    Cli *cli = *state;
    json_t *want = cli_json(cli, "generate tiny 'some text' -n 60 --json --threads 1");
    for (int threads = 2; threads <= 3; threads++) {
        char line[128];
        snprintf(line, sizeof line, "generate tiny 'some text' -n 60 --json --threads %d", threads);
        json_t *got = cli_json(cli, line);
        expect_equal(want, got, "ids", line);
        json_decref(got);
    }
    json_decref(want);
}

static void json(void **state) {
    Cli *cli = *state;
    static const char *const keys[] = {"ids",       "text",         "tokens",    "steps",
                                       "S",         "tokens_per_s", "prefill_s", "propose_s",
                                       "forward_s", "verify_s",     "observe_s"};
    json_t *j = cli_json(cli, "generate tiny hello -n 40 --ignore-eos --json --seed 9223372036854775807");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(j, keys[i]);
        if (!value) fail_msg("there is no key '%s'", keys[i]);
        if (i >= 2 && !(json_number_value(value) > 0)) fail_msg("'%s' is not above 0", keys[i]);
    }
    assert_int_equal(json_array_size(json_object_get(j, "ids")), 40);
    assert_int_equal(int_of(j, "tokens"), 40);
    assert_int_equal(int_of(j, "steps"), 40);
    assert_true(json_real_value(json_object_get(j, "S")) == 1);
    assert_true(json_integer_value(json_object_get(j, "seed")) == INT64_MAX);
    assert_string_equal(json_string_value(json_object_get(j, "ended_by")), "length");
    json_decref(j);
}

// The stream, and the JSON's text, are the same; so are prompts from all their sources.
static void prompts_and_stream(void **state) {
    Cli *cli = *state;
    json_t *j = cli_json(cli, "generate tiny 'hello you' -n 50 --json");
    Text want = {0};
    text_printf(&want, "%s\n", text_of(j));
    char path[FOLDER_PATH_SIZE + 16];
    snprintf(path, sizeof path, "%s/prompt", cli->folder);
    FILE *f = fopen(path, "w");
    fputs("hello you", f);
    fclose(f);
    assert_string_equal(cli_out(cli, "generate tiny 'hello you' -n 50"), text_get(&want));
    assert_string_equal(cli_out(cli, "generate -n 50 -f prompt tiny"), text_get(&want));
    assert_string_equal(text_get(&cli_run_with(cli, "hello you", 0, "generate tiny - -n 50")->out),
                        text_get(&want));
    text_release(&want);
    json_decref(j);
}

static void stats(void **state) {
    Cli *cli = *state;
    static const char *const rows[] = {"method ", "engine ", "memory ", "prefill ",
                                       "decode ", "steps ",  "time "};
    const Child *c = cli_run(cli, 0, "generate tiny hello -n 20 --ignore-eos --stats -m jacobi:m=3");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strstr(text_get(&c->err), rows[i]))
            fail_msg("wanted '%s', got '%s'", rows[i], text_get(&c->err));
    assert_non_null(strstr(text_get(&c->err), "jacobi:m=3"));
    assert_non_null(strstr(text_get(&c->err), "20 tokens"));
}

// The text with a mark between steps, and how many steps there were; as a colour on a terminal that may have
// one.
static void steps(void **state) {
    static const char COLOUR[] = "\033[4;36m",
                      *LINE = "generate tiny hello -n 40 --ignore-eos -m jacobi:m=3 ";
    Cli *cli = *state;
    char line[128], last[64];
    snprintf(line, sizeof line, "%s--json", LINE);
    json_t *j = cli_json(cli, line);
    int count = int_of(j, "steps"), marks = 0;
    snprintf(last, sizeof last, "\n40 tokens, %d steps, %.1f a step\n", count, 40.0 / count);
    snprintf(line, sizeof line, "%s--steps", LINE);
    const char *got = cli_out(cli, line), *at = got;
    for (const char *want = text_of(j); *want; at++)
        if (*at == *want) want++;
        else if (*at == '|') marks++;
        else fail_msg("wanted %s\ngot %s", text_of(j), got);
    if (marks < 2 || marks > count - 1 || strcmp(at, last) != 0)
        fail_msg("wanted %d steps, got %d marks and '%s'", count, marks, at);
    json_decref(j);
    for (int plain = 0; plain < 2; plain++) {
        Child c;
        if (plain) setenv("NO_COLOR", "1", 1);
        CHILD_TERMINAL(&c, cli->folder, 80, 0, "generate", "tiny", "hello", "-n", "9", "--ignore-eos",
                       "--steps");
        unsetenv("NO_COLOR");
        if ((strstr(text_get(&c.out), COLOUR) == NULL) != plain ||
            (strchr(text_get(&c.out), '|') == NULL) == plain)
            fail_msg("NO_COLOR %s: %s", plain ? "set" : "not set", text_get(&c.out));
        child_release(&c);
    }
    cli_run(cli, 2, "generate tiny hello --steps --json");
}

static void stops(void **state) {
    Cli *cli = *state;
    json_t *whole = cli_json(cli, "generate tiny hello -n 120 --ignore-eos --json");
    const char *text = text_of(whole);
    int tried = 0;
    for (size_t i = 20; i + 3 < strlen(text) && tried < 8; i += 7) {
        char stop[4] = {text[i], text[i + 1], text[i + 2]}, line[128];
        if (strpbrk(stop, " '") || !utf8_valid(stop, 3)) continue;
        snprintf(line, sizeof line, "generate tiny hello -n 120 --ignore-eos --json --stop %s --stop none",
                 stop);
        json_t *j = cli_json(cli, line);
        size_t length = (size_t)(strstr(text, stop) - text);
        if (strlen(text_of(j)) != length || strncmp(text_of(j), text, length))
            fail_msg("%s: wanted '%.*s', got '%s'", line, (int)length, text, text_of(j));
        assert_string_equal(json_string_value(json_object_get(j, "ended_by")), "stop");
        json_decref(j);
        tried++;
    }
    assert_in_range(tried, 3, 8);
    json_decref(whole);
}

// What could have become a stop string is shown when the text ends.
static void almost_stopped(void **state) {
    Cli *cli = *state;
    json_t *whole = cli_json(cli, "generate tiny hello -n 120 --ignore-eos --json");
    const char *text = text_of(whole);
    size_t n = strlen(text) - 1;
    while (((unsigned char)text[n] & 0xC0) == 0x80) n--; // the last character's first byte
    char line[128];
    snprintf(line, sizeof line, "generate tiny hello -n 120 --ignore-eos --json --stop '%s and more'",
             text + n);
    json_t *j = cli_json(cli, line);
    expect_equal(whole, j, "text", line);
    json_decref(j);
    json_decref(whole);
}

// The null device says EOS (id 2) every so often.
static void end_of_sequence(void **state) {
    Cli *cli = *state;
    json_t *on = cli_json(cli, "generate long hello -n 4000 --device null --json --ignore-eos"),
           *off = cli_json(cli, "generate long hello -n 4000 --device null --json");
    const json_t *ids = json_object_get(on, "ids");
    int first = 0;
    while (first < 4000 && json_integer_value(json_array_get(ids, (size_t)first)) != 2) first++;
    assert_in_range(first, 1, 3999);
    assert_int_equal(int_of(on, "tokens"), 4000);
    assert_int_equal(int_of(off, "tokens"), first + 1);
    assert_string_equal(json_string_value(json_object_get(off, "ended_by")), "eos");
    json_decref(on);
    json_decref(off);
}

static void sampling_by_seed(void **state) {
    Cli *cli = *state;
    json_t *a = cli_json(cli, "generate tiny hello -n 40 -t 1 --seed 5 --json --ignore-eos"),
           *b = cli_json(cli, "generate tiny hello -n 40 -t 1 --seed 5 --json --ignore-eos"),
           *c = cli_json(cli, "generate tiny hello -n 40 -t 1 --seed 6 --json --ignore-eos");
    expect_equal(a, b, "ids", "seed 5 twice");
    assert_false(json_equal(json_object_get(a, "ids"), json_object_get(c, "ids")));
    json_decref(a);
    json_decref(b);
    json_decref(c);
}

static void null_needs_no_weights(void **state) {
    Cli *cli = *state;
    const char *argv[] = {"sh", "-c", "mkdir bare && cp tiny/config.json bare/", NULL};
    Child c;
    child_run(&c, cli->folder, NULL, argv);
    assert_int_equal(c.code, 0);
    child_release(&c);
    json_t *whole = cli_json(cli, "generate tiny --ids 1,2,3 --device null --json"),
           *bare = cli_json(cli, "generate bare --ids 1,2,3 --device null --json");
    expect_equal(whole, bare, "ids", "without weights");
    json_decref(whole);
    json_decref(bare);
    cli_expect_error(cli, 2, "generate bare hello --device null",
                     "outpace: the model has neither tokenizer.json nor tokenizer.model: give the prompt as "
                     "--ids 1,2,3\n");
    cli_run(cli, 2, "generate bare --ids 1 --device cpu");
}

// What the Hub's own programs leave: the model lies in a snapshot, its files linked to blobs.
static void cache_of_the_hub(void **state) {
    Cli *cli = *state;
    const char *argv[] = {"sh", "-c",
                          "mkdir -p 'hub/a b/snapshots/0' hub/blobs && cd 'hub/a b/snapshots/0' && "
                          "for f in config.json model.safetensors tokenizer.json; do "
                          "cp ../../../../tiny/$f ../../../blobs/$f && ln -s ../../../blobs/$f $f; done",
                          NULL};
    Child c;
    child_run(&c, cli->folder, NULL, argv);
    assert_int_equal(c.code, 0);
    child_release(&c);
    cli_run(cli, 0, "generate 'hub/a b/snapshots/0' x -n 1");
    cli_expect_error(cli, 2, "generate 'hub/a b' x",
                     "outpace: 'hub/a b' is an entry of the Hub's cache: give the folder in its snapshots\n");
}

// --- how it streams and ends -----------------------------------------------------------------------------

typedef struct {
    pid_t pid;
    int out; // reads what it writes
} Streaming;

// Starts a run whose standard output is one end of a pair of sockets of packets: one read is one write.
static Streaming start(Cli *cli, const char *line) {
    const char *argv[MOST_ARGUMENTS];
    char *copy = mem_text(line, strlen(line));
    int ends[2];
    cli_split(cli, copy, argv);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    Streaming s = {child_start(cli->folder, argv, STDIN_FILENO, ends[1], STDERR_FILENO), ends[0]};
    close(ends[1]);
    mem_free(copy);
    return s;
}

// One write of the child's, appended; false at its end.
static bool next_write(const Streaming *s, Text *all, size_t *size) {
    char buffer[8192];
    ssize_t n = read(s->out, buffer, sizeof buffer);
    *size = n > 0 ? (size_t)n : 0;
    text_add(all, buffer, *size);
    return n > 0;
}

static void whole_characters(void **state) {
    Cli *cli = *state;
    Streaming s = start(cli, "generate long x --device null -n 6000 --ignore-eos --seed 1");
    Text all = {0};
    int writes = 0;
    for (size_t n; next_write(&s, &all, &n); writes++)
        if (!utf8_valid(text_get(&all) + all.length - n, n))
            fail_msg("write %d ends or begins inside a character", writes);
    assert_int_equal(child_wait(s.pid), 0);
    close(s.out);
    assert_in_range(writes, 1000, 6001); // it streams
    int foreign = 0;                     // characters of two bytes, which only byte tokens make
    for (size_t i = 0; i < all.length; i++) foreign += ((unsigned char)all.data[i] & 0xE0) == 0xC0;
    assert_in_range(foreign, 10, 6000);
    text_release(&all);
}

// A verdict is there when it is reached, not when the program ends.
static void verdicts_stream(void **state) {
    Cli *cli = *state;
    Streaming s = start(cli, "verify tiny --device null -n 1 --max-tokens 4 -m autoregressive -m jacobi");
    Text all = {0};
    size_t n, lines = 0;
    for (; next_write(&s, &all, &n); lines++) {
        const char *line = text_get(&all) + all.length - n;
        if (strchr(line, '\n') != line + n - 1) fail_msg("wanted a line a write, got '%s'", line);
    }
    assert_int_equal(child_wait(s.pid), 0);
    close(s.out);
    assert_int_equal(lines, 3);
    text_release(&all);
}

// Until the child waits for us to read: its state in /proc/PID/stat is S.
static void wait_until_blocked(pid_t pid) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    while (state != 'S') {
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%*d %*s %c", &state), 1);
        fclose(f);
        sched_yield();
    }
}

// Interrupted in the middle of a write, too: the text is the beginning of what it is otherwise, and ends with
// a line's end.
static void interrupted(void **state) {
    Cli *cli = *state;
    const int signals[] = {SIGINT, SIGTERM};
    Text whole = {0};
    const Child *c = cli_run(cli, 0, "generate long x --device null -n 60000 --ignore-eos");
    text_add(&whole, text_get(&c->out), c->out.length);
    for (int i = 0; i < 2; i++) {
        Streaming s = start(cli, "generate long x --device null -n 1000000 --ignore-eos");
        Text all = {0};
        for (size_t n; all.length < 1000 && next_write(&s, &all, &n);) {}
        wait_until_blocked(s.pid);
        assert_int_equal(kill(s.pid, signals[i]), 0);
        for (size_t n; next_write(&s, &all, &n);) {}
        assert_int_equal(child_wait(s.pid), 130);
        close(s.out);
        assert_in_range(all.length, 1000, whole.length - 1);
        assert_int_equal(all.data[all.length - 1], '\n');
        assert_memory_equal(all.data, whole.data, all.length - 1);
        assert_true(utf8_valid(all.data, all.length));
        text_release(&all);
    }
    text_release(&whole);
}

// What does not hear a signal, for it waits for a reader that does not come, is ended by it all the same.
static void nobody_reads(void **state) {
    Streaming s = start(*state, "generate long x --device null -n 1000000 --ignore-eos");
    wait_until_blocked(s.pid);
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    assert_int_equal(child_wait(s.pid), 130);
    close(s.out);
}

// A cache that cannot be used is a warning where nobody has asked for it, and no directory comes of it.
static void cache(void **state) {
    Cli *cli = *state;
    const char *argv[] = {
        "bash", "-c",
        "unset XDG_CACHE_HOME; m='generate long x -n 2 --method ngrammys:k=2,w=2'; touch file; "
        "mkdir home; touch home/.cache; "
        "HOME=$PWD/none $0 $m; echo $?; test -e none; echo $?; HOME=$PWD/home $0 $m; echo $?; "
        "$0 $m --cache file; echo $?",
        cli->program, NULL};
    Child c;
    child_run(&c, cli->folder, NULL, argv);
    const char *out = text_get(&c.out), *err = text_get(&c.err), *first = strchr(out, '\n');
    char want[4096];
    snprintf(want, sizeof want, "%.*s\n0\n1\n%.*s\n0\n1\n", (int)(first - out), out, (int)(first - out), out);
    assert_string_equal(out, want);
    const char *second = strstr(err, "is made again next time: there is no directory $HOME");
    assert_non_null(second);
    assert_non_null(strstr(second, "is made again next time: cannot make the directory"));
    assert_non_null(strstr(second, "cannot be kept (give another --cache)"));
    child_release(&c);
}

// A reader that leaves ends the run quietly and soon; a full disk does not go unsaid.
static void reader_leaves(void **state) {
    Cli *cli = *state;
    const char *argv[] = {"bash", "-c",
                          "$0 generate long x --device null -n 1000000 --ignore-eos | head -c 10 | wc -c; "
                          "echo ${PIPESTATUS[0]}; "
                          "$0 generate long x --device null -n 100000 --json | head -c 10 | wc -c; "
                          "echo ${PIPESTATUS[0]}; ",
                          cli->program, NULL};
    Child c;
    child_run(&c, cli->folder, NULL, argv);
    assert_string_equal(text_get(&c.out), "10\n0\n10\n0\n");
    assert_string_equal(text_get(&c.err), "");
    child_release(&c);
    static const char *const FULL[] = {"exec $0 generate tiny x -n 4 >/dev/full", "exec $0 --help >/dev/full",
                                       "exec $0 show --help >/dev/full"};
    for (int i = 0; i < 3; i++) {
        const char *full[] = {"sh", "-c", FULL[i], cli->program, NULL};
        child_run(&c, cli->folder, NULL, full);
        assert_int_equal(c.code, 1);
        assert_string_equal(text_get(&c.err),
                            "outpace: cannot write to standard output: is the disk full?\n");
        child_release(&c);
    }
}

// Without a prompt, standard input is it, where that is no terminal.
static void piped_prompt(void **state) {
    Cli *cli = *state;
    const char *piped[] = {cli->program, "generate", "tiny", "-n", "4", NULL},
               *said[] = {cli->program, "generate", "tiny", "hello\n", "-n", "4", NULL};
    Child a, b;
    child_run(&a, cli->folder, "hello\n", piped);
    child_run(&b, cli->folder, NULL, said);
    assert_int_equal(a.code, 0);
    assert_string_equal(text_get(&a.out), text_get(&b.out));
    child_release(&a);
    child_release(&b);
    child_run(&a, cli->folder, NULL, piped);
    assert_int_equal(a.code, 2);
    assert_non_null(strstr(text_get(&a.err), "there is no prompt: give a text"));
    child_release(&a);
}

// Gives two of a model's pieces each other's id.
static void swap_pieces(Cli *cli, const char *model, const char *a, const char *b) {
    char dir[FOLDER_PATH_SIZE + 64];
    snprintf(dir, sizeof dir, "%s/%s", cli->folder, model);
    json_t *root = scratch_json(dir, "tokenizer.json"),
           *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    json_int_t first = json_integer_value(json_object_get(vocab, a)),
               second = json_integer_value(json_object_get(vocab, b));
    assert_true(first && second);
    json_object_set_new(vocab, a, json_integer(second));
    json_object_set_new(vocab, b, json_integer(first));
    scratch_write_json(dir, "tokenizer.json", root);
    json_decref(root);
}

static void copy_tensor(const char *from, char *to, size_t size, const Safetensors *a, const char *name) {
    Safetensors b;
    assert_true(safetensors_parse((const unsigned char *)to, size, name, &b, NULL));
    const StoredTensor *x = safetensors_find(a, name), *y = safetensors_find(&b, name);
    assert_true(x && y && x->end - x->begin == y->end - y->begin);
    memcpy(to + y->begin, from + x->begin, x->end - x->begin);
    safetensors_release(&b);
}

// Layers behind those that config.json names are as if they were not in the files, and a line says so.
static void cut_by_hand(void **state) {
    Cli *cli = *state;
    const char *folder = cli->folder, *file = "model.safetensors";
    char tiny[FOLDER_PATH_SIZE], cut[FOLDER_PATH_SIZE], whole[FOLDER_PATH_SIZE];
    size_t size, smaller;
    Safetensors parsed;
    snprintf(tiny, sizeof tiny, "%s", folder_path(folder, "tiny"));
    snprintf(cut, sizeof cut, "%s", folder_path(folder, "cut"));
    snprintf(whole, sizeof whole, "%s", folder_path(folder, "whole"));
    cli_run(cli, 0, "model synth tiny whole --set num_hidden_layers=1 --seed 3");
    scratch_copy(tiny, cut);
    json_t *config = scratch_json(whole, "config.json");
    scratch_write_json(cut, "config.json", config);
    json_decref(config);
    // A seed draws the same first layer, and the rest that belongs to it is copied.
    char *from = scratch_read(tiny, file, &size), *to = scratch_read(whole, file, &smaller);
    assert_true(safetensors_parse((const unsigned char *)from, size, file, &parsed, NULL));
    copy_tensor(from, to, smaller, &parsed, "model.norm.weight");
    copy_tensor(from, to, smaller, &parsed, "lm_head.weight");
    scratch_write(whole, file, to, smaller);
    safetensors_release(&parsed);
    mem_free(from);
    mem_free(to);
    json_t *want = cli_json(cli, "generate whole --ids 1,5,9 -n 30 --json --ignore-eos");
    assert_string_equal(text_get(&cli->last.err), "");
    for (int i = 0; i < 2; i++) {
        json_t *got = cli_json(cli, i ? "generate cut --ids 1,5,9 -n 30 --json --ignore-eos --weights held"
                                      : "generate cut --ids 1,5,9 -n 30 --json --ignore-eos");
        expect_equal(want, got, "ids", "cut by hand");
        json_decref(got);
        assert_string_equal(text_get(&cli->last.err),
                            "warning: 'cut' has 1 layers, as its config.json says; the 2 behind them in its "
                            "files are left out\n");
    }
    json_decref(want);
    cli_run(cli, 0, "generate cut --ids 1,5,9 -n 4 --device null");
    cli_run(cli, 0, "generate tiny --ids 1,5,9 -n 4 --method speculative --draft cut");
    assert_non_null(strstr(text_get(&cli->last.err), "warning: 'cut' has 1 layers"));
    assert_non_null(
        strstr(cli_out(cli, "model info cut --check"), "; the files hold 2 more, which are left out\n"));
}

// The same ids with a draft, an adapter and heads as without, and what they took is told; what does not fit
// is refused in one line.
static void second_models(void **state) {
    Cli *cli = *state;
    static const char *const lines[] = {
        "generate tiny --ids 1,5,9 --max-tokens 30 --json --method speculative --draft small",
        ("generate tiny --ids 1,5,9 --max-tokens 30 --json --method speculative:adaptive=heuristic "
         "--draft tiny"),
        "generate tiny --ids 1,5,9 --max-tokens 30 --json --method speculative --draft shorter",
        "generate tiny --ids 1,5,9 --max-tokens 30 --json --method speculative --draft longer",
        "generate tiny --ids 1,5,9 --max-tokens 30 --json --method kangaroo:eta=0 --adapter kangaroo",
        "generate tiny --ids 1,5,9 --max-tokens 30 --json --method medusa --adapter medusa",
        "generate tiny --ids 1,5,9 --max-tokens 30 --json --method eagle:depth=3 --adapter eagle",
        "generate tiny --ids 1,5,9 --max-tokens 30 --json --method eagle3:depth=2 --adapter eagle3"};
    cli_run(cli, 0, "model synth tiny small --set num_hidden_layers=1 --seed 4");
    cli_run(cli, 0, "model synth tiny shorter --set vocab_size=400");
    cli_run(cli, 0, "model synth tiny longer --set vocab_size=600");
    cli_run(cli, 0, "model adapter tiny kangaroo --exit-layer 1");
    cli_run(cli, 0, "model adapter tiny medusa --variant medusa --heads 3");
    cli_run(cli, 0, "model adapter tiny eagle --variant eagle");
    cli_run(cli, 0, "model adapter tiny eagle3 --variant eagle");
    cli_run(cli, 0, "model adapter tiny eagle3 --variant eagle3 --force"); // an adapter in an adapter's place
    json_t *want = cli_json(cli, "generate tiny --ids 1,5,9 --max-tokens 30 --json");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        json_t *got = cli_json(cli, lines[i]);
        expect_equal(want, got, "ids", lines[i]);
        json_decref(got);
    }
    json_decref(want);
    const Child *c =
        cli_run(cli, 0, "generate tiny --ids 1,5 --max-tokens 4 --stats --method speculative --draft small");
    assert_non_null(strstr(text_get(&c->err), "\ndraft     weights 0."));
    assert_int_equal(remove(folder_path(cli->folder, "shorter/tokenizer.json")), 0);
    cli_expect_error(cli, 2, "generate tiny --ids 1 --method speculative --draft shorter",
                     "outpace: the draft model has 400 tokens, the target 512, and not both have a tokenizer "
                     "that shows whether one vocabulary is the start of the other\n");
    swap_pieces(cli, "small", "<0x41>", "<0x42>");
    cli_expect_error(
        cli, 2, "generate tiny --ids 1 --method speculative --draft small",
        "outpace: token 68 is '<0x41>' for the target, '<0x42>' for the draft model: they must share a "
        "vocabulary\n");
    cli_expect_error(cli, 2, "generate tiny --ids 1 --method medusa --adapter kangaroo",
                     "outpace: method 'medusa': Medusa heads are needed: give them with --heads DIR, in a "
                     "config heads: DIR\n");
    cli_expect_error(
        cli, 2, "generate tiny --ids 1 --method kangaroo",
        "outpace: method 'kangaroo': an adapter on one of the target's lower layers is needed: give one "
        "with --adapter DIR, in a config adapter: DIR\n");
    cli_expect_error(cli, 2, "generate tiny --ids 1 --method kangaroo --adapter .",
                     "outpace: --adapter '.': cannot read './config.json': give an adapter's "
                     "directory\n");
    cli_expect_error(
        cli, 2, "model adapter tiny never --exit-layer 9",
        "outpace: the exit layer of 'never' is 9, must be from 1 to 2, below the target's last\n");
}

// The record names the model that was quantised.
static void quantised_by_others(void **state) {
    static const char *const rows[][2] = {
        {"build/golden/packed-awq", "4 bits, groups of 64 (AWQ), of tiny-llama"},
        {"build/golden/packed-gptq", "4 bits, groups of 32 (GPTQ), of tiny-llama"},
        {"build/golden/packed-tensors", "4 bits, groups of 32 (compressed-tensors), of tiny-llama"},
        {"tests/fixtures/gguf/mixed.gguf", "Q8_0 (GGUF), of llama"}};
    char root[PATH_MAX], line[PATH_MAX + 200];
    assert_non_null(realpath(getenv("OUTPACE_ROOT") ? getenv("OUTPACE_ROOT") : ".", root));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(line, sizeof line, "generate '%s/%s' --ids 5,6 -n 2 --json", root, rows[i][0]);
        json_t *got = cli_json(*state, line);
        assert_string_equal(json_string_value(json_object_get(got, "quantised")), rows[i][1]);
        assert_null(json_object_get(got, "stand_in"));
        json_decref(got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantised_by_others),
        cmocka_unit_test(piped_prompt),
        cmocka_unit_test(methods_agree),
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(json),
        cmocka_unit_test(prompts_and_stream),
        cmocka_unit_test(stats),
        cmocka_unit_test(steps),
        cmocka_unit_test(stops),
        cmocka_unit_test(almost_stopped),
        cmocka_unit_test(end_of_sequence),
        cmocka_unit_test(sampling_by_seed),
        cmocka_unit_test(null_needs_no_weights),
        cmocka_unit_test(cache_of_the_hub),
        cmocka_unit_test(whole_characters),
        cmocka_unit_test(verdicts_stream),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(nobody_reads),
        cmocka_unit_test(cache),
        cmocka_unit_test(reader_leaves),
        cmocka_unit_test(second_models),
        cmocka_unit_test(cut_by_hand),
    };
    return cmocka_run_group_tests(tests, cli_set_up, cli_tear_down);
}
