#!/usr/bin/env python3
"""Jobs that go down a gradient under chaos, in a folder: whoever leads next needs what the rounds before kept.  See
chaos.py."""
import contextlib

import chaos
import gradient_work


@contextlib.contextmanager
def make_store(shoal, folder):
    rows, *words = gradient_work.LEARNERS["autoencoder"]
    work = [f"{folder}/{rows}", *map(str, words), "--iterations", "600"]
    made = chaos.Chaos(shoal, folder, f"dir:{folder}/store", {}, work, verb="autoencoder", outputs=["model"])
    gradient_work.make_data(folder, made.run)
    yield made


chaos.main(make_store, seconds=10)
