/* The entries for rows that are bytes by nature, as they are: nothing is lost, and nothing is converted beforehand.
 *
 * Included by kernel_exact.h, whose words and rules apply.  All but distance8 is arithmetic of whole numbers, so that
 * any order gives the same bits, and the compiler's vectors do. */

typedef uint8_t exact_bytes __attribute__((vector_size(DOUBLE_LANES)));
#ifndef WIDEN_BYTES
#define WIDEN_BYTES(bytes) __builtin_convertvector(bytes, exact_doubles)
#endif

/* So many rows at once, or the sums of one would wait for each other. */
enum { ROWS_AT_ONCE = 4 };

static inline __attribute__((always_inline)) void distance8_rows(double *out, const uint8_t *x,
                                                                 const double *const *centres, int rows,
                                                                 int64_t columns)
{
    exact_doubles sums[ROWS_AT_ONCE][EXACT_VECTORS] = {0};
    int64_t k = 0;
    for (; k + 8 <= columns; k += 8)
        for (int v = 0; v < EXACT_VECTORS; v++)
            for (int r = 0; r < rows; r++) {
                exact_bytes from;
                exact_doubles to;
                memcpy(&from, x + r * columns + k + v * DOUBLE_LANES, sizeof from);
                memcpy(&to, centres[r] + k + v * DOUBLE_LANES, sizeof to);
                exact_doubles difference = WIDEN_BYTES(from) - to;
                sums[r][v] += difference * difference;
            }
    for (int r = 0; r < rows; r++) {
        double lane[8];
        memcpy(lane, sums[r], sizeof lane);
        for (int64_t last = k; last < columns; last++) {
            double difference = (double)x[r * columns + last] - centres[r][last];
            lane[last % 8] += difference * difference;
        }
        out[r] = add_lanes(lane);
    }
}

static void distance8(double *out, const uint8_t *x, const double *const *centres, int64_t rows, int64_t columns)
{
    int64_t r = 0;
    for (; r + ROWS_AT_ONCE <= rows; r += ROWS_AT_ONCE)
        distance8_rows(out + r, x + r * columns, centres + r, ROWS_AT_ONCE, columns);
    for (; r < rows; r++)
        distance8_rows(out + r, x + r * columns, centres + r, 1, columns);
}

static uint64_t spread8(uint32_t *restrict sum, uint32_t *restrict away, const uint8_t *restrict x,
                        const int32_t *restrict twice, int64_t columns)
{
    const int64_t block = 8192; /* of squares, up to 510^2, that a uint32 holds */
    uint64_t squares = 0;
    for (int64_t from = 0; from < columns; from += block) {
        const int64_t end = from + block < columns ? from + block : columns;
        uint32_t square = 0;
        for (int64_t k = from; k < end; k++) {
            const int32_t apart = 2 * x[k] - twice[k];
            sum[k] += x[k];
            away[k] += (uint32_t)(apart < 0 ? -apart : apart);
            square += (uint32_t)(apart * apart);
        }
        squares += square;
    }
    return squares;
}

static void add8(kernel_pairs *to, const uint8_t *restrict x, int64_t columns)
{
    for (int64_t k = 0; k < columns; k++)
        to[k] += x[k];
}

static void dots8(int32_t *dots, const uint8_t *row, const int8_t *others, int count, int64_t bytes)
{
    for (int i = 0; i < count; i++) {
        const int8_t *other = others + i * bytes;
        int32_t dot = 0;
        for (int64_t k = 0; k < bytes; k++)
            dot += row[k] * other[k];
        dots[i] = dot;
    }
}

static void fill_rows8(kernel_set *set)
{
    set->distance8 = distance8;
    set->spread8 = spread8;
    set->add8 = add8;
    set->dots8 = dots8;
}
