"""Choosing the number of clusters: k-means for many of them in one run, and what each rule picks."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from shoal import _validate
from shoal._model import Model
from shoal._parameters import Choice, whole_number
from shoal.kmeans import KMeans

if TYPE_CHECKING:
    from shoal._classifier import Data

ARRAYS = {"ks": "ks", "inertias": "objectives", "silhouettes": "silhouettes",
          "calinski_harabasz": "calinski_harabasz", "n_iter": "iterations_by_k"}
RULES = Choice("choose", silhouette="silhouette", calinski_harabasz="calinski-harabasz", elbow="elbow")


@dataclass(frozen=True)
class ChosenK:
    """What choose_k found, of each number of clusters that it tried.

    k: the one that was chosen; model: the KMeans of it, fitted
    ks, inertias, silhouettes, calinski_harabasz, n_iter: arrays, one value for each K; NaN where a score is not defined
    picks: what each rule chooses, None where it can't
    sample: the rows that silhouettes are computed from, counted from 0; sample_labels: their clusters, a column for
        each K"""
    k: int
    model: KMeans
    ks: np.ndarray
    inertias: np.ndarray
    silhouettes: np.ndarray
    calinski_harabasz: np.ndarray
    n_iter: np.ndarray
    picks: dict[str, int | None]
    sample: np.ndarray
    sample_labels: np.ndarray

    def __str__(self) -> str:
        lines = [f"{'K':>6} {'inertia':>16} {'silhouette':>11} {'Calinski-Harabasz':>18} {'iterations':>11}"]
        for values in zip(self.ks, self.inertias, self.silhouettes, self.calinski_harabasz, self.n_iter):
            lines.append("{:6d} {:16.10g} {:11.4f} {:18.2f} {:11d}".format(*values))
        told = ", ".join(f"{rule} {'-' if k is None else k}" for rule, k in self.picks.items())
        return "\n".join([*lines, f"picks: {told}; chosen: {self.k}"])

    def __repr__(self) -> str:
        return f"<ChosenK: {self.k} of {self.ks[0]} to {self.ks[-1]}>"


def choose_k(X: Data, k: str | Sequence[int] | range = "2..20", *, rule: str = "silhouette", sample: int | None = None,
             sample_weight: Any = None, **parameters: Any) -> ChosenK:
    """Fits k-means for many numbers of clusters in one run, scores each, and chooses one.

    X: an array, a data frame or the name of a file
    k: '2..20', '2..50..4' in steps of 4, or numbers: [2, 4, 8], range(2, 21)
    rule: 'silhouette' (the greatest mean silhouette), 'calinski_harabasz' (the greatest score), or 'elbow' (where the
        inertia's fall bends most)
    sample: how many rows silhouettes are computed from; None: 1000 to 3000, fewer where there are many columns
    parameters: of KMeans, but for n_clusters and init as an array

    >>> import numpy as np, shoal
    >>> X = np.repeat([[0.0, 0], [9, 0], [0, 9]], 50, axis=0) + np.random.default_rng(0).normal(size=(150, 2))
    >>> chosen = shoal.choose_k(X, "2..6", random_state=0)
    >>> chosen.k, chosen.picks["elbow"], chosen.model.cluster_centers_.shape
    (3, 3, (3, 2))
    """
    if "n_clusters" in parameters:
        raise TypeError("choose_k tries the numbers of clusters that k says, and has no parameter n_clusters")
    model = KMeans(**parameters)
    if not isinstance(model.init, str):
        raise ValueError("init must be a word, since an array or a callable has the centres of one K")
    options: dict[str, Any] = {"clusters": numbers_of(k), "choose": RULES.text(rule, "rule"),
                               "sample": None if sample is None else whole_number(sample, "sample", 2, 100000)}
    rows = _validate.rows_of(X)
    with model._progress() as progress:
        found, about = model._learn(rows, {**model._checked_options(), **options}, take_all, weights=sample_weight,
                                    progress=progress)
        if progress:
            progress.last = f"k-means: {len(about['ks'])} numbers of clusters tried"
    model.n_clusters = len(found["model"].tensor("centres"))
    model._set_found(found, rows)
    picks = about.pop("picks")
    return ChosenK(k=model.n_clusters, model=model, picks=picks, **about)


def numbers_of(k: Any) -> str:
    if isinstance(k, str):
        if not re.search("[.,]", k):
            raise ValueError(f"k must be several numbers of clusters, such as '2..20' or '2,4,8', not {k!r}")
        return k
    try:
        numbers = [] if isinstance(k, bytes) else sorted({whole_number(one, "each of k", 1) for one in k})
    except TypeError:
        raise ValueError(f"k must be numbers of clusters, such as '2..20' or [2, 4, 8], not {k!r}") from None
    if len(numbers) < 2:
        raise ValueError(f"k must be several numbers of clusters, not {k!r}")
    return ",".join(map(str, numbers))


def take_all(result: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    about: dict[str, Any] = {name: result.array(theirs) for name, theirs in ARRAYS.items()}
    picks = {rule: result.number(f"pick_{rule}") for rule in RULES.words}
    sampled = result.array("sample-labels")
    about.update(sample=sampled[:, 0], sample_labels=sampled[:, 1:])
    about["picks"] = {rule: int(k) if np.isfinite(k) else None for rule, k in picks.items()}
    return {"model": Model.of(result), "labels": result.array("labels")}, about
