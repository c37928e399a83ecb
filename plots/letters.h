// Text of foreign origin, letter by letter, so that it stays one line of valid UTF-8 wherever it goes.
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { LETTER_SIZE = 5 };

// The next letter of *at, and *at after it; false at the end. What is a control character, not UTF-8, or no
// letter of XML comes out as '?'.
bool letters_next(const char **at, char out[LETTER_SIZE]);

uint32_t letters_code(const char *letter); // in Unicode, of one that letters_next gave

// How LaTeX writes a letter that means something to it; NULL: as it is.
const char *letters_tex(char c);
