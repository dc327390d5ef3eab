/* What the files of src/learn/autoencoder share: the options as they travel, where parameters and sums lie, and what
 * rounds share in a process.
 *
 * Names as in docs/learn/autoencoder.md: D columns of the data, H hidden units.  W1 is H x D, row-major, b1 has H
 * values.  The decoder is kept transposed, W2t, H x D too, so that both gradients have one form; b2 has D values.  When
 * tied, W2t is W1. */
#ifndef AUTOENCODER_INTERNAL_H
#define AUTOENCODER_INTERNAL_H

#include <shoal/autoencoder.h>

#include "learn/gradient/gradient.h"

/* The most weights in one layer; everything derived from it fits 64 bits by far. */
#define AUTOENCODER_WEIGHTS_MOST ((int64_t)1 << 31)

typedef enum autoencoder_scaling { AUTOENCODER_AS_IT_IS, AUTOENCODER_AUTO, AUTOENCODER_GIVEN } autoencoder_scaling;

/* All that rounds know beside the parameters.  The values of a start follow it. */
typedef struct autoencoder_own {
    int64_t hidden, columns;
    int64_t activation, output; /* kernel_activation */
    int64_t tied, wide;         /* truths; wide: float64 inside a grain */
    int64_t scaling;            /* autoencoder_scaling */
    int64_t iterations, history, seed;
    int64_t starts; /* how many values of a start follow: none or all parameters */
    double sparsity, sparsity_weight, weight_decay;
    double tolerance, change;
    double low, high;    /* GIVEN: what of the data becomes the ends of the range; AUTO: once scanned */
    double scale, shift; /* what is done to a value of the data; known after the scan */
} autoencoder_own;

/* The decoder of a trained model. */
typedef struct autoencoder_way_back {
    const double *weights, *bias; /* hidden x columns; columns */
    int64_t hidden, columns;
    int activation; /* shoal_activation */
    bool linear;    /* of the outputs, whatever the hidden units are */
    double scale, shift;
} autoencoder_way_back;

/* Half the mean squared error of a row, whose features are given. */
int autoencoder_reconstruction(double *error, const autoencoder_way_back *back, shoal_data *rows,
                               const shoal_tensor *features, int threads);

/* Where parameters lie. */
typedef struct autoencoder_place {
    int64_t encoder, decoder, encoder_bias, decoder_bias; /* decoder is encoder when tied */
    int64_t count;
} autoencoder_place;

/* Groups of sums.  Those of the sparsity are there only when it has a weight, the decoder's only when it is not tied:
 * -1 then. */
typedef struct autoencoder_groups {
    int error, activity, encoder_bias, decoder_bias, encoder, decoder, slopes, reach;
    int count;
} autoencoder_groups;

static inline bool autoencoder_is_sparse(const autoencoder_own *own)
{
    return own->sparsity_weight > 0;
}

static inline autoencoder_place autoencoder_place_of(const autoencoder_own *own)
{
    int64_t weights = own->hidden * own->columns, decoder = own->tied ? 0 : weights;
    return (autoencoder_place){.encoder = 0,
                               .decoder = decoder,
                               .encoder_bias = decoder + weights,
                               .decoder_bias = decoder + weights + own->hidden,
                               .count = decoder + weights + own->hidden + own->columns};
}

static inline autoencoder_groups autoencoder_groups_of(const autoencoder_own *own)
{
    autoencoder_groups groups = {
        .error = 0, .activity = 1, .encoder_bias = 2, .decoder_bias = 3, .encoder = 4, .count = 5};
    groups.decoder = own->tied ? -1 : groups.count++;
    groups.slopes = autoencoder_is_sparse(own) ? groups.count++ : -1;
    groups.reach = autoencoder_is_sparse(own) ? groups.count++ : -1;
    return groups;
}

static inline const double *autoencoder_start_values(const autoencoder_own *own)
{
    return (const double *)(own + 1);
}

/* The range of the output layer; *low is -infinity and *high +infinity when it has none. */
void autoencoder_range(double *low, double *high, kernel_activation output);
/* "logistic" and so on. */
const char *autoencoder_activation_name(kernel_activation activation);
kernel_activation autoencoder_kernel_activation(int activation);

