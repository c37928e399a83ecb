// Files that the assembler reads into the program; the Makefile tells make about them.
#pragma once

#define EMBED(symbol, path)                                                                      \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" path "\"\n.byte 0\n.popsection\n"); \
    extern const char symbol[];
