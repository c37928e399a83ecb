// The table of methods: one row each, in the order of --help. No other list names them.
#include "engine/decode/methods/methods.h"

static const MethodInfo *const METHODS[] = {
    &method_autoregressive, &method_jacobi,    &method_prompt_lookup, &method_lookahead,  &method_speculative,
    &method_ngrammys,       &method_ouroboros, &method_kangaroo,      &method_early_exit, &method_medusa,
    &method_eagle,          &method_eagle3,    &method_mtp,           &method_dflash,     &method_rest,
    &method_suffix,         &method_ngram_mod, &method_recycling,     &method_mix,        &method_oracle,
};

const MethodInfo *const *method_table(size_t *count) {
    *count = sizeof METHODS / sizeof *METHODS;
    return METHODS;
}
