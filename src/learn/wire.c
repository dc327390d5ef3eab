/* Rounds, partials and results as bytes.  See wire.h.
 *
 *     round    number, phase, step, steps, k, objective, change, layout, what it keeps (born, bytes, check of each),
 *              model
 *     layout   cells; for each: name, kind, count, bytes, carried; then memo_row_bytes, carry_from, writes_memo, the
 *              pick (key, from, count, group), part
 *     partial  hash of the layout, first row, rows; for each cell: values, or records (how many, keys, bytes), or rows
 *  result   incomplete; tensors; for each: name, type, rank, shape, size, values; numbers; for each: name, value, flags
 *
 * Values are written and merged as whole arrays.  Models, records and rows are the learner's own bytes and travel as
 * they are; machines whose numbers lie otherwise in memory have another kernel_fingerprint. */
#include "learn/wire.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#include "base/crc.h"
#include "base/memory.h"
#include "learn/partial_internal.h"

/* ---- small pieces ------------------------------------------------------------------------------------------------ */

static bool is_little_endian(void)
{
    return htole32(1) == 1;
}

/* `count` numbers of `size` bytes between memory and little-endian bytes, either way. */
static void copy_little(void *to, const void *from, size_t count, size_t size)
{
    unsigned char *out = to;
    const unsigned char *in = from;
    if (is_little_endian()) {
        if (count > 0 && size > 0)
            memcpy(to, from, count * size);
        return;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < size; b++)
            out[i * size + b] = in[i * size + size - 1 - b];
}

static void write_numbers(base_writer *out, const void *numbers, size_t count, size_t size)
{
    void *to = base_write_room(out, count * size);
    if (to)
        copy_little(to, numbers, count, size);
}

static bool read_flag(base_reader *in)
{
    uint8_t flag = base_read_u8(in);
    in->bad |= flag > 1;
    return flag == 1;
}

/* A size of what follows: never more than there is. */
static size_t read_size(base_reader *in)
{
    uint64_t size = base_read_u64(in);
    in->bad |= size > in->left;
    return in->bad ? 0 : (size_t)size;
}

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

static void write_layout(base_writer *out, const shoal_layout *layout)
{
    base_write_u8(out, (uint8_t)layout->cells);
    for (int i = 0; i < layout->cells; i++) {
        const shoal_cell *cell = &layout->cell[i];
        base_write_text(out, cell->name);
        base_write_u8(out, (uint8_t)cell->kind);
        base_write_i64(out, cell->count);
        base_write_u64(out, cell->bytes);
        base_write_u8(out, cell->carried);
    }
    base_write_u64(out, layout->memo_row_bytes);
    base_write_i64(out, layout->carry_from);
    base_write_u8(out, layout->writes_memo);
    base_write_u64(out, layout->pick.key);
    base_write_i64(out, layout->pick.from);
    base_write_i64(out, layout->pick.count);
    base_write_i64(out, layout->pick.group);
    base_write_u8(out, (uint8_t)layout->part);
}

static void read_cell(shoal_cell *cell, base_reader *in)
{
    base_read_text(in, cell->name, sizeof cell->name);
    uint8_t kind = base_read_u8(in);
    cell->count = base_read_i64(in);
    cell->bytes = base_read_u64(in);
    cell->carried = read_flag(in);
    bool is_sum = kind == SHOAL_CELL_SUM || kind == SHOAL_CELL_WIDE;
    /* What a cell needs must be a number of bytes that can be counted, two digits an entry included. */
    in->bad |= kind > SHOAL_CELL_ROW || cell->count < 0 || cell->count > INT64_MAX / 16 || cell->bytes > INT64_MAX / 16;
    in->bad |= cell->carried && !is_sum;
    cell->kind = (shoal_cell_kind)kind;
}

static void read_layout(shoal_layout *layout, base_reader *in)
{
    uint8_t cells = base_read_u8(in);
    in->bad |= cells > SHOAL_CELLS_MOST;
    for (int i = 0; !in->bad && i < cells; i++)
        read_cell(&layout->cell[i], in);
    layout->cells = in->bad ? 0 : cells;
    layout->memo_row_bytes = base_read_u64(in);
    layout->carry_from = base_read_i64(in);
    layout->writes_memo = read_flag(in);
    layout->pick.key = base_read_u64(in);
    layout->pick.from = base_read_i64(in);
    layout->pick.count = base_read_i64(in);
    layout->pick.group = base_read_i64(in);
    uint8_t part = base_read_u8(in);
    layout->part = (shoal_part)part;
    in->bad |= part > SHOAL_HELD;
    in->bad |= layout->memo_row_bytes > INT64_MAX / 16 || layout->carry_from < -1;
}

