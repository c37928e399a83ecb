// A file of the source tree as a text in the program: the assembler reads it, and the Makefile tells make
// about it. `symbol` is where it begins, `symbol_end` where it ends: a NUL stands there. Hidden, so that no
// table of addresses is in between: on an Arm that table would tell the section's begin for each of them.
#pragma once

#define EMBED(symbol, path)                                                      \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" path "\"\n" #symbol \
            "_end:\n.byte 0\n.popsection\n");                                    \
    extern __attribute__((visibility("hidden"))) const char symbol[], symbol##_end[];
