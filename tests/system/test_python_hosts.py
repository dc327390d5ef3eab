#!/usr/bin/python3
# The Python package on hosts behind real sshds (see hosts.py), which have nothing but a shell, Python and numpy.
#   test_python_hosts.py PATH_TO_shoal [TEST...]
# Needs root; skipped (77) without hosts.  Prints one line for each failure and "N passed, M failed" at the
# end.
import hosts

hosts.isolate()

import concurrent.futures  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import warnings  # noqa: E402

from processes import wait_until  # noqa: E402
from scripts import check, folder, main, raises, random_rows, root  # noqa: E402

import numpy as np  # noqa: E402
import shoal  # noqa: E402

sys.path.insert(0, str(folder))
far = hosts.Hosts(str(folder), 3)
GATE = "/dev/shm/gate"  # functions wait as long as it is there
ssh = f"ssh -F {far.ssh_config}"
(folder / "functions.py").write_text("""
import os
import socket
import time


def where(params, dataset):
    return {socket.gethostname()}


def fails(params, dataset):
    raise LookupError(socket.gethostname())


def total(params, dataset):
    if params:  # until the test goes on
        while os.path.exists(params):
            time.sleep(0.01)
    return dataset.sum(axis=0)


def reduce(results):
    return set().union(*results)


where.reduce = reduce
""")
import functions  # noqa: E402


def test_example():
    """The program of the paper, on two hosts."""
    done = subprocess.run([sys.executable, root / "examples" / "qjam" / "sum_matrix_example.py", "h1", "h2"],
                          capture_output=True, text=True, timeout=120, env={**os.environ, "SHOAL_SSH": ssh})
    check("the example", done.stdout.endswith("Result is: 78\n"), done.stdout + done.stderr)


def test_hosts_work():
    master = shoal.Master(["h1:2", "h2", "h3"], ssh=ssh)
    check("functions run there", master.run(functions.where, None, list(range(2000))) <= {"h1", "h2", "h3"})
    error = raises("an exception with its host", shoal.RemoteError, "^h2: LookupError: h2 ",
                   lambda: shoal.Master(["h2"], ssh=ssh).run(functions.fails, None, [1, 2, 3]))
    check("it has host and cause", error and error.host == "h2" and error.__cause__.args == ("h2",))


def test_rows_go_once():
    rows = random_rows(100000, 20)
    dataset = shoal.NumpyMatrixDataSet(rows)
    sent = []
    for _ in range(2):
        before = far[1].traffic()[0]
        got = shoal.Master(["h1:2"], ssh=ssh).run(functions.total, None, dataset)
        sent.append(far[1].traffic()[0] - before)
        check("sums", np.allclose(got, rows.sum(axis=0)))
    print(f"rows of {rows.nbytes} bytes: {sent[0]} bytes go to the host, then {sent[1]}")
    check("rows go once to a host, also for the next run", rows.nbytes * 0.9 < sent[0] and sent[1] < rows.nbytes * 0.2,
          sent)


def test_broken_hosts():
    """Without numpy, without Python, with a password: a sentence with the host's name."""
    far[2].write("/root/bare", '#!/bin/sh\nexec python3 -S "$@"\n', 0o755)
    raises("no numpy there", shoal.RemoteError, "^h2: ImportError: numpy is not installed for the Python here",
           lambda: shoal.Master(["h2"], ssh=ssh, python="/root/bare").run(functions.where, None, [1]))
    raises("no such Python there", shoal.RemoteError, "^h2: mapfunc's process failed in row 0: there is no such Python",
           lambda: shoal.Master(["h2"], ssh=ssh, python="python4").run(functions.where, None, [1]))
    far[3].start_sshd(*hosts.PASSWORDS_ONLY)
    raises("a host that asks for a password", shoal.Error, "^h3: can't be reached: it asks for a password",
           lambda: shoal.RemoteWorker("h3", ssh=ssh).bootstrap())
    far[3].start_sshd(*hosts.KEYS_ONLY)


def test_host_dies():
    """All processes of a host are killed while functions run there: the others give the same bits."""
    warnings.simplefilter("ignore")  # that its link broke
    rows = random_rows(4000, 5)
    expected = shoal.Master(["local"]).run(functions.total, None, rows)
    for host in (far[1], far[2]):
        host.write(GATE, "")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(shoal.Master(["h1", "h2"], ssh=ssh, verbose=False).run, functions.total, GATE, rows)
        try:
            wait_until(lambda: far[1].processes("shoal_far.py") and far[2].processes("shoal_far.py"), 300,
                       "functions on both hosts")
            far[2].kill()
        finally:
            for host in (far[1], far[2]):
                host.run("rm", GATE)
        check("the same bits after a host's processes were killed", running.result(120).tobytes() == expected.tobytes())


main(dict(globals()))
