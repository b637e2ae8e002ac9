#!/bin/sh
# mutants.sh TEST_MPI_SIM MPICH_INCLUDE_DIR [COUNT [PATTERN]] - breaks one rule
# of MPI's failure handling at a time and shows that the simulated universes
# fail. Each line below: name | file of src/mpi | sed script. Exit status 1 if a
# mutant survives, or changes nothing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
test=$1 mpich=$2 count=${3:-400} only=${4:-.}
made=$(cd "$(dirname "$test")/../src/mpi" && pwd) # what the build has written
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
mkdir "$work/obj"
compile() {
    ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O1 -w -fPIC -DPCCL_MPI_VERSION='"mutant"' \
        -include "$here/threads.h" -I"$root/include" -I"$mpich" \
        -I"$root/src/mpi" -I"$made" -c "$1" -o "$2"
}
library() {
    ${CC:-cc} -shared -Wl,-Bsymbolic "$work"/obj/*.o -o "$work/library.so"
}
compile "$here/look.c" "$work/obj/look.o"
for file in "$root"/src/mpi/*.c "$made/mpich_stubs.c" \
    "$root/src/link/view.c" "$root/src/base/quiet_write.c"; do
    compile "$file" "$work/obj/$(basename "$file" .c).o"
done
library
"$test" "$work/library.so" 1 10 >/dev/null ||
    { echo "the original fails"; exit 1; }
survived=0 done=0
while IFS='|' read -r name file script; do
    echo "$name" | grep -q "$only" || continue
    done=$((done + 1))
    # Headers and look.c are found where they are.
    sed "$script" "$root/src/mpi/$file" >"$work/$file"
    if cmp -s "$work/$file" "$root/src/mpi/$file"; then
        echo "$name: does not apply"
        survived=$((survived + 1))
        continue
    fi
    sed -i "s|\"\.\./base/|\"$root/src/base/|" "$work/$file"
    compile "$work/$file" "$work/obj/$(basename "$file" .c).o"
    library
    if "$test" "$work/library.so" 1 "$count" >"$work/log" 2>&1; then
        echo "$name: SURVIVES"
        survived=$((survived + 1))
    else
        echo "$name: $(grep -m 1 '^  \|: ' "$work/log" | cut -c1-100)"
    fi
    compile "$root/src/mpi/$file" "$work/obj/$(basename "$file" .c).o"
done <<'MUTANTS'
nobody is told of a revocation (U1)|revoke.c|s/^        transport_notify_revoked(.*/        (void)0;/
what has ended is revoked (U3)|coll.c|s/^    int error = coll->round == 0 ? .*/    int error = revoked_error(coll);/
who waits in a collective goes on waiting (U3)|revoke.c|s/^    bool more = atomic_load(&live_count) > 0 && fail_blocking();/    bool more = false;/
a failure comes before the message (U3)|coll_failure.c|s/^    if (result == pcclOperationFailed) .*//
the first one decides|ulfm.c|s/ballot->flag &= votes\[i\].flag/ballot->flag = votes[0].flag/
who gives up leaves the others waiting (U6)|agree.c|s/^        if (result != MPI_SUCCESS) revoke_unmade(.*//
those who live are those who are lost|group.c|s/list_filter(a, b, true, common, 0)/list_filter(a, b, false, common, 0)/
a copy of a view has no members|group.c|s/return group_of_view(view_retain(from->view));/return group_new(from->size);/
MUTANTS
[ "$done" -gt 0 ] || { echo "mutants.sh: no mutant has this name"; exit 2; }
[ "$survived" -eq 0 ]
