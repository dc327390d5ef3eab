/* Pieces: each is counted once however often it comes, and what is not the very piece that was asked for, of this round
 * and computed from this model, is refused, removed, and not counted at all. */
#include <math.h>

#include "job_support.h"

#include "engine/store/job_run.h"
#include "learn/partial.h"

enum { SLICES = 4, TOP = 6, ROWS_A_SLICE = 10, RANGES = 2, PIECES_MOST = RANGES * (TOP + 1) + 1 }; /* groups 4, 5 */

/* Two workers of one job that share a store. */
typedef struct pair {
    shoal_store *store;
    shoal_worker *worker;
    job_spec spec;
    job_run run[2];
} pair;

static job_model *round_model(int64_t number)
{
    job_model *model = NULL;
    void *bytes = NULL;
    size_t size = 0;
    EXPECT_OK(base_alloc(&model, 1, sizeof *model, "a model"));
    EXPECT_OK(start_toy(&model->round, NULL, &(shoal_shape){.columns = 3}));
    model->number = model->round->number = number;
    EXPECT_OK(job_model_encode(&bytes, &size, model)); /* sets the check */
    base_free(&bytes);
    return model;
}

static void begin_run(job_run *run, const pair *all)
{
    *run = (job_run){.worker = all->worker, .store = all->store, .spec = &all->spec, .model = round_model(3)};
    EXPECT_OK(base_alloc(&run->flag, PIECES_MOST, 1, "flags"));
    EXPECT_OK(base_alloc(&run->added, PIECES_MOST, sizeof *run->added, "marks"));
    EXPECT_OK(base_alloc(&run->counter, PIECES_MOST, sizeof *run->counter, "counters"));
    EXPECT_OK(base_alloc(&run->sum, TOP + 2 - SLICES, sizeof *run->sum, "sums"));
    EXPECT_OK(base_alloc(&run->held, SLICES, sizeof *run->held, "slices"));
    EXPECT_OK(base_alloc(&run->maker, SLICES, sizeof *run->maker, "slices"));
    job_piece_begin(run);
}

static int begin(void **state)
{
    pair *all = calloc(1, sizeof *all);
    all->store = open_store("mem:");
    EXPECT_OK(shoal_worker_new(&all->worker, all->store, &(shoal_worker_options){.slots = 1}));
    strcpy(all->spec.id, "toy-1");
    all->spec.slices = SLICES;
    all->spec.shape =
        (shoal_shape){.rows = SLICES * ROWS_A_SLICE, .columns = 3, .rows_per_grain = ROWS_A_SLICE, .grains = SLICES};
    EXPECT_OK(base_alloc(&all->spec.slice, SLICES, sizeof *all->spec.slice, "slices"));
    for (int i = 0; i < SLICES; i++)
        all->spec.slice[i] = (job_slice){.first_grain = i, .grains = 1};
    EXPECT_OK(job_tree_choose(&all->spec.tree, "two-level", SLICES));
    assert_int_equal(all->spec.tree.pieces, TOP + 1);
    for (int w = 0; w < 2; w++)
        begin_run(&all->run[w], all);
    *state = all;
    return 0;
}

/* A slice's partial, as if this many of its rows had been mapped, from one of them on: its sums are 10^slice. */
static void map_rows(job_run *run, int64_t slice, int64_t from, int64_t rows)
{
    static const int64_t worth[SLICES] = {1, 10, 100, 1000};
    EXPECT_OK(learn_partial_new(&run->held[slice].partial, &run->model->round->layout, slice * ROWS_A_SLICE + from,
                                rows, NULL));
    shoal_partial_values(run->held[slice].partial, 0)[0] = worth[slice];
    run->counter[slice][0] = worth[slice];
    run->flag[slice] |= JOB_HERE;
}

static void map(job_run *run, int64_t slice)
{
    map_rows(run, slice, 0, ROWS_A_SLICE);
}

static int end(void **state)
{
    pair *all = *state;
    for (int w = 0; w < 2; w++) {
        job_run *run = &all->run[w];
        for (int i = 0; i < SLICES; i++)
            learn_partial_free(&run->held[i].partial);
        job_model_free(&run->model);
        job_round_release(run);
    }
    base_free(&all->spec.slice);
    shoal_worker_free(&all->worker);
    shoal_store_close(&all->store);
    free(all);
    return 0;
}

