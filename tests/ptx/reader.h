// A kernel while its text is read: words of PTX, the names that it has declared, its instructions so far.
#pragma once
#include "tests/ptx/memory.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = 128, MOST_ARGUMENTS = 16, MOST_WORDS = 132 };

typedef struct Cursor {
    const char *at;
    int line;
} Cursor;

// The next word, number or sign; empty at the end.
void cursor_word(Cursor *c, char out[NAME]);
bool cursor_take(Cursor *c, const char *wanted); // whether it comes next; then it is passed

// A declared name: registers (count of them, as %r0, %r1, ..), a parameter of the kernel, a slot of a call,
// or local memory.
typedef enum { NAME_REGISTER, NAME_PARAM, NAME_SLOT, NAME_LOCAL } NameKind;
typedef struct Declared {
    char name[NAME];
    NameKind kind;
    uint32_t count; // 0: the name itself
    Operand first;
    uint32_t at; // of parameters, slots and local memory
} Declared;

typedef struct Label {
    char name[NAME];
    uint32_t at, block;
} Label;
typedef struct Jump {
    char name[NAME];
    size_t from;
    uint32_t block;
} Jump;
typedef struct Function { // its text, for the calls
    char name[NAME];
    Cursor results, parameters, body;
} Function;

typedef struct Reader {
    Cursor c;
    Kernel *k;
    Declared *names;
    size_t name_count;
    Label *labels;
    size_t label_count;
    Jump *jumps;
    size_t jump_count;
    uint32_t *outside, block, blocks; // of each "{": the block around it; the one that is read; how many
    size_t constant_bytes;
    struct {
        uint64_t value;
        Operand at;
    } * constants;
    size_t constant_count;
    Function *functions;
    size_t function_count;
    int inlined;      // calls so far, which makes labels differ
    char scope[NAME]; // of labels: empty, or of the call that is read
    bool in_function; // `ret` is a branch to the end of it
} Reader;

// The kernel will not run, for this reason: the first one counts.
void reader_refuse(Reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

Operand reader_register(Reader *r, int bits);                 // a new one
Operand reader_constant(Reader *r, uint64_t value, int bits); // the same in every lane
Operand reader_named(Reader *r, const char *name);
void reader_declare(Reader *r, const char *name, NameKind kind, uint32_t count, Operand first, uint32_t at);

// The innermost declaration of a name, or of the row of registers that it is one of; NULL: there is none.
const Declared *reader_find(const Reader *r, const char *name, uint32_t *index);

// A source that is read as `bits`: a register, a number, or the place of something. Registers may be wider
// than what is read of them.
Operand reader_source(Reader *r, const char *word, int bits);
Instruction *reader_emit(Reader *r, Execute *execute, Count count, int latency);

// "a", "{a, b}", "[a + 8]", "a|b", "(a)"
typedef struct Argument {
    char word[MOST_WORDS][NAME]; // of a vector: its elements
    char also[NAME];             // b; empty: there is none
    int words;
    bool address;
    int64_t offset;
} Argument;
int reader_arguments(Reader *r, Argument a[MOST_ARGUMENTS]); // to the ";"; how many there are

// Of a letter in Arithmetic's operands, and of an opcode's last type.
static inline int operand_bits(char letter) {
    return letter == 'p' ? 1 : letter == 'h' ? 16 : letter == 'w' ? 32 : 64;
}
static inline int type_bits(const char *opcode) { return atoi(strrchr(opcode, '.') + 2); }

bool opcode_has(const char *opcode, const char *part); // ".part" as a whole word of it
static inline bool opcode_begins(const char *opcode, const char *with) {
    return strncmp(opcode, with, strlen(with)) == 0;
}
Operand reader_address(Reader *r, const Argument *a, uint8_t space);

// asynchronous.c: barriers, mbarriers, bulk copies, wgmma; false: it is none of those
bool read_asynchronous(Reader *r, const char *opcode, const Argument *a, int count);

// instructions.c
void reader_instruction(Reader *r, const char *opcode);
void reader_label(Reader *r, const char *name);

// parse.c
void reader_body(Reader *r);                             // after a "{", to its "}"
const void *ptx_table(const char *name);                 // of constants; NULL: there is none
void *ptx_grown(void *array, size_t count, size_t size); // with room for one more than count
