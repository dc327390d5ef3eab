#!/usr/bin/env python3
# Seconds: 30
"""Jobs that meet in Azurite under chaos, with rows that are uploaded; Azurite itself is killed, and then forgets.  See
chaos.py.  Skipped (77) where Azurite is not installed."""
import contextlib

import azurite
import chaos


def make_container(made, server):
    """One that is on its disk: a server that forgot the container as well would be no store at all."""
    server.wait()
    made.run("store", "put", "--create", "--quiet", "-", f"{made.url}/first")
    server.stop()
    server.start()
    server.wait()


@contextlib.contextmanager
def make_store(shoal, folder):
    if azurite.PROGRAM is None:
        print("SKIPPED: Azurite is not installed (./dev deps test)")
        yield None
        return
    work = [f"{folder}/rows.csv", "-k", "20", "--init", "random", "--iterations", "40", "--tolerance", "0"]
    with azurite.Server(folder, "azurite") as server:
        made = chaos.Chaos(shoal, folder, f"az://{azurite.ACCOUNT}/chaos", server.variables(), work, server)
        made.run("data", "convert", "gen:uniform?rows=8000&cols=8&seed=6", work[0])
        make_container(made, server)
        yield made


chaos.main(make_store, seconds=15)
