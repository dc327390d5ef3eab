#!/bin/bash
# The program with a GPU and without: every output is the same bytes.  compare.sh SHOAL [DEVICE]
# Needs a GPU: ./dev test --device runs it.
set -u
shoal=$1 device=${2:-cuda} failures=0 cases=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
blobs='gen:blobs?rows=60000&cols=70&seed=7&centres=90&spread=2'
compare() { # NAME LIMIT ARGUMENT...
    local name=$1 limit=$2 on output
    shift 2
    cases=$((cases + 1))
    for on in cpu "$device"; do
        output=$folder/${on%%:*}
        if ! timeout -s KILL "$limit" "$shoal" "$@" --device "$on" --quiet --labels "$output-l.npy" \
            "${outputs[@]/#OUT/$output}" >"$folder/said" 2>&1; then
            echo "FAILED $name on $on: $(cat "$folder/said")"
            failures=$((failures + 1))
            return
        fi
    done
    for output in "$folder/cpu"-*; do
        cmp "$output" "${output/\/cpu-/\/${device%%:*}-}" && continue
        echo "FAILED $name: ${output##*-} differs"
        failures=$((failures + 1))
    done
    rm -f "$folder"/*.npy
}
outputs=(--centres OUT-c.npy)
for start in kmeans++ parallel random; do
    compare "start $start" 60 kmeans "$blobs" -k 30 --init $start --iterations 15
done
for type in float64 uint8 int16 int32; do
    compare "type $type" 60 kmeans "$blobs&type=$type&low=0&high=100" -k 100 --iterations 15
done
compare "cosine" 60 kmeans "$blobs" -k 60 --metric cosine --iterations 15
compare "one cluster" 60 kmeans "$blobs" -k 1
compare "many clusters" 60 kmeans "$blobs" -k 3000 --init random --iterations 8
compare "empty clusters" 60 kmeans 'gen:uniform?rows=60000&cols=70&type=uint8&low=0&high=2' -k 3000 --init random \
    --iterations 5
compare "several runs" 60 kmeans "$blobs" -k 20 --runs 3 --iterations 10
compare "several k" 60 kmeans "$blobs" -k 2..6 --iterations 10
compare "batches" 60 kmeans "$blobs" -k 30 --batch 2000 --iterations 3
compare "three columns" 60 kmeans 'gen:uniform?rows=1500000&cols=3' -k 40 --init random --iterations 20
compare "many columns" 60 kmeans 'gen:uniform?rows=3000&cols=3001' -k 40 --init random --iterations 20
compare "every round" 60 kmeans "$blobs" -k 30 --iterations 15 --trace "$folder/trace.jsonl"
compare "workers" 100 kmeans "$blobs" -k 30 --iterations 15 --workers local:2
mkdir "$folder/in"
for python in python3 /usr/bin/python3; do
    $python -c "
import numpy, sys
numpy.save(sys.argv[1], numpy.arange(60000) % 7 / 2)" "$folder/in/weights.npy" 2>"$folder/said" && break
done
compare "weights" 60 kmeans "$blobs" -k 30 --weights "$folder/in/weights.npy" --iterations 15
outputs=(--distances OUT-d.npy)
if "$shoal" kmeans "$blobs" -k 50 --iterations 3 --device cpu --quiet --model "$folder/model.safetensors"; then
    compare "predict" 60 predict "$folder/model.safetensors" "${blobs/seed=7/seed=9}"
fi
echo "$cases comparisons, $failures failures"
[ "$failures" = 0 ]
