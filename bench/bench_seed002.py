#!/usr/bin/python3
"""The experiment of "Big Data: Data Processing and Machine Learning in the Cloud" (J. Brown), on this machine.

    ./dev bench seed002 [--train] [--quick] [--json] [--out FOLDER]

The paper packed 3,670 photographs of flowers into TFRecord on three clusters of 6 to 8 cores (its table 2), and
measured how fast photographs and TFRecords are read by batch size, number of batches and repetition (its table 1,
figures 1 to 3).  Here the 200 flowers of ../shared/data, copied under other names until there are 3,670, are packed by
1, 2, 4 and 8 workers of this machine, and `shoal data speed` reads them and what was packed.  Prints tables beside the
paper's; writes bench/results/seed002.json, and speed.svg and runs.csv to FOLDER (default: build/seed002).

With --train it measures the paper's table 3 instead, a net by batch size and strategy: seed002_train.py.
"""
import argparse
import csv
import filecmp
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import seed002_train

ROOT = pathlib.Path(__file__).resolve().parents[1]
FLOWERS = ROOT.parent / "shared" / "data" / "flowers"
SHOAL = ROOT / "build" / "shoal"
RESULTS = ROOT / "bench" / "results"
IMAGES = 3670
WORKERS = (1, 2, 4, 8)

# Table 2 of the paper (its cores, seconds), and the correlations of its table 1: TFRecord, images.
CLUSTERS = (("paper: 1 machine, 7 workers of 1 core", 7, 137.9), ("paper: 2 machines, 3 workers of 2 cores", 6, 98.45),
            ("paper: 1 machine of 8 cores", 8, 79.8))
CORRELATIONS = {"batch_size": (0.28, 0.39), "batches": (0.31, 0.32), "data_size": (0.23, 0.33),
                "repetition": (0.06, 0.01)}
NOT_CACHED, CACHED = 5241, 740  # seconds of the paper's jobs


