#include "tests/support/learner.h"

#include "tests/support/check.h"

enum { LONGEST = 256 };

void learner_corpus(Corpus *c, int documents, int longest, uint64_t seed) {
    Random r = {.seed = seed, .stream = STREAM_TEST};
    *c = (Corpus){0};
    for (int d = 0; d < documents; d++) {
        int ids[LONGEST], n = test_between(&r, 2, longest < LONGEST ? longest : LONGEST);
        ids[0] = test_between(&r, 0, LEARNER_VOCAB - 1);
        for (int i = 1; i < n; i++) ids[i] = (ids[i - 1] * 7 + 3) % LEARNER_VOCAB;
        corpus_add(c, ids, (size_t)n);
    }
}

TrainConfig learner_config(int steps) {
    return (TrainConfig){.shape = {.layers = 2,
                                   .width = 32,
                                   .heads = 4,
                                   .kv_heads = 1,
                                   .head_dim = 8,
                                   .mlp_width = 48,
                                   .vocab = LEARNER_VOCAB,
                                   .real_vocab = LEARNER_VOCAB,
                                   .context = 32,
                                   .tied_head = true,
                                   .norm_epsilon = 1e-5f,
                                   .rope = {.theta = 10000, .pairs = 4, .attention_factor = 1}},
                         .optimizer = {.steps = steps,
                                       .warmup = steps / 10,
                                       .rate = 0.01,
                                       .last_rate = 0.001,
                                       .beta1 = 0.9,
                                       .beta2 = 0.95,
                                       .epsilon = 1e-8,
                                       .weight_decay = 0.1,
                                       .clip = 1,
                                       .momentum = 0.95},
                         .batch = 128,
                         .pass = 64,
                         .held_out = 0.2,
                         .held_out_rows = 1000,
                         .seed = 5,
                         .threads = 1};
}
