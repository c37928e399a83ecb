# Documents that are worth learning from: none seen before, and none that shares thirteen words in a row with a prompt or solution
# that models are measured with. The first files, those before the assignment prompts=0 on the command line, are the ones to be
# kept apart from. -v name= what is told about.

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
    if (is_repeat(text)) repeats++
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
    printf "%-14s %d documents, %.2f MB; left out: %d repeats, %d that overlap with prompts\n",
        name, left, bytes / 1e6, repeats, measured >"/dev/stderr"
}
