/* Pieces: partials labelled with what they are; putting, fetching and adding them up.  See job_run.h. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/world.h"
#include "engine/store/job_gang.h"
#include "engine/store/job_run.h"
#include "learn/partial.h"
#include "learn/wire.h"

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static void rows_below(const job_run *run, int64_t piece, int64_t *first, int64_t *rows)
{
    int64_t slice, end;
    job_tree_slices(&run->spec->tree, piece, &slice, &end);
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
    shoal_partial **sum = &run->sum[piece - run->spec->tree.count[0]];
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
    int64_t groups = run->spec->tree.pieces - run->spec->tree.count[0];
    for (int64_t i = 0; i < groups; i++) {
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
    int64_t pieces = run->spec->tree.pieces;
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
    int64_t slices = run->spec->tree.count[0];
    return piece < slices ? run->held[piece].partial : run->sum[piece - slices];
}

static void add_counters(int64_t *into, const int64_t *from)
{
    for (int i = 0; i < JOB_COUNTERS; i++)
        into[i] = base_add_wrapping(into[i], from[i]);
}

static int add_partial(shoal_partial *into, shoal_partial *from, int64_t first, int64_t rows)
{
    const shoal_layout *layout = shoal_partial_layout(into);
    for (int i = 0; i < layout->cells; i++) {
        if (layout->cell[i].kind == SHOAL_CELL_ROW)
            memcpy(shoal_partial_row(into, i, first), shoal_partial_row(from, i, first),
                   (size_t)rows * layout->cell[i].bytes);
        else
            learn_partial_merge_values(into, from, i, 0, learn_cell_values(&layout->cell[i]));
    }
    return learn_partial_merge_records(into, from);
}

int job_piece_add(job_run *run, int64_t piece)
{
    int64_t parent = job_tree_parent(&run->spec->tree, piece), first, rows;
    shoal_partial *into = NULL;
    if (run->added[piece])
        return SHOAL_OK;
    int status = job_piece_sum(&into, run, parent);
    if (status < 0)
        return status;
    rows_below(run, piece, &first, &rows);
    status = add_partial(into, partial_of(run, piece), first, rows);
    if (status < 0)
        return status;
    add_counters(run->counter[parent], run->counter[piece]);
    run->added[piece] = true;
    return SHOAL_OK;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static void write_head(base_writer *out, const job_run *run, int64_t piece)
{
    base_write_i64(out, run->model->number);
    base_write_i64(out, piece);
    base_write_u32(out, run->model->check);
    base_write_double(out, job_pace_put_after(run));
    for (int i = 0; i < JOB_COUNTERS; i++)
        base_write_i64(out, run->counter[piece][i]);
    int64_t slice, end;
    job_tree_slices(&run->spec->tree, piece, &slice, &end);
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
    job_tree_slices(&run->spec->tree, piece, &slice, &end);
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
    int64_t parent = job_tree_parent(&run->spec->tree, piece), counter[JOB_COUNTERS];
    base_reader in = base_reader_of(bytes, size);
    shoal_partial *into = NULL;
    if (run->added[piece])
        return SHOAL_OK;
    if (!read_head(&in, run, piece, counter))
        return shoal_fail(SHOAL_BROKEN, "not piece %lld of round %lld", (long long)piece,
                          (long long)run->model->number);
    int status = job_piece_sum(&into, run, parent);
    if (status == SHOAL_OK)
        status = learn_partial_merge_read(into, &in);
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
    run->put[run->puts++] = (job_put){run->model->number, piece};
    return SHOAL_OK;
}

int job_piece_put(job_run *run, int64_t piece)
{
    base_writer writer = {0};
    job_key key = job_key_piece(run->spec->id, run->model->number, &run->spec->tree, piece);
    int status = remember_put(run, piece);
    write_head(&writer, run, piece);
    learn_partial_write(&writer, partial_of(run, piece));
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
    job_key key = job_key_piece(run->spec->id, run->model->number, &run->spec->tree, piece);
    if (status == SHOAL_OK)
        status = job_piece_add_bytes(run, piece, blob->data, blob->size);
    if (status == SHOAL_OK) {
        run->flag[piece] |= JOB_HERE | JOB_STORED | JOB_FETCHED;
        (*came)++;
        return SHOAL_OK;
    }
    if (status == SHOAL_BROKEN) {
        job_log(run, "%s is broken: removed", key.text);
        status = shoal_store_remove(run->store, key.text, job_deadline(run));
    }
    if (status < 0 && status != SHOAL_ABSENT)
        return status;
    run->flag[piece] &= (unsigned char)~JOB_STORED;
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
    job_tree_slices(&run->spec->tree, piece, &slice, &end);
    rows_below(run, piece, &first, &rows);
    return job_memory_piece(&run->model->round->layout, end - slice, rows);
}

static int fetch_one(void *context, int64_t i)
{
    fetch *work = context;
    const job_run *run = work->run;
    job_key key = job_key_piece(run->spec->id, run->model->number, &run->spec->tree, work->piece[i]);
    if (job_leaving(run))
        return shoal_fail(SHOAL_STOPPED, "told to leave");
    int64_t most = most_bytes(run, work->piece[i]);
    shoal_blob *blob = &work->blob[i];
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
    job_key key = job_key_piece(run->spec->id, run->model->number, &run->spec->tree, piece);
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
    job_key key = job_key_piece(run->spec->id, run->model->number, &run->spec->tree, piece);
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
    job_tree_children(&run->spec->tree, parent, &first, &end);
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
