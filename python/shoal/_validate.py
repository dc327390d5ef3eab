"""From what a caller hands over to arrays that the library reads where they are, or to names of files that it opens.

Rows of every type that shoal has are taken as they lie in memory; only what is neither native nor C-contiguous is
copied."""
from __future__ import annotations

import numbers
import os
import warnings
from typing import Any, NamedTuple

import numpy as np

from shoal import _sklearn
from shoal._library import TYPES


class Rows(NamedTuple):
    """A file or URL that the library reads, or an array; and the names of its columns, where it has any."""
    path: str | None
    array: np.ndarray | None
    names: np.ndarray | None


def rows_of(X: Any) -> Rows:
    path = as_path(X)
    return Rows(path, None, None) if path is not None else Rows(None, as_rows(X), feature_names(X))


def as_path(thing: Any) -> str | None:
    """The name of a file; None for anything else."""
    return os.fsdecode(thing) if isinstance(thing, (str, os.PathLike)) else None


def as_rows(X: Any, name: str = "X") -> np.ndarray:
    """X as a C-contiguous two-dimensional array of one of shoal's types; X itself when it is one."""
    if hasattr(X, "tocsr"):
        raise TypeError(f"{name} is a sparse matrix, but shoal needs dense rows; {name}.toarray() makes them")
    if np.ma.is_masked(X):
        raise ValueError(f"{name} has masked values, which shoal would take for numbers; {name}.filled(np.nan) makes "
                         "them NaN, for options={'missing': 'mean'}")
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has {array.dtype} values")
    if array.ndim != 2:
        raise ValueError(f"Expected a 2D array of rows, but {name} has {array.ndim} dimensions. Reshape your data by "
                         ".reshape(-1, 1) if it is one column, or by .reshape(1, -1) if it is one row")
    if array.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required.")
    if array.shape[1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    dtype = nearest_type(array, name)
    try:
        return in_place(array, dtype)
    except (ValueError, TypeError) as error:
        raise type(error)(name_bad_value(array, X, name) or str(error)) from None


def in_place(array: Any, dtype: Any) -> np.ndarray:
    """Where the library can read it: C-contiguous, and each value where its type may lie."""
    return np.require(np.asarray(array), dtype, ["C", "A"])


def nearest_type(array: np.ndarray, name: str) -> np.dtype:
    dtype = array.dtype.newbyteorder("=")
    if dtype in TYPES:
        return dtype
    if dtype == np.float16:
        return np.dtype("float32")
    if dtype.kind in "fOUS":  # wider floats, Python's objects, numbers as text: numpy says what is not a number
        return np.dtype("float64")
    raise ValueError(f"{name} has values of type {array.dtype}, but shoal needs numbers")


def name_bad_value(array: np.ndarray, X: Any, name: str) -> str | None:
    """The first value of an array of objects or texts that is not a number, as a sentence."""
    columns = list(getattr(X, "columns", range(1, array.shape[1] + 1)))
    for row, values in enumerate(array, 1):
        for column, value in zip(columns, values):
            try:
                float(value)
            except (ValueError, TypeError) as error:
                if isinstance(value, str):
                    return (f"{name}: row {row}, column {column!r} is {value!r}, not a number: leave columns of text "
                            "out, or encode them")
                return f"{name}: row {row}, column {column!r}: {error}"
    return None


def as_weights(sample_weight: Any, rows: Rows) -> np.ndarray | str | None:
    """One float64 a row, or the name of a file that has them, or None."""
    path = as_path(sample_weight)
    if sample_weight is None or (path is not None and rows.array is None):
        return path
    if path is not None:
        raise ValueError("sample_weight names a file, which needs X to be the name of a file, too")
    if isinstance(sample_weight, numbers.Number):
        if rows.array is None:
            raise ValueError("sample_weight must be one number for each row, or a file, where X is a file")
        return np.full(len(rows.array), float(sample_weight))  # type: ignore[arg-type]
    weights = in_place(sample_weight, np.float64)
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar: one number for each row")
    if rows.array is not None and len(weights) != len(rows.array):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(len(rows.array),)}: one weight for each "
                         "row")
    return weights


# ---- names of columns ------------------------------------------------------------------------------------------------


