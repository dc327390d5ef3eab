/* Packing centres for the kernels, with the constants of the error bounds (docs/learn/kmeans.md, "The bounds").
 *
 * Centres are sorted by drift, greatest first: a row that needs to look only at centres that moved far enough to
 * matter looks at the first few.  Of bitwise equal centres only the lowest is packed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/kmeans_internal.h"

/* Fewer centres than this are not worth quantising rows for. */
enum { BYTES_PAY_FROM = 24 };

static const double unit_roundoff = 0x1p-24;

/* Values beyond this make a pack `far`; until that is known they must not leave float32's range. */
static const double value_most = 0x1p60;

/* ---- copies ------------------------------------------------------------------------------------------------------ */

enum { HASH_LANES = 8 }; /* products that do not wait for each other */
static const uint64_t hash_factor = 0x9E3779B97F4A7C15;

static inline uint64_t hash_value(uint64_t lane, const double *value)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof bits);
    lane ^= bits;
    return (lane << 29 | lane >> 35) * hash_factor; /* rounded numbers have only high bits: they become low ones */
}

uint64_t kmeans_hash_row(const double *row, int64_t columns)
{
    uint64_t lane[HASH_LANES] = {1, 2, 3, 4, 5, 6, 7, 8}, hash = 0;
    int64_t k = 0;
    for (; k + HASH_LANES <= columns; k += HASH_LANES)
        for (int i = 0; i < HASH_LANES; i++)
            lane[i] = hash_value(lane[i], row + k + i);
    for (int i = 0; k + i < columns; i++)
        lane[i] = hash_value(lane[i], row + k + i);
    for (int i = 0; i < HASH_LANES; i++)
        hash = (hash ^ lane[i] ^ lane[i] >> 29) * hash_factor;
    return hash;
}

/* A table of the centres that are no copies, in which each looks for its equal from where its hash points. */
int kmeans_find_copies(int32_t *copy, const double *centres, const uint64_t *hash, int64_t count, int64_t columns)
{
    int32_t *table = NULL; /* 1 + the index; 0 where nobody is */
    size_t bytes = (size_t)columns * sizeof(double);
    int bits = 1;
    while (INT64_C(1) << bits < 2 * count)
        bits++;
    int status = base_alloc(&table, (size_t)1 << bits, sizeof *table, "a table of centres");
    if (status < 0)
        return status;
    for (int64_t j = 0; j < count; j++) {
        size_t at = (size_t)(hash[j] >> (64 - bits));
        while (table[at] && (hash[table[at] - 1] != hash[j] ||
                             memcmp(centres + (table[at] - 1) * columns, centres + j * columns, bytes) != 0))
            at = (at + 1) & (((size_t)1 << bits) - 1);
        if (!table[at])
            table[at] = (int32_t)j + 1;
        copy[j] = table[at] - 1;
    }
    base_free(&table);
    return SHOAL_OK;
}

typedef struct hashing {
    uint64_t *hash;
    const double *centres;
    int64_t columns;
} hashing;

static int hash_centre(void *context, int64_t j, int thread)
{
    const hashing *job = context;
    (void)thread;
    job->hash[j] = kmeans_hash_row(job->centres + j * job->columns, job->columns);
    return SHOAL_OK;
}

int kmeans_hash_and_find_copies(int32_t *copy, const double *centres, int64_t count, int64_t columns,
                                const shoal_crew *crew)
{
    hashing job = {.centres = centres, .columns = columns};
    int status = base_alloc_unset(&job.hash, (size_t)count, sizeof *job.hash, "hashes of centres");
    if (status == SHOAL_OK)
        status = crew->each(crew, count, hash_centre, &job);
    if (status == SHOAL_OK)
        status = kmeans_find_copies(copy, centres, job.hash, count, columns);
    base_free(&job.hash);
    return status;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

typedef struct place {
    double drift;
    int32_t index;
} place;

static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->drift != y->drift)
        return x->drift > y->drift ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Fills count, id, position and the drifts. */
