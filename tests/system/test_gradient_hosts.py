#!/usr/bin/env python3
"""Learners that go down a gradient, on workers behind ssh: the model is that of one thread, byte by byte, also when a
host fails.

    test_gradient_hosts.py PATH_TO_shoal

Needs root and sshd (hosts.py); skipped (77) elsewhere.
"""
import filecmp
import json
import os
import subprocess
import sys
import tempfile
import time

import far_jobs
import hosts
from gradient_work import LEARNERS, make_data, rounds
from processes import command, wait_until

SHOAL = os.path.abspath(sys.argv[1])


def start(folder, *words):
    return subprocess.Popen([SHOAL, *map(str, words)], cwd=folder, env={**os.environ, "HOME": folder},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(folder, *words):
    process = start(folder, *words)
    out, err = process.communicate(timeout=far_jobs.SOON)
    assert process.returncode == 0, f"{words} exits {process.returncode}: {err}"
    return out


def rounds_done(folder):
    jobs = run(folder, "job", "list", "--json", "--store", "st") if os.path.exists(f"{folder}/st/shoal-store") else ""
    return max((json.loads(line)["round"] for line in jobs.splitlines()), default=0)


def agrees(folder, learner, far, happens=None):
    """Has a job done by three workers on two hosts, to which something may happen on the way."""
    work = [*LEARNERS[learner], *(rounds(learner, 600) if happens else [])]
    run(folder, learner, *work, "--model", "expected.safetensors", "--quiet", "--force", "--threads", 1)
    job = start(folder, learner, *work, "--model", "found.safetensors", "--quiet", "--force", "--store", "st",
                "--workers",
                "ssh:h1:1,h2:2", "--lease", 3, *far_jobs.ssh_options(far))
    if happens:
        wait_until(lambda: rounds_done(folder) >= 5 or job.poll() is not None, far_jobs.SOON, "round 5")
        assert job.poll() is None, f"the job is done before anything could happen: {job.communicate()}"
        happens()
    err = job.communicate(timeout=2 * far_jobs.SOON)[1]
    assert job.returncode == 0, err
    assert filecmp.cmp(f"{folder}/expected.safetensors", f"{folder}/found.safetensors",
                       shallow=False), f"{learner}: the models differ"
    run(folder, "job", "remove", "--all-done", "--store", "st")


def kill_workers(host):
    """All that work there; their agent starts others."""
    for pid in host.processes():
        if command(pid)[1:2] == ["worker"]:
            os.kill(pid, 9)


def main():
    hosts.isolate()
    with tempfile.TemporaryDirectory(prefix="shoal-gradient-") as folder, hosts.Hosts(folder, 2) as far:
        make_data(folder, lambda *words: run(folder, *words))
        far_jobs.bring_program(SHOAL, far)
        some_die = lambda: kill_workers(far[2])
        for learner, happens in (("autoencoder", None), ("logistic", None), ("train", None), ("autoencoder", some_die),
                                 ("train", some_die)):
            began = time.monotonic()
            agrees(folder, learner, far, happens)
            print(f"{learner}{', whose workers are killed' if happens else ''}: {time.monotonic() - began:.1f} s",
                  flush=True)
        wait_until(lambda: not far_jobs.agents_and_workers(far), far_jobs.SOON, "nothing is left on the hosts")


main()
