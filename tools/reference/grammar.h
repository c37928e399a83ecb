// A grammar that writes documents: rules with alternatives, variables, arithmetic and lists.
//
// A file holds rules. A line at the margin that ends in a colon names a rule; each indented line under it is
// an alternative, with an optional weight ("*3 "); a backslash at the end of a line continues it on the next
// one; '#' at the margin begins a comment. In an alternative:
//
//     [rule]  [a|b|]        a rule, named with {variables} if need be; one of several texts
//     {name}  {a*b-1}       a variable; a number that is computed
//     {^name} [^rule]       the same with a capital letter
//     {$cents} {n words}    an amount in dollars; a number in words
//     {name.2} {name.a}     a field of a value "apple~apples~..."; "an apple"
//     {name.they} {name#n}  a pronoun by the field after the name (f, m, or else); one or many, by n
//     <n = 2..9> <n = a*b>  sets a number: drawn, computed; a division with a remainder fails
//     <x : text> <x ! text> sets a text; the second one is like no other variable
//     <x @ name words>      sets what a function of lists gives (lists.h)
//     <? a over b & c == x> a condition (over, under, ==, !=): at the start of an alternative it decides
//     whether that
//                           one can be chosen; anywhere else it fails the document, which then begins again
//     <cut>                 the end of the prompt, where the document is for evaluation
//     \n \[ \{ \< \\        a newline; the character itself
//
// The rule `alike` lists phrases that mean the same ("a|b|c" each): wherever one of them is in a document,
// any of them is put there.
//
// The alternatives that were chosen in rules with a capital letter are the document's structure. Its hash
// decides whether it is held out, so that no text to learn from is that of a held-out one with other names
// and numbers.
#pragma once
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/base/text.h"

typedef struct Grammar Grammar;

// The grammar in n bytes; `place` is its name for messages. NULL with e filled.
Grammar *grammar_parse(const char *bytes, size_t n, const char *place, Error *e);
void grammar_close(Grammar *g); // takes NULL

typedef struct Document {
    Text text;
    size_t cut; // bytes of the prompt; 0: none was marked
    uint64_t structure;
} Document;

// A document of the rule `start`, drawn from r. False with e filled if a rule is missing, or if no try of
// many satisfies its conditions.
bool grammar_write(const Grammar *g, const char *start, Random *r, Document *out, Error *e);
void document_release(Document *d);
