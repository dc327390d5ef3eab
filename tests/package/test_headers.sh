#!/bin/bash
# Labels: quick
# Every public header compiles alone, twice in a row, as strict C11 and as C++, with gcc and clang.
set -euo pipefail
for header in include/shoal/*.h; do
    for compiler in "gcc -x c -std=c11" "clang -x c -std=c11" "g++ -x c++ -std=c++11" "clang++ -x c++ -std=c++20"; do
        # shellcheck disable=SC2086 # the compiler and its options are words
        printf '#include <shoal/%s>\n' "${header##*/}" "${header##*/}" |
            $compiler -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only - ||
            { echo "$header: $compiler"; exit 1; }
    done
done
