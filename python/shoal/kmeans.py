"""k-means and mini-batch k-means as estimators in the manner of scikit-learn.

docs/python.md lists where they differ from those of sklearn.cluster; docs/learn/kmeans.md defines the results."""
from __future__ import annotations

import numbers
import os
import re
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, Iterator, Mapping

import numpy as np

from shoal import _sklearn, _validate
from shoal._estimator import Estimator
from shoal._model import Model
from shoal._parameters import SEED_MOST, WHOLE_MOST, Choice, Real, Seed, Whole, is_bool, whole_number

if TYPE_CHECKING:
    from shoal._classifier import Data

# The words of scikit-learn and of the program, and what the library calls them.
INIT_WORDS = {"auto": "auto", "k-means++": "kmeans++", "kmeans++": "kmeans++", "parallel": "parallel",
              "k-means||": "parallel", "random": "random"}
RUNS_MOST = 1 << 20
TOO_FEW_ROWS = r"n_clusters=\d+ is more than X's \d+ distinct rows.*"


class Clusters(Whole):
    """The number of clusters.  A model's option may have several that were tried: its centres tell which it is of."""

    def value(self, text: str) -> object:
        return None


class Patience(Whole):
    """A number of batches; None is the program's 0."""

    def text(self, value: Any, name: str) -> object:
        return 0 if value is None else super().text(value, name)

    def value(self, text: str) -> object:
        return int(text) or None


