"""Running a learner of the library over a numpy array.

The library is called from a thread of its own, for two reasons: a signal handler of Python runs only in the main
thread,
which therefore must not be inside the library when Ctrl-C is pressed; and the main thread draws the progress
meanwhile."""
import ctypes
import threading

import numpy as np

from shoal import _errors
from shoal._library import PROGRESS, TYPES, RunOptions, algorithm, library


class Result:
    """Arrays and numbers of a finished run, by name."""

    def __init__(self, handle):
        self.handle = handle

    def array(self, name):
        """A copy, or None when there is none of that name."""
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


class Call:
    """One call of shoal_run, and all that must stay alive as long as it runs."""

    def __init__(self, learner, config, rows, weights, options, take):
        self.learner, self.config, self.rows, self.weights, self.options = learner, config, rows, weights, options
        self.take, self.taken, self.failure = take, None, None
        self.done = threading.Event()

    def __call__(self):
        try:
            self.run()
        except BaseException as error:  # it is raised where the result is waited for
            self.failure = error
        finally:
            self.done.set()

    def run(self):
        data, handle = ctypes.c_void_p(), ctypes.c_void_p()
        count, columns = self.rows.shape
        try:
            status = library.shoal_data_wrap(ctypes.byref(data), self.rows.ctypes.data, count, columns,
                                             TYPES.index(self.rows.dtype))
            if status == 0:
                weights = None if self.weights is None else self.weights.ctypes.data
                status = library.shoal_run(ctypes.byref(handle), None, algorithm(self.learner),
                                           ctypes.byref(self.config), data, weights, ctypes.byref(self.options))
            if status < 0:  # the message belongs to the thread that failed
                raise _errors.of_status(status, library.shoal_error().decode(errors="replace"))
            self.taken = self.take(Result(handle))
        finally:
            library.shoal_result_free(ctypes.byref(handle))
            library.shoal_data_free(ctypes.byref(data))


def describe(coming, rows, seconds, before):
    """What a round tells, as the program's own progress line does."""
    line = f"{coming.phase.decode()} {coming.step}" + (f"/{coming.steps}" if coming.steps > 0 else "")
    if np.isfinite(coming.objective):
        line += f", objective {coming.objective:.7g}"
    if np.isfinite(coming.change):
        line += f", change {coming.change:.2g}"
    if seconds > before:
        line += f", {rows / (seconds - before):.2g} rows/s"
    return line


def run(learner, config, rows, weights=None, *, threads=0, kernel=None, take=None, progress=None):
    """Runs `learner` over rows that are C-contiguous and of one of TYPES, without copying them.

    `take` makes of the Result what is returned, before the library frees it.  `progress` is something with show(text).
    KeyboardInterrupt, and whatever else a signal handler raises, ends the run after the round it is in."""
    stop = ctypes.c_int(0)
    latest, before = [], [0.0]

    def after_round(context, done, coming, count, seconds):
        if coming:
            latest[:] = [describe(coming.contents, count, seconds, before[0])]
        before[0] = seconds

    options = RunOptions(threads=threads, kernel=kernel.encode() if kernel else None, stop=ctypes.pointer(stop))
    if progress:
        options.progress = PROGRESS(after_round)
    call = Call(learner, config, rows, weights, options, take)
    thread = threading.Thread(target=call, name="shoal", daemon=True)
    interrupt = None
    thread.start()
    while True:
        try:
            while not call.done.wait(0.1 if progress and not interrupt else None):
                if latest:
                    progress.show(latest[0])
            thread.join()
            break
        except BaseException as error:
            if interrupt:  # a second one does not wait: the thread ends by itself, and keeps what it reads
                raise
            interrupt, stop.value = error, 1
    if interrupt:
        raise interrupt
    failure, call.failure = call.failure, None  # or the exception's frames and the call would keep each other alive
    if failure:
        raise failure
    return call.taken
