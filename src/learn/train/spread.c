/* Whether the rows are sorted by class, so that batches and what is held out have other classes than all rows.
 *
 * The scan counts labels in some runs of strata, and in the rows that are drawn and held out.  Labels are not known
 * before the scan, so each is counted in one of BINS by a hash: two labels that share one look alike, which only hides
 * differences. */
#include <math.h>

#include "base/memory.h"
#include "learn/pick.h"
#include "learn/train/train_internal.h"

enum { BINS = 64, RUNS_MOST = 64, PARTS = 2 };

static int64_t bin_of(double label)
{
    return (int64_t)(((uint64_t)shoal_order_key(label) * UINT64_C(0x9e3779b97f4a7c15)) >> 58);
}

/* A run of strata is as many as make RUNS_MOST of them. */
static int64_t run_of(int64_t stratum, const shoal_shape *shape)
{
    return shape->strata <= RUNS_MOST ? stratum : (int64_t)((__int128)stratum * RUNS_MOST / shape->strata);
}

void train_spread_layout(shoal_layout *layout)
{
    layout->cell[TRAIN_CELL_SPREAD] = (shoal_cell){"spread", SHOAL_CELL_SUM, (RUNS_MOST + PARTS) * BINS, 0, false};
    layout->cells = TRAIN_CELL_SPREAD + 1;
}

static int64_t stratum_of_grain(const shoal_shape *shape, int64_t grain)
{
    int64_t stratum = (int64_t)((__int128)grain * shape->strata / shape->grains);
    return stratum + (learn_stratum_grain(shape, stratum + 1) <= grain);
}

void train_spread_map(shoal_partial *partial, const shoal_grain *grain, int64_t target)
{
    const shoal_shape *shape = grain->shape;
    const size_t size = shoal_type_size(shape->type);
    const learn_places drawn = learn_part_of_grain(SHOAL_DRAWN, shape, grain->index);
    int64_t *counts = shoal_partial_values(partial, TRAIN_CELL_SPREAD), *parts = counts + RUNS_MOST * BINS;
    counts += run_of(stratum_of_grain(shape, grain->index), shape) * BINS;
    for (int64_t i = 0; i < grain->rows; i++) {
        double label;
        const char *at = (const char *)grain->values + (size_t)(i * shape->columns + target) * size;
        shoal_convert_float64(&label, at, shape->type, 1);
        const int64_t bin = bin_of(label), row = grain->first_row + i;
        counts[bin]++;
        parts[(row < drawn.from || row >= drawn.from + drawn.count) * BINS + bin]++;
    }
}

/* The sum of squares of a row of counts, over their sum: how often two of its rows are alike. */
static double alike(const int64_t *counts, double *rows)
{
    double squares = 0;
    *rows = 0;
    for (int i = 0; i < BINS; i++) {
        *rows += (double)counts[i];
        squares += (double)counts[i] * (double)counts[i];
    }
    return *rows > 0 ? squares / *rows : 0;
}

/* Goodman and Kruskal's tau: by how much a label is easier to guess when the run of strata is known; less what it is
 * on average when rows lie in random order. */
static double find_sorted(const int64_t *counts, int64_t runs)
{
    int64_t all[BINS] = {0};
    double within = 0, rows, whole;
    for (int64_t i = 0; i < runs; i++) {
        within += alike(counts + i * BINS, &rows);
        for (int k = 0; k < BINS; k++)
            all[k] = base_add_wrapping(all[k], counts[i * BINS + k]);
    }
    const double apart = alike(all, &whole) / whole, tau = (within / whole - apart) / (1 - apart);
    return apart < 1 ? fmax(0, tau - (double)(runs - 1) / fmax(whole - 1, 1)) : 0;
}

/* Half the sum of the differences of both distributions, less what chance makes of them at most usually. */
static double find_apart(const int64_t *parts)
{
    double drawn, held, sum = 0, chance = 0;
    alike(parts, &drawn);
    alike(parts + BINS, &held);
    if (!(drawn > 0 && held > 0))
        return 0;
    for (int i = 0; i < BINS; i++) {
        const double share = ((double)parts[i] + (double)parts[BINS + i]) / (drawn + held);
        sum += fabs((double)parts[i] / drawn - (double)parts[BINS + i] / held);
        chance += sqrt(share * (1 - share) * (1 / drawn + 1 / held));
    }
    return fmax(0, sum / 2 - chance);
}

void train_spread_read(double *sorted, double *apart, const shoal_partial *merged, const shoal_shape *shape)
{
    const int64_t *counts = shoal_partial_values_const(merged, TRAIN_CELL_SPREAD);
    const int64_t runs = shape->strata < RUNS_MOST ? shape->strata : RUNS_MOST;
    *sorted = find_sorted(counts, runs);
    *apart = find_apart(counts + RUNS_MOST * BINS);
}
