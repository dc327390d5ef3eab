/* The flat model: a header and arrays behind it, found again from the header alone. */
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/kmeans_internal.h"

/* Every section starts at a multiple of 64 bytes. */
static size_t round_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

enum { SECTIONS = 9 };

/* Sizes in the order of kmeans_view; false when they do not fit a size_t. */
static bool section_bytes(size_t bytes[SECTIONS], const kmeans_model *model)
{
    size_t centres, columns = (size_t)model->columns, wide = (size_t)model->wide;
    if (!base_multiply(&centres, (size_t)model->k, columns) || !base_multiply(&centres, centres, sizeof(double)) ||
        centres > SIZE_MAX / 8)
        return false;
    const size_t sizes[SECTIONS] = {columns * sizeof(double),
                                    columns * sizeof(double),
                                    wide * sizeof(int64_t),
                                    wide * sizeof(double),
                                    centres,
                                    (size_t)model->k * sizeof(double),
                                    (size_t)model->k * sizeof(double),
                                    model->runs > 1 ? centres : 0,
                                    (size_t)model->extra_bytes};
    for (int i = 0; i < SECTIONS; i++)
        bytes[i] = round_up(sizes[i]);
    return true;
}

kmeans_view kmeans_view_of(const shoal_round *round)
{
    kmeans_model *model = round->model;
    size_t bytes[SECTIONS];
    unsigned char *at[SECTIONS + 1];
    if (!section_bytes(bytes, model))
        SHOAL_BUG("a model that can't exist");
    at[0] = (unsigned char *)model + round_up(sizeof *model);
    for (int i = 0; i < SECTIONS; i++)
        at[i + 1] = at[i] + bytes[i];
    return (kmeans_view){.model = model,
                         .origin = (double *)at[0],
                         .inverse = (double *)at[1],
                         .wide_column = (int64_t *)at[2],
                         .wide_inverse = (double *)at[3],
                         .centres = (double *)at[4],
                         .drift = (double *)at[5],
                         .travel = (double *)at[6],
                         .best = model->runs > 1 ? (double *)at[7] : NULL,
                         .extra = at[8]};
}

int kmeans_round_first(shoal_round **out, const kmeans_model *header)
{
    size_t bytes[SECTIONS], total = round_up(sizeof *header);
    if (!section_bytes(bytes, header))
        return shoal_fail(SHOAL_MEMORY, "out of memory: %lld centres of %lld columns", (long long)header->k,
                          (long long)header->columns);
    for (int i = 0; i < SECTIONS; i++)
        total += bytes[i];
    int status = shoal_round_new(out, total);
    if (status == SHOAL_OK)
        memcpy((*out)->model, header, sizeof *header);
    return status;
}

static int copy_round(shoal_round **out, const shoal_round *from, const kmeans_model *header)
{
    kmeans_view old = kmeans_view_of(from);
    int status = kmeans_round_first(out, header);
    if (status < 0)
        return status;
    kmeans_view fresh = kmeans_view_of(*out);
    size_t columns = (size_t)header->columns, k = (size_t)header->k;
    memcpy(fresh.origin, old.origin, columns * sizeof(double));
    memcpy(fresh.inverse, old.inverse, columns * sizeof(double));
    if (header->wide == old.model->wide && header->wide > 0) {
        memcpy(fresh.wide_column, old.wide_column, (size_t)header->wide * sizeof(int64_t));
        memcpy(fresh.wide_inverse, old.wide_inverse, (size_t)header->wide * sizeof(double));
    }
    memcpy(fresh.centres, old.centres, k * columns * sizeof(double));
    memcpy(fresh.drift, old.drift, k * sizeof(double));
    memcpy(fresh.travel, old.travel, k * sizeof(double));
    if (fresh.best)
        memcpy(fresh.best, old.best, k * columns * sizeof(double));
    return SHOAL_OK;
}

int kmeans_round_from(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, size_t extra_bytes)
{
    kmeans_model header = *(const kmeans_model *)from->model;
    header.phase = phase;
    header.extra_bytes = (int64_t)extra_bytes;
    return copy_round(out, from, &header);
}

int kmeans_round_widen(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, int64_t wide)
{
    kmeans_model header = *(const kmeans_model *)from->model;
    header.phase = phase;
    header.extra_bytes = 0;
    header.wide = wide;
    return copy_round(out, from, &header);
}
