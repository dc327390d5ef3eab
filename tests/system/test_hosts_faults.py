#!/usr/bin/env python3
# Seconds: 40
"""Hosts behind ssh to which something happens in the middle of a job: see each case.  The bytes are those of the
threads engine.

    test_hosts_faults.py PATH_TO_shoal [CASE...]

Needs root and sshd (see hosts.py); skipped (77) where these are not available.
"""
import os
import signal
import sys
import tempfile

import far_jobs
import hosts
from processes import wait_until

SHOAL = os.path.abspath(sys.argv[1])


def job_of(far, name, workers="ssh:h1:2,h2:2"):
    return far_jobs.Job(SHOAL, far.folder, name, [workers], far_jobs.ssh_options(far))


def link_is_cut(far):
    """Its workers end and count as lost; those of the other host go on; when the link is back they are there again."""
    job = job_of(far, "cut")
    with far[2].slow_link():
        job.start()
        job.wait_for_all(4)
        there = set(far_jobs.agents_and_workers(far)["h1"])
        far[1].cut()
        job.wait_for_saying("h1: ", "trying again")
        wait_until(lambda: hosts.are_gone(there), far_jobs.SOON, "what ran there is gone")
        job.wait_for_round(job.show()["round"] + 2)
        far[1].heal()
        job.wait_for_saying("h1: reached again")
        before = job.mapped()["h1"]
        job.wait_for(lambda about: job.mapped(about)["h1"] > before, "h1 works again")
        lost = [worker for worker in job.show()["worker"] if worker["state"].startswith("lost: ")]
        assert [worker["host"] for worker in lost] == ["h1", "h1"], job.show()["worker"]
    job.ends(0)
    job.agrees()


def processes_are_killed(far):
    """All of a host's, agent and sshd's sessions included."""
    job = job_of(far, "killed")
    with far[1].slow_link():
        job.start()
        job.wait_for_all(4)
        assert len(far_jobs.agents_and_workers(far)["h2"]) == 3, far_jobs.agents_and_workers(far)
        far[2].kill()
        job.wait_for_saying("h2: ", "trying again", "h2: reached again")
        wait_until(lambda: len(far_jobs.agents_and_workers(far).get("h2", [])) == 3, far_jobs.SOON, "others on h2")
        before = job.mapped()["h2"]
        job.wait_for(lambda about: job.mapped(about)["h2"] > before, "h2 works again")
    job.ends(0)
    job.agrees()


def workers_are_killed(far):
    """Only those; their agent starts others."""
    job = job_of(far, "workers")
    with far[2].slow_link():
        job.start()
        job.wait_for_all(4)
        agents, workers = far[1].processes("agent"), far[1].processes("worker")
        assert len(agents) == 1 and len(workers) == 2, (agents, workers)
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(set(far[1].processes("worker")) - set(workers)) == 2, far_jobs.SOON, "two others")
        assert far[1].processes("agent") == agents, "another agent"
        job.wait_for(lambda about: sum("signal 9" in worker["state"] for worker in about["worker"]) == 2,
                     "how they ended")
    job.ends(0)
    job.agrees()


def one_is_slow(far):
    """It has a tenth of a core and a thin link."""
    if not far[1].limit_cpu(10):
        print("control groups are not available: only the link is slow")
    job = job_of(far, "slow")
    with far[1].slow_link("20mbit"):
        job.start()
        job.ends(0)
    job.agrees()
    assert sorted(job.mapped()) == ["h1", "h2"], job.mapped()


def starter_is_killed(far):
    """Agents and workers end within seconds; the job can go on, with other workers."""
    job = job_of(far, "starter")
    with far[2].slow_link():
        job.start()
        job.wait_for_all(4)
        there = far_jobs.agents_and_workers(far)
        assert sorted(there) == ["h1", "h2"], there
        job.process.send_signal(signal.SIGKILL)
        job.process.wait()
        wait_until(lambda: not far_jobs.agents_and_workers(far), 300, "agents and workers end")
    about = job.show()
    assert about["state"] != "done", about
    job.workers = ["ssh:h2:3"]
    job.resumes()
    job.ends(0)
    job.agrees()


CASES = [link_is_cut, processes_are_killed, workers_are_killed, starter_is_killed, one_is_slow]


def main():
    hosts.isolate()
    cases = [case for case in CASES if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    with tempfile.TemporaryDirectory(prefix="shoal-hosts-") as folder, hosts.Hosts(folder, 2) as far:
        far_jobs.bring_program(SHOAL, far)
        far_jobs.run_cases(cases, far)


main()
