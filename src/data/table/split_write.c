/* Writes the rows of a split, in random order and bounded memory.  See split.h.
 *
 * Rows are read in the order of the file and written in that of their keys.  As many keys as fit into memory with their
 * rows are taken at once, the lowest first; so data that are larger than memory are read several times from one end to
 * the other, and never row by row. */
#include <fenv.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "data_lines.h"
#include "split.h"

/* A row in memory. */
typedef struct held_row {
    uint64_t key;
    int64_t row;
    size_t at; /* in `bytes` */
    uint32_t size, part;
} held_row;

typedef struct dealing {
    data_split *split;
    data_cells cells; /* room for a line */
    void *scratch;    /* room for a row */
    data_buffer held; /* of held_row */
    data_buffer bytes;
    int64_t runs; /* how many times the data are read */
} dealing;

/* ---- into memory ------------------------------------------------------------------------------------------------- */

/* The part that a row is in, or none. */
static data_split_part *find_part(data_split *split, int64_t row, uint64_t key)
{
    const int64_t group = split->strata.count ? data_strata_group(&split->strata)[row] : 0;
    for (int i = 0; i < split->parts; i++) {
        data_split_part *part = &split->part[split->order.kept ? i : split->parts - 1 - i];
        if (data_order_before(part->border[group], key, row))
            return part;
    }
    return NULL;
}

static int read_part_row(const void **out, size_t *size, dealing *self, const data_split_part *part, int64_t row)
{
    shoal_data *data = self->split->data, *values = data_split_values(self->split);
    *size = data_row_bytes(values);
    if (!part->text)
        return shoal_data_read(out, values, row, 1, self->scratch);
    const char delimiter = part->delimiter ? part->delimiter : data->lines->delimiter;
    return data_lines_render((const char **)out, size, &self->cells, data, data_lines_row(data, row), delimiter);
}

static int hold_row(dealing *self, const data_split_part *part, int64_t row, uint64_t key)
{
    const void *bytes = NULL;
    held_row held = {.key = key, .row = row, .at = self->bytes.size, .part = (uint32_t)(part - self->split->part)};
    size_t size;
    int status = read_part_row(&bytes, &size, self, part, row);
    if (status == SHOAL_OK)
        status = data_buffer_extend(&self->bytes, size);
    if (status == SHOAL_OK)
        status = data_buffer_extend(&self->held, sizeof held);
    if (status < 0)
        return status;
    held.size = part->text ? (uint32_t)size : 0; /* a line is at most 64 MiB long */
    memcpy(self->bytes.bytes + self->bytes.size, bytes, size);
    memcpy(self->held.bytes + self->held.size, &held, sizeof held);
    self->bytes.size += size;
    self->held.size += sizeof held;
    return SHOAL_OK;
}

/* Which run a key belongs to: runs are of equally many keys. */
static int64_t run_of(const dealing *self, uint64_t key)
{
    return (int64_t)((unsigned __int128)key * (uint64_t)self->runs >> 64);
}

static int hold_rows(dealing *self, int64_t run)
{
    const data_order *order = &self->split->order;
    int status = SHOAL_OK;
    self->bytes.size = self->held.size = 0;
    for (int64_t row = 0; row < order->rows && status == SHOAL_OK; row++) {
        const uint64_t key = data_order_key(order, row);
        const data_split_part *part = run_of(self, key) == run ? find_part(self->split, row, key) : NULL;
        if (part)
            status = hold_row(self, part, row, key);
    }
    return status;
}

/* ---- out of memory ----------------------------------------------------------------------------------------------- */

static bool is_before(const held_row *a, const held_row *b)
{
    return a->key != b->key ? a->key < b->key : a->row < b->row;
}

/* Which of `places` a key is near to, of all keys of a run: random keys lie evenly. */
static size_t place_of(const dealing *self, uint64_t key, size_t places)
{
    const uint64_t within = key * (uint64_t)self->runs; /* its share of the run, in 64 bits */
    return (size_t)((unsigned __int128)within * places >> 64);
}

/* Notes the rows in the order of their keys: first about where each belongs, as one goes to each place on average, and
 * then by insertion. */
static int sort_held(size_t **out, const dealing *self, const held_row *held, size_t count)
{
    size_t *first = NULL, *order = NULL;
    int status = base_alloc(&first, count + 1, sizeof *first, "the order of rows");
    if (status == SHOAL_OK)
        status = base_alloc(&order, count, sizeof *order, "the order of rows");
    for (size_t i = 0; i < count && status == SHOAL_OK; i++)
        first[place_of(self, held[i].key, count) + 1]++;
    for (size_t i = 0; i < count && status == SHOAL_OK; i++)
        first[i + 1] += first[i];
    for (size_t i = 0; i < count && status == SHOAL_OK; i++)
        order[first[place_of(self, held[i].key, count)]++] = i;
    for (size_t i = 1; i < count && status == SHOAL_OK; i++) {
        const size_t moved = order[i];
        size_t to = i;
        for (; to > 0 && is_before(&held[moved], &held[order[to - 1]]); to--)
            order[to] = order[to - 1];
        order[to] = moved;
    }
    base_free(&first);
    *out = order;
    return status;
}