static void expect_sum(job_run *run, int64_t piece, int64_t value)
{
    shoal_partial *sum = NULL;
    EXPECT_OK(job_piece_sum(&sum, run, piece));
    assert_int_equal(shoal_partial_values(sum, 0)[0], value);
    assert_int_equal(run->counter[piece][0], value);
}

static void each_is_counted_once(void **state)
{
    pair *all = *state;
    job_run *maker = &all->run[0], *merger = &all->run[1];
    shoal_blob blob = {0};
    int64_t came = 0;
    map(maker, 0);
    map(merger, 1);
    EXPECT_OK(job_piece_put(maker, 0));
    EXPECT_OK(job_piece_put(maker, 0)); /* it is there already */
    EXPECT_OK(shoal_store_get_framed(all->store, job_key_piece("toy-1", 3, &all->spec.tree, 0).text, JOB_KIND_PIECE,
                                     &blob, soon()));
    for (int twice = 0; twice < 2; twice++) {
        EXPECT_OK(job_piece_add_bytes(merger, 0, blob.data, blob.size));
        EXPECT_OK(job_piece_add(merger, 1));
        EXPECT_OK(job_piece_fetch(merger, 4, false, &came));
        assert_int_equal(came, 0);
        expect_sum(merger, 4, 11);
    }
    shoal_blob_release(&blob);
}

static void those_that_are_there_are_fetched(void **state)
{
    pair *all = *state;
    job_run *maker = &all->run[0], *merger = &all->run[1];
    int64_t came = 0;
    map(maker, 3);
    EXPECT_OK(job_piece_put(maker, 3));
    EXPECT_OK(job_piece_fetch(merger, 5, true, &came)); /* the first is not there, so the others are not asked for */
    assert_int_equal(came, 0);
    EXPECT_OK(job_piece_fetch(merger, 5, false, &came));
    assert_int_equal(came, 1);
    assert_int_equal(merger->flag[3], JOB_HERE | JOB_STORED | JOB_FETCHED);
    map(maker, 2);
    EXPECT_OK(job_piece_put(maker, 2));
    EXPECT_OK(job_piece_fetch(merger, 5, true, &came));
    assert_int_equal(came, 1);
    expect_sum(merger, 5, 1100);
}

/* A piece under a name that is not its own, from another round or another model, or of too few rows, as a machine would
 * put it that computes incorrectly, or somebody else. */
static void strangers_are_refused_and_removed(void **state)
{
    pair *all = *state;
    job_run *maker = &all->run[0], *merger = &all->run[1];
    job_key key = job_key_piece("toy-1", 3, &all->spec.tree, 2);
    static unsigned char padded[1 << 20];
    for (int wrong = 0; wrong < 9; wrong++) {
        shoal_blob blob = {0};
        int64_t came = 0;
        maker->model->number = wrong == 1 ? 4 : 3;
        maker->model->check = merger->model->check ^ (wrong == 2);
        int64_t made = wrong == 0 ? 3 : 2;
        /* Without the first row, or the last. */
        map_rows(maker, made, wrong == 5, ROWS_A_SLICE - (wrong == 5 || wrong == 6));
        job_key there = job_key_piece("toy-1", maker->model->number, &all->spec.tree, made);
        EXPECT_OK(job_piece_put(maker, made));
        EXPECT_OK(shoal_store_get_framed(all->store, there.text, JOB_KIND_PIECE, &blob, soon()));
        EXPECT_OK(shoal_store_remove(all->store, there.text, soon()));
        EXPECT_OK(shoal_store_put_framed(all->store, key.text, JOB_KIND_PIECE, blob.data, blob.size - (wrong == 3),
                                         NULL, NULL, soon()));
        memcpy(padded, blob.data, blob.size);
        size_t size = wrong == 7 ? blob.size + 1 : sizeof padded; /* by a byte, or by far */
        if (wrong >= 7)
            EXPECT_OK(shoal_store_put_framed(all->store, key.text, JOB_KIND_PIECE, padded, size, NULL, NULL, soon()));
        if (wrong == 4)
            EXPECT_OK(shoal_store_put(all->store, key.text, "not framed", 10, NULL, NULL, soon()));
        merger->flag[2] |= JOB_STORED;
        EXPECT_OK(job_piece_fetch(merger, 5, false, &came));
        assert_int_equal(came, 0);
        assert_int_equal(merger->flag[2], 0);
        expect_sum(merger, 5, 0);
        shoal_blob_release(&blob);
        assert_int_equal(shoal_store_get(all->store, key.text, &blob, soon()), SHOAL_ABSENT);
        learn_partial_free(&maker->held[made].partial);
    }
}

