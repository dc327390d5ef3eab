/* The entries of a dense table, for the type KERNEL_REAL.  Included by dense.h, once for each type; hence no guard.
 *
 * Pointers are aligned as their type is.  Counts may be 0.  No entry allocates. */
typedef struct KERNEL_DENSE {
    /* c[i * c_row + j] = fma(a[i * a_row + t * a_column], b[t * b_row + j], c[i * c_row + j]) for t = 0 .. depth - 1 in
     * this order, for i < rows and j < columns.  What c holds before is where the chain starts: a bias, or the sum so
     * far.  One of a_row and a_column is 1 or both are anything; neither a nor b overlaps c. */
    void (*product)(KERNEL_REAL *c, int64_t c_row, const KERNEL_REAL *a, int64_t a_row, int64_t a_column,
                    const KERNEL_REAL *b, int64_t b_row, int64_t rows, int64_t columns, int64_t depth);

    /* out = value * scale + shift (one fma of KERNEL_REAL; exactly the value for 1 and 0, -0 too) for `count` values of
     * any type, converted to KERNEL_REAL first. */
    void (*convert)(KERNEL_REAL *out, const void *values, shoal_type type, KERNEL_REAL scale, KERNEL_REAL shift,
                    int64_t count);

    /* z becomes f(z).  NaN stays NaN; nothing overflows on the way.  With e = exp(x) as below, rounding after each
     * operation:
     *     logistic   (z < 0 ? e : 1) / (1 + e) for x = -|z|: between 0 and 1, both reached, within 3 ulp
     *     tanh       m / (2 + m) with z's sign, for x = max(-2 |z|, -64) and m = FUSE(2^n, p, 2^n - 1), which is
     *                exp(x) - 1: within 3 ulp, near 0 too, between -1 and 1, both reached
     *     relu       z < 0 ? 0 : z */
    void (*activate)(KERNEL_REAL *z, kernel_activation f, int64_t count);
    /* out = the slope of f where its value is y: 1; y * (1 - y); (1 - y) * (1 + y); y > 0 ? 1 : 0. */
    void (*slope)(KERNEL_REAL *out, const KERNEL_REAL *y, kernel_activation f, int64_t count);
    /* x becomes x * y. */
    void (*multiply)(KERNEL_REAL *x, const KERNEL_REAL *y, int64_t count);
    /* y, the output of f, becomes (y - target) * slope, and float64((y - target))^2 is added (one fma each) to lane
     * index mod KERNEL_LANES.  Callers give runs whose first index is a multiple of KERNEL_LANES. */
    void (*miss)(KERNEL_REAL *y, const KERNEL_REAL *target, kernel_activation f, double lanes[KERNEL_LANES],
                 int64_t count);

    /* sum[j] += v[i * row + j] for i = 0 .. rows - 1 in this order. */
    void (*add_rows)(KERNEL_REAL *sum, const KERNEL_REAL *v, int64_t row, int64_t rows, int64_t columns);

    /* sum[i] += rint(float64(v[i]) * inverse), halves to even, inverse a power of two; the products are below 2^62 in
     * size, and nothing is said of the sum where they are not, or are NaN. */
    void (*quantise)(int64_t *sum, const KERNEL_REAL *v, double inverse, int64_t count);
    /* The greatest |v|; +infinity when any v is not finite. */
    double (*greatest)(const KERNEL_REAL *v, int64_t count);

    /* exp(x), correct to 2 units in the last place, 0 and infinity where they belong; NaN stays NaN.  FUSE(a, b, c) is
     * fma for float; for double it is a * b, rounded, plus c, so that it is quick where each fma is a call.  x is
     * brought to [-104, 89] or [-746, 710]; n = FUSE(x, log2 e, L) - L with L = 1.5 * 2^23 or 2^52; r = FUSE(n,
     * -ln2_low, FUSE(n, -ln2_high, x)); p = FUSE(r^2, q(r), r) is exp(r) - 1, q a polynomial of 5 or 11 terms in the
     * order that exp_reduced in dense_elements.h has; and exp(x) = (1 + p) * 2^floor(n / 2) * 2^(n - floor(n / 2)). */
    void (*exp)(KERNEL_REAL *x, int64_t count);
} KERNEL_DENSE;
