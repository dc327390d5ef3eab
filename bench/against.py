#!/usr/bin/python3
"""This tree beside a commit: shoal's own part of a bench by both programs in turn, without peers.

    ./dev bench NAME --against COMMIT [--quick] [--turns N] [--row WORD]

COMMIT is built below build/against, where it stays.  The programs take turns, new old, old new, and so on; the ratio of
each turn is new / old, so that less than 1 means that this tree is faster.  A table on stdout, with the median of the
ratios and the least and the greatest of them; everything in bench/results/against-NAME.json.  --row keeps the rows
whose name has WORD in it.

A bench has an own part if it has a function own_rows(folder, quick): a context in which there is a list of names, units
and functions that measure a program, given as its path.
"""
import argparse
import importlib
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
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "system")]


def run(words, **more):
    done = subprocess.run(list(map(str, words)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(map(str, words))} fails:\n{done.stdout[-2000:]}")
    return done.stdout


def build_commit(commit):
    """The program of a commit, and the commit's hash.  What was built before is not built again."""
    name = run(["git", "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"], cwd=ROOT).strip()[:12]
    tree = ROOT / "build" / "against" / name
    program = tree / "build" / "shoal"
    if not program.exists():
        print(f"builds {commit} in {tree.relative_to(ROOT)}", file=sys.stderr, flush=True)
        tree.mkdir(parents=True, exist_ok=True)
        archive = subprocess.Popen(["git", "archive", name], cwd=ROOT, stdout=subprocess.PIPE)
        run(["tar", "-x", "-C", tree], stdin=archive.stdout)
        if archive.wait() != 0:
            sys.exit(f"bench: git archive {name} fails")
        run(["cmake", "--preset", "release"], cwd=tree)
        run(["cmake", "--build", "--preset", "release", "--target", "portable"], cwd=tree)  # what ssh: copies
        run(["cmake", "--build", "--preset", "release", "--target", "shoal"], cwd=tree)  # the last: it says all is done
    return program, name


def measure(row, new, old, turns):
    """One row, of which less is better."""
    name, unit, of_program = row
    found = {new: [], old: []}
    for turn in range(turns):
        for program in (new, old) if turn % 2 == 0 else (old, new):
            found[program].append(of_program(program))
    ratios = [a / b for a, b in zip(found[new], found[old])]
    print(f"    {name}: {statistics.median(ratios):.3f}", file=sys.stderr, flush=True)
    return {"row": name, "unit": unit, "new": found[new], "old": found[old], "ratios": ratios,
            "ratio": statistics.median(ratios)}


def print_table(report):
    line = "{:76} {:>10} {:>10} {:>4} {:>8} {:>15}"
    print(line.format("work", "old", "new", "", "new/old", "least to most"))
    for row in report["rows"]:
        old, new = (f"{statistics.median(row[which]):.4g}" for which in ("old", "new"))
        spread = f"{min(row['ratios']):.3f} to {max(row['ratios']):.3f}"
        print(line.format(row["row"], old, new, row["unit"], f"{row['ratio']:.3f}", spread))
    print(f"\n{report['commit']} is old; medians of {report['turns']} turns; {report['when']}, {report['cpu']}, load "
          f"{report['load'][0]:.1f} before and {report['load'][1]:.1f} after")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench NAME --against COMMIT", description=__doc__.split("\n\n")[0])
    parser.add_argument("name", help="of the bench")
    parser.add_argument("--against", required=True, metavar="COMMIT", help="what to measure beside this tree")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs")
    parser.add_argument("--turns", type=int, help="how often the programs take turns (8; quick: 4)")
    parser.add_argument("--row", default="", help="only rows whose name has this in it")
    parser.add_argument("--folder", help="where files are made (default: the usual place of temporary files)")
    options = parser.parse_args()
    bench = importlib.import_module(f"bench_{options.name}")
    if not hasattr(bench, "own_rows"):
        return print(f"bench {options.name} has no part without peers: nothing to measure against a commit")
    old, commit = build_commit(options.against)
    turns = options.turns or (4 if options.quick else 8)
    before = os.getloadavg()[0]
    import bench_kmeans
    print(options.name, file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-", dir=options.folder) as folder, \
            bench.own_rows(pathlib.Path(folder), options.quick) as rows:
        found = [measure(row, ROOT / "build" / "shoal", old, turns) for row in rows if options.row in row[0]]
    report = {"when": time.strftime("%Y-%m-%d"), "cpu": bench_kmeans.cpu_name(), "commit": commit, "turns": turns,
              "quick": options.quick, "load": [before, os.getloadavg()[0]], "rows": found}
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"against-{options.name}.json").write_text(json.dumps(report, indent=1) + "\n")
    print_table(report)
    return None


if __name__ == "__main__":
    main()
