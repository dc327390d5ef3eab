#!/usr/bin/python3
"""The store engine beside the threads engine, and what a round of it costs.

    ./dev bench engine [--quick] [--only WORD] [--rounds N] [--markdown]

A table on stdout, everything in bench/results/engine.json. --quick takes a minute: fewer and shorter runs. --only keeps
the groups whose name has WORD in it (overhead, rounds, requests, many), --markdown prints the last results as
bench/README.md has them. Nothing here fails when a bar is missed: the table says so.
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
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
MIB = 1 << 20

sys.path[:0] = [str(ROOT / "tests" / "system"), str(ROOT / "bench")]
import bench_kmeans  # noqa: E402
import processes  # noqa: E402


class Bench:
    """What all groups need: the program, where stores are, how often to measure, and the rows found so far."""

    def __init__(self, shoal, folder, quick, rounds):
        self.shoal, self.folder, self.quick, self.rounds, self.rows = shoal, pathlib.Path(folder), quick, rounds, []
        self.variables, self.stores = {"XDG_CACHE_HOME": folder, "XDG_STATE_HOME": folder}, 0

    def few(self, many, few):
        return few if self.quick else many

    def new_folder_store(self):
        self.stores += 1
        return f"dir:{self.folder}/store{self.stores}"

    def run(self, *words):
        done = subprocess.run([self.shoal, *map(str, words)], env={**os.environ, **self.variables}, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RuntimeError(
                f"shoal {' '.join(map(str, words))} exits with {done.returncode}: {done.stderr.strip()[:500]}")
        return done.stdout

    def kmeans(self, work, *words):
        """One run: what it says, with the seconds of the whole process, and those outside rounds."""
        began = time.perf_counter()
        about = json.loads(self.run("kmeans", *work, *words, "--json"))
        about["process"] = time.perf_counter() - began
        about["beside"] = about["process"] - sum(about["seconds"][phase] for phase in ("scan", "seed", "run", "write"))
        return about

    def job(self, work, store, workers, *words):
        """One run on workers.  `show` is what the job says of itself in the end, `rounds_ms` what its rounds took."""
        trace = self.folder / "trace.jsonl"
        about = self.kmeans(work, "--store", store, "--workers", f"local:{workers}", "--trace", trace, *words)
        about["show"] = json.loads(self.run("job", "show", about["job"], "--store", store, "--json"))
        about["rounds_ms"] = [1e3 * json.loads(line)["seconds"] for line in open(trace)]
        return about

    def add(self, group, work, unit, figures, bar=None, note=""):
        """A row: the median of the figures, of which less is better."""
        figure = statistics.median(figures)
        self.rows.append({"group": group, "work": work, "unit": unit, "figures": figures, "median": figure, "bar": bar,
                          "met": None if bar is None else figure <= bar, "note": note})
        say(f"    {work}: {figure:.4g} {unit}" + (f" ({note})" if note else ""))


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- the same rounds by both engines ---------------------------------------------------------------------------------


def heavy_work(quick):
    """Its name, and the words for it."""
    work = next(w for w in bench_kmeans.works(False, "") if w.data == "blobs128" and not w.seeding)
    data, start, _, _ = bench_kmeans.prepare(work, 0.25 if quick else 1)
    name = work.name if not quick else f"a quarter of {work.name}"
    return name, [data, "--init", start, "--iterations", work.iterations, "--tolerance", 0]


def bench_overhead(bench):
    """Two workers beside two threads, in turn."""
    name, words = heavy_work(bench.quick)
    threads, ratios, beside, spent = [], [], [], []
    for _ in range(bench.rounds):
        ours = bench.kmeans(words, "--threads", 2)
        theirs = bench.job(words, bench.new_folder_store(), 2)
        threads.append(ours["seconds"]["run"])
        spent.append(theirs["seconds"]["run"])
        ratios.append(spent[-1] / threads[-1])
        beside.append(theirs["beside"])
    bench.add("overhead", f"{name}: rounds of 2 workers / of 2 threads", "", ratios, 1.15,
              f"{statistics.median(spent):.3f} s / {statistics.median(threads):.3f} s")
    bench.add("overhead", "the same: start and end, everything outside rounds", "s", beside, 0.5)


# ---- rounds without work ---------------------------------------------------------------------------------------------


def tiny_work(slices, runs):
    """Few rows in slices that are smaller still, and round after round of them."""
    rows = 400
    return [
        f"gen:uniform?rows={rows}&cols=2&seed=1", "-k", 8, "--init", "random", "--grain", rows // slices, "--slices",
        slices, "--iterations", 20, "--tolerance", 0, "--runs", runs
    ]


def holders(about):
    """Workers that had slices in the end."""
    return sum(len(worker["slices"]) > 0 for worker in about["show"]["worker"])


def idle_round(bench, workers, runs):
    """Milliseconds of a round in which there is nothing to compute: the second half of the rounds counts, by which all
    have joined; and what the job said."""
    about = bench.job(tiny_work(workers, bench.few(runs, runs // 4)), bench.new_folder_store(), workers, "--threads", 1)
    times = about["rounds_ms"]
    return statistics.median(times[len(times) // 2:]), about


def bench_rounds(bench):
    """What a round takes in which there is nothing to compute."""
    for workers, bar, runs in ((2, 1, 400), (16, 5, 200), (200, 80, 20)):
        figures = []
        for _ in range(bench.rounds if workers < 200 else 1):
            took, about = idle_round(bench, workers, runs)
            figures.append(took)
        bench.add("rounds", f"a round without work, {workers} workers in a folder", "ms", figures, bar,
                  f"{holders(about)} of them held slices; mean of all {about['show']['round']:,} rounds "
                  f"{1e3 * about['show']['seconds'] / about['show']['round']:.2f} ms")


# ---- requests --------------------------------------------------------------------------------------------------------


def requests_a_round(bench, store, workers, shape):
    """Of a worker, from the difference of a short and a long job, so that joining and leaving do not count. The lease
    is so long that nobody renews it."""
    found = []
    for runs in (2, bench.few(8, 4)):
        about = bench.job(tiny_work(workers, runs), store, workers, "--threads", 1, "--reduce", shape, "--lease", 3000)
        found.append((about["show"]["round"], about["show"]["requests"], about["rounds_ms"]))
    (few, before, _), (many, after, times) = found
    kinds = {kind: (after[kind] - before[kind]) / workers / (many - few)
             for kind in ("all", "get", "put", "list", "remove", "queue")}
    return kinds, statistics.median(times[len(times) // 2:])


def bench_requests(bench):
    """A server that is asked over http: Azurite."""
    import azurite
    if azurite.PROGRAM is None:
        return say("    no Azurite below build/peers: ./dev deps bench")
    for shape, workers in (("flat", 8), ("two-level", 16)):
        with tempfile.TemporaryDirectory(dir=bench.folder) as folder, azurite.Server(folder, "azurite") as server:
            server.wait()
            bench.variables.update(server.variables())
            store = f"az://{azurite.ACCOUNT}/engine"
            bench.run("store", "put", "--create", "--quiet", "-", f"{store}/first")
            kinds, took = requests_a_round(bench, store, workers, shape)
        more = ", ".join(f"{count:.2f} {kind}" for kind, count in kinds.items() if kind != "all" and count >= 0.005)
        bench.add("requests", f"requests a worker and round, {shape}, {workers} workers at Azurite", "", [kinds["all"]],
                  6, f"{more}; a round takes {took:.0f} ms")


# ---- many workers ----------------------------------------------------------------------------------------------------


def descendants(pid):
    below = processes.children(pid)
    return below + [further for child in below for further in descendants(child)]


class MemoryWatch(threading.Thread):
    """The most memory that all processes below this one had at a time, each page counted once."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.processes, self.over = 0, 0, threading.Event()

    def run(self):
        while not self.over.wait(0.2):
            below = descendants(os.getpid())
            self.most = max(self.most, sum(map(processes.proportional_memory, below)))
            self.processes = max(self.processes, len(below))


