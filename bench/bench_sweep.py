#!/usr/bin/python3
"""How soon sweeps find what is good, on tables of measured trials; and how fast they are.

    ./dev bench sweep [--quick]

Curves (TaskSet, 8 tasks of 1,000 trials with a loss after each of 50 steps): simulated workers, a random pace for each
trial, the time until some trial is within 20% and 5% of the way from the best to the median, beside random search in
the same world; medians over tasks and seeds.  Constants were chosen on the first, third, fifth and seventh task by
name; the others are apart.  Values (FCNet, 3 tasks): the best of 100 trials, as a multiple of the best there is,
beside Optuna's multivariate TPE.  Then the time of one suggestion, and how many trials a second a command of one line
makes.  The tables lie beside the checkout in ../shared/data/sweeps.  A table on stdout, everything in
bench/results/sweep.json; nothing fails when a bar is missed.
"""
import argparse
import csv
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
TABLES = ROOT.parent / "shared" / "data" / "sweeps"
BARS = {16: (3.5, 4.5), 64: (2.5, 3.0)}
PARAMETERS, STEPS, TRIALS = 8, 50, 100


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()[:400]}")
    return done.stdout


def numbers(text):
    return np.array([[float(x) for x in line.split()] for line in text.splitlines()])


# ---- curves ----------------------------------------------------------------------------------------------------------


def curve_tables(folder):
    """Parameters as they were drawn, along the logarithm (of betas what they lack to 1), and the curves."""
    paths = []
    for path in sorted((TABLES / "taskset").glob("*.csv.gz")):
        rows = list(csv.reader(gzip.open(path, "rt")))
        table = np.array([[float(x) for x in row[:PARAMETERS + STEPS + 1]] for row in rows[1:]])
        table[:, 1:3] = 1 - table[:, 1:3]
        paths.append(folder / (path.name.split(".")[0] + ".bin"))
        table.astype("<f8").tofile(paths[-1])
    return paths


def wall_times(replay, path, workers, sampler, stop, seeds):
    rows = path.stat().st_size // (8 * (PARAMETERS + STEPS + 1))
    return numbers(run(replay, "curves", path, rows, PARAMETERS, STEPS, workers, sampler, stop, seeds))


def bench_curves(replay, folder, quick):
    paths, found = curve_tables(folder), []
    for workers in BARS:
        for half, chosen in (("constants chosen on", paths[0::2]), ("others", paths[1::2])):
            chosen = chosen[:2] if quick else chosen
            median = {
                name: np.median(np.concatenate([wall_times(replay, p, workers, *how, 5 if quick else 20)
                                                for p in chosen]), axis=0)
                for name, how in {"random": ("random", "none"), "asha": ("random", "asha"),
                                  "tpe+asha": ("tpe", "asha")}.items()
            }
            row = {"workers": workers, "tasks": half, "count": len(chosen)}
            for name, times in median.items():
                row[name] = [float(t) for t in times]
            row["faster"] = [float(r / t) for r, t in zip(median["random"], median["tpe+asha"])]
            row["bar"] = BARS[workers]
            found.append(row)
            print(f"{workers:3} workers, {half:20} to 20% / 5% of the gap: random {row['random'][0]:.0f} / "
                  f"{row['random'][1]:.0f}, ASHA {row['asha'][0]:.0f} / {row['asha'][1]:.0f}, TPE with ASHA "
                  f"{row['tpe+asha'][0]:.0f} / {row['tpe+asha'][1]:.0f} epochs: {row['faster'][0]:.1f} / "
                  f"{row['faster'][1]:.1f} times faster (bar {row['bar'][0]} / {row['bar'][1]})", flush=True)
    return found


# ---- values ----------------------------------------------------------------------------------------------------------


