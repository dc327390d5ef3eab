"""Logistic and softmax regression as an estimator in the manner of scikit-learn.

docs/python.md lists where it differs from sklearn.linear_model.LogisticRegression; docs/learn/logistic.md defines the
result."""
from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, Mapping

import numpy as np

from shoal import _validate
from shoal._classifier import Classifier
from shoal._model import Model
from shoal._parameters import Flag, Real, Whole

if TYPE_CHECKING:
    from shoal._classifier import Data

PENALTIES = ("l2", "l1", "elasticnet", None)


class LogisticRegression(Classifier):
    """Logistic regression of two classes, softmax regression of more: the result depends on the data and the
    parameters alone, never on the number of threads, workers or the processor.

    It minimises the sum of the rows' losses plus the penalty divided by C, as scikit-learn does.

    Parameters
    ----------
    penalty : {'l2', 'l1', 'elasticnet', None}, default='l2'
        Half the sum of squared weights, the sum of absolute weights, or both, mixed by l1_ratio.
    C : float, default=1.0
        The smaller, the more the penalty counts.
    l1_ratio : float between 0 and 1 or None, default=None
        The share of 'l1' in 'elasticnet'.
    fit_intercept : bool, default=True
    class_weight : dict, 'balanced' or None, default=None
        A factor for the weights of each class' rows; 'balanced' gives all classes the same sum. For labels in memory.
    max_iter : int, default=1000
        The most iterations of L-BFGS.
    tol : float, default=1e-4
        It ends when no component of a mean row's gradient, for centred and scaled columns, is greater.
    history : int, default=20
        Iterations that L-BFGS remembers.
    {common}
    options : dict or None, default=None
        More options of `shoal logistic` by their names, such as {'standardise': True, 'missing': 'mean'}.

    Attributes
    ----------
    coef_ : float64 array of shape (1, n_features) for two classes, else (n_classes, n_features)
    intercept_ : float64 array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    n_iter_ : int32 array of shape (1,)
    n_features_in_ : int
    feature_names_in_ : array of str; only when the columns of X have names

    >>> import numpy as np, shoal
    >>> X = np.array([[0.0], [1], [2], [3]])
    >>> model = shoal.LogisticRegression().fit(X, ["low", "low", "high", "high"])
    >>> model.predict([[0.5], [2.5]])
    array(['low', 'high'], dtype='<U4')
    >>> model.predict_proba([[1.5]]).round(3)
    array([[0.5, 0.5]])
    """
    _learner, _name = "logistic", "logistic regression"
    _parameters = {"fit_intercept": Flag("no-intercept", negated=True), "max_iter": Whole("iterations"),
                   "tol": Real("tolerance"), "history": Whole("history", 1, 1000)}

    def __init__(self, penalty: str | None = "l2", *, C: float = 1.0, l1_ratio: float | None = None,
                 fit_intercept: bool = True, class_weight: Mapping[Any, float] | str | None = None,
                 max_iter: int = 1000, tol: float = 1e-4, history: int = 20, verbose: int = 0,
                 n_threads: int | None = None, kernel: str | None = None, workers: Any = None,
                 options: Mapping[str, Any] | None = None):
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.history = history
        self.verbose = verbose
        self.n_threads = n_threads
        self.kernel = kernel
        self.workers = workers
        self.options = options

    def _checked_options(self) -> dict[str, Any]:
        return {**super()._checked_options(), **self._penalty_options()}

    def _penalty_options(self) -> dict[str, Any]:
        if self.penalty not in PENALTIES:
            raise ValueError(f"penalty must be one of {', '.join(map(repr, PENALTIES))}, not {self.penalty!r}")
        if not isinstance(self.C, numbers.Real) or not 0 < self.C < np.inf:
            raise ValueError(f"C must be a finite number above 0, not {self.C!r}")
        share: Any = {"l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio, None: 0.0}[self.penalty]
        if not isinstance(share, numbers.Real) or not 0 <= share <= 1:
            raise ValueError(f"l1_ratio must be a number between 0 and 1, not {share!r}")
        whole = 0.0 if self.penalty is None else 1 / float(self.C)
        return {"l2": repr((1 - float(share)) * whole), "l1": repr(float(share) * whole)}

    @classmethod
    def _parameters_of(cls, model: Model) -> dict[str, Any]:
        l1, l2 = model.number("option.l1"), model.number("option.l2")
        found = super()._parameters_of(model)
        if l1 + l2 > 0:
            found.update(C=1 / (l1 + l2), penalty="l2" if l1 == 0 else "l1" if l2 == 0 else "elasticnet")
            if l1 > 0 and l2 > 0:
                found["l1_ratio"] = l1 / (l1 + l2)
        elif l1 + l2 == 0:
            found["penalty"] = None
        return found

    def _weights(self, sample_weight: Any, rows: _validate.Rows, labels: _validate.Labels | None) -> Any:
        if self.class_weight is None:
            return super()._weights(sample_weight, rows, labels)
        if labels is None or rows.array is None:
            raise ValueError("class_weight needs X and y in memory; give a weight for each row by sample_weight")
        weights = _validate.as_weights(1.0 if sample_weight is None else sample_weight, rows)
        return weights * self._class_factors(labels)[labels.places]

    def _class_factors(self, labels: _validate.Labels) -> np.ndarray:
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(f"class_weight must be a dict, 'balanced' or None, not {self.class_weight!r}")
            counts = np.bincount(labels.places)
            return len(labels.places) / (len(counts) * counts)
        factors = np.ones(len(labels.classes))
        for label, factor in dict(self.class_weight or {}).items():
            at = np.flatnonzero(labels.classes == label)
            if len(at) == 0:
                raise ValueError(f"class_weight has a weight for {label!r}, which is not a class of y")
            factors[at] = factor
        return factors

    def _set_model(self, model: Model) -> None:
        coef, intercept = model.tensor("weights"), model.tensor("intercept")
        scaling = model.scaling()
        if scaling:  # in the units of X
            mean, scale = scaling
            coef = coef / scale
            intercept = intercept - coef @ mean
        self.coef_: np.ndarray = coef
        self.intercept_: np.ndarray = intercept
        self.n_iter_ = np.array([int(model.number("iterations"))], dtype=np.int32)
        self._set_classes(model)

    def decision_function(self, X: Data) -> np.ndarray:
        """The log-odds of the second class of two, shape (n_samples,); else the output of each class, shape (n_samples,
        n_classes). numpy computes it, whose last digits may differ from one machine to the next."""
        rows = self._new_rows(X)
        if rows.array is None:
            raise ValueError("decision_function needs X in memory; predict_proba reads files, too")
        out = rows.array.astype(np.float64, copy=False) @ self.coef_.T + self.intercept_
        return out.ravel() if out.shape[1] == 1 else out
