#!/usr/bin/env python3
# Labels: asan
# Seconds: 30
"""A store that others write to: whatever lies in it, a worker survives, tells no secrets, and goes on serving.

    test_hostile_store.py PATH_TO_shoal [--only NAME] [--seed N] [--count N] [--all] [--list] [--jobs N]

A few real jobs of every learner are submitted and run; from what lay in the store meanwhile come many jobs that are
real but for one thing (forgeries.py): a field, a size, a layout, a piece, a message, an end, with checksums that fit.
One worker that serves all jobs of its store gets a batch of them and then an honest job.  Of each batch it is asserted
that

    - the worker lives, within its memory, without a report of a sanitizer, and gets through all of them in time;
    - each forged job has ended, or the worker refuses it in one sentence;
    - what is done has the result of the real job, or, where the truth itself was forged, one of the same shape;
    - of a forged end `shoal job result` shows nothing but a result of the learner's shape;
    - the honest job has the bytes of a run without workers;
    - no blob holds what the worker's memory holds: a secret that is in its environment and in every spec.

A failure names the forgery; --only NAME runs those whose names start so.  --count runs so many, in turn of every kind;
--all knows more values of every field.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import filecmp
import itertools
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import forge
import forgeries
from forgeries import ENDED, RAN, REFUSED, SAME, SECRET, SHAPE, WORKER, Real

SOON = 120  # seconds within which anything that happens at all happens, on a busy machine
BATCH = 75  # forged jobs a worker
MEMORY = 1 << 30  # bytes that a worker may have
COUNT = 1100  # forgeries, half as many with a sanitizer
SLOW = 30  # seconds that a worker may take over one forged job
SUBMIT = ["--detach", "--lease", "1", "--slices", "4", "--reduce", "tree:2", "--grain", "50", "--quiet"]
KMEANS = ["-k", "3", "--iterations", "3", "--tolerance", "0"]
STEPS = ["--iterations", "4", "--tolerance", "0"]
JOBS = {  # that are submitted as anyone would
    "greedy": ["kmeans", "rows.csv", *KMEANS, "--init", "kmeans++", "--runs", "2"],
    "parallel": ["kmeans", "rows.csv", *KMEANS, "--init", "parallel"],
    "random": ["kmeans", "rows.csv", *KMEANS, "--init", "random", "--weights", "weights.csv"],
    "given": ["kmeans", "rows.csv", *KMEANS, "--init", "given.csv"],
    "several": ["kmeans", "rows.csv", "-k", "2,3", "--iterations", "2", "--sample", "40"],
    "batches": ["kmeans", "rows.csv", *KMEANS, "--batch", "40", "--runs", "2", "--reassignment-ratio", "0.9",
                "--max-no-improvement", "0"],
    "wide": ["kmeans", "wide.csv", *KMEANS, "--init", "random", "--empty", "split"],
    "binary": ["logistic", "binary.csv", *STEPS],
    "softmax": ["logistic", "three.csv", *STEPS, "--weights", "weights.csv"],
    "l1": ["logistic", "binary.csv", *STEPS, "--l1", "1", "--precision", "float32"],
    "bayes": ["bayes", "three.csv", "--weights", "weights.csv"],
    "uniform": ["bayes", "binary.csv", "--priors", "uniform"],
    "sparse": ["autoencoder", "rows.csv", "--hidden", "2", *STEPS],
    "tied": ["autoencoder", "rows.csv", "--hidden", "2", *STEPS, "--tied", "--activation", "relu", "--sparsity-weight",
             "0"],
}
HONEST = {"kmeans": ["rows.csv", *KMEANS, "--centres"], "logistic": ["three.csv", *STEPS, "--model"],
          "bayes": ["three.csv", "--model"], "autoencoder": ["rows.csv", "--hidden", "2", *STEPS, "--model"]}


class Place:
    """The program, a folder, and what all processes have in common."""

    def __init__(self, program, folder):
        self.program, self.folder = os.path.abspath(program), folder
        with open(self.program, "rb") as file:
            self.sanitized = b"__asan_init" in file.read()
        sanitizers = (f"allocator_may_return_null=1:max_allocation_size_mb={MEMORY >> 20}:"
                      f"hard_rss_limit_mb={2 * MEMORY >> 20}")
        self.environment = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache",
                            "XDG_STATE_HOME": f"{folder}/state", "ASAN_OPTIONS": sanitizers,
                            "AZURE_STORAGE_SAS_TOKEN": SECRET.decode() + "environment"}
        self.environment.pop("SHOAL_STORE", None)

    def start(self, *words, **options):
        return subprocess.Popen([self.program, *map(str, words)], cwd=self.folder, env=self.environment,
                                stdin=subprocess.DEVNULL, **options)

    def run(self, *words, code=0):
        process = self.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        out, err = process.communicate(timeout=SOON)
        assert code in (None, process.returncode), f"{words} exits {process.returncode}, not {code}: {out} {err}"
        return process.returncode, out, err

    def new_store(self, name):
        shutil.copytree(f"{self.folder}/empty", f"{self.folder}/{name}")
        return forge.Store(f"{self.folder}/{name}")


# ---- real jobs -----------------------------------------------------------------------------------------------------


def write_table(path, rows):
    with open(path, "w", encoding="ascii") as file:
        file.writelines(",".join(f"{value:.5g}" for value in row) + "\n" for row in rows)


def make_data(folder):
    """200 rows of 4 columns in three heaps, between 0 and 1."""
    chance = random.Random(4)
    kinds = [i % 3 for i in range(200)]
    rows = [[min(max(0.2 + 0.3 * kind + chance.gauss(0, 0.08), 0), 1) for _ in range(4)] for kind in kinds]
    write_table(f"{folder}/rows.csv", rows)
    write_table(f"{folder}/wide.csv", [[*row[:3], row[3] * 10 ** (i % 12)] for i, row in enumerate(rows)])
    write_table(f"{folder}/binary.csv", [[*row, kind == 2] for row, kind in zip(rows, kinds)])
    write_table(f"{folder}/three.csv", [[*row, kind] for row, kind in zip(rows, kinds)])
    write_table(f"{folder}/weights.csv", [[1 + i % 4] for i in range(200)])
    write_table(f"{folder}/given.csv", [rows[0], rows[1], [9, 9, 9, 9]])  # nobody is near the last


def submit_real(place, store):
    """Submits what the program can submit, then the learners that only a program of one's own can: name, id of each."""
    names = {name: place.run(*words, *SUBMIT, "--store", store.folder, "--job", name)[1].strip()
             for name, words in JOBS.items()}
    blobs, messages = store.blobs(), store.messages()
    like, job = forge.read_spec(forge.unframe(blobs[f"jobs/{names['given']}/spec"])), names["given"]
    firsts = {
        "predict": like.first.copy().set("round.model.predicting", 1).set("round.model.distances", 1).set(
            "round.model.iterations", 0),
        "logistic-predict": forge.make_round(
            "logistic-predict", {"columns": 4, "outputs": 3, "classes": 3, "probabilities": 1},
            [0.5, -1, 1, 0.25] * 3 + [0, 0.1, -0.1] + [0, 1, 2],
            [(b"labels", 4, 0, 8), (b"not finite", 3, 1, 8), (b"probabilities", 4, 0, 24)]),
        "bayes-predict": forge.make_round(
            "bayes-predict", {"columns": 4, "classes": 3, "probabilities": 1},
            [0, 1, 2] + [-1, -1.5, -2] + [0.2, 0.5, 0.8] * 4 + [2, 3, 4] * 4,
            [(b"labels", 4, 0, 8), (b"not finite", 3, 1, 8), (b"probabilities", 4, 0, 24)]),
        "features": forge.make_round(
            "features", {"hidden": 2, "columns": 4, "activation": 1, "wide": 1, "scale": forge.bits(1.0)},
            [0.5, -1, 1, 0.25] * 2 + [0, 0.1], [(b"features", 4, 0, 16), (b"bad value", 3, 1, 8)])}
    for name, first in firsts.items():
        spec = forge.Spec({**like.json, "algorithm": name, "id": f"{name}-0"}, first)
        names[name] = f"{name}-0"
        more = {key.replace(job, names[name]): blob for key, blob in blobs.items() if f"/{job}" in key}
        store.put({**more, f"jobs/{name}-0/spec": forge.frame("spec", spec.encode())},
                  [(queue.replace(job, names[name]), text) for queue, text in messages if f"/{job}/" in queue])
    return names


