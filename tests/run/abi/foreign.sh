#!/bin/sh
# foreign.sh MASTER CC WORK - a program that needs Open MPI's library is refused
# with a sentence; one that does not is run.
set -eu
master=$1 cc=$2 work=$3
rm -rf "$work"
mkdir -p "$work/there"
echo 'int MPI_Init(int *a, char ***b) { return a == 0 && b == 0; }' |
    $cc -shared -fPIC -Wl,-soname,libmpi.so.40 -o "$work/libmpi.so.40" -x c -
echo 'int MPI_Init(int *, char ***); int main(void) { return MPI_Init(0, 0); }' |
    $cc -o "$work/there/program" -x c - -x none "$work/libmpi.so.40"

refused() # ARGUMENTS...
{
    status=0
    out=$("$master" "$@" 2>&1) || status=$?
    echo "$out"
    [ $status -ne 0 ] || { echo "was run"; exit 1; }
    case $out in *"built with Open MPI (it needs libmpi.so.40)"*mpicc_abi*) ;;
    *) exit 1 ;;
    esac
}
refused -n 2 "$work/there/program"
refused -n 1 --wdir "$work/there" ./program
PATH="$work/there:$PATH" refused -n 1 program

echo 'int main(void) { return 0; }' | $cc -o "$work/plain" -x c -
"$master" -n 1 "$work/plain"
rm -rf "$work"
