#!/usr/bin/python3
# Seconds: 40
# The Python package: shoal.Executor, functions on workers as concurrent.futures has them.
#   test_python_executor.py PATH_TO_shoal [TEST...]
# Hosts are reached by a stand-in for ssh that runs the command here.  Prints one line for each failure and
# "N passed, M failed" at the end.
import concurrent.futures
import functools
import gc
import operator
import os
import pathlib
import pickle
import re
import shutil
import signal
import sys
import textwrap
import threading
import time
import warnings

from processes import children
from scripts import check, folder, main, make_ssh, raises, run_python, skipped

import numpy as np
import shoal
from shoal import RemoteError

try:
    import cloudpickle
except ImportError:
    cloudpickle = None

(folder / "modules").mkdir()
MODULES = str(folder / "modules")
sys.path.insert(0, MODULES)
(folder / "modules" / "beside.py").write_text("FACTOR = 3\n")
(folder / "modules" / "functions.py").write_text(textwrap.dedent("""
    import os
    import signal
    import sys
    import threading
    import time


    def add(a, b=1):
        return a + b


    def process(_=None):
        return os.getpid()


    def fail(text):
        raise LookupError(text)


    class Odd(Exception):
        def __init__(self, a, b):
            super().__init__("odd")


    def fail_oddly():
        raise Odd(1, 2)


    def end(how):
        if how == "exit":
            sys.exit(4)
        if how == "_exit":
            os._exit(5)
        os.kill(os.getpid(), signal.SIGKILL)


    def fork():
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        return "the parent" if child else "the child"


    def flood():
        os.write(1, b"this goes to standard error\\n")
        for _ in range(1 << 10):
            os.write(2, b"x" * (1 << 16))
        return "done"


    def wait_for(path):
        while not os.path.exists(path):
            time.sleep(0.005)
        return os.getpid()


    def forever(path):
        open(path, "w").write(str(os.getpid()))
        time.sleep(1000)


    def lock():
        return threading.Lock()


    def too_much():
        return bytes(1 << 50)


    def nested(executor):
        return sum(executor.map(add, range(5))) + executor.submit(add, 100).result()


    def total(array, *more):
        return float(array.sum()) + sum(float(one.sum()) for one in more), array.flags.writeable


    def scaled(a):
        import beside
        return a * beside.FACTOR, os.environ.get("HOME")
"""))
import functions  # noqa: E402