static int order_centres(kmeans_pack *pack, const double *centres, const double *drift, const double *travel,
                         int64_t count, double scale, const shoal_crew *crew)
{
    place *places = NULL;
    int32_t *copy = NULL;
    int status = base_alloc(&places, (size_t)count, sizeof *places, "the order of centres");
    if (status == SHOAL_OK)
        status = base_alloc(&copy, (size_t)count, sizeof *copy, "copies of centres");
    if (status == SHOAL_OK)
        status = kmeans_hash_and_find_copies(copy, centres, count, pack->columns, crew);
    if (status < 0)
        goto done;
    pack->count = 0;
    for (int64_t j = 0; j < count; j++)
        if (copy[j] == j)
            places[pack->count++] = (place){drift ? kmeans_up(drift[j] * scale) : INFINITY, (int32_t)j};
    qsort(places, (size_t)pack->count, sizeof *places, compare_places);
    for (int64_t j = 0; j < count; j++) {
        pack->position[j] = -1;
        pack->drift_of[j] = INFINITY;
        double way = drift ? travel[j] * scale : 0;
        pack->travel_least[j] = (float)(way * (1 - 0x1p-22));
        pack->travel_most[j] = (float)(way * (1 + 0x1p-22));
    }
    for (int64_t p = 0; p < pack->count; p++) {
        pack->id[p] = places[p].index;
        pack->position[places[p].index] = (int32_t)p;
        pack->drift[p] = places[p].drift;
        pack->drift_of[places[p].index] = (float)(places[p].drift * (1 + 0x1p-22));
    }
    pack->reach = pack->count > 0 ? (float)(pack->drift[0] * (1 + 0x1p-22)) : 0;
done:
    base_free(&places);
    base_free(&copy);
    return status;
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

typedef struct packing {
    kmeans_pack *pack;
    const kernel_set *kernel;
    const double *centres;
    const kmeans_view *view;
    double *norms;     /* one a place */
    double *workspace; /* three rows a thread */
} packing;

/* Sums are taken in lanes, so that vectors hold them. */
enum { LANES = 8 };

/* Centred and scaled, in float64. */
static void centre_row(double *restrict out, const packing *job, int64_t place)
{
    const double *restrict centre = job->centres + (int64_t)job->pack->id[place] * job->pack->columns;
    const double *restrict origin = job->view->origin;
    double scale = job->view->model->scale;
    for (int64_t k = 0; k < job->pack->columns; k++) {
        double value = (centre[k] - origin[k]) * scale;
        value = value < value_most ? value : value_most;
        out[k] = value > -value_most ? value : -value_most;
    }
}

static double add_lanes(const double lane[LANES])
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static double product(const double *restrict a, const double *restrict b, int64_t columns)
{
    double lane[LANES] = {0};
    int64_t k = 0;
    for (; k + LANES <= columns; k += LANES)
        for (int i = 0; i < LANES; i++)
            lane[i] += a[k + i] * b[k + i];
    for (; k < columns; k++)
        lane[k % LANES] += a[k] * b[k];
    return add_lanes(lane);
}

static double greatest(const double *values, int64_t columns)
{
    double lane[LANES] = {0}, most = 0;
    int64_t k = 0;
    for (; k + LANES <= columns; k += LANES)
        for (int i = 0; i < LANES; i++) {
            double size = fabs(values[k + i]);
            lane[i] = lane[i] > size ? lane[i] : size;
        }
    for (; k < columns; k++)
        lane[k % LANES] = fmax(lane[k % LANES], fabs(values[k]));
    for (int i = 0; i < LANES; i++)
        most = fmax(most, lane[i]);
    return most;
}

/* Whole numbers near values / step, and what they are off, squared and added.  Which ones they are is no matter:
 * what they are off is known.  Numbers below 2^51 are rounded by adding and taking away 3 * 2^51. */
static double quantise(double *restrict whole, double *restrict off, const double *restrict values, int64_t columns,
                       double step, double most)
{
    double inverse = step > 0 ? 1 / step : 0;
    for (int64_t k = 0; k < columns; k++) {
        double v = values[k] * inverse;
        v = v < most ? v : most;
        v = v > -most ? v : -most;
        whole[k] = (v + 0x1.8p52) - 0x1.8p52;
        off[k] = values[k] - whole[k] * step;
    }
    return product(off, off, columns);
}

static void store_bytes(int8_t *restrict out, const double *restrict whole, int64_t columns, int64_t width)
{
    int64_t k = 0;
    for (; k + 4 <= columns; k += 4) {
        int8_t four[4];
        for (int i = 0; i < 4; i++)
            four[i] = (int8_t)whole[k + i];
        memcpy(out + k * width, four, sizeof four);
    }
    for (; k < columns; k++)
        out[k / 4 * 4 * width + k % 4] = (int8_t)whole[k];
}

static double sum_of(const double *values, int64_t columns)
{
    double lane[LANES] = {0};
    int64_t k = 0;
    for (; k + LANES <= columns; k += LANES)
        for (int i = 0; i < LANES; i++)
            lane[i] += values[k + i];
    for (; k < columns; k++)
        lane[k % LANES] += values[k];
    return add_lanes(lane);
}

static void pack_bytes(const packing *job, int64_t place, const double *values, double *workspace, double norm)
{
    kmeans_pack *pack = job->pack;
    int64_t columns = pack->columns, groups = (columns + 3) / 4, width = pack->panel;
    double most = greatest(values, columns), limit = job->kernel->byte_centre_most;
    float step = most >= 0x1p-100 ? (float)(most / limit) : 0;
    double *whole = workspace, *off = workspace + columns;
    double residual = quantise(whole, off, values, columns, step, limit);
    double rounded = product(whole, whole, columns) * step * step;
    store_bytes(pack->byte_panels + (place / width) * width * groups * 4 + place % width * 4, whole, columns, width);
    /* 2^-20 is 16 units of float32: what score_bytes rounds away, the rounding of z, and these sums. */
    pack->byte_step[place] = step;
    double bias = norm * norm / 2;
    if (pack->direct) { /* x.v stands for (x - origin).v: what is not whole of origin.v goes into the bias */
        double from_origin = product(whole, job->view->origin, columns);
        pack->byte_offset[place] = (int32_t)floor(from_origin);
        bias += job->view->model->scale * step * (from_origin - floor(from_origin));
    } else {
        pack->byte_offset[place] = job->kernel->byte_row_excess * (int32_t)sum_of(whole, columns);
    }
    pack->byte_bias[place] = (float)(bias * (1 - 0x1p-20));
    pack->byte_residual[place] = (float)(sqrt(residual) * (1 + 0x1p-20) + 0x1p-20 * norm);
    pack->byte_norm[place] = (float)(sqrt(rounded) * (1 + 0x1p-20));
}

static void pack_float(const packing *job, int64_t place)
{
    kmeans_pack *pack = job->pack;
    const float *row = pack->rows + place * pack->columns;
    float *out = pack->panels + (place / pack->panel) * pack->panel * pack->columns + place % pack->panel;
    for (int64_t k = 0; k < pack->columns; k++)
        out[k * pack->panel] = row[k];
}

static int pack_place(void *context, int64_t place, int thread)
{
    const packing *job = context;
    kmeans_pack *pack = job->pack;
    float *row = pack->rows + place * pack->columns;
    double *values = job->workspace + 3 * pack->columns * thread;
    centre_row(values, job, place);
    double square = product(values, values, pack->columns);
    for (int64_t k = 0; k < pack->columns; k++)
        row[k] = (float)values[k];
    job->norms[place] = sqrt(square);
    pack->bias[place] = (float)(square / 2);
    if (pack->bytes)
        pack_bytes(job, place, values, values + pack->columns, sqrt(square));
    else if (!pack->few)
        pack_float(job, place);
    return SHOAL_OK;
}

/* Places beyond the last centre: no row ever finds them near. */
static void pad(kmeans_pack *pack)
{
    for (int64_t p = pack->count; p < pack->padded; p++) {
        pack->id[p] = 0;
        pack->bias[p] = INFINITY;
        if (pack->bytes) {
            pack->byte_bias[p] = INFINITY;
            pack->byte_step[p] = pack->byte_residual[p] = pack->byte_norm[p] = 0;
            pack->byte_offset[p] = 0;
        }
    }
    for (int64_t p = pack->count; p <= pack->padded; p++)
        pack->drift[p] = 0;
    int64_t filled = pack->count / pack->panel * pack->panel; /* whole panels have no padding to clear */
    size_t left = (size_t)(pack->padded - filled);
    if (pack->bytes)
        memset(pack->byte_panels + filled * ((pack->columns + 3) / 4) * 4, 0,
               left * (size_t)((pack->columns + 3) / 4 * 4));
    else if (!pack->few)
        memset(pack->panels + filled * pack->columns, 0, left * (size_t)pack->columns * sizeof(float));
}

/* The bounds of docs/learn/kmeans.md, "The bounds": (2) rounding of z, c and the products; (3) of the bias;
 * (4) the definition's own error. */
static void set_error_bounds(kmeans_pack *pack, const double *norms, bool unit)
{
    const double u = unit_roundoff;
    double columns = (double)pack->columns;
    double products = (double)kernel_roundings(pack->columns) * u,
           sums = ((pack->few ? columns : columns / KERNEL_CHAIN) + 24) * u;
    double definition = (columns / 8 + 16) * (unit ? 0x1p-51 : 0x1p-53);
    pack->norm_most = 0;
    for (int64_t p = 0; p < pack->count; p++)
        pack->norm_most = fmax(pack->norm_most, norms[p]);
    pack->norm_most *= 1 + 0x1p-20;
    double most = pack->norm_most;
    pack->far = !(most < 0x1p59);
    pack->error_product = (products / (1 - products) * (1 + 4 * u) + 2.01 * u) * most * (1 + 0x1p-20);
    pack->error_constant = (sums / (1 - sums) / 2 + definition) * most * most * (1 + 0x1p-20) + columns * 0x1p-140;
    pack->error_square = definition * (1 + 0x1p-20);
}

static int reserve_pack(kmeans_pack *pack, int64_t count, int64_t columns)
{
    int64_t room = (count + KERNEL_TILE_CENTRES_MOST) / KERNEL_TILE_CENTRES_MOST * KERNEL_TILE_CENTRES_MOST + 16;
    if (pack->capacity >= room && pack->columns == columns)
        return SHOAL_OK;
    bool prefers_bytes = pack->prefers_bytes;
    kmeans_pack_release(pack);
    pack->prefers_bytes = prefers_bytes;
    size_t n = (size_t)room;
    int status = base_alloc(&pack->id, n, sizeof *pack->id, "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->position, n, sizeof *pack->position, "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->drift, n + 1, sizeof *pack->drift, "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->drift_of, n, sizeof *pack->drift_of, "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->travel_least, n, sizeof *pack->travel_least, "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->travel_most, n, sizeof *pack->travel_most, "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->bias, n, sizeof *pack->bias, "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->rows, n, (size_t)columns * sizeof *pack->rows, "packed centres");
    if (status == SHOAL_OK) {
        pack->capacity = room;
        pack->columns = columns;
    }
    return status;
}

static int reserve_panels(kmeans_pack *pack)
{
    size_t n = (size_t)pack->capacity;
    int status = SHOAL_OK;
    if (!pack->bytes && !pack->few && !pack->panels)
        status = base_alloc(&pack->panels, n, (size_t)pack->columns * sizeof *pack->panels, "packed centres");
    if (!pack->bytes || pack->byte_panels)
        return status;
    status = base_alloc(&pack->byte_panels, n, (size_t)(pack->columns + 3) / 4 * 4, "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->byte_bias, n, sizeof(float), "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->byte_step, n, sizeof(float), "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->byte_residual, n, sizeof(float), "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->byte_norm, n, sizeof(float), "packed centres");
    if (status == SHOAL_OK)
        status = base_alloc(&pack->byte_offset, n, sizeof(int32_t), "packed centres");
    return status;
}

static void choose_form(kmeans_pack *pack, const kernel_set *kernel, int64_t count, shoal_type type, bool unit)
{
    pack->few = pack->columns <= KERNEL_FEW_COLUMNS;
    pack->bytes = !pack->few && kernel->byte_tile_rows > 0 && (pack->prefers_bytes || count >= BYTES_PAY_FROM) &&
                  pack->columns <= KERNEL_BYTE_COLUMNS_MOST;
    pack->direct = pack->bytes && !pack->prefers_bytes && !unit && kernel->takes_all_bytes &&
                   (type == SHOAL_UINT8 || type == SHOAL_BOOL);
    pack->panel = pack->few ? 16 : pack->bytes ? kernel->byte_tile_centres : kernel->tile_centres;
}

int kmeans_pack_fill(kmeans_pack *pack, const kernel_set *kernel, const double *centres, const double *drift,
                     int64_t count, const kmeans_view *view, shoal_type type, const shoal_crew *crew)
{
    packing job = {.pack = pack, .kernel = kernel, .centres = centres, .view = view};
    int status = reserve_pack(pack, count, view->model->columns);
    if (status < 0)
        return status;
    choose_form(pack, kernel, count, type, kmeans_is_cosine(view->model));
    if ((status = reserve_panels(pack)) < 0)
        return status;
    if ((status = order_centres(pack, centres, drift, view->travel, count, view->model->scale, crew)) < 0)
        return status;
    int64_t multiple = pack->panel > 16 ? pack->panel : 16;
    pack->padded = (pack->count + multiple - 1) / multiple * multiple;
    status = base_alloc_unset(&job.norms, (size_t)pack->count, sizeof *job.norms, "norms of centres");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&job.workspace, (size_t)crew->threads, 3 * (size_t)pack->columns * sizeof(double),
                                  "packed centres");
    if (status == SHOAL_OK) {
        pad(pack);
        status = crew->each(crew, pack->count, pack_place, &job);
    }
    if (status == SHOAL_OK)
        set_error_bounds(pack, job.norms, kmeans_is_cosine(view->model));
    base_free(&job.norms);
    base_free(&job.workspace);
    return status;
}

kernel_byte_centres kmeans_pack_bytes(const kmeans_pack *pack)
{
    return (kernel_byte_centres){.panels = pack->byte_panels,
                                 .bias = pack->byte_bias,
                                 .step = pack->byte_step,
                                 .offset = pack->byte_offset,
                                 .residual = pack->byte_residual,
                                 .norm = pack->byte_norm};
}

void kmeans_pack_release(kmeans_pack *pack)
{
    base_free(&pack->id);
    base_free(&pack->position);
    base_free(&pack->drift);
    base_free(&pack->drift_of);
    base_free(&pack->travel_least);
    base_free(&pack->travel_most);
    base_free(&pack->bias);
    base_free(&pack->rows);
    base_free(&pack->panels);
    base_free(&pack->byte_panels);
    base_free(&pack->byte_bias);
    base_free(&pack->byte_step);
    base_free(&pack->byte_residual);
    base_free(&pack->byte_norm);
    base_free(&pack->byte_offset);
    *pack = (kmeans_pack){0};
}
