"""Functions on workers, anywhere: a concurrent.futures.Executor.

    with shoal.Executor("ssh:corn10:8,corn11:8") as executor:
        future = executor.submit(pow, 2, 10)
        print(future.result(), list(executor.map(abs, [-1, 2])))

A task is a function with its arguments, pickled, for a process of Python that a worker keeps (docs/tasks.md;
_far_tasks.py is what runs there).  A thread takes results as they come and gives them to their futures.  What is
large or the same for many tasks, arrays and functions, goes as files of a task: once to the store, once to each
host."""
from __future__ import annotations

import concurrent.futures
import ctypes
import functools
import hashlib
import importlib
import inspect
import itertools
import os
import pathlib
import pickle
import shlex
import signal
import sys
import sysconfig
import threading
import time
import types
import warnings
import weakref
from typing import Any, Callable, Iterable, Iterator

import numpy as np

from shoal import _errors, _far, _program
from shoal._errors import Error, RemoteError
from shoal._library import (SAY, StoreOptions, Task, TaskFile, TaskResult, TasksOptions, TaskWorkersOptions, library)
from shoal._run import FOR_OTHERS, check, encode, texts
from shoal._source import module_file

PROTOCOL = 5
ARRAY_BYTES = 64 << 10  # an array from which on it goes by itself
FUNCTION_BYTES = 1 << 10  # the same for a function
FILES_MOST = 100  # of a task
NEVER = 2**63 - 1
AGAIN, CONFLICT = -10, -7
DONE, FAILED, CANCELLED = 1, 2, 3  # shoal_task_state
# What a fresh process runs: it reads the first two files, which are modules, and all else is theirs.
BOOT = """import os,re,sys,types
s,kept=os.fdopen(os.dup(0),"rb"),{}
def note():
    h=s.read(10);t=s.read(h[8]+256*h[9]).decode();return s.read(int(re.search("[(]([0-9]+),",t).group(1)))
for name in "shoal_far","shoal_far_tasks":
    file,_,text=note().partition(bytes(1));module=sys.modules[name]=types.ModuleType(name)
    kept[file[1:].decode()]=text;exec(compile(text,name+".py","exec"),vars(module))
module.serve(s,kept)
"""


class BrokenExecutor(Error, concurrent.futures.BrokenExecutor):
    """No worker is left, the store is gone, or a worker's Python has another version: nothing more is run."""


def in_place() -> None:
    """What an Executor is pickled as; where tasks run this name is another function's (_far_tasks.py)."""
    raise RuntimeError("an Executor is used by the tasks that are given it, and can't be pickled otherwise")


# ---- what is sent ----------------------------------------------------------------------------------------------------


class Parcel:
    """A question for _far_tasks.py, and the files that go with it."""

    def __init__(self) -> None:
        self.files: list[Any] = []  # anything with a buffer

    def file(self, data: Any) -> int:
        for i, file in enumerate(self.files):
            if file is data:
                return i
        self.files.append(data)
        return len(self.files) - 1


def cloudpickle() -> Any:
    """The module, or None."""
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return None


def pickled(value: Any, buffer_callback: Any = None) -> bytes:
    """By reference where that is enough, and by cloudpickle otherwise: for lambdas, and what stands in __main__."""
    try:
        data = pickle.dumps(value, PROTOCOL, buffer_callback=buffer_callback)
        if b"__main__" not in data or cloudpickle() is None:
            return data
    except Exception:
        if cloudpickle() is None:
            raise
    if buffer_callback:
        buffer_callback(None)  # which begins anew
    return cloudpickle().dumps(value, PROTOCOL, buffer_callback=buffer_callback)


def pickled_function(function: Callable[..., Any]) -> bytes:
    if not callable(function):
        raise TypeError(f"a function is needed, not {function!r}")
    inner = innermost(function)
    name = getattr(inner, "__qualname__", None) or repr(inner)
    if cloudpickle() is None and ("<" in name or getattr(inner, "__module__", None) == "__main__"):
        where = "stands in the main program" if "<" not in name else "has no name that a worker could find it by"
        raise ValueError(
            f"{name} {where}, and cloudpickle, which could send it, is not installed: put it into a module of its own, "
            "or install cloudpickle")
    try:
        return pickled(function)
    except Exception as error:
        raise ValueError(f"{name} can't be sent to workers: {error}") from None


def innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__func__", function)


class Arrays:
    """Chooses which arrays of a pickle go as files."""

    def __init__(self) -> None:
        self.buffers: list[Any] = []

    def __call__(self, buffer: Any) -> bool:
        """Whether it is to stay in the pickle."""
        if buffer is None:
            self.buffers = []
            return False
        try:
            raw = buffer.raw()
        except BufferError:  # neither in C order nor in Fortran's
            return True
        if raw.nbytes < ARRAY_BYTES:
            return True
        self.buffers.append(raw)
        return False


def question(parcel: Parcel, settings: bytes, function: bytes, calls: Any, many: bool) -> list[Any]:
    """Its parts."""
    arrays = Arrays()
    try:
        body = pickled(calls, arrays)
    except Exception as error:
        raise ValueError(f"the arguments can't be sent to workers: {error}") from None
    buffers: list[Any] = []
    inside = []
    for raw in arrays.buffers:
        if len(parcel.files) < FILES_MOST:
            buffers.append(("file", parcel.file(raw)))
        else:
            buffers.append(("inside", raw.nbytes))
            inside.append(raw)
    where = parcel.file(function) if len(function) > FUNCTION_BYTES else function
    head = pickle.dumps({"settings": parcel.file(settings), "function": where, "buffers": buffers, "body": len(body),
                         "many": many}, _far.PROTOCOL)
    version = "%d.%d" % sys.version_info[:2]
    return [f"{version} {len(head)}\n".encode(), head, body, *inside]


# ---- modules that workers lack ---------------------------------------------------------------------------------------


