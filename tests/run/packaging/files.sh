#!/bin/sh
# files.sh TREE LIB PYTHON - TREE has what files.txt lists and nothing else. LIB
# is the folder of libraries in it, PYTHON not empty where there is one. Every
# program has a manual page, every function of the libraries, too, and no link
# leads nowhere.
set -eu
tree=$1 lib=$2 python=$3
here=$(cd "$(dirname "$0")" && pwd)
status=0

wrong() # TEXT
{
    echo "$*"
    status=1
}

cd "$tree"
find . ! -type d | sed 's,^\./,,' | sort >"$tree.found"
: >"$tree.known"
# shellcheck disable=SC2254 # patterns
while read -r line; do
    case $line in
    '' | '#'*) continue ;;
    '?'*) needed='' line=${line#?} ;;
    3*) needed=$python line=${line#?} ;;
    *) needed=yes ;;
    esac
    case $line in LIB/*) line=$lib/${line#LIB/} ;; esac
    some=
    while read -r file; do
        case $file in $line)
            some=yes
            echo "$file" >>"$tree.known" ;;
        esac
    done <"$tree.found"
    [ -n "$some" ] || [ -z "$needed" ] || wrong "missing: $line"
done <"$here/files.txt"
sort -u "$tree.known" | comm -3 "$tree.found" - >"$tree.more"
[ ! -s "$tree.more" ] || wrong "not in files.txt: $(tr '\n' ' ' <"$tree.more")"

for program in bin/* lib/pccl/bin/*; do
    case $program in
    bin/*) page=share/man/man1/${program##*/}.1 ;;
    *) page=lib/pccl/share/man/man1/${program##*/}.1 ;;
    esac
    [ -e "$page" ] || wrong "no manual page of $program"
done
find . -type l | while read -r link; do
    [ -e "$link" ] || echo "a link to nowhere: $link"
done >"$tree.links"
[ ! -s "$tree.links" ] || wrong "$(cat "$tree.links")"

# Without those by which our libraries know each other.
functions() # LIBRARY PATTERN
{
    nm -D --defined-only "$lib/$1" | sed -n "/@@PCCL_PRIVATE$/d; s/.* T \($2\)\(@.*\)*\$/\1/p"
}

if [ -n "$python" ]; then
    for name in $(functions libpccl.so 'pccl[A-Z][A-Za-z]*') \
        $(functions libpccl_train.so 'pccl[A-Z][A-Za-z]*') \
        $(functions libmpi_pccl.so 'PCCL_[A-Z][A-Za-z_]*'); do
        [ -e "share/man/man3/$name.3" ] || wrong "no manual page of $name"
    done
    [ "$(functions libpccl.so 'pcclInit')" = pcclInit ] ||
        wrong "nm does not see the functions"
fi
exit $status
