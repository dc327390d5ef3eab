/* From the sums of all rows to cost and gradient, the first point, and the result.
 *
 * Here the sparsity's factor is put in: it depends on the mean activations over all rows, which are known only now, and
 * it multiplies sums that the maps made without it.  See docs/learn/autoencoder.md. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/autoencoder/autoencoder_internal.h"

/* Where the sums of a group start. */
typedef struct sums_view {
    const double *error, *activity, *encoder_bias, *decoder_bias, *encoder, *decoder, *slopes, *reach;
} sums_view;

static const double *take_part(const double **at, bool there, int64_t count)
{
    const double *taken = there ? *at : NULL;
    *at += there ? count : 0;
    return taken;
}

/* In the order of autoencoder_groups. */
static sums_view view_of(const double *sums, const autoencoder_own *own)
{
    int64_t weights = own->hidden * own->columns;
    bool sparse = autoencoder_is_sparse(own);
    sums_view view;
    view.error = take_part(&sums, true, 1);
    view.activity = take_part(&sums, true, own->hidden);
    view.encoder_bias = take_part(&sums, true, own->hidden);
    view.decoder_bias = take_part(&sums, true, own->columns);
    view.encoder = take_part(&sums, true, weights);
    view.decoder = take_part(&sums, !own->tied, weights);
    view.slopes = take_part(&sums, sparse, own->hidden);
    view.reach = take_part(&sums, sparse, weights);
    return view;
}

/* ---- the cost ---------------------------------------------------------------------------------------------------- */

/* The sparsity's term for one unit of mean activation `mean`, and its derivative by that mean. */
static double divergence(double *slope, const autoencoder_own *own, double mean)
{
    if (own->activation == KERNEL_RELU) {
        *slope = 1;
        return mean;
    }
    /* tanh goes from -1 to 1; (1 + mean) / 2 is how often, as it were, it is on. */
    double inner = own->activation == KERNEL_TANH ? 0.5 : 1;
    double p = own->activation == KERNEL_TANH ? (1 + mean) / 2 : mean, aim = own->sparsity;
    if (!(p > 0 && p < 1)) {
        *slope = p >= 1 ? INFINITY : -INFINITY;
        return INFINITY;
    }
    *slope = inner * ((1 - aim) / (1 - p) - aim / p);
    return aim * (kernel_log(aim) - kernel_log(p)) + (1 - aim) * (kernel_log(1 - aim) - kernel_log(1 - p));
}

static double squares(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += values[i] * values[i];
    return sum;
}

static autoencoder_terms terms_of(const sums_view *sums, const autoencoder_own *own, const double *x, int64_t rows)
{
    autoencoder_place place = autoencoder_place_of(own);
    autoencoder_terms terms = {.error = *sums->error / (2 * (double)rows)};
    double slope;
    if (own->weight_decay > 0) /* encoder and decoder lie one after another */
        terms.decay = own->weight_decay / 2 * squares(x, place.encoder_bias);
    for (int64_t j = 0; autoencoder_is_sparse(own) && j < own->hidden; j++)
        terms.divergence += own->sparsity_weight * divergence(&slope, own, sums->activity[j] / (double)rows);
    return terms;
}

/* gradient = sums / rows + decay * x */
static void set_gradient(double *gradient, const double *sums, const double *x, double rows, double decay,
                         int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        gradient[i] = sums[i] / rows + decay * x[i];
}

static void add_sparsity(double *gradient, const sums_view *sums, const autoencoder_own *own, double rows)
{
    autoencoder_place place = autoencoder_place_of(own);
    for (int64_t j = 0; j < own->hidden; j++) {
        double slope;
        divergence(&slope, own, sums->activity[j] / rows);
        double factor = own->sparsity_weight * slope / rows;
        double *weights = gradient + place.encoder + j * own->columns;
        const double *reach = sums->reach + j * own->columns;
        for (int64_t k = 0; k < own->columns; k++)
            weights[k] += factor * reach[k];
        gradient[place.encoder_bias + j] += factor * sums->slopes[j];
    }
}

int autoencoder_combine(double *value, double *gradient, const double *sums, const void *untyped, const double *x,
                        const shoal_shape *shape)
{
    const autoencoder_own *own = untyped;
    autoencoder_place place = autoencoder_place_of(own);
    sums_view view = view_of(sums, own);
    autoencoder_terms terms = terms_of(&view, own, x, shape->rows);
    double rows = (double)shape->rows;
    int64_t weights = own->hidden * own->columns;
    *value = terms.error + terms.decay + terms.divergence;
    set_gradient(gradient + place.encoder, view.encoder, x + place.encoder, rows, own->weight_decay, weights);
    if (!own->tied)
        set_gradient(gradient + place.decoder, view.decoder, x + place.decoder, rows, own->weight_decay, weights);
    set_gradient(gradient + place.encoder_bias, view.encoder_bias, x + place.encoder_bias, rows, 0, own->hidden);
    set_gradient(gradient + place.decoder_bias, view.decoder_bias, x + place.decoder_bias, rows, 0, own->columns);
    if (autoencoder_is_sparse(own))
        add_sparsity(gradient, &view, own, rows);
    return SHOAL_OK;
}

