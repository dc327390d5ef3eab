#!/usr/bin/env python3
# Seconds: 50
"""What goes wrong around a job while it runs: rows that change, a store that is full, a server that is away.

    test_job_troubles.py PATH_TO_shoal

Whatever it is, the job ends with a sentence that says so and can go on once the trouble is over, with the bytes of the
threads engine; or it waits, where waiting helps.  What needs a small disk or Azurite is left out where those can't be
had.
"""
import contextlib
import filecmp
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import azurite
from processes import adopt_orphans, children, command, reap, state, wait_until

SHOAL = os.path.abspath(sys.argv[1])
WORK = ["-k", "30", "--iterations", "100", "--tolerance", "0", "--runs", "3"]
SOON = 300  # seconds within which anything happens, on a busy machine


class Job:
    """A job of three workers, with files of its own in a folder."""

    def __init__(self, folder, store, data, work=WORK, variables=None):
        self.folder, self.store, self.work = folder, store, [data, *work]
        self.environment = {**os.environ, **(variables or {}), "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache",
                            "XDG_STATE_HOME": f"{folder}/state"}
        self.run("kmeans", *self.work, "--quiet", "--centres", f"{folder}/expected.npy", "--labels",
                 f"{folder}/expected.labels.npy")

    def run(self, *words, check=True):
        done = subprocess.run([SHOAL, *words], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=2 * SOON)
        assert not check or done.returncode == 0, f"shoal {' '.join(words)} exits {done.returncode}: {done.stderr}"
        return done

    def start(self, patience=SOON):
        words = ["kmeans", *self.work, "--store", self.store, "--workers", "local:3", "--lease", "2", "--quiet",
                 "--patience", str(patience), "--centres", f"{self.folder}/found.npy", "--labels",
                 f"{self.folder}/found.labels.npy"]
        self.process = subprocess.Popen([SHOAL, *words], env=self.environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def show(self):
        shown = self.run("job", "show", "--json", "--store", self.store, check=False)
        return json.loads(shown.stdout) if shown.returncode == 0 else None

    def wait_for_round(self, number):
        def there():
            assert self.process.poll(
            ) is None, f"ended early with {self.process.returncode}: {self.process.stderr.read()}"
            about = self.show()
            return about and about["round"] >= number
        wait_until(there, SOON, f"round {number}")

    def ends(self, code, *sentences):
        said = self.process.communicate(timeout=2 * SOON)[1]
        if self.process.returncode != code or not all(sentence in said for sentence in sentences):
            told = "".join(
                self.run("job", verb, "--store", self.store, check=False).stdout for verb in ("show", "logs"))
            raise AssertionError(f"exits {self.process.returncode}, not {code} with {sentences}: {said}\n{told}")

    def agrees(self):
        for name in (".npy", ".labels.npy"):
            assert filecmp.cmp(f"{self.folder}/found{name}", f"{self.folder}/expected{name}", shallow=False), name

    def resumes(self):
        self.run("job", "resume", "--store", self.store, "--workers", "local:2", "--quiet")
        self.agrees()


# ---- troubles -------------------------------------------------------------------------------------------------------


def rows_change(folder):
    """The file is written anew, with other rows, under the workers; later it is as it was."""
    data = f"{folder}/rows.npy"
    subprocess.run([SHOAL, "data", "convert", "gen:uniform?rows=20000&cols=16&seed=3", data], check=True)
    shutil.copy(data, f"{folder}/as-it-was.npy")
    job = Job(folder, f"dir:{folder}/store", data)
    job.start()
    job.wait_for_round(5)
    with open(data, "r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(bytes(4096))
    job.ends(1, "rows.npy", "changed")
    assert not os.path.exists(f"{folder}/found.npy"), "centres of rows that changed"
    shutil.copy(f"{folder}/as-it-was.npy", data)
    job.resumes()


def store_fills_up(folder):
    """The disk has no room left for a while.  Needs a disk of its own, which a process that may mount can make."""
    disk = f"{folder}/disk"
    os.mkdir(disk)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", disk], capture_output=True).returncode != 0:
        return "this process may not mount a small disk"
    try:
        job = Job(folder, f"dir:{disk}/store", "gen:uniform?rows=20000&cols=16&seed=3")
        job.start(patience=8)
        job.wait_for_round(5)
        with contextlib.suppress(OSError), open(f"{disk}/filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        job.ends(3, "shoal job resume")
        os.unlink(f"{disk}/filler")
        job.resumes()
    finally:
        wait_until(lambda: not workers(), SOON, "all workers are gone")
        subprocess.run(["umount", disk], check=True)
    return None


def server_is_away(folder):
    """Azurite stops and is back ten seconds later: all wait for it."""
    if azurite.PROGRAM is None:
        return "Azurite is not installed (./dev deps test)"
    with azurite.Server(folder, "azurite") as server:
        server.wait()
        work = ["-k", "10", "--init", "random", "--iterations", "30", "--tolerance", "0", "--runs", "2"]
        job = Job(folder, f"az://{azurite.ACCOUNT}/away", "gen:uniform?rows=4000&cols=8&seed=3", work,
                  server.variables())
        job.run("store", "put", "--create", "--quiet", "-", f"{job.store}/first")
        job.start()
        job.wait_for_round(3)
        server.stop()
        time.sleep(10)
        server.start()
        job.ends(0)
        job.agrees()
    return None


# ---- all of them ----------------------------------------------------------------------------------------------------


def workers():
    found = []
    for pid in children(os.getpid()):
        if state(pid) == "Z":
            reap(pid)
        elif command(pid)[1:2] == ["worker"]:
            found.append(pid)
    return found


def main():
    adopt_orphans()
    for trouble in (rows_change, store_fills_up, server_is_away):
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="shoal-troubles-") as folder:
            try:
                left_out = trouble(folder)
                wait_until(lambda: not workers(), SOON, "all workers are gone")
            finally:
                for pid in workers():
                    print(f"still there: {' '.join(command(pid))}")
                    os.kill(pid, signal.SIGKILL)
        print(f"{trouble.__name__}: " + (f"left out: {left_out}" if left_out else f"{time.monotonic() - began:.1f} s"),
              flush=True)


main()
