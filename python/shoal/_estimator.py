"""What all estimators share: a request that learns, a model that is applied, files, pickles and progress.

A learner is a class with its parameters, what they are called as options of the program, and what its model's tensors
are called here:

    class KMeans(Estimator):
        _learner = "kmeans"
        _parameters = {"n_clusters": Whole("clusters", 1), "tol": Real("tolerance")}

        def __init__(self, n_clusters=8, *, tol=1e-4, verbose=0, n_threads=None, kernel=None, workers=None,
                     options=None): ...

        def _set_model(self, model): ...        # attributes such as cluster_centers_
"""
from __future__ import annotations

import contextlib
import numbers
import os
import re
import tempfile
import warnings
from typing import Any, Callable, Iterator, Mapping, TypeVar

import numpy as np

from shoal import _sklearn, _validate
from shoal._model import Applied, Model
from shoal._parameters import is_bool, whole_number
from shoal._progress import Progress
from shoal._request import Request
from shoal._run import Result
from shoal._version import version

Self = TypeVar("Self", bound="Estimator")

# What help() says of the parameters that all have, in the place of {common}.
COMMON = """\
verbose : int, default=0
        1 shows a line of progress, in a terminal or a notebook.
    n_threads : int or None, default=None
        Threads to compute with; None is as many as this process may use. Never changes the result.
    kernel : str or None, default=None
        The kernel set, such as 'avx2'; None is the best this processor has. Never changes the result.
    workers : str, list of str, int or None, default=None
        Processes elsewhere that compute: 'local:4' or 4, 'ssh:corn10,corn11:8', 'slurm:64'. Never changes the
        result."""

# Other names that the library has for options which parameters say.
ALIASES = {"batch-size": "batch", "k": "clusters", "num-clusters": "clusters", "max-iterations": "iterations",
           "n-iter": "iterations", "random-seed": "seed", "n-jobs": "threads", "num-threads": "threads"}

# Options of reading that rows need to be read alike when the model is applied to a file.
READING = ("header", "cols", "type", "memory")


