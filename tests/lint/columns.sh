#!/bin/bash
# No line is longer than 120 columns, so that two files can be read side by side.  Fails on one that is, but for what
# can't be broken: tables and code in Markdown, addresses of the web, inputs of the fuzz targets.
set -euo pipefail
cd "$(dirname "$0")/../.."

# awk may count bytes where columns are meant, so it only leaves what may be longer; sed counts.
# shellcheck disable=SC2016 # $0 is awk's
long='
    FNR == 1 { fenced = 0 }
    FILENAME ~ /[.]md$/ && /^ *```/ { fenced = !fenced }
    FILENAME ~ /[.]md$/ && (fenced || /^ *[|]/ || /^    /) { next }
    { gsub(/https?:[^ )>"]*/, "") }
    length > 120 { print FILENAME ":" FNR ":" $0 }'
found=$(git ls-files -z --cached --others --exclude-standard -- '*.[ch]' '*.py' '*.sh' '*.md' '*.cmake' \
    '*CMakeLists.txt' dev .ci/run ':!tests/fuzz/corpus' | xargs -0 awk "$long" |
    LC_ALL=C.UTF-8 sed -nE 's/^([^:]+:[0-9]+):.{121,}/    over 120 columns: \1/p')
[ -z "$found" ] || { echo "$found"; exit 1; }
