#!/usr/bin/python3
"""Deadlines and budgets that are held while a job runs: on a model of rounds, and for real on this machine.

    ./dev bench control [--quick] [--only model|real|overhead]

On the model (bench/control_sim.c): 1,000 seeds of each scenario; how many of the feasible deadlines each policy meets,
at what multiple of the cost of the cheapest fixed number known afterwards, with how many changes.  Jockey's constants
are from memory.  For real: jobs on local:1..8 while another process takes half of a core from the middle on, in turn
with a fixed choice of two; deadlines that the fixed choice would have met count.  Overhead: jobs of two workers that
are held, in turn with some that are not.  A table on stdout, everything in bench/results/control.json; nothing fails
when a bar is missed.
"""
import argparse
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
JOB = ["kmeans", "gen:uniform?rows=400000&cols=40", "-k", "100", "--tolerance", "0", "--init", "random"]
FACTORS = (1.35, 1.5, 1.75, 2.2)
BUSY = """
import time
while True:
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        pass
    time.sleep(0.05)
"""


# ---- the model -------------------------------------------------------------------------------------------------------


def scenarios(build, seeds, slope):
    rows = []
    for error in (0.12, 0.4):
        for losses in (0, 0.1):
            for drift in (1, 1.6):
                words = [build / "bench_control_sim", seeds, error, losses, drift, slope]
                out = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True).stdout
                lines = [json.loads(line) for line in out.splitlines()]
                rows.append({"error": error, "losses": losses, "drift": drift, "slope": slope,
                             "exceeded": lines[-1]["exceeded"], "policies": lines[:-1]})
    return rows


def print_scenarios(rows):
    print("| error | losses | slower | policy | met | cost | changes (most) |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        for one in row["policies"]:
            bar = one["met"] >= 0.99 and one["cost"] <= 1.05 and one["worst_changes"] <= 15
            print(f"| {row['error']} | {row['losses']} | {row['drift']} | {one['policy']} | {100 * one['met']:.1f}% | "
                  f"{one['cost']:.3f} | {one['changes']:.1f} ({one['worst_changes']}) |"
                  f"{'' if one['policy'] != 'control' or bar else ' NO'}")
        if row["exceeded"]:
            print(f"NO: {row['exceeded']} budgets were exceeded")


# ---- for real --------------------------------------------------------------------------------------------------------


class Bench:
    def __init__(self, build, folder):
        self.shoal = build / "shoal"
        self.variables = {name: str(pathlib.Path(folder) / name)
                          for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}

    def run(self, iterations, workers, *words, busy_from=None):
        """Seconds of a job; from `busy_from` on another process takes half of a core."""
        command = [str(self.shoal), *JOB, "--iterations", str(iterations), "--workers", workers, *words, "--json"]
        other, timer = [], None
        if busy_from is not None:
            def begin():
                other.append(subprocess.Popen([sys.executable, "-c", BUSY]))
            timer = threading.Timer(busy_from, begin)
            timer.start()
        begun = time.monotonic()
        done = subprocess.run(command, env={**os.environ, **self.variables, "SHOAL_HISTORY": "off"},
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        seconds = time.monotonic() - begun
        if timer:
            timer.cancel()
            timer.join()
        for process in other:
            process.kill()
            process.wait()
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
        held = [line for line in done.stderr.splitlines() if line.startswith("held with")]
        return seconds, held[0] if held else ""


def real(bench, wanted, iterations):
    alone = min(bench.run(iterations, "local:2")[0] for _ in range(2))
    print(f"two workers, undisturbed: {alone:.1f} s")
    rows = []
    while sum(row["fixed"] <= row["deadline"] for row in rows) < wanted and len(rows) < 2 * wanted:
        deadline = alone * FACTORS[len(rows) % len(FACTORS)]
        fixed, _ = bench.run(iterations, "local:2", busy_from=alone / 2)
        took, held = bench.run(iterations, "local:1..8", "--deadline", f"{deadline:.3f}s", busy_from=alone / 2)
        rows.append({"deadline": deadline, "fixed": fixed, "control": took, "held": held})
        print(f"deadline {deadline:.1f} s: two workers {fixed:.1f} s, control {took:.1f} s"
              f"{'' if took <= deadline else ' LATE'}; {held}", flush=True)
    feasible = [row for row in rows if row["fixed"] <= row["deadline"]]
    met = sum(row["control"] <= row["deadline"] for row in feasible)
    print(f"{met} of {len(feasible)} deadlines that a fixed choice of two met")
    return rows


def overhead(bench, turns, iterations):
    rows = []
    for _ in range(turns):
        free, _ = bench.run(iterations, "local:2")
        held, _ = bench.run(iterations, "local:2..2", "--deadline", "1h")
        rows.append((free, held))
    ratio = min(held for _, held in rows) / min(free for free, _ in rows)
    print(f"held / not held: {ratio:.4f} of the best, median of turns "
          f"{statistics.median(held / free for free, held in rows):.4f}")
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    build = options.build.resolve()
    report = {"load": os.getloadavg()}
    if options.only in "model":
        subprocess.run(["cmake", "--build", str(build), "--target", "bench_control_sim"], check=True,
                       stdout=subprocess.DEVNULL)
        report["model"] = scenarios(build, 50 if options.quick else 1000, 0.05)
        print_scenarios(report["model"])
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(build, folder)
        if options.only in "real":
            report["real"] = real(bench, 4 if options.quick else 20, 60)
        if options.only in "overhead":
            report["overhead"] = overhead(bench, 2 if options.quick else 6, 60)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "control.json"
    before = json.loads(path.read_text()) if path.exists() and options.only else {}
    path.write_text(json.dumps({**before, **report}, indent=1))


if __name__ == "__main__":
    main()