def run(*words, cwd=None):
    done = subprocess.run([SHOAL, *map(str, words)], capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        raise SystemExit(f"shoal {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def copy_flowers(folder, count):
    """The same photographs again and again, in the folders of their classes."""
    paths = sorted(FLOWERS.rglob("*.jpg"))
    for i in range(count):
        path = paths[i % len(paths)]
        place = folder / path.parent.name
        place.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place / f"{path.stem}-{i // len(paths):02}.jpg")
    return folder


def same(a, b):
    names = sorted(path.name for path in a.iterdir())
    assert names == sorted(path.name for path in b.iterdir()), (a, b)
    assert filecmp.cmpfiles(a, b, names, shallow=False)[0] == names, f"{a} and {b} differ"


# ---- packing ---------------------------------------------------------------------------------------------------------


def pack(photos, folder, turns):
    """The least seconds of packing, by threads and by workers; all of them make the same bytes."""
    ways = {"1 thread": ["--threads", 1], "all cores": []}
    ways.update({f"{n} worker{'s' * (n > 1)}": ["--workers", f"local:{n}", "--store", folder / "jobs"]
                 for n in WORKERS})
    seconds = {name: [] for name in ways}
    for turn in range(turns):
        for i, (name, words) in enumerate(ways.items()):
            out = folder / f"packed{i}"
            shutil.rmtree(out, ignore_errors=True)
            began = time.monotonic()
            run("data", "pack", photos, out, *words, "-q")
            seconds[name].append(time.monotonic() - began)
            if turn == 0 and i > 0:
                same(folder / "packed0", out)
    (folder / "packed0").rename(folder / "packed")
    return {name: min(all_of) for name, all_of in seconds.items()}


def print_packing(seconds, count, cores):
    print(f"{count} photographs into 16 shards of 192 x 192 pixels. This machine has {cores} core{'s' * (cores > 1)}, "
          "which all workers share, and reads and\nwrites files; the paper's clusters had a bucket in the network for "
          "that.\n")
    print("| where | cores | seconds | images/s | a core |\n|---|---:|---:|---:|---:|")
    rows = [(name, at_work, time_of, IMAGES) for name, at_work, time_of in CLUSTERS]
    for name, time_of in seconds.items():  # a worker alone has a thread for each core
        rows.append((f"here: {name}", 1 if name == "1 thread" else cores, time_of, count))
    for name, at_work, time_of, images in rows:
        print(f"| {name} | {at_work} | {time_of:.2f} | {images / time_of:.0f} | {images / time_of / at_work:.0f} |")


# ---- reading ---------------------------------------------------------------------------------------------------------


def measure_speed(folder, out, quick):
    grid = (["--batch-sizes", "5,20,40", "--batches", "5,15,30", "--repeat", 2] if quick else
            ["--batch-sizes", "5..40..5", "--batches", "5..30..5", "--repeat", 3])
    told = json.loads(run("data", "speed", "packed", "flowers", *grid, "--cached", "no", "--json", "--force", "--csv",
                          out / "runs.csv", "--picture", out / "speed.svg", cwd=folder))
    with open(out / "runs.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    of_a_core = sum(float(row["processor_seconds"]) for row in rows) / sum(float(row["seconds"]) for row in rows)
    return {"tfrecord": told["sources"][0], "images": told["sources"][1], "seconds": told["seconds"],
            "runs": told["runs"], "of_a_core": of_a_core}


def estimate(of, digits=2, scale=1):
    if of["value"] is None or of["low"] is None:
        return "-"
    return f"{scale * of['value']:.{digits}f} [{scale * of['low']:.{digits}f}, {scale * of['high']:.{digits}f}]"


def print_reading(told):
    print("Correlation with images a second; ours with 95% intervals, and what the fit below would give by itself.\n")
    print("| factor | TFRecord: paper | ours | of the fit | images: paper | ours | of the fit |\n"
          "|---|---:|---:|---:|---:|---:|---:|")
    for name, theirs in CORRELATIONS.items():
        cells = []
        for kind, paper in zip(("tfrecord", "images"), theirs):
            factor = told[kind]["factors"][name]
            cells += [f"{paper:.2f}", estimate(factor["correlation"]), f"{factor['correlation_of_fit']:.2f}"]
        print(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
    print("\nseconds = setup + a batches + b images, in milliseconds, with 95% intervals.\n")
    print("| | setup | a batch | an image | R2 |\n|---|---:|---:|---:|---:|")
    for kind in ("tfrecord", "images"):
        for what, name in (("by the clock", "fit"), ("of the processor", "processor_fit")):
            fit = told[kind][name]
            print(f"| {kind}, {what} | {estimate(fit['setup'], 2, 1e3)} | {estimate(fit['batch'], 3, 1e3)} | "
                  f"{estimate(fit['image'], 3, 1e3)} | {fit['r2']:.4f} |")
    once, again = told["seconds"][0], sum(told["seconds"])
    print(f"\nWhile they went on, the runs had {100 * told['of_a_core']:.0f}% of a core.")
    faster = told["tfrecord"]["median"] / told["images"]["median"]
    cheaper = told["images"]["processor_seconds"] / told["tfrecord"]["processor_seconds"]
    print(f"\nTFRecords are read {faster:.2f} times as fast as photographs, {told['tfrecord']['median']:.0f} and "
          f"{told['images']['median']:.0f} images a second (medians); of processor time photographs take {cheaper:.2f} "
          "times as much.")
    print(f"\nRuns made again for each of the {len(told['seconds'])} regressions of a source: {again:.1f} s; made once "
          f"and shared: {once:.1f} s; {again / once:.2f} times. The paper's job took {NOT_CACHED} s without caching "
          f"and {CACHED} s with it: {NOT_CACHED / CACHED:.2f} times.")


def train(quick, as_json):
    with tempfile.TemporaryDirectory(prefix="shoal-seed002-") as name:
        os.environ.update(XDG_STATE_HOME=f"{name}/state")
        report = seed002_train.measure(pathlib.Path(name), FLOWERS, quick)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "seed002-train.json").write_text(json.dumps(report, indent=1) + "\n")
    if as_json:
        print(json.dumps(report, indent=1))
    else:
        seed002_train.show(report)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--train", action="store_true", help="train a net by batch size and strategy instead")
    options.add_argument("--quick", action="store_true",
                         help="a fifth of the photographs, fewer runs, one turn; with --train two epochs")
    options.add_argument("--json", action="store_true", help="print what is written to bench/results/seed002.json")
    options.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "seed002", metavar="FOLDER",
                         help="where the plots and the table of runs go")
    options = options.parse_args()
    if not FLOWERS.is_dir():
        print(f"SKIPPED: {FLOWERS} is not here: without photographs there is nothing to measure")
        return
    subprocess.run(["cmake", "--build", ROOT / "build", "--target", "shoal"], check=True, stdout=subprocess.DEVNULL)
    if options.train:
        train(options.quick, options.json)
        return
    count, cores = IMAGES // 5 if options.quick else IMAGES, len(os.sched_getaffinity(0))
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="shoal-seed002-") as name:
        folder = pathlib.Path(name)
        os.environ.update(XDG_STATE_HOME=f"{name}/state")  # this is nobody's history
        photos = copy_flowers(folder / "flowers", count)
        load = os.getloadavg()[0]
        seconds = pack(photos, folder, 1 if options.quick else 3)
        told = measure_speed(folder, options.out.resolve(), options.quick)
    RESULTS.mkdir(exist_ok=True)
    report = {"images": count, "cores": cores, "load_before": load, "packing_seconds": seconds, "reading": told}
    (RESULTS / "seed002.json").write_text(json.dumps(report, indent=1) + "\n")
    if options.json:
        print(json.dumps(report, indent=1))
        return
    print_packing(seconds, count, cores)
    print()
    print_reading(told)
    print(f"\nPlots: {options.out}/speed.svg; all runs: {options.out}/runs.csv. Load before: {load:.1f}.")


main()