def becomes(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def large_blobs(store):
    return [path for path in (pathlib.Path(store) / "bodies").iterdir() if path.stat().st_size > 900_000]


def test_results():
    with shoal.Executor("local:2") as executor:
        check("a call", executor.submit(functions.add, 1, b=2).result(60) == 3)
        check("map keeps the order", list(executor.map(functions.add, range(500))) == list(range(1, 501)))
        check("map in chunks", list(executor.map(operator.mul, range(100), range(100), chunksize=7))
              == [i * i for i in range(100)])
        check("map over nothing", list(executor.map(functions.add, [])) == [])
        check("two processes do it", len(set(executor.map(functions.process, range(300)))) <= 2)
        futures = [executor.submit(functions.add, i) for i in range(20)]
        done = {future.result() for future in concurrent.futures.as_completed(futures, 60)}
        check("as_completed", done == set(range(1, 21)), done)
        check("wait", not concurrent.futures.wait(futures, 60).not_done)
        big = np.arange(3_000_000)
        check("a large result", np.array_equal(executor.submit(np.add, big, 1).result(60), big + 1))
        check("a partial", executor.submit(functools.partial(functions.add, 5), b=6).result(60) == 11)
        check("a method", executor.submit("a-b".split, "-").result(60) == ["a", "b"])
        raises("chunks of nothing", ValueError, "chunksize must be >= 1", lambda: executor.map(abs, [1], chunksize=0))
        late = executor.map(functions.wait_for, [str(folder / "never")], timeout=0.2)
        raises("map's timeout", concurrent.futures.TimeoutError, "", lambda: next(late))
        told = []
        executor.submit(functions.add, 1).add_done_callback(lambda future: told.append(future.result()))
        check("a callback", becomes(lambda: told == [2]), told)
    raises("after shutdown", RuntimeError, "after shutdown", lambda: executor.submit(abs, 1))
    executor.shutdown()
    check("no worker is left", becomes(lambda: not children(os.getpid())))


def test_exceptions():
    with shoal.Executor("local:1") as executor:
        error = raises("an exception", LookupError, "^'?nothing", lambda: executor.submit(functions.fail,
                                                                                         "nothing").result(60))
        cause = error.__cause__
        check("its cause", type(cause) is RemoteError and cause.host and 'functions.py", line' in cause.traceback
              and "raise LookupError(text)" in cause.traceback and "_far_tasks" not in cause.traceback[60:], cause)
        error = raises("one that can't be read", RemoteError, "Odd: odd", lambda: executor.submit(
            functions.fail_oddly).result(60))
        check("has no cause", error.__cause__ is None and "raise Odd(1, 2)" in error.traceback)
        error = raises("in map", LookupError, "x", lambda: list(executor.map(functions.fail, "xyz")))
        for how, said in (("exit", "SystemExit: 4"), ("_exit", "its process failed: it exited with code 5"),
                          ("kill", r"its process failed: it was killed by signal 9")):
            raises(f"a function that ends its process: {how}", RemoteError, said,
                   lambda how=how: executor.submit(functions.end, how).result(60))
        check("one that forks", executor.submit(functions.fork).result(60) == "the parent")
        check("one that floods", executor.submit(functions.flood).result(60) == "done")
        raises("what can't be pickled", TypeError, r"what lock returned can't be pickled: .*lock", lambda:
               executor.submit(functions.lock).result(60))
        raises("more than there is memory for", MemoryError, "", lambda: executor.submit(functions.too_much).result(60))
        raises("an argument", ValueError, "the arguments can't be sent to workers: .*lock", lambda: executor.submit(
            functions.add, threading.Lock()))
        raises("no function", TypeError, "a function is needed, not 3", lambda: executor.submit(3))
        check("goes on", executor.submit(functions.add, 1).result(60) == 2)
        check("an Executor is used in place", executor.submit(functions.nested, executor).result(60) == 116)
        raises("and pickled for nothing else", RuntimeError, "can't be pickled otherwise", lambda: pickle.loads(
            pickle.dumps(executor)))


def test_cancelling():
    path = folder / "runs"
    with shoal.Executor("local:1") as executor:
        running = executor.submit(functions.forever, str(path))
        behind = executor.submit(functions.add, 1)
        check("it runs", becomes(lambda: path.exists() and path.read_text()))
        process = int(path.read_text())
        check("what runs is cancelled", running.cancel() and running.cancelled())
        check("and its process ended", becomes(lambda: not pathlib.Path(f"/proc/{process}").exists(), 20))
        check("what is behind it runs", behind.result(60) == 2)
        check("what is done is not cancelled", not behind.cancel() and behind.result() == 2)
        raises("its result", concurrent.futures.CancelledError, "", running.result)
        futures = [executor.submit(functions.wait_for, str(folder / "go")) for _ in range(10)]
        check("one of many", futures[5].cancel())
        (folder / "go").touch()
        done = concurrent.futures.wait(futures, 60)
        check("the others", not done.not_done and sum(future.cancelled() for future in futures) == 1)
        path.unlink()
        futures = [executor.submit(functions.forever, str(path)) for _ in range(3)]
        executor.shutdown(cancel_futures=True)
        check("shutdown cancels", all(future.cancelled() for future in futures))
    with shoal.Executor("local:1", timeout=0.3) as executor:
        raises("a task that takes too long", RemoteError, r"the function took longer than 0\.3 seconds",
               lambda: executor.submit(functions.forever, str(path)).result(60))
        check("the next one", executor.submit(functions.add, 1).result(60) == 2)


def test_arrays():
    store = folder / "arrays"
    rows = np.random.default_rng(0).normal(size=(300, 400))
    with shoal.Executor("local:2", store=str(store)) as executor:
        futures = [executor.submit(functions.total, rows, np.full(3, i)) for i in range(30)]
        results = [future.result(60) for future in futures]
        check("results", results == [(rows.sum() + 3 * i, False) for i in range(30)])
        check("an array goes with its last task", becomes(lambda: not large_blobs(store)), large_blobs(store))
        gate = folder / "gate"
        waiting = [executor.submit(functions.wait_for, str(gate)) for _ in range(2)]
        behind = [executor.submit(functions.total, rows, np.full(3, i)) for i in range(30)]
        check("it is there once for all that have it", len(large_blobs(store)) == 1, large_blobs(store))
        gate.touch()
        check("they run", all(future.result(60) for future in waiting + behind))
        for name, array in (("Fortran", np.asfortranarray(rows)), ("strides", rows[::2, ::3]), ("none", rows[:0]),
                            ("text", np.array(["a" * 30] * 3000)), ("big-endian", rows.astype(">f8"))):
            check(f"an array, {name}", np.array_equal(executor.submit(np.copy, array).result(60), array))
        many = [np.full(10_000, i, "f8") for i in range(130)]
        check("more than there can be files", executor.submit(functions.total, *many).result(60)[0]
              == sum(range(130)) * 10_000)
    check("nothing is left", not [path for path in store.rglob("*") if path.is_file() and "/jobs/" in str(path)],
          list(store.rglob("*")))


def test_main_program():
    text = """
        import sys, shoal
        if {without}:
            sys.modules["cloudpickle"] = None
        sys.path.insert(0, {modules!r})
        import functions
        class Mine(Exception):
            pass
        def fail(x):
            raise Mine(x)
        def twice(x):
            return factor * x
        factor = 2
        with shoal.Executor("local:1") as executor:
            print(executor.submit(functions.add, 1).result())
            for function in twice, lambda x: x + factor, fail:
                try:
                    print(executor.submit(function, 5).result())
                except Mine as error:
                    print("Mine", error)
                except ValueError as error:
                    print(error)
    """
    done = run_python(text.format(without=True, modules=MODULES))
    lines = done.stdout.splitlines()
    check("without cloudpickle", lines[:1] == ["2"] and len(lines) == 4 and lines[1].startswith(
        "twice stands in the main program, and cloudpickle, which could send it, is not installed: put it into a module"
    ) and lines[2].startswith("<lambda> has no name that a worker could find it by, and cloudpickle"),
          done.stdout + done.stderr)
    if cloudpickle is None:
        return skipped("functions of the main program", "cloudpickle is not here")
    done = run_python(text.format(without=False, modules=MODULES))
    check("functions of the main program", done.stdout.split("\n") == ["2", "10", "7", "Mine 5", ""],
          done.stdout + done.stderr)
    return None


def test_hosts():
    with shoal.Executor("ssh:corn10:1,corn11:1", ssh=make_ssh(), send=[folder / "modules" / "beside.py"]) as executor:
        values = list(executor.map(functions.scaled, range(40)))
        check("a module is brought", [value for value, _ in values] == [3 * i for i in range(40)], values[:2])
        if cloudpickle is not None:
            check("a lambda", executor.submit(lambda: 5).result(60) == 5)
    raises("what can't be sent", ValueError, "send: .*none.txt is neither a module nor a file", lambda: shoal.Executor(
        "ssh:corn10", ssh=make_ssh(), send=[folder / "none.txt"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with shoal.Executor("ssh:corn10", ssh="false") as executor:
            raises("a host that can't be reached", shoal.executor.BrokenExecutor, "corn10", lambda: executor.submit(
                abs, 1).result(60))


def test_pythons():
    other = folder / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import sys\nsys.version_info = (3, 7, 3, 'final', 0)\n")
    (folder / "python37").write_text(f"#!/bin/sh\nPYTHONPATH={other} exec {sys.executable} \"$@\"\n")
    (folder / "python37").chmod(0o755)
    begun = folder / "begun"
    here = "%d.%d" % sys.version_info[:2]
    said = rf"^{re.escape(os.uname().nodename)} has Python 3\.7 \(.*\), but the tasks are those of Python {here}: "
    with shoal.Executor("local:2", python=str(folder / "python37")) as executor:
        calls = [lambda: executor.submit(functions.forever, str(begun)).result(60)] * 2
        sentences = {str(raises("another version", shoal.executor.BrokenExecutor, said, call)) for call in calls}
        raises("the executor is broken", shoal.executor.BrokenExecutor, said, lambda: executor.submit(abs, 1))
        check("in one sentence", len(sentences) == 1 and not begun.exists(), sentences)
    with shoal.Executor("local:2", python=str(folder / "python37")) as executor:
        raises("all that waits", shoal.executor.BrokenExecutor, said, lambda: list(executor.map(abs, range(200))))
    with shoal.Executor("local:1", python=str(folder / "no-python")) as executor:
        raises("no such Python", RemoteError, "there is no such Python", lambda: executor.submit(abs, 1).result(60))
    raises("no such worker", ValueError, "'cloud:3' is not one of", lambda: shoal.Executor("cloud:3"))
    raises("none", ValueError, "max_workers must be 1 or more, not 0", lambda: shoal.Executor(max_workers=0))
    raises("both", ValueError, "max_workers counts processes of this machine", lambda: shoal.Executor("local:2", 2))
    raises("timeout", ValueError, "timeout must be more than 0 seconds", lambda: shoal.Executor(timeout=0))


def test_deaths():
    gate, marks = folder / "later", folder / "marks"
    marks.mkdir()
    with shoal.Executor("local:2") as executor:
        check("ready", list(executor.map(functions.add, range(10))) == list(range(1, 11)))
        futures = [executor.submit(functions.wait_for, str(gate)) for _ in range(6)]
        workers = [process for process in children(os.getpid())
                   if b"worker" in pathlib.Path(f"/proc/{process}/cmdline").read_bytes()]
        check("two workers", len(workers) == 2, workers)
        os.kill(workers[0], signal.SIGKILL)
        gate.touch()
        check("a worker that dies changes nothing", not concurrent.futures.wait(futures, 60).not_done
              and all(future.result() for future in futures))
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if isinstance(raised(lambda: executor.submit(abs, 1)), RuntimeError) else 1)
        finally:
            os._exit(2)
    check("a forked process is told", os.waitpid(child, 0)[1] == 0)


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    return None


def test_ends():
    text = """
        import os, sys, time, shoal
        sys.path.insert(0, {modules!r})
        import functions
        executor = shoal.Executor("local:2")
        futures = [executor.submit(functions.add, i) for i in range(50)]
        {rest}
    """
    done = run_python(text.format(modules=MODULES, rest="futures[-1].add_done_callback(lambda f: print(f.result()))"))
    check("a program that ends waits for its tasks", done.stdout == "50\n" and done.returncode == 0,
          done.stdout + done.stderr)
    kill = "pids = set(executor.map(functions.process, range(50))); print(*pids, flush=True); os.kill(os.getpid(), 9)"
    done = run_python(text.format(modules=MODULES, rest=kill))
    pids = [int(word) for word in done.stdout.split()]
    check("processes end with a program that is killed", pids and becomes(
        lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids), 20), pids)
    for left in (folder / "tmp").glob("shoal-qjam*"):  # nobody was there to remove it
        shutil.rmtree(left)
    executor = shoal.Executor("local:1")
    check("it works", executor.submit(functions.add, 1).result(60) == 2)
    del executor
    gc.collect()
    check("one that nobody has is closed", becomes(lambda: not children(os.getpid())))


main(dict(globals()))
