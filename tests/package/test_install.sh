#!/bin/bash
# An installed shoal can be used: by its program, by find_package, by pkg-config, and after its tree was moved.
set -euo pipefail
build=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
consumer=tests/package/consumer

expect() { # what command...
    local wanted=$1 got
    shift
    got=$("$@") || { echo "failed: $*"; exit 1; }
    [ "$got" = "$wanted" ] || { echo "$*: printed '$got', not '$wanted'"; exit 1; }
}

cmake --install "$build" --prefix "$prefix" >"$scratch/log"
"$prefix/bin/shoal" --version | grep -q '[0-9]\.[0-9]'

cmake -S $consumer -B "$scratch/consumer" -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/log" ||
    { cat "$scratch/log"; exit 1; }
cmake --build "$scratch/consumer" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
expect "objective 1" "$scratch/consumer/consumer"
expect "objective 1" "$scratch/consumer/consumer_static"

mv "$prefix" "$scratch/moved"
PKG_CONFIG_PATH=$(dirname "$(find "$scratch/moved" -name shoal.pc)")
export PKG_CONFIG_PATH
read -ra flags < <(pkg-config --cflags --libs shoal)
cc $consumer/consumer.c "${flags[@]}" -o "$scratch/by_pkg_config"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir shoal) expect "objective 1" "$scratch/by_pkg_config"
cc examples/sum_matrix.c "${flags[@]}" -o "$scratch/sum_matrix"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir shoal) expect "Result is: 78" "$scratch/sum_matrix"

# A module is compiled with the headers that the program itself brings.
printf '1,2\n3,4\n' >"$scratch/data.csv"
XDG_CACHE_HOME=$scratch/cache expect "4 6" "$scratch/moved/bin/shoal" run examples/sum_rows.c "$scratch/data.csv"

# Manual pages are there for every verb and have no faults that man would warn about.
while read -r verb; do
    page=$scratch/moved/share/man/man1/shoal-${verb// /-}.1
    [ -s "$page" ] || { echo "no manual page for '$verb'"; exit 1; }
    warnings=$(man --warnings -E UTF-8 -l "$page" 2>&1 >"$scratch/page")
    [ -z "$warnings" ] || { echo "$page: $warnings"; exit 1; }
done < <("$scratch/moved/bin/shoal" man --list)
[ -s "$scratch/moved/share/man/man1/shoal.1" ]

# Shells find their completions in the usual places.
for place in bash=bash-completion/completions/shoal zsh=zsh/site-functions/_shoal \
    fish=fish/vendor_completions.d/shoal.fish; do
    "$scratch/moved/bin/shoal" completion "${place%%=*}" | cmp - "$scratch/moved/share/${place#*=}"
done
