/* Rows of a batch, gathered.  See gather.h.
 *
 * A thread's memory is, each from a cache line on: values, memo, weights, numbers of rows. */
#include "engine/gather.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "learn/pick.h"

typedef struct gather_places {
    size_t memo, weights, row, bytes; /* where they begin, and where all ends */
} gather_places;

/* Adds `count` things of `each` bytes, up to the next cache line. */
static size_t behind(size_t at, size_t count, size_t each)
{
    size_t bytes;
    if (!base_multiply(&bytes, count, each) || !base_add(&bytes, bytes, at) || bytes > SIZE_MAX - 64)
        return SIZE_MAX - 64;
    return (bytes + 63) / 64 * 64;
}

static gather_places find_places(const shoal_layout *layout, const shoal_shape *shape, size_t rows)
{
    gather_places found = {.memo = behind(0, rows, (size_t)shape->columns * shoal_type_size(shape->type))};
    found.weights = behind(found.memo, rows, layout->memo_row_bytes);
    found.row = behind(found.weights, rows, shape->weighted ? sizeof(double) : 0);
    found.bytes = behind(found.row, rows, sizeof(int64_t));
    return found;
}

size_t engine_gather_bytes(const shoal_round *round, const shoal_shape *shape)
{
    const shoal_layout *layout = &round->layout;
    if (layout->pick.count == 0)
        return 0;
    return find_places(layout, shape, (size_t)learn_pick_group_rows(&layout->pick, shape)).bytes;
}

int engine_gather_reserve(engine_gather *gather, size_t bytes)
{
    if (bytes <= gather->bytes)
        return SHOAL_OK;
    engine_gather_free(gather);
    int status = base_alloc_unset(&gather->memory, bytes, 1, "the rows of a batch");
    gather->bytes = status == SHOAL_OK ? bytes : 0;
    return status;
}

void engine_gather_free(engine_gather *gather)
{
    base_free(&gather->memory);
    gather->bytes = 0;
}

/* The numbers of the rows at `count` places of a stratum's order. */
static void number_rows(int64_t *row, const shoal_pick *pick, const learn_stratum *of, int64_t stratum, int64_t from,
                        int64_t count)
{
    learn_order order = learn_order_of(pick->key, stratum, of->drawn);
    for (int64_t i = 0; i < count; i++)
        row[i] = of->first + learn_order_row(&order, from + i);
}

static int copy_values(unsigned char *to, const engine_gather_from *from, const int64_t *row, int64_t count,
                       size_t row_bytes, int thread)
{
    const engine_rows *rows = from->rows;
    const unsigned char *all = rows->resident;
    for (int64_t i = 0; i < count; i++) {
        const void *values = all ? all + (size_t)(row[i] - from->first_row) * row_bytes : NULL;
        int status = all ? SHOAL_OK : rows->read(rows->context, &values, row[i], 1, thread);
        if (status < 0)
            return status;
        memcpy(to + (size_t)i * row_bytes, values, row_bytes);
    }
    return SHOAL_OK;
}

int engine_gather_group(shoal_grain *grain, engine_gather *gather, const shoal_layout *layout,
                        const engine_gather_from *from, int64_t stratum, int64_t group, int thread)
{
    const shoal_shape *shape = grain->shape;
    const shoal_pick *pick = &layout->pick;
    const learn_stratum of = learn_stratum_at(shape, stratum);
    learn_places taken = learn_pick_places(pick, shape, &of);
    int64_t before = group * pick->group, rows = taken.count - before;
    grain->first_row = -1;
    grain->rows = rows < 0 ? 0 : rows < pick->group ? rows : pick->group;
    if (grain->rows == 0)
        return SHOAL_OK;
    const gather_places at = find_places(layout, shape, (size_t)learn_pick_group_rows(pick, shape));
    unsigned char *memory = gather->memory, *memo = memory + at.memo;
    double *weights = (double *)(memory + at.weights);
    int64_t *row = (int64_t *)(memory + at.row);
    const size_t row_bytes = (size_t)shape->columns * shoal_type_size(shape->type), each = layout->memo_row_bytes;
    number_rows(row, pick, &of, stratum, taken.from + before, grain->rows);
    for (int64_t i = 0; i < grain->rows && from->memo; i++)
        memcpy(memo + (size_t)i * each, from->memo + (size_t)(row[i] - from->first_row) * each, each);
    for (int64_t i = 0; i < grain->rows && from->rows->weights; i++)
        weights[i] = from->rows->weights[row[i] - from->first_row];
    grain->row = row;
    grain->values = memory;
    grain->memo = from->memo ? memo : NULL;
    grain->weights = from->rows->weights ? weights : NULL;
    return copy_values(memory, from, row, grain->rows, row_bytes, thread);
}
