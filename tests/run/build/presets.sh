#!/bin/sh
# presets.sh CMAKE SOURCE - every preset of CMakePresets.json configures, and
# has a preset to build and one to test. 77: this CMake reads no presets.
set -eu
cmake=$1
cd "$2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

"$cmake" --list-presets >/dev/null 2>&1 || exit 77
names() # KIND
{
    "$cmake" --list-presets="$1" | sed -n 's/^  "\([a-z]*\)".*/\1/p'
}
presets=$(names configure)
[ "$(echo "$presets" | wc -l)" -ge 5 ]
[ "$(names build)" = "$presets" ]
[ "$(names test)" = "$presets" ]
for preset in $presets; do
    if [ "$preset" = clang ] && ! command -v clang >/dev/null; then continue; fi
    if ! "$cmake" --preset "$preset" -B "$work/$preset" -DPCCL_CUDA=OFF \
            >"$work/log" 2>&1; then
        cat "$work/log"
        exit 1
    fi
done
