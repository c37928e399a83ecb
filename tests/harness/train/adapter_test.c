// Adapters and heads by the real program ($OUTPACE): trained on a small model, used by its methods, stopped
// and gone on with to the same files.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN(folder, code, child, ...) CHILD_OUTPACE(child, folder, code, __VA_ARGS__)

static const char CONFIG[] =
    "out: heart\ntokenizer: tokenizer.json\nfiles: rhymes.txt\nseparator: '-'\n"
    "layers: 3\nwidth: 48\nheads: 4\nkey_heads: 2\nmlp: 96\ncontext: 64\nbatch: 256\n"
    "steps: 100\nrate: 0.02\nlast_rate: 0.002\nwarmup: 10\n";
static const char LESSON[] =
    "files: rhymes.txt\nseparator: '-'\nbatch: 256\nsteps: 80\nrate: 0.01\nheld_out: 0.2\n"
    "held_out_every: 30\nthreads: %d\n";

// A model that has learned a rhyme by heart, and lesson1.yaml and lesson2.yaml for one thread and two.
static void prepare(const char *folder) {
    Text text = {0};
    Child c;
    for (int i = 0; i < 20; i++)
        text_printf(&text, "twinkle twinkle little star how i wonder what you are\n-\nthe sky is up %d\n-\n",
                    i);
    scratch_write(folder, "rhymes.txt", text.data, text.length);
    text_release(&text);
    scratch_write(folder, "heart.yaml", CONFIG, sizeof CONFIG - 1);
    for (int i = 1; i <= 2; i++) {
        char name[32], lesson[sizeof LESSON];
        snprintf(name, sizeof name, "lesson%d.yaml", i);
        scratch_write(folder, name, lesson, (size_t)snprintf(lesson, sizeof lesson, LESSON, i));
    }
    RUN(folder, 0, &c, "tokenizer", "train", "rhymes.txt", "--vocab", "390", "--separator", "-");
    child_release(&c);
    RUN(folder, 0, &c, "train", "heart.yaml");
    child_release(&c);
}

static json_t *config_of(const char *folder, const char *dir) {
    json_t *root = json_load_file(folder_path(folder_path(folder, dir), "config.json"), 0, NULL);
    assert_non_null(root);
    return root;
}

// The rhyme by the method: the same text as without, in steps of several tokens.
static void expect_fast_of(const char *folder, const char *model, const char *method, const char *adapter) {
    Child c;
    RUN(folder, 0, &c, "generate", model, "twinkle twinkle", "--json", "-n", "30", "-m", method,
        adapter ? "--adapter" : "--stats", adapter);
    json_t *root = json_loads(text_get(&c.out), 0, NULL);
    double S = json_real_value(json_object_get(root, "S"));
    assert_string_equal(json_string_value(json_object_get(root, "text")),
                        "little star how i wonder what you are");
    if (!(S > 1.5)) fail_msg("%s with %s: S is %g, wanted more than 1.5", method, adapter, S);
    json_decref(root);
    child_release(&c);
}

static void expect_fast(const char *folder, const char *method, const char *adapter) {
    expect_fast_of(folder, "heart", method, adapter);
}

// An MTP layer in the model's own files: nothing but the method is named, in a config too.
static void own_layer(const char *folder) {
    static const char INDEX[] = "{\"weight_map\": {\"a\": \"model-1.safetensors\"}}";
    static const char RUN_OWN[] =
        "name: own\nmodels: own\ndatasets: [{name: rhyme, path: rhyme.jsonl}]\nmethods: [mtp]\n"
        "generation: {max_tokens: 12}\n";
    static const char RHYME[] = "{\"prompt\": \"twinkle twinkle\"}\n";
    const char *const from[] = {"heart", "mtp"}, *const to[] = {"model-1.safetensors", "model-2.safetensors"},
                      *const first[] = {"model.norm.weight", "model.mtp_layers.0.self_attn.q_proj.weight"};
    char own[300];
    snprintf(own, sizeof own, "%s", folder_path(folder, "own"));
    json_t *config = config_of(folder, "heart"), *index = json_loads(INDEX, 0, NULL),
           *map = json_object_get(index, "weight_map");
    Child c;
    scratch_copy(folder_path(folder, "heart"), own);
    assert_int_equal(unlink(folder_path(own, "model.safetensors")), 0);
    json_object_del(map, "a");
    for (int i = 0; i < 2; i++) {
        size_t size;
        char *bytes = scratch_read(folder_path(folder, from[i]), "model.safetensors", &size);
        scratch_write(own, to[i], bytes, size);
        json_object_set_new(map, first[i], json_string(to[i]));
        mem_free(bytes);
    }
    json_object_set_new(config, "model_type", json_string("mimo"));
    json_object_set_new(config, "num_nextn_predict_layers", json_integer(1));
    scratch_write_json(own, "config.json", config);
    scratch_write_json(own, "model.safetensors.index.json", index);
    expect_fast_of(folder, "own", "mtp:gamma=3,state=normed,recycle=normed", NULL);
    scratch_write(folder, "own.yaml", RUN_OWN, sizeof RUN_OWN - 1);
    scratch_write(folder, "rhyme.jsonl", RHYME, sizeof RHYME - 1);
    RUN(folder, 0, &c, "plan", "own.yaml");
    child_release(&c);
    json_decref(config);
    json_decref(index);
}

