# progress.sh - to be sourced by POSIX shells: a bar below the lines of output.
#
#   progress DONE ALL [TEXT]        draws the bar, with a text behind it
#   progress_line TEXT              a line of output, above the bar
#   progress_build FILE             a bar of the build whose output is the input;
#                                   FILE gets it
#   progress_end                    takes the bar away
#
# Where standard output is no terminal there is no bar, and lines are plain.

progress_wanted=
progress_bar=
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then progress_wanted=1; fi

progress_end()
{
    if [ -n "$progress_bar" ]; then printf '\r\033[K'; fi
    progress_bar=
}

progress_line()
{
    if [ -n "$progress_bar" ]; then printf '\r\033[K'; fi
    printf '%s\n' "$*"
    if [ -n "$progress_bar" ]; then printf '%s' "$progress_bar"; fi
}

progress() # DONE ALL TEXT
{
    if [ -z "$progress_wanted" ]; then return 0; fi
    share=$(($1 < $2 ? $1 * 100 / $2 : 100))
    filled=$((share * 30 / 100))
    progress_bar=$(printf '[%.*s%.*s] %3d %%  %s' \
        "$filled" '##############################' \
        $((30 - filled)) '..............................' \
        "$share" "${3:-}")
    printf '\r%s\033[K' "$progress_bar"
}

# make and ninja begin a line with [ 38%], or with [12/345].
progress_build() # FILE
{
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$1"
        number=${line#\[}
        case $line in
        \[*%\]*) progress "$((${number%%%*}))" 100 building ;;
        \[*/*\]*)
            all=${number#*/}
            progress "$((${number%%/*}))" "$((${all%%\]*}))" building ;;
        esac
    done
    progress_end
}
