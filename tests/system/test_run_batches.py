#!/usr/bin/env python3
# Labels: asan
"""Modules whose rounds are batches: the rows that numpy says they have, and the same bytes on any number of threads
and workers.

    test_run_batches.py PATH_TO_shoal
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import nobody  # so that no run is in the history of whoever runs this

import numpy as np

import batch_rows
from processes import is_sanitized

SHOAL = os.path.abspath(sys.argv[1])
EXAMPLES = os.path.abspath("examples")
failed = 0


def check(what, condition, more=""):
    global failed
    if not condition:
        failed += 1
        print(f"FAILED {what} {more}", flush=True)


def shoal(*arguments):
    return subprocess.run([SHOAL, *arguments], capture_output=True, text=True, timeout=300)


def result(*arguments):
    done = shoal("run", *arguments, "--json")
    assert done.returncode == 0, (arguments, done.stderr)
    return np.array(json.loads(done.stdout)["result"]["values"])


# Every row's number and weight are told apart in the sums, which are exact; the model mixes rounds in their order.
NOTES = r"""
#include <math.h>
#include <shoal/module.h>
static int64_t batch(int64_t round, const shoal_setting *s)
{
    const double *sizes;
    int64_t count = shoal_param_list(s, "batches", &sizes);
    return (int64_t)sizes[round % count];
}
static int64_t sums(const shoal_setting *s) { return 3; }
static int64_t numbers(const shoal_setting *s) { return 4; }
static void map(double *sum, const double *model, const shoal_rows *rows, const shoal_setting *s)
{
    for (int64_t i = 0; i < rows->count; i++) {
        int64_t number = rows->row ? rows->row[i] : rows->first + i;
        sum[0] += rows->values[i * rows->columns] * (rows->weights ? rows->weights[i] : 1);
        sum[1] += (double)(number * number % 10007);
        sum[2] += rows->values[i * rows->columns + 1] == (double)number ? 1 : -1e9;
    }
}
static bool update(double *model, const double *sum, int64_t round, const shoal_setting *s)
{
    for (int j = 0; j < 3; j++)
        model[j] = model[j] / 2 + sum[j];
    model[3] = model[3] * 3 + (double)(s->seen - (int64_t)sum[2]) + (double)s->epoch;
    return round + 1 >= shoal_param(s, "rounds", 1);
}
SHOAL_MODULE(.sums = sums, .numbers = numbers, .map = map, .update = update, .batch = batch);
"""


def expected(shape, values, weights, batches, rounds, seed):
    """The same with numpy."""
    model = np.zeros(4)
    round_number = epoch = position = 0
    while round_number < rounds:
        orders = list(shape.orders(seed, epoch))
        while round_number < rounds and position < len(values):
            size = min(batches[round_number % len(batches)], len(values))
            every = size == 0
            rows = np.arange(len(values)) if every else np.concatenate(
                [order[taken(order, before, position, len(values)):taken(order, before, position + size, len(values))]
                 for order, before in orders])
            sums = [(values[rows, 0] * weights[rows]).sum(), (rows * rows % 10007).sum()]
            model[0], model[1], model[2] = model[0] / 2 + sums[0], model[1] / 2 + sums[1], model[2] / 2 + len(rows)
            model[3] = model[3] * 3 + epoch
            position += size
            round_number += 1
        if position >= len(values):
            epoch, position = epoch + 1, 0
    return model


def taken(order, before, position, total):
    return (min(position, total) * len(order) + total - before) // total


def batches_are_those_that_numpy_says():
    """Rows not divisible, fewer rows than strata, weights, types, batches of everything, sizes that change."""
    rng = np.random.default_rng(3)
    open("notes.c", "w").write(NOTES)
    cases = [
        dict(rows=4000, batches=[64], rounds=70),
        dict(rows=4001, batches=[100, 37], rounds=90, grain=100),
        dict(rows=997, batches=[128], rounds=20, grain=13, seed=5, weighted=True),
        dict(rows=10, batches=[3], rounds=9, grain=1, kind=np.int32),
        dict(rows=300, batches=[1000], rounds=3, kind=np.float32),  # more than there are: all of them
        dict(rows=500, batches=[50, 0], rounds=12, grain=20),  # 0: a round of all rows
        dict(rows=1, batches=[4], rounds=3),
    ]
    for case in cases:
        rows, kind = case["rows"], case.get("kind", np.float64)
        values = np.stack([rng.integers(0, 1000, rows), np.arange(rows)], axis=1).astype(kind)
        np.save("data.npy", values)
        weights = np.ones(rows)
        extra = ["--params", json.dumps({"batches": case["batches"], "rounds": case["rounds"],
                                         "seed": case.get("seed", 0)})]
        if case.get("weighted"):
            weights = rng.integers(1, 9, rows).astype(float)
            np.save("weights.npy", weights)
            extra += ["--weights", "weights.npy"]
        grain = case.get("grain", max(252, min(8064, rows // 64 // 84 * 84, (1 << 20) // values[0].nbytes // 84 * 84)))
        if "grain" in case:
            extra += ["--grain", str(grain)]
        shape = batch_rows.Shape(rows, grain, 16)
        want = expected(shape, values.astype(float), weights, case["batches"], case["rounds"], case.get("seed", 0))
        for threads in (1, 3):
            got = result("notes.c", "data.npy", *extra, "--threads", str(threads))
            check(f"{case} on {threads} threads", np.array_equal(got, want), (got, want))
        got = result("notes.c", "data.npy", *extra, "--workers", "local:3")
        check(f"{case} on workers", np.array_equal(got, want), (got, want))


def examples_learn_the_same_everywhere():
    """examples/sgd.c and least_squares.c find what they should, and the same bytes on threads and workers; on ranks,
    test_mpi.py."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3000, 4))
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    np.save("regression.npy", np.column_stack([x, x @ weights + 0.25]))
    np.save("classes.npy", np.column_stack([x, (x @ weights + 0.25 > 0).astype(float)]))
    runs = [["sgd.c", "classes.npy", "--params", '{"epochs": 5, "seed": 2}'],
            ["least_squares.c", "regression.npy", "--params", '{"epochs": 30}']]
    for module, *arguments in runs:
        files = []
        for options in (["--threads", "1"], ["--threads", "3"], ["--workers", "local:4"]):
            files.append(f"{module}-{len(files)}.npy")
            done = shoal("run", os.path.join(EXAMPLES, module), *arguments, "-q", "-o", files[-1], *options)
            check(f"{module} {options}", done.returncode == 0, done.stderr)
        bytes_of = [open(name, "rb").read() for name in files]
        check(f"{module} is the same everywhere", all(one == bytes_of[0] for one in bytes_of))
        found = np.load(files[0])
        if module == "least_squares.c":
            check("least squares", np.allclose(found, [*weights, 0.25], atol=1e-6), found)
        else:
            right = ((x @ found[:4] + found[4] > 0) == (x @ weights + 0.25 > 0)).mean()
            check("sgd", right > 0.98, right)