static void every_variant(void **state) {
    static const char *const variants[] = {"kangaroo", "with-head", "one-layer", "mlp"};
    Child c;
    prepare(*state);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        RUN(*state, 0, &c, "train", "adapter", "heart", "--config", "lesson1.yaml", "--exit-layer", "2",
            "--variant", variants[i], "-o", variants[i]);
        assert_non_null(strstr(text_get(&c.out), "step 30  held-out loss "));
        assert_non_null(strstr(text_get(&c.out), "wrote the adapter to "));
        child_release(&c);
        json_t *root = config_of(*state, variants[i]), *training = json_object_get(root, "outpace_train");
        assert_string_equal(json_string_value(json_object_get(root, "variant")), variants[i]);
        assert_int_equal(json_integer_value(json_object_get(training, "steps")), 80);
        assert_true(json_real_value(json_object_get(training, "held_out_loss")) > 0);
        assert_true(json_real_value(json_array_get(json_object_get(training, "agreement"), 0)) > 0.7);
        json_decref(root);
        expect_fast(*state, "kangaroo", variants[i]);
    }
}

static void heads(void **state) {
    Child c;
    prepare(*state);
    scratch_write(*state, "split.yaml", "held_out: 0.2\n", 14);
    RUN(*state, 0, &c, "train", "heads", "heart", "--config", "split.yaml", "--text", "rhymes.txt",
        "--separator", "-", "--batch", "256", "--steps", "80", "--rate", "0.01", "--heads", "3", "-o",
        "medusa");
    assert_non_null(strstr(text_get(&c.out), "wrote the heads to medusa"));
    assert_non_null(
        strstr(text_get(&c.err), "states    of the target, in f32: 0.00 GB for the whole text\n"));
    child_release(&c);
    json_t *root = config_of(*state, "medusa");
    assert_int_equal(json_integer_value(json_object_get(root, "heads")), 3);
    assert_int_equal(json_array_size(json_object_get(json_object_get(root, "outpace_train"), "agreement")),
                     3);
    json_decref(root);
    expect_fast(*state, "medusa", "medusa");
}

#define REFUSED(folder, want, ...)                                                \
    do {                                                                          \
        Child child_;                                                             \
        RUN(folder, 2, &child_, "train", __VA_ARGS__);                            \
        if (!strstr(text_get(&child_.err), want))                                 \
            fail_msg("wanted '...%s...', got '%s'", want, text_get(&child_.err)); \
        child_release(&child_);                                                   \
    } while (0)

static void expect_same_file(const char *folder, const char *name) {
    size_t n, m;
    char *x = scratch_read(folder_path(folder, "whole"), name, &n),
         *y = scratch_read(folder_path(folder, "pieces"), name, &m);
    if (n != m || memcmp(x, y, n)) fail_msg("%s of a run in pieces differs from that of a whole one", name);
    mem_free(x);
    mem_free(y);
}

