// The facts that methods get about an open engine, the place of their tables, and the program that does both.
#include "tests/support/check.h"
#include "tests/support/child.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/model/model.h"
#include "engine/model/make/synth.h"
#include "harness/inputs/models.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { WIDEST = 512 };

static const char *synth(const char *folder, const char *const *sets, int count) {
    const char *dir = folder_path(folder, "model");
    Error e = {0};
    SynthOptions o = {.shape = "tiny", .seed = 3, .sets = sets, .set_count = count};
    if (!model_synth(dir, &o, &e)) fail_msg("%s", e.text);
    return dir;
}

static void check_row(const TargetFacts *facts, EmbeddingKind kind, const Tensor *t, int token) {
    float row[WIDEST];
    assert_true(t->columns <= WIDEST);
    facts->embedding(facts->self, kind, token, row);
    for (int i = 0; i < t->columns; i++)
        assert_true(row[i] == dtype_load(t->dtype, t->data, (size_t)token * (size_t)t->columns + (size_t)i));
}

static void facts_are_the_models(void **state) {
    static const char *const untied[] = {"tie_word_embeddings=false"};
    const char *dir = synth(*state, untied, 1);
    Engine engine;
    Error e = {0};
    char name[SHA256_TEXT], want[SHA256_TEXT];
    int prefix_count;
    EngineOptions o = {.device = "cpu", .context = 32, .threads = 1};
    if (!engine_open(&engine, dir, &o, NULL, &e)) fail_msg("%s", e.text);
    EngineFacts of = {&engine, dir};
    TargetFacts facts = facts_of(&of);
    for (int token = 0; token < engine.model.shape.vocab; token += 37) {
        check_row(&facts, EMBEDDING_INPUT, &engine.model.embedding, token);
        check_row(&facts, EMBEDDING_OUTPUT, &engine.model.head, token);
    }
    assert_true(facts.identify(facts.self, name, NULL) && model_identity(&engine.weights, dir, want, NULL));
    assert_string_equal(name, want);
    const int *prefix = tokenizer_prefix(engine.tokenizer, &prefix_count);
    assert_true(facts.prefix == prefix && facts.prefix_count == prefix_count);
    assert_true(prefix_count > 0);
    tokenizer_close(engine.tokenizer);
    engine.tokenizer = NULL; // then config.json says what begins a text
    facts = facts_of(&of);
    assert_true(engine.model.bos >= 0 && facts.prefix_count == 1 && facts.prefix[0] == engine.model.bos);
    engine_close(&engine);
    // The same where the tokenizer begins texts with nothing.
    char *path = file_path(dir, "tokenizer.json");
    json_t *root = json_load_file(path, 0, NULL);
    json_object_set_new(root, "post_processor", json_null());
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
    mem_free(path);
    if (!engine_open(&engine, dir, &o, NULL, &e)) fail_msg("%s", e.text);
    tokenizer_prefix(engine.tokenizer, &prefix_count);
    facts = facts_of(&of);
    assert_true(prefix_count == 0 && facts.prefix_count == 1 && facts.prefix[0] == engine.model.bos);
    engine_close(&engine);
}

static void check_cache(const char *option, const char *above, const char *home, const char *want) {
    char *got;
    if (above) setenv("XDG_CACHE_HOME", above, 1);
    else unsetenv("XDG_CACHE_HOME");
    if (home) setenv("HOME", home, 1);
    else unsetenv("HOME");
    got = models_cache(option);
    if (want) assert_string_equal(got, want);
    else assert_null(got);
    mem_free(got);
}

static void caches_stand_where_they_are_looked_for(void **state) {
    (void)state;
    check_cache(NULL, NULL, "/tmp", "/tmp/.cache/outpace");
    check_cache(NULL, NULL, "/nonexistent/me", NULL); // a home is never made
    check_cache(NULL, "/var/x", "/tmp", "/var/x/outpace");
    check_cache(NULL, "relative", "/tmp", "/tmp/.cache/outpace");
    check_cache(NULL, NULL, NULL, NULL);
    check_cache(NULL, "", "", NULL);
    check_cache("here", "/var/x", "/tmp", "here");
    check_cache("", "/var/x", "/tmp", NULL);
}

// --- the program

typedef struct {
    char *program;
    const char *folder;
    Child last;
} Cli;

static const char *run(Cli *cli, int code, const char *const *arguments) {
    const char *argv[20] = {cli->program};
    for (int i = 0; arguments[i]; i++) argv[i + 1] = arguments[i];
    child_release(&cli->last);
    child_run(&cli->last, cli->folder, NULL, argv);
    if (cli->last.code != code)
        fail_msg("outpace %s: wanted exit code %d, got %d; it said '%s'", arguments[0], code, cli->last.code,
                 text_get(&cli->last.err));
    return text_get(code ? &cli->last.err : &cli->last.out);
}