def optuna_best(values, space, seed):
    """The best of so many trials by Optuna, and the processor time of its last suggestion."""
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True))
    shape, best = [len(v) for v in space.values()], np.inf
    for _ in range(TRIALS):
        began = time.process_time()
        trial = study.ask()
        index = [trial.suggest_categorical(name, list(range(len(v)))) if isinstance(v[0], str)
                 else trial.suggest_int(name, 0, len(v) - 1) for name, v in space.items()]
        took = time.process_time() - began
        value = float(values[np.ravel_multi_index(index, shape)])
        study.tell(trial, value)
        best = min(best, value)
    return best, took


def bench_values(replay, folder, quick):
    space = json.load(open(TABLES / "fcnet" / "space.json"))
    seeds, found = (3 if quick else 10), []
    for path in sorted((TABLES / "fcnet").glob("*.npy")):
        values = np.load(path).mean(axis=1).astype("<f8")
        table = folder / (path.stem + ".bin")
        values.tofile(table)
        row = {"task": path.stem, "least": float(values.min())}
        for sampler in "random", "tpe":
            ours = numbers(run(replay, "values", table, TABLES / "fcnet" / "space.json", sampler, seeds, TRIALS))
            row[sampler] = float(np.median(ours[:, 2]) / values.min())
        row["suggest_ms"] = float(1e3 * np.median(ours[:, 3]))
        try:
            theirs = np.array([optuna_best(values, space, seed) for seed in range(seeds)])
            row["optuna"] = float(np.median(theirs[:, 0]) / values.min())
            row["optuna_suggest_ms"] = float(1e3 * np.median(theirs[:, 1]))
            peer = f"Optuna {row['optuna']:.3f} ({row['optuna_suggest_ms']:.0f} ms a suggestion)"
        except ImportError:
            peer = "Optuna is not installed"
        found.append(row)
        print(f"{row['task']:28} best of {TRIALS} trials, median of {seeds} seeds, times the best there is: random "
              f"{row['random']:.3f}, TPE {row['tpe']:.3f} ({row['suggest_ms']:.2f} ms a suggestion), {peer}",
              flush=True)
    return found


# ---- speed -----------------------------------------------------------------------------------------------------------


def bench_suggestions(replay, folder):
    space, table = TABLES / "fcnet" / "space.json", folder / "protein_structure.bin"
    took = {n: float(1e3 * np.median(numbers(run(replay, "values", table, space, "tpe", 5, n))[:, 3]))
            for n in (100, 1000)}
    print(f"a suggestion after 100 / 1,000 trials: {took[100]:.2f} / {took[1000]:.2f} ms (bar 1 / 10 ms)", flush=True)
    return took


def bench_trials(shoal, folder):
    """Trials a second of a command that prints one line, the fastest of three."""
    fastest = np.inf
    for turn in range(3):
        began = time.monotonic()
        run(shoal, "sweep", "--vary", "x=0.0..1", "--run", "echo '{\"loss\": '{x}'}'", "--trials", 1000, "--workers", 8,
            "--store", folder / f"store{turn}", "--folder", folder / f"trials{turn}", "--quiet")
        fastest = min(fastest, time.monotonic() - began)
    print(f"1,000 trials of a command that prints one line, 8 workers: {1000 / fastest:.0f} a second (bar 300)",
          flush=True)
    return 1000 / fastest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if not TABLES.is_dir():
        sys.exit(f"bench sweep: there are no tables in {TABLES}")
    subprocess.run(["cmake", "--build", arguments.build, "--target", "bench_sweep_replay"], check=True,
                   stdout=subprocess.DEVNULL)
    replay = arguments.build / "bench_sweep_replay"
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        folder = pathlib.Path(name)
        report = {"values": bench_values(replay, folder, arguments.quick)}
        report["suggest_ms"] = bench_suggestions(replay, folder)
        report["trials_per_second"] = bench_trials(arguments.build / "shoal", folder)
        report["curves"] = bench_curves(replay, folder, arguments.quick)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "sweep.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
