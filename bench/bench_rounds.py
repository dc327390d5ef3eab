#!/usr/bin/python3
"""What a round costs in which there is nothing to compute: on threads, on ranks, on workers behind ssh.

    ./dev bench rounds [--quick] [--only WORD] [--repetitions N] [--markdown]

A table on stdout, everything in bench/results/rounds.json. --quick takes half a minute: fewer and shorter runs. --only
keeps the groups whose name has WORD in it (threads, picked, ranks, workers), --markdown prints the last results as
bench/README.md has them. The workers' hosts are network namespaces of this machine (tests/system/hosts.py), which takes
root. Nothing here fails when a bar is missed: the table says so.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"

sys.path[:0] = [str(ROOT / "tests" / "system"), str(ROOT / "bench")]
import bench_engine  # noqa: E402
import bench_kmeans  # noqa: E402
import bench_mpi  # noqa: E402
import hosts  # noqa: E402
from bench_engine import say  # noqa: E402

LEARNER = ROOT / "bench" / "empty_learner.c"
GRAINS = 16
NETWORK = {"sums": 37000, "numbers": 18375}  # a small network: a model of 147 KB
LARGE = {"sums": 600000, "numbers": 300000, "kept": 600000}
WORK = 20  # microseconds that a map takes where all threads are to have some
HOSTS = 4
FEW = " of 37,000 sums"
MANY = "600,000 sums, a model of 2.4 MB and 4.8 MB newly kept"


class Bench(bench_engine.Bench):
    """With the program that runs rounds without work."""

    def __init__(self, build, folder, quick, repetitions):
        super().__init__(build / "shoal", folder, quick, repetitions)
        self.build, self.mpi = build, bench_mpi.Bench(build, folder, quick, repetitions)

    def rounds_of(self, threads, rows, sizes, kind=None):
        """Percentiles of one run, by threads or by two ranks of a kind."""
        data = rows if isinstance(rows, str) else f"gen:uniform?rows={rows}&cols=2&seed=1"
        words = [self.build / "bench_rounds", threads, data, "rounds", self.few(5000, 1500)]
        words += [str(word) for pair in sizes.items() for word in pair]
        return self.mpi.ranks(kind, 2, words) if kind else self.mpi.run(words)

    def several(self, *work):
        return [self.rounds_of(*work) for _ in range(self.rounds)]

    def add_rounds(self, group, what, runs, percentile, bar=None, note="", less=0):
        """One percentile of the rounds of each run; the note has the others."""
        def median(name):
            return statistics.median(run[name] for run in runs) - less
        others = ", ".join(f"{name} {median(key):.1f}" for key, name in (
            ("least", "least"), ("p10", "10th percentile"), ("median", "median"), ("p90", "90th")) if key != percentile)
        self.add(group, what, "us", [run[percentile] - less for run in runs], bar, f"{others}{note}")


def build_programs(bench):
    targets = ["bench_rounds", *(f"mpi_{kind}_plugin" for kind in bench.mpi.kinds)]
    built = subprocess.run(["cmake", "--build", bench.build, "--target", *targets], capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"bench: bench_rounds was not built:\n{built.stdout[-2000:]}")


# ---- threads ---------------------------------------------------------------------------------------------------------


def bench_threads(bench):
    bench.add_rounds("threads", f"1 thread{FEW}", bench.several(1, GRAINS, NETWORK), "median", 20)
    two = bench.several(2, GRAINS, NETWORK)
    bench.add_rounds("threads", f"2 threads{FEW}: 10th percentile", two, "p10", 50)
    bench.add_rounds("threads", "the same: median", two, "median")
    bench.add_rounds("threads", f"2 threads{FEW}, a map of {WORK} us for each: beyond the map",
                     bench.several(2, 2, {**NETWORK, "work": WORK}), "median", less=WORK)
    for threads in (1, 2):
        large = bench.several(threads, GRAINS, LARGE)
        bench.add_rounds("threads", f"{threads} thread{'s' * (threads > 1)}, {MANY}", large, "median")
        bench.add("threads", "the same: allocations after the third round", "", [run["allocations"] for run in large],
                  0)


# ---- batches ---------------------------------------------------------------------------------------------------------


def bench_picked(bench):
    """Rows that are too many for the caches, of bytes, as those of Fashion-MNIST are."""
    rows = "gen:uniform?rows=60000&cols=784&seed=1&low=0&high=255&type=uint8"
    for group in (128, 16):
        runs = bench.several(1, rows, {**NETWORK, "batch": 128, "strata": 128 // group, "group": group})
        bench.add_rounds("picked", f"1 thread{FEW}, a batch of 128 rows of 784 bytes in groups of {group}", runs,
                         "median", 25)


# ---- ranks -----------------------------------------------------------------------------------------------------------


def bench_ranks(bench):
    for kind in bench.mpi.kinds:
        runs = bench.several(1, GRAINS, NETWORK, kind)
        bench.add_rounds("ranks", f"2 ranks of {bench_mpi.NAMES[kind]}{FEW}: 10th percentile", runs, "p10", 120)
        bench.add_rounds("ranks", "the same: median", runs, "median")


# ---- workers ---------------------------------------------------------------------------------------------------------


def worker_seconds(bench, variables, where, workers, rounds):
    """What a job says its rounds took, as whoever asks for nothing but its result runs it."""
    params = json.dumps({**NETWORK, "rounds": rounds})
    words = [bench.shoal, "run", LEARNER, f"gen:uniform?rows={workers}&cols=2&seed=1", "--params", params, "--slices",
             workers, "--store", bench.new_folder_store(), "--workers", where, "--threads", 1, "--quiet", "--json"]
    done = subprocess.run(list(map(str, words)), env={**os.environ, **bench.variables, **variables},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))} exits with {done.returncode}: {done.stderr[-500:]}")
    said = json.loads(done.stdout)
    assert said["workers"] == workers and said["rounds"] == rounds, said
    return said["seconds"]["run"]


def worker_round(bench, far, workers):
    """What a long job takes more than a short one, by which all have joined, for each round that it has more; in ms."""
    variables = {"SHOAL_SSH": f"ssh -F {far.ssh_config} -oLogLevel=ERROR"}
    where = "ssh:" + ",".join(f"h{number + 1}:{workers // HOSTS}" for number in range(HOSTS))
    few, many = bench.few((300, 1300), (100, 400))
    short, long = (worker_seconds(bench, variables, where, workers, rounds) for rounds in (few, many))
    return 1e3 * (long - short) / (many - few)


def bench_workers(bench):
    if os.geteuid() != 0:
        return say("    not root: no hosts")
    with hosts.Hosts(bench.folder, HOSTS) as far:
        bench.add("workers", f"16 workers over ssh to {HOSTS} hosts{FEW}", "ms",
                  [worker_round(bench, far, 16) for _ in range(max(1, bench.rounds // 3))], 6)


# ---- beside a commit -------------------------------------------------------------------------------------------------


def seconds_of(program, folder, words, phases, variables):
    """Of the phases of one run, in ms."""
    done = subprocess.run(list(map(str, [program, *words, "--json", "--quiet"])), env={**os.environ, **variables},
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=folder, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program} {' '.join(map(str, words))}: {done.stderr[-500:]}")
    seconds = json.loads(done.stdout)["seconds"]
    return 1e3 * sum(seconds.get(phase, 0) for phase in phases)


@contextlib.contextmanager
def own_rows(folder, quick):
    """For against.py: rounds without work, and the rounds of learners whose rounds are short."""
    variables = {"XDG_CACHE_HOME": str(folder), "XDG_STATE_HOME": str(folder), "SHOAL_HISTORY": "off"}
    rounds = 1500 if quick else 5000

    def row(name, phases, *words):
        return name, "ms", lambda program: seconds_of(program, folder, words, phases, variables)

    def empty(threads, sizes, rounds):
        params = json.dumps({**sizes, "rounds": rounds})
        return row(f"{rounds:,} rounds without work{'' if sizes is LARGE else FEW}"
                   f"{', ' + MANY if sizes is LARGE else ''}, {threads} threads", ["run"], "run", LEARNER,
                   f"gen:uniform?rows={GRAINS}&cols=2&seed=1", "--params", params, "--threads", threads)

    def learner(name, *words):
        return [row(f"{name}, {threads} threads", ["scan", "seed", "run"], *words, "--threads", threads)
                for threads in (1, 2)]

    target = folder / "target.csv"
    target.write_text("".join(f"{i * 7919 % 10}\n" for i in range(2000)))
    yield [empty(1, NETWORK, rounds), empty(2, NETWORK, rounds), empty(1, LARGE, rounds // 10),
           empty(2, LARGE, rounds // 10),
           *learner("kmeans, 20,000x16, K=50", "kmeans", "gen:blobs?rows=20000&cols=16&centres=50&seed=1", "-k", 50,
                    "--init", "random", "--iterations", 300, "--tolerance", 0),
           *learner("kmeans, 2,000x1,000, K=1,000", "kmeans", "gen:uniform?rows=2000&cols=1000&seed=1", "-k", 1000,
                    "--init", "random", "--iterations", 40, "--tolerance", 0, "--empty", "keep"),
           *learner("logistic, 2,000x200, 10 classes", "logistic", "gen:uniform?rows=2000&cols=200&seed=1", "--target",
                    target, "--iterations", 200, "--tolerance", 0),
           *learner("autoencoder, 2,000x64, 25 units", "autoencoder", "gen:uniform?rows=2000&cols=64&seed=1",
                    "--hidden", 25, "--iterations", 200)]


GROUPS = {"threads": bench_threads, "picked": bench_picked, "ranks": bench_ranks, "workers": bench_workers}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench rounds", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="half a minute: fewer and shorter runs")
    parser.add_argument("--only", default="", help="only groups whose name has this in it: " + ", ".join(GROUPS))
    parser.add_argument("--repetitions", type=int, help="runs of each (9; quick: 3)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where the programs are")
    parser.add_argument("--markdown", action="store_true",
                        help="print the last results as Markdown and measure nothing")
    options = parser.parse_args()
    if options.markdown:
        return bench_engine.print_markdown(json.loads((RESULTS / "rounds.json").read_text()))
    before = os.getloadavg()[0]
    if os.geteuid() == 0 and options.only in "workers":
        hosts.isolate()
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        bench = Bench(options.build.resolve(), folder, options.quick, options.repetitions or
                      (3 if options.quick else 9))
        build_programs(bench)
        for name, measure in GROUPS.items():
            if options.only in name:
                say(name)
                measure(bench)
    report = {"when": time.strftime("%Y-%m-%d"), "cpu": bench_kmeans.cpu_name(), "cores": len(os.sched_getaffinity(0)),
              "quick": options.quick, "load": [before, os.getloadavg()[0]], "rows": bench.rows}
    if not options.only:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "rounds.json").write_text(json.dumps(report, indent=1) + "\n")
    bench_engine.print_table(report)
    return None


if __name__ == "__main__":
    main()
