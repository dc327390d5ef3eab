"""libshoal.so through ctypes: finding it, the structs of its headers, and its functions.

Whoever changes a struct in include/shoal changes it here too; tests/system/test_python.py compares sizes and offsets
with what the C compiler says."""
from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_size_t,
                    c_uint64, c_void_p)

import numpy as np

from shoal._version import version

# ---- what the headers say ------------------------------------------------------------------------------------------

# enum shoal_type, in its order.
TYPES = [np.dtype(name) for name in ("float32", "float64", "int8", "int16", "int32", "int64",
                                     "uint8", "uint16", "uint32", "uint64", "bool")]


class Cell(Structure):
    _fields_ = [("name", c_char * 24), ("kind", c_int), ("count", c_int64), ("bytes", c_size_t), ("carried", c_bool)]


class Pick(Structure):
    _fields_ = [("key", c_uint64), ("from_", c_int64), ("count", c_int64), ("group", c_int64)]


class Layout(Structure):
    _fields_ = [("cells", c_int), ("cell", Cell * 12), ("memo_row_bytes", c_size_t), ("carry_from", c_int64),
                ("writes_memo", c_bool), ("pick", Pick), ("part", c_int)]


class Round(Structure):
    _fields_ = [("number", c_int64), ("model", c_void_p), ("model_bytes", c_size_t), ("keeps", c_int),
                ("kept", c_void_p * 64), ("layout", Layout), ("phase", c_char * 24), ("step", c_int64),
                ("steps", c_int64), ("k", c_int64), ("objective", c_double), ("change", c_double)]


class Tensor(Structure):
    _fields_ = [("name", c_char * 32), ("type", c_int), ("rank", c_int), ("shape", c_int64 * 4), ("values", c_void_p),
                ("lent", c_bool)]


PROGRESS = CFUNCTYPE(None, c_void_p, POINTER(Round), POINTER(Round), c_int64, c_double)


SAY = CFUNCTYPE(None, c_void_p, c_char_p)


class Watcher(Structure):
    _fields_ = [("context", c_void_p), ("round", PROGRESS), ("all_rounds", c_bool), ("doing", SAY), ("warn", SAY),
                ("note", SAY), ("may_stop", CFUNCTYPE(None, c_void_p, c_bool)),
                ("leftovers", CFUNCTYPE(None, c_void_p, POINTER(c_char_p))), ("stop", POINTER(c_int))]


class StoreOptions(Structure):
    _fields_ = [("create", c_bool), ("read_only", c_bool), ("within", c_char_p)]


class TasksOptions(Structure):
    _fields_ = [("name", c_char_p), ("key", c_void_p), ("module", c_void_p), ("module_size", c_size_t),
                ("lease", c_double), ("keep", c_double), ("patience", c_double), ("warn", SAY),
                ("warn_context", c_void_p)]


class TaskFile(Structure):
    _fields_ = [("name", c_char_p), ("bytes", c_void_p), ("size", c_size_t)]


class Task(Structure):
    _fields_ = [("function", c_char_p), ("command", POINTER(c_char_p)), ("bytes", c_void_p), ("size", c_size_t),
                ("environment", POINTER(c_char_p)), ("timeout", c_double), ("files", POINTER(TaskFile)),
                ("file_count", c_int), ("outputs", POINTER(c_char_p))]


class TaskResult(Structure):
    _fields_ = [("number", c_int64), ("state", c_int), ("status", c_int), ("exit_code", c_int), ("bytes", c_void_p),
                ("size", c_size_t), ("message", c_char_p), ("host", c_char * 64), ("seconds", c_double),
                ("deaths", c_int), ("files", POINTER(TaskFile)), ("file_count", c_int), ("memory", c_void_p)]


class TaskWorkersOptions(Structure):
    _fields_ = [("workers", POINTER(c_char_p)), ("program", c_char_p), ("ssh", c_char_p), ("threads", c_int64),
                ("memory", c_int64), ("shared", c_char_p), ("say", SAY), ("context", c_void_p)]


# The C name of each, for the test that compares them.
STRUCTS = {"shoal_cell": Cell, "shoal_layout": Layout, "shoal_round": Round, "shoal_tensor": Tensor,
           "shoal_watcher": Watcher, "shoal_store_options": StoreOptions, "shoal_tasks_options": TasksOptions,
           "shoal_task_file": TaskFile, "shoal_task": Task, "shoal_task_result": TaskResult,
           "shoal_task_workers_options": TaskWorkersOptions}

