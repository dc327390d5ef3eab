"""What classifiers share: classes and their labels, predictions and scores."""
from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Mapping, TypeVar, Union

import numpy as np

from shoal import _sklearn, _validate
from shoal._estimator import Estimator
from shoal._model import Model

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    Data = Union[ArrayLike, str, "os.PathLike[str]"]

Self = TypeVar("Self", bound="Classifier")


class Classifier(_sklearn.ClassifierMixin, Estimator):
    classes_: np.ndarray

    def fit(self: Self, X: Data, y: Data | int | None = None, sample_weight: Data | None = None) -> Self:
        """Learns the classes y of the rows of X.

        X: an array, a data frame, or the name of a file that `shoal data info` reads; y: a label for each row, whole
        numbers or words; or, where X is a file, the name or the number (from 1, or from -1 backwards) of one of its
        columns, or of another file, or None for the last column. sample_weight: a number for each row, or a file."""
        options = self._checked_options()
        rows = _validate.rows_of(X)
        given, labels = self._target(y, rows)
        weights = self._weights(sample_weight, rows, labels)
        rows, labels, weights = without_weightless(rows, labels, weights, type(self).__name__)
        with self._progress() as progress:
            model = self._learn(rows, {**options, **given}, Model.of, weights=weights, progress=progress,
                                target=None if labels is None else labels.numbers,
                                words=None if labels is None else labels.words)
            if progress:
                progress.last = self._end_of(model)
        self._set_learned(model, model.names() if rows.array is None else rows.names)
        if labels is not None:
            self.classes_ = labels.classes
        self._warn_of(model)
        return self

    def _target(self, y: Any, rows: _validate.Rows) -> tuple[dict[str, Any], _validate.Labels | None]:
        """The option that names the target in a file, or the labels."""
        names_column = _validate.as_path(y)
        if rows.array is not None:
            return {}, _validate.labels_of(y, len(rows.array), type(self).__name__)
        if y is None or names_column is not None:
            return {"target": names_column}, None
        if isinstance(y, (int, np.integer)):
            return {"target": int(y)}, None
        return {}, _validate.labels_of(y, None, type(self).__name__)

    def _weights(self, sample_weight: Any, rows: _validate.Rows, labels: _validate.Labels | None) -> Any:
        """One weight a row, or the name of a file, or None."""
        return _validate.as_weights(sample_weight, rows)

    def _warn_of(self, model: Model) -> None:
        if model.text("converged") == "false":
            warnings.warn(f"{type(self).__name__} has not converged after {model.number('iterations'):.0f} iterations: "
                          "raise max_iter or tol, or bring the columns to similar scales",
                          _sklearn.ConvergenceWarning, stacklevel=3)

    def _set_classes(self, model: Model) -> None:
        """The labels that the model knows: words, or whole numbers, or other numbers."""
        words, values = model.words(), model.tensor("classes")
        if words is not None:
            self.classes_ = np.array(words)
        else:
            self.classes_ = values.astype(np.int64) if (values == values.astype(np.int64)).all() else values

    # ---- using it ----------------------------------------------------------------------------------------------------

    def predict(self, X: Data) -> np.ndarray:
        """The most probable class of each row."""
        labels = self._apply(X, "labels").arrays["labels"]
        values = self._model.tensor("classes")
        return self.classes_[np.searchsorted(values, labels)]

    def predict_proba(self, X: Data) -> np.ndarray:
        """The probability of each class, in the order of classes_: float64, shape (n_samples, n_classes)."""
        return self._apply(X, "probabilities").arrays["probabilities"]

    def predict_log_proba(self, X: Data) -> np.ndarray:
        """The logarithms of predict_proba."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def score(self, X: Data, y: Data | int | None = None, sample_weight: ArrayLike | None = None) -> float:
        """The share of rows whose class is predicted. Where X is a file, y may name one of its columns or another file;
        None is the column that was learned."""
        target = _validate.as_path(y)
        if _validate.as_path(X) is None or not (y is None or target is not None or isinstance(y, (int, np.integer))):
            return self._accuracy(self.predict(X), y, sample_weight)
        if sample_weight is not None:
            raise ValueError("sample_weight needs X and y in memory")
        return self._apply(X, options={"score": True, "target": target if y is not None else None} if target
                           else {"score": True, "target": y}).score["accuracy"]

    def _accuracy(self, found: np.ndarray, y: Any, sample_weight: Any) -> float:
        truth = _validate.one_each(y, len(found), type(self).__name__)
        kinds = {"number" if kind in "biuf" else kind for kind in (found.dtype.kind, truth.dtype.kind)} - {"O"}
        if len(kinds) > 1:
            raise ValueError(f"y has values of type {truth.dtype}, but the classes are {self.classes_.dtype}")
        weights = _validate.as_weights(sample_weight, _validate.Rows(None, found, None))
        return float(np.average(found == truth, weights=weights))

    def _more_tags(self) -> Mapping[str, Any]:
        return {"requires_y": True}


def without_weightless(rows: _validate.Rows, labels: _validate.Labels | None, weights: Any,
                       estimator: str) -> tuple[_validate.Rows, _validate.Labels | None, Any]:
    """Leaves out rows of weight 0, as scikit-learn has it: they have no part in the scales of columns either.  Where
    some value is not finite all rows stay, so that the library names the right one."""
    if rows.array is None or labels is None or weights is None:
        return rows, labels, weights
    kept = weights != 0
    if kept.all() or not kept.any() or not np.isfinite(rows.array).all():
        return rows, labels, weights
    some = _validate.labels_of(labels.classes[labels.places][kept], None, estimator)
    return rows._replace(array=rows.array[kept]), some, weights[kept]
