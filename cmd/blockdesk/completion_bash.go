package main

// bashWords follows the script for bash, which calls the package bash-completion for the
// typed words. Without that package, as on a minimal server and on macOS, each Tab would
// fail: this function replaces it.
const bashWords = `
# Without the package bash-completion: the words as typed. Bash splits them at = and :
# too; join the parts that no blank separates.
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
