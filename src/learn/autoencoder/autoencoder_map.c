/* The work of a round: value and gradient sums of the rows of a grain, and the weights as the products want them.  The
 * arithmetic is in autoencoder_grain.h, which is compiled for float32 and for float64. */
#include <string.h>

#include "base/memory.h"
#include "learn/autoencoder/autoencoder_internal.h"

#define REAL float
#define REAL_TYPE SHOAL_FLOAT32
#define DENSE kernel_dense32
#define WORK work32
#define FUNCTION(name) name##32
#define GRADIENT_ADD gradient_add32
#include "learn/autoencoder/autoencoder_grain.h"
#undef REAL
#undef REAL_TYPE
#undef DENSE
#undef WORK
#undef FUNCTION
#undef GRADIENT_ADD

#define REAL double
#define REAL_TYPE SHOAL_FLOAT64
#define DENSE kernel_dense64
#define WORK work64
#define FUNCTION(name) name##64
#define GRADIENT_ADD gradient_add64
#include "learn/autoencoder/autoencoder_grain.h"
#undef REAL
#undef REAL_TYPE
#undef DENSE
#undef WORK
#undef FUNCTION
#undef GRADIENT_ADD

/* ---- what rounds share ------------------------------------------------------------------------------------------- */

enum { BLOCK_ROWS_MOST = 256, TRANSPOSE_TILE = 16 };

/* Blocks of rows whose arrays stay in the second cache, within reason. */
int64_t autoencoder_block_rows(int64_t hidden, int64_t columns, const shoal_shape *shape)
{
    int64_t widest = columns > 2 * hidden ? columns : 2 * hidden, most = BLOCK_ROWS_MOST;
    while (most > 2 * KERNEL_LANES && most * widest > (int64_t)1 << 19)
        most /= 2;
    int64_t grain = (shape->rows_per_grain + KERNEL_LANES - 1) / KERNEL_LANES * KERNEL_LANES;
    return grain < most ? grain : most;
}

/* In tiles, so that both sides are read and written a cache line at a time. */
#define DEFINE_TRANSPOSE(NAME, TYPE)                                                                                   \
    static void NAME(TYPE *out, const double *values, int64_t rows, int64_t columns)                                   \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r += TRANSPOSE_TILE)                                                             \
            for (int64_t c = 0; c < columns; c += TRANSPOSE_TILE)                                                      \
                for (int64_t j = c; j < c + TRANSPOSE_TILE && j < columns; j++)                                        \
                    for (int64_t i = r; i < r + TRANSPOSE_TILE && i < rows; i++)                                       \
                        out[j * rows + i] = (TYPE)values[i * columns + j];                                             \
    }
DEFINE_TRANSPOSE(transpose32, float)
DEFINE_TRANSPOSE(transpose64, double)

void autoencoder_transpose(void *out, const double *values, int64_t rows, int64_t columns, bool wide)
{
    if (wide)
        transpose64(out, values, rows, columns);
    else
        transpose32(out, values, rows, columns);
}

void autoencoder_narrow(void *out, const double *values, int64_t count, bool wide)
{
    if (wide) {
        memcpy(out, values, (size_t)count * sizeof *values);
        return;
    }
    float *narrow = out;
    for (int64_t i = 0; i < count; i++)
        narrow[i] = (float)values[i];
}

void autoencoder_forget(void **inout)
{
    autoencoder_prepared *shared = *inout;
    if (!shared)
        return;
    if (shared->back != shared->encode)
        base_free(&shared->back);
    base_free(&shared->encode);
    base_free(&shared->decode);
    base_free(&shared->encoder_bias);
    base_free(&shared->decoder_bias);
    base_free(inout);
}

