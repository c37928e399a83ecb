#compdef outpace
# outpace completions zsh
_outpace() {
  local line word files
  local -a found nospace
  for line in "${(@f)$($words[1] completions words -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
    word=${line%%$'\t'*}
    if [[ $word == :files ]]; then files=yes
    elif [[ -n $word ]]; then found+=("${word//:/\\:}${${line#"$word"}/$'\t'/:}")
    fi
  done
  [[ $PREFIX != *:* ]] || nospace=(-S '')
  (( ! $#found )) || _describe -t words word found $nospace
  [[ -z $files ]] || _files
}
_outpace "$@"