def bench_many(bench):
    workers = 200
    watch = MemoryWatch()
    watch.start()
    about = bench.job(tiny_work(workers, bench.few(20, 4)), bench.new_folder_store(), workers, "--threads", 1)
    watch.over.set()
    watch.join()
    requests = about["show"]["requests"]
    bench.add(
        "many", f"memory (PSS) of {workers} workers and their starter", "MiB", [watch.most / MIB], 2048,
        f"{watch.processes} processes at most, {about['show']['round']:,} rounds, "
        f"whole command {about['process']:.1f} s"
    )
    bench.add("many", "the same: retried requests", "", [requests["again"]], 0,
              f"of {requests['all']:,}")


def bench_paper(bench):
    """The paper's experiment in virtual time: a table of its own, with no bar."""
    build = pathlib.Path(bench.shoal).parent
    built = subprocess.run(["cmake", "--build", build, "--target", "bench_engine_sim"], capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"bench: bench_engine_sim was not built:\n{built.stdout[-2000:]}")
    if not bench.quick:
        say(subprocess.run([build / "bench_engine_sim"], capture_output=True, text=True, check=True).stdout)


@contextlib.contextmanager
def own_rows(folder, quick):
    """For against.py: what workers take for the same rounds, before and behind them, and for rounds without work."""
    name, words = heavy_work(quick)

    def heavy(figure):
        def of_program(program):
            bench = Bench(program, tempfile.mkdtemp(dir=folder), quick, 1)
            return figure(bench.job(words, bench.new_folder_store(), 2))
        return of_program

    def idle(workers, runs):
        return lambda program: idle_round(Bench(program, tempfile.mkdtemp(dir=folder), quick, 1), workers, runs)[0]
    yield [(f"{name}: rounds of 2 workers", "s", heavy(lambda about: about["seconds"]["run"])),
           ("the same: start and end, everything outside rounds", "s", heavy(lambda about: about["beside"])),
           ("a round without work, 2 workers in a folder", "ms", idle(2, 400)),
           ("a round without work, 16 workers in a folder", "ms", idle(16, 200))]


