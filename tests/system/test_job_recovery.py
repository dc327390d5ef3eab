#!/usr/bin/env python3
# Seconds: 45
"""How soon a job in Azurite is back at its pace when a disturbance has ended: its rounds before that are measured
against those after it, in the same run.  Skipped (77) where Azurite is not installed.

    test_job_recovery.py PATH_TO_shoal [--seed N]
"""
import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time

import azurite
import chaos
from processes import adopt_orphans, wait_until

WORKERS = 4
BEFORE, AFTER = 25, 12  # rounds that are measured
TO_RECOVER = 5  # rounds after the disturbance that may take as long as they like
STOPPED, STOPS = 2.5, 7  # seconds that a worker is stopped, one after the other
LEASE = 10.0  # longer than that, so that the others wait for it
WORK = ["gen:uniform?rows=100000&cols=1&seed=6", "-k", "60", "--init", "random", "--iterations", "5000",
        "--tolerance", "0"]
SLOWER_MOST = 3  # a busy machine may slow down any of the two


def show(made):
    shown = made.run("job", "show", made.job, "--json", "--store", made.url, check=False)
    return json.loads(shown.stdout) if shown.returncode == 0 else {}


def await_round(made, number):
    """The time at which the job has come to that round, and the round that it is in then."""
    def is_there():
        assert made.starter.poll() is None, f"the job ends too early: {made.starter.returncode}"
        return show(made).get("round", 0) >= number
    wait_until(is_there, 240, f"round {number}")
    return time.monotonic(), show(made)["round"]


def measure(made, first, rounds):
    """Seconds of a round, from that round on."""
    began, start = await_round(made, first)
    ended, end = await_round(made, start + rounds)
    return (ended - began) / (end - start)


def disturb(made, chance):
    """One worker is killed, and another comes; then one after the other is stopped, for longer than rounds take.
    Seconds that a round takes meanwhile, and the round at the end."""
    began, first = time.monotonic(), show(made)["round"]
    killed = chance.choice(made.workers())
    made.note(f"worker {killed} is killed")
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: killed not in made.workers(), 10, "the worker that was killed is gone")
    made.join_worker(chance)
    for _ in range(STOPS):
        pid = chance.choice(made.workers())
        made.note(f"worker {pid} is stopped")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STOPPED)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)
    number = show(made)["round"]
    return (time.monotonic() - began) / max(1, number - first), number


def recover(made, seed):
    made.begin(1)
    before = measure(made, 10, BEFORE)
    within, number = disturb(made, random.Random(seed))
    after = measure(made, number + TO_RECOVER, AFTER)
    print(f"a round takes {before:.3f} s; {within:.2f} s in the disturbance; {after:.3f} s when {TO_RECOVER} rounds "
          "have passed")
    assert after <= SLOWER_MOST * before, f"rounds take {after / before:.1f} times as long as before the disturbance"
    made.run("job", "cancel", made.job, "--store", made.url)
    assert made.starter.wait(60) == 3, "who started a cancelled job says that it can go on"
    made.starter = None
    made.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal", type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if azurite.PROGRAM is None:
        print("SKIPPED: Azurite is not installed (./dev deps test)")
        sys.exit(77)
    adopt_orphans()
    chaos.WORKERS = chaos.ENOUGH_WORKERS = WORKERS
    chaos.LEASE = LEASE
    with tempfile.TemporaryDirectory(prefix="shoal-recovery-") as folder, azurite.Server(folder, "azurite") as server:
        made = chaos.Chaos(options.shoal, folder, f"az://{azurite.ACCOUNT}/recovery", server.variables(), WORK)
        server.wait()
        made.run("store", "put", "--create", "--quiet", "-", f"{made.url}/first")
        try:
            recover(made, options.seed)
        except BaseException:
            made.explain()
            made.end_by_force()
            raise


main()
