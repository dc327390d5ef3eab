#!/bin/bash
# Runs one fuzz target over its kept corpus and then for some seconds with inputs of its own.
#   run.sh TARGET NAME [SECONDS [FOUND [CRASHES]]]
# New inputs go to the folder FOUND (a temporary one unless given); what crashes is written to CRASHES.
set -euo pipefail
target=$1 name=$2 seconds=${3:-5}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
found=${4:-$scratch}
crashes=${5:-$(dirname "$target")/crashes/$name}
corpus=$(dirname "$0")/corpus/$name
mkdir -p "$found" "$crashes" "$corpus"

# An input that claims to be huge must meet a failing allocation, not a machine with enough memory.
export ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=512
export UBSAN_OPTIONS=print_stacktrace=1
# The exit code of a crash would otherwise be 77, which stands for a test that can't run here.
"$target" -seed=1 -max_total_time="$seconds" -timeout=20 -error_exitcode=1 -timeout_exitcode=1 \
    -artifact_prefix="$crashes/" "$found" "$corpus"
