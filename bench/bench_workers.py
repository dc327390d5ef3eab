#!/usr/bin/python3
"""Workers behind ssh: what a round costs, what moves through the pipe, how long it takes until they work.

    ./dev bench workers [--quick] [--only WORD] [--rounds N] [--markdown]

Hosts are network namespaces of this machine, each with an sshd (tests/system/hosts.py), which takes root. A table on
stdout, everything in bench/results/workers.json. --quick takes two minutes: fewer and shorter runs. --only keeps the
groups whose name has WORD in it (rounds, pipe, start), --markdown prints the last results as bench/README.md has them.
Nothing here fails when a bar is missed: the table says so.
"""
import argparse
import contextlib
import json
import os
import pathlib
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
MIB = 1 << 20
HOSTS = 4
QJAM = {1: 145.8, 2: 175.2, 4: 263.4, 8: 533.9, 16: 996.9}  # ms a round, its table 1, 1,000 patches

sys.path[:0] = [str(ROOT / "tests" / "system"), str(ROOT / "bench")]
import bench_engine  # noqa: E402
import bench_kmeans  # noqa: E402
import hosts  # noqa: E402
from bench_engine import say  # noqa: E402


class Bench(bench_engine.Bench):
    """With hosts, and workers there."""

    def __init__(self, shoal, folder, quick, rounds, far):
        super().__init__(shoal, folder, quick, rounds)
        self.far, self.ssh = far, ["ssh", "-F", far.ssh_config, "-oLogLevel=ERROR"]
        self.variables["SHOAL_SSH"] = " ".join(self.ssh)

    def where(self, workers):
        """As --workers writes it: on as many hosts as can be."""
        used = min(workers, HOSTS)
        return "ssh:" + ",".join(f"h{number}:{workers // used}" for number in range(1, used + 1))

    def timed_job(self, work, workers):
        """The moments at which rounds were over, in seconds since the command was given, and its end."""
        reader, writer = os.pipe()
        words = [self.shoal, "kmeans", *work, "--store", self.new_folder_store(), "--workers", self.where(workers),
                 "--threads", 1, "--quiet", "--trace", f"/dev/fd/{writer}"]
        began = time.perf_counter()
        with tempfile.TemporaryFile(dir=self.folder) as told, subprocess.Popen(list(map(str, words)),
                                                                               env={**os.environ, **self.variables},
                                                                               stdin=subprocess.DEVNULL, stdout=told,
                                                                               stderr=told, pass_fds=[writer
                                                                                                      ]) as process:
            os.close(writer)
            with open(reader, "rb") as trace:
                moments = []
                for _ in trace:
                    moments.append(time.perf_counter() - began)
            if process.wait() != 0:
                told.seek(0)
                raise RuntimeError(
                    f"{' '.join(map(str, words))} exits with {process.returncode}: {told.read()[-500:].decode()}")
        return moments, time.perf_counter() - began


# ---- ipyparallel -----------------------------------------------------------------------------------------------------

# The second keeps no record of tasks and signs no message.
IPYPARALLEL_SETTINGS = {"as it comes": [], "no records, no signatures": ["--nodb", "--Session.key=b''"]}


def nothing():
    """What every engine is to do in a round."""


nothing.__module__ = "__main__"  # so that it travels whole: engines have no such module as this

class Engines:
    """A controller and its engines on loopback, with no ssh in between."""

    def __init__(self, folder, count, words):
        self.folder, self.processes = pathlib.Path(tempfile.mkdtemp(dir=folder)), []
        self.variables = {**os.environ, "IPYTHONDIR": str(self.folder), "HOME": str(self.folder)}
        files = self.folder / "profile_default" / "security"
        self.client_file, engine_file = files / "ipcontroller-client.json", files / "ipcontroller-engine.json"
        self.start("ipcontroller", "--ip=127.0.0.1", *words)
        self.wait_for(lambda: self.client_file.exists() and engine_file.exists(), "a controller of ipyparallel")
        for _ in range(count):
            self.start("ipengine", f"--file={engine_file}", *(word for word in words if "Session" in word))

    def start(self, program, *words):
        with open(self.folder / "log", "ab") as log:
            self.processes.append(
                subprocess.Popen([shutil.which(program), *words], env=self.variables, stdin=subprocess.DEVNULL,
                                 stdout=log, stderr=log))

    def wait_for(self, condition, what):
        end = time.monotonic() + 120
        while not condition():
            if time.monotonic() > end or any(process.poll() is not None for process in self.processes):
                raise RuntimeError(f"{what} does not start: {(self.folder / 'log').read_text()[-500:]}")
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def ipyparallel_round(bench, engines, words):
    """The median of apply_sync over all engines, in ms; they are there and warm before the clock runs."""
    import ipyparallel
    with Engines(bench.folder, engines, words) as cluster:
        os.environ["IPYTHONDIR"] = str(cluster.folder)
        with contextlib.closing(ipyparallel.Client(str(cluster.client_file), timeout=60)) as client:
            cluster.wait_for(lambda: len(client.ids) == engines, f"{engines} engines of ipyparallel")
            view = client[:]
            times = []
            for _ in range(bench.few(220, 70)):
                began = time.perf_counter()
                view.apply_sync(nothing)
                times.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times[20:])