// Drafts of blocks; the agreement is told for each slot.
static void blocks(const char *folder) {
    static const char BLOCK[] = "held_out: 0.2\nlayers: [1, 2]\ndraft_layers: 1\nblock: 4\nmask: <0x00>\n",
                      RANK[] = "markov_rank: 8\nheld_out: 0.2\nlayers: [1, 2]\ndraft_layers: 1\nblock: 4\n"
                               "mask: <0x00>\n",
                      WRONG[] = "mask: twinkletwinkle\n";
    static const char *const NAMES[] = {"dflash", "dspark"};
    Child c;
    scratch_write(folder, "dflash.yaml", BLOCK, sizeof BLOCK - 1);
    scratch_write(folder, "dspark.yaml", RANK, sizeof RANK - 1);
    scratch_write(folder, "wrong.yaml", WRONG, sizeof WRONG - 1);
    for (int i = 0; i < 2; i++) {
        char config[32];
        snprintf(config, sizeof config, "%s.yaml", NAMES[i]);
        RUN(folder, 0, &c, "train", NAMES[i], "heart", "--config", config, "--text", "rhymes.txt",
            "--separator", "-", "--batch", "256", "--steps", "80", "--rate", "0.01", "-o", NAMES[i]);
        assert_non_null(strstr(text_get(&c.out), "wrote the draft to "));
        child_release(&c);
        json_t *root = config_of(folder, NAMES[i]), *training = json_object_get(root, "outpace_train");
        assert_int_equal(json_array_size(json_object_get(training, "agreement")), 4);
        assert_int_equal(json_integer_value(json_object_get(root, "markov_rank")), i ? 8 : 0);
        json_decref(root);
        expect_fast(folder, "dflash", NAMES[i]);
    }
    REFUSED(folder, "'markov_rank' is not for dflash, only for: dspark", "dflash", "heart", "--text",
            "rhymes.txt", "-o", "a", "--config", "dspark.yaml");
    REFUSED(folder, "no piece 'twinkletwinkle' to be the mask", "dflash", "heart", "--text", "rhymes.txt",
            "-o", "a", "--config", "wrong.yaml");
}

// An EAGLE-3 that guesses in one forward (P-EAGLE), of two layers: its config turns that on in use, and the
// text is the same at the end of the chain. A run in pieces ends with the same files.
static void in_parallel(const char *folder) {
    static const char CONFIG_OF[] =
        "held_out: 0.2\nparallel: 4\ndraft_layers: 2\nmask: <0x00>\nlayers: [1, 2]\n"
        "normed_heads: on\n";
    static const struct {
        const char *text, *want;
    } WRONG[] = {{"parallel: 4\nforwards: 3\n", "'parallel: 4' has so many forwards: take 'forwards' out"},
                 {"mask: <0x00>\n", "'mask' is for eagle3 in parallel: add 'parallel: K'"},
                 {"draft_layers: 2\n", "'draft_layers' is for eagle3 in parallel: add 'parallel: K'"},
                 {"parallel: 4\nmask: twinkletwinkle\n", "no piece 'twinkletwinkle' behind its first one"},
                 {"parallel: 9\n", "from 1 to 8"}};
    Child c;
    scratch_write(folder, "parallel.yaml", CONFIG_OF, sizeof CONFIG_OF - 1);
    for (int i = 0; i < 3; i++) {
        const char *out = i ? "pieces" : "whole";
        RUN(folder, 0, &c, "train", "eagle3", "heart", "--config", "parallel.yaml", "--text", "rhymes.txt",
            "--separator", "-", "--batch", "256", "--steps", "80", "--rate", "0.01", "-o", out,
            "--stop-after", i == 1 ? "30" : "0");
        if (i == 2) assert_non_null(strstr(text_get(&c.err), "resumed   at step 30"));
        child_release(&c);
    }
    expect_same_file(folder, "model.safetensors");
    json_t *root = config_of(folder, "whole"), *own = json_object_get(root, "outpace");
    assert_string_equal(json_string_value(json_object_get(root, "speculators_model_type")), "peagle");
    assert_int_equal(json_integer_value(json_object_get(root, "num_hidden_layers")), 2);
    assert_int_equal(json_integer_value(json_object_get(own, "parallel")), 4);
    json_decref(root);
    expect_fast(folder, "eagle3:top=1,depth=3,parallel=on", "whole");
    expect_fast(folder, "eagle3", "whole");
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        scratch_write(folder, "wrong.yaml", WRONG[i].text, strlen(WRONG[i].text));
        REFUSED(folder, WRONG[i].want, "eagle3", "heart", "--text", "rhymes.txt", "-o", "a", "--config",
                "wrong.yaml");
    }
    RUN(folder, 2, &c, "model", "inflate", "heart", "big", "--shape", "160m", "--adapter", "whole");
    assert_non_null(strstr(text_get(&c.err), "'whole' has a mask (P-EAGLE), and cannot be inflated"));
    child_release(&c);
    scratch_write(folder, "wrong.yaml", "parallel: 4\n", 12);
    REFUSED(folder, "'parallel' is not for mtp, only for: eagle3", "mtp", "heart", "--text", "rhymes.txt",
            "-o", "a", "--config", "wrong.yaml");
}

