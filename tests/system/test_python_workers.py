#!/usr/bin/python3
# Seconds: 60
# The Python package: functions on workers, by the interface of qjam.
#   test_python_workers.py PATH_TO_shoal [TEST...]
# Hosts are reached by a stand-in for ssh that runs the command here, each host with a home of its own.  Prints one
# line for each failure and "N passed, M failed" at the end.
import concurrent.futures
import gc
import importlib
import math
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings

from processes import children, state, wait_until
from scripts import (Terminal, check, folder, main, make_ssh, program, raises, random_rows, root, run_notebook,
                     run_python, skipped)

import numpy as np
import shoal
from shoal import Master, NumpyMatrixDataSet, RemoteError, RemoteWorker, qjam


def module_of(name, text):
    """A module of its own file."""
    (folder / "modules").mkdir(exist_ok=True)
    path = folder / "modules" / (name.replace(".", "/") + ".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    if str(folder / "modules") not in sys.path:
        sys.path.insert(0, str(folder / "modules"))
    importlib.invalidate_caches()
    return importlib.import_module(name)


MATRIX = np.matrix("1 2 3 4; 5 6 7 8; 9 10 11 12")


def test_example():
    example = root / "examples" / "qjam" / "sum_matrix_example.py"
    for hosts in (["local", "local"], ["corn10", "corn11"]):
        done = subprocess.run([sys.executable, example, *hosts], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "SHOAL_SSH": make_ssh(), "XDG_STATE_HOME": str(folder / "state")})
        check(f"the example on {hosts}", done.stdout.endswith("Result is: 78\n"), done.stdout + done.stderr)
    check("nothing is noted of runs", not (folder / "state").exists(), list((folder / "state").rglob("*")))
    usage = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=300)
    check("the example without hosts", usage.returncode == 1 and usage.stdout.startswith("usage: "),
          usage.stdout + usage.stderr)
    # A program as it was written for qjam, where the function's module lies in a package.
    (folder / "old" / "examples").mkdir(parents=True)
    shutil.copy(root / "examples" / "qjam" / "sum_dataset.py", folder / "old" / "examples")
    (folder / "old" / "program.py").write_text(textwrap.dedent("""
        import sys
        import numpy
        from qjam.dataset import NumpyMatrixDataSet
        from qjam.master.master import Master
        from qjam.master.remote_worker import RemoteWorker
        from examples import sum_dataset

        def main():
            workers = []
            for i, hostname in enumerate(sys.argv[1:]):
                worker = RemoteWorker(hostname)
                workers.append(worker)
            matrix = numpy.matrix('1 2 3 4; 5 6 7 8; 9 10 11 12')
            dataset = NumpyMatrixDataSet(matrix)
            master = Master(workers)
            params = None
            result = master.run(sum_dataset, params, dataset)
            print('Result is: %d' % result)

        if __name__ == '__main__':
            main()
    """))
    done = subprocess.run([sys.executable, folder / "old" / "program.py", "corn10", "corn10", "corn11"],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, "SHOAL_SSH": make_ssh(), "PYTHONPATH": str(root / "python")})
    check("a program written for qjam", done.stdout == "Result is: 78\n" and done.stderr == "",
          done.stdout + done.stderr)


def test_documentation():
    """The module that docs/python.md shows."""
    text = re.search(r"```python\n# gradient.py\n(.*?)```", (root / "docs" / "python.md").read_text(), re.S)[1]
    rows, params = random_rows(1000, 4), np.array([0.5, -1, 2])
    errors = rows[:, :3] @ params - rows[:, 3]
    for name, source in (("gradient", text), ("gradient_added", text[:text.index("def reduce")])):
        cost, gradient = Master(["local:2"]).run(module_of(name, source), params, rows)
        check(f"the documented {name}", math.isclose(cost, (errors ** 2).sum(), rel_tol=1e-12)
              and np.allclose(gradient, rows[:, :3].T @ errors, rtol=1e-10))


