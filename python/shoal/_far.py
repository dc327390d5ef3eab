"""What runs on a worker: reads slices of rows from standard input, calls the function, answers on standard output.

It is sent there as a file and started as `python3 shoal_far.py`, so it uses nothing of this package, and of Python only
what versions since 3.6 have.  What comes in are .npy arrays (include/shoal/run.h): bytes with one dimension are a call,
arrays with two are rows to be answered.  A call is a pickle of

    (name, task, params)     what the task is known by; the task and its parameters, each pickled

and a task says which function to call, how rows become what it expects, how many of them are a slice, and has the
function's source.  Who is called again with a task of the same name need not load it again.  Rows are answered with
bytes, one pickle after another, one for each slice:

    ("result", rows, value)                                     what the function returned
    ("error", rows, host, kind, text, traceback, exception)     what it raised; the exception pickled, or None
    ("skipped", rows)                                           not tried, because an earlier slice failed here

All this is between this file and shoal/qjam.py, which always sends its own version of it."""
import ast
import importlib.util
import io
import os
import pickle
import socket
import struct
import sys
import traceback
import types

PROTOCOL = 4  # what Python 3.4 to 3.7 can read too
MAIN = "shoal_main"  # what the functions of somebody's __main__ are called here
TASKS_KEPT = 16


class Unpickler(pickle.Unpickler):
    """Reads what the other side wrote, whose main program and whose numpy go by other names here."""
    renamed = {"__main__": MAIN}

    def find_class(self, module, name):
        module = self.renamed.get(module, module)
        try:
            return super().find_class(module, name)
        except ImportError:
            if not module.startswith("numpy._core"):  # of numpy 2, when this is 1
                raise
            return super().find_class(module.replace("._core", ".core"), name)


def loads(pickled):
    return Unpickler(io.BytesIO(pickled)).load()


def describe_error(error, dumps=lambda error: pickle.dumps(error, PROTOCOL)):
    """Its kind, text and traceback, and itself, pickled, or None when that can't be."""
    try:
        brought = dumps(error)
        loads(brought)  # some exceptions can be written and not be read
    except BaseException:
        brought = None
    at = error.__traceback__
    trace = "".join(traceback.format_exception(type(error), error, at and (at.tb_next or at)))
    return type(error).__name__, text_of(error), trace, brought


def text_of(error):
    try:
        return str(error)
    except BaseException as broken:
        return "its text is not available: %s" % type(broken).__name__


# ---- slices and answers ----------------------------------------------------------------------------------------------


