#!/usr/bin/env python3
# Labels: asan
# Seconds: 30
"""shoal run as a user meets it: modules, programs, what both get wrong, and the same bytes with any threads and
workers.

    test_run.py PATH_TO_shoal [NAME...]

Every test runs in an empty folder of its own, which also has the user's state and cache, several at a time.  What a run
finds is compared with what numpy, math.fsum and fractions find, and with what another run finds by bytes.
"""
import concurrent.futures
import contextlib
import fractions
import io
import json
import math
import os
import random
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

import nobody  # so that no run is in the history of whoever runs this

import numpy as np

from processes import is_sanitized

SHOAL = os.path.abspath(sys.argv[1])
EXAMPLES = os.path.abspath("examples")
PYTHON = sys.executable
AT_ONCE = 3
SECONDS = 600  # until something that never comes is a failure
TESTS = []
SANITIZED = is_sanitized(SHOAL)


def test(function):
    TESTS.append(function)
    return function


class Folder:
    """Where one test runs."""

    def __init__(self, path):
        self.path = path

    def __call__(self, name):
        return os.path.join(self.path, name)

    def save(self, name, array):
        np.save(self(name), array)
        return name

    def write(self, name, text):
        os.makedirs(os.path.dirname(self(name)), exist_ok=True)
        with open(self(name), "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def start(self, *arguments, env={}, **options):
        home = {"XDG_STATE_HOME": self("state"), "XDG_CACHE_HOME": self("cache"), "TMPDIR": self("tmp")}
        os.makedirs(self("tmp"), exist_ok=True)
        # Unbuffered, Python's standard output is of another kind, for which numpy has no trouble with pipes.
        inherited = {
            name: value
            for name, value in os.environ.items() if name not in ("SHOAL_STORE", "CC", "PYTHONUNBUFFERED")
        }
        return subprocess.Popen([SHOAL, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, cwd=self.path, env={**inherited, **home,
                                                                                       **env}, **options)

    def run(self, *arguments, **options):
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        return process.returncode, out, err

    def succeeds(self, *arguments, **options):
        code, out, err = self.run(*arguments, **options)
        assert code == 0, f"{arguments} exits {code}: {err}"
        return out

    def fails(self, code, *sentences, run, **options):
        got, out, err = self.run(*run, **options)
        assert got == code, f"{run} exits {got}, not {code}: {out[:300]} {err}"
        for sentence in sentences:
            assert sentence in err, f"{run} says {err!r}, not {sentence!r}"
        return err

    def result(self, *arguments, **options):
        """The values that --json has, as an array."""
        found = json.loads(self.succeeds("run", *arguments, "--json", **options))["result"]
        return np.array(found["values"], dtype=found["type"]).reshape(found["shape"])

    def temporaries(self):
        return os.listdir(self("tmp"))


def rows_of(count, columns, seed=1):
    return np.random.default_rng(seed).normal(size=(count, columns)) * [10.0**(3 * i) for i in range(columns)]


LOOP = """import os, sys, time, types
import numpy as np
source = types.SimpleNamespace(read=sys.stdin.buffer.read, write=sys.stdout.buffer.write)
def answer(array):
    np.save(source, array)
    sys.stdout.buffer.flush()
count = 0
while sys.stdin.buffer.peek(1):
    rows = np.lib.format.read_array(source)
    count += 1
    BODY
"""


def program(folder, body, name="f.py", end=""):
    """Writes a program that does `body` with each array of rows, and its command line."""
    folder.write(name, LOOP.replace("BODY", body.replace("\n", "\n    ")) + end)
    return f"{PYTHON} {name}"


WAYS = [["--threads", "1"], ["--threads", "2"], ["--threads", "4"], ["--workers", "local:1"],
        ["--workers", "local:3", "--slices", "5"]]


def same_in_every_way(folder, *arguments):
    """Runs the same in all ways; the bytes of what is written, which must not differ."""
    first = None
    for i, way in enumerate(WAYS):
        folder.succeeds("run", *arguments, "-o", f"out{i}.npy", "-q", "--force", *way)
        with open(folder(f"out{i}.npy"), "rb") as file:
            found = file.read()
        first = first or found
        assert found == first, f"{arguments} {way} gives other bytes than {WAYS[0]}"
    return np.load(io.BytesIO(first))


# ---- modules ---------------------------------------------------------------------------------------------------------


@test
def sum_of_rows(folder):
    data = rows_of(3000, 4)
    folder.save("d.npy", data)
    found = same_in_every_way(folder, f"{EXAMPLES}/sum_rows.c", "d.npy")
    assert found.shape == (4,) and np.allclose(found, data.sum(axis=0), rtol=1e-12)
    out = folder.succeeds("run", f"{EXAMPLES}/sum_rows.c", "d.npy", "--grain", "1")
    exact = [math.fsum(column) for column in data.T]  # a grain a row: nothing rounds but the end
    assert [float(number) for number in out.split()] == exact, (out, exact)


@test
def logistic_regression(folder):
    random_state = np.random.default_rng(3)
    inputs = random_state.normal(size=(2000, 3))
    labels = (inputs @ [1.5, -2, 0.5] + 0.3 + random_state.normal(size=2000) > 0) * 1.0
    folder.save("d.npy", np.column_stack([inputs, labels]))
    found = same_in_every_way(folder, f"{EXAMPLES}/logistic.c", "d.npy", "--params", '{"rate": 1, "rounds": 40}')
    weights = np.zeros(4)
    extended = np.column_stack([inputs, np.ones(2000)])
    for _ in range(40):
        weights -= extended.T @ (1 / (1 + np.exp(-extended @ weights)) - labels) / 2000
    assert np.allclose(found, weights, rtol=1e-9), (found, weights)
    folder.write("p.json", '{"rate": 1,\n "rounds": 40}')
    folder.succeeds("run", f"{EXAMPLES}/logistic.c", "d.npy", "-p", "p.json", "-o", "again.npy", "--trace", "t.jsonl")
    assert (np.load(folder("again.npy")) == found).all()
    with open(folder("t.jsonl"), encoding="utf-8") as trace:
        assert len(trace.readlines()) == 40


@test
def modules_are_compiled_once(folder):
    folder.save("d.npy", np.ones((5, 2)))
    folder.write("m.c", '#include "h.h"\n#include <shoal/module.h>\n'
                 "static void map(double *sum, const double *m, const shoal_rows *rows, const shoal_setting *s)\n"
                 "{ sum[0] += FACTOR * rows->count; }\nSHOAL_MODULE(.map = map);\n")
    folder.write("h.h", "#define FACTOR 2\n")
    modules = folder("cache/shoal/modules")
    assert folder.succeeds("run", "m.c", "d.npy") == "10 0\n"
    assert folder.succeeds("run", "m.c", "d.npy") == "10 0\n"
    made = os.listdir(modules)
    assert len(made) == 1, made
    folder.write("h.h", "#define FACTOR 3\n")
    assert folder.succeeds("run", "m.c", "d.npy") == "15 0\n"
    assert len(os.listdir(modules)) == 2
    shutil.copy(os.path.join(modules, made[0]), folder("mine.so"))
    assert folder.succeeds("run", "./mine.so", "d.npy") == "10 0\n"
    os.unlink(folder("h.h"))
    assert folder.succeeds("run", "mine.so", "d.npy", "--workers", "local:2") == "10 0\n"


@test
def bad_modules(folder):
    folder.save("d.npy", np.ones((5, 2)))
    folder.write("m.c", "#include <shoal/module.h>\nint broken(\n")
    folder.fails(1, "m.c:2:", "error", "shoal: m.c: cc can't compile it", run=["run", "m.c", "d.npy"])
    folder.fails(1, "there is no compiler no-such-cc on this machine", run=["run", "m.c", "d.npy"],
                 env={"CC": "no-such-cc"})
    folder.write(
        "w.c",
        "#include <shoal/module.h>\nstatic void add(double *sum, const shoal_rows *rows) { sum[0] += rows->count; }\n"
        "SHOAL_MODULE(.map = add);\n")
    folder.fails(1, "incompatible", "shoal: w.c: cc can't compile it", run=["run", "w.c", "d.npy"])
    folder.write("e.c", "#include <shoal/module.h>\nint empty;\n")
    folder.fails(1, "e.c: the module defines no SHOAL_MODULE(...)", run=["run", "e.c", "d.npy"])
    folder.write("text.so", "hello")
    folder.fails(1, "text.so: the module can't be loaded: ", run=["run", "text.so", "d.npy"])
    folder.fails(1, "none.so: can't read the module", run=["run", "none.so", "d.npy"])
    folder.fails(1, "none.c: can't read the module", run=["run", "none.c", "d.npy"])
    folder.write(
        "nan.c",
        "#include <math.h>\n#include <shoal/module.h>\nstatic void map(double *sum, const double *m, const shoal_rows "
        "*rows, const shoal_setting *s) { if (rows->first == 2) sum[1] = NAN; }\nSHOAL_MODULE(.map = map);\n")
    for way in ([], ["--workers", "local:2"]):
        folder.fails(1, "d.npy", "the module's sum 2 of rows 3 to 4 is NaN",
                     run=["run", "nan.c", "d.npy", "--grain", "2", *way])
    assert os.listdir(folder("cache/shoal/modules")) != [] and not folder.temporaries()


@test
def a_module_that_crashes_workers_is_not_resumed(folder):
    folder.save("d.npy", np.ones((5, 2)))
    folder.write(
        "crash.c", "#include <stdlib.h>\n#include <shoal/module.h>\nstatic void map(double *sum, const double *m, "
        "const shoal_rows *rows, const shoal_setting *s) { abort(); }\nSHOAL_MODULE(.map = map);\n")
    run = ["run", "crash.c", "d.npy", "--workers", "2"]
    said = folder.fails(1, "crash.c: ", "died: signal 6", "run it without --workers", run=run)
    assert "resume" not in said and "there are no jobs" in folder.succeeds("job", "list"), said
    said = folder.fails(1, "crash.c: ", "died: signal 6", "`shoal job logs ", "`shoal job remove ",
                        run=[*run, "--store", "st"])
    assert "resume" not in said, said
    assert "removed job module-" in folder.succeeds("job", "remove", "--all-unstarted", "--store", "st")


@test
def weights_reach_modules(folder):
    folder.save("d.npy", np.arange(10.0).reshape(5, 2))
    folder.save("w.npy", np.array([1.0, 0, 0, 0.5, 2]))
    folder.write(
        "m.c", "#include <shoal/module.h>\nstatic void map(double *sum, const double *m, const shoal_rows *rows, const "
        "shoal_setting *s) { for (int64_t i = 0; i < rows->count; i++) sum[0] += (rows->weights ? rows->weights[i] : "
        "9) * rows->values[2 * i]; }\nSHOAL_MODULE(.map = map);\n")
    assert folder.succeeds("run", "m.c", "d.npy", "-w", "w.npy", "--grain", "2") == "19 0\n"
    assert folder.succeeds("run", "m.c", "d.npy", "-w", "w.npy", "--workers", "local:2") == "19 0\n"
    assert folder.succeeds("run", "m.c", "d.npy") == "180 0\n"


# ---- programs --------------------------------------------------------------------------------------------------------


@test
def sum_by_a_program(folder):
    data = rows_of(3000, 4)
    folder.save("d.npy", data)
    shutil.copy(f"{EXAMPLES}/sum.py", folder.path)
    found = same_in_every_way(folder, "--exec", f"{PYTHON} sum.py", "d.npy")
    assert found.dtype == np.float64 and found.shape == (4,)
    grains = [data[i:i + 252].sum(axis=0) for i in range(0, 3000, 252)]
    assert found.tolist() == [math.fsum(column) for column in np.array(grains).T]
    tenths = np.full((20000, 2), 0.1, np.float32)  # numpy's float32 sum of a grain of these is off by 3e-6 of it
    folder.save("tenths.npy", tenths)
    found = same_in_every_way(folder, "--exec", f"{PYTHON} sum.py", "tenths.npy")
    assert np.abs(found / (20000 * float(tenths[0, 0])) - 1).max() < 1e-12, found
    folder.save("whole.npy", np.full((3000, 2), 2**50 + 1))
    assert same_in_every_way(folder, "--exec", f"{PYTHON} sum.py", "whole.npy").tolist() == [3000 * (2**50 + 1)] * 2
    assert not folder.temporaries()


@test
def nasty_sums(folder):
    """A grain a row, answered as it is: what comes out is the exact sum, rounded once."""
    rng = random.Random(7)

    def value():
        kind = rng.random()
        if kind < 0.2:
            return rng.gauss(0, 1)
        if kind < 0.3:
            return 5e-324 * rng.randrange(1 << 50)
        if kind < 0.4:
            return rng.choice([1e300, -1e300, 1.0, 2.0**-53, 2.0**-1074, -0.0, 1e16])
        while True:
            number = struct.unpack("<d", rng.randbytes(8))[0]
            if abs(number) < 1e306:  # false for NaN
                return number

    columns = []
    for _ in range(200):
        column = [value() for _ in range(8)]
        column += [-number for number in column[:rng.randrange(8)]] + [0.0] * 8
        columns.append(rng.sample(column[:16], 16))
    data = np.array(columns).T
    folder.save("d.npy", data)
    found = same_in_every_way(folder, "--exec", "cat", "d.npy", "--grain", "1")
    for got, column in zip(found[0], columns):
        assert got == float(sum(map(fractions.Fraction, column))), (got, column)
        assert got != 0 or math.copysign(1, got) == 1


@test
def sums_of_integers(folder):
    for dtype in ("int8", "uint16", "int32", "int64", "uint64", "bool"):
        data = np.random.default_rng(2).integers(0, 2 if dtype == "bool" else 100, size=(40, 3)).astype(dtype)
        if dtype.startswith("int"):
            data = -data
        if dtype == "int64":
            data[:2] = [[2**62, -2**62 + 5000, 3], [2**62 - 9, -2**62, 5]]
        folder.save("d.npy", data)
        found = folder.result("--exec", "cat", "d.npy", "--grain", "1")
        assert found.dtype == np.int64 and found.tolist() == [[sum(map(int, column))
                                                               for column in data.T]], (dtype, found)
    folder.save("d.npy", np.full((4, 1), 2**62))
    folder.fails(1, "sum 1 does not fit int64", run=["run", "--exec", "cat", "d.npy", "--grain", "1"])


@test
def single_numbers_and_byte_orders(folder):
    data = rows_of(600, 3)
    folder.save("d.npy", data)
    found = folder.result("--exec", program(folder, "answer(np.array(len(rows), dtype='>i4'))"), "d.npy")
    assert found.shape == () and found == 600
    first = program(folder, "answer(rows[0].astype('>f4'))")
    assert folder.succeeds("run", "--exec", first, "d.npy", "--grain", "600") == \
        " ".join(str(float(number)) for number in data[0].astype("f4")) + "\n"
    found = folder.result("--exec", program(folder, "answer(len(rows))"), "d.npy", "--collect", "--grain", "250")
    assert found.tolist() == [250, 250, 100]


@test
def answers_are_collected_in_order(folder):
    data = rows_of(2000, 3)
    folder.save("d.npy", data)
    # as many rows as are positive, most in one grain and none in another: lengths differ
    command = program(folder, "answer(rows[rows[:, 0] > (-9 if rows[0, 0] > 0 else 9), :2].astype('f4'))")
    found = same_in_every_way(folder, "--exec", command, "d.npy", "--collect", "--grain", "100")
    wanted = [block[block[:, 0] > (-9 if block[0, 0] > 0 else 9), :2] for block in np.split(data, 20)]
    assert found.dtype == np.float32 and (found == np.concatenate(wanted).astype("f4")).all()
    assert 0 < len(found) < 2000
    large = np.arange(600000, dtype="u1").reshape(3, 200000)
    folder.save("l.npy", large)
    found = folder.succeeds("run", "--exec", program(folder,
                                                     "answer(np.tile(rows, (rows[0, 0] == 64 and 20 or 1, 1)))"),
                            "l.npy", "--collect", "--grain", "1", "-o", "l2.npy")
    wanted = np.concatenate([large[:1], np.tile(large[1:2], (20, 1)), large[2:]])
    assert (np.load(folder("l2.npy")) == wanted).all()
    found = folder.result("--exec", program(folder, "answer(rows[:0] * np.nan)"), "d.npy", "--collect")
    assert found.shape == (0, 3)
    found = folder.result("--exec", program(folder, "answer(rows[:0])"), "d.npy")
    assert found.shape == (0, 3)
    command = program(
        folder,
        "answer(rows[:0] if rows[0, 0] == first else np.repeat(rows, 3, axis=0))".replace("first", repr(data[0, 0])))
    folder.succeeds("run", "--exec", command, "d.npy", "--collect", "--grain", "500", "-o", "r.npy")
    assert (np.load(folder("r.npy")) == np.repeat(data[500:], 3, axis=0)).all()


@test
def parameters_files_and_folder(folder):
    folder.save("d.npy", np.ones((3, 1)))
    folder.write("lib/deep.py", "number = 40\n")
    folder.write("here/lib/deep.py", "number = 2\n")
    folder.write("more.txt", "1000")
    command = program(
        folder, "sys.path.insert(0, 'lib')\nimport json, deep\nparams = json.loads(os.environ['SHOAL_PARAMS'])\n"
        "assert os.environ['SHOAL_HOST'] == os.uname().nodename\n"
        "answer(np.array(deep.number + params.get('add', 0) + int(open('more.txt').read())))")
    for way in ([], ["--workers", "local:2"]):
        sends = ["--send", "lib/deep.py", "--send", "more.txt"]
        assert folder.succeeds("run", "--exec", command, "d.npy", *sends, *way) == "1040\n"
        assert folder.succeeds("run", "--exec", command, "d.npy", *sends, *way, "-p", '{"add": 5}') == "1045\n"
    folder.fails(1, "No module named 'deep'", run=["run", "--exec", command, "d.npy", "--workers", "local:1"])
    script = folder.write("own.sh", f'#!/bin/sh\nexec {PYTHON} f.py\n')
    os.chmod(folder("own.sh"), 0o755)
    assert folder.succeeds("run", "--exec", "./own.sh", "d.npy", "--send", "f.py", "--send", "lib/deep.py", "--send",
                           "more.txt", "--workers", "local:1") == "1040\n"
    assert folder.succeeds("run", "--exec", f"cat {folder('more.txt')} >/dev/null; A=1 {PYTHON} 'f.py'",
                           "d.npy") == "1040\n"
    assert not folder.temporaries(), script


FAILURES = {
    "raises": ("raise ValueError('no such\\x1b[31m column')",
               "it exited with code 1 before it answered; its last lines on stderr: Traceback",
               "| ValueError: no such [31m column"), "leaves": ("sys.exit(0)",
                                                                "it exited with code 0 before it answered"),
    "is killed": ("os.kill(os.getpid(), 11)",
                  "it was killed by signal 11"), "prints": ("print('hello')\nsys.stdout.flush()",
                                                            "it wrote 'hello' where an .npy array should begin"),
    "has objects": ("np.save(source, np.array([None]), allow_pickle=True)\nsys.stdout.flush()",
                    "Python objects"), "has text": ("answer(np.array(['a']))", "its answer: the array holds text"),
    "is complex": ("answer(np.array([1j]))", "its answer: the array holds complex numbers"),
    "is in Fortran order": ("answer(np.asfortranarray(rows[:2]))",
                            "its answer is in Fortran order"), "has five axes": ("answer(np.ones((1, 1, 1, 1, 1)))",
                                                                                 "its answer has 5 dimensions"),
    "answers once and leaves": ("answer(rows)\nsys.exit(0)", "it exited with code 0 before it answered"),
    "ends in the middle": ("import io\nb = io.BytesIO()\nnp.save(b, rows)\nsys.stdout.buffer.write(b.getvalue()[:-1])\n"
                           "sys.stdout.buffer.flush()\nos._exit(0)",
                           "it exited with code 0 in the middle of its answer"),
    "answers twice": ("answer(rows[0])\ntime.sleep(0.02)\nanswer(rows[0])", "it wrote more than one array"),
    "changes its shape": ("answer(rows[:2 if rows[0, 0] == 0 else 3])",
                          "its answer is float64 of 3 x 3, but that to the first rows is float64 of 2 x 3"),
    "changes its type": ("answer(rows[0] if rows[0, 0] == 0 else rows[0].astype('i4'))",
                         "its answer is int32 of 3, but that to the first rows is float64 of 3"),
    "has NaN": ("answer(rows[0] * np.nan if rows[0, 0] > 0 else rows[0])", "value 1 of its answer is NaN or infinite"),
    "closes its output": ("os.close(1)\ntime.sleep(1000)",
                          "it closed its standard output"), "hangs": ("time.sleep(1000)",
                                                                      "it did not answer within 1.5 s"),
    "fails at the end": ("answer(rows[0])", "it exited with code 5 when its input had ended"),
}
LATER = ("answers once and leaves", "changes its shape", "changes its type", "has NaN")  # not on the first rows


@test
def every_failure_has_its_sentence(folder):
    data = np.arange(1500.0).reshape(500, 3)
    folder.save("d.npy", data)
    host = os.uname().nodename
    for i, (name, (body, *sentences)) in enumerate(FAILURES.items()):
        command = program(folder, body, f"f{i}.py", "sys.exit(5)\n" if name == "fails at the end" else "")
        timeout = "1.5" if name == "hangs" else "100"
        where = "rows 251 to 500" if name in LATER else "rows 1 to 250"
        for way in (["--threads", "1"], ["--workers", "local:1", "--threads", "1"]):
            run = ["run", "--exec", command, "d.npy", "--grain", "250", "--timeout", timeout, *way]
            err = folder.fails(1, f"'{command}' failed on {where} on {host}: ", *sentences, run=run)
            assert "\x1b" not in err and err.count("\n") == 1, (name, err)
            assert not folder.temporaries(), name


@test
def commands_that_are_none(folder):
    folder.save("d.npy", np.ones((3, 1)))
    folder.fails(1, "it exited with code 127", "not found", run=["run", "--exec", "no-such-program-here", "d.npy"])
    folder.fails(1, "it exited with code 3", run=["run", "--exec", "exit 3", "d.npy"])
    folder.fails(1, "it did not exit in time although its input had ended",
                 run=["run", "--exec", "cat; sleep 1000", "d.npy", "--timeout", "3"])
    folder.fails(2, "--exec needs a command line", run=["run", "--exec", " ", "d.npy"])


@test
def usage(folder):
    folder.save("d.npy", np.ones((3, 1)))
    folder.write("bad.json", '{"a": }')
    for sentence, run in [
        ("run needs MODULE and DATA, or --exec COMMAND and DATA", []),
        ("run needs MODULE and DATA, or --exec COMMAND and DATA", ["--exec", "cat"]),
        ("run needs MODULE and DATA, or --exec COMMAND and DATA", ["d.npy"]),
        ("--exec replaces MODULE", ["--exec", "cat", "m.c", "d.npy"]),
        ("--weights is for modules", ["--exec", "cat", "d.npy", "--weights", "d.npy"]),
        ("--send and --collect need --exec", ["m.c", "d.npy", "--collect"]),
        ("--out x.jpg: the name must end in .safetensors, .npy, ", ["--exec", "cat", "d.npy", "-o", "x.jpg"]),
        ("--out d.npy and DATA d.npy are the same file", ["--exec", "cat", "d.npy", "-o", "d.npy"]),
        ("--params: line 1", ["--exec", "cat", "d.npy", "-p", "{1}"]),
        ("--params: the module asks for 'rate' as a number",
         [f"{EXAMPLES}/logistic.c", "d.npy", "-p", '{"rate": "fast"}']),
        ("--params: the module asks for 'rounds' as a number",
         [f"{EXAMPLES}/logistic.c", "d.npy", "-p", '{"rounds": [1]}', "--workers", "local:2"]),
        ("--timeout", ["--exec", "cat", "d.npy", "--timeout", "-1"]),
        ("--detach", ["--exec", "cat", "d.npy", "--detach"]),
        ("too many for a variable of a program", ["--exec", "cat", "d.npy", "-p",
                                                  json.dumps({"a": "x" * 120000})]),
    ]:
        folder.fails(2, sentence, run=["run", *run])
    folder.fails(1, "--params none.json: neither a JSON object nor a file",
                 run=["run", "--exec", "cat", "d.npy", "-p", "none.json"])
    folder.fails(1, "bad.json: ", run=["run", "--exec", "cat", "d.npy", "-p", "bad.json"])
    folder.fails(1, "none.py: can't read",
                 run=["run", "--exec", "cat", "d.npy", "--send", "none.py", "--workers", "local:1"])
    assert not os.path.exists(folder("x.jpg"))


@test
def what_comes_out(folder):
    folder.save("d.npy", np.array([[0.1, 2], [3, 4]]))
    assert folder.succeeds("run", "-e", "cat", "d.npy") == "0.1 2\n3 4\n"
    out = folder.succeeds("run", "-e", "cat", "d.npy", "-o", "x.npy")
    assert "wrote      x.npy" in out and (np.load(folder("x.npy")) == np.load(folder("d.npy"))).all()
    assert folder.succeeds("run", "-e", "cat", "d.npy", "-o", "x.safetensors", "-q") == ""
    with open(folder("x.safetensors"), "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    assert header["result"]["shape"] == [2, 2] and header["__metadata__"]["learner"] == "exec"
    found = json.loads(folder.succeeds("run", "-e", "cat", "d.npy", "--json", "--collect"))
    assert found["result"] == {"type": "float64", "shape": [2, 2], "values": [0.1, 2, 3, 4]} and found["rounds"] == 2
    folder.save("l.npy", np.ones((20000, 1)))
    out = folder.succeeds("run", "-e", "cat", "l.npy", "--collect")
    assert out == "result: float64, 20000 x 1; use --out FILE.npy to write it\n", out
    assert "values" not in json.loads(folder.succeeds("run", "-e", "cat", "l.npy", "--collect", "--json"))["result"]


# ---- ends ------------------------------------------------------------------------------------------------------------


def waits_for(what, condition):
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until, f"{what} did not come"
        time.sleep(0.02)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


@test
def programs_end_with_whoever_started_them(folder):
    """Killed or interrupted, nothing of it is left: neither programs nor what these started."""
    folder.save("d.npy", np.ones((3, 1)))
    for number, leaves in ((signal.SIGKILL, True), (signal.SIGINT, False), (signal.SIGTERM, False)):
        command = "sleep 1000 & echo $$ $! >> pids; sleep 1000"
        process = folder.start("run", "--exec", command, "d.npy", "--threads", "1")

        def started():
            return os.path.exists(folder("pids")) and len(open(folder("pids"), encoding="utf-8").readlines()) >= 2

        try:
            waits_for("two programs", started)
            process.send_signal(number)
            process.communicate(timeout=SECONDS)
        finally:
            process.kill()
            process.communicate()
        assert process.returncode == -number, process.returncode
        with open(folder("pids"), encoding="utf-8") as file:
            pids = [int(pid) for pid in file.read().split()]
        try:
            waits_for("the end of programs", lambda: not any(alive(pid) for pid in pids))
        finally:
            for pid in pids:  # some of which lead a group
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
        os.unlink(folder("pids"))
        if not leaves:
            assert not folder.temporaries()
        shutil.rmtree(folder("tmp"))


@test
def a_module_stops_after_its_round(folder):
    folder.save("d.npy", np.ones((3, 1)))
    folder.write(
        "m.c",
        "#include <stdio.h>\n#include <shoal/module.h>\nstatic void map(double *sum, const double *m, const shoal_rows "
        "*r, const shoal_setting *s) { sum[0] = 1; }\nstatic bool update(double *m, const double *sum, int64_t round, "
        "const shoal_setting *s) { m[0]++; if (round == 100) fclose(fopen(\"going\", \"w\")); return false; }\n"
        "SHOAL_MODULE(.map = map, .update = update);\n")
    process = folder.start("run", "m.c", "d.npy", "-o", "x.npy")
    try:
        waits_for("a hundred rounds", lambda: os.path.exists(folder("going")))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130 and "stopped after" in err, (process.returncode, err)
    assert np.load(folder("x.npy"))[0] > 100


@test
def a_command_ends_with_the_first_signal(folder):
    """By the signal itself, as its shell is told; what a run that is killed leaves behind the next one removes."""
    folder.save("d.npy", rows_of(500, 2))
    alive = folder.start("run", "--exec", "touch alive; exec cat >/dev/null", "gen:blobs?rows=1e12&cols=2")
    waits_for("a command that runs", lambda: os.path.exists(folder("alive")))
    [kept] = os.listdir(folder("tmp"))
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            going = f"going-{number}"  # of its own: each thread's command makes it, also late
            process = folder.start("run", "--exec", f"touch {going}; exec sleep 1000", "d.npy")
            waits_for("a command that runs", lambda: os.path.exists(folder(going)))
            process.send_signal(number)
            _, err = process.communicate(timeout=SECONDS)
            assert process.returncode == -number and not err, (process.returncode, err)
            assert len(os.listdir(folder("tmp"))) == (2 if number == signal.SIGKILL else 1), os.listdir(folder("tmp"))
        folder.succeeds("run", "--exec", "cat", "--collect", "d.npy", "-q", "-o", "x.npy")
        assert os.listdir(folder("tmp")) == [kept], "of those that live nothing is removed"
        assert alive.poll() is None, alive.stderr.read()
    finally:
        alive.kill()
        alive.communicate()


@test
def a_detached_job_writes_its_output(folder):
    folder.save("d.npy", rows_of(500, 2))
    shutil.copy(f"{EXAMPLES}/sum.py", folder.path)
    folder.succeeds("run", "--exec", f"{PYTHON} sum.py", "d.npy", "-o", "a.npy", "-q")
    name = folder.succeeds("run", "--exec", f"{PYTHON} sum.py", "d.npy", "-o", "b.npy", "--workers", "local:2",
                           "--detach", "--store", "st").strip()
    waits_for("the output", lambda: os.path.exists(folder("b.npy")))
    with open(folder("a.npy"), "rb") as a, open(folder("b.npy"), "rb") as b:
        assert a.read() == b.read()
    out = folder.succeeds("job", "result", name, "--store", "st", "--out", "found")
    assert "result" in out and os.path.exists(folder("found/result.npy"))
    shown = folder.succeeds("job", "show", name, "--store", "st")
    assert "exec" in shown, shown


@test
def a_file_that_appears_is_not_replaced_by_a_detached_job(folder):
    folder.save("d.npy", rows_of(50, 2))
    with open(folder("wait.sh"), "w") as file:
        file.write(f"while [ ! -e '{folder('go')}' ]; do sleep 0.05; done\nexec cat\n")
    name = folder.succeeds("run", "--exec", "sh wait.sh", "d.npy", "-o", "b.csv", "--workers", "local:1", "--detach",
                           "--store", "st").strip()
    for path, text in (("b.csv", "name\nTom\n"), ("go", "")):
        with open(folder(path), "w") as file:
            file.write(text)
    waits_for("the output beside it", lambda: os.path.exists(folder("b-2.csv")))
    waits_for("what is said of it", lambda: "b-2.csv was written instead" in folder.succeeds("job", "logs", name,
                                                                                              "--store", "st"))
    code, _, err = folder.run("job", "result", name, "--store", "st", "--tensor", "result", "--output", "b.csv")
    assert code == 2 and "words in 1 column, not numbers in 2 columns" in err and "--force" in err, (code, err)
    code, _, err = folder.run("job", "resume", name, "--store", "st")
    assert code == 2 and "b.csv: the file holds words" in err and "--force" in err, (code, err)
    assert not os.path.exists(folder("b-3.csv")), "what is done is not written again under another name"
    code, _, err = folder.run("job", "result", name, "--store", "st", "--out", "-")
    assert code == 2 and "--out needs a folder" in err, (code, err)
    with open(folder("b.csv")) as file:
        assert file.read() == "name\nTom\n"


@test
def a_job_is_resumed(folder):
    """Submitted without workers and given up; resumed, it goes on with the code it brought."""
    folder.save("d.npy", rows_of(500, 2))
    shutil.copy(f"{EXAMPLES}/sum.py", folder.path)
    for kind, arguments in (("exec", ["--exec", f"{PYTHON} sum.py"]), ("module", [f"{EXAMPLES}/sum_rows.c"])):
        folder.succeeds("run", *arguments, "d.npy", "-o", "a.npy", "-q")
        code, _, err = folder.run("run", *arguments, "d.npy", "-o", f"{kind}.npy", "--store", f"st-{kind}",
                                  "--patience", "0.5")
        assert code == 3, (code, err)
        folder.succeeds("job", "resume", "--store", f"st-{kind}", "--workers", "local:2")
        with open(folder("a.npy"), "rb") as a, open(folder(f"{kind}.npy"), "rb") as b:
            assert a.read() == b.read()


@test
def maps_read_and_write_blobs(folder):
    """The same files from threads and workers, in folders and stores."""
    for i in range(7):
        folder.write(f"texts/{i}.txt", f"text number {i} " + "and so on " * i)
    np.savetxt(folder("numbers.csv"), np.arange(7), fmt="%d")
    run = ["run", f"{EXAMPLES}/texts.c", "numbers.csv", "--grain", "2", "--blobs-from", "texts", "--blobs-to"]
    assert folder.succeeds(*run, "here", "--threads", "3").strip() == str(3 * 7 + 3 * 21)
    folder.succeeds(*run, "away/too", "--workers", "local:2")
    folder.succeeds(*run, "dir:st/above", "--workers", "local:2", "--store", "jobs")
    folder.succeeds("store", "get", "-r", "dir:st/above", "fetched")
    names = sorted(os.listdir(folder("here")))
    assert names == [f"{i}.upper.txt" for i in range(7)], names
    for name in names:
        whole = open(folder(f"here/{name}")).read()
        assert whole == open(folder(f"texts/{name[0]}.txt")).read().upper()
        assert whole == open(folder(f"away/too/{name}")).read() == open(folder(f"fetched/{name}")).read()
    assert sorted(os.listdir(folder("away/too"))) == names


@test
def blobs_that_can_not_be_had_are_told(folder):
    folder.write("texts/0.txt", "one")
    folder.write("file", "a plain file")
    folder.write("rows/x", "")
    folder.save("rows/numbers.npy", np.arange(2.0))
    run = ["run", f"{EXAMPLES}/texts.c", "rows/numbers.npy"]
    folder.fails(2, "say where with --blobs-from", run=run)
    folder.fails(2, "say where with --blobs-to", run=[*run, "--blobs-from", "texts"])
    folder.fails(1, "texts/1.txt: there is no such file", run=[*run, "--blobs-from", "texts", "--blobs-to", "out"])
    folder.fails(1, "file: can't make the folder", run=[*run, "--blobs-from", "texts", "--blobs-to", "file"])
    folder.fails(1, "absent: can't read", run=[*run, "--blobs-from", "absent", "--blobs-to", "out", "--workers", "1"])
    # A worker that was started by hand reads only what it was told to.
    folder.write("texts/1.txt", "two")
    process = folder.start(*run, "--blobs-from", "texts", "--blobs-to", "out", "--store", "st", "--patience", "600")
    try:
        words = shlex.split(process.stderr.readline().partition("waiting for workers: shoal ")[2])
        at = words.index("--data-root")
        assert words[at + 1] == folder("rows") + "," + folder("texts"), words
        narrow = [*words[:at + 1], folder("rows"), *words[at + 2:]]
        folder.fails(1, "may not read the file", run=narrow)
        folder.succeeds(*words)
        assert process.wait(SECONDS) == 0, process.stderr.read()
    finally:
        process.kill()
        process.communicate()
    assert open(folder("out/1.upper.txt")).read() == "TWO"


@test
def code_runs_only_where_it_is_trusted(folder):
    folder.save("d.npy", rows_of(500, 2))
    name = folder.succeeds("run", f"{EXAMPLES}/sum_rows.c", "d.npy", "-o", "b.npy", "--store", "st", "--detach").strip()
    code, _, err = folder.run("worker", "--store", "st", "--job", name, "--data-root", folder.path)
    assert code != 0 and "--allow-code" in err, (code, err)
    digest = err.split("--allow-code ")[1].split()[0].rstrip(".;")
    other = ("0" if digest[0] != "0" else "1") + digest[1:]
    code, _, err = folder.run("worker", "--store", "st", "--job", name, "--data-root", folder.path, "--allow-code",
                              other)
    assert code != 0, err
    folder.succeeds("worker", "--store", "st", "--job", name, "--data-root", folder.path, "--allow-code",
                    f"{other},{digest}")
    folder.succeeds("job", "result", name, "--store", "st", "--tensor", "result", "--output", "b.npy")
    assert np.allclose(np.load(folder("b.npy")), np.load(folder("d.npy")).sum(axis=0), rtol=1e-12)


@test
def what_has_to_be_allowed_is_shown_in_one_go(folder):
    folder.save("d.npy", rows_of(500, 2))
    shutil.copy(f"{EXAMPLES}/sum.py", folder.path)
    process = folder.start("run", "--exec", f"{PYTHON} sum.py", "d.npy", "-o", "a.npy", "--store", "st", "--patience",
                           str(SECONDS))
    try:
        line = process.stderr.readline()
        words = shlex.split(line.partition("waiting for workers: shoal ")[2])
        assert "--allow-code" in words, line
        folder.succeeds(*words)
        assert process.wait(SECONDS) == 0, process.stderr.read()
    finally:
        process.kill()
        process.communicate()
    assert np.allclose(np.load(folder("a.npy")), np.load(folder("d.npy")).sum(axis=0), rtol=1e-12)
    # Whoever did not submit it here is asked to allow all of it, the command and the file.
    name = folder.succeeds("run", "--exec", f"{PYTHON} sum.py", "d.npy", "--store", "other", "--detach").strip()
    resume = ["job", "resume", name, "--store", "other", "--workers", "local:1"]
    elsewhere = {"XDG_STATE_HOME": folder("elsewhere")}
    err = folder.fails(1, f"job {name} was submitted elsewhere and brings code", run=resume, env=elsewhere)
    allow, hashes, root, where = shlex.split(err.split("to allow that, give ")[1])
    assert (allow, hashes.count(","), root) == ("--allow-code", 1, "--data-root") and folder("d.npy") in err, err
    folder.fails(1, "brings code", run=[*resume, allow, hashes.split(",")[0], root, where], env=elsewhere)
    folder.fails(1, "its workers read", run=[*resume, allow, hashes], env=elsewhere)
    folder.succeeds(*resume, allow, hashes, root, where, env=elsewhere)
    # So is who goes on in the background.
    name = folder.succeeds("run", "--exec", f"{PYTHON} sum.py", "d.npy", "--store", "third", "--detach").strip()
    folder.succeeds("job", "resume", name, "--store", "third", "--workers", "local:1", "--detach", allow, hashes,
                    root, where, env=elsewhere)
    folder.succeeds("job", "wait", name, "--store", "third")


# ---- running ---------------------------------------------------------------------------------------------------------


def run_one(function):
    path = tempfile.mkdtemp(prefix="shoal-run-test-")
    try:
        function(Folder(path))
        return None
    except BaseException:  # whatever it is, it is told with the test's name
        return traceback.format_exc()
    finally:
        shutil.rmtree(path, ignore_errors=True)


def main():
    names = sys.argv[2:]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs this in the background ignores it
    chosen = [function for function in TESTS if not names or function.__name__ in names]
    assert chosen, f"no tests called {names}"
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for function, trouble in zip(chosen, pool.map(run_one, chosen)):
            print(f"{'FAILED' if trouble else 'ok'}  {function.__name__}", flush=True)
            failed += trouble is not None
            if trouble:
                print(trouble, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
