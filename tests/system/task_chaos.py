"""Tasks under chaos: workers are killed, stopped and told to leave, at random, while a client has its tasks run; each
must have one result, the right one, and nothing may be left when the client has closed.

    task_chaos.main(make_store, tasks)       # in a test_tasks_chaos_STORE.py, which says where they meet

    test_tasks_chaos_STORE.py PATH_TO_shoal [--tasks N] [--seed N]

`make_store` is a context that yields an address, variables of the environment, and a server that can be killed and
started again, or None. task_client judges the results. All chance comes from the seed, which a failure prints.
"""
import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from processes import wait_until

LEASE, WORKERS = 2, 4


class Chaos:
    def __init__(self, shoal, folder, url, variables, seed):
        self.shoal, self.folder, self.url = shoal, folder, url
        self.environment = {**os.environ, **variables, "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache"}
        self.random, self.workers, self.said, self.killed = random.Random(seed), [], f"{folder}/said", 0
        self.key = f"{folder}/key"
        pathlib.Path(self.key).write_text("5a" * 32 + "\n")

    def start_worker(self, client):
        """Half of them serve whatever there is."""
        words = ["worker", "--store", self.url, "--task-key", self.key, "--slots", "2"]
        words += ["--job", client] if self.random.random() < 0.5 else []
        with open(self.said, "ab") as said:
            self.workers.append(subprocess.Popen([self.shoal, *words], env=self.environment, stdin=subprocess.DEVNULL,
                                                 stdout=said, stderr=said))

    def one_event(self):
        worker, chance = self.random.choice(self.workers), self.random.random()
        if chance < 0.6:
            worker.kill()
            self.killed += 1
        elif chance < 0.8:
            worker.terminate()
        else:  # whoever wakes after its lease is one that everybody thinks dead
            worker.send_signal(signal.SIGSTOP)
            time.sleep(LEASE * self.random.random() * 0.7)
            worker.send_signal(signal.SIGCONT)

    def end_workers(self):
        for worker in self.workers:
            worker.send_signal(signal.SIGCONT)
            worker.terminate()
        for worker in self.workers:
            try:
                worker.wait(20)
            except subprocess.TimeoutExpired:
                worker.kill()
                raise AssertionError("a worker that was told to leave has not ended")

    def run(self, tasks, function, every, server=None):
        build = pathlib.Path(self.shoal).parent / "tests/system"
        told = pathlib.Path(f"{self.folder}/told")
        with open(told, "wb") as output:
            client = subprocess.Popen([build / "task_client", self.url, self.key, build / "task_functions.so",
                                       str(tasks), "--function", function, "--lease", str(LEASE)],
                                      env=self.environment, stdin=subprocess.DEVNULL, stdout=output)
        try:
            wait_until(lambda: "\n" in told.read_text() or client.poll() is not None, 60, "the client has opened")
            name = told.read_text().split()[1]
            for _ in range(WORKERS):
                self.start_worker(name)
            next_event, kill_server = time.monotonic() + every, server is not None
            end = time.monotonic() + 280
            while "closing" not in told.read_text() and client.poll() is None:
                assert time.monotonic() < end, "the tasks do not end"
                if time.monotonic() > next_event:
                    self.one_event()
                    next_event = time.monotonic() + every
                if kill_server and time.monotonic() > end - 276:
                    kill_server = False
                    server.kill()
                    server.start()
                self.workers = [worker for worker in self.workers if worker.poll() is None]
                while len(self.workers) < WORKERS:
                    self.start_worker(name)
                time.sleep(0.02)
            assert client.wait(120) == 0, f"the client ends with {client.returncode}"
        finally:
            client.kill()
            self.end_workers()
        self.expect_empty()

    def expect_empty(self):
        """But for tombstones, which keep sleeping workers from writing, and what this test put there."""

        def left():
            listed = subprocess.run([self.shoal, "store", "ls", self.url, "--json"], env=self.environment, text=True,
                                    capture_output=True, timeout=120)
            assert listed.returncode == 0, listed.stderr
            return [word for word in listed.stdout.split('"') if word.startswith(("jobs/", "open/"))]

        assert not left(), f"the client has closed, and this is left: {left()}"


def main(make_store, tasks, function="doze", every=0.3):
    arguments = argparse.ArgumentParser()
    arguments.add_argument("shoal")
    arguments.add_argument("--tasks", type=int, default=tasks)
    arguments.add_argument("--seed", type=int, default=random.randrange(10**6))
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="shoal-tasks-") as folder, make_store(asked.shoal, folder) as made:
        if made is None:
            sys.exit(77)
        url, variables, server = made
        chaos = Chaos(os.path.abspath(asked.shoal), folder, url, variables, asked.seed)
        began = time.monotonic()
        try:
            chaos.run(asked.tasks, function, every, server)
        except BaseException:
            print(f"seed {asked.seed}", file=sys.stderr)
            with open(chaos.said, errors="replace") as said:
                print(said.read()[-3000:], file=sys.stderr)
            raise
        print(f"{asked.tasks} tasks in {time.monotonic() - began:.1f} s, {chaos.killed} workers killed")