def take_streams():
    """Standard input and output for ourselves: what the function prints goes to standard error."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return source, sink


HEADERS: dict = {}  # that were read before: most slices have the same
HEADERS_MOST = 64


def read_header(text):
    header = ast.literal_eval(text.decode("latin1"))
    size = int(header["descr"][2:])
    for length in header["shape"]:
        size *= length
    return header["descr"], header["shape"], size


def read_array(source):
    """Type, shape and bytes of the next .npy array, or None at the end.  By hand, since numpy may be what is
    missing."""
    start = source.read(10)
    if not start:
        return None
    if len(start) < 10 or start[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError("what came in is no .npy array of version 1.0")
    text = source.read(struct.unpack("<H", start[8:])[0])
    if text not in HEADERS:
        if len(HEADERS) >= HEADERS_MOST:
            HEADERS.clear()
        HEADERS[text] = read_header(text)
    descr, shape, size = HEADERS[text]
    if len(shape) == 1:
        del HEADERS[text]  # calls are of any length
    values = bytearray(size)
    if source.readinto(values) != size:
        raise ValueError("a .npy array that came in was cut short")
    return descr, shape, values


def answer(sink, *parts):
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % sum(map(len, parts))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    sink.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1"))
    for part in parts:
        sink.write(part)
    sink.flush()


# ---- the function ----------------------------------------------------------------------------------------------------


def write_files(name, files):
    """Where the files of a task are now."""
    folder = os.path.join(os.getcwd(), "task-" + name)
    for path, data in files.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    return folder


def stand_in(package, folder):
    """Packages around the module need not be here: an empty one in their place lets its relative imports work."""
    parts = package.split(".")
    for i in range(1, len(parts) + 1):
        name = ".".join(parts[:i])
        if name not in sys.modules or hasattr(sys.modules[name], "shoal_stand_in"):
            module = sys.modules[name] = types.ModuleType(name)
            module.__path__ = [os.path.join(place, *parts[:i]) for place in (folder, os.getcwd())]
            module.shoal_stand_in = True


def load_module(task, folder):
    name, path = task["module"], os.path.join(folder, task["file"])
    is_package = os.path.basename(path) == "__init__.py"
    if "." in name:
        stand_in(name.rpartition(".")[0], folder)
    spec = importlib.util.spec_from_file_location(
        name, path, submodule_search_locations=[os.path.dirname(path)] if is_package else None)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if task["globals"] is not None:
        vars(module).update(loads(task["globals"]))
    spec.loader.exec_module(module)
    return module


def find_function(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def slices_of(task, rows):
    """The rows as what the caller had, cut: arrays of any type and shape, matrices, or lists."""
    import numpy
    descr, shape, values = rows
    rows = numpy.frombuffer(values, dtype=numpy.dtype(descr)).reshape(shape)
    if task["dtype"] is not None:
        rows = rows.view(task["dtype"])
    rows = rows.reshape((shape[0],) + tuple(task["shape"]))
    if task["kind"] == "matrix":
        rows = numpy.asmatrix(rows)
    for first in range(0, shape[0], task["slice_rows"]):
        slice_ = rows[first:first + task["slice_rows"]]
        yield slice_.tolist() if task["kind"] == "list" else slice_


class Work:
    def __init__(self):
        self.host = os.environ.get("SHOAL_HOST") or socket.gethostname()
        self.called = self.task = self.function = self.params = None
        self.tasks, self.failed = {}, False

    def call(self, pickled):
        """From now on this is to be done; what is wrong with it is told by the first answer."""
        self.called, self.function, self.failed = pickled, None, False

    def prepare(self):
        if sys.version_info < (3, 6):
            raise RuntimeError("Python is too old here: version 3.6 or later is needed, this is %d.%d" %
                               sys.version_info[:2])
        try:
            import numpy  # noqa: F401
        except ImportError:
            raise ImportError("numpy is not installed for the Python here (%s, version %d.%d.%d)"
                              % ((sys.executable,) + sys.version_info[:3])) from None
        name, task, params = pickle.loads(self.called)
        if name not in self.tasks:
            self.load(name, task)
        self.task, module = self.tasks[name]
        sys.modules[self.task["module"]] = module  # where params find their classes
        self.params = loads(params)
        self.function = find_function(module, self.task["function"])

    def load(self, name, pickled):
        task = loads(pickled)
        module = load_module(task, write_files(name, task["files"]))
        while len(self.tasks) >= TASKS_KEPT:
            del self.tasks[next(iter(self.tasks))]
        self.tasks[name] = task, module

    def answers(self, rows):
        """A pickle for each slice of the rows."""
        try:
            if self.function is None and not self.failed:
                self.prepare()
            if self.function is None:
                yield pickle.dumps(("skipped", rows[1][0]), PROTOCOL)
                return
            for slice_ in slices_of(self.task, rows):
                yield self.one(slice_)
        except BaseException as error:
            self.failed = True
            yield self.failure(rows[1][0], error)

    def one(self, slice_):
        rows = len(slice_)
        if self.failed:
            return pickle.dumps(("skipped", rows), PROTOCOL)
        try:
            return pickle.dumps(("result", rows, self.function(self.params, slice_)), PROTOCOL)
        except BaseException as error:  # SystemExit too: the one who called must hear of it
            self.failed = True
            return self.failure(rows, error)

    def failure(self, rows, error):
        return pickle.dumps(("error", rows, self.host) + describe_error(error), PROTOCOL)


def main():
    source, sink = take_streams()
    sys.path[0] = os.getcwd()
    work = Work()
    while True:
        array = read_array(source)
        if array is None:
            return
        if len(array[1]) == 1:
            work.call(array[2])
        else:
            answer(sink, b"".join(work.answers(array)))


if __name__ == "__main__":
    main()
