#!/usr/bin/python3
"""What was planned beside what happened: calibrate, then plan and run twelve different jobs.

    ./dev bench plan [--quick] [--only WORD] [--markdown]

A table on stdout, everything in bench/results/plan.json. --quick runs four of the jobs once; --only keeps the groups
whose name has WORD in it (runs, paper, search), --markdown prints the last results as bench/README.md has them. Nothing
here fails when a bar is missed: the table says so.
"""
import argparse
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
import azurite  # noqa: E402
import bench_kmeans  # noqa: E402

MEDIAN_BAR, WORST_BAR = 0.15, 0.40

# Shapes are none of those that calibrate measures.
SHAPES = {
    "kmeans 150,000x48, K=200": ("kmeans", "gen:uniform?rows=150000&cols=48", "-k", 200, "--iterations", 15,
                                 "--tolerance", 0, "--init", "random"),
    "kmeans 30,000x300, K=50": ("kmeans", "gen:uniform?rows=30000&cols=300", "-k", 50, "--iterations", 30,
                                "--tolerance", 0, "--init", "random"),
    "autoencoder 120,000x80, 40 hidden": ("autoencoder", "gen:uniform?rows=120000&cols=80", "--hidden", 40,
                                          "--iterations", 25, "--tolerance", 0),
    "autoencoder 15,000x500, 120 hidden": ("autoencoder", "gen:uniform?rows=15000&cols=500", "--hidden", 120,
                                           "--iterations", 20, "--tolerance", 0),
}
# Each shape on three crews: (store, workers).
CREWS = [[("dir", 1), ("dir", 4), ("az", 2)], [("dir", 2), ("dir", 8), ("az", 4)],
         [("dir", 1), ("dir", 4), ("az", 2)], [("dir", 2), ("dir", 8), ("az", 4)]]


class Bench:
    """The program, where everything of this bench is kept, and the rows found so far."""

    def __init__(self, build, folder, quick):
        self.build, self.shoal, self.folder, self.quick = build, build / "shoal", pathlib.Path(folder), quick
        self.variables = {
            name: str(self.folder / name)
            for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
        }
        self.report = {}

    def run(self, *words, program=None):
        command = [str(program or self.shoal), *map(str, words)]
        done = subprocess.run(command, env={**os.environ, **self.variables}, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} exits with {done.returncode}: {done.stderr.strip()[:500]}")
        return done.stdout


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- twelve jobs -----------------------------------------------------------------------------------------------------


def plan_and_run(bench, shape, store, workers, times):
    """One row: what was planned, and the median of what happened."""
    verb, data, *options = SHAPES[shape]
    path = bench.folder / f"{list(SHAPES).index(shape)}.npy"
    if not path.exists():
        bench.run("data", "convert", data, path)
    url = f"dir:{bench.folder}/jobs" if store == "dir" else f"az://{azurite.ACCOUNT}/plan"
    planned = json.loads(
        bench.run("plan", verb, path, *options, "--workers", f"local:{workers}", "--store", url, "--source",
                  "file" if store == "dir" else "uploaded", "--json"))["best"]
    happened = []
    for _ in range(times):
        began = time.perf_counter()
        bench.run(verb, path, *options, "--workers", f"local:{workers}", "--store", url, "--json")
        happened.append(time.perf_counter() - began)
        bench.run("job", "remove", "--all-done", "--store", url)
    taken = statistics.median(happened)
    row = {
        "work": shape, "store": "folder" if store == "dir" else "Azurite", "workers": workers,
        "planned": planned["seconds"], "low": planned["low"], "high": planned["high"], "happened": happened,
        "median": taken, "error": planned["seconds"] / taken - 1
    }
    say(f"    {shape}, {workers} in {row['store']}: planned {row['planned']:.2f} s, took {taken:.2f} s")
    return row


def bench_runs(bench):
    """Plans, then runs."""
    if azurite.PROGRAM is None:
        return say("    no Azurite below build/peers: ./dev deps bench")
    with azurite.Server(bench.folder, "azurite") as server:
        server.wait()
        bench.variables.update(server.variables())
        (bench.folder / "empty").write_text("")
        bench.run("store", "put", "--create", bench.folder / "empty", f"az://{azurite.ACCOUNT}/plan/empty")
        began = time.perf_counter()
        bench.run("calibrate", "--learner", "kmeans", "--learner", "autoencoder", "--store", f"dir:{bench.folder}/jobs",
                  "--store", f"az://{azurite.ACCOUNT}/plan", "--quiet")
        bench.report["calibrate_seconds"] = time.perf_counter() - began
        say(f"    calibrated in {bench.report['calibrate_seconds']:.0f} s")
        rows = []
        for shape, crews in zip(SHAPES, CREWS):
            for store, workers in crews[:1] if bench.quick else crews:
                rows.append(plan_and_run(bench, shape, store, workers, 1 if bench.quick else 3))
    errors = sorted(abs(row["error"]) for row in rows)
    bench.report["runs"] = {"rows": rows, "median": statistics.median(errors), "worst": errors[-1],
                            "inside": sum(row["low"] <= row["median"] <= row["high"] for row in rows)}


