#!/bin/bash
# libshoal.so exports exactly what the public headers declare: nothing internal leaks, nothing promised is missing.
set -euo pipefail
build=$1
declared() {
    perl -0777 -ne 's{/\*.*?\*/}{}gs; s/^#.*//gm; print "$1\n" while /SHOAL_API[^;{]*?\b(shoal_\w+)\s*[(;]/g' \
        include/shoal/*.h | sort -u
}
exported() {
    nm --dynamic --defined-only "$build/libshoal.so" | awk '{ print $3 }' | sort -u
}
diff <(declared) <(exported) >/dev/null || {
    echo "declared but not exported:" && comm -23 <(declared) <(exported)
    echo "exported but not declared:" && comm -13 <(declared) <(exported)
    exit 1
}
