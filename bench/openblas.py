#!/usr/bin/python3
"""Peers that compute with OpenBLAS get the kernels that are fastest for their work.

    core, tried = openblas.best("bench_kmeans", "fit_lloyd", data, start, 2)     # a short run with each
    openblas.call(core, "bench_kmeans", "fit_lloyd", data, start, 25)            # the run that counts

OpenBLAS takes the newest kernels that a processor can run, which need not be the fastest: Debian's 0.3.21 takes
Cooperlake's where bfloat16 is there, and on k-means' shapes they took three times as long as SkylakeX's.
OPENBLAS_CORETYPE names others, and is read when the library is loaded: so what a peer does runs in a process of its
own.  Functions that are called so take and return what JSON can hold, and return their seconds first.
"""
import importlib
import json
import os
import pathlib
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent
OWN_CHOICE = ""  # what OpenBLAS takes by itself

# What a processor must have for them, by the names of /proc/cpuinfo.
NEEDS = {
    "SkylakeX": {"avx512f", "avx512dq", "avx512bw", "avx512vl"},
    "Cooperlake": {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_bf16"},
    "Haswell": {"avx2", "fma"},
    "Zen": {"avx2", "fma"},
}


def processor_flags():
    for line in open("/proc/cpuinfo"):
        if line.startswith("flags"):
            return set(line.split(":", 1)[1].split())
    return set()


def core_types():
    """Those that this processor can run, and OpenBLAS's own choice."""
    flags = processor_flags()
    return [OWN_CHOICE, *(name for name, needs in NEEDS.items() if needs <= flags)]


def call(core, module, function, *arguments, variables=None):
    """What a function of a bench returns, in a process whose OpenBLAS uses these kernels, with these variables."""
    variables = {**os.environ, **(variables or {}), "OPENBLAS_CORETYPE": core or ""}
    if not core:
        del variables["OPENBLAS_CORETYPE"]
    done = subprocess.run([sys.executable, __file__, module, function], input=json.dumps(arguments, default=str),
                          env=variables, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{module}.{function} with OPENBLAS_CORETYPE={core} exits with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def best(module, function, *arguments):
    """The kernels with which a short run is fastest, and the seconds of it with each: the better of two."""
    tried = {}
    for core in core_types() * 2:
        tried[core] = min(call(core, module, function, *arguments)[0], tried.get(core, float("inf")))
    return min(tried, key=tried.get), tried


def describe(core, tried):
    """For reports."""
    others = ", ".join(f"{name or 'its own choice'} {seconds:.2f}" for name, seconds in tried.items() if name != core)
    return f"{core or 'its own choice'} (a short run {tried[core]:.2f} s; {others})"


if __name__ == "__main__":
    sys.path[:0] = [str(BENCH)]
    found = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(*json.loads(sys.stdin.read()))
    print("\n" + json.dumps(found))
