/* Merging the partials of ranks.  See reduce.h.
 *
 * A rank whose map failed still takes part in the collective calls of the round, with empty sums; the engine's own
 * words after the sums tell the others.  Rows that it did not map are sent as zero bytes, so that nobody waits for
 * them. */
#include "engine/reduce.h"

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "engine/in_step.h"
#include "learn/partial.h"

/* Rows are sent in parts of at least this many bytes; rank 0 has to handle the parts of all ranks. */
enum { PART_BYTES = 1 << 20, PARTS_MOST = 16, PARTS_OF_ALL = 4096 };

/* The engine's own words after the sums. */
enum { WORD_FAILED, WORD_STOP, WORD_COUNTED, WORDS_USED = WORD_COUNTED + SHOAL_COUNTERS };
_Static_assert((int)WORDS_USED <= (int)LEARN_PARTIAL_WORDS, "the words after the sums are too few");

struct engine_reduction {
    shoal_ranks *ranks;
    const shoal_shape *shape;
    const int64_t *first;
    shoal_partial *merged;  /* of all ranks */
    shoal_partial *nothing; /* what a rank whose map failed adds */
    engine_parts parts;     /* of this rank, in this round */
    int64_t sent;           /* parts that were posted */
    bool rows_under_way;    /* this round has rows that go to rank 0 */
    double row_seconds;
    const void *row_memory[SHOAL_CELLS_MOST]; /* of the merged partial */
    _Atomic uint32_t alarmed;
    size_t *record_bytes; /* of each rank */
};

static void send_part(void *context, shoal_partial *partial, int64_t part);

int engine_reduction_new(engine_reduction **out, shoal_ranks *ranks, const shoal_shape *shape, const int64_t *first)
{
    engine_reduction *reduction = NULL;
    int status = base_alloc(&reduction, 1, sizeof *reduction, "what ranks share");
    if (status < 0)
        return status;
    reduction->ranks = ranks;
    reduction->shape = shape;
    reduction->first = first;
    reduction->parts = (engine_parts){.parts = 1, .done = send_part, .context = reduction};
    status = base_alloc(&reduction->record_bytes, (size_t)ranks->size, sizeof *reduction->record_bytes, "records");
    if (status < 0)
        engine_reduction_free(&reduction);
    *out = reduction;
    return status;
}

void engine_reduction_free(engine_reduction **reduction)
{
    if (!*reduction)
        return;
    learn_partial_free(&(*reduction)->merged);
    learn_partial_free(&(*reduction)->nothing);
    base_free(&(*reduction)->record_bytes);
    base_free(reduction);
}

const engine_parts *engine_reduction_parts(engine_reduction *reduction)
{
    return &reduction->parts;
}

const _Atomic uint32_t *engine_reduction_watch(const engine_reduction *reduction)
{
    return &reduction->alarmed;
}