def work(place, store, job):
    """Three workers with a role each, so that every piece is put."""
    workers = [place.start("worker", "--store", store.folder, "--job", job, "--roles", role, "--slots", "1", "--quiet",
                           stderr=subprocess.PIPE) for role in ("map", "reduce", "last")]
    for worker in workers:
        said = worker.communicate(timeout=SOON)[1]
        assert worker.returncode == 0, f"{job}: a worker ends with {worker.returncode}: {said}"


def read_real(name, job, first, ever, messages):
    """One job by all that was ever put of it."""
    start = f"jobs/{job}/"
    of_job = [(key[len(start):], blob) for key, blob in ever if key.startswith(start)]
    spec = forge.read_spec(forge.unframe(dict(of_job)["spec"]))
    spec.json["settings"] = SECRET.decode() * 40
    real = Real(name, spec)
    real.messages = [(queue[len(start):], text) for queue, text in messages if queue.startswith(start)]
    content = forge.Fields([["number", "i64", 0], ["state", "u8", 0], *spec.first.copy()])
    real.models[0] = forge.Model(content, first)
    for key, blob in of_job:
        parts = key.split("/")
        number = int(parts[1]) if parts[0] == "round" else None
        if parts[0] in ("data", "weights"):
            real.data[key] = blob
        elif parts[0] == "worker":
            real.records.append(forge.unframe(blob))
        elif parts[-1] == "kept":
            real.kept[number] = forge.unframe(blob)
        elif parts[-1] == "model":
            model = forge.read_model(forge.unframe(blob), real.learner)
            if model.state == "running":
                real.models[number] = model
            else:
                real.end = model
        elif parts[0] == "round":
            real.pieces.setdefault(number, {})[key] = forge.unframe(blob)
    assert real.end and real.end.state == "done", f"{job} has no result: {real.end and real.end.content}"
    return real


