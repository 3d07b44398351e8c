#!/bin/sh
# Builds public/style.css from the parts in src/, in the order of their names.
set -eu
out=$1
tmp=$out.tmp
: > "$tmp"
for part in src/*.css; do
    echo "/* $part */" >> "$tmp"
    sed -e 's/[[:space:]]*$//' "$part" >> "$tmp"
done
mv "$tmp" "$out"
echo "built $out from $(ls src/*.css | wc -l) parts"
