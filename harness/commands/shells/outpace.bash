# outpace completions bash
# bash cuts words at : and =, so the line's own last word is asked for, and what bash has of it cut off the answers.
_outpace() {
    local line=${COMP_LINE:0:COMP_POINT} piece=${COMP_WORDS[COMP_CWORD]} IFS=$' \t\n' words word
    read -ra words <<<"$line."
    local token=${words[-1]%.}
    words[-1]=$token
    [[ $piece != [:=] ]] || piece=
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        [[ $word == :files || $word != "$token"* ]] || COMPREPLY+=("${word#"${token%"$piece"}"}")
    done < <("${COMP_WORDS[0]}" completions words -- "${words[@]:1}" 2>/dev/null)
    [[ $token != *:* ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _outpace outpace