static int write_held(dealing *self)
{
    const held_row *held = (const held_row *)(const void *)self->held.bytes;
    const size_t count = self->held.size / sizeof *held;
    size_t *order = NULL;
    int status = self->split->order.kept ? SHOAL_OK : sort_held(&order, self, held, count);
    for (size_t i = 0; i < count && status == SHOAL_OK; i++) {
        const held_row *next = &held[order ? order[i] : i];
        const data_split_part *part = &self->split->part[next->part];
        const void *bytes = self->bytes.bytes + next->at;
        status =
            part->text ? data_writer_text(part->writer, bytes, next->size) : data_writer_rows(part->writer, bytes, 1);
    }
    base_free(&order);
    return status;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

/* What stands above the rows of text: a mark of UTF-8 and comments, when no column is left out, and the names. */
static int write_head(dealing *self, const data_split_part *part)
{
    const shoal_data *data = self->split->data;
    const struct data_lines *lines = data->lines;
    const char *bytes;
    size_t size;
    int status = lines->whole ? data_writer_text(part->writer, lines->text, lines->before) : SHOAL_OK;
    if (status < 0 || lines->header.size == 0)
        return status;
    status = data_lines_render(&bytes, &size, &self->cells, data, lines->header,
                               part->delimiter ? part->delimiter : lines->delimiter);
    return status == SHOAL_OK ? data_writer_text(part->writer, bytes, size) : status;
}

static int open_writers(dealing *self)
{
    data_split *split = self->split;
    int status = SHOAL_OK;
    for (int i = 0; i < split->parts && status == SHOAL_OK; i++) {
        data_split_part *part = &split->part[i];
        shoal_data *values = data_split_values(split);
        status = data_writer_open(&part->writer, &(data_writing){.path = part->path,
                                                                 .type = values->type,
                                                                 .rank = part->text ? 0 : part->rank,
                                                                 .shape = part->shape,
                                                                 .names = values});
        if (status == SHOAL_OK && part->text)
            status = write_head(self, part);
    }
    return status;
}

/* How many runs it takes so that the rows of one fit into the memory. */
static int64_t count_runs(const data_split *split)
{
    const int64_t given = split->request.reading.memory, memory = given > 0 ? given : base_memory_available() / 2;
    const double all = (double)shoal_data_rows(split->data);
    double bytes = 0;
    for (int i = 0; i < split->parts; i++) {
        const data_split_part *part = &split->part[i];
        const double row =
            part->text ? (double)split->data->lines->size / all : (double)data_row_bytes(data_split_values(split));
        bytes += (double)part->rows * (row + (double)(sizeof(held_row) + 2 * sizeof(size_t)));
    }
    const double runs = bytes / (double)(memory > 0 ? memory : 1) + 1;
    return runs < all ? (int64_t)runs : (int64_t)all;
}

static int deal_rows(dealing *self)
{
    data_split *split = self->split;
    int status = split->data->lines ? data_cells_init(&self->cells, split->data) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = base_alloc(&self->scratch, 1, data_row_bytes(data_split_values(split)), "a row");
    if (status == SHOAL_OK)
        status = open_writers(self);
    for (int64_t run = 0; run < self->runs && status == SHOAL_OK; run++) {
        status = hold_rows(self, run);
        if (status == SHOAL_OK)
            status = write_held(self);
    }
    return status == SHOAL_OK ? shoal_data_check(split->data) : status;
}

int data_split_write(data_split *split)
{
    dealing self = {.split = split, .runs = count_runs(split)};
    fenv_t callers; /* digits are chosen by rounding to nearest, whatever the caller does */
    data_buffer_init(&self.held, split->data->path, INT64_MAX);
    data_buffer_init(&self.bytes, split->data->path, INT64_MAX);
    fegetenv(&callers);
    base_default_arithmetic();
    int status = deal_rows(&self);
    for (int i = 0; i < split->parts && status == SHOAL_OK; i++)
        status = data_writer_finish(split->part[i].writer);
    for (int i = 0; i < split->parts && status == SHOAL_OK; i++)
        status = data_writer_commit(split->part[i].writer);
    fesetenv(&callers);
    data_buffer_release(&self.held);
    data_buffer_release(&self.bytes);
    data_cells_release(&self.cells);
    base_free(&self.scratch);
    return status;
}
