/* Arithmetic on blocks of rows and centres: one table of functions per kernel set.
 *
 *     const kernel_set *kernel = NULL;
 *     kernel_choose(&kernel, NULL);              // the best this CPU has; or by name: "avx2"
 *     kernel->score_float(...);
 *
 * Every set fills every entry, save the three for bytes, which are NULL where byte_tile_rows is 0.  A set starts as a
 * copy of the one below it and overwrites what it does better: portable C, then avx2, avx512, vnni.  tests/kernel
 * compares each entry with the portable one and times it.
 *
 * Words used below.  A *row* z is centred: z = (x - origin) * scale, float32.  A *centre* c is centred likewise. The
 * *score* of c for z is |c|^2/2 - z.c, which orders centres as the squared distance does: |z - c|^2 = |z|^2 + 2 *
 * score.  A *panel* holds `tile_rows` rows or `tile_centres` centres side by side: column k of all of them, then column
 * k + 1, and so on, padded with zeros.
 *
 * Accuracy that callers build their proofs on (docs/learn/kmeans.md): in `dot`, `score_row`, `score_float` and
 * `nearest_few` no product and no bias passes through more than kernel_roundings(columns) float32 roundings, fused or
 * not, in whatever order.  Entries marked *exact* give the same bits in every set.  No entry allocates, and none may
 * assume more of a pointer's alignment than is said: panels, biases, scores and workspaces are aligned to 64 bytes,
 * rows only to their type.  Values are finite and norms below 2^60 (the scale sees to that), so nothing overflows; only
 * the bias of a padding centre is +infinity, and so is its score.  The rounding mode is to nearest, subnormals are not
 * flushed. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <shoal/data.h>

#include "kernel/dense.h"

enum {
    KERNEL_TILE_ROWS_MOST = 16,
    KERNEL_TILE_CENTRES_MOST = 64,
    KERNEL_FEW_COLUMNS = 32, /* up to here nearest_few is the better way */
    KERNEL_BLOCK_ROWS = 168, /* rows to hand to score_float at once: enough to make up for fetching every centre */
    KERNEL_CHAIN = 128,      /* products added up in one chain before the chain is added to the score */
    KERNEL_BYTE_COLUMNS_MOST = 65536 /* up to here no int32 dot product of bytes overflows: 255 * 127 * 65536 < 2^31 */
};

/* Most roundings a product meets in dot and score_float: its own, its chain, the chains, lanes and bias. */
static inline int64_t kernel_roundings(int64_t columns)
{
    int64_t chain = columns < KERNEL_CHAIN ? columns : KERNEL_CHAIN;
    return chain + columns / KERNEL_CHAIN + 16;
}

/* Where rows are measured from.  scale is a power of two. */
typedef struct kernel_origin {
    const float *origin32;  /* the origin of each column; every value is a float32 ... */
    const double *origin64; /* ... and here are the same values as float64 */
    double scale;
} kernel_origin;

/* Rows as bytes: panel [columns/4 rounded up][byte_tile_rows][4], value v + byte_row_excess for v = rint(z / step),
 * |v| <= byte_row_most.  step is 0, and all v with it, for rows without a value of 2^-100 or more. */
typedef struct kernel_byte_rows {
    uint8_t *panels;
    float *step;     /* one a row */
    float *norm;     /* |z|, rounded up */
    float *residual; /* |z - step * v|, rounded up */
} kernel_byte_rows;

/* Centres as bytes: panel [columns/4 rounded up][byte_tile_centres][4], signed, |value| <= byte_centre_most, 0 in the
 * columns that fill up the last four.  A padding centre has bias = +infinity and all else 0. */
typedef struct kernel_byte_centres {
    const int8_t *panels;
    const float *bias; /* |c|^2/2 rounded down, with slack for the arithmetic of score_bytes */
    const float *step;
    const int32_t *offset; /* what the rows' excess adds to the dot product: byte_row_excess * the sum of the values */
    const float *residual; /* |c - step * value|, rounded up, with slack */
    const float *norm;     /* |step * value|, rounded up */
} kernel_byte_centres;

