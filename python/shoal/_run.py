"""Calling the library over numpy arrays, from a thread of its own.

That is for two reasons: a signal handler of Python runs only in the main thread, which therefore must not be inside the
library when Ctrl-C is pressed; and the main thread draws the progress meanwhile."""
import contextlib
import ctypes
import signal
import threading

import numpy as np

from shoal import _errors
from shoal._library import TYPES, RunOptions, algorithm, library

SECONDS_BETWEEN = 0.1  # two looks at what there is to show
# Signals come to the threads of Python, but for those that a thread brings upon itself.
FOR_OTHERS = signal.valid_signals() - {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT,
                                       signal.SIGTRAP, signal.SIGSYS}


class Result:
    """Arrays and numbers of a finished run, by name."""

    def __init__(self, handle):
        self.handle = handle

    def array(self, name):
        """A copy, or None when nothing has that name."""
        found = library.shoal_result_tensor(self.handle, name.encode())
        if not found:
            return None
        tensor = found.contents
        shape, dtype = tuple(tensor.shape[:tensor.rank]), TYPES[tensor.type]
        out = np.empty(shape, dtype)
        if out.size:
            ctypes.memmove(out.ctypes.data, tensor.values, out.nbytes)
        return out

    def number(self, name):
        return library.shoal_result_number(self.handle, name.encode())


def check(status, fail=_errors.of_status):
    """Raises what `fail` makes of a failure.  The message belongs to the thread that failed."""
    if status < 0:
        raise fail(status, library.shoal_error().decode(errors="replace"))


@contextlib.contextmanager
def data_of(rows):
    """The library's data set of rows that are C-contiguous and of one of TYPES, which are not copied."""
    data = ctypes.c_void_p()
    try:
        check(library.shoal_data_wrap(ctypes.byref(data), rows.ctypes.data, *rows.shape, TYPES.index(rows.dtype)))
        yield data
    finally:
        library.shoal_data_free(ctypes.byref(data))


class Work:
    """A function that runs in a thread, and how it ended."""

    def __init__(self, function):
        self.function, self.value, self.failure = function, None, None
        self.done = threading.Event()

    def __call__(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, FOR_OTHERS)
        try:
            self.value = self.function()
        except BaseException as error:  # it is raised where the result is waited for
            self.failure = error
        finally:
            self.done.set()


def in_thread(function, stop, progress=None, line=None):
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
    return work.value


def run(learner, config, rows, weights=None, *, threads=0, kernel=None, take):
    """Runs the learner of that table over rows (see data_of), and returns what `take` makes of the Result."""
    stop = ctypes.c_int(0)
    options = RunOptions(threads=threads, kernel=kernel.encode() if kernel else None, stop=ctypes.pointer(stop))

    def call():
        handle = ctypes.c_void_p()
        try:
            with data_of(rows) as data:
                check(library.shoal_run(ctypes.byref(handle), None, algorithm(learner), ctypes.byref(config), data,
                                        None if weights is None else weights.ctypes.data, ctypes.byref(options)))
                return take(Result(handle))
        finally:
            library.shoal_result_free(ctypes.byref(handle))
    return in_thread(call, stop)
