/* How well a trained autoencoder gives rows back: the error that training minimises, of any rows.
 *
 * Rows are shared out among threads; the error of a row is always summed in the same order, and errors of rows are
 * added exactly, so the number of threads changes no bit. */
#include <math.h>

#include "base/memory.h"
#include "base/pool.h"
#include "learn/autoencoder/autoencoder_internal.h"
#include "learn/exact.h"

enum { ROWS_AT_ONCE = 64 };

/* Which has room for every double. */
static const learn_window all_doubles = {.low = -1088, .digits = LEARN_EXACT_DIGITS_MOST};

typedef struct share {
    int64_t digit[LEARN_EXACT_DIGITS_MOST];
    void *scratch;
    double *row, *output;
} share;

typedef struct reconstructing {
    const autoencoder_way_back *back;
    shoal_data *rows;
    const shoal_tensor *features;
    share *shares;
} reconstructing;

static double feature_at(const shoal_tensor *features, int64_t index)
{
    return features->type == SHOAL_FLOAT64 ? ((const double *)features->values)[index]
                                           : (double)((const float *)features->values)[index];
}

static double activate(double value, int activation, bool linear)
{
    if (linear)
        return value;
    return activation == SHOAL_LOGISTIC ? 1 / (1 + exp(-value))
           : activation == SHOAL_TANH   ? tanh(value)
                                        : fmax(value, 0);
}

static double error_of_row(const reconstructing *self, share *mine, int64_t row)
{
    const autoencoder_way_back *back = self->back;
    double sum = 0;
    for (int64_t k = 0; k < back->columns; k++)
        mine->output[k] = back->bias[k];
    for (int64_t j = 0; j < back->hidden; j++) {
        const double feature = feature_at(self->features, row * back->hidden + j),
                     *weight = back->weights + j * back->columns;
        for (int64_t k = 0; k < back->columns; k++)
            mine->output[k] += feature * weight[k];
    }
    for (int64_t k = 0; k < back->columns; k++) {
        double difference =
            activate(mine->output[k], back->activation, back->linear) - (mine->row[k] * back->scale + back->shift);
        sum += difference * difference;
    }
    return sum / 2;
}

static int reconstruct_rows(void *context, int64_t item, int thread)
{
    const reconstructing *self = context;
    share *mine = &self->shares[thread];
    const int64_t first = item * ROWS_AT_ONCE, left = shoal_data_rows(self->rows) - first;
    const int64_t count = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE, columns = self->back->columns;
    const shoal_type type = shoal_data_type(self->rows);
    const void *read = NULL;
    int64_t unused[LEARN_EXACT_RANGE];
    int status = shoal_data_read(&read, self->rows, first, count, mine->scratch);
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        shoal_convert_float64(mine->row, (const char *)read + (size_t)(i * columns) * shoal_type_size(type), type,
                              columns);
        double error = error_of_row(self, mine, first + i);
        if (!isfinite(error))
            return shoal_fail(SHOAL_INVALID, "row %lld is too large for this model: its error is not finite",
                              (long long)(first + i + 1));
        learn_exact_add(mine->digit, &all_doubles, error, unused);
    }
    return status;
}

static int make_shares(reconstructing *self, int threads)
{
    const size_t columns = (size_t)self->back->columns, size = shoal_type_size(shoal_data_type(self->rows));
    int status = base_alloc(&self->shares, (size_t)threads, sizeof *self->shares, "errors of rows");
    for (int t = 0; t < threads && status == SHOAL_OK; t++) {
        share *mine = &self->shares[t];
        status = base_alloc(&mine->row, columns, sizeof *mine->row, "a row");
        if (status == SHOAL_OK)
            status = base_alloc(&mine->output, columns, sizeof *mine->output, "a row");
        if (status == SHOAL_OK && !shoal_data_is_resident(self->rows))
            status = base_alloc(&mine->scratch, columns * ROWS_AT_ONCE, size, "rows");
    }
    return status;
}

int autoencoder_reconstruction(double *error, const autoencoder_way_back *back, shoal_data *rows,
                               const shoal_tensor *features, int threads)
{
    reconstructing self = {.back = back, .rows = rows, .features = features};
    const int64_t count = shoal_data_rows(rows);
    base_pool *pool = NULL;
    int status = base_pool_new(&pool, threads > 0 ? threads : base_cores());
    const int shares = pool ? base_pool_threads(pool) : 0;
    if (status == SHOAL_OK)
        status = make_shares(&self, shares);
    if (status == SHOAL_OK)
        status = base_pool_each(pool, (count + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE, reconstruct_rows, &self);
    if (status == SHOAL_OK)
        status = shoal_data_check(rows);
    for (int t = 1; t < shares && status == SHOAL_OK; t++)
        for (int d = 0; d < LEARN_EXACT_DIGITS_MOST; d++)
            self.shares[0].digit[d] += self.shares[t].digit[d];
    if (status == SHOAL_OK)
        *error = learn_exact_value(self.shares[0].digit, &all_doubles) / (double)count;
    for (int t = 0; self.shares && t < shares; t++) {
        base_free(&self.shares[t].scratch);
        base_free(&self.shares[t].row);
        base_free(&self.shares[t].output);
    }
    base_free(&self.shares);
    base_pool_free(&pool);
    return status;
}
