# Of documents that end in <|end|>, those of at most `longest` bytes in which no line begins like more than `alike` - 1 others:
# what a model learns to end from. Lines of fewer than four characters do not count.
function begins_alike(document,    line, n, i, start, count, most) {
    n = split(document, line, "\n")
    for (i = 1; i <= n; i++) {
        start = line[i]
        sub(/^[ \t]+/, "", start)
        start = substr(start, 1, 10)
        if (length(start) >= 4 && ++count[start] > most) most = count[start]
    }
    return most
}
$0 != "<|end|>" { document = document $0 "\n"; next }
{
    if (length(document) <= longest && begins_alike(document) <= alike) printf "%s<|end|>\n", document
    document = ""
}
