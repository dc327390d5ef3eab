"""Models in memory: what a learner found, read from and written to safetensors files, and applied to rows
(include/shoal/model.h)."""
from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import weakref
from typing import Any, Iterable, Iterator

import numpy as np

from shoal._errors import of_status
from shoal._library import Tensor, library
from shoal._request import Watched
from shoal._run import Result, check, copy_of, data_of, empty_as, encode, in_thread

FEW_ROWS = 64


class Model:
    """What a learner found.  It never changes, and any number of threads may use it."""

    def __init__(self, handle: ctypes.c_void_p):
        self._handle = handle
        weakref.finalize(self, library.shoal_model_free, ctypes.byref(handle))

    @classmethod
    def open(cls, path: str) -> Model:
        """A file that this package or the program wrote."""
        handle = ctypes.c_void_p()
        check(library.shoal_model_open(ctypes.byref(handle), encode(path)))
        model = cls(handle)
        if not model.bytes():
            raise ValueError(f"{path} is a table of rows, not a model, which is a file that ends in .safetensors")
        return model

    @classmethod
    def read(cls, data: bytes, name: str) -> Model:
        """The bytes of such a file, which messages call `name`."""
        handle = ctypes.c_void_p()
        check(library.shoal_model_read(ctypes.byref(handle), data, len(data), encode(name)))
        return cls(handle)

    @classmethod
    def of(cls, result: Result) -> Model:
        """What a run has found."""
        handle = ctypes.c_void_p()
        check(library.shoal_model_of(ctypes.byref(handle), result.outcome))
        return cls(handle)

    def bytes(self) -> bytes:
        """The file that the program would write."""
        size = ctypes.c_size_t()
        values = library.shoal_model_bytes(self._handle, ctypes.byref(size))
        return ctypes.string_at(values, size.value) if values else b""

    def write(self, path: str) -> None:
        """Under another name first: there is never half a file, and an old one stays until this one is whole."""
        folder, name = os.path.split(path)
        if not name.endswith(".safetensors"):
            raise ValueError(f"{path}: the name of a model must end in .safetensors")
        temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}")
        try:
            with open(temporary, "xb") as file:
                file.write(self.bytes())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, path) from None
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    # ---- what it says ------------------------------------------------------------------------------------------------

    @property
    def learner(self) -> str:
        return library.shoal_model_learner(self._handle).decode()

    @property
    def columns(self) -> int:
        return library.shoal_model_columns(self._handle)

    def has(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return library.shoal_model_tensor(ctypes.byref(Tensor()), self._handle, name.encode()) == 0

    def tensor(self, name: str) -> np.ndarray:
        """A copy that can't be written to, since changing it would not change the model."""
        about = Tensor()
        check(library.shoal_model_tensor(ctypes.byref(about), self._handle, name.encode()))
        out = copy_of(about)
        out.flags.writeable = False
        return out

    def text(self, key: str) -> str | None:
        """An entry of the metadata, such as "objective" or "option.seed"."""
        found = library.shoal_model_text(self._handle, key.encode())
        return None if found is None else found.decode(errors="surrogateescape")

    def number(self, key: str) -> float:
        return float(self.text(key) or "nan")

    def names(self) -> list[str] | None:
        """Of the columns."""
        names = [library.shoal_model_column_name(self._handle, i) for i in range(self.columns)]
        return [name.decode(errors="surrogateescape") for name in names] if names and None not in names else None

    def words(self) -> list[str] | None:
        """What the classes 0, 1, ... stand for."""
        words: list[str] = []
        while True:
            word = library.shoal_model_class_name(self._handle, len(words))
            if word is None:
                return words or None
            words.append(word.decode(errors="surrogateescape"))

    def scaling(self) -> tuple[np.ndarray, np.ndarray] | None:
        """What the option standardise subtracted from each column, and divided it by."""
        schema = json.loads(self.text("schema") or "{}")
        if "standardise_mean" not in schema:
            return None
        return np.array(schema["standardise_mean"], float), np.array(schema["standardise_scale"], float)

    # ---- applying it -------------------------------------------------------------------------------------------------

    def apply(self, rows: np.ndarray | str, wanted: Iterable[str] = (), *, weights: np.ndarray | None = None,
              options: dict[str, Any] | None = None, progress: Any = None) -> Applied:
        """Applies it to rows, an array that is C-contiguous and of the library's types, or the name of a file.

        wanted: outputs, as the long options of `shoal predict` name them; the library writes each where it stays
        options: more of those options"""
        applied, asked = Applied(), dict(options or {})
        if isinstance(rows, np.ndarray) and len(rows) <= FEW_ROWS:  # threads would take longer to start than to work
            asked.setdefault("threads", 1)
            return self._apply(applied, rows, wanted, weights, asked)
        return in_thread(lambda: self._apply(applied, rows, wanted, weights, asked), applied.stop, progress,
                         lambda: applied.doing)

    def _apply(self, applied: Applied, rows: np.ndarray | str, wanted: Iterable[str], weights: np.ndarray | None,
               options: dict[str, Any]) -> Applied:
        path = rows if isinstance(rows, str) else None
        with data_of(None if isinstance(rows, str) else rows) as data, self._application() as application:
            for name, value in {**options, "data": path}.items():
                if value is not None:
                    check(library.shoal_application_set(application, name.encode(), encode(value)))
            if data is not None:
                check(library.shoal_application_rows(application, data, weights.ctypes.data if weights is not None
                                                     else None))
            watcher = applied.watcher()
            library.shoal_application_watch(application, ctypes.byref(watcher))
            check(library.shoal_application_load(application))
            for name in wanted:
                about = Tensor()
                check(library.shoal_application_output(ctypes.byref(about), application, name.encode()))
                out = applied.arrays[name] = empty_as(about)
                check(library.shoal_application_into(application, name.encode(), out.ctypes.data, out.nbytes))
            check(library.shoal_application_run(application))
            applied.objective = Result(library.shoal_application_result(application)).number("objective")
            if options.get("score"):
                applied.score = score_of(application)
        return applied

    @contextlib.contextmanager
    def _application(self) -> Iterator[Any]:
        application = ctypes.c_void_p()
        try:
            check(library.shoal_application_new(ctypes.byref(application), self._handle))
            yield application
        finally:
            library.shoal_application_free(ctypes.byref(application))


class Applied(Watched):
    """What a model says of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.arrays: dict[str, np.ndarray] = {}
        self.objective = float("nan")
        self.score: dict[str, float] = {}


SCORES = ("accuracy", "log_loss", "adjusted_rand_index", "error")


def score_of(application: Any) -> dict[str, float]:
    """The scores that there are."""
    handle = ctypes.c_void_p()
    try:
        check(library.shoal_application_score(ctypes.byref(handle), application), of_status)
        return {name: Result(handle).number(name) for name in SCORES}
    finally:
        library.shoal_result_free(ctypes.byref(handle))
