#!/usr/bin/python3
"""Ranks started by mpirun beside the threads of one process, and what a round of them costs beside plain MPI.

    ./dev bench mpi [--quick] [--only WORD] [--repetitions N] [--markdown]

A table on stdout, everything in bench/results/mpi.json.  --quick takes a minute and a half: fewer and shorter runs, a
quarter of the rows.
--only keeps the groups whose name has WORD in it (whole, rounds, checkpoint), --markdown prints the last results as
bench/README.md has them.  Nothing here fails when a bar is missed: the table says so.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"

sys.path[:0] = [str(ROOT / "bench")]
import bench_kmeans  # noqa: E402

NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
FROM_LAUNCHERS = ("OMPI_", "PMI_", "PMIX_", "HYDI_", "SLURM_")
FACTOR, MORE = 1.3, 20  # what communication may take: so many times the plain call's time, and so many microseconds
LONG = 600  # seconds after which a command hangs


class Bench:
    """What all groups need: the programs, how often to measure, and what was found so far."""

    def __init__(self, build, folder, quick, repetitions):
        self.build, self.folder, self.quick, self.repetitions = build, pathlib.Path(folder), quick, repetitions
        self.rows, self.sizes = [], []
        self.kinds = [
            kind for kind in NAMES
            if shutil.which(f"mpirun.{kind}") and (build / "mpi" / kind / "libshoal-mpi.so").exists()
        ]
        for kind in NAMES:
            if kind not in self.kinds:
                say(f"no mpirun.{kind}, or no plug-in for it: {NAMES[kind]} is left out")

    def few(self, many, few):
        return few if self.quick else many

    def run(self, words, seconds=LONG):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(FROM_LAUNCHERS)}
        settings = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "SHOAL_HISTORY": "off"}
        words = ["timeout", "--kill-after", "5", seconds, *words]
        done = subprocess.run([str(word) for word in words], env={**clean, **settings}, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, cwd=self.folder)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))} exits with {done.returncode}: {done.stderr.strip()[:500]}")
        return json.loads(done.stdout)

    def ranks(self, kind, ranks, words, seconds=LONG):
        crowded = ["--oversubscribe"] if kind == "openmpi" and ranks > len(os.sched_getaffinity(0)) else []
        return self.run([f"mpirun.{kind}", *crowded, "-n", ranks, *words], seconds)

    def kmeans(self, words, kind=None, ranks=2):
        """One run, by ranks of a kind or by threads: what it says, and the seconds of the whole command."""
        words = [self.build / "shoal", "kmeans", *words, "--json"]
        began = time.perf_counter()
        about = self.ranks(kind, ranks, words) if kind else self.run([*words, "--threads", 2])
        about["process"] = time.perf_counter() - began
        about["rounds_seconds"] = about["seconds"]["scan"] + about["seconds"]["run"]
        return about

    def add(self, group, work, unit, figure, bar=None, note="", runs=None):
        """A row, of which less is better."""
        self.rows.append({"group": group, "work": work, "unit": unit, "figure": figure, "bar": bar,
                          "met": None if bar is None else figure <= bar, "note": note, "runs": runs})
        say(f"    {work}: {figure:.4g} {unit}" + (f" ({note})" if note else ""))


def say(text):
    print(text, file=sys.stderr, flush=True)


def blobs(bench):
    """The words of the work that ranks and threads take turns at, and its name."""
    work = next(w for w in bench_kmeans.works(False, "") if w.data == "blobs128" and not w.seeding)
    data, start, _, _ = bench_kmeans.prepare(work, bench.few(1, 0.25))
    name = work.name if not bench.quick else f"a quarter of {work.name}"
    return name, [data, "--init", start, "--iterations", work.iterations, "--tolerance", 0]


# ---- the same job by both engines ------------------------------------------------------------------------------------


def bench_whole(bench):
    name, words = blobs(bench)
    runs = {who: [] for who in [None, *bench.kinds]}
    for turn in range(bench.repetitions):
        for who in list(runs)[::1 if turn % 2 else -1]:
            runs[who].append(bench.kmeans(words, who))
    threads = min(about["rounds_seconds"] for about in runs[None])
    for kind in bench.kinds:
        best = min(runs[kind], key=lambda about: about["rounds_seconds"])
        if best["all_threads"] != 2:
            raise RuntimeError(f"two ranks had {best['all_threads']} threads")
        spent = best["rank0"]
        bench.add(
            "whole", f"{name}: 2 ranks of {NAMES[kind]} / 2 threads", "", best["rounds_seconds"] / threads, 1.1,
            f"{best['rounds_seconds']:.3f} s / {threads:.3f} s; rank 0 mapped {spent['map']:.3f} s, met the other "
            f"{spent['reduce']:.3f} s, updated {spent['update']:.3f} s", {
                "ranks": [about["rounds_seconds"]
                          for about in runs[kind]], "threads": [about["rounds_seconds"] for about in runs[None]]
            })
        whole = [min(about["process"] for about in runs[who]) for who in (kind, None)]
        bench.add("whole", f"the same, whole commands: {NAMES[kind]} / threads", "", whole[0] / whole[1], None,
                  f"{whole[0]:.2f} s / {whole[1]:.2f} s: mpirun and MPI_Init are in it")


# ---- rounds without work ---------------------------------------------------------------------------------------------


def measure_rounds(bench, kind, ranks, repetitions, rounds):
    words = [bench.build / f"bench_mpi_rounds_{kind}", rounds]
    return [bench.ranks(kind, ranks, words) for _ in range(repetitions)]


def sizes_of(kind, ranks, found):
    """One entry a size: the medians of the repetitions."""
    def median(pick):
        return statistics.median(pick(entry) for entry in entries)
    for entries in zip(*(run["sizes"] for run in found)):
        values = entries[0]["k"] * entries[0]["columns"]
        size = {"mpi": kind, "name": found[0]["mpi"], "ranks": ranks, "values": values, "rounds": entries[0]["rounds"],
                "runs": entries, "update_rounds": entries[0]["kmeans"]["rounds"]}
        for name in ("round", "communication", "plain"):
            size[name] = median(lambda entry: entry[name])
        for name in ("update", "prepare"):
            size[name] = median(lambda entry: entry["kmeans"][name])
        size["allowed"] = FACTOR * size["plain"] + MORE
        yield size


def power(values):
    return f"10^{len(str(values)) - 1}"


def bench_rounds(bench):
    """Two ranks, whose kinds of MPI take turns, then more of them than there are cores."""
    built = subprocess.run([
        "cmake", "--build", bench.build, "--target", *(f"bench_mpi_rounds_{kind}" for kind in bench.kinds)
    ], capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"bench: bench_mpi_rounds was not built:\n{built.stdout[-2000:]}")
    found = {kind: [] for kind in bench.kinds}
    for _ in range(bench.repetitions):
        for kind in bench.kinds:
            found[kind] += measure_rounds(bench, kind, 2, 1, 60)
    for kind in bench.kinds:
        for size in sizes_of(kind, 2, found[kind]):
            bench.sizes.append(size)
            bench.add("rounds", f"2 ranks of {NAMES[kind]}, {power(size['values'])} sums: communication in a round",
                      "us", size["communication"], size["allowed"],
                      f"plain MPI_Allreduce {size['plain']:.1f}; all of the round {size['round']:.1f}")
        hidden(bench, kind, found[kind])
    for ranks in (4, 8, 16)[:bench.few(3, 1)]:
        for kind in bench.kinds:
            say(f"    {ranks} ranks of {NAMES[kind]}")
            bench.sizes += sizes_of(kind, ranks, measure_rounds(bench, kind, ranks, 1, bench.few(60, 30)))


def hidden(bench, kind, found):
    rows = [run["rows"] for run in found]
    waited, plain = (statistics.median(row[name] for row in rows) for name in ("waited", "plain"))
    bench.add("rounds",
              f"2 ranks of {NAMES[kind]}, {rows[0]['bytes'] / 1e6:.0f} MB of labels and distances: share not hidden",
              "%", 100 * waited / plain, None,
              f"waited for {waited / 1e3:.3f} ms of them; plain sends take {plain / 1e3:.3f} ms")


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def bench_checkpoint(bench):
    """A job whose rounds are long and whose model has 8 MB, with a checkpoint every second and without."""
    work = next(w for w in bench_kmeans.works(False, "") if w.data == "uniform")
    data, start, _, _ = bench_kmeans.prepare(work, bench.few(1, 0.25))
    words = [data, "--init", start, "--iterations", bench.few(40, 20), "--tolerance", 0]
    every = bench.few(1, 0.2)
    saves = ["--checkpoint", every, "--checkpoint-file", bench.folder / "checkpoint"]
    kind = bench.kinds[0]
    plain, saved = [], []
    for _ in range(bench.repetitions):
        plain.append(bench.kmeans(words, kind))
        saved.append(bench.kmeans([*words, *saves], kind))
    without, with_saves = (min(about["rounds_seconds"] for about in runs) for runs in (plain, saved))
    load = [min(about["seconds"]["load"] for about in runs) for runs in (plain, saved)]
    bench.add(
        "checkpoint", f"{work.name if not bench.quick else 'a quarter of ' + work.name}, 2 ranks of {NAMES[kind]}: "
        f"rounds with --checkpoint {every} / without", "", with_saves / without, None,
        f"{with_saves:.2f} s / {without:.2f} s; before the first round {load[1]:.2f} s / {load[0]:.2f} s, "
        "in which rows are hashed"
    )


GROUPS = {"whole": bench_whole, "rounds": bench_rounds, "checkpoint": bench_checkpoint}


# ---- printing --------------------------------------------------------------------------------------------------------


def verdict(row):
    return "-" if row["met"] is None else "yes" if row["met"] else "NO"


def figure_text(value):
    return "-" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def print_table(report):
    line = "{:88} {:>8} {:>3} {:>7} {:>4}  {}"
    print(line.format("work", "figure", "", "bar", "met", ""))
    for row in report["rows"]:
        print(
            line.format(row["work"], figure_text(row["figure"]), row["unit"], figure_text(row["bar"]), verdict(row),
                        row["note"]))
    if report["sizes"]:
        print("\nmicroseconds; update and prepare are k-means' own, which every rank does by itself")
    line = "{:16} {:>5} {:>6} {:>10} {:>14} {:>14} {:>8} {:>10} {:>10}"
    for size in report["sizes"]:
        if size is report["sizes"][0]:
            print(line.format("MPI", "ranks", "sums", "round", "communication", "plain", "ratio", "update", "prepare"))
        print(line.format(*size_cells(size)))
    print(f"\n{report['when']}, {report['cpu']}, load {report['load'][0]:.1f} before and {report['load'][1]:.1f} after")


def size_cells(size):
    return [
        size["name"], size["ranks"],
        power(size["values"]),
        figure_text(size["round"]),
        figure_text(size["communication"]),
        figure_text(size["plain"]), f"{size['communication'] / size['plain']:.2f}",
        figure_text(size["update"]),
        figure_text(size["prepare"])
    ]


def print_markdown(report):
    print(
        f"Measured {'with --quick ' if report['quick'] else ''}{report['when']} on {report['cpu']}, "
        f"{report['cores']} cores, {report['repetitions']} repetitions, load {report['load'][0]:.1f} before.\n")
    print("| work | unit | figure | bar | met | |\n|---|---|---:|---:|---|---|")
    for row in report["rows"]:
        print(f"| {row['work']} | {row['unit'] or '-'} | {figure_text(row['figure'])} | {figure_text(row['bar'])} "
              f"| {verdict(row)} | {row['note']} |")
    print(
        "\n| MPI | ranks | sums | round | communication | plain `MPI_Allreduce` | ratio | k-means' update | prepare |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for size in report["sizes"]:
        print("| " + " | ".join(map(str, size_cells(size))) + " |")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench mpi", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a minute and a half: fewer and shorter runs")
    parser.add_argument("--only", default="", help="only groups whose name has this in it: " + ", ".join(GROUPS))
    parser.add_argument("--repetitions", type=int, help="how often the programs take turns (7; quick: 2)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where the programs are")
    parser.add_argument("--markdown", action="store_true",
                        help="print the last results as Markdown and measure nothing")
    options = parser.parse_args()
    if options.markdown:
        return print_markdown(json.loads((RESULTS / "mpi.json").read_text()))
    before = os.getloadavg()[0]
    say(f"load {before:.1f} before")
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        bench = Bench(options.build.resolve(), folder, options.quick, options.repetitions or
                      (2 if options.quick else 7))
        if not bench.kinds:
            sys.exit("bench: there is no MPI here: ./dev deps bench")
        for name, measure in GROUPS.items():
            if options.only in name:
                say(name)
                measure(bench)
    report = {
        "when": time.strftime("%Y-%m-%d"), "cpu": bench_kmeans.cpu_name(), "cores": len(os.sched_getaffinity(0)),
        "quick": options.quick, "repetitions": bench.repetitions, "load": [before, os.getloadavg()[0]],
        "rows": bench.rows, "sizes": bench.sizes
    }
    if not options.only:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "mpi.json").write_text(json.dumps(report, indent=1) + "\n")
    print_table(report)


if __name__ == "__main__":
    main()