// A draft head of EAGLE's, in forwards on its own outputs; its agreement is told for each of five. Drafts of
// blocks by the same model.
static void drafts(void **state) {
    static const char HASS[] = "held_out: 0.2\nforwards: 3\nkeep: 0.00005\n", THIRD[] = "layers: [2, 1]\n",
                      NORMED[] = "held_out: 0.2\nstate: normed\nrecycle: normed\n";
    Child c;
    prepare(*state);
    scratch_write(*state, "hass.yaml", HASS, sizeof HASS - 1);
    scratch_write(*state, "two.yaml", THIRD, sizeof THIRD - 1);
    scratch_write(*state, "normed.yaml", NORMED, sizeof NORMED - 1);
    RUN(*state, 0, &c, "train", "eagle", "heart", "--config", "hass.yaml", "--text", "rhymes.txt",
        "--separator", "-", "--batch", "256", "--steps", "80", "--rate", "0.01", "-o", "eagle");
    assert_non_null(strstr(text_get(&c.out), "wrote the head to eagle"));
    assert_non_null(strstr(text_get(&c.err), "% are kept in memory, the others are run in each epoch"));
    child_release(&c);
    json_t *root = config_of(*state, "eagle"), *training = json_object_get(root, "outpace_train");
    json_t *agreement = json_object_get(training, "agreement");
    assert_int_equal(json_array_size(agreement), 5);
    for (size_t i = 0; i < 3; i++) assert_true(json_real_value(json_array_get(agreement, i)) > 0.6);
    json_decref(root);
    expect_fast(*state, "eagle", "eagle");
    RUN(*state, 0, &c, "train", "eagle3", "heart", "--config", "hass.yaml", "--text", "rhymes.txt",
        "--separator", "-", "--batch", "256", "--steps", "80", "--rate", "0.01", "-o", "eagle3");
    child_release(&c);
    expect_fast(*state, "eagle3", "eagle3");
    RUN(*state, 0, &c, "train", "eagle3", "heart", "--config", "hass.yaml", "--text", "rhymes.txt",
        "--separator", "-", "--batch", "256", "--steps", "80", "--rate", "0.01", "--draft-vocab", "40", "-o",
        "fewer");
    assert_non_null(strstr(text_get(&c.err), "tokens    40 of 390, which are "));
    child_release(&c);
    root = config_of(*state, "fewer");
    assert_int_equal(json_integer_value(json_object_get(root, "draft_vocab_size")), 40);
    json_decref(root);
    expect_fast(*state, "eagle3", "fewer");
    RUN(*state, 0, &c, "train", "mtp", "heart", "--config", "normed.yaml", "--text", "rhymes.txt",
        "--separator", "-", "--batch", "256", "--steps", "80", "--rate", "0.01", "-o", "mtp");
    child_release(&c);
    root = config_of(*state, "mtp");
    assert_string_equal(json_string_value(json_object_get(root, "mtp_state")), "normed");
    assert_string_equal(json_string_value(json_object_get(root, "mtp_recycle")), "normed");
    json_decref(root);
    expect_fast(*state, "mtp:gamma=3", "mtp");
    own_layer(*state);
    REFUSED(*state, "'state' is not for eagle, only for: mtp", "eagle", "heart", "--text", "rhymes.txt", "-o",
            "a", "--config", "normed.yaml");
    REFUSED(*state, "'draft_vocab' is not for eagle, only for: eagle3", "eagle", "heart", "--text",
            "rhymes.txt", "-o", "a", "--draft-vocab", "40");
    REFUSED(*state, "'layers' is not for eagle, only for: eagle3 dflash dspark", "eagle", "heart", "--text",
            "rhymes.txt", "-o", "a", "--config", "two.yaml");
    REFUSED(*state, "in ascending order", "eagle3", "heart", "--text", "rhymes.txt", "-o", "a", "--config",
            "two.yaml");
    REFUSED(*state, "'forwards' is not for heads, only for: eagle eagle3", "heads", "heart", "--text",
            "rhymes.txt", "-o", "a", "--config", "hass.yaml");
    blocks(*state);
    in_parallel(*state);
}

