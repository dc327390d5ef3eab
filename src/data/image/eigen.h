/* Eigenvalues and eigenvectors of a symmetric matrix: Householder's reduction to three diagonals, then QL with implicit
 * shifts (Golub and Van Loan, Matrix Computations, 8.3).
 *
 * Every number is one fixed chain of additions, products, quotients and square roots, so that the bits are the same on
 * every machine and for any number of threads.  A few hundred columns take a fraction of a second; the time grows with
 * their third power. */
#ifndef DATA_EIGEN_H
#define DATA_EIGEN_H

#include <stdint.h>

#include "base/pool.h"

/* `matrix` is n x n and is used up.  values[k] come in falling order, vectors[k * n ...] is the unit vector of
 * values[k], whose sign is such that its component of greatest size, the first of them, is positive.  SHOAL_INVALID
 * when the matrix holds something that is not finite. */
int data_eigen(double *values, double *vectors, double *matrix, int64_t n, base_pool *pool);

#endif