def test_kinds():
    """What a function sees of data sets of every kind."""
    seen = module_of("seen", """
        def mapfunc(params, dataset):
            return [(type(dataset).__name__, getattr(dataset, 'shape', None), str(getattr(dataset, 'dtype', None)),
                     params, dataset if isinstance(dataset, list) else dataset.tolist())]

        def reduce(results):
            return [one for result in results for one in result]
    """)
    master = Master(["local:2"], slice_rows=2)
    cases = {"matrix": (MATRIX, "matrix", (2, 4), "int64"),
             "one dimension": (np.arange(3.0), "ndarray", (2,), "float64"),
             "list": ([1, 2, 3], "list", None, "None"),
             "big-endian": (np.arange(3, dtype=">i4"), "ndarray", (2,), ">i4"),
             "three dimensions": (np.arange(12).reshape(3, 2, 2), "ndarray", (2, 2, 2), "int64"),
             "half floats": (np.ones((3, 3), "f2"), "ndarray", (2, 3), "float16"),
             "complex": (np.ones((3, 1)) * 1j, "ndarray", (2, 1), "complex128"),
             "truth values": (np.array([[True], [False], [True]]), "ndarray", (2, 1), "bool"),
             "texts": (np.array(["a", "bcd", ""]), "ndarray", (2,), "<U3"),
             "not finite": (np.array([np.inf, 1, -np.inf]), "ndarray", (2,), "float64"),
             "a set": (NumpyMatrixDataSet(np.asfortranarray(np.arange(6).reshape(3, 2))), "ndarray", (2, 2), "int64")}
    for name, (dataset, kind, shape, dtype) in cases.items():
        got = master.run(seen, {"p": name}, dataset)
        values = [value for *_, part in got for value in part]
        whole = dataset.matrix if isinstance(dataset, NumpyMatrixDataSet) else np.asarray(dataset)
        check(f"what a function sees: {name}", [one[:4] for one in got[:1]] == [(kind, shape, dtype, {"p": name})]
              and len(got) == 2
              and values == whole.tolist(), got)