/* ---- autoencoder_scan.c ------------------------------------------------------------------------------------------ */

void autoencoder_scan_layout(shoal_layout *layout, const void *own, const shoal_shape *shape);
int autoencoder_scan(shoal_partial *partial, const void *own, const shoal_grain *grain, const shoal_scratch *scratch);
size_t autoencoder_scan_scratch(const void *own, const shoal_shape *shape);
int autoencoder_plan(gradient_plan *out, void **own, size_t *own_bytes, const shoal_partial *merged,
                     const shoal_shape *shape);
/* Whether a plan is the one for these options, but for the guesses of sizes. */
bool autoencoder_is_plan(const gradient_plan *plan, const autoencoder_own *own, const shoal_shape *shape);

/* Rows of one grain that hold a value that is not finite, or too large for float32 where that is used; for other
 * learners of this folder.  Keeps the first in a RECORD cell, and says what is wrong with it. */
void autoencoder_bad_cell(shoal_cell *cell);
int autoencoder_note_bad(shoal_partial *partial, int cell, const shoal_grain *grain, bool wide, double *scratch);
int autoencoder_refuse_bad(const shoal_partial *merged, int cell);
enum { AUTOENCODER_SCAN_RUN = 1024 }; /* values looked at together, and float64 of scratch */

/* ---- autoencoder_map.c ------------------------------------------------------------------------------------------- */

/* Weights in the type of the grain's arithmetic. */
typedef struct autoencoder_prepared {
    const kernel_set *kernel;
    int64_t hidden, wide, tied; /* what there is room for */
    int64_t block_rows; /* rows that go through the network together, a multiple of KERNEL_LANES; changes no bit */
    void *encode;       /* D x H: W1 transposed */
    void *decode;       /* H x D: W2t */
    void *back;         /* D x H: W2, which is `encode` when tied */
    void *encoder_bias, *decoder_bias;
} autoencoder_prepared;

int64_t autoencoder_block_rows(int64_t hidden, int64_t columns, const shoal_shape *shape);
int autoencoder_prepare(void **prepared, const void *own, const double *x, const shoal_shape *shape,
                        const shoal_crew *crew);
void autoencoder_forget(void **prepared);
size_t autoencoder_scratch_bytes(const void *own, const void *prepared, const shoal_shape *shape);
int autoencoder_map(gradient_sums *sums, const void *own, const void *prepared, const shoal_grain *grain,
                    const shoal_scratch *scratch);

/* The hidden layer of a grain's rows, by the same operations as in autoencoder_map; needs `encode` and `encoder_bias`
 * only. */
size_t autoencoder_encode_scratch(const autoencoder_own *own, const autoencoder_prepared *shared);
void autoencoder_encode(void *out, const autoencoder_own *own, const autoencoder_prepared *shared,
                        const shoal_grain *grain, void *memory);

/* out[j * rows + i] = values[i * columns + j], in float64 or rounded to float32. */
void autoencoder_transpose(void *out, const double *values, int64_t rows, int64_t columns, bool wide);
void autoencoder_narrow(void *out, const double *values, int64_t count, bool wide);

/* ---- autoencoder_combine.c --------------------------------------------------------------------------------------- */

/* The three terms of the cost. */
typedef struct autoencoder_terms {
    double error, decay, divergence;
} autoencoder_terms;

int autoencoder_first(double *x, void *own, size_t *own_bytes, const shoal_shape *shape);
int autoencoder_combine(double *value, double *gradient, const double *sums, const void *own, const double *x,
                        const shoal_shape *shape);
int autoencoder_note(double *notes, const double *sums, const void *own, const double *x, const shoal_shape *shape);
int autoencoder_tell(shoal_result *result, const double *notes, const void *own, const shoal_shape *shape);
int autoencoder_result(shoal_result *result, const void *own, size_t own_bytes, const double *x,
                       const shoal_shape *shape);

/* ---- autoencoder.c ----------------------------------------------------------------------------------------------- */

extern const gradient_class autoencoder_class;

#endif
