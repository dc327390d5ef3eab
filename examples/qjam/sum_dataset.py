"""Sums a slice of a data set; see sum_matrix_example.py."""
import numpy


def sum_dataset(params, dataset):
    """The sum of all numbers of the slice, which is an array or a matrix; there are no parameters."""
    return numpy.sum(dataset)


mapfunc = sum_dataset