# ---- rounds without work ---------------------------------------------------------------------------------------------


def counted_job(bench, work, workers):
    """Rounds, and the seconds that the job says they took, as it runs for whoever asks for nothing but its result."""
    words = [bench.shoal, "kmeans", *work, "--store", bench.new_folder_store(), "--workers", bench.where(workers),
             "--threads", 1, "--quiet", "--json"]
    done = subprocess.run(list(map(str, words)), env={**os.environ, **bench.variables}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))} exits with {done.returncode}: {done.stderr[-500:]}")
    said = json.loads(done.stdout)
    assert said["workers"] == workers, said
    return said["rounds"], said["seconds"]["seed"] + said["seconds"]["run"]


def shoal_round(bench, workers):
    """What a long job takes more than a short one, by which all have joined, for each round that it has more; in ms."""
    short, long = (counted_job(bench, bench_engine.tiny_work(workers, runs), workers)
                   for runs in bench.few((200, 600), (100, 250)))
    return 1e3 * (long[1] - short[1]) / (long[0] - short[0])


def bench_rounds(bench):
    """Workers beside ipyparallel's engines, in turn."""
    for workers in (1, 2, 4, 8, 16):
        ours, theirs = [], {name: [] for name in IPYPARALLEL_SETTINGS}
        for _ in range(bench.rounds):
            ours.append(shoal_round(bench, workers))
            for name, words in IPYPARALLEL_SETTINGS.items():
                theirs[name].append(ipyparallel_round(bench, workers, words))
        best = min(theirs, key=lambda name: statistics.median(theirs[name]))
        peer = statistics.median(theirs[best])
        bench.add(
            "rounds", f"a round without work, {workers} workers over ssh to {min(workers, HOSTS)} hosts", "ms", ours,
            peer / 8 if workers >= 4 else None, f"ipyparallel {peer:.3g} ms ({best}), "
            f"{peer / statistics.median(ours):.1f} times as much; qjam's paper {QJAM[workers]:.0f} ms")
        bench.rows[-1]["ipyparallel"] = theirs