/* Pieces with records, of which the round keeps all, may have any size: the worker has room for some. */
static void begin_records(pair *all, int64_t room)
{
    for (int w = 0; w < 2; w++) {
        shoal_round *round = all->run[w].model->round;
        round->layout.cells = 2;
        round->layout.cell[1] = (shoal_cell){.name = "found", .kind = SHOAL_CELL_RECORD, .bytes = 1000};
        all->run[w].memory.blob = room;
    }
}

/* They take their share each, and one that needs more comes alone. */
static void pieces_of_any_size(void **state)
{
    pair *all = *state;
    job_run *maker = &all->run[0], *merger = &all->run[1];
    static const unsigned char bytes[1000];
    int64_t came = 0;
    begin_records(all, 24000);
    for (int slice = 2; slice < SLICES; slice++) {
        map(maker, slice);
        for (uint64_t i = 0; i < (slice == 2 ? 2 : 20); i++)
            EXPECT_OK(shoal_partial_record(maker->held[slice].partial, 1, (shoal_key){(uint64_t)slice, i}, bytes));
        EXPECT_OK(learn_partial_settle(maker->held[slice].partial));
        EXPECT_OK(job_piece_put(maker, slice));
    }
    EXPECT_OK(job_piece_fetch(merger, 5, false, &came));
    assert_int_equal(came, 2);
    expect_sum(merger, 5, 1100);
}

/* One that this worker could not hold is removed, and ends its work only if what is made instead is as large. */
static void a_piece_that_is_too_large(void **state)
{
    pair *all = *state;
    job_run *merger = &all->run[1];
    static unsigned char bytes[30000];
    job_key key = job_key_piece("toy-1", 3, &all->spec.tree, 2);
    int64_t came = 0;
    begin_records(all, 24000);
    EXPECT_OK(shoal_store_put_framed(all->store, key.text, JOB_KIND_PIECE, bytes, sizeof bytes, NULL, NULL, soon()));
    EXPECT_OK(job_piece_fetch(merger, 5, false, &came));
    assert_int_equal(came, 0);
    EXPECT_OK(
        shoal_store_put_framed(all->store, key.text, JOB_KIND_PIECE, bytes, sizeof bytes, SHOAL_NOTHING, NULL, soon()));
    EXPECT_FAIL(job_piece_fetch(merger, 5, false, &came), SHOAL_MEMORY, "it has 30048 bytes");
}

/* What comes first stays: another's copy has the same content, and who reads it meanwhile must not see it change. */
static void a_piece_that_is_there_is_not_overwritten(void **state)
{
    pair *all = *state;
    job_key key = job_key_piece("toy-1", 3, &all->spec.tree, 0);
    shoal_blob before = {0}, after = {0};
    for (int w = 0; w < 2; w++)
        map(&all->run[w], 0);
    EXPECT_OK(job_piece_put(&all->run[0], 0));
    EXPECT_OK(shoal_store_get(all->store, key.text, &before, soon()));
    EXPECT_OK(job_piece_put(&all->run[1], 0));
    EXPECT_OK(shoal_store_get(all->store, key.text, &after, soon()));
    assert_string_equal(before.etag.text, after.etag.text);
    shoal_blob_release(&before);
    shoal_blob_release(&after);
}

static void pieces_say_which_model_they_are_of(void **state)
{
    pair *all = *state;
    job_run *maker = &all->run[0], *reader = &all->run[1];
    job_key key = job_key_piece("toy-1", 3, &all->spec.tree, 0);
    bool is = true;
    EXPECT_OK(job_piece_is_of_model(&is, reader, key.text));
    assert_false(is);
    map(maker, 0);
    EXPECT_OK(job_piece_put(maker, 0));
    EXPECT_OK(job_piece_is_of_model(&is, reader, key.text));
    assert_true(is);
    reader->model->check ^= 1;
    EXPECT_OK(job_piece_is_of_model(&is, reader, key.text));
    assert_false(is);
    EXPECT_OK(shoal_store_put(all->store, key.text, "short", 5, NULL, NULL, soon()));
    EXPECT_OK(job_piece_is_of_model(&is, reader, key.text));
    assert_true(is);
}

