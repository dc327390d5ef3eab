#!/bin/bash
# What the pages for developers point to is there: files and folders, and the functions of a row's way in theirs.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck disable=SC2016 # backquotes are Markdown's
path='`(src|include|tests|bench|docs|python|cmake|examples)/[a-z0-9_./*-]+`'
# shellcheck disable=SC2016
step='^[0-9]+\. `([a-z_]+)` \(`([^`]+)`\).*'

failures=0
complain() {
    echo "    $*"
    failures=$((failures + 1))
}

while IFS=: read -r page place; do
    compgen -G "$place" >/dev/null || complain "$page names $place, which is not there"
done < <(grep -oE "$path" docs/architecture.md CONTRIBUTING.md | tr -d '`')

# "8. `map_grain` (`src/engine/slice.c`): ...", where a file without a folder is beside the one named before.
folder=src
while read -r name file; do
    case $file in
    */*) folder=${file%/*} ;;
    *) file=$folder/$file ;;
    esac
    grep -qsE "^[a-z].*[ *]$name\(" "$file" || complain "docs/architecture.md: there is no $name in $file"
done < <(sed -nE "s/$step/\1 \2/p" docs/architecture.md)
[ $failures = 0 ]
