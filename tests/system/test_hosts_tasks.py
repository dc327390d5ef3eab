#!/usr/bin/env python3
# Seconds: 10
"""Tasks on hosts behind ssh: workers get the client's key through the link, and what several of them need crosses it
once.

    test_hosts_tasks.py PATH_TO_shoal [CASE...]

Needs root and sshd (see hosts.py); skipped (77) where these are not available.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import far_jobs
import hosts

SHOAL = os.path.abspath(sys.argv[1])
BUILD = pathlib.Path(SHOAL).parent / "tests/system"
MIB = 1 << 20


def run(far, tasks, *words):
    key = pathlib.Path(far.folder) / "key"
    key.write_text("3c" * 32 + "\n")
    ssh = far_jobs.ssh_options(far)
    return subprocess.run([BUILD / "task_client", f"dir:{far.folder}/st", key, BUILD / "task_functions.so", str(tasks),
                           "--program", SHOAL, *ssh, *words], env={**os.environ, "HOME": far.folder}, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=far_jobs.SOON)


def small_tasks_come_back(far):
    done = run(far, 300, "--workers", "ssh:h1:2,h2:2", "--workers", "1")
    assert done.returncode == 0 and done.stdout.endswith("closed\n"), done


def a_large_argument_is_sent_once_a_host(far):
    """To four workers on each of two hosts; what else goes there are the module, the program and small change."""
    size = 24 * MIB
    before = [host.traffic()[0] for host in far]
    done = run(far, 32, "--workers", "ssh:h1:4,h2:4", "--function", "nothing", "--size", str(size), "--same")
    assert done.returncode == 0, done
    for host, bytes_before in zip(far, before):
        sent = host.traffic()[0] - bytes_before
        assert size <= sent < 2 * size, f"{sent / MIB:.1f} MiB went to a host for an argument of {size / MIB:.0f}"


CASES = [small_tasks_come_back, a_large_argument_is_sent_once_a_host]


def main():
    hosts.isolate()
    cases = [case for case in CASES if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    with tempfile.TemporaryDirectory(prefix="shoal-hosts-") as folder, hosts.Hosts(folder, 2) as far:
        far_jobs.bring_program(SHOAL, far)
        far_jobs.run_cases(cases, far)


main()
