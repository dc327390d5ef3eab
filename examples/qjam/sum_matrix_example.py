#!/usr/bin/python3
"""Sums the numbers of a small matrix on workers, by the interface of qjam.

    python3 sum_matrix_example.py corn10 corn11        one worker on each of these hosts, by ssh
    python3 sum_matrix_example.py local local          two on this machine

Prints "Result is: 78"."""
import logging
import os
import sys

import numpy

# Only needed where the package is not installed (pip install ./python).
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'python'))

from qjam.dataset import NumpyMatrixDataSet
from qjam.master.master import Master
from qjam.master.remote_worker import RemoteWorker

import sum_dataset  # what runs on the workers


def main():
    logging.basicConfig(level=logging.INFO, format='%(asctime)s [%(levelname)s] %(name)s: %(message)s')
    if len(sys.argv) < 2:
        print('usage: %s HOST [HOST ...]' % sys.argv[0])
        sys.exit(1)

    # One worker for each time a host is named.
    workers = []
    for i, hostname in enumerate(sys.argv[1:]):
        workers.append(RemoteWorker(hostname))
        print('Worker %d is to run on %s' % (i, hostname))

    matrix = numpy.matrix('1 2 3 4; 5 6 7 8; 9 10 11 12')
    print('The matrix:')
    print(matrix)
    print()

    # Slices of the rows go to the workers; what they return is added here, since sum_dataset has no reduce.
    dataset = NumpyMatrixDataSet(matrix)
    master = Master(workers)
    params = None
    result = master.run(sum_dataset, params, dataset)
    print('Result is: %d' % result)


if __name__ == '__main__':
    main()