uint32_t learn_layout_hash(const shoal_layout *layout)
{
    uint32_t crc = 0;
    for (int i = 0; i < layout->cells; i++) {
        const shoal_cell *cell = &layout->cell[i];
        uint64_t fields[] = {htole64(cell->kind), htole64((uint64_t)cell->count), htole64(cell->bytes),
                             htole64(cell->carried)};
        crc = base_crc32c(crc, cell->name, strlen(cell->name) + 1);
        crc = base_crc32c(crc, fields, sizeof fields);
    }
    return crc;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void write_kept(base_writer *out, const shoal_round *round)
{
    base_write_u8(out, (uint8_t)round->keeps);
    for (int i = 0; i < round->keeps; i++) {
        base_write_i64(out, round->kept[i]->born);
        base_write_u64(out, round->kept[i]->bytes);
        base_write_u32(out, round->kept[i]->check);
    }
}

/* What a round keeps; values are fetched by who needs them. */
static void read_kept(shoal_kept *kept, base_reader *in, int64_t after, int64_t number)
{
    *kept = (shoal_kept){.holders = 1};
    kept->born = base_read_i64(in);
    kept->bytes = base_read_u64(in);
    kept->check = base_read_u32(in);
    in->bad |= kept->born <= after || kept->born > number || kept->bytes > INT64_MAX / 16;
}

void learn_round_write(base_writer *out, const shoal_round *round)
{
    base_write_i64(out, round->number);
    base_write_text(out, round->phase);
    base_write_i64(out, round->step);
    base_write_i64(out, round->steps);
    base_write_i64(out, round->k);
    base_write_double(out, round->objective);
    base_write_double(out, round->change);
    write_layout(out, &round->layout);
    write_kept(out, round);
    base_write_u64(out, round->model_bytes);
    base_write_bytes(out, round->model, round->model_bytes);
}

/* Fills `round` but for its memory: `kept` is what it keeps, and *model lies in the reader's bytes. */
static void read_round(shoal_round *round, shoal_kept *kept, const void **model, base_reader *in)
{
    round->number = base_read_i64(in);
    base_read_text(in, round->phase, sizeof round->phase);
    round->step = base_read_i64(in);
    round->steps = base_read_i64(in);
    round->k = base_read_i64(in);
    round->objective = base_read_double(in);
    round->change = base_read_double(in);
    read_layout(&round->layout, in);
    uint8_t keeps = base_read_u8(in);
    in->bad |= keeps > SHOAL_KEPT_MOST || round->number < 0 || round->layout.carry_from >= round->number;
    in->bad |= round->number > INT64_MAX / 2; /* it is counted on */
    for (; !in->bad && round->keeps < keeps; round->keeps++)
        read_kept(&kept[round->keeps], in, round->keeps ? kept[round->keeps - 1].born : 0, round->number);
    round->model_bytes = read_size(in);
    *model = base_read_bytes(in, round->model_bytes);
}

int learn_round_read(shoal_round **out, base_reader *in)
{
    shoal_round read = {0}, *round = NULL;
    shoal_kept kept[SHOAL_KEPT_MOST];
    const void *model = NULL;
    read_round(&read, kept, &model, in);
    if (in->bad)
        return shoal_fail(SHOAL_BROKEN, "malformed round");
    int status = shoal_round_new(&round, read.model_bytes);
    if (status < 0)
        return status;
    read.model = round->model;
    int keeps = read.keeps;
    read.keeps = 0;
    *round = read;
    for (; status == SHOAL_OK && round->keeps < keeps; round->keeps++) {
        status = base_alloc(&round->kept[round->keeps], 1, sizeof *kept, "what a round keeps");
        if (status < 0)
            break;
        *round->kept[round->keeps] = kept[round->keeps];
    }
    if (status < 0) {
        shoal_round_free(&round);
        return status;
    }
    if (read.model_bytes)
        memcpy(round->model, model, read.model_bytes);
    *out = round;
    return SHOAL_OK;
}

/* ---- partials ---------------------------------------------------------------------------------------------------- */

static const learn_range whole = {0, 1};

/* Part i of n of `count` is [i * count / n, (i + 1) * count / n), reckoned so that nothing overflows. */
static int64_t start_of_part(int64_t count, int64_t i, int64_t n)
{
    return count / n * i + count % n * i / n;
}

void learn_range_of_cell(const shoal_cell *cell, learn_range range, int64_t *first, int64_t *count)
{
    int64_t values = learn_cell_values(cell);
    *first = start_of_part(values, range.number, range.of);
    *count = start_of_part(values, range.number + 1, range.of) - *first;
}

size_t learn_partial_range_bytes(const shoal_layout *layout, learn_range range)
{
    size_t size = sizeof(uint32_t) + 2 * sizeof(int64_t);
    for (int i = 0; i < layout->cells; i++) {
        int64_t first, count;
        learn_range_of_cell(&layout->cell[i], range, &first, &count);
        size += (size_t)count * sizeof(int64_t);
    }
    return size;
}

static size_t size_of_partial(const shoal_partial *partial, learn_range range)
{
    size_t size = learn_partial_range_bytes(&partial->layout, range);
    for (int i = 0; i < partial->layout.cells; i++) {
        const shoal_cell *cell = &partial->layout.cell[i];
        if (cell->kind == SHOAL_CELL_RECORD)
            size += sizeof(uint64_t) + (size_t)partial->records[i].count * (sizeof(shoal_key) + cell->bytes);
        else if (cell->kind == SHOAL_CELL_ROW)
            size += (size_t)partial->row_count * cell->bytes;
    }
    return size;
}

void learn_partial_write(base_writer *out, const shoal_partial *partial)
{
    learn_partial_write_range(out, partial, whole);
}

void learn_partial_write_range(base_writer *out, const shoal_partial *partial, learn_range range)
{
    int64_t first, count;
    base_write_reserve(out, size_of_partial(partial, range));
    base_write_u32(out, learn_layout_hash(&partial->layout));
    base_write_i64(out, partial->first_row);
    base_write_i64(out, partial->row_count);
    for (int i = 0; i < partial->layout.cells; i++) {
        const shoal_cell *cell = &partial->layout.cell[i];
        const record_list *list = &partial->records[i];
        switch (cell->kind) {
        case SHOAL_CELL_SUM:
        case SHOAL_CELL_WIDE:
        case SHOAL_CELL_MAX:
            learn_range_of_cell(cell, range, &first, &count);
            if (count > 0)
                write_numbers(out, partial->values[i] + first, (size_t)count, sizeof(int64_t));
            break;
        case SHOAL_CELL_RECORD:
            base_write_u64(out, (uint64_t)list->count);
            write_numbers(out, list->keys, 2 * (size_t)list->count, sizeof(uint64_t));
            base_write_bytes(out, list->bytes, (size_t)list->count * cell->bytes);
            break;
        case SHOAL_CELL_ROW: base_write_bytes(out, partial->rows[i], (size_t)partial->row_count * cell->bytes); break;
        }
    }
}

/* Where the parts of one cell lie in an encoded partial. */
typedef struct cell_view {
    const unsigned char *values; /* or rows */
    int64_t first, count;        /* of the values: which */
    const unsigned char *keys, *bytes;
    int64_t records;
} cell_view;

typedef struct partial_view {
    int64_t first_row, rows;
    cell_view cell[SHOAL_CELLS_MOST];
} partial_view;

static int64_t value_at(const unsigned char *values, int64_t i)
{
    uint64_t little;
    memcpy(&little, values + (size_t)i * sizeof little, sizeof little);
    return (int64_t)le64toh(little);
}

static shoal_key key_at(const unsigned char *keys, int64_t i)
{
    return (shoal_key){(uint64_t)value_at(keys, 2 * i), (uint64_t)value_at(keys, 2 * i + 1)};
}

/* `count` things of `size` bytes, or NULL when there are fewer. */
static const unsigned char *view_array(base_reader *in, int64_t count, size_t size)
{
    size_t bytes;
    if (base_multiply(&bytes, (size_t)count, size))
        return base_read_bytes(in, bytes);
    in->bad = true;
    return NULL;
}

static void view_records(cell_view *view, const shoal_cell *cell, base_reader *in)
{
    uint64_t count = base_read_u64(in);
    if (count > in->left / sizeof(shoal_key) || (cell->count > 0 && count > (uint64_t)cell->count)) {
        in->bad = true;
        return;
    }
    view->records = (int64_t)count;
    view->keys = view_array(in, view->records, sizeof(shoal_key));
    view->bytes = view_array(in, view->records, cell->bytes);
    for (int64_t i = 1; !in->bad && i < view->records; i++)
        in->bad = learn_compare_keys(key_at(view->keys, i - 1), key_at(view->keys, i)) >= 0;
}

/* Maxima are never NaN: no key lies beyond those of the infinities. */
static void view_values(cell_view *view, const shoal_cell *cell, base_reader *in, learn_range range)
{
    const int64_t least = shoal_order_key(-INFINITY), most = shoal_order_key(INFINITY);
    learn_range_of_cell(cell, range, &view->first, &view->count);
    view->values = view_array(in, view->count, sizeof(int64_t));
    for (int64_t i = 0; cell->kind == SHOAL_CELL_MAX && !in->bad && i < view->count; i++)
        in->bad = value_at(view->values, i) < least || value_at(view->values, i) > most;
}

/* Checks everything and changes nothing. */
static int view_partial(partial_view *view, const shoal_partial *like, base_reader *in, learn_range range)
{
    const shoal_layout *layout = &like->layout;
    uint32_t hash = base_read_u32(in);
    view->first_row = base_read_i64(in);
    view->rows = base_read_i64(in);
    if (!in->bad && hash != learn_layout_hash(layout))
        return shoal_fail(SHOAL_BROKEN, "a partial has another layout than the round's");
    int64_t before = view->first_row >= like->first_row ? view->first_row - like->first_row : INT64_MAX;
    if (!in->bad && (view->rows < 0 || before > like->row_count || view->rows > like->row_count - before))
        return shoal_fail(SHOAL_BROKEN, "a partial of %lld rows from row %lld does not belong to rows %lld to %lld",
                          (long long)view->rows, (long long)view->first_row, (long long)like->first_row,
                          (long long)(like->first_row + like->row_count - 1));
    for (int i = 0; !in->bad && i < layout->cells; i++)
        switch (layout->cell[i].kind) {
        case SHOAL_CELL_SUM:
        case SHOAL_CELL_WIDE:
        case SHOAL_CELL_MAX: view_values(&view->cell[i], &layout->cell[i], in, range); break;
        case SHOAL_CELL_RECORD: view_records(&view->cell[i], &layout->cell[i], in); break;
        case SHOAL_CELL_ROW: view->cell[i].values = view_array(in, view->rows, layout->cell[i].bytes); break;
        }
    if (!base_reader_done(in))
        return shoal_fail(SHOAL_BROKEN, "malformed partial");
    return SHOAL_OK;
}

/* Without a sign, since sums from elsewhere may be anything and still must not overflow. */
static void add_values(int64_t *restrict to, const unsigned char *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (int64_t)((uint64_t)to[i] + (uint64_t)value_at(from, i));
}

static void raise_values(int64_t *restrict to, const unsigned char *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t value = value_at(from, i);
        to[i] = to[i] > value ? to[i] : value;
    }
}

