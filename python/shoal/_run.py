"""Calling the library over numpy arrays, from a thread of its own.

That is for two reasons: a signal handler of Python runs only in the main thread, which therefore must not be inside the
library when Ctrl-C is pressed; and the main thread draws the progress meanwhile."""
from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
from typing import Any, Callable, Iterator, Sequence, TypeVar

import numpy as np

from shoal import _errors
from shoal._library import TYPES, Tensor, library

SECONDS_BETWEEN = 0.1  # two looks at what there is to show
# Signals come to the threads of Python, but for those that a thread brings upon itself.
FOR_OTHERS = signal.valid_signals() - {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT,
                                       signal.SIGTRAP, signal.SIGSYS}
Value = TypeVar("Value")


class Result:
    """Arrays and numbers of a finished run, by name."""

    def __init__(self, handle: Any, outcome: Any = None):
        self.handle, self.outcome = handle, outcome

    def array(self, name: str) -> np.ndarray | None:
        """A copy, or None when nothing has that name."""
        found = library.shoal_result_tensor(self.handle, name.encode())
        return copy_of(found.contents) if found else None

    def number(self, name: str) -> float:
        return library.shoal_result_number(self.handle, name.encode())


def empty_as(tensor: Tensor) -> np.ndarray:
    return np.empty(tuple(tensor.shape[:tensor.rank]), TYPES[tensor.type])


def copy_of(tensor: Tensor) -> np.ndarray:
    out = empty_as(tensor)
    if out.size:
        ctypes.memmove(out.ctypes.data, tensor.values, out.nbytes)
    return out


def check(status: int, fail: Callable[[int, str], Exception] = _errors.of_status) -> None:
    """Raises what `fail` makes of a failure.  The message belongs to the thread that failed."""
    if status < 0:
        raise fail(status, library.shoal_error().decode(errors="replace"))


def encode(value: object) -> bytes:
    """A text, path or number as the library takes it.  What was undecodable becomes the bytes it was."""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return str(value).encode(errors="surrogateescape")


def texts(values: Sequence[str]) -> Any:
    """An array of C strings."""
    return (ctypes.c_char_p * len(values))(*map(encode, values))


@contextlib.contextmanager
def data_of(rows: np.ndarray | None, names: Sequence[str] | None = None,
            words: Sequence[str] | None = None) -> Iterator[Any]:
    """The library's data set of rows that are C-contiguous and of one of TYPES, which are not copied; None of None.

    names: of the columns; words: what the numbers of the only column stand for"""
    if rows is None:
        yield None
        return
    data = ctypes.c_void_p()
    try:
        check(library.shoal_data_wrap(ctypes.byref(data), rows.ctypes.data, *rows.shape, TYPES.index(rows.dtype)))
        if names is not None:
            check(library.shoal_data_name_columns(data, texts(names)))
        if words is not None:
            check(library.shoal_data_name_words(data, texts(words), len(words)))
        yield data
    finally:
        library.shoal_data_free(ctypes.byref(data))


class Work:
    """A function that runs in a thread, and how it ended."""

    def __init__(self, function: Callable[[], Any]):
        self.function, self.value = function, None
        self.failure: BaseException | None = None
        self.done = threading.Event()

    def __call__(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, FOR_OTHERS)
        try:
            self.value = self.function()
        except BaseException as error:  # it is raised where the result is waited for
            self.failure = error
        finally:
            self.done.set()


def in_thread(function: Callable[[], Value], stop: ctypes.c_int, progress: Any = None,
              line: Callable[[], str | None] = lambda: None) -> Value:
    """Calls the function in a thread, and returns what it returned.

    `progress` is something with show(text), which is shown what line() says.  KeyboardInterrupt, and whatever else a
    signal handler raises meanwhile, sets `stop`, a C int, and is raised when the function has returned."""
    work, interrupt = Work(function), None
    thread = threading.Thread(target=work, name="shoal", daemon=True)
    thread.start()
    while True:
        try:
            while not work.done.wait(SECONDS_BETWEEN if progress and not interrupt else None):
                text = line()
                if text:
                    progress.show(text)
            thread.join()
            break
        except BaseException as error:
            if interrupt:  # a second one does not wait: the thread ends by itself, and keeps what it reads
                raise
            interrupt, stop.value = error, 1
    if interrupt:
        raise interrupt
    failure, work.failure = work.failure, None  # or the exception's frames and the work would keep each other alive
    if failure:
        raise failure
    return work.value  # type: ignore[return-value]