GROUPS = {"overhead": bench_overhead, "rounds": bench_rounds, "requests": bench_requests, "many": bench_many,
          "paper": bench_paper}


# ---- printing --------------------------------------------------------------------------------------------------------


def verdict(row):
    return "-" if row["met"] is None else "yes" if row["met"] else "NO"


def figure_text(value):
    return "-" if value is None else f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def print_table(report):
    line = "{:78} {:>10} {:>4} {:>7} {:>4}  {}"
    print(line.format("work", "figure", "", "bar", "met", ""))
    for row in report["rows"]:
        print(line.format(row["work"], figure_text(row["median"]), row["unit"], figure_text(row["bar"]), verdict(row),
                          row["note"]))
    print(f"\n{report['when']}, {report['cpu']}, load {report['load'][0]:.1f} before and {report['load'][1]:.1f} after")


def print_markdown(report):
    print(
        f"Measured {report['when']} on {report['cpu']}, {report['cores']} cores, load {report['load'][0]:.1f} before.\n"
    )
    print("| work | unit | figure | bar | met | |\n|---|---|---:|---:|---|---|")
    for row in report["rows"]:
        print(f"| {row['work']} | {row['unit'] or '-'} | {figure_text(row['median'])} | {figure_text(row['bar'])} "
              f"| {verdict(row)} | {row['note']} |")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench engine", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a minute: fewer and shorter runs")
    parser.add_argument("--only", default="", help="only groups whose name has this in it: " + ", ".join(GROUPS))
    parser.add_argument("--rounds", type=int, help="how often the programs take turns (5; quick: 2)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where the program is")
    parser.add_argument("--folder", help="where stores are made (default: the usual place of temporary files)")
    parser.add_argument("--markdown", action="store_true",
                        help="print the last results as Markdown and measure nothing")
    options = parser.parse_args()
    if options.markdown:
        return print_markdown(json.loads((RESULTS / "engine.json").read_text()))
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="shoal-bench-", dir=options.folder) as folder:
        bench = Bench(options.build / "shoal", folder, options.quick, options.rounds or (2 if options.quick else 5))
        for name, measure in GROUPS.items():
            if options.only in name:
                say(name)
                measure(bench)
    report = {"when": time.strftime("%Y-%m-%d"), "cpu": bench_kmeans.cpu_name(), "cores": len(os.sched_getaffinity(0)),
              "quick": options.quick, "load": [before, os.getloadavg()[0]], "rows": bench.rows}
    if not options.only:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "engine.json").write_text(json.dumps(report, indent=1) + "\n")
    print_table(report)


if __name__ == "__main__":
    main()