def build_program(bench, name):
    """Builds a program of bench/ that goes with the library."""
    subprocess.run(["cmake", "--build", str(bench.build), "--target", name], check=True, stdout=subprocess.DEVNULL)
    return bench.build / name


# ---- the paper's fourteen times --------------------------------------------------------------------------------------


def bench_paper(bench):
    """Our model fitted to the paper's measured times."""
    bench.report["paper"] = json.loads(bench.run(program=build_program(bench, "bench_plan_fit")))


# ---- choosing by trying ----------------------------------------------------------------------------------------------


def bench_search(bench):
    """The search on measured tables, where they are."""
    table = ROOT.parent / "shared" / "data" / "clouds" / "scout_multi.csv"
    if not table.exists():
        return say("    no measured tables here")
    bench.report["search"] = json.loads(
        bench.run(table, ROOT / "examples" / "prices-2018.csv", "--seeds", 5 if bench.quick else 50,
                  program=build_program(bench, "bench_plan_search")))


GROUPS = {"runs": bench_runs, "paper": bench_paper, "search": bench_search}


# ---- printing --------------------------------------------------------------------------------------------------------


def print_markdown(report):
    print(
        f"Measured {report['when']} on {report['cpu']}, {report['cores']} cores, load {report['load'][0]:.1f} before.\n"
    )
    runs = report.get("runs")
    if runs:
        print("| job | store | workers | planned | 90% | took | error |\n|---|---|---:|---:|---:|---:|---:|")
        for row in runs["rows"]:
            print(f"| {row['work']} | {row['store']} | {row['workers']} | {row['planned']:.2f} s | {row['low']:.2f} to "
                  f"{row['high']:.2f} | {row['median']:.2f} s | {row['error']:+.0%} |")
        print(
            f"\nMedian error {runs['median']:.0%} (bar {MEDIAN_BAR:.0%}), worst {runs['worst']:.0%} "
            f"(bar {WORST_BAR:.0%}); {runs['inside']} of {len(runs['rows'])} within their interval; calibrated in "
            f"{report['calibrate_seconds']:.0f} s."
        )
    if "paper" in report:
        print(
            "\n| model of the paper's fourteen times | mean error | worst | each left out in turn |\n"
            "|---|---:|---:|---:|"
        )
        for row in report["paper"]:
            left_out = "" if row["left_out"] is None else f"{row['left_out']:.1%}"
            print(f"| {row['model']} | {row['mean_error']:.1%} | {row['worst_error']:.1%} | {left_out} |")
    if "search" in report:
        print("\n| search | runs | optimum found | above it: median | 90% | mean |\n|---|---:|---:|---:|---:|---:|")
        for row in report["search"]["scores"]:
            if row["workload"] is None:
                own = "as many runs" if row["method"] == "random" else "stopping by itself"
                stops = f"{row['fixed']} runs" if row["fixed"] else own
                print(f"| {row['method']}, {stops} | {row['runs']:.1f} | {row['found']:.0%} | {row['median']:.1%} | "
                      f"{row['p90']:.1%} | {row['mean']:.1%} |")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench plan", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="four of the jobs, once each")
    parser.add_argument("--only", default="", help="only groups whose name has this in it: " + ", ".join(GROUPS))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where the program is")
    parser.add_argument("--markdown", action="store_true",
                        help="print the last results as Markdown and measure nothing")
    options = parser.parse_args()
    if options.markdown:
        return print_markdown(json.loads((RESULTS / "plan.json").read_text()))
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        bench = Bench(options.build, folder, options.quick)
        for name, measure in GROUPS.items():
            if options.only in name:
                say(name)
                measure(bench)
    report = {"when": time.strftime("%Y-%m-%d"), "cpu": bench_kmeans.cpu_name(), "cores": len(os.sched_getaffinity(0)),
              "quick": options.quick, "load": [before, os.getloadavg()[0]], **bench.report}
    if not options.only:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "plan.json").write_text(json.dumps(report, indent=1) + "\n")
    print_markdown(report)


if __name__ == "__main__":
    main()