# ---- the pipe --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def far_shell(bench, script):
    """A script on h1, which has said that it is there."""
    with subprocess.Popen([*bench.ssh, "h1", f"echo; {script}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          bufsize=0) as shell:
        if shell.stdout.read(1) != b"\n":
            raise RuntimeError("ssh h1 does not start")
        yield shell


def ssh_rate_out(bench, size):
    """Bytes a second into cat on the host."""
    block = os.urandom(MIB)
    with far_shell(bench, "cat >/dev/null; echo") as shell:
        began = time.perf_counter()
        for _ in range(size // MIB):
            shell.stdin.write(block)
        shell.stdin.close()
        shell.stdout.read(1)
        return size / (time.perf_counter() - began)


def ssh_rate_in(bench, size):
    """Bytes a second out of cat on the host, of a file that lies in its memory."""
    bench.far[1].run("sh", "-c", f"[ -e /tmp/much ] || head -c {size} /dev/urandom >/tmp/much")
    with far_shell(bench, "read line; cat /tmp/much") as shell:
        began, got = time.perf_counter(), 0
        shell.stdin.write(b"\n")
        while piece := shell.stdout.read(MIB):
            got += len(piece)
        taken = time.perf_counter() - began
    if got != size:
        raise RuntimeError(f"ssh h1 cat: {got} bytes, not {size}")
    return size / taken


def ssh_trip(bench, trips):
    """Seconds of a few bytes to cat and back, the median."""
    times = []
    with far_shell(bench, "exec cat") as shell:
        for _ in range(trips):
            began = time.perf_counter()
            shell.stdin.write(b"x" * 64)
            got = 0
            while got < 64:
                got += len(shell.stdout.read(64 - got))
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def build_pipe_rates(bench):
    """Builds the program that is both ends, and puts it on the host."""
    build = pathlib.Path(bench.shoal).parent
    built = subprocess.run(["cmake", "--build", build, "--target", "bench_pipe_rates"], capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"bench: bench_pipe_rates was not built:\n{built.stdout[-2000:]}")
    with open(build / "bench_pipe_rates", "rb") as program:
        subprocess.run([*bench.ssh, "h1", "cat >/tmp/rates && chmod +x /tmp/rates"], stdin=program, check=True)
    return build / "bench_pipe_rates"


def bench_pipe(bench):
    """One host's pipe beside plain ssh, in turn."""
    program = build_pipe_rates(bench)
    size, blobs, trips = 32 * MIB, bench.few(16, 4), bench.few(1000, 300)
    found = []
    for _ in range(bench.rounds):
        numbers = [secrets.token_hex(16), size, blobs, trips]
        done = subprocess.run([
            program, "near", *map(str, numbers), *bench.ssh, "h1", "/tmp/rates", "far", *map(str, numbers)
        ], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"bench_pipe_rates: {done.stderr[-500:]}")
        found.append({**json.loads(done.stdout), "ssh_out": ssh_rate_out(bench, blobs * size),
                      "ssh_in": ssh_rate_in(bench, blobs * size), "ssh_trip": ssh_trip(bench, trips)})

    def median(name):
        return statistics.median(turn[name] for turn in found)

    for name, peer, what in (("get", "ssh_out", "gets of one worker"), ("get_many", "ssh_out", "gets of four at once"),
                             ("put", "ssh_in", "puts of one worker")):
        bench.add("pipe", f"{size // MIB} MiB blobs over the pipe, {what}: plain ssh's rate / the pipe's", "",
                  [turn[peer] / turn[name] for turn in found], 1.25,
                  f"{median(name) / 1e6:.0f} MB/s beside {median(peer) / 1e6:.0f} of `ssh HOST cat`: "
                  f"{100 * median(name) / median(peer):.0f}%")
    bench.add("pipe", "a small get over the pipe, less a round trip of `ssh HOST cat`", "ms",
              [1e3 * (turn["trip"] - turn["ssh_trip"]) for turn in found], 0.3,
              f"{1e3 * median('trip'):.2f} ms - {1e3 * median('ssh_trip'):.2f} ms")


# ---- starting --------------------------------------------------------------------------------------------------------


def bench_start(bench):
    """From the command to the end of the first round, on hosts that never saw the program and on those that have it."""
    for workers in (1, 16):
        first, second, whole, plain = [], [], [], []
        for _ in range(bench.rounds):
            for host in bench.far:
                host.run("rm", "-rf", "/root/.cache")
            began = time.perf_counter()
            subprocess.run([*bench.ssh, "h1", "true"], check=True)
            plain.append(time.perf_counter() - began)
            for moments in (first, second):
                rounds, end = bench.timed_job(bench_engine.tiny_work(workers, 1), workers)
                moments.append(rounds[0])
            whole.append(end)
        note = f"`ssh HOST true` alone {statistics.median(plain):.2f} s"
        what = (f"{workers} workers over ssh to {min(workers, HOSTS)} hosts: from the command to the end of the first "
                "round")
        bench.add("start", f"{what}, nothing there", "s", first, None, note)
        bench.add("start", "the same, the program cached there", "s", second, None,
                  f"whole command {statistics.median(whole):.2f} s")


GROUPS = {"rounds": bench_rounds, "pipe": bench_pipe, "start": bench_start}


@contextlib.contextmanager
def own_rows(folder, quick):
    """For against.py: rounds without work."""
    hosts.isolate()
    with hosts.Hosts(folder, HOSTS) as far:
        def idle(workers):
            return lambda program: shoal_round(Bench(program, tempfile.mkdtemp(dir=folder), quick, 1, far), workers)
        yield [(f"a round without work, {workers} workers over ssh to {min(workers, HOSTS)} hosts", "ms", idle(workers))
               for workers in (2, 4, 16)]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench workers", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="two minutes: fewer and shorter runs")
    parser.add_argument("--only", default="", help="only groups whose name has this in it: " + ", ".join(GROUPS))
    parser.add_argument("--rounds", type=int, help="how often the programs take turns (3; quick: 1)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where the program is")
    parser.add_argument("--folder", help="where files are made (default: the usual place of temporary files)")
    parser.add_argument("--markdown", action="store_true",
                        help="print the last results as Markdown and measure nothing")
    options = parser.parse_args()
    if options.markdown:
        return bench_engine.print_markdown(json.loads((RESULTS / "workers.json").read_text()))
    before = os.getloadavg()[0]
    hosts.isolate("ipcontroller", "ipengine")
    with tempfile.TemporaryDirectory(prefix="shoal-bench-", dir=options.folder) as folder, hosts.Hosts(folder,
                                                                                                       HOSTS) as far:
        rounds = options.rounds or (1 if options.quick else 3)
        bench = Bench(options.build.resolve() / "shoal", folder, options.quick, rounds, far)
        for name, measure in GROUPS.items():
            if options.only in name:
                say(name)
                measure(bench)
    report = {"when": time.strftime("%Y-%m-%d"), "cpu": bench_kmeans.cpu_name(), "cores": len(os.sched_getaffinity(0)),
              "quick": options.quick, "load": [before, os.getloadavg()[0]], "rows": bench.rows}
    if not options.only:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "workers.json").write_text(json.dumps(report, indent=1) + "\n")
    bench_engine.print_table(report)
    return None


if __name__ == "__main__":
    main()