def killed_runs_go_on():
    """A run that is killed, or stopped, with its checkpoint in the middle of an epoch, and other threads after it."""
    for module, data in (("sgd.c", "classes.npy"), ("least_squares.c", "regression.npy")):
        arguments = ["run", os.path.join(EXAMPLES, module), data, "--params", '{"epochs": 400, "batch": 64}', "-q"]
        done = shoal(*arguments, "-o", "whole.npy")
        check(f"{module}: a run that nobody stops", done.returncode == 0, done.stderr)
        for by in (signal.SIGKILL, signal.SIGINT):
            interrupted = stop_at_checkpoint(by, *arguments)
            check(f"{module}: {by.name} ends it", interrupted in (-signal.SIGKILL, 130), interrupted)
            other = shoal(*arguments[:4], '{"epochs": 401, "batch": 64}', "-q", "--checkpoint-file", "run.checkpoint",
                          "--resume", "-o", "other.npy")
            refused = other.returncode != 0 and "run.checkpoint" in other.stderr
            check(f"{module}: another run's checkpoint is refused", refused, other.stderr)
            done = shoal(*arguments, "--checkpoint-file", "run.checkpoint", "--resume", "--threads", "3", "-o",
                         "on.npy")
            check(f"{module}: it goes on after {by.name}", done.returncode == 0, done.stderr)
            same = done.returncode == 0 and open("on.npy", "rb").read() == open("whole.npy", "rb").read()
            check(f"{module}: the same bytes after {by.name}", same)


def stop_at_checkpoint(by, *arguments):
    """Sends a signal to a run as soon as it has a checkpoint; its exit status.  A run that was faster is repeated."""
    for _ in range(20):
        if os.path.exists("run.checkpoint"):
            os.remove("run.checkpoint")
        run = subprocess.Popen([SHOAL, *arguments, "--checkpoint-file", "run.checkpoint", "--checkpoint", "0.001",
                                "-o", "on.npy"], stderr=subprocess.DEVNULL)
        while not os.path.exists("run.checkpoint") and run.poll() is None:
            pass
        run.send_signal(by)
        if run.wait(timeout=60) != 0:
            break
    return run.returncode


