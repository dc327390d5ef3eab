"""Jobs under chaos: workers and whoever started them are killed, stopped, told to leave and joined by others, at
random, while a job runs; its outputs must be those of the threads engine, byte by byte.

    chaos.main(make_store, seconds)        # in a test_job_chaos_STORE.py, which says where jobs meet

    test_job_chaos_STORE.py PATH_TO_shoal [--seconds N] [--seed N]

Jobs run one after the other until the seconds are over (a faster machine runs more of them). All chance comes from the
seed, which a failure prints and SHOAL_CHAOS_SEED gives too; a replay makes the same choices, though not at the very
same moments. This process adopts the workers of a starter that was killed, so all there is to kill is among its
descendants, and none of them may be left in the end.
"""
import argparse
import collections
import filecmp
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from processes import adopt_orphans, children, command, read, reap, state, wait_until

LEASE = 2.0
WORKERS = 8
ENOUGH_WORKERS = 4  # below that new ones join
OUTLIVES = 10  # seconds within which a worker is gone once its job has ended
FORGETS = 7  # seconds after which what a server acknowledged has been written to its disk, on a busy machine too


# ---- one run of the test --------------------------------------------------------------------------------------------


class Chaos:
    """Where jobs meet (`url`, with the variables that opening it takes), the work, what comes out of it, by the names
    of options, and what was done to it so far. `server` can be killed and started again; None: the store has none, or
    none that survives it."""

    def __init__(self, shoal, folder, url, variables, work, server=None, verb="kmeans", outputs=("centres", "labels")):
        self.shoal, self.folder, self.url, self.work, self.server = shoal, folder, url, work, server
        self.verb, self.outputs = verb, outputs
        self.environment = {**os.environ, **variables, "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache",
                            "XDG_STATE_HOME": f"{folder}/state"}
        self.counts, self.history, self.pack = collections.Counter(), [], []
        self.starter, self.job, self.joined, self.sleeping = None, None, [], {}
        self.began, self.there_since = time.monotonic(), None

    def note(self, what):
        self.history.append(f"{time.monotonic() - self.began:7.2f} s  {what}")

    def run(self, *words, check=True):
        done = subprocess.run([self.shoal, *words], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120)
        assert not check or done.returncode == 0, f"shoal {' '.join(words)} exits {done.returncode}: {done.stderr}"
        return done

    def start(self, *words):
        """In the background; what it says goes to a file."""
        with open(os.path.join(self.folder, "said"), "ab") as said:
            return subprocess.Popen([self.shoal, *words], env=self.environment, stdin=subprocess.DEVNULL, stdout=said,
                                    stderr=said)

    # What there is to hit.

    def workers(self):
        """Processes that work, or are stopped, by their ids: of a starter, adopted from one, and those that joined."""
        found = []
        for pid in {*children(os.getpid()), *(children(self.starter.pid) if self.starter else [])}:
            if command(pid)[1:2] == ["worker"] and state(pid) not in ("Z", ""):
                found.append(pid)
            elif state(pid) == "Z" and not self.is_ours(pid):
                reap(pid)
        return sorted(found)

    def is_ours(self, pid):
        started = [self.starter, *self.joined, self.server and self.server.process]
        return any(process and process.pid == pid for process in started)

    def wake(self, everyone=False):
        """Those that were stopped go on when their time has come."""
        now = time.monotonic()
        for pid, until in list(self.sleeping.items()):
            if everyone or now >= until:
                del self.sleeping[pid]
                if state(pid) == "T":
                    os.kill(pid, signal.SIGCONT)

    # What happens to it.

    def kill_worker(self, random):
        workers = self.workers()
        if workers:
            pid = random.choice(workers)
            self.note(f"worker {pid} is killed")
            os.kill(pid, signal.SIGKILL)
            self.counts["killed"] += 1

    def stop_worker(self, random):
        workers = [pid for pid in self.workers() if state(pid) != "T"]
        seconds = random.uniform(0.5, 2) * LEASE
        if workers:
            pid = random.choice(workers)
            self.note(f"worker {pid} is stopped for {seconds:.1f} s")
            os.kill(pid, signal.SIGSTOP)
            self.sleeping[pid] = time.monotonic() + seconds
            self.counts["stopped"] += 1
            self.counts["stopped for longer than the lease"] += seconds > LEASE

    def dismiss_worker(self, random):
        workers = [pid for pid in self.workers() if state(pid) != "T"]
        if workers:
            pid = random.choice(workers)
            self.note(f"worker {pid} is told to leave")
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda: state(pid) in ("", "Z", "T"), 300, f"worker {pid} has left")
            self.counts["told to leave"] += 1

    def join_worker(self, random):
        """Half of them serve whatever jobs there are."""
        words = ["worker", "--store", self.url, "--data-root", "/", "--slots", "1", "--idle", "60"]
        if random.random() < 0.5:
            words += ["--job", self.job]
        self.joined.append(self.start(*words))
        self.note(f"worker {self.joined[-1].pid} joins: {' '.join(words[9:]) or 'any job'}")
        self.counts["joined"] += 1

    def end_starter(self, random):
        """Kills it, or tells it to stop, and resumes the job with other workers; but not while the store could forget
        all of a job that then nobody would know any more."""
        if self.server and self.is_fragile():
            return
        gently = random.random() < 0.3
        self.note(f"the starter {self.starter.pid} is {'told to stop' if gently else 'killed'}")
        self.starter.send_signal(signal.SIGTERM if gently else signal.SIGKILL)
        code = self.starter.wait(300)
        assert code in ((3, 0) if gently else (-signal.SIGKILL, 0)), f"the starter ends with {code}"
        self.counts["starters ended"] += 1
        self.counts["starters told to stop"] += gently
        time.sleep(random.uniform(0, 1.5))
        self.resume(random.randint(2, WORKERS))

    def is_fragile(self):
        """Whether a server that is killed might forget the job itself: as long as it has not been there for some
        seconds."""
        if self.there_since is None:
            shown = self.run("job", "show", self.job, "--store", self.url, "--deadline", "2", check=False)
            self.there_since = time.monotonic() if shown.returncode == 0 else None
        return self.there_since is None or time.monotonic() < self.there_since + FORGETS

    def resume(self, workers):
        self.note(f"the job is resumed with {workers} workers")
        self.starter = self.start("job", "resume", self.job, "--store", self.url, "--workers", f"local:{workers}",
                                  "--quiet")

    def kill_server(self, random):
        """Which makes it forget what it acknowledged within the last seconds.  The second time only after a starter was
        ended, for which a job must have been safe for a while: on a slow machine none would ever be."""
        if self.counts["servers killed"] > self.counts["starters ended"]:
            return
        self.note("the store's server is killed")
        self.server.kill()
        time.sleep(random.uniform(0, 1.5))
        self.server.start()
        self.note("the store's server starts")
        self.counts["servers killed"] += 1
        self.there_since = None

    def strike(self, random):
        """Something happens to the workers, and every other time one is killed. The kinds are drawn as from a pack of
        cards, so that none is left out for long."""
        if not self.pack:
            self.pack = 4 * [self.kill_worker] + 2 * [self.stop_worker] + [self.dismiss_worker, self.join_worker]
            random.shuffle(self.pack)
        self.pack.pop()(random)

    # Jobs.

    def begin(self, number):
        self.found = output_files(self, number)
        self.note(f"job {number} is started")
        self.job, self.there_since = None, None
        self.starter = self.start(self.verb, *self.work, "--store", self.url, "--workers",
                                  f"local:{WORKERS}", "--lease", str(LEASE), "--job", f"n{number}",
                                  "--reduce", "ranged:3" if number % 2 and not self.server else "auto",
                                  *output_words(self, self.found), "--quiet")
        wait_until(lambda: self.find_job(number), 300, "the job is in the store")

    def find_job(self, number):
        assert self.starter.poll() in (None, 0), f"the starter ends with {self.starter.returncode}"
        found = self.run("job", "show", f"n{number}-", "--json", "--store", self.url, check=False)
        self.job = json.loads(found.stdout)["id"] if found.returncode == 0 else None
        return self.job

    def disturb(self, random, is_over):
        """Until the job has ended or the time is over. Strikes come at random, about one a second; starter and server
        end now and then; and there are never few workers for long."""
        began = time.monotonic()
        due = {self.strike: began, self.end_starter: began + random.uniform(1, 6), self.refill: began + 2}
        again = {self.strike: lambda: random.expovariate(1.25), self.refill: lambda: 1,
                 self.end_starter: lambda: random.uniform(2, 4 if self.server else 8)}
        if self.server:
            due[self.kill_server] = began + random.uniform(0, 5)
            again[self.kill_server] = lambda: random.uniform(16, 24)
        while not is_over() and self.starter.poll() is None:
            self.wake()
            what = min(due, key=due.get)
            if time.monotonic() >= due[what]:
                what(random)
                due[what] = time.monotonic() + again[what]()
            time.sleep(0.02)
        self.wake(everyone=True)
        self.refill(random)

    def refill(self, random):
        if len(self.workers()) < ENOUGH_WORKERS:
            self.join_worker(random)

    def finish(self, expected, seconds):
        """The job ends, undisturbed by now, and its files are right."""
        try:
            code = self.starter.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"job {self.job} has not ended {seconds} s after all was quiet") from None
        assert code == 0, f"the starter of job {self.job} ends with {code}"
        self.starter = None
        for ours, theirs in zip(self.found, expected):
            assert filecmp.cmp(ours, theirs, shallow=False), f"{ours} and {theirs} differ"
            os.unlink(ours)
        about = json.loads(self.run("job", "show", self.job, "--json", "--store", self.url).stdout)
        assert about["state"] == "done", about
        self.counts["rescues"] += about["doubled"]
        self.counts["rounds"] += about["round"]
        self.note(f"job {self.job} is done: {about['round']} rounds, {about['doubled']} pieces made for others")
        wait_until(lambda: not [p for p in self.workers() if self.job in command(p)], OUTLIVES,
                   "the job's workers are gone")
        kept = self.run("store", "ls", "-r", f"{self.url}/jobs/{self.job}/round/").stdout.splitlines()
        assert 1 <= len(kept) <= 1 + WORKERS, f"beside its last model a finished job keeps {kept}"  # sleepers put late
        self.run("job", "remove", self.job, "--store", self.url)
        left = self.run("store", "ls", "-r", f"{self.url}/jobs/", check=False).stdout
        assert self.job not in left, f"a job that was removed has left behind:\n{left}"

    def end(self):
        """All processes go; who joined for any job is told to."""
        self.wake(everyone=True)
        for pid in self.workers():
            os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not self.workers(), OUTLIVES, "all workers are gone")
        for process in self.joined:
            process.wait()

    def end_by_force(self):
        left = [self.starter.pid] if self.starter and self.starter.poll() is None else []
        for pid in left + self.workers():
            os.kill(pid, signal.SIGKILL)
        for process in [self.starter, *self.joined]:
            if process:
                process.wait()

    def explain(self):
        print("\n".join(self.history))
        if self.job:
            for verb in ("show", "logs"):
                done = self.run("job", verb, self.job, "--store", self.url, check=False)
                print(f"---- shoal job {verb}:\n{done.stdout}{done.stderr}")
        for pid in self.workers():
            print(f"---- still there: {pid} {state(pid)} {' '.join(command(pid)[1:])}")
        said = read(os.path.join(self.folder, "said")).decode(errors="replace")
        print(f"---- said:\n{said[-20000:]}")