static int make_shared(void **inout, const autoencoder_own *own, const shoal_shape *shape, const shoal_crew *crew)
{
    size_t size = own->wide ? sizeof(double) : sizeof(float), weights = (size_t)(own->hidden * own->columns);
    autoencoder_prepared *shared = NULL;
    int status = base_alloc(&shared, 1, sizeof *shared, "what rounds share");
    if (status < 0)
        return status;
    shared->hidden = own->hidden;
    shared->wide = own->wide;
    shared->tied = own->tied;
    shared->block_rows = autoencoder_block_rows(own->hidden, own->columns, shape);
    status = kernel_choose(&shared->kernel, crew->kernel);
    if (status == SHOAL_OK)
        status = base_alloc(&shared->encode, weights, size, "the encoder");
    if (status == SHOAL_OK)
        status = base_alloc(&shared->decode, weights, size, "the decoder");
    if (status == SHOAL_OK && own->tied)
        shared->back = shared->encode;
    else if (status == SHOAL_OK)
        status = base_alloc(&shared->back, weights, size, "the decoder");
    if (status == SHOAL_OK)
        status = base_alloc(&shared->encoder_bias, (size_t)own->hidden, size, "the encoder's bias");
    if (status == SHOAL_OK)
        status = base_alloc(&shared->decoder_bias, (size_t)own->columns, size, "the decoder's bias");
    if (status < 0)
        autoencoder_forget((void **)&shared);
    *inout = shared;
    return status;
}

int autoencoder_prepare(void **inout, const void *untyped, const double *x, const shoal_shape *shape,
                        const shoal_crew *crew)
{
    const autoencoder_own *own = untyped;
    autoencoder_place place = autoencoder_place_of(own);
    autoencoder_prepared *shared = *inout;
    /* Rounds of one run are alike, but they may come from a store. */
    if (shared && (shared->hidden != own->hidden || shared->wide != own->wide || shared->tied != own->tied))
        autoencoder_forget(inout);
    int status = *inout ? SHOAL_OK : make_shared(inout, own, shape, crew);
    if (status < 0)
        return status;
    shared = *inout;
    autoencoder_transpose(shared->encode, x + place.encoder, own->hidden, own->columns, own->wide);
    autoencoder_narrow(shared->decode, x + place.decoder, own->hidden * own->columns, own->wide);
    if (!own->tied)
        autoencoder_transpose(shared->back, x + place.decoder, own->hidden, own->columns, own->wide);
    autoencoder_narrow(shared->encoder_bias, x + place.encoder_bias, own->hidden, own->wide);
    autoencoder_narrow(shared->decoder_bias, x + place.decoder_bias, own->columns, own->wide);
    return SHOAL_OK;
}

/* ---- a grain ----------------------------------------------------------------------------------------------------- */

size_t autoencoder_scratch_bytes(const void *untyped, const void *prepared, const shoal_shape *shape)
{
    const autoencoder_own *own = untyped;
    const autoencoder_prepared *shared = prepared;
    (void)shape;
    return own->wide ? scratch64(own, shared->block_rows) : scratch32(own, shared->block_rows);
}

int autoencoder_map(gradient_sums *sums, const void *untyped, const void *prepared, const shoal_grain *grain,
                    const shoal_scratch *scratch)
{
    const autoencoder_own *own = untyped;
    const autoencoder_prepared *shared = prepared;
    if (own->wide)
        map64(sums, &shared->kernel->dense64, own, shared, grain, scratch->memory);
    else
        map32(sums, &shared->kernel->dense32, own, shared, grain, scratch->memory);
    return SHOAL_OK;
}

size_t autoencoder_encode_scratch(const autoencoder_own *own, const autoencoder_prepared *shared)
{
    return (size_t)(shared->block_rows * own->columns) * (own->wide ? sizeof(double) : sizeof(float));
}

void autoencoder_encode(void *out, const autoencoder_own *own, const autoencoder_prepared *shared,
                        const shoal_grain *grain, void *memory)
{
    if (own->wide)
        encode_grain64(out, &shared->kernel->dense64, own, shared, grain, memory);
    else
        encode_grain32(out, &shared->kernel->dense32, own, shared, grain, memory);
}
