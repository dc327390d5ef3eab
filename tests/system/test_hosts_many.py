#!/usr/bin/env python3
"""Four hosts behind ssh with sixteen workers, and what goes over their links.

    test_hosts_many.py PATH_TO_shoal [CASE...]

Needs root and sshd (see hosts.py); skipped (77) where these are not available.
"""
import os
import subprocess
import sys
import tempfile

import far_jobs
import hosts

SHOAL = os.path.abspath(sys.argv[1])


def sixteen_workers(far):
    """On four hosts, which see neither this machine's files nor its program; all of them work."""
    job = far_jobs.Job(SHOAL, far.folder, "sixteen", ["ssh:h1:4,h2:4", "ssh:h3:4", "ssh:h4:4"],
                       far_jobs.ssh_options(far))
    with far[1].slow_link():
        job.start()
        job.wait_for_all(16)
        there = far_jobs.agents_and_workers(far)
        assert {name: len(pids) for name, pids in there.items()} == {"h1": 5, "h2": 5, "h3": 5, "h4": 5}, there
    job.ends(0)
    job.agrees()
    about = job.show()
    assert len(about["worker"]) == 16 and sorted(job.mapped(about)) == ["h1", "h2", "h3", "h4"], about


def beside_local_ones(far):
    """Workers of this machine and of two hosts in one job, split roles, fewer and more of them while it runs."""
    job = far_jobs.Job(SHOAL, far.folder, "mixed", ["local:2", "ssh:h1,h2"],
                       [*far_jobs.ssh_options(far), "--roles", "split"])
    with far[1].slow_link():
        job.start()
        job.wait_for(lambda about: len(job.mapped(about)) == 3, "all three machines take part")
        job.run("job", "scale", "--store", job.store, "8")
        job.wait_for(lambda about: sum(worker["alive"] for worker in about["worker"]) >= 8, "eight workers")
        job.run("job", "scale", "--store", job.store, "3")
        job.wait_for(lambda about: sum(worker["left"] for worker in about["worker"]) >= 2, "some have left")
    job.ends(0)
    job.agrees()


def data_goes_once(far):
    """The rows go once to a host, whose four workers share them, and not again for the next job on the same rows; so
    does the program."""
    work = rows_of(far)
    size = os.path.getsize(work[0])
    sent = []
    for number in range(2):
        job = far_jobs.Job(SHOAL, far.folder, f"once{number}", ["ssh:h1:4"], far_jobs.ssh_options(far), work=work)
        before = far[1].traffic()[0]
        job.start()
        job.ends(0)
        job.agrees()
        sent.append(far[1].traffic()[0] - before)
    print(f"rows of {size} bytes: {sent[0]} bytes go to the host, then {sent[1]}")
    assert size < sent[0] < 1.4 * size, sent
    assert sent[1] < 0.4 * size, sent


def rows_of(far):
    """16 MB that do not compress, and few rounds."""
    path = f"{far.folder}/rows.npy"
    if not os.path.exists(path):
        subprocess.run([SHOAL, "data", "convert", "gen:uniform?rows=65536&cols=64&seed=5", path], check=True,
                       stdout=subprocess.DEVNULL)
    return [path, "-k", "4", "--init", "random", "--iterations", "6", "--tolerance", "0"]


def held_to_a_budget(far):
    """It begins with one of four workers on two hosts, and more come as soon as rounds tell that money is there."""
    words = [*far_jobs.ssh_options(far), "--budget", "5usd", "--price", "1usd"]
    job = far_jobs.Job(SHOAL, far.folder, "held", ["ssh:h1:2,h2:2"], words)
    with far[0].slow_link(), far[1].slow_link():
        job.start()
        job.wait_for(lambda about: about["workers"] > 1, "more workers than one")
    job.ends(0, "of their number; $0.0")
    job.agrees()


CASES = [data_goes_once, sixteen_workers, beside_local_ones, held_to_a_budget]


def main():
    hosts.isolate()
    cases = [case for case in CASES if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    with tempfile.TemporaryDirectory(prefix="shoal-hosts-") as folder, hosts.Hosts(folder, 4) as far:
        far_jobs.bring_program(SHOAL, far)
        far_jobs.run_cases(cases, far)


main()
