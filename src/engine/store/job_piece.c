/* Pieces: partials labelled with what they are; putting, fetching and adding them up.  See job_run.h. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc.h"
#include "base/memory.h"
#include "base/world.h"
#include "engine/store/job_gang.h"
#include "engine/store/job_run.h"
#include "learn/partial.h"
#include "learn/wire.h"

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

static learn_range range_of(const job_tree *tree, int64_t piece)
{
    bool all = tree->ranges == 1 || piece == tree->pieces - 1;
    return all ? (learn_range){0, 1} : (learn_range){job_tree_range(tree, piece), tree->ranges};
}

/* A slice in ranges is one blob, which has them one after the other, each with its own check behind it: who merges one
 * gets its bytes alone. */
bool job_piece_shares_blob(const job_run *run, int64_t piece)
{
    return run->tree->ranges > 1 && job_tree_is_slice(run->tree, piece);
}

void job_piece_flag(job_run *run, int64_t piece, unsigned char set, unsigned char clear)
{
    const job_tree *tree = run->tree;
    int64_t end = tree->count[0], step = tree->nodes[0];
    if (!job_tree_is_slice(tree, piece)) {
        end = piece + 1;
        step = 1;
    } else {
        piece = job_tree_node(tree, piece);
    }
    for (; piece < end; piece += step)
        run->flag[piece] = (unsigned char)((run->flag[piece] | set) & ~clear);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static void rows_below(const job_run *run, int64_t piece, int64_t *first, int64_t *rows)
{
    int64_t slice, end;
    job_tree_slices(run->tree, piece, &slice, &end);
    *first = job_slice_first_row(run->spec, slice);
    *rows = job_slice_first_row(run->spec, end - 1) + job_slice_rows(run->spec, end - 1) - *first;
}

static bool has_rows(const shoal_layout *layout)
{
    for (int i = 0; i < layout->cells; i++)
        if (layout->cell[i].kind == SHOAL_CELL_ROW)
            return true;
    return false;
}

int job_piece_sum(shoal_partial **out, job_run *run, int64_t piece)
{
    const shoal_layout *layout = &run->model->round->layout;
    shoal_partial **sum = &run->sum[job_tree_sum(run->tree, piece)];
    int64_t first, rows;
    if (!*sum) {
        rows_below(run, piece, &first, &rows);
        int status = learn_partial_new(sum, layout, first, rows, NULL);
        if (status < 0)
            return status;
    }
    *out = *sum;
    return SHOAL_OK;
}

/* Sums of the last round are cleared and reused where they fit; a result may have taken the rows. */
static void clear_sums(job_run *run)
{
    const shoal_layout *layout = &run->model->round->layout;
    int64_t sums = job_tree_sums(run->spec->ranged.ranges ? &run->spec->ranged : &run->spec->tree);
    for (int64_t i = 0; i < sums; i++) {
        if (!run->sum[i])
            continue;
        if (has_rows(layout) || !learn_layout_equal(shoal_partial_layout(run->sum[i]), layout))
            learn_partial_free(&run->sum[i]);
        else
            learn_partial_clear(run->sum[i], false);
    }
}

void job_piece_begin(job_run *run)
{
    run->tree = job_spec_tree(run->spec, &run->model->round->layout);
    int64_t pieces = run->tree->pieces;
    clear_sums(run);
    memset(run->flag, 0, (size_t)pieces);
    memset(run->added, 0, (size_t)pieces * sizeof *run->added);
    memset(run->counter, 0, (size_t)pieces * sizeof *run->counter);
    memset(run->maker, 0, (size_t)run->spec->slices * sizeof *run->maker);
    for (int64_t s = 0; s < run->spec->slices; s++)
        run->held[s].partial = NULL;
}

static shoal_partial *partial_of(const job_run *run, int64_t piece)
{
    const job_tree *tree = run->tree;
    return job_tree_is_slice(tree, piece) ? run->held[job_tree_node(tree, piece)].partial
                                          : run->sum[job_tree_sum(tree, piece)];
}

static void add_counters(int64_t *into, const int64_t *from)
{
    for (int i = 0; i < JOB_COUNTERS; i++)
        into[i] = base_add_wrapping(into[i], from[i]);
}

static int add_partial(shoal_partial *into, shoal_partial *from, int64_t first, int64_t rows, learn_range range)
{
    const shoal_layout *layout = shoal_partial_layout(into);
    for (int i = 0; i < layout->cells; i++) {
        if (layout->cell[i].kind == SHOAL_CELL_ROW)
            memcpy(shoal_partial_row(into, i, first), shoal_partial_row(from, i, first),
                   (size_t)rows * layout->cell[i].bytes);
        else {
            int64_t value, values;
            learn_range_of_cell(&layout->cell[i], range, &value, &values);
            learn_partial_merge_values(into, from, i, value, values);
        }
    }
    return learn_partial_merge_records(into, from);
}

int job_piece_add(job_run *run, int64_t piece)
{
    int64_t parent = job_tree_parent(run->tree, piece), first, rows;
    shoal_partial *into = NULL;
    if (run->added[piece])
        return SHOAL_OK;
    int status = job_piece_sum(&into, run, parent);
    if (status < 0)
        return status;
    rows_below(run, piece, &first, &rows);
    status = add_partial(into, partial_of(run, piece), first, rows, range_of(run->tree, piece));
    if (status < 0)
        return status;
    add_counters(run->counter[parent], run->counter[piece]);
    run->added[piece] = true;
    return SHOAL_OK;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* The slices of which a piece says who mapped them: the first range says it for all. */
static void makers_of(const job_tree *tree, int64_t piece, int64_t *first, int64_t *end)
{
    job_tree_slices(tree, piece, first, end);
    if (job_tree_range(tree, piece) > 0)
        *end = *first;
}

static void write_head(base_writer *out, const job_run *run, int64_t piece)
{
    base_write_i64(out, run->model->number);
    base_write_i64(out, piece);
    base_write_u32(out, run->model->check);
    base_write_double(out, job_pace_put_after(run));
    for (int i = 0; i < JOB_COUNTERS; i++)
        base_write_i64(out, run->counter[piece][i]);
    int64_t slice, end;
    makers_of(run->tree, piece, &slice, &end);
    while (slice < end)
        base_write_u64(out, run->maker[slice++]);
}

/* A piece must be what its name says: of this round, computed from this very model, of exactly the rows of its slices.
 * When it was put and who mapped its slices are only hints. */
static bool read_head(base_reader *in, job_run *run, int64_t piece, int64_t counter[JOB_COUNTERS])
{
    int64_t round = base_read_i64(in), named = base_read_i64(in);
    uint32_t check = base_read_u32(in);
    double came = base_read_double(in);
    for (int i = 0; i < JOB_COUNTERS; i++)
        counter[i] = base_read_i64(in);
    int64_t slice, end;
    makers_of(run->tree, piece, &slice, &end);
    bool good = !in->bad && round == run->model->number && named == piece && check == run->model->check;
    while (good && slice < end)
        run->maker[slice++] = base_read_u64(in);
    int64_t first, rows, first_said, rows_said;
    rows_below(run, piece, &first, &rows);
    learn_partial_peek_rows(&first_said, &rows_said, in);
    good = good && !in->bad && first_said == first && rows_said == rows;
    if (good && came > run->pace.came)
        run->pace.came = came;
    return good;
}

int job_piece_add_bytes(job_run *run, int64_t piece, const void *bytes, size_t size)
{
    int64_t parent = job_tree_parent(run->tree, piece), counter[JOB_COUNTERS];
    base_reader in = base_reader_of(bytes, size);
    shoal_partial *into = NULL;
    if (run->added[piece])
        return SHOAL_OK;
    if (!read_head(&in, run, piece, counter))
        return shoal_fail(SHOAL_BROKEN, "not piece %lld of round %lld", (long long)piece,
                          (long long)run->model->number);
    int status = job_piece_sum(&into, run, parent);
    if (status == SHOAL_OK)
        status = learn_partial_merge_read_range(into, &in, range_of(run->tree, piece));
    if (status < 0)
        return status;
    add_counters(run->counter[parent], counter);
    run->added[piece] = true;
    return SHOAL_OK;
}

/* ---- the store --------------------------------------------------------------------------------------------------- */

static int remember_put(job_run *run, int64_t piece)
{
    if (run->puts == run->put_room) {
        int64_t room = run->put_room ? 2 * run->put_room : 16;
        int status = base_grow(&run->put, (size_t)run->puts, (size_t)room, sizeof *run->put, "pieces that were put");
        if (status < 0)
            return status;
        run->put_room = room;
    }
    run->put[run->puts++] = (job_put){run->tree, run->model->number, piece};
    return SHOAL_OK;
}

static void write_piece(base_writer *out, const job_run *run, int64_t piece)
{
    write_head(out, run, piece);
    learn_partial_write_range(out, partial_of(run, piece), range_of(run->tree, piece));
}

/* What piece 0 of a slice says of all its ranges is repeated in each. */
static void write_ranges(base_writer *out, const job_run *run, int64_t slice)
{
    const job_tree *tree = run->tree;
    for (int64_t piece = slice; piece < tree->count[0]; piece += tree->nodes[0]) {
        size_t from = out->size;
        write_piece(out, run, piece);
        if (out->status == SHOAL_OK)
            base_write_u32(out, base_crc32c(0, out->data + from, out->size - from));
    }
}

/* The bytes of a piece that is a range, which has neither records nor rows. */
static int64_t range_bytes(const job_run *run, int64_t piece)
{
    int64_t first, end;
    makers_of(run->tree, piece, &first, &end);
    return (int64_t)learn_partial_range_bytes(&run->model->round->layout, range_of(run->tree, piece)) + JOB_PIECE_HEAD +
           (end - first) * (int64_t)sizeof(uint64_t);
}

/* Where a range lies in its slice's blob. */
static void place_in_blob(int64_t *offset, int64_t *size, const job_run *run, int64_t piece)
{
    const job_tree *tree = run->tree;
    *offset = SHOAL_FRAME_BYTES;
    for (int64_t each = job_tree_node(tree, piece);; each += tree->nodes[0]) {
        *size = range_bytes(run, each) + (int64_t)sizeof(uint32_t);
        if (each == piece)
            return;
        *offset += *size;
    }
}

/* Gets a range of a slice; SHOAL_BROKEN if that is not intact. */
static int get_range(shoal_blob *out, const job_run *run, int64_t piece)
{
    job_key key = job_key_piece(run->spec->id, run->model->number, run->tree, piece);
    int64_t offset, size;
    place_in_blob(&offset, &size, run, piece);
    int status = shoal_store_get_range(run->store, key.text, offset, (size_t)size, NULL, NULL, out, job_deadline(run));
    if (status != SHOAL_OK)
        return status;
    size_t payload = (size_t)size - sizeof(uint32_t);
    base_reader check = base_reader_of((const unsigned char *)out->data + payload, sizeof(uint32_t));
    if (out->size == (size_t)size && base_read_u32(&check) == base_crc32c(0, out->data, payload)) {
        out->size = payload;
        return SHOAL_OK;
    }
    shoal_blob_release(out);
    return shoal_fail(SHOAL_BROKEN, "%s: range %lld is damaged", key.text, (long long)job_tree_range(run->tree, piece));
}

int job_piece_put(job_run *run, int64_t piece)
{
    base_writer writer = {0};
    job_key key = job_key_piece(run->spec->id, run->model->number, run->tree, piece);
    int status = remember_put(run, piece);
    if (job_piece_shares_blob(run, piece))
        write_ranges(&writer, run, job_tree_node(run->tree, piece));
    else
        write_piece(&writer, run, piece);
    if (status == SHOAL_OK)
        status = writer.status;
    if (status == SHOAL_OK)
        status = shoal_store_put_framed(run->store, key.text, JOB_KIND_PIECE, writer.data, writer.size, SHOAL_NOTHING,
                                        NULL, job_deadline(run));
    base_writer_release(&writer);
    /* Another worker's copy has the same content, so it does not matter whose came first. */
    return status == SHOAL_CONFLICT || status == SHOAL_UNKNOWN ? SHOAL_OK : status;
}

int job_piece_is_of_model(bool *out, job_run *run, const char *key)
{
    unsigned char first[SHOAL_FRAME_BYTES + JOB_PIECE_HEAD];
    shoal_blob blob = {0};
    int status = shoal_store_get_range(run->store, key, 0, sizeof first, NULL, first, &blob, job_deadline(run));
    base_reader in = base_reader_of(first, blob.size);
    (void)base_read_bytes(&in, SHOAL_FRAME_BYTES + 2 * sizeof(int64_t)); /* round and piece */
    uint32_t check = base_read_u32(&in);
    *out = status == SHOAL_OK && (in.bad || check == run->model->check);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* A broken piece is removed and made again by whoever finds that it is missing. */
static int take_piece(job_run *run, int64_t piece, int status, const shoal_blob *blob, int64_t *came)
{
    job_key key = job_key_piece(run->spec->id, run->model->number, run->tree, piece);
    if (status == SHOAL_OK)
        status = job_piece_add_bytes(run, piece, blob->data, blob->size);
    if (status == SHOAL_OK) {
        run->flag[piece] |= JOB_HERE | JOB_FETCHED;
        job_piece_flag(run, piece, JOB_STORED, 0);
        (*came)++;
        return SHOAL_OK;
    }
    if (status == SHOAL_BROKEN) {
        job_log(run, "%s is broken: removed", key.text);
        status = shoal_store_remove(run->store, key.text, job_deadline(run));
    }
    if (status < 0 && status != SHOAL_ABSENT)
        return status;
    job_piece_flag(run, piece, 0, JOB_STORED);
    return SHOAL_OK;
}

/* Several gets at once, for slow stores. */
enum { FETCHERS = 8 };

typedef struct fetch {
    const job_run *run;
    const int64_t *piece;
    int *status; /* of each: SHOAL_OK, SHOAL_ABSENT, SHOAL_BROKEN */
    shoal_blob *blob;
    int64_t share; /* bytes of one whose layout does not bound it */
} fetch;

/* The most bytes that a piece can have by its layout; INT64_MAX if the layout sets no limit. */
static int64_t most_bytes(const job_run *run, int64_t piece)
{
    int64_t slice, end, first, rows;
    if (run->tree->ranges > 1) /* the whole is never put */
        return range_bytes(run, piece);
    job_tree_slices(run->tree, piece, &slice, &end);
    rows_below(run, piece, &first, &rows);
    return job_memory_piece(&run->model->round->layout, end - slice, rows);
}

static int fetch_one(void *context, int64_t i)
{
    fetch *work = context;
    const job_run *run = work->run;
    job_key key = job_key_piece(run->spec->id, run->model->number, run->tree, work->piece[i]);
    if (job_leaving(run))
        return shoal_fail(SHOAL_STOPPED, "told to leave");
    int64_t most = most_bytes(run, work->piece[i]);
    shoal_blob *blob = &work->blob[i];
    if (job_piece_shares_blob(run, work->piece[i])) {
        work->status[i] = get_range(blob, run, work->piece[i]);
        return work->status[i] == SHOAL_ABSENT || work->status[i] == SHOAL_BROKEN ? SHOAL_OK : work->status[i];
    }
    int status = shoal_store_get_framed_within(run->store, key.text, JOB_KIND_PIECE,
                                               most < INT64_MAX ? most : work->share, blob, job_deadline(run));
    bool is_large = status == SHOAL_MEMORY && blob->whole > 0;
    if (is_large && most < INT64_MAX)
        status = SHOAL_BROKEN;
    work->status[i] = status;
    return status == SHOAL_ABSENT || status == SHOAL_BROKEN || is_large ? SHOAL_OK : status;
}

/* A piece that exceeds its share of memory is fetched alone.  One that no worker with this memory could hold may be
 * forged, and is removed once; if another as large appears, this worker can't merge the job's pieces. */
static int take_large(job_run *run, int64_t piece, int64_t *came)
{
    job_key key = job_key_piece(run->spec->id, run->model->number, run->tree, piece);
    shoal_blob blob = {0};
    int status =
        shoal_store_get_framed_within(run->store, key.text, JOB_KIND_PIECE, run->memory.blob, &blob, job_deadline(run));
    if (status == SHOAL_MEMORY && blob.whole > 0 && !(run->flag[piece] & JOB_LARGE)) {
        run->flag[piece] |= JOB_LARGE;
        status = SHOAL_BROKEN;
    }
    if (status == SHOAL_OK || status == SHOAL_ABSENT || status == SHOAL_BROKEN)
        status = take_piece(run, piece, status, &blob, came);
    shoal_blob_release(&blob);
    return status;
}

/* All pieces fetched at once are in memory before the first is merged: together they take what the round's layout
 * allows, which the worker's memory was planned for, or no more than one blob may. */
static int fetch_list(job_run *run, const int64_t *piece, int64_t count, int64_t *came)
{
    fetch work = {.run = run, .piece = piece, .share = run->memory.blob / count};
    int threads = job_store_is_near(run->store) ? 1 : FETCHERS;
    int status = base_alloc(&work.status, (size_t)count, sizeof *work.status, "pieces");
    if (status == SHOAL_OK)
        status = base_alloc(&work.blob, (size_t)count, sizeof *work.blob, "pieces");
    if (status == SHOAL_OK)
        status = job_gang_run(threads, count, fetch_one, &work);
    for (int64_t i = 0; work.blob && i < count; i++) {
        if (status == SHOAL_OK && work.status[i] != SHOAL_MEMORY)
            status = take_piece(run, piece[i], work.status[i], &work.blob[i], came);
        shoal_blob_release(&work.blob[i]);
    }
    for (int64_t i = 0; status == SHOAL_OK && i < count; i++)
        if (work.status[i] == SHOAL_MEMORY)
            status = take_large(run, piece[i], came);
    base_free(&work.status);
    base_free(&work.blob);
    return status;
}

int job_piece_await(job_run *run, int64_t piece, int64_t until, int64_t *came)
{
    job_key key = job_key_piece(run->spec->id, run->model->number, run->tree, piece);
    shoal_blob blob = {0};
    *came = 0;
    int status = shoal_store_await_framed(run->store, key.text, JOB_KIND_PIECE, until, &blob, job_deadline(run));
    if (status == SHOAL_MEMORY) /* it is there; a get shows whether it is too large to be a piece */
        return fetch_list(run, &piece, 1, came);
    if (status == SHOAL_OK || status == SHOAL_ABSENT || status == SHOAL_BROKEN)
        status = take_piece(run, piece, status, &blob, came);
    shoal_blob_release(&blob);
    return status;
}

int job_piece_fetch(job_run *run, int64_t parent, bool only_first, int64_t *came)
{
    int64_t *missing = NULL, count = 0, first, end;
    job_tree_children(run->tree, parent, &first, &end);
    int status = base_alloc(&missing, (size_t)(end - first), sizeof *missing, "pieces");
    for (int64_t piece = first; status == SHOAL_OK && piece < end; piece++) {
        bool to_be_made_here = (run->flag[piece] & JOB_MINE) && !(run->flag[piece] & JOB_STORED);
        if (!run->added[piece] && !(run->flag[piece] & JOB_HERE) && !to_be_made_here)
            missing[count++] = piece;
    }
    *came = 0;
    int64_t asked = only_first && count > 1 ? 1 : 0;
    if (status == SHOAL_OK && asked)
        status = fetch_list(run, missing, asked, came);
    for (bool more = *came == asked; status == SHOAL_OK && more && asked < count;) {
        int64_t most = run->memory.fetched > 1 ? run->memory.fetched : 1;
        int64_t next = count - asked < most ? count - asked : most;
        status = fetch_list(run, missing + asked, next, came);
        asked += next;
    }
    base_free(&missing);
    return status;
}