class KMeans(_sklearn.ClassNamePrefixFeaturesOutMixin, _sklearn.TransformerMixin, _sklearn.ClusterMixin, Estimator):
    """k-means clustering, exact to the bit: the result depends on the data and the parameters alone, never on the
    number of threads, workers or the processor.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters; shoal.choose_k tries many.
    init : {'auto', 'k-means++', 'parallel', 'random'}, callable or array of shape (n_clusters, n_features)
        The first centres. 'auto' is 'k-means++' up to 50 clusters and 'parallel' (k-means||) above. A callable is
        called with X, n_clusters and random_state and returns the centres.
    n_init : int or 'auto', default=1
        Runs with different first centres, of which the best is kept. 'auto' is 10 where init is 'random' or a callable,
        and 1 otherwise.
    max_iter : int, default=300
        The most updates of the centres in one run.
    tol : float, default=1e-4
        A run ends when the centres' squared movement is at most tol times the mean variance of the columns.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None, default=None
        An int gives the same result each time; None takes a new seed each time.
    empty : {'farthest', 'keep', 'split'}, default='farthest'
        What a cluster without rows does: take the row farthest from its centre, keep its centre, or take half of the
        largest cluster.
    metric : {'euclidean', 'cosine'}, default='euclidean'
        What near means; with 'cosine' rows count by their direction alone, and centres have length 1.
    {common}
    options : dict or None, default=None
        More options of `shoal kmeans` by their names, such as {'standardise': True, 'missing': 'mean'}.

    Attributes
    ----------
    cluster_centers_ : float64 array of shape (n_clusters, n_features)
    labels_ : int32 array of shape (n_samples,)
    inertia_ : float
        The sum of the squared distances of all rows from their centres, times their weights.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str; only when the columns of X have names

    >>> import shoal
    >>> model = shoal.KMeans(n_clusters=2, random_state=0).fit([[1.0, 1], [1, 2], [8, 8], [9, 8]])
    >>> model.inertia_, model.n_iter_, (model.labels_ == model.labels_[0]).tolist()
    (1.0, 2, [True, True, False, False])
    >>> model.transform([[1.0, 1.5]]).min()
    0.0
    """
    _learner, _name = "kmeans", "k-means"
    _many = 10  # runs of n_init='auto' where first centres are left to chance
    _parameters = {
        "n_clusters": Clusters("clusters", 1), "max_iter": Whole("iterations"), "tol": Real("tolerance"),
        "random_state": Seed(), "empty": Choice("empty", "farthest", "keep", "split"),
        "metric": Choice("metric", "euclidean", "cosine")
    }

    def __init__(self, n_clusters: int = 8, *, init: Any = "auto", n_init: int | str = 1, max_iter: int = 300,
                 tol: float = 1e-4, verbose: int = 0, random_state: Any = None, n_threads: int | None = None,
                 kernel: str | None = None, empty: str = "farthest", metric: str = "euclidean", workers: Any = None,
                 options: Mapping[str, Any] | None = None):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.n_threads = n_threads
        self.kernel = kernel
        self.empty = empty
        self.metric = metric
        self.workers = workers
        self.options = options

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Data, y: Any = None, sample_weight: Any = None) -> KMeans:
        """Finds the clusters of the rows of X: an array, a data frame, or the name of a file that `shoal data info`
        reads. y is ignored; sample_weight is a number for each row, or a file of them where X is one."""
        options = self._checked_options()
        rows = _validate.rows_of(X)
        if rows.array is not None and options["clusters"] > len(rows.array):
            raise ValueError(f"n_clusters={options['clusters']} is more than the {len(rows.array)} rows of X "
                             f"(n_samples={len(rows.array)})")
        with self._progress() as progress:
            best = self._best(options, rows, sample_weight, progress)
            if progress:
                progress.last = self._end_of(best["model"])
        self._set_found(best, rows)
        return self

    def _checked_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {**super()._checked_options(), "runs": self._runs()}
        if isinstance(self.init, str):
            if self.init not in INIT_WORDS:
                raise ValueError(f"init must be one of {', '.join(map(repr, INIT_WORDS))}, a callable or an array, "
                                 f"not {self.init!r}")
            options["init"] = INIT_WORDS[self.init]
        else:
            options.update(runs=1, seed=None)  # more would all be the same, and nothing is drawn
        return options

    def _runs(self) -> int:
        if isinstance(self.n_init, str):
            if self.n_init != "auto":
                raise ValueError(f"n_init must be a whole number or 'auto', not {self.n_init!r}")
            return self._many if callable(self.init) or (isinstance(self.init, str) and self.init == "random") else 1
        return whole_number(self.n_init, "n_init", 1, RUNS_MOST)

    def _best(self, options: dict[str, Any], rows: _validate.Rows, weights: Any, progress: Any) -> dict[str, Any]:
        best: dict[str, Any] = {}
        for start in self._starts(options, rows):
            found = self._cluster(options, start, rows, weights, progress)
            if not best or found["objective"] < best["objective"]:
                best = found
        return best

    def _starts(self, options: dict[str, Any], rows: _validate.Rows) -> Iterator[np.ndarray | None]:
        """Given centres, for each call of the library; None when it finds them."""
        if isinstance(self.init, str):
            yield None
            return
        if rows.array is None:
            if callable(self.init):
                raise ValueError("a callable init needs X in memory, not the name of a file")
            yield given_centres(self.init, (options["clusters"], None), "init")
            return
        shape = (options["clusters"], rows.array.shape[1])
        if not callable(self.init):
            yield given_centres(self.init, shape, "init")
            return
        state = random_state_of(self.random_state)
        for _ in range(self._runs()):
            yield given_centres(self.init(rows.array, shape[0], random_state=state), shape, "what init returned")

    def _cluster(self, options: dict[str, Any], start: np.ndarray | None, rows: _validate.Rows, weights: Any,
                 progress: Any) -> dict[str, Any]:
        try:
            return self._learn(rows, options, take_clusters, weights=weights, start=start, progress=progress)
        except ValueError as error:
            if rows.array is None or not re.fullmatch(TOO_FEW_ROWS, str(error)) or not np.isfinite(rows.array).all():
                raise
        # scikit-learn warns where the library refuses: each different row is a centre then, and some centres are equal.
        start = distinct_rows(rows.array, _validate.as_weights(weights, rows), options["clusters"])
        few = {"iterations": 0, "empty": "keep", "metric": options["metric"]}
        return self._learn(rows, few, take_clusters, weights=weights, start=start, progress=progress)

    def _set_found(self, found: dict[str, Any], rows: _validate.Rows) -> None:
        model = found["model"]
        self._set_learned(model, model.names() if rows.array is None else rows.names)
        self.labels_ = found["labels"]
        empty = int(model.number("empty_clusters"))
        if empty > 0:
            warnings.warn(f"{empty} of n_clusters={self.n_clusters} clusters have no rows, possibly because rows of X "
                          "are equal", _sklearn.ConvergenceWarning, stacklevel=3)

    def _say(self, sentence: str) -> str:
        return super()._say(re.sub(r"-k (\d+) is", r"n_clusters=\1 is", sentence))

    # ---- what was found ----------------------------------------------------------------------------------------------

    def _set_model(self, model: Model) -> None:
        centres, scaling = model.tensor("centres"), model.scaling()
        if scaling:  # in the units of X
            centres = centres * scaling[1] + scaling[0]
        self.cluster_centers_: np.ndarray = centres
        self.inertia_, self.n_iter_ = model.number("objective"), int(model.number("iterations"))
        self._n_features_out = len(centres)

    @classmethod
    def _parameters_of(cls, model: Model) -> dict[str, Any]:
        found = super()._parameters_of(model)
        init = model.text("option.init")
        if init in INIT_WORDS.values():
            found["init"] = next(mine for mine, theirs in INIT_WORDS.items() if theirs == init)
        if model.text("option.runs") is not None:
            found["n_init"] = int(model.number("option.runs"))
        return {**found, "n_clusters": len(model.tensor("centres"))}

    # ---- using it ----------------------------------------------------------------------------------------------------

    def fit_predict(self, X: Data, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """fit(X).labels_"""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Data, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """fit(X).transform(X)"""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def predict(self, X: Data, sample_weight: Any = None) -> np.ndarray:
        """The nearest centre of each row; of two as near, the one with the lower number. sample_weight is ignored."""
        return self._apply(X, "labels").arrays["labels"]

    def transform(self, X: Data) -> np.ndarray:
        """The distance of each row from each centre: float64, shape (n_samples, n_clusters)."""
        return self._apply(X, "all-distances").arrays["all-distances"]

    def score(self, X: Data, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of the squared distances of the rows from their nearest centres, times their weights."""
        return -self._apply(X, sample_weight=sample_weight).objective


class MiniBatchKMeans(KMeans):
    """Mini-batch k-means: the centres move after every batch of rows, drawn at random, rather than after all of them. A
    pass or two over the data is often enough. Exact to the bit, as KMeans is.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    init : {'k-means++', 'parallel', 'random', 'auto'}, callable or array of shape (n_clusters, n_features)
        The first centres: by k-means++ among init_size rows (which 'auto' is, too), by k-means|| over all rows, or rows
        drawn at random. A callable is called with X, n_clusters and random_state and returns the centres.
    max_iter : int, default=100
        The most passes over the data.
    batch_size : int, default=1024
        Rows of a batch.
    compute_labels : bool, default=True
        False leaves out labels_.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None, default=None
        An int gives the same result each time; None takes a new seed each time.
    tol : float, default=0.0
        It ends after a pass in which the centres' squared movement is at most tol times the mean variance of the
        columns; never for that if tol is 0.
    max_no_improvement : int or None, default=10
        It ends after so many batches in a row that do not lower the smoothed inertia; None: never for that.
    init_size : int or None, default=None
        Rows among which first centres are found, and by which those of several runs are compared; None is
        3 * batch_size, or 3 * n_clusters if that is more.
    n_init : int or 'auto', default='auto'
        First centres to compare, of which the best go on. 'auto' is 3 where init is 'random' or a callable, and 1
        otherwise.
    reassignment_ratio : float, default=0.01
        A centre that has seen less than this part of the weight of the one that has seen most moves to a row drawn at
        random.
    metric : {'euclidean', 'cosine'}, default='euclidean'
        What near means; with 'cosine' rows count by their direction alone, and centres have length 1.
    {common}
    options : dict or None, default=None
        More options of `shoal kmeans` by their names, such as {'standardise': True, 'missing': 'mean'}.

    Attributes
    ----------
    cluster_centers_ : float64 array of shape (n_clusters, n_features)
    labels_ : int32 array of shape (n_samples,); only with compute_labels
    inertia_ : float
        The sum of the squared distances of all rows from their centres, times their weights.
    n_iter_ : int
        Passes over the data, the last one perhaps not whole.
    n_steps_ : int
        Batches.
    n_features_in_ : int
    feature_names_in_ : array of str; only when the columns of X have names

    >>> import shoal
    >>> rows = [[1.0, 1], [1, 2], [8, 8], [9, 8]] * 100
    >>> model = shoal.MiniBatchKMeans(n_clusters=2, batch_size=50, random_state=0).fit(rows)
    >>> model.predict([[1.0, 1.5], [8, 9]])[0] == model.labels_[0], model.n_steps_ > 10
    (True, True)
    """
    _name, _many = "mini-batch k-means", 3
    _parameters = {
        "n_clusters": Clusters("clusters", 1), "max_iter": Whole("iterations", 1), "tol": Real("tolerance"),
        "batch_size": Whole("batch", 1), "max_no_improvement": Patience("max-no-improvement", 1),
        "reassignment_ratio": Real("reassignment-ratio", most=1), "random_state": Seed(),
        "metric": Choice("metric", "euclidean", "cosine")
    }

    def __init__(self, n_clusters: int = 8, *, init: Any = "k-means++", max_iter: int = 100, batch_size: int = 1024,
                 verbose: int = 0, compute_labels: bool = True, random_state: Any = None, tol: float = 0.0,
                 max_no_improvement: int | None = 10, init_size: int | None = None, n_init: int | str = "auto",
                 reassignment_ratio: float = 0.01, n_threads: int | None = None, kernel: str | None = None,
                 metric: str = "euclidean", workers: Any = None, options: Mapping[str, Any] | None = None):
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.init_size = init_size
        self.n_init = n_init
        self.reassignment_ratio = reassignment_ratio
        self.n_threads = n_threads
        self.kernel = kernel
        self.metric = metric
        self.workers = workers
        self.options = options

    def _checked_options(self) -> dict[str, Any]:
        if not is_bool(self.compute_labels):
            raise ValueError(f"compute_labels must be True or False, not {self.compute_labels!r}")
        options: dict[str, Any] = {**super()._checked_options(), "init-size": self._sample()}
        if options["seed"] is None:  # with given centres, too, batches are drawn
            options["seed"] = Seed().text(self.random_state, "random_state")
        return options

    def partial_fit(self, X: Data, y: Any = None, sample_weight: Any = None) -> MiniBatchKMeans:
        """One batch more, all rows of X: for rows that come bit by bit. The first call finds first centres among them.
        labels_ and inertia_ are of X alone. y is ignored; sample_weight is as in fit."""
        goes_on = hasattr(self, "_model")
        rows = self._new_rows(X) if goes_on else _validate.rows_of(X)
        options: dict[str, Any] = {**self._checked_options(), "iterations": 1, "max-no-improvement": 0, "tolerance": 0}
        steps = self.n_steps_ if goes_on else 0
        if rows.array is None or len(rows.array) > self.batch_size:
            options["batch"] = WHOLE_MOST if rows.array is None else len(rows.array)
        if isinstance(self.random_state, numbers.Integral):
            options["seed"] = (options["seed"] + steps) % SEED_MOST  # other rows for centres that have hardly any
        with self._progress() as progress, tempfile.TemporaryDirectory(prefix="shoal-batch-") as folder:
            if goes_on:
                before = os.path.join(folder, "before.safetensors")
                self._model.write(before)
                options.update(init=before, runs=1)
                found = self._learn(rows, options, take_clusters, weights=sample_weight, progress=progress)
            else:
                found = self._best(options, rows, sample_weight, progress)
            if progress:
                progress.last = self._end_of(found["model"])
        self._set_found(found, rows)
        self.n_steps_ += steps
        return self

    def _sample(self) -> int | None:
        if self.init_size is None:
            return None
        size = whole_number(self.init_size, "init_size", 1, WHOLE_MOST)
        if size < self.n_clusters:
            warnings.warn(f"init_size={size} is less than n_clusters={self.n_clusters}: {3 * self.n_clusters} is used",
                          RuntimeWarning, stacklevel=4)
            return 3 * self.n_clusters
        return size

    def _set_found(self, found: dict[str, Any], rows: _validate.Rows) -> None:
        super()._set_found(found, rows)
        if not self.compute_labels:
            del self.labels_

    def _set_model(self, model: Model) -> None:
        super()._set_model(model)
        self.n_steps_ = 0 if model.text("batches") is None else int(model.number("batches"))

    @classmethod
    def _parameters_of(cls, model: Model) -> dict[str, Any]:
        found = super()._parameters_of(model)
        if found.get("batch_size") == 0:
            raise ValueError("this model was not found by batches: shoal.KMeans loads it")
        size = model.text("option.init-size")
        return {**found, "init_size": None if size is None else int(size) or None}


def take_clusters(result: Any) -> dict[str, Any]:
    return {"model": Model.of(result), "labels": result.array("labels"), "objective": result.number("objective")}


def distinct_rows(rows: np.ndarray, weights: Any, count: int) -> np.ndarray:
    """As many centres as are asked for: the different rows that have weight, sorted, and the first of them again."""
    different = np.unique(rows if weights is None else rows[weights > 0], axis=0)
    return np.ascontiguousarray(different[np.arange(count) % len(different)], dtype=np.float64)


def given_centres(centres: Any, shape: tuple[int, int | None], name: str) -> np.ndarray:
    array = _validate.as_rows(centres, name)
    if array.shape != (shape[0], shape[1] or array.shape[1]):
        raise ValueError(f"{name} has the shape {array.shape}, but n_clusters and the columns of X make it {shape}")
    return _validate.in_place(array, np.float64)


def random_state_of(random_state: Any) -> Any:
    """For a callable init: what scikit-learn would hand it."""
    if random_state is None:
        return np.random.mtrand._rand
    if isinstance(random_state, numbers.Integral):
        return np.random.RandomState(int(random_state))
    return random_state
