# A novel as passages of whole sentences. The input is R's serialization with every byte that cannot be printed made a line feed:
# a string then is a line that starts with its length as a character where that can be printed, and the empty string
# between two paragraphs is a long run of line feeds.
BEGIN { for (i = 32; i < 127; i++) code[sprintf("%c", i)] = i }

function put() {
    if (length(passage) >= 200) printf "%s\n<|end|>\n", passage
    passage = ""
}

function add(text, space) {
    if (length(passage) + length(text) > longest) put()
    passage = passage (passage == "" ? "" : space) text
    if (length(passage) > enough) put()
}

# A long paragraph goes in sentence by sentence.
function add_paragraph(text,    at) {
    gsub(/  +/, " ", text)
    gsub(/_/, "", text)
    if (text ~ /^(CHAPTER|Chapter|VOLUME|Volume|FINIS|THE END)/) { put(); return }
    gap = "\n\n"
    while (length(text) > enough && match(text, /[a-z][.!?]"? [A-Z"]/)) {
        at = RSTART + RLENGTH - 2
        add(substr(text, 1, at - 1), gap)
        text = substr(text, at + 1)
        gap = " "
    }
    add(text, gap)
}

FNR == 1 { paragraph = ""; put() }

$0 == "" { blank++; next }

{
    if (code[substr($0, 1, 1)] == length($0) - 1) $0 = substr($0, 2)
    if (blank > 12 && paragraph != "") {
        add_paragraph(paragraph)
        paragraph = ""
    }
    blank = 0
    paragraph = paragraph (paragraph == "" ? "" : " ") $0
}

END { add_paragraph(paragraph); put() }
