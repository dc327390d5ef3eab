#!/usr/bin/env python3
# Seconds: 10
"""`shoal data pack` with workers on hosts behind ssh, which do not see the pictures: these go to the job's store first.

    test_hosts_pack.py PATH_TO_shoal [CASE...]

Needs root and sshd (see hosts.py), and Pillow; skipped (77) where these are not available.
"""
import filecmp
import os
import subprocess
import sys
import tempfile

import far_jobs
import hosts

try:
    from PIL import Image
except ImportError:
    hosts.skip("python3-pil is not here")

SHOAL = os.path.abspath(sys.argv[1])
SIZE = ["--size", "32x32", "--shards", "6"]


def pictures(folder, count):
    for i in range(count):
        path = f"{folder}/{'ash' if i % 2 else 'b ü'}/{i:03} %2F.png"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Image.frombytes("RGB", (60, 40), bytes((i * j) % 251 for j in range(60 * 40 * 3))).save(path)
    return folder


def run(far, *words):
    return subprocess.run([SHOAL, *words], env={**os.environ, "HOME": far.folder}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=far_jobs.SOON)


def same(a, b):
    assert sorted(os.listdir(a)) == sorted(os.listdir(b)), (os.listdir(a), os.listdir(b))
    for name in os.listdir(a):
        assert filecmp.cmp(f"{a}/{name}", f"{b}/{name}", shallow=False), name


def pictures_go_to_the_hosts(far):
    trees = pictures(f"{far.folder}/trees", 20)
    with open(f"{trees}/ash/broken.jpg", "wb"):
        pass
    usual = ["data", "pack", trees, *SIZE, "--skip-broken"]
    for more in ([f"{far.folder}/here"],
                 [f"{far.folder}/away", "--workers", "ssh:h1:2,h2:2", *far_jobs.ssh_options(far)]):
        done = run(far, *usual, *more)
        assert done.returncode == 0, done.stderr
    assert "4 workers" in done.stdout, done.stdout
    same(f"{far.folder}/here", f"{far.folder}/away")


CASES = [pictures_go_to_the_hosts]


def main():
    hosts.isolate()
    cases = [case for case in CASES if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    with tempfile.TemporaryDirectory(prefix="shoal-hosts-") as folder, hosts.Hosts(folder, 2) as far:
        far_jobs.bring_program(SHOAL, far)
        far_jobs.run_cases(cases, far)


main()
