"""Processes of this machine, by their ids: who is whose child, what they are, and waiting for what they do."""
import ctypes
import os
import time

import nobody  # so that no run is in the history of whoever runs this

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def is_sanitized(program):
    """Whether it was built for the address sanitizer, under which all takes longer."""
    return b"__asan_init" in read(program)


def children(pid):
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in read(f"/proc/{pid}/task/{thread}/children").split()]


def command(pid):
    """Its words; none for one that has ended."""
    return read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")[:-1]


def state(pid):
    """'R', 'S', 'T' for stopped, 'Z' for ended; '' when there is no such process."""
    return read(f"/proc/{pid}/stat").rpartition(b") ")[2][:1].decode()


def reap(pid):
    """Takes note of the end of a process that was adopted."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {seconds} s"
        time.sleep(0.02)


def proportional_memory(pid):
    """Bytes of a process, pages that it shares with others in parts; 0 when it has ended."""
    for line in read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) << 10
    return 0
