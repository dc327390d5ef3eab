#!/usr/bin/env python3
"""Hosts behind ssh that are not as one would like: no place for files, another architecture, questions instead of
answers.
What can work does; what can't is named in a sentence, at once, and the job goes on with the rest.

    test_hosts_odd.py PATH_TO_shoal [CASE...]

Needs root and sshd (see hosts.py); skipped (77) where these are not available.
"""
import os
import pty
import select
import signal
import sys
import tempfile
import time

import far_jobs
import hosts

SHOAL = os.path.abspath(sys.argv[1])
QUICK = ["gen:uniform?rows=6000&cols=8&seed=3", "-k", "8", "--init", "random", "--iterations", "20", "--tolerance", "0"]
AT_ONCE = 120  # seconds, on a busy machine; anything that waits for an answer would take longer than a test may


def job_of(far, name, workers, work=None):
    return far_jobs.Job(SHOAL, far.folder, name, [workers], far_jobs.ssh_options(far), work or QUICK)


def works_alone(job):
    """With this host and no other the job is done."""
    job.start()
    job.ends(0)
    job.agrees()


def no_cache_folder(far):
    """The home can't be written to."""
    far[1].run("mount", "-o", "remount,ro", "/root")
    works_alone(job_of(far, "readonly", "ssh:h1:2"))


def full_disk(far):
    """There is not even room for the program in the usual place, nor for the rows."""
    far[2].disk("/root/.cache", "size=64k")
    works_alone(job_of(far, "full", "ssh:h2:2"))
    assert int(far[2].run("sh", "-c", "du -s /root/.cache | cut -f 1")) <= 64


def junk_before(far):
    """A .bashrc that prints, some of it no text at all."""
    far[3].write("/root/.bashrc", "printf 'Welcome!\\n\\nSHOAL {\"says\": 1}\\n\\001\\377\\000\\n'; seq 2000\n"
                 "echo no newline >&2; printf end\n")
    works_alone(job_of(far, "junk", "ssh:h3:2"))
    far[3].run("rm", "/root/.bashrc")


def goes_on_without(far, name, host, *sentences):
    """A bad host and a good one: the job is done by the good one, and the bad one is named."""
    job = job_of(far, name, f"ssh:{host}:2,h6:2", [*far_jobs.WORK[:-1], "2"])
    with far[6].slow_link():
        job.start()
        job.wait_for_saying(f"{host}: ", *sentences)
        job.wait_for(lambda about: about["workers"] == 2, "the other host's workers")
    job.ends(0, *sentences)
    job.agrees()


def ends_at_once(far, name, host, *sentences):
    """With the bad one alone the program ends with that reason, and the job can go on."""
    job = job_of(far, f"{name}-alone", f"ssh:{host}:2")
    began = time.monotonic()
    job.start()
    job.ends(3, f"{host}: ", *sentences, "shoal job resume")
    assert time.monotonic() - began < AT_ONCE, f"{time.monotonic() - began} s"
    return job


def wrong_architecture(far):
    far[4].replace("/usr/bin/uname", "#!/bin/sh\n[ \"$1\" = -m ] && echo sparc64 || echo Linux\n")
    goes_on_without(far, "architecture", "h4", "sparc64")
    ends_at_once(far, "architecture", "h4", "sparc64")
    far[4].run("umount", "/usr/bin/uname")


def asks_for_password(far):
    """The second time with a terminal at which ssh could ask: it must not."""
    far[5].start_sshd(*hosts.PASSWORDS_ONLY)
    goes_on_without(far, "password", "h5", "password")
    job = job_of(far, "terminal", "ssh:h5")
    code, shown = run_at_terminal(["kmeans", *job.work, "--store", job.store, *job.words()], job.environment)
    assert code == 3 and b"h5: " in shown and b"password" in shown and b"password:" not in shown, (code, shown)


def run_at_terminal(words, environment):
    """Its exit code, and what it and whatever it started showed there; fails unless it ends at once."""
    end, shown = time.monotonic() + AT_ONCE, b""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(SHOAL, [SHOAL, *words], environment)
    try:
        while select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            shown += os.read(terminal, 4096)
        raise AssertionError(f"not after {AT_ONCE} s; it shows {shown}")
    except OSError:  # the other end is closed
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    finally:
        os.close(terminal)


def host_is_off(far):
    """Nobody answers at its address."""
    far[5].off()
    goes_on_without(far, "off", "h5", "trying again")
    far[5].on()


def sshd_is_off(far):
    """The host answers that nobody listens.  Later someone does: a job that was given up goes on."""
    far[4].sshd.kill()
    job = ends_at_once(far, "refused", "h4", "refused")
    far[4].start_sshd()
    job.resumes()
    job.ends(0)
    job.agrees()


def no_such_host(far):
    goes_on_without(far, "nowhere", "nowhere.invalid", "no such host")


CASES = [no_cache_folder, full_disk, junk_before, wrong_architecture, asks_for_password, host_is_off,
         sshd_is_off, no_such_host]


def main():
    hosts.isolate()
    cases = [case for case in CASES if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    with tempfile.TemporaryDirectory(prefix="shoal-hosts-") as folder, hosts.Hosts(folder, 6) as far:
        far_jobs.bring_program(SHOAL, far, ["h6"])  # the one that nothing is wrong with
        far_jobs.run_cases(cases, far)


main()
