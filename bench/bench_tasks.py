#!/usr/bin/python3
"""Tasks: how many a second, what an empty call takes over ssh, what waits in memory, what crosses the wire.

    ./dev bench tasks [--quick] [--only WORD] [--rounds N] [--markdown]

The client in C, shoal.Executor and shoal map, beside concurrent.futures.ProcessPoolExecutor and GNU parallel on this
machine, and ipyparallel over loopback without ssh. Hosts are network namespaces of this machine, each with an sshd
(tests/system/hosts.py), which takes root. A table on stdout, everything in bench/results/tasks.json. --only keeps the
groups whose name has WORD in it (rate, queue, call, data, executor, map), --markdown prints the last results as
bench/README.md has them. Nothing here fails when a bar is missed: the table says so.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
MIB = 1 << 20

sys.path[:0] = [str(ROOT / "tests" / "system"), str(ROOT / "bench")]
import bench_engine  # noqa: E402
import bench_kmeans  # noqa: E402
import hosts  # noqa: E402
from bench_engine import say  # noqa: E402
from bench_workers import IPYPARALLEL_SETTINGS, ipyparallel_round  # noqa: E402


class Bench(bench_engine.Bench):
    """With a client of tasks, and hosts."""

    def __init__(self, shoal, folder, quick, rounds, far):
        super().__init__(shoal, folder, quick, rounds)
        self.far, self.tests = far, shoal.parent / "tests" / "system"
        self.key = pathlib.Path(folder) / "key"
        self.key.write_text("77" * 32 + "\n")

    def client(self, tasks, *words):
        """Seconds of each repetition, and the greatest memory of the client in bytes."""
        said = self.folder / "said"
        line = [self.tests / "task_client", self.new_folder_store(), self.key, self.tests / "task_functions.so", tasks,
                "--program", self.shoal, "--ssh", f"ssh -F {self.far.ssh_config} -oLogLevel=ERROR", *words]
        with open(said, "wb") as output:
            process = subprocess.Popen(list(map(str, line)), env={**os.environ, **self.variables},
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        text = said.read_text()
        if process.returncode != 0:
            raise RuntimeError(f"task_client exits with {process.returncode}: {text[-500:]}")
        return [float(line.split()[1]) for line in text.splitlines() if line.startswith("done")], usage.ru_maxrss << 10


# ---- on this machine -------------------------------------------------------------------------------------------------


def nothing(_):
    return None


def pool_seconds(tasks):
    """Each task for itself, as submit does it; the processes are there before the clock runs."""
    with concurrent.futures.ProcessPoolExecutor(4) as pool:
        list(pool.map(nothing, range(64)))
        began = time.perf_counter()
        list(pool.map(nothing, range(tasks)))
        return time.perf_counter() - began


def parallel_seconds(tasks):
    began = time.perf_counter()
    subprocess.run(["parallel", "--will-cite", "-j4", "true", ":::", *map(str, range(tasks))], check=True)
    return time.perf_counter() - began


def bench_rate(bench):
    tasks, ours, pool, parallel = 1000, [], [], []
    for _ in range(bench.rounds):
        seconds, _ = bench.client(tasks, "--function", "nothing", "--workers", 4, "--await", 4, "--repeat", 5)
        ours.append(1e3 * statistics.median(seconds))
        pool.append(1e3 * pool_seconds(tasks))
        if shutil.which("parallel"):
            parallel.append(1e3 * parallel_seconds(tasks // 5) * 5)
    found = statistics.median(ours)
    bench.add("rate", "1,000 empty tasks, 4 workers, a folder", "ms", ours, 500,
              f"{1e3 * tasks / found:,.0f} a second; ProcessPoolExecutor {statistics.median(pool):.0f} ms" +
              (f", GNU parallel (true) {statistics.median(parallel):.0f} ms" if parallel else ""))


class WorkersMemory(threading.Thread):
    """The greatest memory of any worker that runs meanwhile, in MiB."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.over = 0, threading.Event()

    def run(self):
        while not self.over.wait(0.02):
            for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    if line.read_bytes().startswith(b"shoal\0worker\0"):
                        said = (line.parent / "status").read_text()
                        self.most = max(self.most, int(said.partition("VmHWM:")[2].split()[0]) / 1024)
                except (OSError, IndexError):
                    continue

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def bench_queue(bench):
    """A client with 10,000 tasks whose workers sleep 20 ms for each: most of them wait."""
    used, queued, few = [], [], []
    for _ in range(bench.rounds):
        with WorkersMemory() as workers:
            _, bytes_used = bench.client(10000, "--workers", 4, "--function", "echo", "--size", 100)
        used.append(bytes_used / MIB)
        queued.append(workers.most)
        with WorkersMemory() as workers:
            bench.client(10, "--workers", 4, "--function", "doze", "--size", 100)
        few.append(workers.most)
    bench.add("queue", "memory of a client with 10,000 tasks of 100 bytes", "MiB", used, 100 * 1e6 / MIB)
    without = statistics.median(few)
    bench.add("queue", "memory of the largest of its workers", "MiB", queued, 1.25 * without,
              f"with 10 tasks {without:.1f} MiB")


