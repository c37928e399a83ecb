// A file of the source tree as a text in the program: the assembler reads it, and the Makefile tells make
// about it. `symbol` is where it begins, `symbol_end` where it ends: a NUL stands there.
#pragma once

#define EMBED(symbol, path)                                                      \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" path "\"\n" #symbol \
            "_end:\n.byte 0\n.popsection\n");                                    \
    extern const char symbol[], symbol##_end[];