def test_results():
    rows = random_rows(5000, 3) * 10.0 ** np.arange(-8, 8, 5)[:3]
    sums = module_of("sums", """
        import numpy as np

        def mapfunc(params, dataset):
            return dataset.sum(), int(dataset.astype(int).sum()), dataset.sum(axis=0)
    """)
    first = None
    for workers in (["local"], ["local:3"], ["corn10:2", "local"]):
        got = Master(workers, ssh=make_ssh()).run(sums, None, rows)
        identity = (got[0].hex(), got[1], got[2].tobytes())
        check(f"the same bits with {workers}", first in (None, identity), identity)
        first = first or identity
    slices = [rows[i:i + 20] for i in range(0, 5000, 20)]
    check("floats are added exactly", got[0] == math.fsum(part.sum() for part in slices), got)
    check("integers stay integers", type(got[1]) is int and got[1] == rows.astype(int).sum(), got)
    check("slices by shape", NumpyMatrixDataSet(rows).rows_per_slice() == 20
          and NumpyMatrixDataSet([1]).rows_per_slice() == 1
          and NumpyMatrixDataSet(np.broadcast_to(np.zeros(1), (10**6, 4000))).rows_per_slice() == (8 << 20) // 32000)
    add = qjam.add
    check("sums", add([1, 2, True]) == 4 and add([0.1] * 10) == 1.0 and add([1, 2.5]) == 3.5
          and add([[1], [2]]) == [1, 2] and add([1j, 2]) == 2 + 1j and add(["a", "b"]) == "ab"
          and add([(1, 2.0), (3, 4.0)]) == (4, 6.0)
          and (add([np.ones(2), np.ones(2)]) == 2).all() and add([np.int64(2**62)] * 4) == 2**64
          and add([math.inf, 1.0]) == math.inf and math.isnan(add([math.inf, -math.inf]))
          and add([1e308, 1e308]) == math.inf)
    raises("None can't be added", TypeError, "mapfunc returned None", lambda: add([1, None]))
    raises("tuples that differ", TypeError, "tuples of different lengths", lambda: add([(1,), (1, 2)]))
    dataset = NumpyMatrixDataSet(rows)
    path = dataset.path()
    check("a data set is written once", dataset.path() == path and os.path.exists(path))
    del dataset
    gc.collect()
    check("and removed with it", not os.path.exists(path))


FUNCTIONS = """
import math
import sys
import numpy as np
import shoal

factor = 2
class Known(Exception):
    pass
class Awkward(Exception):
    def __init__(self, one, two):
        super().__init__(one)
def helper(values):
    return math.fsum(values) * factor
def recursive(n):
    return 0 if n == 0 else 1 + recursive(n - 1)
def good(params, dataset):
    print('this goes nowhere', flush=True)
    sys.stdout.write('nor does this')
    return helper(dataset) + recursive(3) - 3
def known(params, dataset):
    if 3 in dataset:
        raise Known('three')
    return 1
def awkward(params, dataset):
    raise Awkward(1, 2)
def leaves(params, dataset):
    raise SystemExit(5)
def make():
    hidden = 3
    def inner(params, dataset):
        return hidden
    return inner
class Holder:
    def mapfunc(params, dataset):
        return len(dataset)
    def reduce(results):
        return ['reduced', sum(results)]
class Point:
    def __init__(self, x):
        self.x = x
    def __add__(self, other):
        return Point(self.x + other.x)
    def __repr__(self):
        return f'Point({self.x})'
def points(params, dataset):
    return Point(params.x + len(dataset))
lock = __import__('threading').Lock()
def locks(params, dataset):
    return lock
master = shoal.Master(['local:2'], slice_rows=1)
def attempt(what, params=None, dataset=[1, 2, 3, 4]):
    try:
        print(repr(master.run(what, params, dataset)))
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0], getattr(error, 'rows', None), repr(error.__cause__),
              sep=' | ')
for what in (good, Holder, known, awkward, leaves, make(), lambda params, dataset: 0, locks, len, 3):
    attempt(what)
attempt(good, lock)
attempt(points, Point(10))
print('end')
"""


def test_main_functions():
    """Functions that stand in a script, which is not run again on the workers."""
    done = run_python(FUNCTIONS)
    host = re.escape(os.uname().nodename)
    expected = [r"20.0", r"\['reduced', 4\]",
                rf"RemoteError \| {host}: Known: three \(in row 2\) \| \(2, 3\) \| Known\('three'\)",
                rf"RemoteError \| {host}: Awkward: 1 \(in row 0\) \| \(0, 1\) \| None",
                rf"RemoteError \| {host}: SystemExit: 5 \(in row 0\) \| \(0, 1\) \| SystemExit\(5\)",
                r"ValueError \| make.<locals>.inner can't be sent to workers: .*",
                r"ValueError \| <lambda> can't be sent to workers: .*",
                r"ValueError \| locks uses the global variable lock, which can't be sent to workers: .*",
                r"ValueError \| a module that has a mapfunc is needed, or a function, not <built-in function len> .*",
                r"ValueError \| a module that has a mapfunc is needed, or a function, not 3 .*",
                r"ValueError \| params can't be sent to workers: .*", r"Point\(44\)", r"end"]
    lines = done.stdout.splitlines()
    check("functions of a script", len(lines) == len(expected), done.stdout + done.stderr)
    for line, pattern in zip(lines, expected):
        check(f"function of a script: {pattern}", re.fullmatch(pattern, line), line)
    check("functions of a script print nothing here", done.stderr == "", done.stderr)


def test_remote_errors():
    faulty = module_of("faulty.inside", """
        import os
        import time

        def mapfunc(params, dataset):
            if 9 in dataset:
                if params == 'raise':
                    deeper(params)
                if params == 'die':
                    os.write(2, b'no way out')
                    os._exit(3)
                if params == 'hang':
                    time.sleep(1000)
            return 1

        def deeper(params):
            raise LookupError('nine is not here')
    """)
    ssh = make_ssh()
    host = os.uname().nodename
    error = raises("an exception on a host", RemoteError,
                   r"^\S+: LookupError: nine is not here \(in row 2\)\n\nTraceback",
                   lambda: Master(["corn10"], ssh=ssh).run(faulty, "raise", MATRIX))
    check("it carries host, rows, traceback and cause", error and error.host == host and error.rows == (2, 3)
          and re.search(r'inside.py", line \d+, in deeper\n', error.traceback) and type(error.__cause__) is LookupError
          and error.__cause__.args == ("nine is not here",), vars(error) if error else "")
    again = pickle.loads(pickle.dumps(error))
    check("it can be pickled", (again.host, again.rows, str(again)) == (error.host, error.rows, str(error)))
    error = raises("a function that ends the process", RemoteError,
                   rf"^{host}: mapfunc's process failed in row 2: it exited with code 3.*no way out",
                   lambda: Master(["corn10"], ssh=ssh).run(faulty, "die", MATRIX))
    check("that carries host and rows, too", error and error.host == host and error.rows == (2, 3))
    raises("a function that hangs", RemoteError, r"failed in row [0-2]: .*0.5 s",
           lambda: Master(["local"], timeout=0.5).run(faulty, "hang", MATRIX))
    (folder / "relative").symlink_to(sys.executable)
    done = run_python("""
        import shoal
        def one(params, dataset):
            return 1
        shoal.Master(['local'], python='./relative').run(one, None, [1])
    """, cwd=folder)
    check("a Python of this folder is not sent along", "there is no such Python" in done.stderr, done.stderr)
    raises("no such Python", RemoteError, rf"^{host}: .*there is no such Python; .*127",
           lambda: Master(["corn10"], ssh=ssh, python="python9").run(faulty, None, MATRIX))
    bare = folder / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    raises("a Python without numpy", RemoteError, rf"^{host}: ImportError: numpy is not installed for the Python here",
           lambda: Master(["corn10"], ssh=ssh, python=str(bare)).run(faulty, None, MATRIX))
    broken = module_of("broken", "import sys\nif 'shoal_far' in sys.argv[0]:\n    import no_such_module\n"
                       "def mapfunc(params, dataset): return 1\n")
    raises("a module that can't be imported there", RemoteError,
           rf"^{host}: ModuleNotFoundError: No module named 'no_such_module'",
           lambda: Master(["local"]).run(broken, None, [1]))
    helper = module_of("helper", "def twice(x): return 2 * x\n")
    needy = module_of("needy", "import helper\ndef mapfunc(params, dataset): return helper.twice(sum(dataset))\n")
    raises("a module that needs another", RemoteError, "No module named 'helper'",
           lambda: Master(["corn10"], ssh=ssh).run(needy, None, [1, 2]))
    check("which can be sent along", Master(["corn10"], ssh=ssh, send=[helper]).run(needy, None, [1, 2]) == 6)


def test_hosts():
    ssh = make_ssh()
    count = module_of("count", "def mapfunc(params, dataset): return len(dataset)\n")
    raises("no host can be reached", shoal.Error, "^away1: can't be reached: .*Connection refused",
           lambda: Master(["away1"], ssh=ssh).run(count, None, [1]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = Master([RemoteWorker("corn10"), RemoteWorker("away2")], ssh=ssh).run(count, None, list(range(50)))
    check("one host can't be reached: the others do it",
          got == 50 and any(str(w.message).startswith("away2: can't be reached") and w.filename == __file__
                            for w in caught), [str(w.message) for w in caught])
    RemoteWorker("corn10", ssh=ssh).bootstrap()
    raises("bootstrap", shoal.Error, "^away3: can't be reached: ", lambda: RemoteWorker("away3", ssh=ssh).bootstrap())
    names = ("a", "local", "b:3", "a", "local:2", "me@c.d", "slurm:9?time=3", "[::1]:2")
    specs = qjam.worker_specs([RemoteWorker(name) for name in names])
    check("workers of one host together", specs == ["slurm:9?time=3", "local:3", "ssh:a:2,b:3,me@c.d:1,[::1]:2"], specs)
    for name in ("", "-oProxyCommand=x", "a b", "a,b", "a:0", "a:x", "a?x=1", "a;b", "ä", "a\n"):
        raises(f"no host: {name!r}", ValueError, "is not a host", lambda: RemoteWorker(name))
    cases = [("no workers", r"^a Master needs at least one worker$", lambda: Master([])),
             ("two ssh commands", r"^all workers of a Master use one ssh command",
              lambda: Master([RemoteWorker("a", ssh="x")], ssh="y")),
             ("timeout", r"^timeout must be more than 0 seconds", lambda: Master(["a"], timeout=0)),
             ("slice_rows", r"^slice_rows must be a whole number", lambda: Master(["a"], slice_rows=0)),
             ("no mapfunc", r"^module math has no function called mapfunc$",
              lambda: Master(["a"]).run(math, None, [1])),
             ("send", r"^send: /nowhere is not a file$",
              lambda: Master(["a"], send=["/nowhere"]).run(count, None, [1])),
             ("no data set", r"^a data set is needed that has rows", lambda: Master(["a"]).run(count, None, None)),
             ("an empty one", r"^the data set has the shape \(0,\): there is nothing",
              lambda: Master(["a"]).run(count, None, [])),
             ("rows of objects", r"^the data set has values of type object",
              lambda: Master(["a"]).run(count, None, [object()])),
             ("rows that differ", r"^the data set is not an array",
              lambda: Master(["a"]).run(count, None, [[1], [1, 2]]))]
    for what, pattern, call in cases:
        raises(what, ValueError, pattern, call)
    os.environ["SHOAL_PROGRAM"] = "/nowhere/shoal"
    raises("no program", shoal.Error, "^/nowhere/shoal could not be started: No such file",
           lambda: Master(["local"]).run(count, None, [1]))
    os.environ["SHOAL_PROGRAM"] = str(program)


WHO = """
    import os
    import signal

    def mapfunc(params, dataset):
        if params == 'raise':
            raise LookupError('as told')
        if isinstance(params, list) and 0 in dataset and not os.path.exists(params[0]):
            open(params[0], 'w').close()
            os.kill(os.getppid(), signal.SIGKILL)
        return {os.getpid(): os.getppid()}, len(dataset), float(sum(dataset))

    def reduce(results):
        who = {}
        for one, _, _ in results:
            who.update(one)
        return who, sum(rows for _, rows, _ in results), sum(total for _, _, total in results)
"""


def are_gone(who, what):
    pids = {*who, *who.values()}
    wait_until(lambda: all(state(pid) in ("", "Z") for pid in pids), 300, f"the end of workers {what}")


def test_workers_stay():
    who = module_of("who", WHO)
    rows = list(range(100))
    for workers in (["local:2"], ["corn10:2"]):
        master, seen = Master(workers, ssh=make_ssh()), {}
        for params in range(5):
            pids, count, total = master.run(who, params, list(rows))
            seen.update(pids)
            check(f"{workers}: run {params}", (count, total) == (100, 4950.0), (count, total))
        check(f"{workers}: five runs, two processes", len(seen) <= 2, seen)
        raises(f"{workers}: an exception", RemoteError, "LookupError: as told", lambda: master.run(who, "raise", rows))
        other = module_of(f"other_{workers[0][:4]}", WHO.replace("float(sum(dataset))", "1.0"))
        pids, _, total = master.run(other, None, rows)
        check(f"{workers}: another function, after an exception, is run by the same processes",
              total == 100 and pids.keys() <= seen.keys(), (pids, seen, total))
        master.close()
        are_gone(seen, f"that were closed, {workers}")
        check(f"{workers}: a closed Master starts others", master.run(who, None, rows)[1:] == (100, 4950.0))
        last = master.run(who, None, rows)[0]
        del master
        gc.collect()
        are_gone(last, f"of a Master that was collected, {workers}")


def test_rows_that_change():
    """An array that is handed over as it is may change; one that has not is not sent again."""
    who = module_of("who", WHO)
    rows, seen = np.arange(50.0), {}
    with Master("local") as master:
        for _ in range(2):
            seen.update(master.run(who, None, rows)[0])
        check("equal rows stay where they are", len(seen) == 1, seen)
        rows[3] = 1000.0
        check("rows that changed are sent", master.run(who, None, rows)[2] == 50 * 49 / 2 - 3 + 1000)
        check("so are those of another type", master.run(who, None, rows.astype("f4"))[1:] == (50, 2222.0))
        kept = [master.run(who, None, NumpyMatrixDataSet(np.arange(float(n))))[0] for n in range(2, 6)]
        wait_until(lambda: sum(state(pid) not in ("", "Z") for one in kept for pid in one) <= 2, 300,
                   "the end of workers of the data sets that were used first")
    are_gone({**kept[-1], **kept[-2]}, "of a Master that was left")


def test_killed_workers():
    """A worker that dies, in a run or between two, is replaced, and nothing else is seen of it."""
    who = module_of("who", WHO)
    rows = NumpyMatrixDataSet(list(range(200)))
    with Master("local:2") as master:
        check("a worker dies in a run", master.run(who, [str(folder / "killed")], rows)[1:] == (200, 19900.0))
        for pid in set(master.run(who, None, rows)[0].values()):
            os.kill(pid, signal.SIGKILL)
        check("all die between two", master.run(who, None, rows)[1:] == (200, 19900.0))


def test_forked():
    """A process that was forked has no part in the workers of the other, and may have its own."""
    who = module_of("who", WHO)
    rows = NumpyMatrixDataSet(list(range(20)))
    with Master("local") as master:
        before = master.run(who, None, rows)[0]
        child = os.fork()
        if child == 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pids, *rest = master.run(who, None, rows)
            master.close()
            gc.collect()
            os._exit(0 if rest == [20, 190.0] and not pids.keys() & before.keys() else 1)
        check("a forked process runs with workers of its own", os.waitpid(child, 0)[1] == 0)
        check("and leaves the others alone", master.run(who, None, rows)[0] == before)


def test_python_ends():
    """Workers end with Python, however that ends, also in the middle of a run of another thread."""
    ends = {"by itself": "", "by exit": "raise SystemExit(3)", "at once": "os._exit(0)",
            "by a thread's run": "threading.Thread(target=master.run, args=(sleep, 1000, [1]), daemon=True).start()\n"
                                 "time.sleep(0.5)"}
    for how, last in ends.items():
        done = run_python("""
            import os, sys, threading, time
            import shoal
            def who(params, dataset):
                return [os.getpid(), os.getppid()]
            def sleep(params, dataset):
                time.sleep(params)
            master = shoal.Master('local:2')
            print(*master.run(who, None, [1, 2, 3]), flush=True)
""" + textwrap.indent(last, " " * 12))
        said = "shoal._errors.Error: stopped\n" if "thread" in how else ""  # which its own thread raises
        check(f"Python ends {how}", done.stderr.endswith(said) and "Fatal" not in done.stderr
              and bool(done.stderr) == bool(said) and done.returncode == (3 if "exit" == how[3:] else 0), done.stderr)
        pids = list(map(int, done.stdout.split()))
        check(f"Python ends {how}: a run before", len(pids) == 6, done.stdout)
        are_gone(dict(zip(pids, pids)), f"of a Python that ended {how}")
    for left in (folder / "tmp").glob("shoal-qjam*"):  # of the one that was not asked
        shutil.rmtree(left)


STUCK = """
    import os, sys, time
    import shoal
    def stuck(params, dataset):
        open(os.path.join(params, str(os.getpid())), 'w').close()
        time.sleep(1000)
    def count(params, dataset):
        return len(dataset)
    master = shoal.Master([sys.argv[1]], ssh=sys.argv[2])
    try:
        master.run(stuck, sys.argv[3], list(range(8)))
    except KeyboardInterrupt:
        print('interrupted')
        input()
        print('again', master.run(count, None, list(range(8))))
"""


def start_stuck(workers):
    """A run that does not end by itself, and the processes of its functions, as soon as there are some."""
    marks = folder / f"marks{time.monotonic_ns()}"
    marks.mkdir()
    terminal = Terminal(STUCK, workers, make_ssh(), str(marks))
    end = time.monotonic() + 300
    while not any(marks.iterdir()) and time.monotonic() < end:
        terminal.read(0.05)
    check(f"functions have started, {workers}", any(marks.iterdir()), terminal.seen)
    return terminal, lambda: [int(mark.name) for mark in marks.iterdir()]


def wait_for_end(pids, what):
    wait_until(lambda: all(state(pid) in ("", "Z") for pid in pids()), 300, f"the end of the functions of {what}")


def test_control_c_run():
    for workers in ("local:2", "corn10"):
        terminal, pids = start_stuck(workers)
        terminal.type(b"\x03")
        check(f"Ctrl-C ends run, {workers}", terminal.until("interrupted"), terminal.seen)
        wait_for_end(pids, workers)  # while whoever started them is still there
        terminal.type(b"\n")
        check(f"the process goes on, and may run again, {workers}",
              terminal.end() == 0 and re.search(r"again 8\r", terminal.seen), terminal.seen)


def test_signal_of_others():
    """A Ctrl-C that the program does not take for an end ends no workers either."""
    marks, gate = folder / "gate-marks", folder / "gate"
    marks.mkdir()
    gate.touch()
    terminal = Terminal("""
        import os, signal, sys, time
        import shoal
        def wait(params, dataset):
            open(os.path.join(params[0], str(os.getpid())), 'w').close()
            while os.path.exists(params[1]):
                time.sleep(0.01)
            return len(dataset)
        signal.signal(signal.SIGINT, lambda *_: print('noted', flush=True))
        print('got', shoal.Master(['local:2'], verbose=False).run(wait, sys.argv[1:], list(range(8))))
    """, str(marks), str(gate))
    wait_until(lambda: any(marks.iterdir()), 300, "the start of a function")
    terminal.type(b"\x03")
    check("a handler of its own", terminal.until("noted"), terminal.seen)
    gate.unlink()
    check("the run goes on", terminal.until("got 8"), terminal.seen)
    terminal.end()


def test_side_by_side():
    """Several threads of one process run functions at the same time."""
    count = module_of("count_rows", "def mapfunc(params, dataset): return params * len(dataset)\n")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        runs = [pool.submit(Master(["local"]).run, count, i, list(range(40))) for i in range(3)]
        check("runs side by side", [run.result(120) for run in runs] == [0, 40, 80])


def test_killed():
    """Without a terminal, whose end its processes would hear of."""
    marks = folder / "killed-marks"
    marks.mkdir()
    (folder / "stuck.py").write_text(textwrap.dedent(STUCK))
    for workers in ("local", "corn10"):
        process = subprocess.Popen([sys.executable, folder / "stuck.py", workers, make_ssh(), marks],
                                   env={**os.environ, "PYTHONPATH": str(root / "python")}, stdin=subprocess.DEVNULL,
                                   start_new_session=True)
        wait_until(lambda: any(marks.iterdir()), 300, "the start of a function")
        programs = children(process.pid)
        process.kill()
        process.wait(60)
        wait_for_end(lambda: [int(mark.name) for mark in marks.iterdir()] + programs, "a process that was killed")
        for mark in marks.iterdir():
            mark.unlink()
    for left in (folder / "tmp").glob("shoal-qjam*"):  # nobody was there to remove it
        shutil.rmtree(left)


def test_progress_of_run():
    terminal = Terminal("""
        import shoal, time
        def slow(params, dataset):
            time.sleep(0.1)
            return len(dataset)
        print('got', shoal.Master(['local:2'], slice_rows=1).run(slow, None, list(range(60))))
    """)
    check("run on a terminal", terminal.until(r"got 60"), terminal.seen)
    check("its progress", re.search(r"\r\x1b\[K\d+ of 30 parts done, [12] workers?\r", terminal.seen),
          repr(terminal.seen))
    terminal.end()
    book = run_notebook("import shoal, time\nfactor = 3\n"
                        "def slow(params, dataset):\n    time.sleep(0.05)\n    return factor * len(dataset)",
                        "print('got', shoal.Master(['local:2'], slice_rows=1).run(slow, None, list(range(40))))")
    if "No module named 'IPython'" in book.stderr:
        return skipped("run in a notebook", "IPython is not here")
    check("a function of a notebook, with progress",
          re.search(r" False\n(.* True\n)+got 120$", book.stdout.strip()), book.stdout + book.stderr)
    return None


main(dict(globals()))
