# outpace completions fish
function __outpace_words
    set -l before (commandline -opc)
    set -l program $before[1]
    set -e before[1]
    for line in (command $program completions words -- $before (commandline -ct) 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c outpace -f -a '(__outpace_words)'