FUNCTIONS = {  # name: what it returns, what it takes
    "shoal_version": (c_char_p, []),
    "shoal_error": (c_char_p, []),
    "shoal_data_wrap": (c_int, [POINTER(c_void_p), c_void_p, c_int64, c_int64, c_int]),
    "shoal_data_name_columns": (c_int, [c_void_p, POINTER(c_char_p)]),
    "shoal_data_name_words": (c_int, [c_void_p, POINTER(c_char_p), c_int64]),
    "shoal_data_free": (None, [POINTER(c_void_p)]),
    "shoal_result_tensor": (POINTER(Tensor), [c_void_p, c_char_p]),
    "shoal_result_number": (c_double, [c_void_p, c_char_p]),
    "shoal_result_free": (None, [POINTER(c_void_p)]),
    "shoal_request_new": (c_int, [POINTER(c_void_p), c_char_p]),
    "shoal_request_free": (None, [POINTER(c_void_p)]),
    "shoal_request_set": (c_int, [c_void_p, c_char_p, c_char_p]),
    "shoal_request_rows": (c_int, [c_void_p, c_void_p, c_void_p]),
    "shoal_request_target": (c_int, [c_void_p, c_void_p]),
    "shoal_request_start": (c_int, [c_void_p, c_void_p, c_int64, c_int64]),
    "shoal_request_file": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "shoal_request_program": (c_int, [c_void_p, c_char_p]),
    "shoal_request_bind": (None, [c_void_p]),
    "shoal_request_watch": (None, [c_void_p, POINTER(Watcher)]),
    "shoal_request_run": (c_int, [POINTER(c_void_p), c_void_p]),
    "shoal_session_open": (c_int, [POINTER(c_void_p), c_void_p]),
    "shoal_session_call": (c_int, [c_void_p, c_char_p, c_size_t, POINTER(c_void_p), POINTER(c_size_t)]),
    "shoal_session_close": (None, [POINTER(c_void_p)]),
    "shoal_after": (c_int64, [c_double]),
    "shoal_store_open": (c_int, [POINTER(c_void_p), c_char_p, POINTER(StoreOptions), c_int64]),
    "shoal_store_close": (None, [POINTER(c_void_p)]),
    "shoal_tasks_open": (c_int, [POINTER(c_void_p), c_void_p, POINTER(TasksOptions)]),
    "shoal_tasks_close": (c_int, [POINTER(c_void_p)]),
    "shoal_task_submit": (c_int, [POINTER(c_int64), c_void_p, POINTER(Task)]),
    "shoal_task_next": (c_int, [POINTER(POINTER(TaskResult)), c_void_p, c_int64]),
    "shoal_task_result_free": (None, [POINTER(POINTER(TaskResult))]),
    "shoal_task_cancel": (c_int, [c_void_p, c_int64, c_int64]),
    "shoal_task_workers_start": (c_int, [POINTER(c_void_p), c_void_p, c_char_p, POINTER(TaskWorkersOptions)]),
    "shoal_task_workers_stop": (None, [POINTER(c_void_p)]),
    "shoal_outcome_free": (None, [POINTER(c_void_p)]),
    "shoal_outcome_result": (c_void_p, [c_void_p]),
    "shoal_model_open": (c_int, [POINTER(c_void_p), c_char_p]),
    "shoal_model_read": (c_int, [POINTER(c_void_p), c_char_p, c_size_t, c_char_p]),
    "shoal_model_of": (c_int, [POINTER(c_void_p), c_void_p]),
    "shoal_model_free": (None, [POINTER(c_void_p)]),
    "shoal_model_learner": (c_char_p, [c_void_p]),
    "shoal_model_bytes": (c_void_p, [c_void_p, POINTER(c_size_t)]),
    "shoal_model_tensor": (c_int, [POINTER(Tensor), c_void_p, c_char_p]),
    "shoal_model_text": (c_char_p, [c_void_p, c_char_p]),
    "shoal_model_columns": (c_int64, [c_void_p]),
    "shoal_model_column_name": (c_char_p, [c_void_p, c_int64]),
    "shoal_model_class_name": (c_char_p, [c_void_p, c_int64]),
    "shoal_application_new": (c_int, [POINTER(c_void_p), c_void_p]),
    "shoal_application_free": (None, [POINTER(c_void_p)]),
    "shoal_application_set": (c_int, [c_void_p, c_char_p, c_char_p]),
    "shoal_application_rows": (c_int, [c_void_p, c_void_p, c_void_p]),
    "shoal_application_watch": (None, [c_void_p, POINTER(Watcher)]),
    "shoal_application_load": (c_int, [c_void_p]),
    "shoal_application_output": (c_int, [POINTER(Tensor), c_void_p, c_char_p]),
    "shoal_application_into": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t]),
    "shoal_application_run": (c_int, [c_void_p]),
    "shoal_application_result": (c_void_p, [c_void_p]),
    "shoal_application_score": (c_int, [POINTER(c_void_p), c_void_p]),
}

# ---- finding it ----------------------------------------------------------------------------------------------------


def find():
    """Where the library is; what is found first is the only one that is tried."""
    here = pathlib.Path(__file__).resolve().parent
    if os.environ.get("SHOAL_LIBRARY"):
        return os.environ["SHOAL_LIBRARY"]
    for file in (here / "libshoal.so", here.parents[1] / "build" / "libshoal.so"):
        if file.exists():
            return str(file)
    import ctypes.util  # which asks other programs, so that it takes its time
    installed = ctypes.util.find_library("shoal")
    if installed:
        return installed
    raise ImportError("libshoal.so was not found beside the package, in build/ or among the system's libraries: "
                      "pip install ./python in the source tree makes a package that has it, and SHOAL_LIBRARY names "
                      "one that is elsewhere")


def open_library():
    path = find()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"libshoal.so could not be loaded: {error}; SHOAL_LIBRARY names another one") from None
    declare(library, path)
    return library


def declare(library, path):
    """Gives the functions their types, once it is sure that they are those of this version."""
    if not hasattr(library, "shoal_version"):
        raise ImportError(f"{path} is not libshoal, or older than version {version}, which this package needs")
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            raise ImportError(f"{path} has no {name}, so it is an older build of version {version} than this package: "
                              "build both anew, or set SHOAL_LIBRARY to another one")
        function.restype, function.argtypes = result, arguments
        if name == "shoal_version":
            theirs = function().decode()
            if theirs.split(".")[:2] != version.split(".")[:2]:
                raise ImportError(f"{path} is version {theirs}, but this package needs {version}: "
                                  "update either, or set SHOAL_LIBRARY to the other one")


library = open_library()
PATH = pathlib.Path(library._name)
