"""Requests to run a learner, in this process or on workers (include/shoal/run.h)."""
import ctypes
import math

from shoal import _errors
from shoal._library import PROGRESS, SAY, Watcher, library
from shoal._run import Result, check, data_of, encode, in_thread


class Watched:
    """What the library tells of something that runs, from the thread that runs it, and the word that ends it."""

    def __init__(self):
        self.warnings = []  # what people should know of a run: a host that can't be reached
        self.doing = None  # what it does now, as a line of progress
        self.stop, self.seconds = ctypes.c_int(0), 0.0

    def watcher(self):
        return Watcher(round=PROGRESS(self._on_round), doing=SAY(self._on_doing), warn=SAY(self._on_warning),
                       stop=ctypes.pointer(self.stop))

    def take_warnings(self):
        """What people should know since this was last asked."""
        told, self.warnings = self.warnings, []
        return told

    def _on_round(self, context, done, coming, rows, seconds):
        if coming:
            self.doing = describe(coming.contents, rows, seconds - self.seconds)
        self.seconds = seconds

    def _on_doing(self, context, text):
        self.doing = text and text.decode(errors="replace")

    def _on_warning(self, context, text):
        self.warnings.append(text.decode(errors="replace"))


class Request(Watched):
    """A learner, its options as the command line names them, and what it is given in memory.

    options: texts, numbers, or lists for what may be given several times; None is skipped
    rows, weights, start: arrays, C-contiguous and of the library's types
    names: of the columns of rows
    target, words: an array of one column, and the words that its numbers stand for
    files: names, and bytes that the user's command finds under them on workers
    program: the path of shoal, for workers
    fail: makes an exception of a status and the library's sentence"""

    def __init__(self, learner, options, *, rows=None, names=None, weights=None, target=None, words=None, start=None,
                 files=None, program=None, fail=_errors.of_status):
        super().__init__()
        self.learner, self.options, self.files, self.program, self.fail = learner, options, files or {}, program, fail
        self.rows, self.names, self.weights, self.start = rows, names, weights, start
        self.target, self.words = target, words

    def run(self, take, progress=None, line=None):
        """Returns what `take` makes of the Result.  `progress` is shown what the run does, or what line() says; see
        in_thread for what ends a run."""
        return in_thread(lambda: self._run(take), self.stop, progress, line or (lambda: self.doing))

    def _run(self, take):
        """All in one thread: the library's messages belong to it, and what it reads stays alive while it runs."""
        request, outcome = ctypes.c_void_p(), ctypes.c_void_p()
        try:
            with data_of(self.rows, self.names) as data, data_of(self.target, words=self.words) as target:
                self._check(library.shoal_request_new(ctypes.byref(request), self.learner.encode()))
                self._fill(request, data, target)
                watcher = self.watcher()
                library.shoal_request_watch(request, ctypes.byref(watcher))
                self._check(library.shoal_request_run(ctypes.byref(outcome), request))
                return take(Result(library.shoal_outcome_result(outcome), outcome))
        finally:
            library.shoal_outcome_free(ctypes.byref(outcome))
            library.shoal_request_free(ctypes.byref(request))

    def _check(self, status):
        check(status, self.fail)

    def _fill(self, request, data=None, target=None):
        for name, value in self.options.items():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    self._check(library.shoal_request_set(request, name.encode(), encode(one)))
        if data is not None:
            weights = None if self.weights is None else self.weights.ctypes.data
            self._check(library.shoal_request_rows(request, data, weights))
        if target is not None:
            self._check(library.shoal_request_target(request, target))
        if self.start is not None:
            self._check(library.shoal_request_start(request, self.start.ctypes.data, *self.start.shape))
        for name, content in self.files.items():
            self._check(library.shoal_request_file(request, encode(name), content, len(content)))
        if self.program is not None:
            self._check(library.shoal_request_program(request, encode(self.program)))
        library.shoal_request_bind(request)


def describe(coming, rows, seconds):
    """What a round tells, as the program's own progress line does."""
    line = f"{coming.phase.decode()} {coming.step}" + (f"/{coming.steps}" if coming.steps > 0 else "")
    if math.isfinite(coming.objective):
        line += f", objective {coming.objective:.7g}"
    if math.isfinite(coming.change):
        line += f", change {coming.change:.2g}"
    if seconds > 0:
        line += f", {rows / seconds:.2g} rows/s"
    return line