// A smaller model with the same tokenizer learns the first one's predictions, and drafts for it.
static void a_draft(void **state) {
    static const char DRAFT[] =
        "out: small\ntokenizer: tokenizer.json\nfiles: rhymes.txt\nseparator: '-'\nteacher: heart\n"
        "layers: 1\nwidth: 32\nheads: 2\nkey_heads: 1\nmlp: 64\ncontext: 64\nbatch: 256\n"
        "steps: 100\nrate: 0.02\nlast_rate: 0.002\nwarmup: 10\nheld_out: 0.2\nheld_out_every: 50\n";
    Child c;
    prepare(*state);
    scratch_write(*state, "draft.yaml", DRAFT, sizeof DRAFT - 1);
    RUN(*state, 0, &c, "train", "draft.yaml");
    assert_non_null(strstr(text_get(&c.out), "agreement "));
    child_release(&c);
    json_t *root = config_of(*state, "small"), *training = json_object_get(root, "outpace_train");
    assert_true(json_real_value(json_array_get(json_object_get(training, "agreement"), 0)) > 0.7);
    json_decref(root);
    RUN(*state, 0, &c, "generate", "heart", "twinkle twinkle", "--json", "-n", "30", "-m", "speculative",
        "--draft", "small");
    root = json_loads(text_get(&c.out), 0, NULL);
    assert_true(json_real_value(json_object_get(root, "S")) > 1.5);
    json_decref(root);
    child_release(&c);
}

static void in_pieces(void **state) {
    Child c;
    prepare(*state);
    RUN(*state, 0, &c, "train", "heads", "heart", "--config", "lesson2.yaml", "--heads", "2", "-o", "whole");
    child_release(&c);
    RUN(*state, 0, &c, "train", "heads", "heart", "--config", "lesson1.yaml", "--heads", "2", "-o", "pieces",
        "--stop-after", "31");
    assert_non_null(strstr(text_get(&c.err), "resumes from pieces.checkpoint"));
    child_release(&c);
    RUN(*state, 2, &c, "train", "heads", "heart", "--config", "lesson1.yaml", "--heads", "3", "-o", "pieces");
    assert_non_null(strstr(text_get(&c.err), "'pieces.checkpoint' is of a run with another configuration"));
    child_release(&c);
    RUN(*state, 0, &c, "train", "heads", "heart", "--config", "lesson2.yaml", "--heads", "2", "-o", "pieces");
    assert_non_null(strstr(text_get(&c.err), "resumed   at step 31"));
    child_release(&c);
    expect_same_file(*state, "model.safetensors");
    expect_same_file(*state, "config.json");
}

static size_t lines_of(const char *text) {
    size_t n = 0;
    for (const char *p = text; (p = strchr(p, '\n')); p++) n++;
    return n;
}

// An answer is the text that generate writes after the same prompt.
static void expect_answer(const char *folder, const char *line) {
    Child c;
    Text ids = {0};
    json_t *row = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL), *list = json_object_get(row, "ids");
    size_t prompt = (size_t)json_integer_value(json_object_get(row, "prompt"));
    assert_true(prompt > 0 && prompt < json_array_size(list));
    for (size_t i = 0; i < prompt; i++)
        text_printf(&ids, i ? ",%d" : "%d", (int)json_integer_value(json_array_get(list, i)));
    RUN(folder, 0, &c, "generate", "heart", "--ids", text_get(&ids), "--json", "-n", "8");
    json_t *root = json_loads(text_get(&c.out), 0, NULL), *got = json_object_get(root, "ids");
    assert_int_equal(json_array_size(got), json_array_size(list) - prompt);
    for (size_t i = 0; i < json_array_size(got); i++)
        assert_true(json_equal(json_array_get(got, i), json_array_get(list, prompt + i)));
    json_decref(root);
    json_decref(row);
    text_release(&ids);
    child_release(&c);
}

#define ANSWERS(folder, code, child, what, out, tokens)                                                     \
    RUN(folder, code, child, "train", what, "heart", "--dataset", "chat", "--split", "all", "--max-tokens", \
        tokens, "--answers", "kept.jsonl", "--steps", "2", "--batch", "256", "-o", out)

