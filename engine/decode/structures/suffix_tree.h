// Every substring of at most `depth` tokens of several texts, with its number of occurrences: what
// SuffixDecoding (Oliaro et al.) drafts from. The last text is the running one; it grows by a token at a
// time.
//
//      texts: a b c a b d          root (6) --- a b (2) --- c a b d (1)      a node: the tokens on the edge
//      to
//                                       |               \-- d (1)            it, and their occurrences as an
//                                       |-- b (2) ---- ...                   end of the path from the root
//
// The occurrence at the very end of the running text counts, so after "a b" is seen for the second time, its
// first continuation has a share of 1/2. The children of a node are in order of count. Among equals history
// decides: a new child goes last; a child whose count rises to c goes behind the others of count c if it
// passed some of its old count on the way, else before them.
//
// A path-compressed tree: at most two nodes a token. Each suffix of the running text that is shorter than
// `depth` ends at a node. An append moves it on by one token: an append touches a node for each suffix that
// occurs elsewhere, a few in most texts, and `depth` of them at most. A suffix that occurs only here ends at
// a leaf, and such leaves grow with the text. A node's tokens are those of its newest occurrence, so that the
// oldest text can be dropped at any time.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SUFFIX_TREE_DEEPEST = 256, SUFFIX_DRAFT_MOST = 256 };

typedef struct SuffixNode SuffixNode;
typedef struct SuffixEntry SuffixEntry;

typedef struct SuffixTree {
    int depth;
    SuffixNode *nodes; // (node_count, unused ones among them); 0 is the root
    size_t node_count, node_capacity;
    int unused; // first of the unused nodes, linked by `next`
    // Runs of siblings with equal counts.
    struct SuffixRun *runs;
    size_t run_count, run_capacity;
    int unused_run;
    SuffixEntry *table; // (slots): children with siblings, by parent and first token
    size_t slots, entries;
    int *text; // (text_count): from position `base` on, dropped texts at its start among them
    size_t text_count, text_capacity;
    int64_t base;
    int64_t *starts; // (start_count): where texts begin, from starts[first_start] on
    size_t first_start, start_count, start_capacity;
    int ends[SUFFIX_TREE_DEEPEST]; // ends[n]: the node of the running text's last n tokens, n <= end_count
    int end_count, known_ends;     // the first known_ends of them occur elsewhere, too
} SuffixTree;

// depth: from 2 to SUFFIX_TREE_DEEPEST.
void suffix_tree_init(SuffixTree *t, int depth);
void suffix_tree_release(SuffixTree *t);
void suffix_tree_clear(SuffixTree *t);

void suffix_tree_begin(SuffixTree *t); // a new running text
void suffix_tree_append(SuffixTree *t, int token);

// Texts, tokens and bytes that are held.
size_t suffix_tree_texts(const SuffixTree *t);
size_t suffix_tree_tokens(const SuffixTree *t);
size_t suffix_tree_bytes(const SuffixTree *t);

// Drops the oldest text, which must not be the running one.
void suffix_tree_drop(SuffixTree *t);

// Occurrences of the tokens; more than `depth` of them occur nowhere.
int suffix_tree_count(const SuffixTree *t, const int *tokens, int count);

// How a draft grows behind a match of m tokens.
typedef struct SuffixRule {
    int most;              // tokens, at most SUFFIX_DRAFT_MOST
    double factor, offset; // at most m * factor + offset tokens; factor >= 0
    double least;          // share of the match's occurrences that a token must have
    bool tree;             // the likeliest tokens, else the likeliest chain
    bool longest;          // the longest match that has a draft, whatever the scores
} SuffixRule;

typedef struct SuffixDraft {
    int count, match; // tokens, and those of the context that they follow
    double score;     // the tokens' shares, summed: the expected number of right ones
    int token[SUFFIX_DRAFT_MOST];
    int parent[SUFFIX_DRAFT_MOST]; // an earlier token of the draft, or -1: the context
} SuffixDraft;

// The best draft behind the last m tokens of the context, for every m from 1 to one less than all (and less
// than `depth`), or of the longest; the longest match among equals. An empty draft has the score 0. The
// context ends with the running text, or is its end.
void suffix_tree_draft(const SuffixTree *t, const int *context, int count, const SuffixRule *rule,
                       SuffixDraft *out);
