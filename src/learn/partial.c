/* Partials: cells that merge exactly.  See shoal/learn.h and partial.h. */
#include "learn/partial_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int64_t learn_cell_values(const shoal_cell *cell)
{
    switch (cell->kind) {
    case SHOAL_CELL_SUM:
    case SHOAL_CELL_MAX: return cell->count;
    case SHOAL_CELL_WIDE: return 2 * cell->count;
    case SHOAL_CELL_RECORD:
    case SHOAL_CELL_ROW: break;
    }
    return 0;
}

static const size_t TOO_MANY = SIZE_MAX / 2;

static bool is_summed(const shoal_cell *cell)
{
    return cell->kind == SHOAL_CELL_SUM || cell->kind == SHOAL_CELL_WIDE;
}

/* Gives the cells of one kind of merging their places from *used on, each at the beginning of a cache line. */
static void place_values(shoal_partial *partial, bool summed, size_t *used)
{
    for (int i = 0; i < partial->layout.cells; i++) {
        const shoal_cell *cell = &partial->layout.cell[i];
        if (cell->kind == SHOAL_CELL_RECORD || cell->kind == SHOAL_CELL_ROW || is_summed(cell) != summed)
            continue;
        if (partial->block)
            partial->values[i] = partial->block + *used;
        size_t lines = (size_t)learn_cell_values(cell) / 8 + 1;
        if (!base_add(used, *used, lines * 8))
            *used = TOO_MANY; /* layouts may come from elsewhere */
    }
}

static int make_values(shoal_partial *partial)
{
    size_t used = 0;
    place_values(partial, true, &used);
    partial->sums = used + LEARN_PARTIAL_WORDS;
    used = partial->sums;
    place_values(partial, false, &used);
    partial->maxima = used - partial->sums;
    int status = base_alloc(&partial->block, used, sizeof(int64_t), "the sums of a partial");
    used = 0;
    place_values(partial, true, &used);
    used = partial->sums;
    place_values(partial, false, &used);
    return status;
}

int64_t *learn_partial_sums(shoal_partial *partial, size_t *count)
{
    *count = partial->sums;
    return partial->block;
}

int64_t *learn_partial_maxima(shoal_partial *partial, size_t *count)
{
    *count = partial->maxima;
    return partial->block + partial->sums;
}

/* Memory of its own for the rows of a cell, or what the caller gave for it. */
static int make_rows(shoal_partial *partial, int cell, const shoal_row_memory *into)
{
    const shoal_cell *about = &partial->layout.cell[cell];
    const size_t rows = (size_t)partial->row_count;
    while (into && into->name && strcmp(into->name, about->name) != 0)
        into++;
    if (!into || !into->name)
        return base_alloc(&partial->rows[cell], rows, about->bytes, about->name);
    if (into->bytes / about->bytes != rows || into->bytes % about->bytes != 0)
        return shoal_fail(SHOAL_USAGE, "%s: memory of %zu bytes, but %zu rows take %zu bytes each", about->name,
                          into->bytes, rows, about->bytes);
    partial->rows[cell] = into->values;
    partial->rows_lent[cell] = true;
    return SHOAL_OK;
}

static int new_partial(shoal_partial **out, const shoal_layout *layout, int64_t first_row, int64_t rows,
                       shoal_partial *rows_of, const shoal_row_memory *into)
{
    shoal_partial *partial = NULL;
    int status = base_alloc(&partial, 1, sizeof *partial, "a partial");
    if (status < 0)
        return status;
    partial->layout = *layout;
    partial->first_row = first_row;
    partial->row_count = rows;
    if (rows_of)
        learn_partial_lend_rows(partial, rows_of);
    status = make_values(partial);
    for (int i = 0; status == SHOAL_OK && i < layout->cells; i++)
        if (layout->cell[i].kind == SHOAL_CELL_ROW && !rows_of)
            status = make_rows(partial, i, into);
    if (status < 0) {
        learn_partial_free(&partial);
        return status;
    }
    learn_partial_clear(partial, false);
    *out = partial;
    return SHOAL_OK;
}