# ---- over ssh --------------------------------------------------------------------------------------------------------


def bench_call(bench):
    """As many empty tasks as there are workers, and all their results."""
    for workers in (4, 16):
        ours, theirs = [], {name: [] for name in IPYPARALLEL_SETTINGS}
        for _ in range(bench.rounds):
            seconds, _ = bench.client(workers, "--function", "nothing", "--workers",
                                      f"ssh:h1:{workers // 2},h2:{workers // 2}", "--await", workers, "--repeat",
                                      bench.few(400, 150))
            ours.append(1e3 * statistics.median(seconds[20:]))
            for name, words in IPYPARALLEL_SETTINGS.items():
                theirs[name].append(ipyparallel_round(bench, workers, words))
        best = min(theirs, key=lambda name: statistics.median(theirs[name]))
        peer = statistics.median(theirs[best])
        bench.add("call", f"an empty call of {workers} workers on 2 hosts over ssh", "ms", ours, peer / 4,
                  f"ipyparallel without ssh {peer:.3g} ms ({best}), "
                  f"{peer / statistics.median(ours):.1f} times as much")


def bench_data(bench):
    """One argument for all tasks of 8 workers on 2 hosts."""
    size, factors = bench.few(1024, 128) * MIB, []
    before = [host.traffic()[0] for host in bench.far]
    seconds, _ = bench.client(32, "--function", "nothing", "--workers", "ssh:h1:4,h2:4", "--size", size, "--same")
    sent = sum(host.traffic()[0] for host in bench.far) - sum(before)
    factors.append(sent / size)
    bench.add("data", f"an argument of {size // MIB} MiB for 8 workers on 2 hosts: times it was sent", "", factors, 2.2,
              f"{seconds[0]:.1f} s for 32 tasks")


# ---- the faces -------------------------------------------------------------------------------------------------------


def open_executor(bench, workers):
    """One whose workers have all answered."""
    import shoal
    count = int(workers) if workers.isdigit() else sum(int(part.split(":")[-1]) for part in workers.split(","))
    executor = shoal.Executor(workers, ssh=f"ssh -F {bench.far.ssh_config} -oLogLevel=ERROR", python=sys.executable)
    seen = set()
    while len(seen) < count:
        seen.update(future.result() for future in [executor.submit(process_after, 0.02) for _ in range(4 * count)])
    return executor


def process_after(seconds):
    time.sleep(seconds)
    return os.getpid(), os.uname().nodename


def executor_call(executor, workers):
    began = time.perf_counter()
    for future in [executor.submit(abs, 1) for _ in range(workers)]:
        future.result()
    return 1e3 * (time.perf_counter() - began)


QUEUED = """
import resource, shoal, sys, time
with shoal.Executor("local:4") as executor:
    futures = [executor.submit(time.sleep, 0.002) for _ in range(10000)]
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
    executor.shutdown(cancel_futures=True)
"""