double engine_reduction_row_seconds(const engine_reduction *reduction)
{
    return reduction->row_seconds;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static size_t row_bytes(const shoal_layout *layout)
{
    size_t bytes = 0;
    for (int i = 0; i < layout->cells; i++)
        if (layout->cell[i].kind == SHOAL_CELL_ROW)
            bytes += layout->cell[i].bytes;
    return bytes;
}

static int64_t grains_of(const engine_reduction *reduction, int rank)
{
    return reduction->first[rank + 1] - reduction->first[rank];
}

/* How many parts a rank maps in; rank 0 has to know it too.  Rank 0's own rows are not sent. */
static int64_t parts_of(const engine_reduction *reduction, int rank, const shoal_layout *layout)
{
    int64_t grains = grains_of(reduction, rank), most = PARTS_OF_ALL / reduction->ranks->size;
    if (rank == 0 || grains == 0 || row_bytes(layout) == 0)
        return 1;
    double bytes = (double)row_bytes(layout) * (double)engine_rows_of(reduction->shape, reduction->first[rank], grains);
    int64_t parts = bytes / PART_BYTES < PARTS_MOST ? (int64_t)(bytes / PART_BYTES) : PARTS_MOST;
    parts = parts < most ? parts : most;
    parts = parts < grains ? parts : grains;
    return parts > 0 ? parts : 1;
}

/* The rows of one part of a rank. */
static void rows_of_part(const engine_reduction *reduction, int rank, int64_t parts, int64_t part, int64_t *first,
                         int64_t *rows)
{
    int64_t all = grains_of(reduction, rank), begin = engine_part_begin(all, parts, part);
    int64_t grain = reduction->first[rank] + begin, grains = engine_part_begin(all, parts, part + 1) - begin;
    *first = grain * reduction->shape->rows_per_grain;
    *rows = grains > 0 ? engine_rows_of(reduction->shape, grain, grains) : 0;
}

static void receive_rows(engine_reduction *reduction, const shoal_layout *layout)
{
    shoal_ranks *ranks = reduction->ranks;
    for (int rank = 1; rank < ranks->size; rank++) {
        int64_t parts = parts_of(reduction, rank, layout);
        for (int64_t part = 0; part < parts; part++) {
            int64_t first, rows;
            rows_of_part(reduction, rank, parts, part, &first, &rows);
            for (int cell = 0; rows > 0 && cell < layout->cells; cell++)
                if (layout->cell[cell].kind == SHOAL_CELL_ROW)
                    ranks->post_receive(ranks, shoal_partial_row(reduction->merged, cell, first),
                                        (size_t)rows * layout->cell[cell].bytes, rank);
        }
    }
}

/* Sends the rows of a part to rank 0; without a partial, only the message that none will come. */
static void send_part(void *context, shoal_partial *partial, int64_t part)
{
    engine_reduction *reduction = context;
    shoal_ranks *ranks = reduction->ranks;
    const shoal_layout *layout = shoal_partial_layout(reduction->merged);
    int64_t first, rows;
    reduction->sent = part + 1;
    if (!reduction->rows_under_way || ranks->rank == 0)
        return;
    rows_of_part(reduction, ranks->rank, reduction->parts.parts, part, &first, &rows);
    for (int cell = 0; rows > 0 && cell < layout->cells; cell++)
        if (layout->cell[cell].kind == SHOAL_CELL_ROW)
            ranks->post_send(ranks, partial ? shoal_partial_row(partial, cell, first) : NULL,
                             partial ? (size_t)rows * layout->cell[cell].bytes : 0, 0);
}

static void copy_own_rows(engine_reduction *reduction, shoal_partial *mine)
{
    const shoal_layout *layout = shoal_partial_layout(mine);
    int64_t grains = grains_of(reduction, 0), rows = engine_rows_of(reduction->shape, 0, grains);
    for (int cell = 0; cell < layout->cells; cell++)
        if (layout->cell[cell].kind == SHOAL_CELL_ROW && grains > 0)
            memcpy(shoal_partial_row(reduction->merged, cell, 0), shoal_partial_row(mine, cell, 0),
                   (size_t)rows * layout->cell[cell].bytes);
}

static void finish_rows(engine_reduction *reduction, shoal_partial *mine)
{
    if (!reduction->rows_under_way)
        return;
    if (reduction->ranks->rank == 0 && mine)
        copy_own_rows(reduction, mine);
    double began = base_seconds();
    reduction->ranks->wait(reduction->ranks);
    reduction->row_seconds += base_seconds() - began;
    reduction->rows_under_way = false;
}

void engine_reduction_drop_rows(const engine_reduction *reduction, shoal_result *result)
{
    const shoal_layout *layout = shoal_partial_layout(reduction->merged);
    if (reduction->ranks->rank == 0 || row_bytes(layout) == 0)
        return;
    for (int i = 0; i < result->tensors; i++)
        for (int cell = 0; cell < layout->cells; cell++)
            if (layout->cell[cell].kind == SHOAL_CELL_ROW && result->tensor[i].values == reduction->row_memory[cell])
                result->tensor[i].shape[0] = 0;
}

void engine_reduction_poll(void *context)
{
    engine_reduction *reduction = context;
    shoal_ranks *ranks = reduction->ranks;
    if (reduction->rows_under_way)
        ranks->poll(ranks);
    if (ranks->alarmed(ranks))
        atomic_store_explicit(&reduction->alarmed, 1, memory_order_relaxed);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static size_t records_size(const shoal_partial *partial, int cell)
{
    return (size_t)shoal_partial_records(partial, cell) *
           (sizeof(shoal_key) + shoal_partial_layout(partial)->cell[cell].bytes);
}

/* Each record is its key and then its bytes. */
static void write_records(unsigned char *out, const shoal_partial *partial, int cell)
{
    size_t bytes = shoal_partial_layout(partial)->cell[cell].bytes;
    for (int64_t i = 0; i < shoal_partial_records(partial, cell); i++) {
        shoal_key key;
        const void *record = shoal_partial_record_at(partial, cell, i, &key);
        memcpy(out, &key, sizeof key);
        if (bytes)
            memcpy(out + sizeof key, record, bytes);
        out += sizeof key + bytes;
    }
}

static int read_records(shoal_partial *into, int cell, const unsigned char *from, size_t size)
{
    size_t each = sizeof(shoal_key) + shoal_partial_layout(into)->cell[cell].bytes;
    int status = SHOAL_OK;
    for (; status == SHOAL_OK && size >= each; size -= each, from += each) {
        shoal_key key;
        memcpy(&key, from, sizeof key);
        status = shoal_partial_record(into, cell, key, from + sizeof key);
    }
    return status;
}

/* Every rank gets the records of all, in the order of ranks. */
static int gather_records(engine_reduction *reduction, const shoal_partial *mine, int cell)
{
    shoal_ranks *ranks = reduction->ranks;
    unsigned char *own = NULL, *all = NULL;
    size_t size = records_size(mine, cell), sum = 0;
    ranks->gather(ranks, reduction->record_bytes, &size, sizeof size);
    for (int i = 0; i < ranks->size; i++)
        sum += reduction->record_bytes[i];
    if (sum == 0)
        return SHOAL_OK;
    int status = base_alloc_unset(&own, size, 1, "records");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&all, sum, 1, "the records of all ranks");
    engine_must(ranks, status);
    write_records(own, mine, cell);
    ranks->gather_some(ranks, all, reduction->record_bytes, own);
    status = read_records(reduction->merged, cell, all, sum);
    base_free(&own);
    base_free(&all);
    return status;
}

static int reduce_records(engine_reduction *reduction, const shoal_partial *mine)
{
    const shoal_layout *layout = shoal_partial_layout(mine);
    int status = SHOAL_OK;
    for (int cell = 0; cell < layout->cells; cell++)
        if (layout->cell[cell].kind == SHOAL_CELL_RECORD) {
            int this_one = gather_records(reduction, mine, cell);
            status = status < 0 ? status : this_one;
        }
    return status == SHOAL_OK ? learn_partial_settle(reduction->merged) : status;
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

void engine_reduction_begin(engine_reduction *reduction, const shoal_layout *layout)
{
    shoal_ranks *ranks = reduction->ranks;
    bool has_rows = row_bytes(layout) > 0;
    if (reduction->merged && (has_rows || !learn_layout_equal(shoal_partial_layout(reduction->merged), layout)))
        learn_partial_free(&reduction->merged);
    if (!reduction->merged)
        engine_must(ranks, learn_partial_new(&reduction->merged, layout, 0,
                                             has_rows && ranks->rank == 0 ? reduction->shape->rows : 0, NULL));
    else
        learn_partial_clear_records(reduction->merged);
    reduction->parts.parts = parts_of(reduction, ranks->rank, layout);
    reduction->sent = 0;
    reduction->rows_under_way = has_rows;
    for (int cell = 0; cell < layout->cells; cell++)
        reduction->row_memory[cell] =
            layout->cell[cell].kind == SHOAL_CELL_ROW ? shoal_partial_row(reduction->merged, cell, 0) : NULL;
    if (has_rows && ranks->rank == 0)
        receive_rows(reduction, layout);
}

/* Adds up the sums of all ranks and, after them, how many failed or were asked to stop, and what they counted. */
static void reduce_sums(engine_reduction *reduction, shoal_partial *mine, bool failed, bool *stop, int64_t *counted,
                        int64_t *failures)
{
    shoal_ranks *ranks = reduction->ranks;
    size_t count;
    int64_t *out = learn_partial_sums(reduction->merged, &count), *in = learn_partial_sums(mine, &count);
    int64_t *own = in + count - LEARN_PARTIAL_WORDS;
    own[WORD_FAILED] = failed;
    own[WORD_STOP] = *stop;
    memcpy(own + WORD_COUNTED, counted, SHOAL_COUNTERS * sizeof *counted);
    ranks->sum(ranks, out, in, count);
    const int64_t *all = out + count - LEARN_PARTIAL_WORDS;
    *failures = all[WORD_FAILED];
    *stop = all[WORD_STOP] > 0;
    memcpy(counted, all + WORD_COUNTED, SHOAL_COUNTERS * sizeof *counted);
}

static void reduce_maxima(engine_reduction *reduction, shoal_partial *mine)
{
    size_t count;
    const int64_t *in = learn_partial_maxima(mine, &count);
    if (count > 0)
        reduction->ranks->max(reduction->ranks, learn_partial_maxima(reduction->merged, &count), in, count);
}

int engine_reduction_end(shoal_partial **merged, bool *stop, int64_t counted[SHOAL_COUNTERS],
                         engine_reduction *reduction, shoal_partial *mine, int status)
{
    int64_t failures;
    if (status < 0) {
        const shoal_layout *layout = shoal_partial_layout(reduction->merged);
        learn_partial_free(&reduction->nothing);
        engine_must(reduction->ranks, learn_partial_new(&reduction->nothing, layout, 0, 0, NULL));
        if (!atomic_load(&reduction->alarmed))
            reduction->ranks->alarm(reduction->ranks);
        for (int64_t part = reduction->sent; part < reduction->parts.parts; part++)
            send_part(reduction, NULL, part);
    }
    reduce_sums(reduction, status < 0 ? reduction->nothing : mine, status < 0, stop, counted, &failures);
    finish_rows(reduction, status < 0 ? NULL : mine);
    if (failures > 0)
        return status < 0 ? status : shoal_fail(SHOAL_STOPPED, "another rank failed");
    reduce_maxima(reduction, mine);
    *merged = reduction->merged;
    return reduce_records(reduction, mine);
}
