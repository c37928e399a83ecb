# Rolls: names and things in any order, then the same again, and who has what. A model this small learns from nothing else within a
# hundred million tokens that a text goes on about those it has named. Reads names.txt; -v count= documents, -v seed=.

function random(n) { # less than n
    state = state * 16807 % 2147483647
    return int(state / 2147483647 * n)
}

# Puts `n` different ones of from[1..size] into drawn[1..n].
function draw(from, size, n,    i, k, taken) {
    split("", taken)
    for (i = 1; i <= n; i++) {
        do k = 1 + random(size)
        while (k in taken)
        taken[k]
        drawn[i] = from[k]
    }
}

function with_article(thing) { return (thing ~ /^[aeiou]/ ? "an " : "a ") thing }

function a_thing(thing) { return with_article(random(3) ? thing : colour[1 + random(colours)] " " thing) }

function join(n, between, last,    i, s) {
    s = drawn[1]
    for (i = 2; i <= n; i++) s = s (i < n ? between : last) drawn[i]
    return s
}

function roll(    n, s, i) {
    n = 3 + random(6)
    if (random(2)) draw(name, names, n)
    else {
        draw(thing, things, n)
        for (i = 1; i <= n; i++) drawn[i] = a_thing(drawn[i])
    }
    if (random(4) == 0) {
        s = join(n, "\n", "\n")
        return s "\nAgain:\n" s
    }
    s = random(2) ? join(n, ", ", " and ") : join(n, ", ", ", ")
    return "First: " s ".\nAgain: " s "." (random(3) ? "" : "\nAnd again: " s ".")
}

function who_has_what(    n, i, k, s, who, what, asked) {
    n = 2 + random(4)
    draw(name, names, n)
    for (i = 1; i <= n; i++) who[i] = drawn[i]
    draw(thing, things, n)
    for (i = 1; i <= n; i++) {
        what[i] = drawn[i]
        s = s (i > 1 ? " " : "") who[i] " has " with_article(what[i]) "."
    }
    split("", asked)
    for (i = 1; i <= n; i++) {
        do k = 1 + random(n)
        while (k in asked)
        asked[k]
        s = s "\n" (random(2) ? "Who has the " what[k] "? " who[k] " has the " what[k] "." : "What does " who[k] " have? " who[k] " has " with_article(what[k]) ".")
    }
    return s
}

/^[a-z]+:$/ { section = substr($0, 1, length($0) - 1) }
/^    [A-Za-z]/ {
    sub(/^ +/, "")
    sub(/~.*/, "")
    if (section ~ /^(girl|boy)$/) name[++names] = $0
    else if (section ~ /^(fruit|baked|toy|paper|cloth|animal)$/) thing[++things] = $0
    else if (section == "colour") colour[++colours] = $0
}

END {
    state = seed
    for (i = 0; i < count; i++) printf "%s\n<|end|>\n", random(3) ? roll() : who_has_what()
}
