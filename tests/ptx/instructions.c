// Instructions of PTX, decoded.
#include "tests/ptx/reader.h"

#include <ctype.h>
#include <stdio.h>

static uint8_t space_of(const char *opcode) {
    return opcode_has(opcode, "global") ? SPACE_GLOBAL
           : opcode_has(opcode, "shared") || opcode_has(opcode, "shared::cta") ||
                   opcode_has(opcode, "shared::cluster")
               ? SPACE_SHARED
           : opcode_has(opcode, "local") ? SPACE_LOCAL
           : opcode_has(opcode, "param") ? SPACE_PARAM
                                         : SPACE_GENERIC;
}
static uint8_t access_of(const char *opcode) {
    if (opcode_has(opcode, "nc")) return ACCESS_CONSTANT;
    return opcode_has(opcode, "volatile") || opcode_has(opcode, "cg") || opcode_has(opcode, "cv") ||
                   opcode_has(opcode, "relaxed") || opcode_has(opcode, "acquire")
               ? ACCESS_STRONG
               : ACCESS_WEAK;
}
static uint8_t count_of(uint8_t space) {
    static const uint8_t counts[] = {COUNT_GLOBAL, COUNT_SHARED, COUNT_SHARED,
                                     COUNT_LOCAL,  COUNT_PARAM,  COUNT_GENERIC};
    return counts[space];
}

static void read_memory(Reader *r, const char *opcode, const Argument *a, bool load) {
    const Argument *at = &a[load ? 1 : 0], *values = &a[load ? 0 : 1];
    uint32_t index;
    const Declared *d = reader_find(r, at->word[0], &index);
    uint8_t space = space_of(opcode);
    bool slot = space == SPACE_PARAM && d && d->kind == NAME_SLOT; // of a call: local memory
    if (slot) space = SPACE_LOCAL;
    int bits = type_bits(opcode);
    Operand address = reader_address(r, at, space), value[4];
    if (values->words > 4) {
        reader_refuse(r, "a vector of %d", values->words);
        return;
    }
    for (int i = 0; i < values->words; i++)
        value[i] = load ? reader_named(r, values->word[i])
                        : reader_source(r, values->word[i], bits < 32 ? 16 : bits);
    Instruction *o = reader_emit(r,
                                 !load                  ? run_store
                                 : space == SPACE_PARAM ? run_load_param
                                                        : run_load,
                                 count_of(space), load ? -1 : 1);
    o->space = space, o->access = access_of(opcode), o->far = opcode_has(opcode, "shared::cluster");
    o->bytes = (uint8_t)(bits / 8), o->width = (uint8_t)values->words;
    o->offset = at->offset;
    o->s[o->sources++] = address;
    for (int i = 0; i < values->words; i++) {
        if (load) o->d[o->results++] = value[i];
        else o->s[o->sources++] = value[i];
    }
    o->negated = opcode_has(opcode, "s8") || opcode_has(opcode, "s16") ||
                 opcode_has(opcode, "s32"); // extends the sign
    if (!load) o->negated = false;
}

static void read_atomic(Reader *r, const char *opcode, const Argument *a, int count) {
    uint8_t space = space_of(opcode);
    int bits = type_bits(opcode);
    bool silent = opcode_begins(opcode, "red."); // nobody asks for the old value
    Operand result = silent ? reader_register(r, bits) : reader_named(r, a++->word[0]);
    Operand address = reader_address(r, &a[0], space), value[2];
    count -= !silent;
    for (int i = 1; i < count && i < 3; i++) value[i - 1] = reader_source(r, a[i].word[0], bits);
    Instruction *o = reader_emit(r, run_atomic, COUNT_ATOMIC, -1);
    o->space = space, o->bytes = (uint8_t)(bits / 8), o->width = 1, o->offset = a[0].offset;
    o->far = opcode_has(opcode, "shared::cluster");
    o->atom = opcode_has(opcode, "add")    ? ATOM_ADD
              : opcode_has(opcode, "min")  ? ATOM_MIN
              : opcode_has(opcode, "max")  ? ATOM_MAX
              : opcode_has(opcode, "exch") ? ATOM_EXCH
                                           : ATOM_CAS;
    if (opcode_has(opcode, "s32") || opcode_has(opcode, "f32")) reader_refuse(r, "'%s' is not known", opcode);
    o->d[0] = result, o->results = 1;
    o->s[0] = address, o->sources = 1;
    for (int i = 1; i < count && i < 3; i++) o->s[o->sources++] = value[i - 1];
}

