"""Your own functions over the rows of a data set, on any machines that ssh reaches: the interface of qjam.

    workers = [RemoteWorker('corn10'), RemoteWorker('corn11')]
    result = Master(workers).run(module, params, dataset)

`module` holds mapfunc(params, dataset), which is called with slices of the data set on the workers, and may hold
reduce(results), which is called here with the list of what mapfunc returned, in the order of the rows; without it the
results are added.  Slices depend on the data set alone, so the result never depends on the workers.

Underneath it is what `shoal run --exec` does (docs/run.md), called from here: the workers are processes of the program
shoal, and nothing need be installed on other machines but Python and numpy."""
import functools
import io
import json
import logging
import math
import numbers
import operator
import os
import pathlib
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
import weakref

import numpy as np

from shoal import _far, _progress, _program, _source
from shoal._errors import Error, RemoteError

log = logging.getLogger("shoal.qjam")

SLICES_MOST = 256  # enough to spread over many workers, few enough that handing them over costs nothing
SLICE_BYTES_MOST = 8 << 20
PIECES_WANTED = 32
FILES_MOST = 63  # that a job can bring, besides the command
# What `shoal run` reads as it is; all else travels as bytes.
TYPES = {np.dtype(name) for name in ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")}

# ---- data sets -------------------------------------------------------------------------------------------------------


class NumpyMatrixDataSet:
    """An array, matrix or list of numbers, whose first axis is cut into slices.

    It must not change while this exists: it is written to a file when it is first used, and read from there
    again."""

    def __init__(self, matrix):
        self.kind = "list" if isinstance(matrix, (list, tuple,
                                                  range)) else "matrix" if isinstance(matrix, np.matrix) else "array"
        try:
            self.matrix = np.asarray(matrix)
        except ValueError as error:
            raise ValueError(f"the data set is not an array: {error}") from None
        if self.matrix.ndim == 0:
            raise ValueError(
                "a data set is needed that has rows: an array, a matrix, a list of numbers or a NumpyMatrixDataSet, "
                f"not {matrix!r}")
        if self.matrix.dtype.hasobject or self.matrix.dtype.itemsize == 0:
            raise ValueError(
                f"the data set has values of type {self.matrix.dtype}, which can't be sent to workers: numbers are "
                "needed")
        if self.matrix.size == 0:
            raise ValueError(f"the data set has the shape {self.matrix.shape}: there is nothing to run over")
        self._path = None

    def __len__(self):
        return len(self.matrix)

    def rows_per_slice(self):
        row_bytes = self.matrix.nbytes // len(self.matrix)
        return max(1, min(-(-len(self.matrix) // SLICES_MOST), SLICE_BYTES_MOST // row_bytes))

    def task(self):
        """How a worker makes slices what they were here."""
        native = self.matrix.dtype in TYPES and self.matrix.dtype.isnative
        return {"kind": self.kind, "shape": self.matrix.shape[1:], "dtype": None if native else self.matrix.dtype}

    def path(self):
        """The file with the rows, in two dimensions and a type that the program knows."""
        if self._path is None:
            rows = np.ascontiguousarray(self.matrix).reshape(len(self.matrix), -1)
            if self.task()["dtype"] is not None:
                rows = rows.view(np.uint8)
            folder = tempfile.mkdtemp(prefix="shoal-qjam-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            path = os.path.join(folder, "data.npy")
            np.save(path, rows)
            self._path = path
        return self._path


# ---- workers ---------------------------------------------------------------------------------------------------------


HOST = re.compile(r"(?!-)((?:[\w.-]+@)?(?:\[[\w:.%]+\]|[\w.-]+))(?::([1-9]\d{0,5}))?(?:\?(\S+))?", re.ASCII)


class RemoteWorker:
    """A worker on a host that ssh reaches ('corn10', 'me@corn10'), on this machine ('local') or on a cluster ('slurm').

    'corn10:8' is eight of them; 'slurm:64?partition=spot' says more about a cluster.  Naming a host starts nothing:
    Master.run starts the workers, and bootstrap() only looks whether that could work."""

    def __init__(self, host, ssh=None):
        found = HOST.fullmatch(str(host))
        if not found or (found[3] and found[1] != "slurm"):
            raise ValueError(
                f"{host!r} is not a host: 'corn10', 'me@corn10' and 'corn10:8' are, and so are 'local' and 'slurm:64'")
        self.host, self.count, self.query, self.ssh = found[1], int(found[2] or 1), found[3], ssh

    def __repr__(self):
        return f"RemoteWorker({self.host + (f':{self.count}' if self.count > 1 else '')!r})"

    def bootstrap(self):
        """Looks whether the host can be reached and used, and raises Error, with its name, when not."""
        ssh = ["--ssh", self.ssh] if self.ssh else []
        said = _program.ask("check", "--workers", *worker_specs([self]), *ssh, "--json")
        if said.returncode != 0:
            found = json.loads(said.stdout)["workers"] if said.stdout else []
            raise Error(found[0]["why"] if found else f"{self.host}: {last_sentence(said)}")


def worker_specs(workers):
    """The workers as values of --workers, those of one host together."""
    specs, counts = [], {}
    for worker in workers:
        if worker.host == "slurm":
            specs.append(f"slurm:{worker.count}" + (f"?{worker.query}" if worker.query else ""))
        else:
            counts[worker.host] = counts.get(worker.host, 0) + worker.count
    if "local" in counts:
        specs.append(f"local:{counts.pop('local')}")
    if counts:
        specs.append("ssh:" + ",".join(f"{host}:{count}" for host, count in counts.items()))
    return specs


def last_sentence(said):
    """What the program said last, without its name."""
    lines = said.stderr.decode(errors="replace").splitlines()
    return (re.sub(r"^shoal: ", "", lines[-1]) if lines else
            f"the program shoal ended with code {said.returncode} and said nothing")


# ---- running ---------------------------------------------------------------------------------------------------------


class Master:
    """Runs functions on workers: RemoteWorkers, or names of hosts as RemoteWorker takes them.

    ssh: the command to use instead of ssh, such as 'ssh -F FILE'; the variable SHOAL_SSH does the same
    python: the Python to use on the workers; None is python3, or this very one when all workers are of this machine
    send: more files and modules that mapfunc needs there
    timeout: the most seconds that mapfunc may take for a slice; None for ever
    slice_rows: rows of a slice; None chooses by the shape of the data set
    verbose: whether progress is shown; None does so in a terminal and in a notebook"""

    def __init__(self, workers, *, ssh=None, python=None, send=(), timeout=None, slice_rows=None, verbose=None):
        if isinstance(workers, (str, RemoteWorker)):
            workers = [workers]
        self.workers = [worker if isinstance(worker, RemoteWorker) else RemoteWorker(worker) for worker in workers]
        if not self.workers:
            raise ValueError("a Master needs at least one worker")
        commands = {worker.ssh for worker in self.workers if worker.ssh} | ({ssh} if ssh else set())
        if len(commands) > 1:
            raise ValueError(
                f"all workers of a Master use one ssh command, not {' and '.join(map(repr, sorted(commands)))}")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, or None, not {timeout!r}")
        if slice_rows is not None and (not isinstance(slice_rows, numbers.Integral) or slice_rows < 1):
            raise ValueError(f"slice_rows must be a whole number that is at least 1, or None, not {slice_rows!r}")
        if python is None:
            python = sys.executable if all(worker.host == "local" for worker in self.workers) else "python3"
        self.ssh, self.python, self.send = next(iter(commands), None), python, list(send)
        self.timeout, self.slice_rows, self.verbose = timeout, slice_rows, verbose

    def run(self, module, params, dataset):
        """Calls mapfunc(params, slice) for all slices of the data set, and returns what reduce makes of the results.

        `module` may be a function instead, which is the mapfunc.  What mapfunc raises is raised here as RemoteError."""
        source = _source.of(module)
        if not isinstance(dataset, NumpyMatrixDataSet):
            dataset = NumpyMatrixDataSet(dataset)
        files = self._files(source, params, dataset)
        results = list(read_answers(self._answers(files, source, dataset)))
        reduce = getattr(module, "reduce", None)
        return reduce(results) if callable(reduce) else add(results)

    def _files(self, source, params, dataset):
        """Everything that workers get: names and bytes."""
        try:
            pickled = pickle.dumps(params, _far.PROTOCOL)
        except Exception as error:
            raise ValueError(f"params can't be sent to workers: {error}") from None
        task = {**dataset.task(), "module": source.module, "file": source.file, "function": source.function}
        files = {
            "shoal_far.py": pathlib.Path(_far.__file__).read_bytes(), "task.pickle": pickle.dumps(task, _far.PROTOCOL),
            "params.pickle": pickled
        }
        for name, data in [*source.files.items(), *map(_source.more_file, self.send)]:
            if files.setdefault(name, data) != data:
                raise ValueError(f"two different files called {name} can't both be sent to workers")
        if len(files) > FILES_MOST:
            raise ValueError(f"{len(files)} files are too many to send to workers; {FILES_MOST} are the most")
        return files

    def _answers(self, files, source, dataset):
        """Runs the job, in a store of its own that goes with it; the answers are pickles, one after another."""
        from shoal._request import Request  # which needs the library: who only names hosts does not
        rows = self.slice_rows or dataset.rows_per_slice()
        program = _program.find()
        folder = tempfile.mkdtemp(prefix="shoal-qjam-")
        request = Request("exec", {
            "exec": f"{shlex.quote(self.python)} shoal_far.py", "data": dataset.path(), "collect": "true",
            "grain": rows, "timeout": self.timeout or 0, "threads": 1, "workers": worker_specs(self.workers),
            "ssh": self.ssh, "store": os.path.join(folder, "shoal_store"),
            "slices": self._pieces(-(-len(dataset) // rows))
        }, files=files, program=program, fail=failure_of)
        log.info("%s.%s over %d rows, %d a slice, on %s", source.module, source.function, len(dataset), rows,
                 ", ".join(f"{worker.host}:{worker.count}" for worker in self.workers))
        try:
            if self.verbose or (self.verbose is None and _progress.place() != "file"):
                watch = Watch(request.options["store"])
                with _progress.Progress() as progress:
                    answers = request.run(take_answers, progress, lambda: watch() or request.doing)
            else:
                answers = request.run(take_answers)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        for line in request.warnings:  # of a host that could not be reached, say, while the others did all the work
            warnings.warn(line, stacklevel=3)
        return answers

    def _pieces(self, slices):
        """How many parts the slices are handed out in: enough that no worker waits long for the slowest one."""
        return min(slices, max(PIECES_WANTED, 4 * sum(worker.count for worker in self.workers)))


class Watch:
    """Tells how far a job is, by what its workers last wrote into the store."""

    def __init__(self, store):
        self.store, self.id, self.asked, self.told = store, None, time.monotonic(), None

    def __call__(self):
        """A line, or None when there is nothing to tell yet.  The store is looked at once a second."""
        if time.monotonic() - self.asked > 1:
            self.told, self.asked = self.look() or self.told, time.monotonic()
        return self.told

    def ask(self, *words):
        said = _program.ask("job", *words, "--store", self.store, "--json", timeout=10)
        return json.loads(said.stdout.splitlines()[0])

    def look(self):
        try:
            self.id = self.id or self.ask("list")["id"]
            job = self.ask("show", self.id)
            done = sum(worker["mapped"] for worker in job["worker"]) - job["round"] * job["slices"]  # of this round
        except (Error, OSError, subprocess.SubprocessError, ValueError, LookupError):
            return None
        working = sum(worker["alive"] for worker in job["worker"])
        if not working:
            return None
        slices = job["slices"]
        return f"{min(max(done, 0), slices)} of {slices} parts done, {working} worker{'s' * (working > 1)}"


def take_answers(result):
    return result.array("result")


def failure_of(status, sentence):
    """The exception for a run that failed: the function's own when it is to blame."""
    found = re.search(r"'[^']*shoal_far.py' failed on rows (\d+) to (\d+) on (\S+): (.*)", sentence)
    if not found:
        return Error(sentence)
    first, last, host, what = int(found[1]) - 1, int(found[2]) - 1, found[3], found[4]
    if "exited with code 127" in what:
        what = f"there is no such Python; {what}"
    return RemoteError(f"{host}: mapfunc's process failed in {name_rows(first, last)}: {what}", host, (first, last + 1))


def name_rows(first, last):
    return f"row {first}" if first == last else f"rows {first} to {last}"


# ---- answers ---------------------------------------------------------------------------------------------------------


class Unpickler(_far.Unpickler):
    renamed = {_far.MAIN: "__main__"}


def read_answers(answers):
    """The results in the order of the rows; raises the first failure."""
    stream, row, failed = io.BytesIO(answers.data), 0, None
    while stream.tell() < answers.size:
        what, rows, *rest = Unpickler(stream).load()
        if what == "result" and not failed:
            yield rest[0]
        elif what == "error" and not failed:
            failed = (row, rows, *rest)
        row += rows
    if failed:
        raise remote_error(*failed)


def remote_error(row, rows, host, kind, text, trace, pickled):
    error = RemoteError(f"{host}: {kind}: {text} (in {name_rows(row, row + rows - 1)})", host, (row, row + rows), trace)
    if pickled is not None:
        try:
            error.__cause__ = Unpickler(io.BytesIO(pickled)).load()
        except Exception:  # a class that is known there alone; its name and text are in the message
            pass
    return error


def add(results):
    """The sum in the order of the rows: of numbers exactly, of arrays element by element, of tuples member by member;
    of anything else by its own +."""
    first = results[0]
    if any(result is None for result in results):
        raise TypeError(
            "mapfunc returned None, which can't be added: it should return something, or reduce(results) be defined")
    if isinstance(first, tuple):
        if any(not isinstance(result, tuple) or len(result) != len(first) for result in results):
            raise TypeError(
                "mapfunc returned tuples of different lengths, which can't be added: define reduce(results)")
        return tuple(add(list(members)) for members in zip(*results))
    if all(isinstance(result, (numbers.Integral, np.bool_)) for result in results):
        return sum(int(result) for result in results)
    if all(isinstance(result, numbers.Real) for result in results):
        return add_floats(results)
    if all(isinstance(result, numbers.Complex) for result in results):
        return complex(add_floats([result.real for result in results]), add_floats([result.imag for result in results]))
    return functools.reduce(operator.add, results)


def add_floats(values):
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # infinities of both signs, or a sum beyond all doubles: as IEEE 754 has it
        return functools.reduce(operator.add, map(float, values))