int learn_partial_new(shoal_partial **out, const shoal_layout *layout, int64_t first_row, int64_t rows,
                      shoal_partial *rows_of)
{
    return new_partial(out, layout, first_row, rows, rows_of, NULL);
}

int learn_partial_new_into(shoal_partial **out, const shoal_layout *layout, int64_t first_row, int64_t rows,
                           const shoal_row_memory *into)
{
    return new_partial(out, layout, first_row, rows, NULL, into);
}

void learn_partial_free(shoal_partial **inout)
{
    shoal_partial *partial = *inout;
    if (!partial)
        return;
    for (int i = 0; i < SHOAL_CELLS_MOST; i++) {
        if (!partial->rows_lent[i])
            base_free(&partial->rows[i]);
        base_free(&partial->records[i].keys);
        base_free(&partial->records[i].bytes);
    }
    base_free(&partial->block);
    base_free(inout);
}

void learn_partial_lend_rows(shoal_partial *borrower, shoal_partial *owner)
{
    borrower->first_row = owner->first_row;
    borrower->row_count = owner->row_count;
    for (int i = 0; i < borrower->layout.cells; i++)
        if (borrower->layout.cell[i].kind == SHOAL_CELL_ROW) {
            borrower->rows[i] = owner->rows[i];
            borrower->rows_lent[i] = true;
        }
}

bool learn_layout_equal(const shoal_layout *a, const shoal_layout *b)
{
    if (a->cells != b->cells)
        return false;
    for (int i = 0; i < a->cells; i++) {
        const shoal_cell *x = &a->cell[i], *y = &b->cell[i];
        if (strcmp(x->name, y->name) != 0 || x->kind != y->kind || x->count != y->count || x->bytes != y->bytes ||
            x->carried != y->carried)
            return false;
    }
    return true;
}

void learn_partial_clear_records(shoal_partial *partial)
{
    for (int i = 0; i < partial->layout.cells; i++)
        partial->records[i].count = 0;
}

/* The neutral element of a cell: 0, or what no maximum is below. */
static void fill_neutral(int64_t *values, const shoal_cell *cell, int64_t count)
{
    if (cell->kind == SHOAL_CELL_MAX)
        for (int64_t i = 0; i < count; i++)
            values[i] = shoal_order_key(-INFINITY);
    else if (count > 0)
        memset(values, 0, (size_t)count * sizeof *values);
}

void learn_partial_clear(shoal_partial *partial, bool keep_carried)
{
    learn_partial_clear_records(partial);
    for (int i = 0; i < partial->layout.cells; i++) {
        const shoal_cell *cell = &partial->layout.cell[i];
        if (partial->values[i] && !(keep_carried && cell->carried))
            fill_neutral(partial->values[i], cell, learn_cell_values(cell));
    }
}

void learn_partial_merge_values(shoal_partial *into, const shoal_partial *from, int cell, int64_t first, int64_t count)
{
    if (count == 0)
        return; /* a cell without values may have no memory either */
    int64_t *to = into->values[cell] + first;
    const int64_t *add = from->values[cell] + first;
    if (into->layout.cell[cell].kind == SHOAL_CELL_MAX)
        for (int64_t i = 0; i < count; i++)
            to[i] = to[i] > add[i] ? to[i] : add[i];
    else
        for (int64_t i = 0; i < count; i++) /* without a sign, since sums that were read may be anything */
            to[i] = (int64_t)((uint64_t)to[i] + (uint64_t)add[i]);
}