// Answers to a dataset's prompts are made once: another training finds them all, and after a stop only those
// that are missing are made, to the same file. Another model's, or shorter ones, are refused.
static void answers(void **state) {
    Child c;
    size_t n, m;
    prepare(*state);
    ANSWERS(*state, 0, &c, "heads", "a", "8");
    assert_non_null(strstr(text_get(&c.err), "left out  "));
    assert_non_null(strstr(text_get(&c.err), "kept in kept.jsonl"));
    child_release(&c);
    char *whole = scratch_read(*state, "kept.jsonl", &n), *line = strchr(whole, '\n') + 1, message[60];
    size_t made = lines_of(whole) - 1;
    assert_true(made > 5);
    expect_answer(*state, line);
    ANSWERS(*state, 0, &c, "eagle", "b", "8");
    snprintf(message, sizeof message, "answers   all %zu are in kept.jsonl", made);
    if (!strstr(text_get(&c.err), message)) fail_msg("wanted '%s', got '%s'", message, text_get(&c.err));
    child_release(&c);
    // The first answer and the last one are missing.
    const char *second = strchr(line, '\n') + 1, *end = whole + n - 1;
    while (end[-1] != '\n') end--;
    Text part = {0};
    text_add(&part, whole, (size_t)(line - whole));
    text_add(&part, second, (size_t)(end - second));
    scratch_write(*state, "kept.jsonl", part.data, part.length);
    ANSWERS(*state, 0, &c, "eagle", "c", "8");
    assert_non_null(strstr(text_get(&c.err), "answers   2 made in "));
    child_release(&c);
    char *again = scratch_read(*state, "kept.jsonl", &m);
    assert_true(n == m && memcmp(whole, again, n) == 0);
    ANSWERS(*state, 2, &c, "eagle", "d", "9");
    assert_non_null(strstr(text_get(&c.err), "another model or another --max-tokens"));
    child_release(&c);
    text_puts(&part, "{\"prompt\": 1, \"ids\": [1,400]}\n");
    scratch_write(*state, "kept.jsonl", part.data, part.length);
    ANSWERS(*state, 2, &c, "eagle", "d", "8");
    assert_non_null(strstr(text_get(&c.err), "'kept.jsonl': 'ids' must be a list of the model's token ids"));
    child_release(&c);
    text_release(&part);
    mem_free(whole);
    mem_free(again);
}

static void refusals(void **state) {
    prepare(*state);
    scratch_write(*state, "one.txt", "a line\nand another\n", 19);
    REFUSED(*state, "-o DIR", "adapter", "heart", "--text", "rhymes.txt");
    REFUSED(*state, "--text FILE", "adapter", "heart", "-o", "a");
    REFUSED(*state, "from 1 to 2", "adapter", "heart", "--text", "rhymes.txt", "-o", "a", "-l", "3");
    REFUSED(*state, "outpace train heads", "adapter", "heart", "--text", "rhymes.txt", "-o", "a", "--variant",
            "medusa");
    REFUSED(*state, "unknown adapter variant 'none'", "adapter", "heart", "--text", "rhymes.txt", "-o", "a",
            "--variant", "none");
    REFUSED(*state, "there is no model 'nowhere'", "heads", "nowhere", "--text", "rhymes.txt", "-o", "a");
    REFUSED(*state, "multiple of the 64 rows", "heads", "heart", "--text", "rhymes.txt", "-o", "a", "--batch",
            "100");
    // Before an answer is made.
    REFUSED(*state, "multiple of the 64 rows", "heads", "heart", "--dataset", "chat", "--split", "all", "-o",
            "a", "--batch", "100", "--answers", "made.jsonl");
    assert_int_equal(access(folder_path(*state, "made.jsonl"), F_OK), -1);
    REFUSED(*state, "without --separator LINE a file is one document", "heads", "heart", "--text", "one.txt",
            "-o", "a");
    REFUSED(*state, "usage", "adapters", "heart");
}

// A directory in place of config.json: the last rename would fail, and nothing of an attempt stays.
static void a_failed_end(void **state) {
    Child c;
    prepare(*state);
    const char *const words[] = {"train", "adapter", "heart",  "-o",         "ad",
                                 "-l",    "1",       "--text", "rhymes.txt", "--separator",
                                 "-",     "--steps", "1",      "--force",    NULL};
    assert_int_equal(mkdir(folder_path(*state, "ad"), 0777), 0);
    assert_int_equal(mkdir(folder_path(*state, "ad/config.json"), 0777), 0);
    child_outpace(&c, *state, 1, words);
    assert_non_null(strstr(text_get(&c.err), "cannot replace the model in 'ad'"));
    child_release(&c);
    assert_true(access(folder_path(*state, "ad/outpace-unfinished.json"), F_OK) != 0);
    assert_true(access(folder_path(*state, "ad/model.safetensors"), F_OK) != 0);
    assert_int_equal(rmdir(folder_path(*state, "ad/config.json")), 0);
    child_outpace(&c, *state, 0, words);
    child_release(&c);
    json_decref(config_of(*state, "ad"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(drafts, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(every_variant, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(heads, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(answers, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_draft, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(in_pieces, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_failed_end, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(refusals, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