class Estimator(_sklearn.BaseEstimator):
    _learner: str  # its name in the library
    _name: str  # and in a line of progress
    _parameters: Mapping[str, Any]
    _model: Model
    feature_names_in_: np.ndarray
    # Parameters of all of them.
    verbose: int
    n_threads: int | None
    kernel: str | None
    workers: Any
    options: Mapping[str, Any] | None

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.__doc__ is not None:  # with python -OO it is
            cls.__doc__ = cls.__doc__.replace("{common}", COMMON)

    # ---- learning ----------------------------------------------------------------------------------------------------

    def _checked_options(self) -> dict[str, Any]:
        """The parameters as options of the library."""
        return {kind.option: kind.text(getattr(self, name), name) for name, kind in self._parameters.items()}

    def _place(self) -> dict[str, Any]:
        """Where and how it is computed, which never changes the result."""
        threads = None if self.n_threads is None else whole_number(self.n_threads, "n_threads", 1, 4096)
        if self.kernel is not None and not isinstance(self.kernel, str):
            raise ValueError(f"kernel must be the name of a kernel set or None, not {self.kernel!r}")
        return {name: value for name, value in (("threads", threads), ("kernel", self.kernel)) if value is not None}

    def _places(self) -> list[str] | None:
        """The places of workers; a number is that of processes of this machine."""
        if self.workers is None:
            return None
        if isinstance(self.workers, (str, numbers.Integral)) and not is_bool(self.workers):
            return [str(self.workers)]
        if not isinstance(self.workers, (list, tuple)) or not all(isinstance(one, str) for one in self.workers):
            raise ValueError(f"workers must be a text such as 'local:4', a list of such texts, or None, not "
                             f"{self.workers!r}")
        return list(self.workers)

    def _more_options(self, own: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Those of the parameter `options`; none is one of our `own`."""
        if self.options is None:
            return {}
        if not isinstance(self.options, Mapping) or not all(isinstance(name, str) for name in self.options):
            raise ValueError(f"options must be a dict of options of the program by their names, not {self.options!r}")
        for name in self.options:
            option = name.replace("_", "-")
            if ALIASES.get(option, option) in (own or {}) or name.replace("-", "_") in self.get_params(deep=False):
                raise ValueError(f"options has {name!r}, which a parameter of {type(self).__name__} or fit says")
        return {name.replace("_", "-"): value for name, value in self.options.items()}

    def _learn(self, rows: _validate.Rows, options: Mapping[str, Any], take: Callable[[Result], Any], *,
               weights: Any = None, progress: Any = None, **given: Any) -> Any:
        """Runs the learner; what `take` makes of the Result."""
        workers = self._places()
        own = {**options, **self._place(), "data": rows.path}
        more: dict[str, Any] = {**own, **self._more_options(own)}
        if workers is not None:
            from shoal import _program
            more["workers"], given["program"] = workers, _program.find()
        elif "store" not in more:
            more["engine"] = "threads"  # of this process alone, also where mpirun or srun started it
        weights = _validate.as_weights(weights, rows)
        with weights_file(rows, weights) as path:
            if path or isinstance(weights, str):
                more["weights"], weights = path or weights, None
            request = Request(self._learner, more, rows=rows.array, names=rows.names, weights=weights, **given)
            with self._in_words(path):
                found = request.run(take, progress)
        for line in request.take_warnings():
            warnings.warn(line, stacklevel=4)
        return found

    @contextlib.contextmanager
    def _in_words(self, weights: str | None = None) -> Iterator[None]:
        """The library's sentences, with the names that things have here; `weights` is a file that only we know."""
        try:
            yield
        except ValueError as error:
            sentence = str(error).replace(weights, "sample_weight") if weights else str(error)
            raise ValueError(self._say(sentence)) from None

    def _say(self, sentence: str) -> str:
        names = {kind.option: name for name, kind in self._parameters.items()}
        names.update(threads="n_threads", weights="sample_weight", target="y")
        sentence = re.sub(r"--([a-z0-9][a-z0-9-]*)", lambda found: names.get(found[1], found[0]), sentence)
        sentence = sentence.replace("the data's", "X's").replace("is not a number;", "is NaN;")
        if re.match(r"row \d+, column \d+", sentence):
            sentence = f"X: {sentence} (rows and columns are counted from 1)"
        return re.sub(r"^memory\b", "X", sentence)

    @contextlib.contextmanager
    def _progress(self) -> Iterator[Any]:
        if not self.verbose:
            yield None
            return
        with Progress() as progress:
            yield progress

    # ---- what was learned --------------------------------------------------------------------------------------------

    def _set_model(self, model: Model) -> None:
        """Attributes of what was learned."""
        raise NotImplementedError

    def _set_learned(self, model: Model, names: Any = None) -> None:
        self._model = model
        self.n_features_in_ = model.columns
        if names is None and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        elif names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self._set_model(model)

    def _end_of(self, model: Model) -> str:
        """The last line of progress."""
        line = f"{self._name}: "
        if model.text("iterations") is not None:
            line += f"{model.number('iterations'):.0f} iterations, objective {model.number('objective'):.7g}"
        else:
            line += f"{model.number('rows'):.0f} rows"
        return line

    # ---- using it ----------------------------------------------------------------------------------------------------

    def _apply(self, X: Any, *wanted: str, sample_weight: Any = None,
               options: Mapping[str, Any] | None = None) -> Applied:
        """What the model says of X."""
        rows = self._new_rows(X)
        weights = _validate.as_weights(sample_weight, rows)
        if weights is not None and (rows.array is None or isinstance(weights, str)):
            raise ValueError("sample_weight needs X in memory: a file is scored without")
        more = self._more_options()
        reading = {name: more[name] for name in READING if name in more}
        if more.get("missing") == "mean":
            reading["missing"] = "mean"
        with self._in_words():
            return self._model.apply(rows.path or "" if rows.array is None else rows.array, wanted, weights=weights,
                                     options={**reading, **self._place(), **(options or {})})

    def _check_fitted(self) -> None:
        if not hasattr(self, "_model"):
            raise _sklearn.NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit before using it")

    def _new_rows(self, X: Any) -> _validate.Rows:
        self._check_fitted()
        rows = _validate.rows_of(X)
        if rows.array is None:
            return rows  # the library matches the columns of files by their names
        _validate.check_feature_names(getattr(self, "feature_names_in_", None), X, type(self).__name__)
        if rows.array.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {rows.array.shape[1]} features, but {type(self).__name__} is expecting "
                             f"{self.n_features_in_} features as input")
        return rows

    # ---- files and pickles -------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to a .safetensors file: the bytes that the program writes with --model."""
        self._check_fitted()
        self._model.write(os.fspath(path))

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Reads a model that save() or the program wrote, with the parameters that it was found with."""
        return cls._of_model(Model.open(os.fspath(path)), os.fspath(path))

    @classmethod
    def _of_model(cls: type[Self], model: Model, name: str) -> Self:
        if model.learner != cls._learner:
            raise ValueError(f"{name} is a model of {model.learner}, not of {cls._learner}; shoal.load reads any")
        self = cls(**cls._parameters_of(model))
        self._set_learned(model, model.names())
        return self

    @classmethod
    def _parameters_of(cls, model: Model) -> dict[str, Any]:
        """Parameters that the model remembers as options."""
        told = {name: (kind, model.text(f"option.{kind.option}")) for name, kind in cls._parameters.items()}
        return {name: kind.value(text) for name, (kind, text) in told.items() if text is not None}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self), _shoal_version=version)
        if "_model" in state:
            state["_model"] = state["_model"].bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The model travels as a safetensors file, which other versions read as well; what else there is may differ."""
        state = dict(state)
        theirs, name = state.pop("_shoal_version", "another version"), type(self).__name__
        if theirs != version:
            warnings.warn(f"this {name} was pickled by shoal {theirs} and is used by {version}, where parameters and "
                          "results may differ; save() and shoal.load() are made for that", stacklevel=2)
        if "_model" in state:
            try:
                state["_model"] = Model.read(state["_model"], f"a pickled {name}")
            except (ValueError, TypeError) as error:
                raise ValueError(f"this {name}, which was pickled by shoal {theirs}, can't be read by {version}: "
                                 f"{error}") from None
        self.__dict__.update(state)


@contextlib.contextmanager
def weights_file(rows: _validate.Rows, weights: Any) -> Iterator[str | None]:
    """The name of a file with the weights, where rows are in a file and weights are not: the library compares their
    numbers when it has read both."""
    if rows.array is not None or not isinstance(weights, np.ndarray):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="shoal-weights-") as folder:
        path = os.path.join(folder, "weights.npy")
        np.save(path, weights)
        yield path