/* In blocks that stay in the first cache while they are read, cleared and added. */
void learn_partial_gather_values(shoal_partial *into, shoal_partial *const *from, int froms, int cell, int64_t first,
                                 int64_t count, bool add)
{
    enum { BLOCK = 1024 };
    const shoal_cell *about = &into->layout.cell[cell];
    for (int64_t end = first + count; first < end; first += BLOCK) {
        int64_t size = end - first < BLOCK ? end - first : BLOCK;
        if (!add && froms > 0)
            memcpy(into->values[cell] + first, from[0]->values[cell] + first, (size_t)size * sizeof(int64_t));
        else if (!add)
            fill_neutral(into->values[cell] + first, about, size);
        for (int i = 0; i < froms; i++) {
            if (add || i > 0)
                learn_partial_merge_values(into, from[i], cell, first, size);
            fill_neutral(from[i]->values[cell] + first, about, size);
        }
    }
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

int learn_compare_keys(shoal_key a, shoal_key b)
{
    if (a.high != b.high)
        return a.high < b.high ? -1 : 1;
    return a.low < b.low ? -1 : a.low > b.low;
}

static int compare_indices(const void *a, const void *b, void *keys)
{
    const shoal_key *key = keys;
    return learn_compare_keys(key[*(const int64_t *)a], key[*(const int64_t *)b]);
}

/* Sorts by key, makes one of equal records, and keeps only the greatest `keep` (all when 0). */
static int settle_records(record_list *list, size_t bytes, int64_t keep)
{
    int64_t *order = NULL;
    record_list sorted = {0};
    int status = base_alloc(&order, (size_t)list->count, sizeof *order, "records");
    if (status == SHOAL_OK)
        status = base_alloc(&sorted.keys, (size_t)list->capacity, sizeof *sorted.keys, "records");
    if (status == SHOAL_OK)
        status = base_alloc(&sorted.bytes, (size_t)list->capacity, bytes, "records");
    if (status < 0)
        goto done;
    for (int64_t i = 0; i < list->count; i++)
        order[i] = i;
    qsort_r(order, (size_t)list->count, sizeof *order, compare_indices, list->keys);
    int64_t unique = 0;
    for (int64_t i = 0; i < list->count; i++) {
        int64_t at = order[i];
        if (unique > 0 && learn_compare_keys(list->keys[at], list->keys[order[unique - 1]]) == 0) {
            if (memcmp(list->bytes + (size_t)at * bytes, list->bytes + (size_t)order[unique - 1] * bytes, bytes) != 0) {
                status = shoal_fail(SHOAL_BROKEN, "two different records have one key");
                goto done;
            }
            continue;
        }
        order[unique++] = at;
    }
    int64_t first = keep > 0 && unique > keep ? unique - keep : 0;
    for (int64_t i = first; i < unique; i++) {
        sorted.keys[i - first] = list->keys[order[i]];
        memcpy(sorted.bytes + (size_t)(i - first) * bytes, list->bytes + (size_t)order[i] * bytes, bytes);
    }
    base_free(&list->keys);
    base_free(&list->bytes);
    list->keys = sorted.keys;
    list->bytes = sorted.bytes;
    list->count = unique - first;
    sorted = (record_list){0};
done:
    base_free(&order);
    base_free(&sorted.keys);
    base_free(&sorted.bytes);
    return status;
}

int learn_records_reserve(shoal_partial *partial, int cell, int64_t more)
{
    record_list *list = &partial->records[cell];
    size_t bytes = partial->layout.cell[cell].bytes;
    int64_t keep = partial->layout.cell[cell].count;
    if (more <= list->capacity - list->count)
        return SHOAL_OK;
    if (keep > 0 && list->count / 2 >= keep) {
        int status = settle_records(list, bytes, keep);
        if (status < 0 || more <= list->capacity - list->count)
            return status;
    }
    int64_t room = list->capacity ? list->capacity : 16;
    while (room - list->count < more)
        room *= 2;
    int status = base_grow(&list->keys, (size_t)list->count, (size_t)room, sizeof *list->keys, "records");
    if (status == SHOAL_OK)
        status = base_grow(&list->bytes, (size_t)list->count, (size_t)room, bytes, "records");
    if (status == SHOAL_OK)
        list->capacity = room;
    return status;
}

int shoal_partial_record(shoal_partial *partial, int cell, shoal_key key, const void *bytes)
{
    record_list *list = &partial->records[cell];
    size_t size = partial->layout.cell[cell].bytes;
    int status = learn_records_reserve(partial, cell, 1);
    if (status < 0)
        return status;
    list->keys[list->count] = key;
    if (size)
        memcpy(list->bytes + (size_t)list->count * size, bytes, size);
    list->count++;
    return SHOAL_OK;
}

int learn_partial_merge_records(shoal_partial *into, const shoal_partial *from)
{
    for (int i = 0; i < into->layout.cells; i++) {
        const record_list *list = &from->records[i];
        for (int64_t r = 0; r < list->count; r++) {
            int status =
                shoal_partial_record(into, i, list->keys[r], list->bytes + (size_t)r * into->layout.cell[i].bytes);
            if (status < 0)
                return status;
        }
    }
    return SHOAL_OK;
}

int learn_partial_settle(shoal_partial *partial)
{
    int status = SHOAL_OK;
    for (int i = 0; status == SHOAL_OK && i < partial->layout.cells; i++)
        if (partial->records[i].count > 0)
            status = settle_records(&partial->records[i], partial->layout.cell[i].bytes, partial->layout.cell[i].count);
    return status;
}

int64_t shoal_partial_records(const shoal_partial *partial, int cell)
{
    return partial->records[cell].count;
}

const void *shoal_partial_record_at(const shoal_partial *partial, int cell, int64_t index, shoal_key *key)
{
    const record_list *list = &partial->records[cell];
    if (key)
        *key = list->keys[index];
    return list->bytes + (size_t)index * partial->layout.cell[cell].bytes;
}

/* ---- access ------------------------------------------------------------------------------------------------------ */

const shoal_layout *shoal_partial_layout(const shoal_partial *partial)
{
    return &partial->layout;
}

int64_t *shoal_partial_values(shoal_partial *partial, int cell)
{
    return partial->values[cell];
}

const int64_t *shoal_partial_values_const(const shoal_partial *partial, int cell)
{
    return partial->values[cell];
}

void *shoal_partial_row(shoal_partial *partial, int cell, int64_t row)
{
    return partial->rows[cell] + (size_t)(row - partial->first_row) * partial->layout.cell[cell].bytes;
}

void *learn_partial_take_rows(shoal_partial *partial, int cell)
{
    void *rows = partial->rows[cell];
    partial->rows[cell] = NULL;
    return rows;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

int64_t shoal_order_key(double value)
{
    int64_t bits;
    value += 0.0; /* -0 becomes +0 */
    memcpy(&bits, &value, sizeof bits);
    return bits >= 0 ? bits : bits ^ INT64_MAX;
}

double shoal_max_value(int64_t key)
{
    double value;
    int64_t bits = key >= 0 ? key : key ^ INT64_MAX;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void shoal_max_raise(int64_t *values, int64_t index, double value)
{
    if (value != value)
        SHOAL_BUG("a maximum can't take NaN");
    int64_t key = shoal_order_key(value);
    if (key > values[index])
        values[index] = key;
}

int shoal_wide_bits(int64_t rows)
{
    int log2_rows = 0;
    while (log2_rows < 62 && (INT64_C(1) << log2_rows) < rows)
        log2_rows++;
    return 62 - log2_rows;
}

void shoal_wide_add(int64_t *digits, int64_t count, int64_t index, double value, int bits)
{
    const double base = (double)(INT64_C(1) << bits), most = base * base * (1 - 0x1p-53);
    value = value < most ? value : most; /* what is beyond, or no number, came from a lie: any number will do */
    value = value > -most ? value : -most;
    int64_t high = (int64_t)(value / base); /* rounded towards zero, so that -value has just the opposite digits */
    digits[count + index] = base_add_wrapping(digits[count + index], high);
    digits[index] = base_add_wrapping(digits[index], (int64_t)(value - (double)high * base));
}

double shoal_wide_value(const int64_t *digits, int64_t count, int64_t index, int bits)
{
    __int128 sum = (__int128)digits[count + index] * ((__int128)1 << bits) + digits[index];
    return (double)sum;
}
