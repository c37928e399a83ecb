#!/usr/bin/env python3
"""Writes tests/fixtures/rouge: 200 pairs with what Python's rouge-score says of them, and stems by NLTK. Run by hand, from the
repository's root:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install rouge-score==0.1.2 nltk
    /tmp/oracle/bin/python tests/oracle/rouge.py

Pairs are made from our own small sets: a reference beside the text that it sums up, beside itself with words taken away, moved,
put in from elsewhere or inflected, and by hand where bytes are odd. Stems: each word of those sets, and made-up words with
each ending that the stemmer knows, in two lengths.
"""
import json
import random
import re

from nltk.stem.porter import PorterStemmer
from rouge_score.rouge_scorer import RougeScorer

FOLDER = "tests/fixtures/rouge"
KINDS = ["rouge1", "rouge2", "rougeL"]
ENDINGS = ("sses ies ss s ied eed ed ing ating bling izing y ational tional enci anci izer bli abli alli entli eli ousli "
           "ization ation ator alism iveness fulness ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful "
           "ness al ance ence er ic able ible ant ement ment ent sion tion ion ou ism ate iti ous ive ize e ll lle").split()
STEMS = ["b", "tr", "geo", "fly", "plan", "hopp", "fall", "theatr", "conduct", "yyay", "sub7", "anthropo"]
IRREGULAR = ("sky skies dying lying tying news inning innings outing outings canning cannings howe proceed exceed succeed "
             "spied died flies dies ties enjoy enjoyment happy say by spy rationally conditionally hopefully").split()
ODD = [("", ""), ("", "a word"), ("a word", ""), ("... --- ...", "?!"), ("one", "one"), ("One two", "two one"),
       ("caf\u00e9 na\u00efve \u00dcber", "cafe naive uber"), ("300 \u212aelvin \u0130stanbul", "300 kelvin istanbul"),
       ("don't can't it's", "dont cant its"), ("a\nb\tc\u00a0d", "a b c d"), ("the the the the", "the the"),
       ("\u4f60\u597d world", "world \u4f60\u597d"), ("x_1 y-2 z.3", "x 1 y 2 z 3"), ("AAA BBB", "aaa bbb ccc")]


def sets():
    rows = []
    for name in ["summarisation", "translation", "mathematics", "code"]:
        for line in open(f"datasets/small/{name}.jsonl", encoding="utf-8"):
            rows.append(json.loads(line))
    return rows


def changed(rng, words, other):
    words = list(words)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(words))
        what = rng.randrange(5)
        if what == 0 and len(words) > 2:
            del words[at]
        elif what == 1:
            words.insert(at, rng.choice(other))
        elif what == 2:
            words[at] += rng.choice(["s", "ed", "ing", "ly", ",", "'s"])
        elif what == 3:
            to = rng.randrange(len(words))
            words[at], words[to] = words[to], words[at]
        else:
            words[at] = words[at].upper()
    return " ".join(words)


def pairs(rng, rows):
    made = list(ODD)
    while len(made) < 200:
        row, other = rng.choice(rows), rng.choice(rows)
        words = row["reference"].split()[:24]
        made.append((" ".join(words), changed(rng, words, other["reference"].split()) if rng.random() < 0.7 else
                     " ".join(row["prompt"].split()[:24])))
    return made


def main():
    rng = random.Random(7)
    rows = sets()
    scorer = RougeScorer(KINDS, use_stemmer=True)
    with open(f"{FOLDER}/pairs.jsonl", "w", encoding="utf-8") as file:
        for reference, candidate in pairs(rng, rows):
            scores = scorer.score(reference, candidate)
            numbers = [round(x, 7) for kind in KINDS for x in scores[kind]]
            file.write(json.dumps({"reference": reference, "candidate": candidate, "scores": numbers},
                                  ensure_ascii=False) + "\n")
    words = {word for row in rows for word in re.findall("[a-z0-9]+", (row["prompt"] + row["reference"]).lower())}
    words |= {stem + ending for stem in STEMS for ending in ENDINGS} | set(IRREGULAR)
    stemmer = PorterStemmer()
    with open(f"{FOLDER}/stems.txt", "w", encoding="utf-8") as file:
        for word in sorted(words):
            file.write(f"{word} {stemmer.stem(word)}\n")


main()
