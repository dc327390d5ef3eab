#!/usr/bin/python3
"""Several numbers of clusters in one run, `shoal kmeans -k 2..20`, beside a run of its own for each K.

    ./dev bench choose [--quick] [--repetitions N] [--markdown]

Both are this program with its defaults and two threads; repetition r of both has seed r, and each begins every other
one.  Times are of whole processes.  -k 2..20 also computes the scores, which the runs of one K do not.  A table on
stdout, everything in bench/results/choose.json; --markdown prints the last results as bench/README.md has them.
Nothing here fails when the bar is missed: the table says so.
"""
import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import time

import bench_kmeans
from bench_kmeans import BUILD, RESULTS, THREADS

KS = range(2, 21)
BAR = 1 / 3
SAME = 1e-6  # objectives that differ by less are of the same optimum

CAPTION = """\
seconds: medians of whole processes; processor: of their processor seconds.  share: of the time of one run for each K.
objective: how many of -k 2..20 are lower, the same or higher than that of the run of its K, all repetitions together;
then the mean of their ratios, the greatest, and the ratio of the sums."""


def works(quick):
    found = [("Fashion-MNIST 60,000x784 bytes", bench_kmeans.fashion, (60000,)),
             ("blobs 200,000x32, 12 groups", bench_kmeans.blobs, (200000, 32, 12))]
    return found[:1] if quick else found


def prepare(make, arguments):
    path = bench_kmeans.DATA / f"choose-{make.__name__}-{arguments[0]}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        bench_kmeans.save(path, make(*arguments))
    return path


def run(path, k, seed, program=BUILD / "shoal"):
    """What it tells, its seconds and its processor's."""
    words = [program, "kmeans", path, "-k", k, "--seed", seed, "--threads", THREADS, "--json", "--quiet"]
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    told = subprocess.run(list(map(str, words)), check=True, capture_output=True,
                          env={**os.environ, "SHOAL_HISTORY": "off"}).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(told), time.monotonic() - began, spent


def together(path, seed):
    about, seconds, processor = run(path, f"{KS[0]}..{KS[-1]}", seed)
    picks = {name: about[f"pick_{name}"] for name in ("silhouette", "calinski_harabasz", "elbow")}
    return {"seconds": seconds, "processor": processor, "objectives": about["objectives"], "picks": picks,
            "iterations": sum(about["iterations_by_k"]), "peak_memory": about["peak_memory"]}


def apart(path, seed):
    runs = [run(path, k, seed) for k in KS]
    return {"seconds": sum(seconds for _, seconds, _ in runs), "processor": sum(spent for _, _, spent in runs),
            "objectives": [about["objective"] for about, _, _ in runs],
            "iterations": sum(about["iterations"] for about, _, _ in runs)}


@contextlib.contextmanager
def own_rows(folder, quick):
    """For against.py: -k 2..20 of each work."""
    def row(name, make, arguments):
        path = prepare(make, arguments)
        return name, "s", lambda program: run(path, f"{KS[0]}..{KS[-1]}", 0, program)[1]
    yield [row(*work) for work in works(quick)]


def measure(work, repetitions):
    name, make, arguments = work
    path = prepare(make, arguments)
    one, many = [], []
    for seed in range(repetitions):
        for into, measured in [(one, together), (many, apart)][:: 1 if seed % 2 == 0 else -1]:
            into.append(measured(path, seed))
    ratios = [a / b for x, y in zip(one, many) for a, b in zip(x["objectives"], y["objectives"])]
    entry = {"work": name, "together": one, "apart": many, "mean": statistics.mean(ratios), "worst": max(ratios),
             "lower": sum(r < 1 - SAME for r in ratios), "higher": sum(r > 1 + SAME for r in ratios),
             "same": sum(abs(r - 1) <= SAME for r in ratios),
             "sums": sum(sum(x["objectives"]) for x in one) / sum(sum(x["objectives"]) for x in many)}
    for what in ("seconds", "processor", "iterations"):
        entry[what] = [statistics.median(x[what] for x in runs) for runs in (one, many)]
    entry["share"] = statistics.median(x["seconds"] / y["seconds"] for x, y in zip(one, many))
    entry["met"] = entry["share"] <= BAR
    return entry


def cells(entry):
    (a, b), (c, d), (e, f) = entry["seconds"], entry["processor"], entry["iterations"]
    return [entry["work"], f"{b:.2f}", f"{a:.2f}", f"{entry['share']:.2f}", f"{d:.2f}", f"{c:.2f}", f"{f:.0f}",
            f"{e:.0f}", "yes" if entry["met"] else "NO", f"{entry['lower']} / {entry['same']} / {entry['higher']}",
            f"{entry['mean']:.4f}", f"{entry['worst']:.4f}", f"{entry['sums']:.4f}"]


TITLES = ["work", "one by one, s", "-k 2..20, s", "share", "processor, s", "processor, s", "iterations", "iterations",
          "met", "objective lower / same / higher", "mean", "worst", "sums"]


def print_table(report, markdown):
    rows = [cells(entry) for entry in report["works"]]
    if markdown:
        print("| " + " | ".join(TITLES) + " |\n|---" + "|---:" * (len(TITLES) - 1) + "|")
        for row in rows:
            print("| " + " | ".join(row) + " |")
        return
    for row in rows:
        for title, cell in zip(TITLES, row):
            print(f"{title:>34}  {cell}")
        print()
    print(CAPTION)
    print(f"{report['when']}, {report['cpu']}, {THREADS} threads, {report['repetitions']} repetitions, kernel "
          f"{report['kernel']}, load {report['load'][0]:.1f} before and {report['load'][1]:.1f} after")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench choose", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="one work, two repetitions")
    parser.add_argument("--repetitions", type=int, help="runs of each (5; quick: 2)")
    parser.add_argument("--markdown", action="store_true",
                        help="print the last results as Markdown and measure nothing")
    options = parser.parse_args()
    path = RESULTS / "choose.json"
    if options.markdown:
        return print_table(json.loads(path.read_text()), True)
    repetitions, before = options.repetitions or (2 if options.quick else 5), os.getloadavg()[0]
    report = {"when": time.strftime("%Y-%m-%d"), "cpu": bench_kmeans.cpu_name(), "repetitions": repetitions,
              "kernel": bench_kmeans.best_kernel(),
              "works": [measure(work, repetitions) for work in works(options.quick)]}
    report["load"] = [before, os.getloadavg()[0]]
    path.write_text(json.dumps(report, indent=1) + "\n")
    print_table(report, False)


if __name__ == "__main__":
    main()
