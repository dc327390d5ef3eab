"""Sums a slice of a data set; see sum_matrix_example.py."""
import numpy


def sum_dataset(params, dataset):
    """The sum of all numbers of the slice, which is an array or a matrix; there are no parameters."""
    wide = numpy.float64 if dataset.dtype.kind == "f" else None  # float32 would be added in float32
    return numpy.sum(dataset, dtype=wide)


mapfunc = sum_dataset