static void read_copy(Reader *r, const char *opcode, const Argument *a, int count) {
    if (opcode_has(opcode, "commit_group")) {
        reader_emit(r, run_copy_commit, COUNT_COPY, 1);
        return;
    }
    if (opcode_has(opcode, "wait_group")) {
        reader_emit(r, run_copy_wait, COUNT_COPY, 1)->more = strtoll(a[0].word[0], NULL, 0);
        return;
    }
    if (!opcode_begins(opcode, "cp.async.cg.shared.global") || strcmp(a[2].word[0], "16")) {
        reader_refuse(r, "'%s' is not known", opcode);
        return;
    }
    Operand to = reader_address(r, &a[0], SPACE_SHARED), from = reader_address(r, &a[1], SPACE_GLOBAL);
    count -= opcode_has(opcode, "L2::cache_hint");
    Operand size = count > 3 ? reader_source(r, a[3].word[0], 32) : reader_constant(r, 16, 32);
    Instruction *o = reader_emit(r, run_copy, COUNT_COPY, 1);
    o->s[0] = to, o->s[1] = from, o->s[2] = size;
    o->sources = 3, o->offset = a[0].offset, o->more = a[1].offset;
}

static void read_collective(Reader *r, const char *opcode, const Argument *a) {
    Operand operands[MOST_OPERANDS], members = reader_constant(r, ALL, 32);
    int n = 0;
    if (opcode_begins(opcode, "shfl.sync")) {
        for (int i = 1; i < 4; i++) operands[n++] = reader_source(r, a[i].word[0], 32);
        members = reader_source(r, a[4].word[0], 32);
        Instruction *o = reader_emit(r, run_shuffle, COUNT_SHUFFLE, SHUFFLE_CYCLES);
        o->more = opcode_has(opcode, "bfly")   ? 0
                  : opcode_has(opcode, "idx")  ? 1
                  : opcode_has(opcode, "down") ? 2
                                               : 3;
        o->d[o->results++] = reader_named(r, a[0].word[0]);
    } else if (opcode_begins(opcode, "vote.sync.ballot")) {
        const char *p = a[1].word[0];
        bool not = *p == '!';
        operands[n++] = reader_named(r, not ? a[1].word[1] : p);
        members = reader_source(r, a[2].word[0], 32);
        Instruction *o = reader_emit(r, run_ballot, COUNT_SHUFFLE, VOTE_CYCLES);
        o->more = not ;
        o->d[o->results++] = reader_named(r, a[0].word[0]);
    } else if (opcode_begins(opcode, "ldmatrix.sync.aligned.m8n8.x4")) {
        operands[n++] = reader_address(r, &a[1], SPACE_SHARED);
        Instruction *o = reader_emit(r, run_matrices, COUNT_MATRIX, MATRIX_CYCLES);
        o->more = opcode_has(opcode, "trans"), o->offset = a[1].offset;
        for (int i = 0; i < 4; i++) o->d[o->results++] = reader_named(r, a[0].word[i]);
    } else if (opcode_begins(opcode, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") ||
               opcode_begins(opcode, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")) {
        for (int i = 1; i < 4; i++)
            for (int j = 0; j < a[i].words && n < MOST_OPERANDS; j++)
                operands[n++] = reader_named(r, a[i].word[j]);
        Instruction *o = reader_emit(r, run_mma, COUNT_MMA, MMA_CYCLES);
        o->more = opcode_has(opcode, "f16");
        for (int i = 0; i < 4; i++) o->d[o->results++] = reader_named(r, a[0].word[i]);
    } else {
        reader_refuse(r, "'%s' is not known", opcode);
        return;
    }
    Instruction *o = &r->k->code[r->k->length - 1];
    memcpy(o->s, operands, (size_t)n * sizeof *operands);
    o->sources = (uint8_t)n, o->members = members, o->flow = FLOW_COLLECTIVE;
}

static void read_move(Reader *r, const char *opcode, const Argument *a) {
    bool pack = a[1].words > 1, wide = type_bits(opcode) == 64;
    Operand in[2] = {0}, out[2] = {0};
    for (int i = 0; i < a[1].words && i < 2; i++)
        in[i] = reader_source(r, a[1].word[i], pack ? (wide ? 32 : 16) : wide ? 64 : 32);
    for (int i = 0; i < a[0].words && i < 2; i++) out[i] = reader_named(r, a[0].word[i]);
    Instruction *o = reader_emit(r,
                                 pack   ? (wide ? pack_words : pack_halves)
                                 : wide ? unpack_words
                                        : unpack_halves,
                                 COUNT_MOVE, QUICK_CYCLES);
    for (int i = 0; i < a[1].words && i < 2; i++) o->s[o->sources++] = in[i];
    for (int i = 0; i < a[0].words && i < 2; i++) o->d[o->results++] = out[i];
    if (a[0].words > 2 || a[1].words > 2)
        reader_refuse(r, "a vector of %d", a[0].words > 2 ? a[0].words : a[1].words);
}

static void read_form(Reader *r, const char *opcode, const Argument *a, int count) {
    const Arithmetic *f = form_find(opcode);
    if (!f) {
        reader_refuse(r, "'%s' is not known", opcode);
        return;
    }
    if (count != (int)strlen(f->operands)) {
        reader_refuse(r, "'%s' has %d operands", opcode, count);
        return;
    }
    Operand in[MOST_OPERANDS], result = reader_named(r, a[0].word[0]);
    for (int i = 1; i < count; i++) in[i - 1] = reader_source(r, a[i].word[0], operand_bits(f->operands[i]));
    if ((result.bits == 64) != (f->operands[0] == 'd') || (result.bits == 1) != (f->operands[0] == 'p'))
        reader_refuse(r, "the result of '%s' has %d bits", opcode, result.bits);
    Instruction *o = reader_emit(r, f->execute, f->count, f->latency);
    o->pass = opcode_begins(opcode, "selp") ? PASS_CHOSEN
              : !strcmp(opcode, "and.pred") ? PASS_AND
              : !strcmp(opcode, "or.pred")  ? PASS_OR
                                            : PASS_ANY;
    o->d[0] = result, o->results = 1;
    memcpy(o->s, in, (size_t)(count - 1) * sizeof *in);
    o->sources = (uint8_t)(count - 1);
}

static void branch_to(Reader *r, const char *label) {
    r->jumps = ptx_grown(r->jumps, r->jump_count, sizeof *r->jumps);
    Jump *j = &r->jumps[r->jump_count++];
    j->from = r->k->length;
    snprintf(j->name, NAME, "%.40s%.80s", r->scope, label);
    j->block = r->block;
    reader_emit(r, run_nothing, COUNT_BRANCH, 0)->flow = FLOW_BRANCH;
}

void reader_label(Reader *r, const char *name) {
    r->labels = ptx_grown(r->labels, r->label_count, sizeof *r->labels);
    Label *l = &r->labels[r->label_count++];
    snprintf(l->name, NAME, "%.40s%.80s", r->scope, name);
    l->at = (uint32_t)r->k->length, l->block = r->block;
}

// Binds the names of a parameter list, in order, to slots of the caller.
static void bind(Reader *r, Cursor list, const Argument *given) {
    Cursor kept = r->c;
    char word[NAME], last[NAME] = "";
    int n = 0;
    r->c = list;
    for (int depth = 0;;) {
        cursor_word(&r->c, word);
        if (!strcmp(word, "[")) depth++;
        if (!strcmp(word, "]")) depth--;
        bool ends = !strcmp(word, ")"), between = !depth && !strcmp(word, ",");
        if ((ends || between) && *last) {
            uint32_t index;
            const Declared *d = n < given->words ? reader_find(r, given->word[n++], &index) : NULL;
            if (!d || d->kind != NAME_SLOT) reader_refuse(r, "a call's argument is not a slot");
            else reader_declare(r, last, NAME_SLOT, 0, (Operand){0}, d->at);
        }
        if (ends || !*word) break;
        if (!depth && (word[0] == '_' || isalpha((unsigned char)word[0]))) strcpy(last, word);
    }
    r->c = kept;
}

// call (results), name, (parameters): the function's text once more.
static void read_call(Reader *r, const Argument *a, int count) {
    const Function *f = NULL;
    Argument none = {0};
    for (size_t i = 0; i < r->function_count && count >= 2; i++)
        if (!strcmp(r->functions[i].name, a[1].word[0])) f = &r->functions[i];
    if (!f || r->in_function) {
        reader_refuse(r, "a call of '%s'", count >= 2 ? a[1].word[0] : "?");
        return;
    }
    Cursor after = r->c;
    size_t names = r->name_count;
    bind(r, f->results, &a[0]);
    bind(r, f->parameters, count > 2 ? &a[2] : &none);
    snprintf(r->scope, NAME, "call %d ", ++r->inlined);
    r->in_function = true;
    r->c = f->body;
    reader_body(r);
    reader_label(r, "end");
    r->scope[0] = 0, r->in_function = false;
    r->name_count = names;
    r->c = after;
}

void reader_instruction(Reader *r, const char *opcode) {
    Argument a[MOST_ARGUMENTS];
    int n = reader_arguments(r, a);
    if (r->k->refused || read_asynchronous(r, opcode, a, n)) return;
    if (!strcmp(opcode, "bra") || !strcmp(opcode, "bra.uni")) branch_to(r, a[0].word[0]);
    else if (!strcmp(opcode, "ret") || !strcmp(opcode, "exit")) {
        if (r->in_function) branch_to(r, "end");
        else reader_emit(r, run_nothing, COUNT_BRANCH, 0)->flow = FLOW_EXIT;
    } else if (!strcmp(opcode, "bar.warp.sync")) {
        Operand members = reader_source(r, a[0].word[0], 32);
        Instruction *o = reader_emit(r, run_nothing, COUNT_BARRIER, WARP_SYNC_CYCLES);
        o->flow = FLOW_WARP_SYNC, o->members = members;
    } else if (opcode_begins(opcode, "membar.gl") || opcode_begins(opcode, "membar.sys") ||
               opcode_begins(opcode, "fence.acq_rel.gpu") || opcode_begins(opcode, "fence.sc.gpu"))
        reader_emit(r, run_fence, COUNT_FENCE, FENCE_CYCLES);
    else if (!strcmp(opcode, "griddepcontrol.wait")) reader_emit(r, run_launch_wait, COUNT_OTHER, 0);
    else if (!strcmp(opcode, "griddepcontrol.launch_dependents")) reader_emit(r, run_nothing, COUNT_OTHER, 0);
    else if (opcode_begins(opcode, "ld.")) read_memory(r, opcode, a, true);
    else if (opcode_begins(opcode, "st.")) read_memory(r, opcode, a, false);
    else if (opcode_begins(opcode, "atom.") || opcode_begins(opcode, "red.")) read_atomic(r, opcode, a, n);
    else if (opcode_begins(opcode, "cp.async")) read_copy(r, opcode, a, n);
    else if (opcode_begins(opcode, "createpolicy.fractional.L2::evict_first.b64")) {
        Argument some[2] = {a[0], {.words = 1, .word = {"0"}}};
        read_form(r, "mov.b64", some, 2);
    } else if (opcode_begins(opcode, "call")) read_call(r, a, n);
    else if (opcode_begins(opcode, "mov.") && (a[0].words > 1 || a[1].words > 1)) read_move(r, opcode, a);
    else if (!strcmp(opcode, "cvta.shared.u64") || !strcmp(opcode, "cvta.to.shared.u64")) {
        Operand in = reader_source(r, a[1].word[0], 64), out = reader_named(r, a[0].word[0]);
        Instruction *o =
            reader_emit(r, opcode_has(opcode, "to") ? run_generic_to_shared : run_shared_to_generic,
                        COUNT_MOVE, QUICK_CYCLES);
        o->s[o->sources++] = in, o->d[o->results++] = out;
    } else if (opcode_begins(opcode, "shfl") || opcode_begins(opcode, "vote") ||
               opcode_begins(opcode, "ldmatrix") || opcode_begins(opcode, "mma"))
        read_collective(r, opcode, a);
    else read_form(r, opcode, a, n);
}
