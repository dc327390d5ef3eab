#!/usr/bin/env python3
"""Jobs in a folder under chaos, with rows that workers read from a file of this machine.  See chaos.py."""
import contextlib

import chaos


@contextlib.contextmanager
def make_store(shoal, folder):
    work = [f"{folder}/rows.npy", "-k", "60", "--iterations", "100", "--tolerance", "0", "--runs", "5"]
    made = chaos.Chaos(shoal, folder, f"dir:{folder}/store", {}, work)
    made.run("data", "convert", "gen:uniform?rows=20000&cols=16&seed=5", work[0])
    yield made


chaos.main(make_store, seconds=15)
