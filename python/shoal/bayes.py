"""Gaussian naive Bayes as an estimator in the manner of scikit-learn.

docs/python.md lists where it differs from sklearn.naive_bayes.GaussianNB; docs/learn/bayes.md defines the result."""
from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from shoal._classifier import Classifier
from shoal._model import Model
from shoal._parameters import Real


class GaussianNB(Classifier):
    """Gaussian naive Bayes: the result depends on the data and the parameters alone, never on the number of threads,
    workers or the processor.

    Parameters
    ----------
    priors : {None, 'uniform'}, default=None
        The probability of each class before a row is seen: its share of the rows, or the same for all.
    var_smoothing : float, default=1e-9
        The share of the greatest variance of a column that is added to all variances.
    {common}
    options : dict or None, default=None
        More options of `shoal bayes` by their names, such as {'missing': 'mean'}.

    Attributes
    ----------
    theta_, var_ : float64 arrays of shape (n_classes, n_features)
        Mean and variance of each column in each class, with what var_smoothing added.
    class_prior_, class_count_ : float64 arrays of shape (n_classes,)
    epsilon_ : float
        What was added to each variance.
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of str; only when the columns of X have names

    >>> import shoal
    >>> model = shoal.GaussianNB().fit([[-2.0], [-1], [1], [2]], [0, 0, 1, 1])
    >>> model.theta_
    array([[-1.5],
           [ 1.5]])
    >>> model.predict([[-0.5], [3]])
    array([0, 1])
    """
    _learner, _name = "bayes", "naive Bayes"
    _parameters = {"var_smoothing": Real("smoothing")}

    def __init__(self, *, priors: str | None = None, var_smoothing: float = 1e-9, verbose: int = 0,
                 n_threads: int | None = None, kernel: str | None = None, workers: Any = None,
                 options: Mapping[str, Any] | None = None):
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.verbose = verbose
        self.n_threads = n_threads
        self.kernel = kernel
        self.workers = workers
        self.options = options

    def _checked_options(self) -> dict[str, Any]:
        if self.priors is not None and (not isinstance(self.priors, str) or self.priors != "uniform"):
            raise ValueError(f"priors must be None, for each class' share of the rows, or 'uniform', not "
                             f"{self.priors!r}")
        return {**super()._checked_options(), "priors": self.priors or "data"}

    @classmethod
    def _parameters_of(cls, model: Model) -> dict[str, Any]:
        priors = "uniform" if model.text("option.priors") == "uniform" else None
        return {**super()._parameters_of(model), "priors": priors}

    def _set_model(self, model: Model) -> None:
        theta, var = model.tensor("means"), model.tensor("variances")
        scaling = model.scaling()
        if scaling:  # in the units of X
            mean, scale = scaling
            theta, var = theta * scale + mean, var * scale**2
        self.theta_: np.ndarray = theta
        self.var_: np.ndarray = var
        self.class_prior_, self.class_count_ = model.tensor("priors"), model.tensor("counts")
        self.epsilon_ = model.number("smoothing")
        self._set_classes(model)