def output_files(chaos, name):
    """What a run of this name writes."""
    endings = {"model": "safetensors"}
    return [f"{chaos.folder}/{name}.{output}.{endings.get(output, 'npy')}" for output in chaos.outputs]


def output_words(chaos, files):
    return [word for output, file in zip(chaos.outputs, files) for word in (f"--{output}", file)]


def expected_files(chaos):
    """By the threads engine."""
    files = output_files(chaos, "expected")
    chaos.run(chaos.verb, *chaos.work, "--quiet", *output_words(chaos, files))
    return files


# Less would show nothing.
LEAST = {"killed": 4, "stopped": 1, "told to leave": 1, "joined": 1, "starters ended": 1, "servers killed": 1}


def is_enough(chaos):
    return all(chaos.counts[what] >= least for what, least in LEAST.items() if what != "servers killed" or chaos.server)


def torment(chaos, seed, seconds):
    """Job after job until the time is over; on a slow machine until enough has happened, if that is soon."""
    chance, number = random.Random(seed), 0
    expected = expected_files(chaos)
    began = time.monotonic()

    def is_over():
        spent = time.monotonic() - began
        return spent >= 8 * seconds or (spent >= seconds and is_enough(chaos))
    while not is_over():
        number += 1
        chaos.begin(number)
        chaos.disturb(chance, is_over)
        chaos.finish(expected, 120)
    chaos.end()
    print(", ".join(f"{count} {what}" for what, count in sorted(chaos.counts.items())))
    assert is_enough(chaos) and chaos.counts["rescues"] > 0, "too little has happened to show anything"


def main(make_store, seconds):
    """make_store(shoal, folder) is a context that gives a Chaos, or None to skip, having said why."""
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal", type=os.path.abspath)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SHOAL_CHAOS_SEED", "1")))
    options = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="shoal-chaos-") as folder, make_store(options.shoal, folder) as chaos:
        if chaos is None:
            sys.exit(77)
        try:
            torment(chaos, options.seed, options.seconds)
        except BaseException:
            print(f"FAILED with --seed {options.seed} --seconds {options.seconds}")
            chaos.explain()
            chaos.end_by_force()
            raise
