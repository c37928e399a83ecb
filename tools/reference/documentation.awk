# reStructuredText as passages: a section's paragraphs under its title, or a function's signature with what is said of it.
# Markup goes, code stays, wrapped lines are joined; tables, footnotes and what only names things for an index are left out.

function plain(text) {
    while (match(text, /:[a-zA-Z:+-]+:`[^`]*`/)) {
        inner = substr(text, RSTART, RLENGTH)
        text = substr(text, 1, RSTART - 1) role(inner) substr(text, RSTART + length(inner))
    }
    gsub(/ <[^<>` ]+>`_?_?/, "`", text)
    gsub(/\*\*/, "", text)
    while (match(text, /(^|[ (])\*[A-Za-z_][A-Za-z_0-9, ]*\*/)) {
        inner = substr(text, RSTART, RLENGTH)
        gsub(/\*/, "", inner)
        text = substr(text, 1, RSTART - 1) inner substr(text, RSTART + RLENGTH)
    }
    gsub(/``/, "", text)
    gsub(/`_?_?/, "", text)
    gsub(/\|release\||\|version\|/, "3.11", text)
    gsub(/\\/, "", text)
    gsub(/  +/, " ", text)
    return text
}

# What a role shows: the text before <target>, or the target, of which ~ shows the last part only.
function role(text,    inner) {
    inner = text
    sub(/^[^`]*`/, "", inner)
    sub(/`$/, "", inner)
    sub(/ *<[^<>]*>$/, "", inner)
    sub(/^!/, "", inner)
    if (inner ~ /^~/) sub(/^.*\./, "", inner)
    if (text ~ /^:pep:/) return "PEP " inner
    if (text ~ /^:(issue|gh|bpo):/) return "issue " inner
    return inner
}

function put() {
    if (passage != "") printf "%s%s\n<|end|>\n", (title == "" ? "" : title "\n\n"), passage
    passage = ""
}

function add(text) {
    if (text == "") return
    if (passage != "" && length(passage) + length(text) > longest) put()
    passage = passage (passage == "" ? "" : "\n\n") text
    if (length(passage) > enough && !literal) put()
}

function spaces(n) { return n > 0 ? sprintf("%" n "s", "") : "" }

# A paragraph is complete.
function close_paragraph(    text, i) {
    if (!count) return
    text = ""
    if (literal && indents[1] > literal_indent || lines[1] ~ /^>>>/) {
        for (i = 1; i <= count; i++) text = text (i > 1 ? "\n" : "") spaces(indents[i] - indents[1]) lines[i]
        if (lines[1] !~ /^>>>/) {
            gsub(/\n/, "\n    ", text)
            text = "    " text
        }
        if (passage != "") passage = passage "\n\n" text
        else passage = text
        count = 0
        return
    }
    literal = 0
    for (i = 1; i <= count; i++) text = text (i == 1 ? "" : lines[i] ~ /^([-*]|[0-9]+\.|#\.) / ? "\n" : " ") lines[i]
    if (text ~ /::$/) {
        literal = 1
        literal_indent = indents[1]
        sub(/::$/, ":", text)
        if (text == ":") text = ""
    }
    count = 0
    if (text ~ /^(\+[-=]|=====?|---)/ || text ~ /\| *\|/ || text ~ /^\|/) return
    add(plain(text))
}

# Directives: what opens a passage, what is shown, what is not.
function directive(indent,    name, rest) {
    name = $0
    sub(/^ *\.\. /, "", name)
    rest = name
    sub(/::.*/, "", name)
    sub(/^[^:]*:: */, "", rest)
    sub(/^[a-z]+:/, "", name)
    if (name ~ opening) {
        put()
        title = plain(rest)
        opened = indent
        return
    }
    if (name ~ /^(code-block|code|doctest|testcode|sourcecode)$/) {
        literal = 1
        literal_indent = indent
        return
    }
    if (name ~ /^(note|warning|tip|important|admonition|seealso|impl-detail|rubric)$/) {
        if (rest != "") add(plain(rest))
        return
    }
    hidden = indent
}

# Directives that say what a name is.
BEGIN {
    opening = "^(function|class|method|exception|classmethod|staticmethod|decorator|coroutinefunction|coroutinemethod|data" \
        "|attribute|describe|cmdoption|option|opcode|macro|type|member|abstractmethod|awaitablefunction|awaitablemethod)$"
}

function start() {
    close_paragraph()
    put()
    title = section = ""
    count = literal = 0
    hidden = opened = -1
}

function take(    indent, text) {
    if ($0 == "") { close_paragraph(); return }
    match($0, /^ */)
    indent = RLENGTH
    if (hidden >= 0) {
        if (indent > hidden) return
        hidden = -1
    }
    if (literal && count == 0 && indent <= literal_indent) literal = 0
    if (!literal && opened >= 0 && indent <= opened && count == 0 && $0 !~ /^ *\.\. /) {
        put()
        title = section
        opened = -1
    }
    if (!literal && $0 ~ /^ *\.\. /) {
        close_paragraph()
        if ($0 ~ /^ *\.\. [a-zA-Z:-]+::/) directive(indent)
        else hidden = indent
        return
    }
    if (!literal && $0 ~ /^ *:[a-zA-Z-]+:( |$)/ && $0 !~ /`/) return
    text = substr($0, indent + 1)
    if (count == 0 && opened >= 0 && passage == "" && $0 ~ /^ +[a-zA-Z_.]+\(.*\)$/) return
    count++
    lines[count] = text
    indents[count] = indent
}

FNR == 1 { start() }

{
    sub(/[ \t\r]+$/, "")
    # A line of marks under a line of text makes that a title; the text was taken as a paragraph of one line.
    if ($0 ~ /^(===+|---+|~~~+|\^\^\^+|\*\*\*+|"""+|'''+|\+\+\++|###+)$/ && count == 1 && indents[1] == 0 && !literal &&
        length($0) >= length(lines[1]) - 2) {
        section = plain(lines[1])
        count = 0
        put()
        title = section
        opened = -1
        next
    }
    if ($0 ~ /^(===+|---+|\*\*\*+|###+|~~~+)$/ && count == 0) next
    take()
}

END { close_paragraph(); put() }
