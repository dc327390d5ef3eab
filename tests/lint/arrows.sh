#!/bin/bash
# Arrows between the parts point one way.  Fails on an #include that points back; see docs/architecture.md.
#   base ◄ data, kernel ◄ learn;  data ◄ plot ◄ plan, run;  base ◄ store;  engine sees the contracts of learn and
#   store only;
#   base, plot and the store's contract ◄ control ◄ launch, run, sweep;
#   base, store ◄ launch;  plan sees base, data and the contracts, but plan/measure, which runs what it measures, sees
#   all that run does;  learn, engine, launch, plan ◄ run ◄ plan/measure, sweep ◄ cli;  cli sees neither engine nor
#   launch;
#   mpi sees shoal/ranks.h alone, cuda kernel/device/kernel_device.h;  nothing sees cli.
set -euo pipefail
cd "$(dirname "$0")/../.."

# What a part may include of other parts in src/ (itself always), and which public headers.
declare -A sources=([base]="" [data]="base" [plot]="base data" [kernel]="base" [store]="base"
    [control]="base plot" [learn]="base data kernel"
    [engine]="base data kernel" [launch]="base store control" [plan]="base data plot"
    [portable]="data store launch" [mpi]="" [cuda]=""
    [run]="base data kernel plot store control learn engine launch plan"
    [measure]="base data kernel store learn engine plan run" [sweep]="base learn plot store control run"
    [cli]="base data kernel store control learn plan run measure sweep")
declare -A headers=([base]="error option version" [data]="error option data" [plot]="error option data"
    [kernel]="error option data" [store]="error option store"
    [control]="error option store"
    [learn]="error option version data learn kmeans exec module logistic autoencoder"
    [engine]="error option data store learn engine job ranks task"
    [launch]="error option store"
    [plan]="error option data learn engine plan"
    [run]="error option data store learn exec module engine job ranks plan run model version task"
    [measure]="error option data store learn engine job plan run kmeans"
    [sweep]="error option store learn run task"
    [portable]="error" [mpi]="error ranks" [cuda]=""
    [cli]="error option version data store learn kmeans exec module logistic autoencoder engine job ranks plan run \
        model shoal task")
# Of learn an engine sees the contract, how partials are merged, whose memory rounds get, which rows a batch has, how
# things travel and how what travelled is checked, never a learner; of store its public face.
declare -A single_files=([engine]="learn/check.h learn/partial.h learn/pick.h learn/round.h learn/wire.h")
# Public headers belong to parts too.
declare -A part_of=([error]=base [option]=base [version]=base [data]=data [store]=store [learn]=learn [kmeans]=learn
    [exec]=learn [module]=learn [logistic]=learn [autoencoder]=learn [engine]=engine [ranks]=engine [job]=engine
    [task]=engine
    [plan]=plan [run]=run [model]=run [shoal]=cli)

failures=0
complain() {
    echo "$1: an arrow that points back: $2"
    failures=$((failures + 1))
}

# Sets part to that of a file below src/; a folder of another part that sees more than that is one of its own.
find_part() { # FILE
    case $1 in
    plan/measure/*) part=measure ;;
    *) part=${1%%/*} ;;
    esac
}

check() { # FILE PART TARGET
    local file=$1 own=$2 target=${3#../} part
    case $target in
    shoal/*)
        target=${target#shoal/}
        [[ " ${headers[$own]} " == *" ${target%.h} "* ]] || complain "$file" "<shoal/$target>"
        ;;
    */*)
        [[ -d src/${target%%/*} ]] || return 0 # of the system: <sys/stat.h>
        find_part "$target"
        [[ " $own ${sources[$own]} " == *" $part "* || " ${single_files[$own]-} " == *" $target "* ]] ||
            complain "$file" "\"$target\""
        ;;
    esac
}

for file in include/shoal/*.h; do
    name=$(basename "$file" .h)
    : "${part_of[$name]:?$file belongs to no part: add it to tests/lint/arrows.sh}"
done
for folder in src/*/; do
    part=$(basename "$folder")
    : "${sources[$part]?$folder is no known part: add it to tests/lint/arrows.sh}"
done
while IFS=: read -r file target; do
    name=${file##*/}
    case $file in
    include/*) part=${part_of[${name%.h}]} ;;
    *) find_part "${file#src/}" ;;
    esac
    check "$file" "$part" "$target"
done < <(grep -rHE '^[[:space:]]*#[[:space:]]*include' --include='*.[ch]' include/shoal src |
    sed -E 's/^([^:]*):[^<"]*[<"]([^>"]*)[>"].*/\1:\2/' | sort)
# The words of one MPI or of its launcher are known where ranks are opened, and nowhere else.
while read -r file; do
    complain "$file" "knows an MPI, which is src/mpi's and src/engine/ranks_open.c's to know"
done < <(grep -lE '\b(PMIX?_|OMPI_|MV2_|HYDI_|MPI_[A-Z])' -r src --include='*.[ch]' |
    grep -vE '^src/(mpi/|engine/ranks_open\.c)' || true)
[ $failures = 0 ]