/* Nothing of a round is left for the next. */
static void rounds_begin_empty(void **state)
{
    pair *all = *state;
    job_run *run = &all->run[0];
    map(run, 0);
    EXPECT_OK(job_piece_add(run, 0));
    expect_sum(run, 4, 1);
    shoal_partial *mapped = run->held[0].partial;
    job_piece_begin(run);
    expect_sum(run, 4, 0);
    assert_false(run->added[0]);
    assert_int_equal(run->flag[0], 0);
    assert_null(run->held[0].partial);
    learn_partial_free(&mapped);
}

/* From now on sums are reduced in two ranges: slices 0 to 3 and, in the second range, 4 to 7; groups 8 and 9, 10 and
 * 11; tops 12 and 13; all of it 14. */
static void begin_ranges(pair *all)
{
    assert_true(job_tree_cut(&all->spec.ranged, &all->spec.tree, RANGES));
    for (int w = 0; w < 2; w++) {
        shoal_layout *layout = &all->run[w].model->round->layout;
        layout->cells = 3;
        layout->cell[1] = (shoal_cell){.name = "wide", .kind = SHOAL_CELL_WIDE, .count = 2};
        layout->cell[2] = (shoal_cell){.name = "most", .kind = SHOAL_CELL_MAX, .count = 1};
        job_piece_begin(&all->run[w]);
        assert_ptr_equal(all->run[w].tree, &all->spec.ranged);
    }
}

/* Slice s: sums 10^s, 2 * 10^s and 3 * 10^s, the maximum s. */
static void map_values(job_run *run, int64_t slice)
{
    map(run, slice);
    job_piece_flag(run, slice, JOB_HERE, 0);
    int64_t *sums = shoal_partial_values(run->held[slice].partial, 0);
    for (int i = 1; i < 3; i++)
        sums[i] = (i + 1) * sums[0];
    shoal_partial_values(run->held[slice].partial, 2)[0] = shoal_order_key((double)slice);
}

static void expect_values(job_run *run, int64_t piece, int64_t first, int64_t others, double most)
{
    shoal_partial *sum = NULL;
    EXPECT_OK(job_piece_sum(&sum, run, piece));
    assert_int_equal(shoal_partial_values(sum, 0)[0], first);
    assert_int_equal(shoal_partial_values(sum, 0)[1], 2 * others);
    assert_int_equal(shoal_partial_values(sum, 0)[2], 3 * others);
    assert_true(shoal_partial_values(sum, 2)[0] == shoal_order_key(most));
}

static void add_children(job_run *run, int64_t piece)
{
    int64_t first, end;
    job_tree_children(run->tree, piece, &first, &end);
    for (; first < end; first++) {
        assert_true(run->flag[first] & JOB_HERE);
        EXPECT_OK(job_piece_add(run, first));
    }
    run->flag[piece] |= JOB_HERE;
}

static void ranges_are_merged_apart(void **state)
{
    pair *all = *state;
    job_run *maker = &all->run[0], *merger = &all->run[1];
    int64_t came = 0;
    begin_ranges(all);
    for (int64_t slice = 0; slice < SLICES; slice++)
        map_values(slice < 2 ? maker : merger, slice);
    for (int64_t slice = 0; slice < 2; slice++)
        EXPECT_OK(job_piece_put(maker, slice));
    EXPECT_OK(job_piece_fetch(merger, 8, false, &came));
    assert_int_equal(came, 2);
    assert_int_equal(merger->flag[1], JOB_HERE | JOB_STORED | JOB_FETCHED);
    assert_int_equal(merger->flag[5], JOB_STORED); /* of the other range it has nothing */
    expect_values(merger, 8, 11, 0, -INFINITY);
    EXPECT_OK(job_piece_fetch(merger, 10, false, &came));
    expect_values(merger, 10, 11, 11, 1);
    assert_int_equal(merger->counter[8][0], 11); /* counted once */
    assert_int_equal(merger->counter[10][0], 0);
    for (int64_t piece = 8; piece < PIECES_MOST; piece++)
        add_children(merger, piece);
    expect_values(merger, 14, 1111, 1111, 3);
    assert_int_equal(merger->counter[14][0], 1111);
    job_key key = job_key_piece("toy-1", 3, merger->tree, 13);
    static const unsigned char more[1000]; /* than any range has: it is not even fetched */
    EXPECT_OK(shoal_store_put_framed(all->store, key.text, JOB_KIND_PIECE, more, sizeof more, NULL, NULL, soon()));
    EXPECT_OK(job_piece_fetch(maker, 14, false, &came));
    assert_int_equal(came, 0);
    EXPECT_OK(job_piece_put(merger, 13)); /* what another takes of it is the same */
    EXPECT_OK(job_piece_fetch(maker, 14, false, &came));
    assert_int_equal(came, 1);
    expect_values(maker, 14, 0, 1111, 3);
}

