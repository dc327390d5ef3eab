/* The sums of one grain, in the type REAL by the table DENSE.  Included by autoencoder_map.c, once for each type; hence
 * no guard.
 *
 * Rows go through the network in blocks, for the sake of the caches.  Every sum is one chain over the rows in their
 * order, so how many rows a block has changes no bit.  The squared error is kept in KERNEL_LANES lanes, by the index of
 * the value in the grain: a block starts at a row whose number is a multiple of KERNEL_LANES, hence at lane 0. */

/* What lies in the scratch of a thread.  The first four are of one block. */
typedef struct WORK {
    REAL *x;            /* rows x D: what goes in */
    REAL *hidden;       /* rows x H: the activations */
    REAL *output;       /* rows x D: the output, then its delta */
    REAL *delta;        /* rows x H of deltas, or, sparse, rows x 2H: deltas, then slopes */
    REAL *slope;        /* rows x H, when not sparse */
    REAL *encoder;      /* H x D: sum of delta x'; sparse: another H x D behind it with the sum of slope x' */
    REAL *encoder_bias; /* H: sum of deltas; sparse: H more, of slopes */
    REAL *decoder, *decoder_bias, *activity;
    size_t sums_bytes; /* of what lies from `encoder` on */
    size_t bytes;      /* of all */
} WORK;

static REAL *FUNCTION(cut)(unsigned char *memory, size_t *at, int64_t count)
{
    REAL *cut = memory ? (REAL *)(memory + *at) : NULL;
    *at += ((size_t)count * sizeof(REAL) + 63) / 64 * 64;
    return cut;
}

/* Divides the scratch; only measures it when memory is NULL. */
static WORK FUNCTION(divide)(unsigned char *memory, const autoencoder_own *own, int64_t rows)
{
    int64_t wide = autoencoder_is_sparse(own) ? 2 : 1;
    size_t at = 0;
    WORK work;
    work.x = FUNCTION(cut)(memory, &at, rows * own->columns);
    work.hidden = FUNCTION(cut)(memory, &at, rows * own->hidden);
    work.output = FUNCTION(cut)(memory, &at, rows * own->columns);
    work.delta = FUNCTION(cut)(memory, &at, rows * own->hidden * wide);
    work.slope = FUNCTION(cut)(memory, &at, wide == 1 ? rows * own->hidden : 0);
    size_t sums = at;
    work.encoder = FUNCTION(cut)(memory, &at, wide * own->hidden * own->columns);
    work.encoder_bias = FUNCTION(cut)(memory, &at, wide * own->hidden);
    work.decoder = FUNCTION(cut)(memory, &at, own->hidden * own->columns);
    work.decoder_bias = FUNCTION(cut)(memory, &at, own->columns);
    work.activity = FUNCTION(cut)(memory, &at, own->hidden);
    work.sums_bytes = at - sums;
    work.bytes = at;
    return work;
}

static size_t FUNCTION(scratch)(const autoencoder_own *own, int64_t rows)
{
    return FUNCTION(divide)(NULL, own, rows).bytes;
}

static void FUNCTION(repeat)(REAL *out, const REAL *row, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(out + i * columns, row, (size_t)columns * sizeof *row);
}

/* The rows as the network sees them: where they lie when they are so already. */
static const REAL *FUNCTION(take)(WORK *work, const DENSE *dense, const autoencoder_own *own, const shoal_grain *grain,
                                  int64_t first, int64_t rows)
{
    shoal_type type = grain->shape->type;
    const char *values = (const char *)grain->values + (size_t)(first * own->columns) * shoal_type_size(type);
    if (type == REAL_TYPE && own->scale == 1 && own->shift == 0)
        return (const REAL *)values;
    dense->convert(work->x, values, type, (REAL)own->scale, (REAL)own->shift, rows * own->columns);
    return work->x;
}

/* Activations of the hidden layer. */
static void FUNCTION(encode)(REAL *hidden, const DENSE *dense, const autoencoder_prepared *shared, const REAL *x,
                             kernel_activation activation, int64_t units, int64_t columns, int64_t rows)
{
    FUNCTION(repeat)(hidden, shared->encoder_bias, rows, units);
    dense->product(hidden, units, x, columns, 1, shared->encode, units, rows, units, columns);
    dense->activate(hidden, activation, rows * units);
}

