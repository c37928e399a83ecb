#include "tests/simt/fiber.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
// What the frames of the stack's last user left marked: it ended without returning.
static void forget_frames(Fiber *f) { __asan_unpoison_memory_region(f->stack, FIBER_STACK); }
#else
static void forget_frames(Fiber *) {}
#endif

#ifdef __x86_64__

// Keeps what a call must keep, swaps stacks, and returns to where the other one stopped.
extern "C" void simt_swap(void **from, void *to);
asm(R"(
.text
.type simt_swap, @function
simt_swap:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size simt_swap, .-simt_swap
)");

static void swap(Fiber *from, Fiber *to) { simt_swap(&from->machine, to->machine); }

// As if entry had been called by nobody, and had stopped before its first instruction.
void fiber_begin(Fiber *f, void (*entry)()) {
    void **top = (void **)((char *)f->stack + FIBER_STACK);
    forget_frames(f);
    *--top = nullptr; // keeps the stack at entry as aligned as a call leaves it
    *--top = (void *)entry;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    f->machine = top;
    f->shadow = nullptr;
}

#else
#include <ucontext.h>

static ucontext_t *context(Fiber *f) {
    if (!f->machine) f->machine = calloc(1, sizeof(ucontext_t));
    if (!f->machine) abort();
    return (ucontext_t *)f->machine;
}

static void swap(Fiber *from, Fiber *to) { swapcontext(context(from), context(to)); }

void fiber_begin(Fiber *f, void (*entry)()) {
    ucontext_t *c = context(f);
    forget_frames(f);
    getcontext(c);
    c->uc_stack.ss_sp = f->stack;
    c->uc_stack.ss_size = FIBER_STACK;
    c->uc_link = nullptr;
    makecontext(c, entry, 0);
    f->shadow = nullptr;
}
#endif

// Stacks a multiple of 4 KB apart would all have their tops, the part that is in use, in the same lines of
// the cache.
static const size_t STRIDE = FIBER_STACK + 9 * 64;

Fiber *fibers_open(int count) {
    Fiber *f = (Fiber *)calloc((size_t)count, sizeof *f);
    void *stacks = mmap(nullptr, (size_t)count * STRIDE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!f || stacks == MAP_FAILED) abort();
    for (int i = 0; i < count; i++) f[i].stack = (char *)stacks + (size_t)i * STRIDE;
    return f;
}

#ifdef __SANITIZE_ADDRESS__

// The stack of the thread that launches, for which no Fiber has one.
static void own_stack(const void **bottom, size_t *size) {
    pthread_attr_t a;
    void *low;
    pthread_getattr_np(pthread_self(), &a);
    pthread_attr_getstack(&a, &low, size);
    pthread_attr_destroy(&a);
    *bottom = low;
}

void fiber_arrived(Fiber *self) { __sanitizer_finish_switch_fiber(self->shadow, nullptr, nullptr); }

void fiber_switch(Fiber *from, Fiber *to, bool last) {
    const void *bottom = to->stack;
    size_t size = FIBER_STACK;
    if (!bottom) own_stack(&bottom, &size);
    __sanitizer_start_switch_fiber(last ? nullptr : &from->shadow, bottom, size);
    swap(from, to);
    fiber_arrived(from);
}
#else
void fiber_arrived(Fiber *) {}
void fiber_switch(Fiber *from, Fiber *to, bool) { swap(from, to); }
#endif
