#!/bin/sh
# gallery.sh SOURCE - every example stands in examples/README.md.
set -eu
source=$1
gallery=$source/examples/README.md

for file in "$source"/examples/*.c "$source"/python/examples/*.py; do
    case $file in
    *.c) grep -q '^int main' "$file" || continue ;;
    esac
    grep -qF "${file#"$source"/}" "$gallery" ||
        grep -qF "](${file##*/})" "$gallery" ||
        { echo "${file##*/} is not in the gallery"; exit 1; }
done
