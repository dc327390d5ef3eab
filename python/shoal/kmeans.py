"""k-means as an estimator in the manner of scikit-learn, computed by libshoal in this process.

docs/python.md lists where it differs from sklearn.cluster.KMeans; docs/learn/kmeans.md defines the result."""
import math
import numbers
import re
import warnings

import numpy as np

from shoal import _validate
from shoal._library import PredictConfig
from shoal._progress import Progress
from shoal._request import Request
from shoal._run import run
from shoal._sklearn import (BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, ConvergenceWarning,
                            NotFittedError, TransformerMixin)

# The words of scikit-learn and of the program, and what the library calls them.
INIT_WORDS = {"auto": "auto", "k-means++": "kmeans++", "kmeans++": "kmeans++", "parallel": "parallel",
              "k-means||": "parallel", "random": "random"}
EMPTY_WORDS = ["farthest", "keep", "split"]
SEED_MOST = 2**53
CLUSTERS_MOST = 2**31 - 1
TOO_FEW_ROWS = r"n_clusters=\d+ is more than X's \d+ distinct rows.*"


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """k-means clustering, exact to the bit: the result depends on the data and the parameters alone, never on the
    number of threads or the processor.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
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
    verbose : int, default=0
        1 shows a line of progress, in a terminal or a notebook.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None, default=None
        An int gives the same result each time; None takes a new seed each time.
    n_threads : int or None, default=None
        Threads to compute with; None is as many as this process may use. Never changes the result.
    kernel : str or None, default=None
        The kernel set, such as 'avx2'; None is the best this processor has. Never changes the result.
    empty : {'farthest', 'keep', 'split'}, default='farthest'
        What a cluster without rows does: take the row farthest from its centre, keep its centre, or take half of the
        largest cluster.

    Attributes
    ----------
    cluster_centers_ : float64 array of shape (n_clusters, n_features)
    labels_ : int32 array of shape (n_samples,)
    inertia_ : float
        The sum of the squared distances of all rows from their centres, times their weights.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str; only when X was a data frame whose columns have names
    """

    def __init__(self, n_clusters=8, *, init="auto", n_init=1, max_iter=300, tol=1e-4, verbose=0, random_state=None,
                 n_threads=None, kernel=None, empty="farthest"):
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

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None):
        """Finds the clusters of the rows of X. y is ignored."""
        options = self._options()
        rows = _validate.as_rows(X)
        weights = _validate.as_weights(sample_weight, len(rows))
        names = _validate.feature_names(X)
        if options["clusters"] > len(rows):
            raise ValueError(f"n_clusters={options['clusters']} is more than the {len(rows)} rows of X "
                             f"(n_samples={len(rows)})")
        if not self.verbose:
            best = self._best(options, rows, weights, None)
        else:
            with Progress() as progress:
                best = self._best(options, rows, weights, progress)
                progress.last = f"k-means: {best['iterations']:.0f} iterations, objective {best['objective']:.7g}"
        self._set_fitted(best, rows, names)
        return self

    def _best(self, options, rows, weights, progress):
        best = None
        for more, start in self._starts(options, rows):
            found = self._cluster({**options, **more}, start, rows, weights, progress)
            if best is None or found["objective"] < best["objective"]:
                best = found
        return best

    def _cluster(self, options, start, rows, weights, progress):
        try:
            return self._request(options, start, rows, weights, progress)
        except ValueError as error:
            if not re.fullmatch(TOO_FEW_ROWS, str(error)):
                raise
        # scikit-learn warns where the library refuses: each different row is a centre then, and some centres are equal.
        start = distinct_rows(rows, weights, options["clusters"])
        return self._request({"iterations": 0, "empty": "keep"}, start, rows, weights, progress)

    def _request(self, options, start, rows, weights, progress):
        threads, kernel = self._place()
        place = {"threads": threads or None, "kernel": kernel or None, "engine": "threads"}
        try:
            return Request("kmeans", {**options, **place}, rows=rows, weights=weights, start=start).run(
                take_clusters, progress)
        except ValueError as error:
            raise ValueError(in_python_words(str(error))) from None

    def _set_fitted(self, found, rows, names):
        self.cluster_centers_, self.labels_ = found["centres"], found["labels"]
        self.inertia_, self.n_iter_ = found["objective"], int(found["iterations"])
        self.n_features_in_ = rows.shape[1]
        self._n_features_out = len(self.cluster_centers_)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if found["empty_clusters"] > 0:
            warnings.warn(
                f"{int(found['empty_clusters'])} of n_clusters={self.n_clusters} clusters have no rows, possibly "
                "because rows of X are equal", ConvergenceWarning, stacklevel=3)

    def _options(self):
        """The parameters, checked, as options of the library; _starts has those that say how runs begin."""
        if isinstance(self.tol, bool) or not isinstance(self.tol, numbers.Real) or not self.tol >= 0 or math.isinf(
                self.tol):
            raise ValueError(f"tol must be a finite number that is at least 0, not {self.tol!r}")
        if not isinstance(self.empty, str) or self.empty not in EMPTY_WORDS:
            raise ValueError(f"empty must be one of {', '.join(map(repr, EMPTY_WORDS))}, not {self.empty!r}")
        return {"clusters": _validate.whole_number(self.n_clusters, "n_clusters", 1, CLUSTERS_MOST),
                "iterations": _validate.whole_number(self.max_iter, "max_iter", 0, CLUSTERS_MOST),
                "tolerance": float(self.tol), "runs": self._runs(), "empty": self.empty}

    def _runs(self):
        if isinstance(self.n_init, str):
            if self.n_init != "auto":
                raise ValueError(f"n_init must be a whole number or 'auto', not {self.n_init!r}")
            return 10 if callable(self.init) or (isinstance(self.init, str) and self.init == "random") else 1
        return _validate.whole_number(self.n_init, "n_init", 1, 1 << 20)

    def _starts(self, options, rows):
        """Yields, for each call of the library, more options and the given centres: None when it finds them."""
        clusters, runs = options["clusters"], options["runs"]
        shape = (clusters, rows.shape[1])
        if isinstance(self.init, str):
            if self.init not in INIT_WORDS:
                raise ValueError(f"init must be one of {', '.join(map(repr, INIT_WORDS))}, a callable or an array, "
                                 f"not {self.init!r}")
            yield {"init": INIT_WORDS[self.init], "seed": seed_of(self.random_state)}, None
        elif callable(self.init):
            state = random_state_of(self.random_state)
            for _ in range(runs):
                centres = self.init(rows, clusters, random_state=state)
                yield {"runs": 1}, given_centres(centres, shape, "what init returned")
        else:
            yield {"runs": 1}, given_centres(self.init, shape, "init")  # more would all be the same

    def fit_predict(self, X, y=None, sample_weight=None):
        """fit(X).labels_"""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X, y=None, sample_weight=None):
        """fit(X).transform(X)"""
        return self.fit(X, sample_weight=sample_weight)._distances(_validate.as_rows(X))

    # ---- using what was fitted ---------------------------------------------------------------------------------------

    def predict(self, X, sample_weight=None):
        """The nearest centre of each row; of two as near, the one with the lower number. sample_weight is ignored."""
        rows = self._new_rows(X)
        return self._run(predict_config(self.cluster_centers_), rows, None,
                         lambda result: result.array("labels"))

    def transform(self, X):
        """The distance of each row from each centre: float64, shape (n_samples, n_clusters)."""
        return self._distances(self._new_rows(X))

    def score(self, X, y=None, sample_weight=None):
        """Minus the sum of the squared distances of the rows from their nearest centres, times their weights."""
        rows = self._new_rows(X)
        weights = _validate.as_weights(sample_weight, len(rows))
        return -self._run(predict_config(self.cluster_centers_), rows, weights,
                          lambda result: result.number("objective"))

    def _distances(self, rows):
        """One column a centre, each by the library's own definition of a distance, which predict uses too."""
        out = np.empty((len(rows), len(self.cluster_centers_)))
        for column in range(out.shape[1]):
            config = predict_config(self.cluster_centers_[column:column + 1], distances=True)
            out[:, column] = self._run(config, rows, None, lambda result: result.array("distances"))
        return out

    def _new_rows(self, X):
        if not hasattr(self, "cluster_centers_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit before using it")
        _validate.check_feature_names(getattr(self, "feature_names_in_", None), X, type(self).__name__)
        rows = _validate.as_rows(X)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting "
                             f"{self.n_features_in_} features as input")
        return rows

    def _run(self, config, rows, weights, take):
        threads, kernel = self._place()
        try:
            return run("shoal_kmeans_predict", config, rows, weights, threads=threads, kernel=kernel, take=take)
        except ValueError as error:
            raise ValueError(in_python_words(str(error))) from None

    def _place(self):
        """Threads, 0 for all, and the kernel set."""
        threads = 0 if self.n_threads is None else _validate.whole_number(self.n_threads, "n_threads", 1, 4096)
        if self.kernel is not None and not isinstance(self.kernel, str):
            raise ValueError(f"kernel must be the name of a kernel set or None, not {self.kernel!r}")
        return threads, self.kernel


