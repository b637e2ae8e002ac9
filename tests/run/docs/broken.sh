#!/bin/sh
# broken.sh PYTHON SOURCE WORK - a copy of the texts with one wrong link each, or
# a page that no menu has: make_site.py names it.
set -eu
python=$1 source=$2 work=$3/broken
rm -rf "$work"
mkdir -p "$work"
(cd "$source" && find . -path ./build -prune -o -path './build-*' -prune -o \
    -path ./.git -prune -o \( -name '*.md' -o -name '*.svg' -o -name '*.h' \
    -o -name '*.1' -o -path './docs/*.py' -o -path '*/examples/*' \) -print | tar cf - -T -) |
    tar xf - -C "$work"
fails() # TEXT
{
    if "$python" -B "$work/docs/make_site.py" --lay-out "$work/out" \
        2>"$work/why"; then
        echo "no fault at $1"
        exit 1
    fi
    grep -qF "$1" "$work/why" || { cat "$work/why"; exit 1; }
}
for word in 'nowhere.md is not there' '#nowhere: no such heading' \
    '../README.md#nowhere: no such heading'; do
    cp "$source/docs/faq.md" "$work/docs/faq.md"
    echo "[x](${word%%[ :]*})" >>"$work/docs/faq.md"
    fails "$word"
done
cp "$source/docs/faq.md" "$work/docs/faq.md"
echo '# New' >"$work/docs/new.md"
fails 'docs/new.md is not in the menu'
