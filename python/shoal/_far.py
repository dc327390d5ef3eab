"""What runs on a worker: reads slices of rows from standard input, calls the function, answers on standard output.

It is sent there as a file and started as `python3 shoal_far.py`, so it uses nothing of this package, and of Python only
what versions since 3.6 have.  Beside it lie task.pickle, which says what to call and how rows become what the function
expects, params.pickle, and the function's source.  Slices and answers are .npy arrays; an answer is a pickle, as bytes:

    ("result", rows, value)                                     what the function returned
    ("error", rows, host, kind, text, traceback, exception)     what it raised; the exception pickled, or None
    ("skipped", rows)                                           not tried, because an earlier slice failed here

The first element of task.pickle and all that is written here is part of the contract with shoal/qjam.py, which always
sends
its own version of this file."""
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


def load(path):
    with open(path, "rb") as file:
        return Unpickler(file).load()


# ---- slices and answers ----------------------------------------------------------------------------------------------


def take_streams():
    """Standard input and output for ourselves: what the function prints goes to standard error."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return source, sink


def read_slice(source):
    """Type, shape and bytes of the next .npy array, or None at the end.  By hand, since numpy may be what is
    missing."""
    start = source.read(10)
    if not start:
        return None
    if len(start) < 10 or start[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError("what came in is no .npy array of version 1.0")
    header = ast.literal_eval(source.read(struct.unpack("<H", start[8:])[0]).decode("latin1"))
    size = int(header["descr"][2:])
    for length in header["shape"]:
        size *= length
    values = bytearray(size)
    if source.readinto(values) != size:
        raise ValueError("a .npy array that came in was cut short")
    return header["descr"], header["shape"], values


def answer(sink, payload):
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % len(payload)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    sink.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1"))
    sink.write(payload)
    sink.flush()


# ---- the function ----------------------------------------------------------------------------------------------------


def stand_in(package):
    """Packages around the module need not be here: an empty one in their place lets its relative imports work."""
    parts = package.split(".")
    for i in range(1, len(parts) + 1):
        name = ".".join(parts[:i])
        if name not in sys.modules:
            module = sys.modules[name] = types.ModuleType(name)
            module.__path__ = [os.path.join(os.getcwd(), *parts[:i])]


def load_function(task):
    name, path = task["module"], os.path.join(os.getcwd(), task["file"])
    is_package = os.path.basename(path) == "__init__.py"
    if "." in name:
        stand_in(name.rpartition(".")[0])
    spec = importlib.util.spec_from_file_location(
        name, path, submodule_search_locations=[os.path.dirname(path)] if is_package else None)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if os.path.exists("globals.pickle"):
        vars(module).update(load("globals.pickle"))
    spec.loader.exec_module(module)
    function = module
    for part in task["function"].split("."):
        function = getattr(function, part)
    return function


def rebuild(task, slice_):
    """The rows as what the caller had: an array of any type and shape, a matrix, or a list."""
    import numpy
    descr, shape, values = slice_
    rows = numpy.frombuffer(values, dtype=numpy.dtype(descr)).reshape(shape)
    if task["dtype"] is not None:
        rows = rows.view(task["dtype"])
    rows = rows.reshape((shape[0],) + tuple(task["shape"]))
    if task["kind"] == "matrix":
        return numpy.asmatrix(rows)
    return rows.tolist() if task["kind"] == "list" else rows


class Work:
    def __init__(self):
        self.host = os.environ.get("SHOAL_HOST") or socket.gethostname()
        self.task = self.function = self.params = None
        self.failed = False

    def prepare(self):
        if sys.version_info < (3, 6):
            raise RuntimeError("Python is too old here: version 3.6 or later is needed, this is %d.%d" %
                               sys.version_info[:2])
        try:
            import numpy  # noqa: F401
        except ImportError:
            raise ImportError("numpy is not installed for the Python here (%s, version %d.%d.%d)"
                              % ((sys.executable,) + sys.version_info[:3])) from None
        self.task = load("task.pickle")
        self.function = load_function(self.task)
        self.params = load("params.pickle")

    def one(self, slice_):
        rows = slice_[1][0]
        if self.failed:
            return pickle.dumps(("skipped", rows), PROTOCOL)
        try:
            if self.function is None:
                self.prepare()
            return pickle.dumps(("result", rows, self.function(self.params, rebuild(self.task, slice_))), PROTOCOL)
        except BaseException as error:  # SystemExit too: the one who called must hear of it
            self.failed = True
            return self.failure(rows, error)

    def failure(self, rows, error):
        try:
            brought = pickle.dumps(error, PROTOCOL)
            Unpickler(io.BytesIO(brought)).load()  # some exceptions can be written and not be read
        except BaseException:
            brought = None
        trace = "".join(
            traceback.format_exception(type(error), error, error.__traceback__.tb_next or error.__traceback__))
        return pickle.dumps(("error", rows, self.host, type(error).__name__, str(error), trace, brought), PROTOCOL)


def main():
    source, sink = take_streams()
    sys.path[0] = os.getcwd()
    work = Work()
    while True:
        slice_ = read_slice(source)
        if slice_ is None:
            return
        answer(sink, work.one(slice_))


if __name__ == "__main__":
    main()