/* One damaged range is enough to make the slice anew; the others can be read until then. */
static void a_damaged_range_is_found(void **state)
{
    pair *all = *state;
    job_run *maker = &all->run[0], *merger = &all->run[1];
    begin_ranges(all);
    map_values(maker, 0);
    job_key key = job_key_piece("toy-1", 3, maker->tree, 0);
    shoal_blob blob = {0};
    EXPECT_OK(job_piece_put(maker, 0));
    EXPECT_OK(shoal_store_get(all->store, key.text, &blob, soon()));
    for (size_t byte = SHOAL_FRAME_BYTES; byte <= blob.size; byte++) { /* at last one is missing */
        int64_t came[2] = {0, 0};
        job_piece_begin(merger);
        unsigned char *bytes = blob.data;
        size_t size = byte < blob.size ? blob.size : blob.size - 1;
        bytes[byte % blob.size] ^= byte < blob.size;
        EXPECT_OK(shoal_store_put(all->store, key.text, bytes, size, NULL, NULL, soon()));
        bytes[byte % blob.size] ^= byte < blob.size;
        EXPECT_OK(job_piece_fetch(merger, 8, false, &came[0]));
        EXPECT_OK(job_piece_fetch(merger, 10, false, &came[1]));
        assert_int_equal(came[0] + came[1] < 2, true);
        assert_int_equal(merger->flag[0] & JOB_STORED, 0);
        assert_int_equal(merger->flag[4] & JOB_STORED, 0);
        expect_values(merger, 8, came[0] ? 1 : 0, 0, -INFINITY);
        shoal_blob gone = {0};
        assert_int_equal(shoal_store_get(all->store, key.text, &gone, soon()), SHOAL_ABSENT);
    }
    shoal_blob_release(&blob);
}

/* Records, rows, and sums of too few bytes are not cut. */
static void small_sums_and_records_stay_whole(void **state)
{
    pair *all = *state;
    job_run *run = &all->run[0];
    shoal_layout *layout = &run->model->round->layout;
    begin_ranges(all);
    layout->cell[1] = (shoal_cell){.name = "found", .kind = SHOAL_CELL_RECORD, .bytes = 1000};
    assert_ptr_equal(job_spec_tree(&all->spec, layout), &all->spec.tree);
    layout->cell[1] = (shoal_cell){.name = "rows", .kind = SHOAL_CELL_ROW, .bytes = 8};
    assert_ptr_equal(job_spec_tree(&all->spec, layout), &all->spec.tree);
    layout->cells = 1;
    all->spec.range_bytes = 8;
    assert_ptr_equal(job_spec_tree(&all->spec, layout), &all->spec.ranged);
    all->spec.range_bytes = 16;
    assert_ptr_equal(job_spec_tree(&all->spec, layout), &all->spec.tree);
}

static void who_leaves_fetches_nothing(void **state)
{
    pair *all = *state;
    int64_t came = 0;
    map(&all->run[0], 0);
    EXPECT_OK(job_piece_put(&all->run[0], 0));
    shoal_worker_leave(all->worker, "test");
    EXPECT_FAIL(job_piece_fetch(&all->run[1], 4, false, &came), SHOAL_STOPPED, "leave");
    assert_int_equal(came, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_is_counted_once, begin, end),
        cmocka_unit_test_setup_teardown(those_that_are_there_are_fetched, begin, end),
        cmocka_unit_test_setup_teardown(strangers_are_refused_and_removed, begin, end),
        cmocka_unit_test_setup_teardown(pieces_of_any_size, begin, end),
        cmocka_unit_test_setup_teardown(a_piece_that_is_too_large, begin, end),
        cmocka_unit_test_setup_teardown(a_piece_that_is_there_is_not_overwritten, begin, end),
        cmocka_unit_test_setup_teardown(pieces_say_which_model_they_are_of, begin, end),
        cmocka_unit_test_setup_teardown(rounds_begin_empty, begin, end),
        cmocka_unit_test_setup_teardown(ranges_are_merged_apart, begin, end),
        cmocka_unit_test_setup_teardown(a_damaged_range_is_found, begin, end),
        cmocka_unit_test_setup_teardown(small_sums_and_records_stay_whole, begin, end),
        cmocka_unit_test_setup_teardown(who_leaves_fetches_nothing, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