def harvest(place):
    store = place.new_store("real")
    store.remember()
    names = submit_real(place, store)
    messages = store.messages()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda job: work(place, store, job), names.values()))
    ever = store.blobs("ever")
    reals = [read_real(name, job, forge.make_trailer(WORKER, 7), ever, messages) for name, job in names.items()]
    phases = {model.phase for real in reals if real.learner == "kmeans" for model in real.models.values()}
    assert phases == set(range(len(forge.KMEANS_PHASES))), f"some phases of k-means were not met: {phases}"
    for real in reals:
        check_reading(real)
    return reals


def check_reading(real):
    """What was read is written as it was: pieces name the checksum of the model they were made of."""
    assert real.pieces, f"{real.name}: no pieces"
    for number, pieces in real.pieces.items():
        check = forge.crc32c(real.models[number].content.encode())
        for key, body in pieces.items():
            fields = forge.read_piece(body, real.makers(key))
            said = fields.get("round"), fields.get("check")
            assert said == (number, check), f"{real.name}: {key} is read otherwise"
    for body in real.records:
        assert forge.read_record(body).encode() == body


# ---- batches -------------------------------------------------------------------------------------------------------


class Batch:
    """A worker that serves all jobs of a store, and the forged ones in there."""

    def __init__(self, place, name, members):
        self.place, self.name = place, name
        self.members = {f"f{i:05}": forgery for i, forgery in enumerate(members)}
        self.failures = []  # (name of the forgery or of the batch, what went wrong)
        self.worker = None

    def fail(self, job, what):
        self.failures.append((self.members[job].name if job in self.members else self.name, what))

    def run(self):
        self.store = self.place.new_store(self.name)
        blobs, messages = {}, []
        for job, forgery in self.members.items():
            more, strange = forgery.build(job)
            blobs.update(more)
            messages.extend(strange)
        self.store.put(blobs, messages)
        self.put = blobs
        # These wait to be resumed: a worker looks at them again and again.
        self.stopped = {job for job, forgery in self.members.items() if ": end: state" in forgery.name}
        while not self.serve():
            pass
        self.blobs = self.store.blobs()
        self.check_results()
        self.check_secrets()
        self.check_ends()
        shutil.rmtree(self.store.folder)
        return self.failures

    # One worker after the other, until one lives to the end.

    def start(self):
        self.log = f"{self.place.folder}/{self.name}.log"
        words = ["worker", "--store", self.store.folder, "--id", f"{WORKER:016x}", "--slots", "2", "--cache", "none"]
        limit = None if self.place.sanitized else lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        with open(self.log, "wb") as log:
            self.worker = self.place.start(*words, stdout=log, stderr=log, preexec_fn=limit)

    def lines(self):
        with open(self.log, "rb") as file:
            return file.read().decode(errors="replace").splitlines()

    def unserved(self):
        """Forged jobs that have neither ended nor been refused."""
        refused = {match[1] for line in self.lines() if (match := re.match(r".*does not serve job (\S+): .+", line))}
        return [key[5:] for key in self.store.keys("open/") if key[5:] in self.members.keys() - refused - self.stopped]

    def joined(self):
        jobs = [match[1] for line in self.lines() if (match := re.search(r"joins job (\S+) at round", line))]
        return jobs[-1] if jobs else None

    def serve(self):
        """True when a worker got through all that is left, or nothing is left that could be blamed."""
        self.start()
        left, since = self.unserved(), time.monotonic()
        while left and self.worker.poll() is None:
            time.sleep(0.02)
            now = self.unserved()
            if len(now) < len(left):
                left, since = now, time.monotonic()
            elif time.monotonic() > since + SLOW:
                self.worker.kill()
                return self.blame(left, f"hangs for {SLOW} s")
        if self.worker.poll() is not None:
            return self.blame(self.unserved(), self.how_it_ended())
        self.serve_honest()
        self.check_lines()
        return True

    def check_lines(self):
        """People read them on a terminal."""
        for line in self.lines():
            if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", line) or len(line) > 1000:
                self.fail(None, f"the worker says {line[:200]!r}")

    def how_it_ended(self):
        code = self.worker.wait()
        text = "\n".join(self.lines())
        report = re.search(r"(ERROR: \w+Sanitizer: .*|\S+: runtime error: .*)", text)
        frames = re.findall(r"#\d+ \S+ in (\w+) ", text)
        mine = [name for name in frames if not name.startswith(("__", "mem", "raw_"))][:3]
        how = f"is killed by {signal.Signals(-code).name}" if code < 0 else f"exits {code}"
        return f"{how}: {report[1] + ' in ' + ', '.join(mine) if report else (self.lines() or [''])[-1][:300]}"

    def blame(self, left, what):
        """Takes the job away that did it: the one the worker was in; or the batch is cut, until there is one only."""
        self.worker.wait()
        job = self.joined()
        if job not in left and len(left) > 1:
            middle = len(left) // 2
            for i, part in enumerate((left[:middle], left[middle:])):
                batch = Batch(self.place, f"{self.name}{'ab'[i]}", [self.members[name] for name in part])
                self.failures += batch.run()
            for name in left:
                self.store.remove(f"open/{name}")
                del self.members[name]
            return False
        culprit = job if job in left else left[0] if left else None
        self.fail(culprit, f"the worker {what}")
        if culprit is None:
            return True
        self.store.remove(f"open/{culprit}")
        return False

    def serve_honest(self):
        """An honest job, and the worker leaves when it is told to, having taken no more memory than it may."""
        learner = list(HONEST)[sum(map(ord, self.name)) % len(HONEST)]
        *words, output = HONEST[learner]
        suffix = "npy" if output == "--centres" else "safetensors"
        found = f"{self.place.folder}/{self.name}.{suffix}"
        code, _, err = self.place.run(learner, *words, output, found, "--quiet", "--store", self.store.folder,
                                      "--lease", "2", "--patience", "30", code=None)
        if code != 0:
            self.fail(None, f"an honest job of {learner} is not served: exits {code}: {err}")
        elif not filecmp.cmp(found, f"{self.place.folder}/expected-{learner}.{suffix}", shallow=False):
            self.fail(None, f"an honest job of {learner} has another result")
        if self.worker.poll() is None:
            self.worker.send_signal(signal.SIGTERM)
            _, status, usage = os.wait4(self.worker.pid, 0)
            self.worker.returncode = os.waitstatus_to_exitcode(status)
            if usage.ru_maxrss * 1024 > 2 * MEMORY:
                self.fail(None, f"the worker grew to {usage.ru_maxrss >> 10} MiB")
        if self.worker.returncode != 0:
            self.fail(None, f"the worker {self.how_it_ended()}")

    # What came of it.

    def check_results(self):
        """Of what the worker put: what says that it is done."""
        for key, blob in self.blobs.items():
            match = re.fullmatch(r"jobs/(f\d+)/round/\d+/model", key)
            if match and match[1] in self.members and blob != self.put.get(key):
                forgery = self.members[match[1]]
                model = forge.read_model(forge.unframe(blob), forgery.real.learner)
                if model.state == "done":
                    self.check_result(match[1], forgery, model.content)
        if os.path.exists(f"{self.place.folder}/{RAN}"):
            self.fail(None, "the worker ran what a job had brought along")

    def check_result(self, job, forgery, content):
        real = forgery.real.end.content
        if forgery.may == REFUSED:
            self.fail(job, "has a result")
        elif forgery.may in (SAME, ENDED) and result_of(content) != result_of(real):
            self.fail(job, "has another result than the real job")
        elif forgery.may == SHAPE and not fits(content, real):
            self.fail(job, f"has a result of another shape: {tensors_of(content)}")

    def check_secrets(self):
        for key, blob in self.blobs.items():
            if SECRET in blob and not key.endswith("/spec") and blob != self.put.get(key):
                self.fail(key.split("/")[1], f"{key} holds bytes of the worker's memory")

    def check_ends(self):
        """Forged ends, as people see them; names of tensors are those of files."""
        for job, forgery in self.members.items():
            if forgery.may != ENDED or forgery.name not in SHOWN:
                continue
            out = f"{self.place.folder}/{self.name}.{job}"
            code, said, err = self.place.run("job", "result", job, "--store", self.store.folder, "--out", out,
                                             code=None)
            if code < 0 or code > 3 or "Sanitizer" in err:
                self.fail(job, f"shoal job result exits {code}: {err[-300:]}")
            elif code == 0 and not self.is_result(job, forgery):
                self.fail(job, f"shoal job result shows it: {said[:200]!r}")
            elif os.path.exists(f"{self.place.folder}/escaped.npy"):
                self.fail(job, "shoal job result writes a file outside its folder")
            elif code != 0 and len(err.strip().splitlines()) != 1:
                self.fail(job, f"shoal job result says {err!r:.300}, which is not one sentence")


    def is_result(self, job, forgery):
        """Whether what is there now is a result of the learner."""
        with contextlib.suppress(Exception):
            key = f"jobs/{job}/round/{max(forgery.real.models) + 1:08}/model"
            model = forge.read_model(forge.unframe(self.blobs[key]), forgery.real.learner)
            return model.state == "done" and fits(model.content, forgery.real.end.content)
        return False


