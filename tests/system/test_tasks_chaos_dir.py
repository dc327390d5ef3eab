#!/usr/bin/env python3
# Seconds: 10
"""Tasks that meet in a folder under chaos.  See task_chaos.py."""
import contextlib

import task_chaos


@contextlib.contextmanager
def make_store(shoal, folder):
    yield f"dir:{folder}/st", {}, None


task_chaos.main(make_store, tasks=600, every=0.15)