#define RUN(cli, code, ...) run(cli, code, (const char *const[]){__VA_ARGS__, NULL})

static Cli open_cli(const char *folder) {
    const char *program = getenv("OUTPACE");
    synth(folder, NULL, 0);
    return (Cli){.program = realpath(program ? program : "./outpace", NULL), .folder = folder};
}

static void close_cli(Cli *cli) {
    child_release(&cli->last);
    free(cli->program);
}

static void tables_are_kept(void **state) {
    Cli cli = open_cli(*state);
    char *plain = NULL;
    const char *out = RUN(&cli, 0, "generate", "model", "one two one two", "-n", "40", "-s");
    plain = mem_text(out, strlen(out));
    for (int again = 0; again < 2; again++) {
        out = RUN(&cli, 0, "generate", "model", "one two one two", "-n", "40", "-s", "--cache", "tables",
                  "-m", "ngrammys:strategy=extended,extend=model,k=3,w=3");
        assert_string_equal(out, plain);
        assert_non_null(strstr(text_get(&cli.last.err), "bigram: 3.0 rows a step"));
        assert_int_equal(folder_count(folder_path(*state, "tables")), 1);
    }
    out = RUN(&cli, 0, "generate", "model", "one two one two", "-n", "40", "--cache", "tables", "-m",
              "ngrammys:strategy=unigram");
    assert_string_equal(out, plain);
    assert_int_equal(folder_count(folder_path(*state, "tables")), 2);
    RUN(&cli, 0, "generate", "model", "a", "-n", "4", "--cache", "", "-m", "ngrammys");
    out = RUN(&cli, 1, "generate", "model", "a", "--cache", "/proc/nowhere", "-m", "ngrammys");
    assert_non_null(strstr(out, "cannot make the directory '/proc/nowhere'"));
    mem_free(plain);
    close_cli(&cli);
}

static void write_text(const char *path, const char *text) {
    Error e = {0};
    if (!file_write(path, text, strlen(text), &e)) fail_msg("%s", e.text);
}

static void datastores_are_built(void **state) {
    Cli cli = open_cli(*state);
    write_text(folder_path(*state, "a.txt"), "to be or not\n\nto be, that\nis the question");
    write_text(folder_path(*state, "b.txt"), "");
    write_text(folder_path(*state, "b.gz"), "mine");
    RUN(&cli, 0, "datasets", "index", "a.txt", "b.txt", "-o", "whole", "--model", "model");
    assert_non_null(strstr(RUN(&cli, 0, "datasets", "index", "--info", "whole"), "documents       1\n"));
    RUN(&cli, 0, "datasets", "index", "a.txt", "-o", "lines", "--model", "model", "--lines");
    assert_non_null(strstr(RUN(&cli, 0, "datasets", "index", "--info", "lines"), "documents       3\n"));
    const char *out = RUN(&cli, 0, "generate", "model", "to be", "-n", "30");
    char *plain = mem_text(out, strlen(out));
    assert_string_equal(RUN(&cli, 0, "generate", "model", "to be", "-n", "30", "-m", "rest:datastore=lines"),
                        plain);
    mem_free(plain);
    assert_non_null(strstr(RUN(&cli, 2, "datasets", "index", "a.txt", "-o", "x"),
                           "-o FILE and --model MODEL are missing"));
    assert_non_null(strstr(RUN(&cli, 2, "datasets", "index", "b.txt", "-o", "x", "--model", "model"),
                           "a datastore needs at least one token"));
    RUN(&cli, 0, "datasets", "index", "a.txt", "-o", "whole", "--model", "model"); // over one of its own
    assert_non_null(
        strstr(RUN(&cli, 2, "datasets", "index", "a.txt", "-o", "model/config.json", "--model", "model"),
               "is read by this command"));
    assert_non_null(strstr(RUN(&cli, 2, "datasets", "index", "a.txt", "-o", "b.gz", "--model", "model"),
                           "'b.gz' exists"));
    assert_non_null(
        strstr(RUN(&cli, 2, "datasets", "index", "--info", "a.txt"), "'a.txt' is not a datastore"));
    assert_non_null(
        strstr(RUN(&cli, 2, "datastore", "build"), "'outpace datastore' is now 'outpace datasets index'"));
    close_cli(&cli);
}

int main(void) {
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {IN_FOLDER(facts_are_the_models),
                                       cmocka_unit_test(caches_stand_where_they_are_looked_for),
                                       IN_FOLDER(tables_are_kept), IN_FOLDER(datastores_are_built)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