def is_users(module: types.ModuleType) -> bool:
    """Whether a module is a file of the user's, not one that was installed."""
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py"):
        return False
    places = [sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")]
    path = pathlib.Path(file).resolve()
    return not any(pathlib.Path(place).resolve() in path.parents for place in places) and not any(
        part in ("site-packages", "dist-packages") for part in path.parts)


def brought(module: types.ModuleType) -> dict[str, Any]:
    """A module and the packages around it: source, whether it is a package, and its file."""
    found, parts = {}, module.__name__.split(".")
    for i in range(1, len(parts) + 1):
        one = sys.modules[".".join(parts[:i])]
        name, data = module_file(one)
        found[one.__name__] = (data, name.endswith("/__init__.py"), one.__file__)
    return found


def package_modules(package: types.ModuleType) -> dict[str, Any]:
    """All modules of a package that is one folder."""
    found = {}
    for file in sorted(pathlib.Path(str(package.__file__)).parent.glob("*.py")):
        inside = "" if file.stem == "__init__" else "." + file.stem
        found[package.__name__ + inside] = (file.read_bytes(), not inside, str(file))
    return found


def sent_modules(send: Iterable[Any]) -> dict[str, Any]:
    """What `send` names: modules, packages, and files of Python."""
    found: dict[str, Any] = {}
    for thing in send:
        if isinstance(thing, types.ModuleType):
            found.update(package_modules(thing) if hasattr(thing, "__path__") else brought(thing))
            continue
        path = pathlib.Path(thing)
        if path.suffix != ".py" or not path.is_file():
            raise ValueError(f"send: {thing} is neither a module nor a file that ends with .py")
        found[path.stem] = (path.read_bytes(), False, str(path))
    return found


class Settings:
    """What tasks need besides their functions and arguments, as it grows."""

    def __init__(self, near: bool, send: Iterable[Any]):
        self.near, self.lock = near, threading.Lock()
        self.modules = sent_modules(send)
        self.seen: set[str] = set()
        if cloudpickle() is not None:
            self.modules.update(package_modules(cloudpickle()))
        self.data = self.packed()

    def packed(self) -> bytes:
        path = [os.path.abspath(place) for place in sys.path] if self.near else []
        return pickle.dumps({"path": path, "modules": self.modules}, _far.PROTOCOL)

    def with_function(self, function: Any) -> bytes:
        """With the module that workers elsewhere need to find this function by its name."""
        name = getattr(innermost(function), "__module__", None)
        if self.near or name is None or name == "__main__":
            return self.data
        with self.lock:
            module = sys.modules.get(name)
            if name not in self.seen and module is not None and is_users(module):
                self.modules.update(brought(module))
                self.data = self.packed()
            self.seen.add(name)
            return self.data


# ---- futures ---------------------------------------------------------------------------------------------------------


class Future(concurrent.futures.Future):
    """A future that can also be cancelled while it runs."""

    def __init__(self, core: Core):
        super().__init__()
        self._core, self._number = core, -1

    def cancel(self) -> bool:
        """Whether the task has no result and will get none.  If it runs, its process is ended."""
        if self.done():
            return self.cancelled()
        if not self._core.cancel(self._number):
            return False
        return super().cancel()


def address_of(data: Any) -> int:
    return np.frombuffer(data, np.uint8).ctypes.data if len(data) else 0


class Core:
    """The client of tasks, its workers, and the thread that takes results; apart from the Executor, so that one that
    nobody has any more can be closed."""

    def __init__(self, specs: list[str], url: str | None, ssh: str | None, threads: int):
        self.owner = os.getpid()
        self.folder: Any = None
        self.store, self.tasks, self.workers = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.changed = threading.Condition()
        self.waiting: dict[int, Future] = {}
        self.early: dict[int, tuple[Any, ...]] = {}  # results that came before submit knew their number
        self.calling, self.closing, self.closed = 0, False, False  # calling: threads inside the library
        self.broken: str | None = None
        self.say = SAY(self.warn)  # which the library calls as long as there are workers
        try:
            self.open(specs, url, ssh, threads)
        except BaseException:
            self.release()
            raise
        self.thread = threading.Thread(target=self.collect, name="shoal-executor", daemon=True)
        self.thread.start()

    def open(self, specs: list[str], url: str | None, ssh: str | None, threads: int) -> None:
        if url is None:
            from shoal.qjam import Folder
            self.folder = Folder()
            url = os.path.join(self.folder.path, "shoal_store")
        check(library.shoal_store_open(ctypes.byref(self.store), encode(url), ctypes.byref(StoreOptions(create=True)),
                                       library.shoal_after(60)))
        check(library.shoal_tasks_open(ctypes.byref(self.tasks), self.store, ctypes.byref(TasksOptions(
            name=b"executor", warn=self.say))))
        words = (ctypes.c_char_p * (len(specs) + 1))(*map(encode, specs))
        self.program, self.ssh = encode(_program.find()), encode(ssh) if ssh else None
        options = TaskWorkersOptions(workers=words, program=self.program, ssh=self.ssh, threads=threads, say=self.say)
        check(library.shoal_task_workers_start(ctypes.byref(self.workers), self.tasks, encode(url),
                                               ctypes.byref(options)))

    def warn(self, context: Any, line: bytes) -> None:
        warnings.warn(line.decode(errors="replace"), RuntimeWarning, stacklevel=1)

    def leave(self) -> None:
        with self.changed:
            self.calling -= 1
            self.changed.notify_all()

    def submit(self, future: Future, bytes_: bytes, files: list[Any], timeout: float) -> None:
        structs = (TaskFile * max(1, len(files)))(*[TaskFile(None, address_of(file), memoryview(file).nbytes)
                                                    for file in files])
        task = Task(function=b"program", bytes=address_of(bytes_), size=len(bytes_), timeout=timeout,
                    files=structs, file_count=len(files))
        number = ctypes.c_int64()
        with self.changed:
            if self.owner != os.getpid():
                raise RuntimeError("an Executor belongs to the process that made it: make another one here")
            if self.broken is not None:
                raise BrokenExecutor(self.broken)
            if self.closing:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self.calling += 1
            self.changed.notify_all()
        try:
            check(library.shoal_task_submit(ctypes.byref(number), self.tasks, ctypes.byref(task)))
        except BaseException:
            self.leave()
            raise
        with self.changed:
            self.calling -= 1
            future._number = number.value
            result = self.early.pop(number.value, None)
            if result is None and self.broken is None:
                self.waiting[number.value] = future
            self.changed.notify_all()
        if result is not None:
            finish(future, *result)
        elif self.broken is not None:
            future.set_exception(BrokenExecutor(self.broken))

    def cancel(self, number: int) -> bool:
        with self.changed:
            if self.owner != os.getpid() or self.closed:
                return False
            self.calling += 1  # so that the client is not closed meanwhile
        try:
            return library.shoal_task_cancel(self.tasks, number, library.shoal_after(60)) == 0
        finally:
            self.leave()

    # What follows is the thread's.

    def collect(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, FOR_OTHERS)
        while self.await_some():
            result = ctypes.POINTER(TaskResult)()
            status = library.shoal_task_next(ctypes.byref(result), self.tasks, library.shoal_after(1))
            if status == AGAIN:
                continue
            if status < 0:
                if self.fail_all(status):
                    break
                continue
            try:
                if not self.take(result.contents):
                    break
            finally:
                library.shoal_task_result_free(ctypes.byref(result))
        self.release()

    def await_some(self) -> bool:
        """Whether there is a result to wait for; False once there never will be one."""
        with self.changed:
            while not self.waiting and not self.calling:
                if self.closing:
                    return False
                self.changed.wait()
            return True

    def fail_all(self, status: int) -> bool:
        """Whether the client can do nothing more: a result may also be absent since its task is being submitted."""
        sentence = library.shoal_error().decode(errors="replace")
        with self.changed:
            if status == -6:
                self.changed.wait(0.01)
                return False
        self.break_down(sentence)
        return True

    def break_down(self, sentence: str) -> None:
        with self.changed:
            self.broken = sentence
            futures, self.waiting = list(self.waiting.values()), {}
            self.changed.notify_all()
        for future in futures:
            if not future.cancelled():
                future.set_exception(BrokenExecutor(sentence))

    def take(self, result: TaskResult) -> bool:
        """Gives it to its future.  False if it says that no task can be run."""
        value = read_result(result)
        if value[0] == "broken":
            self.break_down(value[1])
            return False
        with self.changed:
            future = self.waiting.pop(result.number, None)
            if future is None:
                self.early[result.number] = value
        if future is not None:
            finish(future, *value)
        return True

    def release(self) -> None:
        if self.owner != os.getpid():
            return
        with self.changed:
            while self.calling:
                self.changed.wait()
            self.closed = True
        library.shoal_task_workers_stop(ctypes.byref(self.workers))
        if self.tasks:
            library.shoal_tasks_close(ctypes.byref(self.tasks))
        library.shoal_store_close(ctypes.byref(self.store))
        if self.folder is not None:
            self.folder.remove()

    def close(self, wait: bool, cancel: bool) -> None:
        if self.owner != os.getpid():
            return
        with self.changed:
            self.closing = True
            futures = list(self.waiting.values())
            self.changed.notify_all()
        if cancel:
            for future in reversed(futures):  # those that have not begun first
                future.cancel()
        if wait and threading.current_thread() is not self.thread:
            self.thread.join()


def read_result(result: TaskResult) -> tuple[Any, ...]:
    """What `finish` does with a future."""
    host = result.host.decode(errors="replace")
    if result.state == CANCELLED:
        return ("cancelled", )
    if result.state != DONE or not result.bytes:
        what = result.message.decode(errors="replace")
        if "exited with code 127 " in what:
            what += "; there is no such Python"
        return "error", RemoteError(f"{host}: {what}" if host else what, host or None)
    data = memoryview((ctypes.c_char * result.size).from_address(result.bytes)).cast("B")
    try:
        if data[0] == ord("R"):
            return "result", pickle.loads(data[1:])
        if data[0] == ord("V"):
            return "broken", bytes(data[1:]).decode(errors="replace")
        return "error", remote_error(*pickle.loads(data[1:]))
    except BaseException as error:  # of a class that can't be read here
        return "error", Error(f"{host}: what the task returned can't be read here: {type(error).__name__}: {error}")


def remote_error(host: str, kind: str, text: str, trace: str, data: bytes | None) -> BaseException:
    """The exception itself, caused by one that has the traceback from there; that alone if it could not be brought."""
    cause = RemoteError(f"{host}: {kind}: {text}", host, None, trace)
    if data is None:
        return cause
    try:
        error = pickle.loads(data)
    except BaseException:
        return cause
    if not isinstance(error, Exception):  # one that would end this program, too: SystemExit
        return cause
    error.__cause__ = cause
    return error


def finish(future: Future, how: str, value: Any = None) -> None:
    if how == "cancelled":
        concurrent.futures.Future.cancel(future)
        future.set_running_or_notify_cancel()
    elif not future.set_running_or_notify_cancel():  # cancelled although it has a result
        return
    elif how == "result":
        future.set_result(value)
    else:
        future.set_exception(value)


# ---- the executor ----------------------------------------------------------------------------------------------------


class Executor(concurrent.futures.Executor):
    """Runs functions on workers: processes of this machine, hosts that ssh reaches, nodes of Slurm.

    workers: "local:4", "ssh:corn10:8,corn11:8", "slurm:8", or a list of these; None is one for each core here
    max_workers: so many on this machine, instead of `workers`
    store: where tasks and results lie, such as "az://account/box"; None is a folder that goes with the executor
    ssh: the command to use instead of ssh, such as "ssh -F FILE"; the variable SHOAL_SSH does the same
    python: the Python to use on the workers; None is python3, or this very one when all workers are of this machine
    send: modules, packages and .py files that functions import and workers elsewhere do not have
    timeout: the most seconds that a task may run; None for no limit

    >>> with Executor("local:2") as executor:
    ...     executor.submit(pow, 2, 10).result()
    ...     list(executor.map(divmod, [7, 8], [2, 3]))
    1024
    [(3, 1), (2, 2)]"""

    def __init__(self, workers: str | int | Iterable[str] | None = None, max_workers: int | None = None, *,
                 store: str | os.PathLike | None = None, ssh: str | None = None, python: str | None = None,
                 send: Iterable[Any] = (), timeout: float | None = None):
        if workers is not None and max_workers is not None:
            raise ValueError("max_workers counts processes of this machine, and can't be given beside workers")
        if max_workers is not None and max_workers < 1:
            raise ValueError(f"max_workers must be 1 or more, not {max_workers!r}")
        if workers is None:
            workers = len(os.sched_getaffinity(0)) if max_workers is None else max_workers
        specs = [str(workers)] if isinstance(workers, (str, int)) else [str(spec) for spec in workers]
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, or None, not {timeout!r}")
        near = all(spec.isdigit() or spec.startswith("local:") for spec in specs)
        self._settings = Settings(near, send)
        command = shlex.join([python or (sys.executable if near else "python3"), "-c", BOOT])
        self._start, self._timeout = f"{command}\0".encode(errors="surrogateescape"), timeout or 0
        self._far = [pathlib.Path(_far.__file__).with_name(name).read_bytes() for name in ("_far.py", "_far_tasks.py")]
        self._core = Core(specs, None if store is None else os.fspath(store), ssh, 1 if near else 0)
        self._finalizer = weakref.finalize(self, self._core.close, True, False)

    def __reduce__(self) -> Any:
        return in_place, ()

    def _send(self, settings: bytes, function: bytes, calls: Any, many: bool) -> Future:
        parcel = Parcel()
        parcel.files += self._far
        parts = question(parcel, settings, function, calls, many)
        future = Future(self._core)
        self._core.submit(future, b"".join([self._start, *parts]), parcel.files, self._timeout)
        return future

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        """Hands fn(*args, **kwargs) to the workers and returns its future.

        Arrays of 64 kB and more are sent once to each host, and come as arrays that can't be written to."""
        return self._send(self._settings.with_function(fn), pickled_function(fn), (args, kwargs), False)

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], timeout: float | None = None,
            chunksize: int = 1) -> Iterator[Any]:
        """An iterator over fn's results for the items of the iterables, in their order; `chunksize` of them are a task.

        It raises TimeoutError if a result is not there `timeout` seconds after the call."""
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        end = None if timeout is None else time.monotonic() + timeout
        settings, function = self._settings.with_function(fn), pickled_function(fn)
        calls = zip(*iterables)
        futures = []
        while True:
            chunk = list(itertools.islice(calls, chunksize))
            if not chunk:
                break
            futures.append(self._send(settings, function, chunk, True))
        return results_of(futures, end)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more tasks; when all have ended, so do the workers.  Cancelling also ends what runs."""
        self._core.close(wait, cancel_futures)
        if wait:
            self._finalizer.detach()


def results_of(futures: list[Future], end: float | None) -> Iterator[Any]:
    futures.reverse()
    try:
        while futures:
            future = futures.pop()
            left = None if end is None else max(0.0, end - time.monotonic())
            try:
                yield from future.result(left)
            except BaseException:
                future.cancel()
                raise
    finally:
        for future in futures:
            future.cancel()
