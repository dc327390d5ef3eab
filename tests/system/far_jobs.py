"""Jobs whose workers are on other machines (hosts.py, slurm.py), and what must be true of their results.

    job = far_jobs.Job(shoal, folder, workers=["ssh:h1:2,h2:2"], options=["--ssh", far.ssh])
    job.start()
    job.wait_for_round(5)
    ... something happens ...
    job.ends(0, "h1: reached again")
    job.agrees()                        # with the threads engine, byte by byte
"""
import contextlib
import filecmp
import json
import os
import shutil
import signal
import subprocess
import time

from processes import children, command, read, state, wait_until

SOON = 300  # seconds within which anything happens, on a busy machine
# More than two hundred rounds, in which some 80 kB go to and from each of two hosts: with one of them behind a link of
# 1 Mbit/s they take more than a minute on any machine, and some seconds once the link is as fast as others.
WORK = [
    "gen:uniform?rows=6000&cols=16&seed=3", "-k", "64", "--init", "random", "--iterations", "100", "--tolerance", "0",
    "--runs", "4"
]


class Job:
    """Has a folder of its own below `folder`: its home, its store and its outputs."""

    def __init__(self, shoal, folder, name, workers, options=(), work=None, store=None, variables=None):
        self.shoal, self.folder, self.work = shoal, f"{folder}/{name}", work or WORK
        self.workers, self.options = workers, list(options)
        self.store = store or f"dir:{self.folder}/store"
        self.environment = {**os.environ, **(variables or {}), "HOME": self.folder}
        self.process = None
        os.makedirs(self.folder)
        self.expected = f"{folder}/expected-{abs(hash(tuple(self.work)))}"
        if not os.path.exists(f"{self.expected}.npy"):  # several jobs may do the same work
            self.run("kmeans", *self.work, "--quiet", *files(self.expected))

    def run(self, *words, check=True):
        done = subprocess.run([self.shoal, *words], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=2 * SOON)
        assert not check or done.returncode == 0, f"shoal {' '.join(words)} exits {done.returncode}: {done.stderr}"
        return done

    def words(self):
        return [word for workers in self.workers for word in ("--workers", workers)] + self.options

    def start(self, **how):
        words = [
            "kmeans", *self.work, "--store", self.store, "--lease", "3", *self.words(), *files(f"{self.folder}/found")
        ]
        self.launch(words, **how)

    def launch(self, words, **how):
        with open(f"{self.folder}/said", "wb") as said:
            self.process = subprocess.Popen([self.shoal, *words], env=self.environment, stdout=said, stderr=said,
                                            **{"stdin": subprocess.DEVNULL, **how})

    def said(self):
        return read(f"{self.folder}/said").decode(errors="replace")

    def show(self):
        shown = self.run("job", "show", "--json", "--store", self.store, check=False)
        return json.loads(shown.stdout) if shown.returncode == 0 else None

    def wait_for(self, condition, what):
        """Until `condition` is true of what the store says of the job."""
        def there():
            assert self.process.poll() is None, f"ended early with {self.process.returncode}: {self.said()}"
            about = self.show()
            return about and condition(about)
        try:
            wait_until(there, SOON, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.explain()}\n{stacks()}") from None

    def wait_for_round(self, number):
        self.wait_for(lambda about: about["round"] >= number, f"round {number}")

    def wait_for_all(self, count):
        """Until so many workers have mapped something."""
        self.wait_for(
            lambda about: sum(worker["alive"] and worker["mapped"] > 0 for worker in about["worker"]) >= count,
            f"{count} workers at work")

    def wait_for_saying(self, *sentences, seconds=SOON):
        def there():
            assert self.process.poll() is None, f"ended early with {self.process.returncode}: {self.said()}"
            return all(sentence in self.said() for sentence in sentences)
        wait_until(there, seconds, f"{sentences} in what it says")

    def ends(self, code, *sentences):
        try:
            self.process.wait(2 * SOON)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end\n{self.explain()}") from None
        if self.process.returncode != code or not all(sentence in self.said() for sentence in sentences):
            raise AssertionError(f"exits {self.process.returncode}, not {code} with {sentences}\n{self.explain()}")

    def explain(self):
        told = "".join(self.run("job", verb, "--store", self.store, check=False).stdout for verb in ("show", "logs"))
        return f"---- said:\n{self.said()}\n---- job:\n{told[-6000:]}"

    def agrees(self):
        for name in (".npy", ".labels.npy"):
            assert filecmp.cmp(f"{self.folder}/found{name}", f"{self.expected}{name}", shallow=False), f"{name} differs"

    def resumes(self, *words):
        """The job goes on, with other workers if there are words for that."""
        self.launch(["job", "resume", "--store", self.store, *(words or self.words())])

    def mapped(self, about=None):
        """How many grains' runs each host has mapped, of workers that are there or have been."""
        found = {}
        for worker in (about or self.show())["worker"]:
            found[worker["host"]] = found.get(worker["host"], 0) + worker["mapped"]
        return found

    def end_by_force(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


def stacks():
    """Where all processes of ours stand, on all hosts, when there is a debugger to tell."""
    told = ""
    for pid in filter(str.isdigit, os.listdir("/proc")) if shutil.which("gdb") else ():
        if set(command(pid)[1:2]) & {"kmeans", "job", "agent", "worker"}:
            done = subprocess.run(["gdb", "-batch", "-p", pid, "-ex", "thread apply all backtrace 12"],
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL)
            lines = [line for line in done.stdout.splitlines() if line.startswith(("#", "Thread"))]
            told += f"---- {pid} {' '.join(command(pid)[1:])[:160]}\n" + "\n".join(lines) + "\n"
    return told


def files(name):
    return ["--centres", f"{name}.npy", "--labels", f"{name}.labels.npy"]


def bring_program(shoal, far, names=None):
    """After this the program is on all hosts, or on those named: no job has to wait for that."""
    names = names or [host.name for host in far]
    done = subprocess.run([shoal, "check", "--workers", f"ssh:{','.join(names)}", *ssh_options(far)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON)
    assert done.returncode == 0, f"shoal check exits {done.returncode}: {done.stdout}{done.stderr}"


def agents_and_workers(far):
    """What of ours runs on the hosts, as {host: [pid, ...]}."""
    found = {}
    for host in far:
        ours = [pid for pid in host.processes() if set(command(pid)[1:2]) & {"agent", "worker"}]
        if ours:
            found[host.name] = ours
    return found


def run_cases(cases, far, *arguments):
    """One after the other; after each nothing of ours may be left on the hosts."""
    for case in cases:
        began = time.monotonic()
        try:
            case(far, *arguments)
            wait_until(lambda: not agents_and_workers(far), SOON, f"{case.__name__}: nothing is left on the hosts")
        except BaseException:
            print(f"FAILED: {case.__name__}")
            for host in far:
                for pid in host.processes():
                    print(f"{host.name}: {pid} {state(pid)} {' '.join(command(pid))[:200]}")
            raise
        finally:
            for pid in children(os.getpid()):
                if command(pid)[1:2] == ["kmeans"]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            for host in far:
                host.kill()
        print(f"{case.__name__}: {time.monotonic() - began:.1f} s", flush=True)


def ssh_options(far):
    return ["--ssh", f"ssh -F {far.ssh_config}"]
