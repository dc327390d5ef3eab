#!/usr/bin/env python3
# Seconds: 35
"""Tasks that meet in Ceph's radosgw under chaos.  See task_chaos.py.  Skipped (77) where Ceph is not installed."""
import contextlib
import os
import subprocess

import radosgw
import task_chaos


@contextlib.contextmanager
def make_store(shoal, folder):
    missing = radosgw.missing()
    if missing:
        print(f"SKIPPED: {', '.join(missing)} not here (Debian: radosgw ceph-mon ceph-osd ceph-common)")
        yield None
        return
    with radosgw.Server(folder) as server:
        variables = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": server.address,
                     "AWS_ACCESS_KEY_ID": server.key, "AWS_SECRET_ACCESS_KEY": server.secret}
        subprocess.run([shoal, "store", "put", "--create", "--quiet", "-", "s3://tasks/first"], check=True, input=b"",
                       env={**os.environ, **variables})
        yield "s3://tasks", variables, None


task_chaos.main(make_store, tasks=400, every=0.3)
