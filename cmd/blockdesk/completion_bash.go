package main

// bashWords goes behind the script for bash, which asks the package bash-completion
// what was typed. Where that is not installed, as on a bare server and on macOS,
// each Tab would end in an error: then this tells it.
const bashWords = `
# Without the package bash-completion: the words as they were typed. Bash has split
# them at = and : too; what no blank parts belongs together.
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    __blockdesk_init_completion()
    {
        local i word before='' left=$COMP_LINE
        words=()
        for ((i = 0; i <= COMP_CWORD; i++)); do
            word=${COMP_WORDS[i]}
            if ((i > 0)) && [[ $left != [[:blank:]]* && ($word == [=:]* || $before == *[=:]) ]]; then
                words[${#words[@]} - 1]+=$word
            else
                words+=("$word")
            fi
            left=${left#*"$word"}
            before=$word
        done
        cword=$((${#words[@]} - 1))
        cur=${words[cword]}
        prev=${words[cword > 0 ? cword - 1 : 0]}
    }
fi
`
