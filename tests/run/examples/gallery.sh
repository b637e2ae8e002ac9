#!/bin/sh
# gallery.sh SOURCE BIN - the commands of examples/README.md run as they stand,
# and every example stands there. Python's are run by Python's tests, and the
# demo by one of its own.
set -eu
source=$1 bin=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gallery=$source/examples/README.md

for file in "$source"/examples/*.c "$source"/python/examples/*.py; do
    case $file in
    *.c) grep -q '^int main' "$file" || continue ;;
    esac
    grep -qF "${file#"$source"/}" "$gallery" ||
        grep -qF "](${file##*/})" "$gallery" ||
        { echo "${file##*/} is not in the gallery"; exit 1; }
done

# The blocks of commands, each into a file.
awk -v folder="$work" '
    /^```sh$/ { file = sprintf("%s/%02d.block", folder, ++n); next }
    /^```$/ { file = "" }
    file { print >file }' "$gallery"
mkdir "$work/build"
ln -s "$source/README.md" "$source/examples" "$work"
cd "$work"
export PATH="$bin:$PATH" OMP_NUM_THREADS=1
ran=0
for block in *.block; do
    if grep -Eq 'cmake|python3?([^a-z]|$)' "$block"; then continue; fi
    program=$(grep -Eo 'train_text|elastic_train' "$block" | head -n 1)
    if [ "$program" ] && [ ! -x "$bin/$program" ]; then continue; fi # no MPI
    cat "$block"
    sh -e "$block" >output 2>error || { cat output error; exit 1; }
    cat output
    if [ ! -s output ]; then
        cat error
        exit 1
    fi
    ran=$((ran + 1))
done
[ $ran -ge 8 ]
