#!/usr/bin/env python3
# Seconds: 35
"""Jobs that meet in Ceph's radosgw under chaos, with rows that workers generate themselves. See chaos.py. Skipped (77)
where Ceph is not installed."""
import contextlib

import chaos
import radosgw


@contextlib.contextmanager
def make_store(shoal, folder):
    missing = radosgw.missing()
    if missing:
        print(f"SKIPPED: {', '.join(missing)} not here (Debian: radosgw ceph-mon ceph-osd ceph-common)")
        yield None
        return
    work = ["gen:uniform?rows=8000&cols=8&seed=7", "-k", "20", "--init", "random", "--iterations", "20",
            "--tolerance", "0"]
    with radosgw.Server(folder) as server:
        variables = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": server.address,
                     "AWS_ACCESS_KEY_ID": server.key, "AWS_SECRET_ACCESS_KEY": server.secret}
        made = chaos.Chaos(shoal, folder, "s3://chaos", variables, work)
        made.run("store", "put", "--create", "--quiet", "-", f"{made.url}/first")
        yield made


chaos.main(make_store, seconds=12)
