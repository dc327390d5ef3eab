/* The flat model: a header and arrays behind it, found again from the header alone. */
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/choose.h"

/* Every section starts at a multiple of 64 bytes. */
static size_t round_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

enum { SECTIONS = 11 };

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
                                    model->batch > 0 ? (size_t)model->k * sizeof(double) : 0,
                                    (size_t)model->trials * sizeof(kmeans_trial),
                                    (size_t)model->extra_bytes};
    for (int i = 0; i < SECTIONS; i++)
        bytes[i] = round_up(sizes[i]);
    return true;
}

bool kmeans_model_is_whole(const shoal_round *round)
{
    const kmeans_model *model = round->model;
    size_t bytes[SECTIONS], total = round_up(sizeof *model);
    bool whole = round->model_bytes >= total && model->k >= 0 && model->columns >= 0 && model->wide >= 0 &&
                 model->wide <= model->columns && model->extra_bytes >= 0 && model->trials >= 0 &&
                 model->trials <= BASE_COUNTS_MOST && (size_t)model->extra_bytes <= round->model_bytes &&
                 (size_t)model->k <= round->model_bytes && (size_t)model->columns <= round->model_bytes &&
                 section_bytes(bytes, model);
    for (int i = 0; whole && i < SECTIONS; i++)
        whole = base_add(&total, total, bytes[i]);
    return whole && total == round->model_bytes;
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
                         .seen = model->batch > 0 ? (double *)at[8] : NULL,
                         .trial = (kmeans_trial *)at[9],
                         .extra = at[10]};
}

/* The header is in place; all behind it holds anything. */
static int new_round(shoal_round **out, const kmeans_model *header)
{
    size_t bytes[SECTIONS], total = round_up(sizeof *header);
    if (!section_bytes(bytes, header))
        return shoal_fail(SHOAL_MEMORY, "out of memory: %lld centres of %lld columns", (long long)header->k,
                          (long long)header->columns);
    for (int i = 0; i < SECTIONS; i++)
        total += bytes[i];
    int status = shoal_round_new_unset(out, total);
    if (status < 0)
        return status;
    memset((*out)->model, 0, round_up(sizeof *header));
    memcpy((*out)->model, header, sizeof *header);
    return SHOAL_OK;
}

int kmeans_round_first(shoal_round **out, const kmeans_model *header)
{
    int status = new_round(out, header);
    if (status == SHOAL_OK) {
        unsigned char *behind = (unsigned char *)(*out)->model + round_up(sizeof *header);
        memset(behind, 0, (*out)->model_bytes - round_up(sizeof *header));
    }
    return status;
}

/* Fills a section from `from`, or with zeros where that is NULL, and with zeros up to where the next one starts:
 * models are compared byte by byte. */
static void fill_section(void *section, const void *from, size_t bytes)
{
    if (from && bytes)
        memcpy(section, from, bytes);
    size_t set = from ? bytes : 0;
    memset((unsigned char *)section + set, 0, round_up(bytes) - set);
}

/* What becomes of the centres and of what belongs to them. */
typedef enum copied_centres { CENTRES_COPIED, CENTRES_UNSET, CENTRES_ZERO } copied_centres;

static int copy_round(shoal_round **out, const shoal_round *from, const kmeans_model *header, copied_centres how)
{
    kmeans_view old = kmeans_view_of(from);
    int status = new_round(out, header);
    if (status < 0)
        return status;
    kmeans_view fresh = kmeans_view_of(*out);
    size_t columns = (size_t)header->columns * sizeof(double), k = (size_t)header->k, wide = (size_t)header->wide;
    bool same_wide = header->wide == old.model->wide, zero = how == CENTRES_ZERO;
    fill_section(fresh.origin, old.origin, columns);
    fill_section(fresh.inverse, old.inverse, columns);
    fill_section(fresh.wide_column, same_wide ? old.wide_column : NULL, wide * sizeof(int64_t));
    fill_section(fresh.wide_inverse, same_wide ? old.wide_inverse : NULL, wide * sizeof(double));
    if (how == CENTRES_UNSET)
        memset((unsigned char *)fresh.centres + k * columns, 0, round_up(k * columns) - k * columns);
    else
        fill_section(fresh.centres, zero ? NULL : old.centres, k * columns);
    fill_section(fresh.drift, zero ? NULL : old.drift, k * sizeof(double));
    fill_section(fresh.travel, zero ? NULL : old.travel, k * sizeof(double));
    if (fresh.best)
        fill_section(fresh.best, zero ? NULL : old.best, k * columns);
    if (fresh.seen)
        fill_section(fresh.seen, zero ? NULL : old.seen, k * sizeof(double));
    fill_section(fresh.trial, old.trial, (size_t)header->trials * sizeof *fresh.trial);
    fill_section(fresh.extra, NULL, (size_t)header->extra_bytes);
    for (int i = 0; i < from->keeps; i++)
        shoal_round_keep_on(*out, from, i);
    return SHOAL_OK;
}

int kmeans_round_from(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, size_t extra_bytes)
{
    kmeans_model header = *(const kmeans_model *)from->model;
    header.phase = phase;
    header.extra_bytes = (int64_t)extra_bytes;
    return copy_round(out, from, &header, CENTRES_COPIED);
}

int kmeans_round_resized(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, int64_t k)
{
    kmeans_model header = *(const kmeans_model *)from->model;
    header.phase = phase;
    header.extra_bytes = 0;
    header.k = k;
    return copy_round(out, from, &header, CENTRES_ZERO);
}

int kmeans_round_moved(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, size_t extra_bytes)
{
    kmeans_model header = *(const kmeans_model *)from->model;
    header.phase = phase;
    header.extra_bytes = (int64_t)extra_bytes;
    return copy_round(out, from, &header, CENTRES_UNSET);
}

int kmeans_round_widen(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, int64_t wide)
{
    kmeans_model header = *(const kmeans_model *)from->model;
    header.phase = phase;
    header.extra_bytes = 0;
    header.wide = wide;
    return copy_round(out, from, &header, CENTRES_COPIED);
}
