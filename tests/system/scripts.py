"""What the tests of the Python package share: a place of their own, checks, and scripts that use the package, run to
their end, on a terminal, or as cells of a notebook.

Called with the program's path; libshoal.so is taken from beside it.  Importing this ends the test with 77 where it
can't run."""
import gc
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback

import nobody  # so that no run is in the history of whoever runs this

sys.dont_write_bytecode = True
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
except ImportError:
    print("python3-numpy is not here: skipped")
    sys.exit(77)

program = pathlib.Path(sys.argv[1]).resolve()
root = pathlib.Path(__file__).resolve().parents[2]
if not (program.parent / "libshoal.so").exists():
    print("libshoal.so is not beside the program: skipped")
    sys.exit(77)
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-python-"))
temporary = folder / "tmp"  # what the package leaves behind would lie here
for name in ("tmp", "home", "hosts", "bin"):
    (folder / name).mkdir()
(folder / "bin" / "python3").symlink_to(sys.executable)  # the hosts' python3 is the one that has numpy
for name in ("SHOAL_SSH", "XDG_CACHE_HOME", "XDG_STATE_HOME", "PYTHONPATH"):
    os.environ.pop(name, None)
os.environ.update(SHOAL_LIBRARY=str(program.parent / "libshoal.so"), SHOAL_PROGRAM=str(program),
                  HOME=str(folder / "home"), TMPDIR=str(temporary), PYTHONDONTWRITEBYTECODE="1",
                  PATH=f"{folder / 'bin'}:{os.environ['PATH']}")
tempfile.tempdir = None
sys.path.insert(0, str(root / "python"))

passed = failed = 0


def check(what, condition, more=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what} {more}", flush=True)
    return condition


def raises(what, kind, pattern, call):
    """Checks that the call raises one sentence of that kind, and returns the exception."""
    try:
        value = call()
    except BaseException as error:
        check(what, type(error) is kind and re.search(pattern, str(error)), f"{type(error).__name__}: {error}")
        return error
    check(what, False, f"nothing was raised; it returned {value!r:.100}")
    return None


def skipped(what, why):
    print(f"SKIPPED {what}: {why}", flush=True)


def random_rows(rows, columns, type_="f8", seed=0):
    values = np.random.default_rng(seed).normal(size=(rows, columns)) + np.arange(rows)[:, None] % 7 * 3
    if np.dtype(type_).kind == "b":
        return values > 9
    return values.astype(type_) if np.dtype(type_).kind == "f" else (values * 5 + 60).clip(0, 120).astype(type_)


def run_python(text, *words, cwd=None, **more):
    """A Python of its own with the package in its path, in the folder `cwd` and with `more` in its environment."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(text))
    environment = {**os.environ, "PYTHONPATH": str(root / "python"), **more}
    return subprocess.run([sys.executable, str(path), *words], capture_output=True, text=True, timeout=120,
                          env=environment, cwd=cwd)


class Terminal:
    """A Python script on a terminal of its own, where Ctrl-C can be pressed."""
    opened = []

    def __init__(self, text, *words):
        path = folder / f"terminal{time.monotonic_ns()}.py"
        path.write_text(textwrap.dedent(text))
        self.seen, self.ended = "", False
        Terminal.opened.append(self)
        self.pid, self.side = pty.fork()
        if self.pid == 0:
            os.environ["PYTHONPATH"] = str(root / "python")
            os.execv(sys.executable, [sys.executable, str(path), *words])

    def until(self, pattern, seconds=60):
        """Reads until it has shown that; whether it did."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            if time.monotonic() > end or not self.read(end - time.monotonic()):
                return bool(re.search(pattern, self.seen))
        return True

    def read(self, seconds):
        if not select.select([self.side], [], [], max(seconds, 0))[0]:
            return False
        try:
            data = os.read(self.side, 65536)
        except OSError:
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)

    def type(self, keys):
        """Ctrl-C is byte 3."""
        os.write(self.side, keys)

    def end(self, seconds=60):
        """Its exit code, once it has ended by itself; it is killed when it does not."""
        self.until("(?!)", seconds)
        if self.ended:
            return None
        self.ended, killed = True, not self.has_ended(10)
        if killed:
            os.kill(self.pid, signal.SIGKILL)
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.side)
        return "killed by the test" if killed else os.waitstatus_to_exitcode(status)

    def has_ended(self, seconds):
        end = time.monotonic() + seconds
        while not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True


def run_notebook(*cells):
    """Cells in a shell that is no terminal; prints what they show, and whether it is an update of what was shown
    before."""
    return run_python(f"""
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.utils.capture import capture_output
        shell = InteractiveShell.instance()
        with capture_output() as caught:
            for cell in {cells!r}:
                shell.run_cell(cell)
        for output in caught.outputs:
            print(output.data['text/plain'], bool(output.update))
        print(caught.stdout.strip())
    """)


FAKE_SSH = """#!/bin/sh
# Reaches "hosts" that are this machine, each with a home of its own; those called away are not there.
while [ $# -gt 0 ]; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done
host=$1
shift
case $host in
away*) echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255 ;;
esac
HOME=%s/$host
export HOME
mkdir -p "$HOME" && cd "$HOME" && exec sh -c "$*"
"""


def make_ssh():
    path = folder / "ssh"
    path.write_text(FAKE_SSH % (folder / "hosts"))
    path.chmod(0o755)
    return str(path)


def main(names):
    """Runs the functions of a test whose names start with test_; words behind the program's path choose some of
    them."""
    wanted = sys.argv[2:]
    try:
        for name, test in names.items():
            if not name.startswith("test_") or (wanted and name not in wanted):
                continue
            started = time.monotonic()
            try:
                test()
            except Exception as error:  # of the test itself; the others still tell something
                traceback.print_exc()
                check(name, False, error)
            if wanted:
                print(f"{name} {time.monotonic() - started:.1f} s")
        gc.collect()
        left = [path.name for path in temporary.iterdir() if path.name.startswith("shoal-qjam")]
        check("nothing is left behind", not left, left)
    finally:
        for terminal in Terminal.opened:
            if not terminal.ended:
                terminal.end(0)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
