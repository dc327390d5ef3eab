#!/usr/bin/env python3
"""Two hundred workers on this machine, far more than it has cores, on one job of tiny slices in a folder.

    test_job_many.py PATH_TO_shoal [WORKERS]

The job ends with the bytes of the threads engine, no request fails, all workers take part and are gone in the end, and
together they take less than 2 GiB of memory, pages that they share counted once.
"""
import filecmp
import json
import os
import subprocess
import sys
import tempfile
import time

from processes import adopt_orphans, children, command, proportional_memory, reap, state, wait_until

SHOAL = os.path.abspath(sys.argv[1])
WORKERS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
WORK = [
    "kmeans", "gen:uniform?rows=400&cols=2&seed=1", "-k", "8", "--init", "random", "--grain", "2", "--iterations", "20",
    "--tolerance", "0", "--runs", "2", "--quiet"
]
MEMORY_MOST = 2 << 30


def files(folder, name):
    return ["--centres", f"{folder}/{name}.npy", "--labels", f"{folder}/{name}.labels.npy"]


def watch(starter):
    """The most memory that all had at a time, and how many they were."""
    most = count = 0
    while starter.poll() is None:
        below = children(starter.pid)
        most = max(most, sum(map(proportional_memory, [starter.pid, *below])))
        count = max(count, len(below))
        time.sleep(0.5)
    return most, count


def left_workers():
    for pid in children(os.getpid()):
        if state(pid) == "Z":
            reap(pid)
    return [pid for pid in children(os.getpid()) if command(pid)[1:2] == ["worker"]]


def main():
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="shoal-many-") as folder:
        store = f"dir:{folder}/store"
        subprocess.run([SHOAL, *WORK, *files(folder, "expected")], check=True)
        starter = subprocess.Popen([
            SHOAL, *WORK, *files(folder, "found"), "--store", store, "--workers", f"local:{WORKERS}", "--threads", "1",
            "--slices",
            str(min(WORKERS, 200))
        ], stdin=subprocess.DEVNULL)
        memory, count = watch(starter)
        assert starter.returncode == 0, f"exits {starter.returncode}"
        wait_until(lambda: not left_workers(), 300, "all workers are gone")
        shown = subprocess.run([SHOAL, "job", "show", "--json", "--store", store], capture_output=True, check=True)
        about = json.loads(shown.stdout)
        text = subprocess.run([SHOAL, "job", "show", "--store", store], capture_output=True, text=True,
                              check=True).stdout
        assert f"0 active, {about['left']} gone; --workers shows each of them" in text, text
        text = subprocess.run([SHOAL, "job", "show", "--workers", "--store", store], capture_output=True, text=True,
                              check=True).stdout
        assert text.count(" done\n") >= WORKERS and "slots: threads" in text, text
        print(f"{count} workers, {memory >> 20} MiB, {about['round']} rounds in {about['seconds']:.1f} s, "
              f"{about['requests']['all']} requests, {about['requests']['again']} of them again")
        for name in (".npy", ".labels.npy"):
            assert filecmp.cmp(f"{folder}/found{name}", f"{folder}/expected{name}", shallow=False), f"{name} differs"
        assert memory < MEMORY_MOST, f"{memory} bytes"
        assert about["requests"]["again"] == 0, about["requests"]
        assert len(about["worker"]) >= WORKERS and sum(worker["mapped"] > 0
                                                       for worker in about["worker"]) > WORKERS / 2, (
                                                           "few workers took part")


main()
