# Documents that are worth learning from: printable ASCII, of the wanted size, no tables of numbers or escapes, none seen before, and
# none that shares thirteen words in a row with a prompt or solution that models are measured with. The first files, those
# before the assignment prompts=0 on the command line, are the ones to be kept apart from. Settings: name, shortest and longest
# in bytes, the least share of letters in what is no space, the most digits for a letter.

function words_of(text) {
    text = tolower(text)
    gsub(/[^a-z0-9]+/, " ", text)
    sub(/^ /, "", text)
    sub(/ $/, "", text)
    return text
}

# Walks over every run of thirteen words: remembers it, or tells whether it is known.
function runs(text, remember,    n, i, starts, at, words, run) {
    text = words_of(text)
    n = split(text, words, " ")
    at = 1
    for (i = 1; i <= n; i++) {
        starts[i] = at
        at += length(words[i]) + 1
    }
    starts[n + 1] = at
    for (i = 1; i + 12 <= n; i++) {
        run = substr(text, starts[i], starts[i + 13] - starts[i])
        if (remember) kept_apart[run] = 1
        else if (run in kept_apart) return 1
    }
    return 0
}

function count(text, pattern) { return gsub(pattern, "&", text) }

function is_clean(text,    n) {
    if (length(text) < shortest || length(text) > longest) return 0
    if (text ~ /[^\n\t -~]/) return 0
    n = count(text, "[a-zA-Z]")
    if (n < letters * (length(text) - count(text, " "))) return 0
    if (count(text, "[0-9]") > digits * n) return 0
    if (count(text, "\\\\[xuU0-9]") > 4) return 0
    return 1
}

# Seen already, but for numbers and marks: as a whole, or in its first letters.
function is_repeat(text,    key, head) {
    key = tolower(text)
    gsub(/[^a-z]/, "", key)
    head = substr(key, 1, 160)
    if (key in seen || (length(key) > 160 && head in seen)) return 1
    seen[key] = seen[head] = 1
    return 0
}

function take(text) {
    sub(/\n$/, "", text)
    if (!is_clean(text)) unclean++
    else if (is_repeat(text)) repeats++
    else if (runs(text, 0)) measured++
    else {
        printf "%s\n<|end|>\n", text
        left++
        bytes += length(text) + 1
    }
}

BEGIN { prompts = 1 }

prompts {
    gsub(/\\u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]/, " ")
    gsub(/\\./, " ")
    runs($0, 1)
    next
}

$0 == "<|end|>" {
    take(text)
    text = ""
    next
}

{ text = text $0 "\n" }

END {
    printf "%-14s %d documents, %.2f MB; left out: %d by size or content, %d repeats, %d that overlap with prompts\n",
        name, left, bytes / 1e6, unclean, repeats, measured >"/dev/stderr"
}
