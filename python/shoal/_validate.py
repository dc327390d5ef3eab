"""From what a caller hands over to arrays that the library reads where they are.

Rows of every type that shoal has are taken as they lie in memory; only what is neither native nor C-contiguous is
copied."""
import numbers
import warnings

import numpy as np

from shoal._library import TYPES


def as_rows(X, name="X"):
    """X as a C-contiguous two-dimensional array of one of shoal's types; X itself when it is one."""
    if hasattr(X, "tocsr"):
        raise TypeError(f"{name} is a sparse matrix, but shoal needs dense rows; {name}.toarray() makes them")
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
    return np.ascontiguousarray(array, dtype=nearest_type(array, name))


def nearest_type(array, name):
    dtype = array.dtype.newbyteorder("=")
    if dtype in TYPES:
        return dtype
    if dtype == np.float16:
        return np.dtype("float32")
    if dtype.kind in "fOUS":  # wider floats, Python's objects, numbers as text: numpy says what is not a number
        return np.dtype("float64")
    raise ValueError(f"{name} has values of type {array.dtype}, but shoal needs numbers")


def as_weights(sample_weight, rows):
    """One float64 a row, or None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Number):
        return np.full(rows, float(sample_weight))
    weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar: one number for each row")
    if weights.shape[0] != rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(rows,)}: one weight for each row")
    return weights


def feature_names(X):
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


def whole_number(value, name, least, most=None):
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    if value < least or (most is not None and value > most):
        limit = f"at least {least}" if value < least else f"at most {most}"
        raise ValueError(f"{name} must be {limit}, not {value}")
    return int(value)


def check_feature_names(fitted, X, estimator):
    """Compares the columns' names with those that fit saw; both may be None.  The wording is scikit-learn's, whose
    checks ask
    for it."""
    names = feature_names(X)
    if fitted is None and names is None:
        return
    if fitted is None:
        warnings.warn(f"X has feature names, but {estimator} was fitted without feature names", stacklevel=4)
        return
    if names is None:
        warnings.warn(f"X does not have valid feature names, but {estimator} was fitted with feature names",
                      stacklevel=4)
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