/* There is room for them. */
static void append_records(record_list *list, const cell_view *view, size_t bytes)
{
    if (view->records == 0)
        return;
    copy_little(list->keys + list->count, view->keys, 2 * (size_t)view->records, sizeof(uint64_t));
    if (bytes > 0)
        memcpy(list->bytes + (size_t)list->count * bytes, view->bytes, (size_t)view->records * bytes);
    list->count += view->records;
}

static void merge_cell(shoal_partial *into, int i, const partial_view *view)
{
    const shoal_cell *cell = &into->layout.cell[i];
    const cell_view *from = &view->cell[i];
    switch (cell->kind) {
    case SHOAL_CELL_SUM:
    case SHOAL_CELL_WIDE:
        if (from->count > 0) /* a cell without values may have no memory either */
            add_values(into->values[i] + from->first, from->values, from->count);
        break;
    case SHOAL_CELL_MAX:
        if (from->count > 0)
            raise_values(into->values[i] + from->first, from->values, from->count);
        break;
    case SHOAL_CELL_RECORD: append_records(&into->records[i], from, cell->bytes); break;
    case SHOAL_CELL_ROW:
        if (view->rows > 0 && cell->bytes > 0)
            memcpy(shoal_partial_row(into, i, view->first_row), from->values, (size_t)view->rows * cell->bytes);
        break;
    }
}

