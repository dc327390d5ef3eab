"""Your own functions over the rows of a data set, on any machines that ssh reaches: the interface of qjam.

    workers = [RemoteWorker('corn10'), RemoteWorker('corn11')]
    result = Master(workers).run(module, params, dataset)

`module` holds mapfunc(params, dataset), which is called with slices of the data set on the workers, and may hold
reduce(results), which is called here with the list of what mapfunc returned, in the order of the rows; without it the
results are added.  Slices depend on the data set alone, so the result never depends on the workers.

Workers are started by the first run and stay for the next ones, which therefore take milliseconds; they end with the
Master (close(), or `with Master(...) as master:`), or when this process ends, however it does.  Underneath it is what
`shoal run --exec` does (docs/run.md), called from here: the workers are processes of the program shoal, and nothing
need be installed on other machines but Python and numpy."""
from __future__ import annotations

import functools
import hashlib
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
import sys
import tempfile
import threading
import warnings
import weakref
from typing import Any, Iterable

import numpy as np

from shoal import _far, _progress, _program, _source
from shoal._errors import Error, RemoteError

log = logging.getLogger("shoal.qjam")

SLICES_MOST = 256  # enough to spread over many workers, few enough that handing them over costs nothing
SLICE_BYTES_MOST = 8 << 20
PIECES_WANTED = 32
SESSIONS_KEPT = 2  # of different data sets, to train and to test, say
FILES_MOST = 63  # that a job can bring, besides the command
# What `shoal run` reads as it is; all else travels as bytes.
TYPES = {np.dtype(name) for name in ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")}


class Folder:
    """A folder for files of this process, which goes when this does; a process that was forked leaves it alone."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="shoal-qjam-")
        self.remove = weakref.finalize(self, remove_folder, self.path, os.getpid())


def remove_folder(path, owner):
    if owner == os.getpid():
        shutil.rmtree(path, ignore_errors=True)


# ---- data sets -------------------------------------------------------------------------------------------------------


class NumpyMatrixDataSet:
    """An array, matrix or list of numbers, whose first axis is cut into slices.

    It must not change while this exists: it is written to a file when it is first used, and read from there
    again."""

    def __init__(self, matrix: Any):
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
        self._stored = None

    def __len__(self) -> int:
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
        return self.stored().path

    def stored(self):
        if self._stored is None:
            self._stored = Stored(self._rows())
        return self._stored

    def is_stored_as(self, stored):
        """Whether that file has these rows, to the byte: an array may have changed since it was written."""
        if self._stored is not None:
            return self._stored is stored
        rows = self._rows()
        if (rows.shape, rows.dtype) != (stored.shape, stored.dtype):
            return False
        same = np.array_equal(rows.view(np.uint8), np.load(stored.path, mmap_mode="r").view(np.uint8))
        self._stored = stored if same else None
        return same

    def _rows(self):
        rows = np.ascontiguousarray(self.matrix).reshape(len(self.matrix), -1)
        return rows if self.task()["dtype"] is None else rows.view(np.uint8)


class Stored:
    """Rows in a file, which goes when nobody has this any more."""

    def __init__(self, rows):
        self.folder, self.shape, self.dtype = Folder(), rows.shape, rows.dtype
        self.path = os.path.join(self.folder.path, "data.npy")
        np.save(self.path, rows)


# ---- workers ---------------------------------------------------------------------------------------------------------


HOST = re.compile(r"(?!-)((?:[\w.-]+@)?(?:\[[\w:.%]+\]|[\w.-]+))(?::([1-9]\d{0,5}))?(?:\?(\S+))?", re.ASCII)


class RemoteWorker:
    """A worker on a host that ssh reaches ('corn10', 'me@corn10'), on this machine ('local') or on a cluster ('slurm').

    'corn10:8' is eight of them; 'slurm:64?partition=spot' says more about a cluster.  Naming a host starts nothing:
    Master.run starts the workers, and bootstrap() only looks whether that could work."""

    def __init__(self, host: str, ssh: str | None = None):
        found = HOST.fullmatch(str(host))
        if not found or (found[3] and found[1] != "slurm"):
            raise ValueError(
                f"{host!r} is not a host: 'corn10', 'me@corn10' and 'corn10:8' are, and so are 'local' and 'slurm:64'")
        self.host, self.count, self.query, self.ssh = found[1], int(found[2] or 1), found[3], ssh

    def __repr__(self):
        return f"RemoteWorker({self.host + (f':{self.count}' if self.count > 1 else '')!r})"

    def bootstrap(self) -> None:
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
    timeout: the most seconds that mapfunc may take for a slice; None for no limit
    slice_rows: rows of a slice; None chooses by the shape of the data set
    verbose: whether progress is shown; None does so in a terminal and in a notebook

    >>> import numpy as np
    >>> def mapfunc(params, dataset):
    ...     return params * dataset.sum()
    >>> with Master(['local:2']) as master:
    ...     master.run(mapfunc, 2, np.arange(10))
    ...     master.run(mapfunc, 3, np.arange(10))
    90
    135"""

    def __init__(self, workers: str | RemoteWorker | Iterable[str | RemoteWorker], *, ssh: str | None = None,
                 python: str | None = None, send: Iterable[Any] = (), timeout: float | None = None,
                 slice_rows: int | None = None, verbose: bool | None = None):
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
        self._crews = Crews()

    def __enter__(self) -> Master:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self):
        return {**vars(self), "_crews": None}  # processes can't be sent elsewhere

    def __setstate__(self, state):
        vars(self).update(state, _crews=Crews())

    def close(self) -> None:
        """Ends the workers.  A later run starts others."""
        self._crews.close()

    def run(self, module: Any, params: Any, dataset: Any) -> Any:
        """Calls mapfunc(params, slice) for all slices of the data set, and returns what reduce makes of the results.

        `module` may be a function instead, which is the mapfunc.  What mapfunc raises is raised here as RemoteError.
        The workers stay, with the rows, for the next run over the same data set."""
        source = _source.of(module)
        if not isinstance(dataset, NumpyMatrixDataSet):
            dataset = NumpyMatrixDataSet(dataset)
        rows = self.slice_rows or dataset.rows_per_slice()
        call = make_call(source, dataset, rows, params)
        results = list(read_answers(self._answers(call, self._files(source), source, dataset, rows)))
        reduce = getattr(module, "reduce", None)
        return reduce(results) if callable(reduce) else add(results)

    def _files(self, source):
        """What workers get once: names and bytes."""
        files = {"shoal_far.py": pathlib.Path(_far.__file__).read_bytes()}
        for name, data in map(_source.more_file, self.send):
            if {**source.files, **files}.get(name, data) != data:
                raise ValueError(f"two different files called {name} can't both be sent to workers")
            files[name] = data
        if len(files) > FILES_MOST:
            raise ValueError(f"{len(files)} files are too many to send to workers; {FILES_MOST} are the most")
        return files

    def _options(self, slices, rows):
        """The job's, but for what it runs over.  Slices that are asked for together cost less; one by one is each timed
        by itself."""
        pieces = min(slices, max(PIECES_WANTED, 4 * sum(worker.count for worker in self.workers)))
        together = 1 if self.timeout else -(-slices // pieces)
        return {"exec": f"{shlex.quote(self.python)} shoal_far.py", "grain": rows * together,
                "timeout": self.timeout or 0, "threads": 1, "workers": worker_specs(self.workers), "ssh": self.ssh,
                "slices": min(pieces, -(-slices // together))}

    def _answers(self, call, files, source, dataset, rows):
        """What the workers say to a call: pickles, one after another."""
        options = self._options(-(-len(dataset) // rows), rows)
        log.info("%s.%s over %d rows, %d a slice, on %s", source.module, source.function, len(dataset), rows,
                 ", ".join(f"{worker.host}:{worker.count}" for worker in self.workers))
        crew = self._crews.take(options, files, dataset)
        try:
            if self.verbose or (self.verbose is None and _progress.place() != "file"):
                with _progress.Progress() as progress:
                    answers = crew.session.call(call, progress)
            else:
                answers = crew.session.call(call)
        finally:
            self._crews.give_back(crew)
        for line in crew.session.take_warnings():  # of a host that could not be reached while the others did the work
            warnings.warn(line, stacklevel=3)
        return answers


def make_call(source, dataset, rows, params):
    """What _far.py gets with every run."""
    try:
        pickled = pickle.dumps(params, _far.PROTOCOL)
    except Exception as error:
        raise ValueError(f"params can't be sent to workers: {error}") from None
    files = dict(source.files)
    task = pickle.dumps({**dataset.task(), "slice_rows": rows, "module": source.module, "file": source.file,
                         "function": source.function, "globals": files.pop("globals.pickle", None), "files": files},
                        _far.PROTOCOL)
    return pickle.dumps((hashlib.sha256(task).hexdigest(), task, pickled), _far.PROTOCOL)


# ---- workers that stay -----------------------------------------------------------------------------------------------


class Crew:
    """Workers that hold the rows of a data set."""

    def __init__(self, options, files, dataset):
        from shoal._session import Session  # which needs the library: who only names hosts does not
        self.options, self.files, self.stored, self.is_busy = options, files, dataset.stored(), True
        program, folder = _program.find(), Folder()
        self.session = Session("exec", {**options, "data": self.stored.path,
                                        "store": os.path.join(folder.path, "shoal_store")},
                               files=files, program=program, fail=failure_of, release=lambda: folder.remove())

    def fits(self, options, files, dataset):
        return (self.session.is_open and (self.options, self.files) == (options, files)
                and dataset.is_stored_as(self.stored))


class Crews:
    """Those of a Master: one for each of the data sets that were used last, and more while threads run at the same
    time."""

    def __init__(self):
        self.owner, self.lock, self.crews = os.getpid(), threading.Lock(), []

    def take(self, options, files, dataset):
        """One that fits and nobody uses now; give it back."""
        if self.owner != os.getpid():
            self.__init__()  # forked: those of the other process are not ours, and its lock may be held forever
        with self.lock:
            for crew in self.crews:
                if not crew.is_busy and crew.fits(options, files, dataset):
                    crew.is_busy = True
                    return crew
        crew = Crew(options, files, dataset)
        with self.lock:
            self.crews.append(crew)
        return crew

    def give_back(self, crew):
        """The one that was used last stays longest."""
        with self.lock:
            crew.is_busy = False
            if crew in self.crews:
                self.crews.remove(crew)
                self.crews.append(crew)
            idle = [one for one in self.crews if not one.is_busy]
            kept = [one for one in idle if one.session.is_open][-SESSIONS_KEPT:]
            self.crews = [one for one in self.crews if one.is_busy or one in kept]
        for one in idle:
            if one not in kept:
                one.session.close()

    def close(self):
        if self.owner != os.getpid():
            return
        with self.lock:
            crews, self.crews = self.crews, []
        for crew in crews:
            crew.session.close()


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
    stream, row, failed = io.BytesIO(answers), 0, None
    while stream.tell() < len(answers):
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
