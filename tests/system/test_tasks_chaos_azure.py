#!/usr/bin/env python3
# Seconds: 20
"""Tasks that meet in Azurite under chaos; Azurite itself is killed, and then forgets.  See task_chaos.py.  Skipped (77)
where Azurite is not installed."""
import contextlib
import os
import subprocess

import azurite
import task_chaos


@contextlib.contextmanager
def make_store(shoal, folder):
    if azurite.PROGRAM is None:
        print("SKIPPED: Azurite is not installed (./dev deps test)")
        yield None
        return
    url = f"az://{azurite.ACCOUNT}/tasks"
    with azurite.Server(folder, "azurite") as server:
        server.wait()
        subprocess.run([shoal, "store", "put", "--create", "--quiet", "-", f"{url}/first"], check=True, input=b"",
                       env={**os.environ, **server.variables()})
        server.stop()  # a server that forgot the container as well would be no store at all
        server.start()
        server.wait()
        yield url, server.variables(), server


task_chaos.main(make_store, tasks=250, every=0.3)
