// Learns a byte-fallback BPE of the Llama 2 kind from text, and writes it as a tokenizer.json that Hugging
// Face tokenizers loads too:
//
//      0 <unk>  1 <s>  2 </s>  3.. <0x00> to <0xFF>  then characters, the commonest first, then merges
//
// Merges are learned within words and applied without them: no merge has the last character of one word and
// the first of another in it, so a whole text is encoded as its words would be, alike by every program.
//
// A word is a run of one kind of character with the spaces ("▁") before it: letters, other signs, line ends.
// Digits stand alone.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct Learner Learner;

enum { LEARN_MIN_VOCAB = 3 + 256 + 96 }; // specials, bytes, and ASCII's printable characters

Learner *learner_open(Error *e);
void learner_close(Learner *l); // takes NULL

// Counts the words of one text. Bytes that are not UTF-8 are passed over.
bool learner_add(Learner *l, const char *text, size_t n, Error *e);

// The tokenizer.json with `vocab` pieces, for mem_free; NULL with e filled. Fewer pieces are an error: there
// is too little text for so many pieces. Deterministic: equal counts go by the pieces' order.
char *learner_finish(Learner *l, int vocab, Error *e);