def take_clusters(result):
    numbers_of = {name: result.number(name) for name in ("objective", "iterations", "empty_clusters")}
    return {"centres": result.array("centres"), "labels": result.array("labels"), **numbers_of}


def predict_config(centres, distances=False):
    centres = np.ascontiguousarray(centres, dtype=np.float64)
    config = PredictConfig(centres=centres.ctypes.data, k=centres.shape[0], columns=centres.shape[1],
                           distances=distances)
    config.kept = centres
    return config


def distinct_rows(rows, weights, count):
    """As many centres as are asked for: the different rows that have weight, sorted, and the first of them again."""
    different = np.unique(rows if weights is None else rows[weights > 0], axis=0)
    return np.ascontiguousarray(different[np.arange(count) % len(different)], dtype=np.float64)


def given_centres(centres, shape, name):
    array = _validate.as_rows(centres, name)
    if array.shape != shape:
        raise ValueError(f"{name} has the shape {array.shape}, but n_clusters and the columns of X make it {shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def random_state_of(random_state):
    """For a callable init: what scikit-learn would hand it."""
    if random_state is None:
        return np.random.mtrand._rand
    if isinstance(random_state, numbers.Integral):
        return np.random.RandomState(int(random_state))
    return random_state


def seed_of(random_state):
    if random_state is None:
        random_state = np.random  # as scikit-learn does, so that numpy.random.seed has its effect
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        return _validate.whole_number(random_state, "random_state", 0, SEED_MOST)
    if isinstance(random_state, np.random.RandomState) or random_state is np.random:
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    raise ValueError(f"random_state must be a whole number, a RandomState, a Generator or None, not {random_state!r}")


def in_python_words(sentence):
    """The library's sentence, with the names that things have here."""
    sentence = re.sub(r"-k (\d+) is", r"n_clusters=\1 is", sentence).replace("the data's", "X's")
    sentence = sentence.replace("is not a number;", "is NaN;")
    if re.match(r"row \d+, column \d+ is", sentence):
        sentence = f"X: {sentence} (rows and columns are counted from 1)"
    return sentence