def feature_names(X: Any) -> np.ndarray | None:
    """The names of the columns of a data frame, or None where there are none or not all of them are texts."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = np.asarray(list(columns), dtype=object)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        kinds = sorted({type(name).__name__ for name in names})
        raise TypeError(f"X has columns named by {' and '.join(kinds)}: either all names must be str, or none")
    return names if len(names) and all(texts) else None


def check_feature_names(fitted: Any, X: Any, estimator: str) -> None:
    """Compares the columns' names with those that fit saw; both may be None.  The wording is scikit-learn's, whose
    checks ask for it."""
    names = feature_names(X)
    if fitted is None and names is None:
        return
    if fitted is None:
        warnings.warn(f"X has feature names, but {estimator} was fitted without feature names", stacklevel=5)
        return
    if names is None:
        warnings.warn(f"X does not have valid feature names, but {estimator} was fitted with feature names",
                      stacklevel=5)
        return
    if list(names) == list(fitted):
        return
    message = "The feature names should match those that were passed during fit.\n"
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    for what, some in (("unseen at fit time", unseen), ("seen at fit time, yet now missing", missing)):
        if some:
            message += f"Feature names {what}:\n" + "".join(f"- {name}\n"
                                                            for name in some[:5]) + "- ...\n" * (len(some) > 5)
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(message)


# ---- classes ---------------------------------------------------------------------------------------------------------


class Labels(NamedTuple):
    """The class of each row: the different labels, sorted, and numbers for the library, in an array of one column that
    stand for words where there are any."""
    classes: np.ndarray
    places: np.ndarray
    numbers: np.ndarray
    words: list[str] | None


def one_each(y: Any, rows: int | None, estimator: str) -> np.ndarray:
    """A label for each row."""
    if y is None:
        raise ValueError(f"{estimator} requires y to be passed, but the target y is None")
    if as_path(y) is not None:
        raise ValueError("y names a column or a file, which needs X to be the name of a file, too")
    labels = as_column(np.asarray(y))
    if rows is not None and len(labels) != rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[rows, len(labels)]}: X has "
                         f"{rows} rows, and y {len(labels)} labels")
    return labels


def labels_of(y: Any, rows: int | None, estimator: str) -> Labels:
    labels = one_each(y, rows, estimator)
    if labels.dtype.kind not in "biufOUS":
        raise ValueError(f"y has values of type {labels.dtype}; classes are whole numbers or words")
    if labels.dtype.kind == "f":
        check_whole(labels)
    try:
        classes, places = np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(f"Unknown label type: y has both {' and '.join(kinds)}; classes are whole numbers or words"
                         ) from None
    if len(classes) == 1:
        raise ValueError(f"y has 1 class, {classes[0]!r}, but at least two classes are needed")
    return numbered(labels, classes, places)


def as_column(labels: np.ndarray) -> np.ndarray:
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
                      "(n_samples,), for example using ravel().", _sklearn.DataConversionWarning, stacklevel=5)
        return labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {labels.shape} instead.")
    return labels


def check_whole(labels: np.ndarray) -> None:
    if not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise ValueError(f"y: row {row + 1} is {labels[row]}, but each row needs a class")
    broken = labels != np.floor(labels)
    if broken.any():
        raise ValueError(f"Unknown label type: y has values such as {labels[np.argmax(broken)]!r}; classes are whole "
                         "numbers or words")


def numbered(labels: np.ndarray, classes: np.ndarray, places: np.ndarray) -> Labels:
    if labels.dtype.kind in "biuf":
        values = labels.astype(np.float64)
        if len(np.unique(classes.astype(np.float64))) < len(classes):
            raise ValueError("y has whole numbers that no float64 tells apart: number the classes from 0")
        return Labels(classes, places, values.reshape(-1, 1), None)
    words = [word.decode(errors="surrogateescape") if isinstance(word, bytes) else word for word in classes]
    if not all(isinstance(word, str) for word in words):
        if all(isinstance(word, (numbers.Real, np.bool_)) for word in words):  # numbers that are Python's objects
            return labels_of(np.array(labels.tolist()), None, "")._replace(classes=classes)
        raise ValueError(f"Unknown label type: y has labels such as {classes[0]!r}; classes are whole numbers or words")
    for word in words:
        if "\0" in word or not is_utf8(word):
            raise ValueError(f"y has the label {word!r}; words must be UTF-8 and have no NUL")
    return Labels(classes, places, places.astype(np.float64).reshape(-1, 1), list(map(str, words)))


def is_utf8(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
