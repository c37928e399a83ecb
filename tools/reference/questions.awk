# GSM8K's JSON Lines as documents: a question and its answer, without the calculator's marks.
# What is written with more than ASCII becomes what a keyboard has; a document with anything else is left out.
BEGIN {
    n = split("2019 ' 2018 ' 201c \" 201d \" 2013 - 2014 - 2212 - 00d7 * 00f7 / 00e9 e 00f1 n 00a0 _ 2026 ... 00bd 1/2 00bc 1/4", pairs, " ")
    for (i = 1; i < n; i += 2) plain["\\u" pairs[i]] = pairs[i + 1] == "_" ? " " : pairs[i + 1]
}

function text_of(key,    at, rest, text, c) {
    at = index($0, "\"" key "\": \"")
    if (!at) return ""
    rest = substr($0, at + length(key) + 5)
    text = ""
    while (match(rest, /["\\]/)) {
        text = text substr(rest, 1, RSTART - 1)
        c = substr(rest, RSTART, 2)
        if (c ~ /^"/) return text
        if (c == "\\u") {
            c = substr(rest, RSTART, 6)
            if (!(c in plain)) return ""
            text = text plain[c]
            rest = substr(rest, RSTART + 6)
            continue
        }
        text = text (c == "\\n" ? "\n" : substr(c, 2))
        rest = substr(rest, RSTART + 2)
    }
    return ""
}

{
    question = text_of("question")
    answer = text_of("answer")
    gsub(/<<[^>]*>>/, "", answer)
    if (question != "" && answer != "") printf "Question: %s\nAnswer: %s\n<|end|>\n", question, answer
}
