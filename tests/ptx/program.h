// Programs of the PTX machine: what parse.c makes of nvcc's text, one decoded instruction after the other.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANES = 32, MOST_OPERANDS = 10, MOST_RESULTS = 4, SPECIALS = 13 };
static const uint32_t ALL = 0xffffffffu;

typedef struct Warp Warp;
typedef struct Block Block;
typedef struct Instruction Instruction;
typedef void Execute(Warp *w, const Instruction *o, uint32_t lanes);
typedef bool Ready(Warp *w, const Instruction *o, uint32_t lanes); // whether it need not wait

// Where 32 lanes of a value are. A predicate is one word, a bit a lane; 16 and 32 bits are 32 words; 64 bits
// 32 double words.
typedef struct Operand {
    uint32_t at; // bytes from the start of the warp's registers, or of the kernel's constants
    uint16_t id; // of a register: its number
    uint8_t constant;
    uint8_t bits; // 1, 16, 32, 64
} Operand;

typedef enum { // how an instruction is counted
    COUNT_MOVE,
    COUNT_INTEGER,
    COUNT_FLOAT,
    COUNT_DOUBLE,
    COUNT_SPECIAL, // exponentials, roots, divisions
    COUNT_COMPARE,
    COUNT_BRANCH,
    COUNT_PARAM,
    COUNT_GLOBAL,
    COUNT_SHARED,
    COUNT_LOCAL,
    COUNT_GENERIC,
    COUNT_COPY, // asynchronous copies, their groups and waits
    COUNT_ATOMIC,
    COUNT_MATRIX, // ldmatrix
    COUNT_MMA,
    COUNT_WGMMA, // with its fences, groups and waits
    COUNT_MBARRIER,
    COUNT_BULK,
    COUNT_SHUFFLE,
    COUNT_BARRIER,
    COUNT_FENCE,
    COUNT_OTHER,
    COUNTS
} Count;

typedef enum { FLOW_NEXT, FLOW_BRANCH, FLOW_EXIT, FLOW_BARRIER, FLOW_COLLECTIVE, FLOW_WARP_SYNC } Flow;
typedef enum { SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM, SPACE_GENERIC } Space;
typedef enum {
    ACCESS_WEAK,
    ACCESS_STRONG,
    ACCESS_CONSTANT
} Access; // .volatile, .cg, .relaxed are strong; .nc constant
typedef enum { PASS_ANY, PASS_CHOSEN, PASS_AND, PASS_OR } Unwritten; // how unwritten sources make a result so
typedef enum { ATOM_ADD, ATOM_MIN, ATOM_MAX, ATOM_EXCH, ATOM_CAS } Atom;

struct Instruction {
    Execute *execute;
    Ready *ready;                                              // NULL: always
    Operand d[MOST_RESULTS], s[MOST_OPERANDS], guard, members; // members: of a collective
    uint8_t results, sources, flow, count;
    bool guarded, negated;
    bool far, wide; // its address may be in another block of the cluster; it tells other blocks, too
    uint8_t space, access, atom; // of memory
    uint8_t pass;
    uint8_t bytes, width; // bytes of an element, elements of a vector
    int latency;          // cycles until a result can be used; negative: memory's
    uint32_t target;      // of a branch
    int64_t offset, more; // displacements of addresses; a small constant
    int64_t third;        // displacement of a bulk copy's mbarrier
    Operand *sums;        // of wgmma
    uint16_t sum_count;
    int line; // in the PTX
};

typedef struct Kernel {
    char *name, *file;
    Instruction *code;
    size_t length;
    unsigned char *constants;
    uint32_t register_bytes, registers, local_bytes, param_bytes, shared_bytes; // shared: its own, in front
    uint32_t *param_at, *param_size;
    int params, most_threads, cluster; // cluster: blocks of one; 0: the launch says how many
    uint8_t target;                    // 80, 90; 91: 9.0a
    bool tensor;                       // it has wgmma
    char *refused;                     // why it can't run, or NULL
    Operand special[SPECIALS];         // %tid.x and so on: registers that a warp begins with
} Kernel;

// Reads a file of PTX and adds its kernels to the machine's.
void ptx_load(const char *path);
const Kernel *ptx_kernel(const char *name, int target); // NULL: there is none

// What arithmetic an opcode is; NULL: none. Operands: result first, p h w d for 1, 16, 32 and 64 bits.
typedef struct Arithmetic {
    const char *opcode;
    Execute *execute;
    const char *operands;
    uint8_t count;
    int latency;
} Arithmetic;
const Arithmetic *form_find(const char *opcode);
Execute narrow_to_word, pack_words, unpack_words, pack_halves, unpack_halves;
Execute run_shuffle, run_ballot, run_elect, run_matrices, run_mma;
Execute run_load, run_store, run_load_param, run_atomic, run_copy, run_copy_commit, run_copy_wait, run_fence;
Execute run_shared_to_generic, run_generic_to_shared, run_launch_wait, run_nothing;