def bench_executor(bench):
    sys.path.insert(0, str(ROOT / "python"))
    os.environ["SHOAL_LIBRARY"], os.environ["SHOAL_PROGRAM"] = str(bench.shoal.parent / "libshoal.so"), str(bench.shoal)
    tasks, ours, pool = 1000, [], []
    for _ in range(bench.rounds):
        with open_executor(bench, "4") as executor:
            for _ in range(3):
                began = time.perf_counter()
                list(executor.map(abs, range(tasks)))
                ours.append(1e3 * (time.perf_counter() - began))
        pool.append(1e3 * pool_seconds(tasks))
    found = statistics.median(ours)
    bench.add("executor", "1,000 empty tasks of shoal.Executor, 4 workers", "ms", ours, 500,
              f"{1e3 * tasks / found:,.0f} a second; ProcessPoolExecutor {statistics.median(pool):.0f} ms")
    done = subprocess.run([sys.executable, "-c", QUEUED], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    bench.add("executor", "memory of Python with 10,000 futures", "MiB", [int(done.stdout) / 1024], 100 * 1e6 / MIB)
    for workers in (4, 16):
        ours, theirs = [], []
        for _ in range(bench.rounds):
            with open_executor(bench, f"ssh:h1:{workers // 2},h2:{workers // 2}") as executor:
                ours.append(statistics.median(executor_call(executor, workers) for _ in range(bench.few(200, 80))))
            theirs.append(min(ipyparallel_round(bench, workers, words) for words in IPYPARALLEL_SETTINGS.values()))
        peer = statistics.median(theirs)
        bench.add("executor", f"an empty call of shoal.Executor, {workers} workers on 2 hosts over ssh", "ms", ours,
                  peer / 4, f"ipyparallel without ssh {peer:.3g} ms, "
                  f"{peer / statistics.median(ours):.1f} times as much")
    bench_array(bench)


def bench_array(bench):
    import numpy as np
    size = bench.few(1024, 128) * MIB
    array = np.zeros(size // 8)
    with open_executor(bench, "ssh:h1:4,h2:4") as executor:
        before = sum(host.traffic()[0] for host in bench.far)
        began = time.perf_counter()
        for future in [executor.submit(len, array) for _ in range(32)]:
            future.result()
        seconds = time.perf_counter() - began
        sent = sum(host.traffic()[0] for host in bench.far) - before
    bench.add("executor", f"an array of {size // MIB} MiB for 8 workers on 2 hosts: times it was sent", "",
              [sent / size], 2.2, f"{seconds:.1f} s for 32 tasks")


def bench_map(bench):
    tasks, ours, parallel = 1000, [], []
    for _ in range(bench.rounds):
        began = time.perf_counter()
        subprocess.run([bench.shoal, "map", "-j4", "true", ":::", *map(str, range(tasks))], check=True)
        ours.append(1e3 * (time.perf_counter() - began))
        if shutil.which("parallel"):
            parallel.append(1e3 * parallel_seconds(tasks // 5) * 5)
    bench.add("map", "1,000 runs of true by shoal map -j4", "ms", ours, None,
              f"GNU parallel {statistics.median(parallel):.0f} ms" if parallel else "")


GROUPS = {"rate": bench_rate, "queue": bench_queue, "call": bench_call, "data": bench_data,
          "executor": bench_executor, "map": bench_map}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench tasks", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a minute: fewer and shorter runs")
    parser.add_argument("--only", default="", help="only groups whose name has this in it: " + ", ".join(GROUPS))
    parser.add_argument("--rounds", type=int, help="how often the programs take turns (5; quick: 1)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where the program is")
    parser.add_argument("--folder", help="where stores are made (default: the usual place of temporary files)")
    parser.add_argument("--markdown", action="store_true",
                        help="print the last results as Markdown and measure nothing")
    options = parser.parse_args()
    if options.markdown:
        return bench_engine.print_markdown(json.loads((RESULTS / "tasks.json").read_text()))
    built = subprocess.run(["cmake", "--build", options.build, "--target", "task_client", "task_functions"],
                           capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"bench: task_client was not built:\n{built.stdout[-2000:]}")
    before = os.getloadavg()[0]
    hosts.isolate("ipcontroller", "ipengine")
    with tempfile.TemporaryDirectory(prefix="shoal-bench-", dir=options.folder) as folder, hosts.Hosts(folder,
                                                                                                       2) as far:
        bench = Bench(options.build.resolve() / "shoal", folder, options.quick,
                      options.rounds or (1 if options.quick else 5), far)
        for name, measure in GROUPS.items():
            if options.only in name:
                say(name)
                measure(bench)
    report = {"when": time.strftime("%Y-%m-%d"), "cpu": bench_kmeans.cpu_name(), "cores": len(os.sched_getaffinity(0)),
              "quick": options.quick, "load": [before, os.getloadavg()[0]], "rows": bench.rows}
    if not options.only:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "tasks.json").write_text(json.dumps(report, indent=1) + "\n")
    bench_engine.print_table(report)
    return None


if __name__ == "__main__":
    main()