/* What nearest_few finds, one value per row. */
typedef struct kernel_nearest {
    float *best, *second; /* the two least scores; second is +infinity when there is one centre */
    int32_t *index;       /* of the best, the lowest on ties */
    float *square;        /* |z|^2 */
} kernel_nearest;

/* Two numbers in each int64_t of a sum, where both are known to stay below 2^31: then neither runs into the other, and
 * to add the int64_t up is to add both. */
typedef uint32_t kernel_pairs __attribute__((may_alias));

typedef struct kernel_set {
    const char *name;
    int tile_rows, tile_centres;           /* of the float32 panels */
    int byte_tile_rows, byte_tile_centres; /* of the byte panels; 0 when score_bytes does not pay in this set */
    int byte_row_excess;                   /* added to a row's value to make it unsigned */
    int byte_row_most, byte_centre_most;   /* the greatest |value| of rows and of centres */
    bool takes_all_bytes;                  /* score_bytes is right for rows of any bytes, 0 to 255 */

    /* exact.  Centres one row: for types that float32 holds exactly (float32, 8- and 16-bit integers, bool)
     * (float32(x) - origin32) * scale in float32, for the others float32((float64(x) - origin64) * scale). */
    void (*centre_row)(float *out, const void *row, shoal_type type, const kernel_origin *origin, int64_t columns);

    /* float32 dot product. */
    float (*dot)(const float *a, const float *b, int64_t columns);

    /* exact.  The definition: squared distance, subtract, multiply, add in float64, 8 lanes by column mod 8,
     * combined ((0+4)+(2+6))+((1+5)+(3+7)). */
    double (*distance32)(const float *x, const double *centre, int64_t columns);
    double (*distance64)(const double *x, const double *centre, int64_t columns);
    /* exact.  The definition for unit vectors: the dot product, in the same lanes. */
    double (*product64)(const double *a, const double *b, int64_t columns);

    /* exact.  out[r * stride + j] is the same squared distance of row r and centre j, for `rows` rows and `count`
     * centres, both float64 and row-major; columns is a multiple of 8. */
    void (*distances)(double *out, int64_t stride, const double *x, int64_t rows, const double *centres, int64_t count,
                      int64_t columns);

    /* exact.  Puts `count` centred rows (row-major, `columns` apart) into row panels; the last is padded with zeros. */
    void (*pack_rows)(float *panels, const float *rows, int count, int64_t columns);

    /* scores[r * stride + j] = bias[j] - row r . centre j for every row of `row_panels` panels and every centre of
     * `centre_panels` panels.  scores has room for the padding too and is aligned; stride is a multiple of 16. */
    void (*score_float)(float *scores, int64_t stride, const float *rows, int row_panels, const float *centres,
                        const float *bias, int centre_panels, int64_t columns);

    /* scores[j] = bias[j] - z . centre j for one row and `count` centres, row-major: for few centres, where packing a
     * row costs more than it saves. */
    void (*score_row)(float *scores, const float *z, const float *centres, const float *bias, int count,
                      int64_t columns);

    /* Quantises `count` centred rows into byte panels and fills step, norm and residual, padding included
     * (padding rows have step = norm = residual = 0). */
    void (*quantise_rows)(const kernel_byte_rows *out, const float *rows, int count, int64_t columns);

    /* exact.  Puts the bytes of one row as they are into place `r` of byte panels. */
    void (*place_bytes)(uint8_t *panels, const uint8_t *row, int r, int64_t columns);

    /* lower[r * stride + j] <= score of centre j for row r, by an exact int32 dot product and the residuals:
     * bias - row.step * centre.step * (dot - offset) - row.norm * centre.residual - row.residual * centre.norm.
     * Its own rounding error upwards is at most 8 * 2^-24 times the sum of the four terms' magnitudes, underflow
     * included: the caller's slack must cover that.  columns <= KERNEL_BYTE_COLUMNS_MOST. */
    void (*score_bytes)(float *lower, int64_t stride, const kernel_byte_rows *rows, int row_panels,
                        const kernel_byte_centres *centres, int centre_panels, int64_t columns);

    /* exact.  Index of the least of count > 0 values, the lowest index on ties.  values is aligned; count is a
     * multiple of 16. */
    int (*least)(const float *values, int count);

    /* exact.  Writes the indices of values <= threshold in increasing order, returns how many, and sets *rest to
     * the least of the others (+infinity when none).  Same conditions; `indices` has room for count + 16. */
    int (*select)(int32_t *indices, float *rest, const float *values, int count, float threshold);

    /* For few columns (1 .. KERNEL_FEW_COLUMNS): what kernel_nearest says of each of `count_rows` rows over `count` > 0
     * centres.  rows and centres are row-major, `columns` apart.  workspace: KERNEL_FEW_WORKSPACE floats, aligned. */
    void (*nearest_few)(const kernel_nearest *out, const float *rows, int count_rows, const float *centres,
                        const float *bias, int count, int64_t columns, float *workspace);

    /* exact.  For each column adds rint(weight * (x - origin) * inverse) to `to` and subtracts it from `from`
     * (NULL: only adds).  Products are float64, rounded once each from
     * left to right, and below 2^62 in magnitude; inverse is a power of two or 0.  `to` and `from` differ. */
    void (*move32)(int64_t *to, int64_t *from, const float *x, const double *origin, const double *inverse,
                   double weight, int64_t columns);
    void (*move64)(int64_t *to, int64_t *from, const double *x, const double *origin, const double *inverse,
                   double weight, int64_t columns);

    /* The four entries for rows that are bytes, 0 to 255, as they are.
     *
     * exact.  out[r] is distance32 of row r and centres[r], for each of `rows` rows, row-major. */
    void (*distance8)(double *out, const uint8_t *x, const double *const *centres, int64_t rows, int64_t columns);

    /* exact.  For each column adds x to `sum` and |2x - twice| to `away`; returns the sum of (2x - twice)^2.  twice is
     * from 0 to 510, so that 2^23 rows can be added before `away` overflows. */
    uint64_t (*spread8)(uint32_t *sum, uint32_t *away, const uint8_t *x, const int32_t *twice, int64_t columns);

    /* exact.  Adds each column of a row to `to`, which counts up to 2^32. */
    void (*add8)(kernel_pairs *to, const uint8_t *x, int64_t columns);

    /* exact.  dots[i] is the dot product of the row and of the i-th of `count` others.  All have the same number of
     * bytes, a multiple of 64, and at most KERNEL_BYTE_COLUMNS_MOST; the others lie one after another. */
    void (*dots8)(int32_t *dots, const uint8_t *row, const int8_t *others, int count, int64_t bytes);

    /* exact.  Matrix products and what surrounds them, for learners that go down a gradient. */
    kernel_dense32 dense32;
    kernel_dense64 dense64;
    kernel_convolution convolution;
} kernel_set;

enum { KERNEL_FEW_WORKSPACE = 4096 };

/* The best set this CPU can run, or the one called `name`.  SHOAL_USAGE, naming those that would work, when the
 * name is unknown or the CPU lacks it.  `name` may be NULL or "auto"; then SHOAL_KERNEL in the environment decides. */
int kernel_choose(const kernel_set **out, const char *name);

/* All sets this CPU can run, portable first; for tests.  Returns how many. */
int kernel_list(const kernel_set *sets[8]);

/* A hash of a fixed numeric probe, for telling whether two machines compute alike.  With any_set, only of what has the
 * same bits in every set, for learners whose result does not depend on the set; otherwise of the set's own products
 * too. */
uint64_t kernel_fingerprint(const kernel_set *set, bool any_set);

/* Overwrite what a set does better than the one below it.  Defined in kernel_<name>.c. */
void kernel_fill_portable(kernel_set *set);
#if defined(__x86_64__)
void kernel_fill_avx2(kernel_set *set);
void kernel_fill_avx512(kernel_set *set);
void kernel_fill_vnni(kernel_set *set);
#endif

#endif
