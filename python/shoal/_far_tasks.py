"""What runs on a worker for an Executor: reads questions from standard input, calls functions, answers on standard
output.

It is sent there, after _far.py, as one of the files of every task (src/run/task_program.h), so it uses nothing of this
package but that, and of Python only what versions since 3.6 have.  A question is

    MAJOR.MINOR SIZE '\\n' HEAD BODY BUFFER ...

where HEAD, of SIZE bytes, is a pickle of a dict:

    settings    the file with what tasks need here: folders to import from, and modules that are brought
    function    the function, pickled; or the file that has it
    buffers     of the arrays in the body, in their order: files, or the sizes of those that follow the body
    body        its size
    many        whether the body has a list of calls, whose results are a list

and BODY one of (arguments, keywords).  Files are numbers in the list that came before the question.  An answer is 'R'
and the pickle of a result, 'E' and a pickle of (host, kind, text, traceback, exception), or 'V' and a sentence: this
Python has another version, and nothing was run.

All this is between this file and shoal/executor.py, which always sends its own version of it."""
import concurrent.futures
import importlib.util
import io
import linecache
import os
import pickle
import socket
import sys

import shoal_far as far

FUNCTIONS_KEPT = 64


class InPlace(concurrent.futures.Executor):
    """What an Executor is where its tasks run: submitting calls the function at once, so that nothing waits for a
    worker that waits."""

    def submit(self, function, *arguments, **keywords):
        future = concurrent.futures.Future()
        try:
            future.set_result(function(*arguments, **keywords))
        except Exception as error:
            future.set_exception(error)
        return future


def in_place():
    return InPlace()


class Unpickler(far.Unpickler):
    renamed = {"shoal.executor": __name__}


def loads(data, buffers=()):
    if not buffers:
        return Unpickler(io.BytesIO(data)).load()
    return Unpickler(io.BytesIO(data), buffers=buffers).load()


class Brought:
    """Finds and loads modules that came with a task."""

    def __init__(self):
        self.modules = {}

    def find_spec(self, name, path=None, target=None):
        if name not in self.modules:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=self.modules[name][1])

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        source, _, file = self.modules[module.__name__]
        text = source.decode(errors="replace")
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)  # for tracebacks
        module.__file__ = file
        exec(compile(source, file, "exec"), vars(module))


class Tasks:
    def __init__(self, kept):
        self.kept = kept  # files: names and bytes
        self.files = []  # of the next question
        self.functions, self.settings, self.brought = {}, None, Brought()
        self.host = os.environ.get("SHOAL_HOST") or socket.gethostname()
        sys.meta_path.insert(0, self.brought)

    def note(self, data):
        """What is told before a question."""
        what = bytes(data[:1])
        if what == b"+":
            end = data.index(b"\0")
            self.kept[data[1:end].decode()] = memoryview(data)[end + 1:]
        elif what == b"-":
            name = data[1:].decode()
            self.kept.pop(name, None)
            self.functions.pop(name, None)
        else:
            self.files = data[1:].decode().split()

    def answer(self, question):
        """The parts of the answer."""
        process = os.getpid()
        line = bytes(question[:64]).partition(b"\n")[0]
        version, size = line.decode().split()
        ours = "%d.%d" % sys.version_info[:2]
        if ours != version:
            return b"V", ("%s has Python %s (%s), but the tasks are those of Python %s: all workers need the same "
                          "version, which python=... names" % (self.host, ours, sys.executable, version)).encode()
        try:
            parts = b"R", self.run(memoryview(question)[len(line) + 1:], int(size))
        except BaseException as error:  # SystemExit too: the one who called must hear of it
            parts = b"E", pickle.dumps((self.host, ) + far.describe_error(error, self.dumps), far.PROTOCOL)
        if os.getpid() != process:
            os._exit(0)  # the function has forked, and this is its child, which has come back from it
        return parts

    def run(self, rest, size):
        head, rest = pickle.loads(rest[:size]), rest[size:]
        self.apply_settings(self.files[head["settings"]])
        function = self.function(head["function"])
        body, rest = rest[:head["body"]], rest[head["body"]:]
        buffers = []
        for where, number in head["buffers"]:
            if where == "file":
                buffers.append(self.kept[self.files[number]].toreadonly())
            else:
                buffers.append(rest[:number])
                rest = rest[number:]
        calls = loads(body, buffers)
        if not head["many"]:
            result = function(*calls[0], **calls[1])
        else:
            result = [function(*arguments) for arguments in calls]
        try:
            return self.dumps(result)
        except MemoryError:
            raise
        except Exception as error:
            raise TypeError("what %s returned can't be pickled: %s" % (name_of(function), error)) from None

    def apply_settings(self, name):
        if name == self.settings:
            return
        settings = pickle.loads(self.kept[name])
        self.brought.modules = settings["modules"]
        sys.path[:] = settings["path"] + [place for place in sys.path if place not in settings["path"]]
        importlib.invalidate_caches()
        self.settings = name

    def function(self, where):
        if isinstance(where, bytes):
            return loads(where)
        name = self.files[where]
        if name not in self.functions:
            if len(self.functions) >= FUNCTIONS_KEPT:
                self.functions.clear()
            self.functions[name] = loads(self.kept[name])
        return self.functions[name]

    def dumps(self, value):
        """By reference as far as possible; what stands in somebody's main program, by value."""
        try:
            data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
            if b"__main__" not in data or "cloudpickle" not in sys.modules:
                return data
        except MemoryError:
            raise
        except Exception:
            if "cloudpickle" not in sys.modules:
                raise
        return sys.modules["cloudpickle"].dumps(value, pickle.HIGHEST_PROTOCOL)


def name_of(function):
    return getattr(function, "__qualname__", None) or repr(function)


def serve(source, kept):
    """Until the end of standard input, of which `source` is a copy."""
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what functions print goes to standard error
    sys.argv, sys.path[:] = [""], [place for place in sys.path if place]
    tasks = Tasks(kept)
    while True:
        array = far.read_array(source)
        if array is None:
            return
        if len(array[1]) == 1:
            tasks.note(array[2])
        else:
            far.answer(sink, *tasks.answer(array[2]))