int learn_partial_merge_read(shoal_partial *into, base_reader *in)
{
    return learn_partial_merge_read_range(into, in, whole);
}

int learn_partial_merge_read_range(shoal_partial *into, base_reader *in, learn_range range)
{
    partial_view view = {0};
    int status = view_partial(&view, into, in, range);
    for (int i = 0; status == SHOAL_OK && i < into->layout.cells; i++)
        if (view.cell[i].records > 0)
            status = learn_records_reserve(into, i, view.cell[i].records);
    for (int i = 0; status == SHOAL_OK && i < into->layout.cells; i++)
        merge_cell(into, i, &view);
    return status;
}

void learn_partial_peek_rows(int64_t *first_row, int64_t *rows, const base_reader *in)
{
    base_reader ahead = *in;
    (void)base_read_u32(&ahead); /* the layout's hash */
    *first_row = base_read_i64(&ahead);
    *rows = base_read_i64(&ahead);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static size_t values_of_tensor(const shoal_tensor *tensor)
{
    size_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= (size_t)tensor->shape[i];
    return count;
}

void learn_result_write(base_writer *out, const shoal_result *result)
{
    base_write_u8(out, result->incomplete);
    base_write_u32(out, (uint32_t)result->tensors);
    for (int t = 0; t < result->tensors; t++) {
        const shoal_tensor *tensor = &result->tensor[t];
        size_t count = values_of_tensor(tensor), size = shoal_type_size(tensor->type);
        base_write_text(out, tensor->name);
        base_write_u8(out, (uint8_t)tensor->type);
        base_write_u8(out, (uint8_t)tensor->rank);
        for (int i = 0; i < tensor->rank; i++)
            base_write_i64(out, tensor->shape[i]);
        base_write_u64(out, count * size);
        write_numbers(out, tensor->values, count, size);
    }
    base_write_u32(out, (uint32_t)result->numbers);
    for (int n = 0; n < result->numbers; n++) {
        const shoal_number *number = &result->number[n];
        base_write_text(out, number->name);
        base_write_double(out, number->value);
        base_write_u8(out, number->whole);
        base_write_u8(out, number->truth);
    }
}

/* Everything but the values: the type, the shape, and that as many values follow as the shape says. */
static void read_tensor_head(shoal_tensor *tensor, base_reader *in)
{
    size_t bytes;
    base_read_text(in, tensor->name, sizeof tensor->name);
    uint8_t type = base_read_u8(in), rank = base_read_u8(in);
    if (type >= SHOAL_TYPES || rank > 4) {
        in->bad = true;
        return;
    }
    tensor->type = (shoal_type)type;
    tensor->rank = rank;
    bytes = shoal_type_size(tensor->type);
    for (int i = 0; i < rank; i++) {
        tensor->shape[i] = base_read_i64(in);
        in->bad |= tensor->shape[i] < 0 || !base_multiply(&bytes, bytes, (size_t)tensor->shape[i]);
    }
    in->bad |= read_size(in) != bytes;
}

static int read_tensor(shoal_result *result, base_reader *in)
{
    shoal_tensor read = {0};
    read_tensor_head(&read, in);
    if (in->bad)
        return SHOAL_OK; /* the caller looks at the reader */
    size_t count = values_of_tensor(&read), size = shoal_type_size(read.type);
    void *values = shoal_result_add(result, read.name, read.type, read.rank, read.shape);
    if (!values)
        return SHOAL_MEMORY;
    copy_little(values, base_read_bytes(in, count * size), count, size);
    return SHOAL_OK;
}

static int read_numbers(shoal_result *result, base_reader *in)
{
    uint32_t numbers = base_read_u32(in);
    in->bad |= numbers > LEARN_RESULT_MOST;
    for (uint32_t n = 0; !in->bad && n < numbers; n++) {
        shoal_number read = {0};
        base_read_text(in, read.name, sizeof read.name);
        read.value = base_read_double(in);
        read.whole = read_flag(in);
        read.truth = read_flag(in);
        shoal_result_set(result, read.name, read.value);
        if (result->status < 0)
            break;
        result->number[n].whole = read.whole;
        result->number[n].truth = read.truth;
    }
    return shoal_result_check(result);
}

int learn_result_read(shoal_result **out, base_reader *in)
{
    shoal_result *result = NULL;
    int status = shoal_result_new(&result);
    if (status < 0)
        return status;
    result->incomplete = read_flag(in);
    uint32_t tensors = base_read_u32(in);
    in->bad |= tensors > LEARN_RESULT_MOST;
    for (uint32_t t = 0; status == SHOAL_OK && !in->bad && t < tensors; t++)
        status = read_tensor(result, in);
    if (status == SHOAL_OK)
        status = read_numbers(result, in);
    if (status == SHOAL_OK && in->bad)
        status = shoal_fail(SHOAL_BROKEN, "malformed result");
    if (status < 0)
        shoal_result_free(&result);
    else
        *out = result;
    return status;
}