SHOWN = set()  # names of forged ends that are shown: each takes a process


def result_of(content):
    return content[2:]


def tensors_of(content):
    """Type and shape of each tensor, by its name."""
    fields = {name: value for name, _, value in content}
    return {fields[f"result.tensor[{i}].name"]: [fields[f"result.tensor[{i}].type"], *(
        fields[f"result.tensor[{i}].shape[{j}]"] for j in range(fields[f"result.tensor[{i}].rank"]))]
        for i in range(fields["result.tensors"])}


def fits(content, real):
    """Whether all tensors are there that the real result has."""
    return tensors_of(real).items() <= tensors_of(content).items()


# ---- the test ------------------------------------------------------------------------------------------------------


def expect(place):
    for learner, (*words, output) in HONEST.items():
        suffix = "npy" if output == "--centres" else "safetensors"
        place.run(learner, *words, output, f"expected-{learner}.{suffix}", "--quiet", "--threads", "1")


def choose(reals, options, count):
    """As many as are asked for, in turn of every learner and kind; their order is another for every seed."""
    every = list(forgeries.all_of(reals, options.seed, options.all))
    every.sort(key=lambda forgery: random.Random(f"{options.seed} {forgery.name}").random())
    if options.only:
        chosen = [forgery for forgery in every if forgery.name.startswith(options.only)]
        assert chosen, f"no forgery's name starts with '{options.only}'"
        return chosen
    groups = collections.defaultdict(list)
    for forgery in every:
        groups[forgery.real.learner, re.match(r"\w+", forgery.name.split(": ", 1)[1])[0]].append(forgery)
    turns = itertools.zip_longest(*groups.values())
    return list(itertools.islice((forgery for turn in turns for forgery in turn if forgery), count))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--count", type=int)
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="shoal-hostile-")
    began = time.monotonic()
    try:
        place = Place(options.program, folder)
        make_data(folder)
        place.run("store", "put", "rows.csv", f"{folder}/empty/", "--quiet")
        place.run("store", "rm", f"{folder}/empty/rows.csv", "--quiet")
        expect(place)
        reals = harvest(place)
        chosen = choose(reals, options, options.count or (COUNT // 2 if place.sanitized else COUNT))
        print(f"{len(reals)} real jobs, {len(chosen)} forgeries, {time.monotonic() - began:.1f} s", flush=True)
        if options.list:
            print("\n".join(forgery.name for forgery in chosen))
            return
        ends = [forgery.name for forgery in chosen if forgery.may == ENDED]
        SHOWN.update(random.Random(options.seed).sample(ends, min(len(ends), 40)))
        SHOWN.update(name for name in ends if "escaped" in name)
        batches = [Batch(place, f"batch{i // BATCH}", chosen[i:i + BATCH]) for i in range(0, len(chosen), BATCH)]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            failures = [failure for found in pool.map(Batch.run, batches) for failure in found]
        for name, what in sorted(failures):
            print(f"FAILED {name}: {what}")
        seconds = time.monotonic() - began
        print(f"{len(chosen)} forgeries, {len(failures)} failures, seed {options.seed}, {seconds:.1f} s")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
