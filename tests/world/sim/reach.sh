# reach.sh - functions of mutants.sh here and in explore/: who reaches the line
# that a mutation changes? Of programs with reached.c.

# reach_index PROGRAM: standard input has addresses of PROGRAM, each with the
# name of who reaches it; folder reach gets a file for each source file, with
# lines and names.
reach_index() {
    grep '^0x' >all_pcs
    cut -d' ' -f1 all_pcs | sort -u >pcs
    addr2line -e "$1" <pcs | sed 's/.*\/src\///; s/ .*//; s/:/ /' |
        paste -d' ' pcs - >places
    awk 'FNR == NR { file[$1] = $2; line[$1] = $3; next }
        { f = file[$1]; gsub("/", "_", f)
          if (!seen[f, line[$1], $2]++) print line[$1], $2 >"reach/" f }' \
        places all_pcs
    rm -f all_pcs
}

# reach_of FILE NAMES LINE...: who reaches one of these lines, in the order of
# the file NAMES. A line in the midst of a statement belongs to one above it.
reach_of() {
    reach_file=reach/$(echo "$1" | tr / _) reach_names=$2
    shift 2
    [ -f "$reach_file" ] || return 0
    awk -v changed="$*" 'BEGIN { n = split(changed, want, " ") }
        FNR == NR { for (i = 1; i <= n; i++)
            if ($1 <= want[i] && $1 > at[i]) at[i] = $1; next }
        { for (i = 1; i <= n; i++) if ($1 == at[i] && !seen[$2]++) print $2 }' \
        "$reach_file" "$reach_file" >reach_some
    grep -xFf reach_some "$reach_names" || true
}

# Numbers of the lines in which two files differ; what is inserted is before the
# next line.
changed_lines() {
    diff "$1" "$2" | sed -n 's/^\([0-9][0-9]*\)\([acd,]\).*/\1 \2/p' |
        awk '{ print $2 == "a" ? $1 + 1 : $1 }'
}
