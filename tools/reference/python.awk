# Python source as documents: a function, a class or the head of a module each. A class longer than `longest` bytes becomes its
# head and its methods, moved to the left margin; what is still longer is left out, so that a model sees how things end.
# Line by line, with no more grammar than strings in triple quotes: a unit starts at the margin, outside a string.

# The quotes that are open behind a line, given those that were open before it.
function quotes_after(open, line,    at, single, double) {
    while (1) {
        if (open != "") {
            at = index(line, open)
            if (!at) return open
            line = substr(line, at + 3)
            open = ""
            continue
        }
        single = index(line, "'''")
        double = index(line, "\"\"\"")
        at = index(line, "#")
        if (at && (!single || at < single) && (!double || at < double)) return ""
        if (!single && !double) return ""
        open = single && (!double || single < double) ? "'''" : "\"\"\""
        line = substr(line, (open == "'''" ? single : double) + 3)
    }
}

function put(text) {
    sub(/^\n+/, "", text)
    sub(/[ \n]+$/, "", text)
    if (length(text) >= shortest && length(text) <= longest) printf "%s\n<|end|>\n", text
}

# Where a line stands: in a definition, in a comment that may belong to the next one, or in anything else.
function kind_of(line) {
    if (line ~ /^(def|class|async def|@)/) return "definition"
    if (line ~ /^#/) return "comment"
    if (line ~ /^[ \t\])}]/ || line == "") return "inside"
    return "loose"
}

function dedent(text,    n, i, lines, all) {
    n = split(text, lines, "\n")
    all = ""
    for (i = 1; i <= n; i++) {
        sub(/^    /, "", lines[i])
        all = all lines[i] "\n"
    }
    return all
}

# The head as it is: it may hold what looks like a method in a string.
function put_part(text, is_head) {
    if (is_head) put(text)
    else put_unit(dedent(text))
}

# A class: whole, or its head and then every method as a document.
function put_class(text,    n, i, lines, unit, notes, open, in_head, line, before, decorated) {
    if (length(text) <= longest / 2) { put(text); return }
    n = split(text, lines, "\n")
    unit = notes = open = ""
    in_head = 1
    decorated = 0
    for (i = 1; i <= n; i++) {
        line = lines[i]
        before = open
        open = quotes_after(open, line)
        if (before == "" && line ~ /^    (def|async def|class|@)/) {
            if (!decorated) {
                put_part(unit, in_head)
                unit = notes
                notes = ""
                in_head = 0
            }
            decorated = line ~ /^    @/
        } else if (before == "" && line ~ /^    #/ && !decorated) {
            notes = notes line "\n"
            continue
        }
        unit = unit notes line "\n"
        notes = ""
    }
    put_part(unit, in_head)
}

function put_unit(text) {
    if (text ~ /^class / && text ~ /\n    (def|async def|class|@)/) put_class(text)
    else put(text)
}

function finish() {
    put_unit(unit)
    unit = notes = open = ""
    state = "loose"
    decorated = 0
}

FNR == 1 { finish() }

{
    sub(/\r$/, "")
    sub(/[ \t]+$/, "")
    before = open
    open = quotes_after(open, $0)
    kind = before == "" ? kind_of($0) : "inside"
    if (kind == "comment" && !decorated) {
        notes = notes $0 "\n"
        next
    }
    if (!decorated && (kind == "definition" || (kind == "loose" && state != "loose"))) {
        put_unit(unit)
        unit = ""
        state = kind
    }
    if (kind == "definition") decorated = $0 ~ /^@/
    unit = unit notes $0 "\n"
    notes = ""
}

END { finish() }
