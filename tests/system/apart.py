"""Tests of one file that run apart from each other: each in a process and an empty folder of its own, several at a
time.

    @apart.test
    def something_works(): ...

    apart.main(at_once=6)    # the last line; runs the tests that the command line names behind the program, or all

A test fails by an exception, and is left out by apart.Skipped.  Whatever it started in its folder is killed when it
ends."""
import concurrent.futures
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import nobody  # so that no run is in the history of whoever runs this

sys.dont_write_bytecode = True
TESTS = []


class Skipped(Exception):
    pass


def test(function):
    TESTS.append(function)
    return function


def stop_strays(folder):
    """Ends processes whose current folder is the test's, or below it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            place = os.readlink(f"/proc/{pid}/cwd")
            if (place == folder or place.startswith(folder + "/")) and int(pid) != os.getpid():
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


def run_here(function):
    """Runs one test in a folder that is gone afterwards."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="shoal-test-"))
    os.chdir(folder)
    os.environ.update(XDG_STATE_HOME=f"{folder}/state", XDG_CACHE_HOME=f"{folder}/cache",
                      XDG_CONFIG_HOME=f"{folder}/config")
    began = time.monotonic()
    try:
        function()
        print(f"passed {function.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        return True
    except Skipped as why:
        print(f"SKIPPED {function.__name__}: {why}", flush=True)
        return True
    except Exception:
        print(f"FAILED {function.__name__}", flush=True)
        traceback.print_exc()
        return False
    finally:
        stop_strays(folder)
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def run_apart(name):
    command = [sys.executable, os.path.abspath(sys.argv[0]), os.path.abspath(sys.argv[1]), name]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end="", flush=True)
    return done.returncode == 0


def main(at_once):
    chosen = [function for function in TESTS if not sys.argv[2:] or function.__name__ in sys.argv[2:]]
    if len(chosen) == 1:
        sys.exit(0 if run_here(chosen[0]) else 1)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        sys.exit(0 if all(list(pool.map(run_apart, [function.__name__ for function in chosen]))) else 1)