/* ---- the first point --------------------------------------------------------------------------------------------- */

int autoencoder_first(double *x, void *untyped, size_t *own_bytes, const shoal_shape *shape)
{
    autoencoder_own *own = untyped;
    autoencoder_place place = autoencoder_place_of(own);
    (void)shape;
    if (own->starts) {
        memcpy(x, autoencoder_start_values(own), (size_t)place.count * sizeof *x);
        own->starts = 0;
        *own_bytes = sizeof *own;
        return SHOAL_OK;
    }
    /* Ng, "Sparse autoencoder", CS294A lecture notes: the exercise's initialisation. */
    double most = sqrt(6 / ((double)own->hidden + (double)own->columns + 1));
    for (int64_t i = 0; i < place.encoder_bias; i++)
        x[i] = most * (2 * base_random_unit((uint64_t)own->seed, BASE_FOR_WEIGHTS, (uint64_t)i, 0) - 1);
    memset(x + place.encoder_bias, 0, (size_t)(own->hidden + own->columns) * sizeof *x);
    return SHOAL_OK;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

int autoencoder_note(double *notes, const double *sums, const void *untyped, const double *x, const shoal_shape *shape)
{
    const autoencoder_own *own = untyped;
    sums_view view = view_of(sums, own);
    autoencoder_terms terms = terms_of(&view, own, x, shape->rows);
    notes[0] = terms.error;
    notes[1] = terms.decay;
    notes[2] = terms.divergence;
    for (int64_t j = 0; j < own->hidden; j++)
        notes[3 + j] = view.activity[j] / (double)shape->rows;
    return SHOAL_OK;
}

int autoencoder_tell(shoal_result *result, const double *notes, const void *untyped, const shoal_shape *shape)
{
    const autoencoder_own *own = untyped;
    (void)shape;
    double *activity = shoal_result_add(result, "activity", SHOAL_FLOAT64, 1, &own->hidden);
    if (!activity)
        return SHOAL_MEMORY;
    memcpy(activity, notes + 3, (size_t)own->hidden * sizeof *activity);
    shoal_result_set(result, "error", notes[0]);
    shoal_result_set(result, "decay", notes[1]);
    shoal_result_set(result, "divergence", notes[2]);
    return SHOAL_OK;
}

static int add_tensor(shoal_result *result, const char *name, const double *values, int rank, int64_t rows,
                      int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    double *copy = shoal_result_add(result, name, SHOAL_FLOAT64, rank, shape);
    if (!copy)
        return SHOAL_MEMORY;
    memcpy(copy, values, (size_t)(rank == 2 ? rows * columns : rows) * sizeof *copy);
    return SHOAL_OK;
}

static int add_decoder(shoal_result *result, const double *transposed, int64_t hidden, int64_t columns)
{
    const int64_t shape[2] = {columns, hidden};
    double *decoder = shoal_result_add(result, "decoder.weight", SHOAL_FLOAT64, 2, shape);
    if (!decoder)
        return SHOAL_MEMORY;
    autoencoder_transpose(decoder, transposed, hidden, columns, true);
    return SHOAL_OK;
}

int autoencoder_result(shoal_result *result, const void *untyped, size_t own_bytes, const double *x,
                       const shoal_shape *shape)
{
    const autoencoder_own *own = untyped;
    autoencoder_place place = autoencoder_place_of(own);
    int64_t hidden = own->hidden, columns = own->columns;
    (void)own_bytes, (void)shape;
    int status = add_tensor(result, "encoder.weight", x + place.encoder, 2, hidden, columns);
    if (status == SHOAL_OK)
        status = add_tensor(result, "encoder.bias", x + place.encoder_bias, 1, hidden, 0);
    if (status == SHOAL_OK && !own->tied)
        status = add_decoder(result, x + place.decoder, hidden, columns);
    if (status == SHOAL_OK)
        status = add_tensor(result, "decoder.bias", x + place.decoder_bias, 1, columns, 0);
    shoal_result_set(result, "scale", own->scale);
    shoal_result_set(result, "shift", own->shift);
    return status;
}