/* Deltas of the hidden layer, before the sparsity's share, and its slopes. */
static void FUNCTION(go_back)(WORK *work, const DENSE *dense, const autoencoder_own *own,
                              const autoencoder_prepared *shared, int64_t rows)
{
    int64_t units = own->hidden, columns = own->columns, width = autoencoder_is_sparse(own) ? 2 * units : units;
    kernel_activation activation = (kernel_activation)own->activation;
    for (int64_t i = 0; i < rows; i++)
        memset(work->delta + i * width, 0, (size_t)units * sizeof(REAL));
    dense->product(work->delta, width, work->output, columns, 1, shared->back, units, rows, units, columns);
    if (width == units) {
        dense->slope(work->slope, work->hidden, activation, rows * units);
        dense->multiply(work->delta, work->slope, rows * units);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        REAL *delta = work->delta + i * width;
        dense->slope(delta + units, work->hidden + i * units, activation, units);
        dense->multiply(delta, delta + units, units);
    }
}

static void FUNCTION(add_block)(WORK *work, double lanes[KERNEL_LANES], const DENSE *dense, const autoencoder_own *own,
                                const autoencoder_prepared *shared, const REAL *x, int64_t rows)
{
    int64_t units = own->hidden, columns = own->columns, width = autoencoder_is_sparse(own) ? 2 * units : units;
    kernel_activation output = (kernel_activation)own->output;
    FUNCTION(encode)(work->hidden, dense, shared, x, (kernel_activation)own->activation, units, columns, rows);
    dense->add_rows(work->activity, work->hidden, units, rows, units);

    FUNCTION(repeat)(work->output, shared->decoder_bias, rows, columns);
    dense->product(work->output, columns, work->hidden, units, 1, shared->decode, columns, rows, columns, units);
    dense->activate(work->output, output, rows * columns);
    dense->miss(work->output, x, output, lanes, rows * columns);

    dense->product(work->decoder, columns, work->hidden, 1, units, work->output, columns, units, columns, rows);
    dense->add_rows(work->decoder_bias, work->output, columns, rows, columns);

    FUNCTION(go_back)(work, dense, own, shared, rows);
    dense->product(work->encoder, columns, work->delta, 1, width, x, columns, width, columns, rows);
    dense->add_rows(work->encoder_bias, work->delta, width, rows, width);
}

static void FUNCTION(hand_over)(gradient_sums *sums, const autoencoder_own *own, WORK *work,
                                const double lanes[KERNEL_LANES])
{
    autoencoder_groups groups = autoencoder_groups_of(own);
    int64_t weights = own->hidden * own->columns;
    double error = kernel_lanes_sum(lanes);
    gradient_add64(sums, groups.error, &error);
    GRADIENT_ADD(sums, groups.activity, work->activity);
    GRADIENT_ADD(sums, groups.encoder_bias, work->encoder_bias);
    GRADIENT_ADD(sums, groups.decoder_bias, work->decoder_bias);
    for (int64_t i = 0; own->tied && i < weights; i++)
        work->encoder[i] += work->decoder[i];
    GRADIENT_ADD(sums, groups.encoder, work->encoder);
    if (!own->tied)
        GRADIENT_ADD(sums, groups.decoder, work->decoder);
    if (autoencoder_is_sparse(own)) {
        GRADIENT_ADD(sums, groups.slopes, work->encoder_bias + own->hidden);
        GRADIENT_ADD(sums, groups.reach, work->encoder + weights);
    }
}

static void FUNCTION(map)(gradient_sums *sums, const DENSE *dense, const autoencoder_own *own,
                          const autoencoder_prepared *shared, const shoal_grain *grain, void *memory)
{
    WORK work = FUNCTION(divide)(memory, own, shared->block_rows);
    double lanes[KERNEL_LANES] = {0};
    memset(work.encoder, 0, work.sums_bytes);
    for (int64_t first = 0; first < grain->rows; first += shared->block_rows) {
        int64_t left = grain->rows - first, rows = left < shared->block_rows ? left : shared->block_rows;
        const REAL *x = FUNCTION(take)(&work, dense, own, grain, first, rows);
        FUNCTION(add_block)(&work, lanes, dense, own, shared, x, rows);
    }
    FUNCTION(hand_over)(sums, own, &work, lanes);
}

/* The hidden layer alone; `memory` has room for a block of rows. */
static void FUNCTION(encode_grain)(REAL *out, const DENSE *dense, const autoencoder_own *own,
                                   const autoencoder_prepared *shared, const shoal_grain *grain, void *memory)
{
    WORK work = {.x = memory};
    for (int64_t first = 0; first < grain->rows; first += shared->block_rows) {
        int64_t left = grain->rows - first, rows = left < shared->block_rows ? left : shared->block_rows;
        const REAL *x = FUNCTION(take)(&work, dense, own, grain, first, rows);
        FUNCTION(encode)
        (out + first * own->hidden, dense, shared, x, (kernel_activation)own->activation, own->hidden, own->columns,
         rows);
    }
}
