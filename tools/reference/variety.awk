# How much like language a text of documents is, as a row: bytes of the sample, words; of what is held out (every tenth
# document) the loss in nats a byte of n-gram models (interpolated, Witten and Bell) that counted the others, for n of 2 to 5;
# the share of its runs of eight words that are in the others, too. A word is a run of letters, a digit, a mark, or the
# end of a line with the next one's indentation. -v name= the row's name, -v most= bytes to look at.

function words_of(text,    rest, n, c) {
    n = 0
    rest = text
    while (match(rest, /[A-Za-z]+|[0-9]|\n[ ]*|[^ ]/)) {
        word[++n] = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
    }
    return n
}

# Counts what follows each history of up to four words; a document begins after marks that are in no text.
function learn(n,    i, k, h) {
    for (i = 1; i <= n; i++) {
        h = ""
        for (k = 0; k < 5; k++) {
            if (k) h = word[i - k] SUBSEP h
            all[k, h]++
            if (!((k, h, word[i]) in seen)) kinds[k, h]++
            seen[k, h, word[i]]++
        }
        if (i >= 8) runs[run_at(i)] = 1
    }
}

function run_at(i,    k, run) {
    run = ""
    for (k = i - 7; k <= i; k++) run = run SUBSEP word[k]
    return run
}

function judge(n,    i, k, h, p) {
    for (i = 1; i <= n; i++) {
        h = ""
        p = 1 / (kinds[0, ""] + 1)
        for (k = 0; k < 5; k++) {
            if (k) h = word[i - k] SUBSEP h
            if ((k, h) in all) p = (seen[k, h, word[i]] + kinds[k, h] * p) / (all[k, h] + kinds[k, h])
            loss[k] -= log(p)
        }
        if (i >= 8) {
            held_runs++
            known += run_at(i) in runs
        }
    }
}

BEGIN { for (i = -4; i <= 0; i++) word[i] = "<s>" }

$0 == "<|end|>" {
    bytes += length(text)
    if (++documents % 10 == 0) held[++held_count] = text
    else {
        n = words_of(text)
        words += n
        learn(n)
    }
    text = ""
    if (bytes > most) exit
    next
}

{ text = text $0 "\n" }

END {
    for (i = 1; i <= held_count; i++) {
        judge(words_of(held[i]))
        held_bytes += length(held[i])
    }
    printf "| %s | %d | %.2f | %.3f | %.3f | %.3f | %.3f | %.0f%% |\n", name, documents, bytes / 1e6,
        loss[1] / held_bytes, loss[2] / held_bytes, loss[3] / held_bytes, loss[4] / held_bytes, held_runs ? 100 * known / held_runs : 0
}