# What `batch` and `update` are told, two numbers for each round.
GROWING = r"""
#include <shoal/module.h>
static int64_t batch(int64_t round, const shoal_setting *s)
{
    if (shoal_param(s, "stops", 99) <= (double)round)
        return shoal_fail(SHOAL_USAGE, "no batch after this one");
    return s->seen ? -1 : 10 * (s->epoch + 1);
}
static int64_t one(const shoal_setting *s) { return 1; }
static int64_t numbers(const shoal_setting *s) { return 16; }
static void map(double *sum, const double *model, const shoal_rows *rows, const shoal_setting *s)
{
    sum[0] += (double)rows->count;
}
static bool update(double *model, const double *sum, int64_t round, const shoal_setting *s)
{
    model[2 * round] = sum[0];
    model[2 * round + 1] = (double)s->epoch;
    return round == 7;
}
SHOAL_MODULE(.sums = one, .numbers = numbers, .map = map, .update = update, .batch = batch);
"""


def batches_know_their_epoch():
    """`batch` is asked for a round of the epoch that it will be in, and not for one that there will not be."""
    open("growing.c", "w").write(GROWING)
    np.save("thirty.npy", np.zeros((30, 2)))
    want = [10, 0, 10, 0, 10, 0, 20, 1, 10, 1, 30, 2, 30, 3, 30, 4]
    for more in ([], ["--params", '{"stops": 8}']):
        got = result("growing.c", "thirty.npy", *more)
        check(f"batches that grow by the epoch {more}", list(got) == want, got)
    done = shoal("run", "growing.c", "thirty.npy", "--params", '{"stops": 7}')
    check("a batch refuses", done.returncode == 2 and "no batch after this one" in done.stderr, done.stderr)


def the_example_counts_and_does_not_overflow():
    squares = os.path.join(EXAMPLES, "least_squares.c")
    for batch, steps in ((100, 7 * 11), (1000000000, 7), (1001, 7)):
        np.save("counted.npy", np.ones((1001, 2)))
        done = shoal("run", squares, "counted.npy", "--params", json.dumps({"batch": batch, "epochs": 7}), "--json")
        rounds = json.loads(done.stdout)["rounds"] if done.returncode == 0 else done.stderr
        named = done.returncode == 0 and "" not in json.loads(done.stdout)["seconds"]
        check("its rounds have a name", named, done.stdout)
        check(f"7 epochs of batches of {batch}", rounds == steps, rounds)
    np.save("steep.npy", np.full((5000, 2), [1000.0, -1000.0]))  # the sum of 5000 slopes of 10^6 is beyond an int64
    done = shoal("run", squares, "steep.npy", "--params", '{"batch": 5000, "rate": 1e-9, "epochs": 1}')
    check("sums that would overflow are refused", done.returncode == 1 and "too large" in done.stderr, done.stderr)


def wrong_answers_are_told():
    modules = {
        "minus.c": ("return -3;", "batch"),
        "text.c": ('return (int64_t)shoal_param(s, "rows", 1);', "rows"),
    }
    for name, (body, words) in modules.items():
        open(name, "w").write(NOTES.replace("const double *sizes;", body + " const double *sizes;"))
        done = shoal("run", name, "classes.npy", "--params", '{"rows": "many", "batches": [3]}')
        check(f"{name} is refused", done.returncode not in (0, -11, -6) and words in done.stderr, done.stderr)
    for seed in ("-1", "1.5", "1e300"):
        done = shoal("run", "notes.c", "classes.npy", "--params", '{"batches": [3], "seed": %s}' % seed)
        refused = done.returncode == 2 and "'seed'" in done.stderr and "2^53" in done.stderr
        check(f"the seed {seed}", refused, done.stderr)
    for rows in ("0", "0.5", "2.5", "-1", "1e300"):
        done = shoal("run", os.path.join(EXAMPLES, "sgd.c"), "classes.npy", "--params", '{"batch": %s}' % rows)
        check(f"a batch of {rows}", done.returncode == 2 and "batch must be" in done.stderr, done.stderr)
    for value, says in (("0", "--params: batch must be at least 1, not 0"),
                        ('"many"', "--params: batch: 'many' is not a number")):
        done = shoal("run", os.path.join(EXAMPLES, "least_squares.c"), "classes.npy", "--params",
                     '{"batch": %s}' % value)
        check(f"an option of {value}", done.returncode == 2 and says in done.stderr, done.stderr)
    done = shoal("run", "notes.c", "classes.npy", "--params", '{"batches": [3]}', "--workers", "local:2", "--slices",
                 "17")
    check("more slices than strata", done.returncode == 2 and "strata" in done.stderr, done.stderr)


folder = tempfile.mkdtemp(prefix="shoal-batches-")
home = os.getcwd()
os.environ.update(XDG_CACHE_HOME=f"{folder}/cache", TMPDIR=folder)
os.chdir(folder)
try:
    for test in (batches_are_those_that_numpy_says, examples_learn_the_same_everywhere, killed_runs_go_on,
                 batches_know_their_epoch, the_example_counts_and_does_not_overflow, wrong_answers_are_told):
        test()
finally:
    os.chdir(home)
    shutil.rmtree(folder)
sys.exit(failed > 0)
