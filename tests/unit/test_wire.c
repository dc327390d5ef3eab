/* Labels: threads Rounds, partials and results as bytes: what comes back is what went in, encoded partials merge to
 * what the threads engine has, in any order and in any groups, and bytes that are not ours are refused or harmless. */
#include "unit/slice_support.h"

static uint64_t draws;

static uint64_t draw(uint64_t bound)
{
    return base_random_below(bound, 31, BASE_FOR_DATA, draws++, 0);
}

static void mix(int64_t *order, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)draw((uint64_t)i + 1), item = order[i];
        order[i] = order[j];
        order[j] = item;
    }
}

/* ---- there and back ---------------------------------------------------------------------------------------------- */

static shoal_round *decode_round(encoded bytes)
{
    shoal_round *round = NULL;
    base_reader in = base_reader_of(bytes.bytes, bytes.size);
    hand_check(learn_round_read(&round, &in));
    assert_true(base_reader_done(&in));
    return round;
}

static void expect_same_rounds(const shoal_round *a, const shoal_round *b)
{
    assert_int_equal(a->number, b->number);
    assert_string_equal(a->phase, b->phase);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->steps, b->steps);
    assert_memory_equal(&a->objective, &b->objective, sizeof a->objective); /* NaN included */
    assert_memory_equal(&a->change, &b->change, sizeof a->change);
    assert_int_equal(a->model_bytes, b->model_bytes);
    assert_memory_equal(a->model, b->model, a->model_bytes);
    assert_true(learn_layout_equal(&a->layout, &b->layout));
    assert_int_equal(a->layout.memo_row_bytes, b->layout.memo_row_bytes);
    assert_int_equal(a->layout.carry_from, b->layout.carry_from);
    assert_int_equal(a->layout.writes_memo, b->layout.writes_memo);
    assert_int_equal(a->keeps, b->keeps);
    for (int i = 0; i < a->keeps; i++) {
        assert_int_equal(a->kept[i]->born, b->kept[i]->born);
        assert_int_equal(a->kept[i]->bytes, b->kept[i]->bytes);
        assert_int_equal(a->kept[i]->check, b->kept[i]->check);
        assert_null(b->kept[i]->values); /* they travel on their own */
    }
}

/* Encodes, decodes, and goes on with what came back. */
static shoal_round *send_round(shoal_round *round)
{
    encoded bytes = encode_round(round);
    shoal_round *there = decode_round(bytes);
    expect_same_rounds(round, there);
    encoded again = encode_round(there);
    expect_same_bytes(bytes, again);
    base_free(&bytes.bytes);
    base_free(&again.bytes);
    shoal_round_free(&round);
    return there;
}

/* The slices' partials, encoded and merged in any order, directly and by way of groups, are the whole's to the bit. */
static shoal_partial *merge_in_some_order(const sliced *run, const shoal_round *round, const encoded *part)
{
    int64_t order[SLICES_MOST], groups = 1 + (int64_t)draw((uint64_t)run->slices);
    encoded group[SLICES_MOST];
    for (int64_t g = 0; g < groups; g++) {
        int64_t first = run->slices * g / groups, end = run->slices * (g + 1) / groups;
        int64_t first_row = sliced_first_row(run, (int)first);
        mix(order, end - first);
        shoal_partial *merged = merge_encoded(&round->layout, first_row, sliced_first_row(run, (int)end) - first_row,
                                              part + first, order, end - first);
        group[g] = encode_partial(merged);
        learn_partial_free(&merged);
    }
    mix(order, groups);
    shoal_partial *merged = merge_encoded(&round->layout, 0, run->shape.rows, group, order, groups);
    for (int64_t g = 0; g < groups; g++)
        base_free(&group[g].bytes);
    return merged;
}

static encoded encode_slice(const sliced *run, int s)
{
    shoal_partial *partial = NULL;
    hand_check(engine_slice_map(&partial, run->mapper, run->slice[s]));
    return encode_partial(partial);
}

/* One round over the slices and over the whole. */
static shoal_partial *merge_round(const sliced *run, const sliced *whole, const shoal_round *round)
{
    encoded part[SLICES_MOST];
    hand_check(engine_mapper_begin(run->mapper, round));
    hand_check(engine_mapper_begin(whole->mapper, round));
    for (int s = 0; s < run->slices; s++)
        part[s] = encode_slice(run, s);
    shoal_partial *merged = merge_in_some_order(run, round, part);
    encoded of_whole = encode_slice(whole, 0), of_slices = encode_partial(merged);
    expect_same_bytes(of_whole, of_slices);
    base_free(&of_whole.bytes);
    base_free(&of_slices.bytes);
    for (int s = 0; s < run->slices; s++)
        base_free(&part[s].bytes);
    return merged;
}

static shoal_result *run_with_whole(sliced *run, sliced *whole)
{
    shoal_round *round = NULL, *next = NULL;
    shoal_result *result = NULL;
    sliced_begin(run);
    sliced_begin(whole);
    const shoal_crew *crew = engine_mapper_crew(run->mapper);
    hand_check(run->algorithm->start(&round, run->config, &run->shape));
    for (; !result; round = next) {
        round = send_round(round);
        shoal_partial *merged = merge_round(run, whole, round);
        next = NULL;
        hand_check(run->algorithm->update(&next, &result, round, merged, &run->shape, crew, false));
        if (next)
            next->number = round->number + 1;
        shoal_round_free(&round);
        learn_partial_free(&merged);
    }
    sliced_end(run);
    sliced_end(whole);
    return result;
}

static void expect_result_returns(const shoal_result *result)
{
    shoal_result *there = NULL;
    encoded bytes = encode_result(result);
    base_reader in = base_reader_of(bytes.bytes, bytes.size);
    hand_check(learn_result_read(&there, &in));
    assert_true(base_reader_done(&in));
    expect_same_results(there, result);
    assert_int_equal(there->incomplete, result->incomplete);
    for (int n = 0; n < result->numbers; n++) {
        assert_int_equal(there->number[n].whole, result->number[n].whole);
        assert_int_equal(there->number[n].truth, result->number[n].truth);
    }
    encoded again = encode_result(there);
    expect_same_bytes(bytes, again);
    base_free(&bytes.bytes);
    base_free(&again.bytes);
    shoal_result_free(&there);
}

static void test_kmeans_travels(void **state)
{
    (void)state;
    for (int c = 0; c < SLICED_CASES; c++) {
        sliced_work work;
        make_work(&work, &sliced_cases[c]);
        shoal_result *expected = run_by_threads(&work, NULL);
        for (int slices = 1; slices <= 7; slices += 3) {
            sliced run = sliced_of(&work, work.algorithm, slices, 1), whole = sliced_of(&work, work.algorithm, 1, 2);
            shoal_result *result = run_with_whole(&run, &whole);
            expect_same_results(result, expected);
            expect_result_returns(result);
            shoal_result_free(&result);
        }
        shoal_result_free(&expected);
        drop_work(&work);
    }
}

/* ---- one of everything ------------------------------------------------------------------------------------------- */

enum { SUMS, WIDES, MAXIMA, ALL_RECORDS, SOME_RECORDS, KEYS, ROWS, CELLS };
enum { FIRST_ROW = 100, ROW_COUNT = 6, KEPT = 2 };

static const shoal_layout everything = {.cells = CELLS,
                                        .cell = {[SUMS] = {"sums", SHOAL_CELL_SUM, 3, 0, true},
                                                 [WIDES] = {"wides", SHOAL_CELL_WIDE, 2, 0, false},
                                                 [MAXIMA] = {"maxima", SHOAL_CELL_MAX, 2, 0, false},
                                                 [ALL_RECORDS] = {"all", SHOAL_CELL_RECORD, 0, 5, false},
                                                 [SOME_RECORDS] = {"some", SHOAL_CELL_RECORD, KEPT, 3, false},
                                                 [KEYS] = {"keys alone", SHOAL_CELL_RECORD, 0, 0, false},
                                                 [ROWS] = {"rows", SHOAL_CELL_ROW, 0, 3, false}},
                                        .memo_row_bytes = 12,
                                        .carry_from = 4,
                                        .writes_memo = true};

static shoal_partial *new_partial(const shoal_layout *layout, int64_t first_row, int64_t rows)
{
    shoal_partial *partial = NULL;
    hand_check(learn_partial_new(&partial, layout, first_row, rows, NULL));
    return partial;
}

/* A settled partial with something in every cell. */
static shoal_partial *make_partial(int64_t first_row, int64_t rows, int64_t salt)
{
    shoal_partial *partial = new_partial(&everything, first_row, rows);
    for (int i = 0; i < 3; i++)
        shoal_partial_values(partial, SUMS)[i] = salt * 1000003 - i;
    for (int i = 0; i < 4; i++)
        shoal_partial_values(partial, WIDES)[i] = -salt + i;
    shoal_max_raise(shoal_partial_values(partial, MAXIMA), 1, (double)salt / 3);
    for (uint64_t k = 0; k < 4; k++) {
        hand_check(shoal_partial_record(partial, ALL_RECORDS, (shoal_key){k % 2, 7 * k}, "bytes"));
        hand_check(shoal_partial_record(partial, SOME_RECORDS, (shoal_key){5 - k, (uint64_t)salt}, "abc"));
        hand_check(shoal_partial_record(partial, KEYS, (shoal_key){UINT64_MAX - k, 3}, NULL));
    }
    memset(shoal_partial_row(partial, ROWS, first_row), (int)salt, (size_t)rows * 3);
    hand_check(learn_partial_settle(partial));
    return partial;
}

static shoal_round *make_round(void)
{
    shoal_round *round = NULL;
    hand_check(shoal_round_new(&round, 11));
    memcpy(round->model, "eleven byte", 11);
    round->number = 5;
    round->layout = everything;
    round->step = 2;
    round->steps = 9;
    round->objective = 0.1;
    strcpy(round->phase, "a phase of 23 letters..");
    for (int i = 0; i < 2; i++) {
        assert_non_null(shoal_round_keep(round, 10 + (size_t)i));
        assert_null(shoal_round_keep(round, 10)); /* once a round, and this one has no number yet */
        round->kept[i]->born = 3 + i;
        round->kept[i]->check = 77;
    }
    return round;
}

static shoal_result *make_result(void)
{
    static const int64_t shape[4] = {2, 1, 3, 1};
    shoal_result *result = NULL;
    hand_check(shoal_result_new(&result));
    memcpy(shoal_result_add(result, "sixes", SHOAL_INT16, 4, shape), "abcdefghijkl", 12);
    *(double *)shoal_result_add(result, "alone", SHOAL_FLOAT64, 0, shape) = -0.0;
    shoal_result_add(result, "nothing", SHOAL_UINT8, 2, (const int64_t[]){0, 7});
    shoal_result_set(result, "pi", 3.14);
    shoal_result_set_whole(result, "answer", 42);
    shoal_result_set_truth(result, "a name of thirty-one letters...", true);
    result->incomplete = true;
    return result;
}

static void test_everything_returns(void **state)
{
    (void)state;
    shoal_round *round = send_round(make_round());
    shoal_result *result = make_result();
    shoal_partial *partial = make_partial(FIRST_ROW, ROW_COUNT, 9);
    expect_result_returns(result);
    encoded bytes = encode_partial(partial);
    shoal_partial *there = merge_encoded(&everything, FIRST_ROW, ROW_COUNT, &bytes, (const int64_t[]){0}, 1);
    expect_same_partials(partial, there);
    assert_memory_equal(shoal_partial_row(there, ROWS, FIRST_ROW), shoal_partial_row(partial, ROWS, FIRST_ROW), 18);
    encoded again = encode_partial(there);
    expect_same_bytes(bytes, again);
    base_free(&bytes.bytes);
    base_free(&again.bytes);
    learn_partial_free(&partial);
    learn_partial_free(&there);
    shoal_result_free(&result);
    shoal_round_free(&round);
}

/* What follows a thing stays in the reader. */
static void test_one_behind_the_other(void **state)
{
    (void)state;
    shoal_round *round = make_round(), *round_there = NULL;
    shoal_result *result = make_result(), *result_there = NULL;
    shoal_partial *partial = make_partial(FIRST_ROW, ROW_COUNT, 9), *into = new_partial(&everything, 0, 1000);
    base_writer out = {0};
    learn_round_write(&out, round);
    learn_result_write(&out, result);
    base_write_u8(&out, 77);
    learn_partial_write(&out, partial);
    base_reader in = base_reader_of(out.data, out.size), padded;
    hand_check(learn_round_read(&round_there, &in));
    hand_check(learn_result_read(&result_there, &in));
    assert_int_equal(base_read_u8(&in), 77);
    size_t before = out.size - in.left;
    hand_check(learn_partial_merge_read(into, &in));
    assert_true(base_reader_done(&in));
    base_write_u8(&out, 77); /* nothing follows a partial */
    padded = base_reader_of((unsigned char *)out.data + before, out.size - before);
    assert_int_equal(learn_partial_merge_read(into, &padded), SHOAL_BROKEN);
    assert_memory_equal(shoal_partial_row(into, ROWS, FIRST_ROW), shoal_partial_row(partial, ROWS, FIRST_ROW), 18);
    base_writer_release(&out);
    shoal_round_free(&round);
    shoal_round_free(&round_there);
    shoal_result_free(&result);
    shoal_result_free(&result_there);
    learn_partial_free(&partial);
    learn_partial_free(&into);
}

/* Many partials of which only the greatest records are kept never need room for all. */
static void test_kept_records(void **state)
{
    (void)state;
    shoal_partial *into = new_partial(&everything, 0, 1000);
    for (int i = 1; i <= 50; i++) {
        shoal_partial *partial = make_partial(i, 1, i);
        encoded bytes = encode_partial(partial);
        base_reader in = base_reader_of(bytes.bytes, bytes.size);
        hand_check(learn_partial_merge_read(into, &in));
        assert_true(shoal_partial_records(into, SOME_RECORDS) <= 16);
        learn_partial_free(&partial);
        base_free(&bytes.bytes);
    }
    hand_check(learn_partial_settle(into));
    assert_int_equal(shoal_partial_records(into, SOME_RECORDS), KEPT);
    assert_int_equal(shoal_partial_records(into, ALL_RECORDS), 4); /* equal ones are one */
    shoal_key key;
    shoal_partial_record_at(into, SOME_RECORDS, KEPT - 1, &key);
    assert_true(key.high == 5 && key.low == 50);
    learn_partial_free(&into);
}

/* ---- bytes that are not ours ------------------------------------------------------------------------------------- */

typedef enum thing { A_ROUND, A_PARTIAL, A_RESULT, THINGS } thing;

static encoded make_thing(thing what)
{
    shoal_round *round = make_round();
    shoal_partial *partial = make_partial(FIRST_ROW, ROW_COUNT, 9);
    shoal_result *result = make_result();
    encoded bytes = what == A_ROUND     ? encode_round(round)
                    : what == A_PARTIAL ? encode_partial(partial)
                                        : encode_result(result);
    shoal_round_free(&round);
    learn_partial_free(&partial);
    shoal_result_free(&result);
    return bytes;
}

/* A partial that already has something, so that it can be seen whether it stays. */
static int read_partial(encoded bytes)
{
    shoal_partial *into = make_partial(FIRST_ROW, ROW_COUNT, 1);
    encoded before = encode_partial(into);
    base_reader in = base_reader_of(bytes.bytes, bytes.size);
    int status = learn_partial_merge_read(into, &in);
    if (status < 0) {
        encoded after = encode_partial(into);
        expect_same_bytes(before, after);
        base_free(&after.bytes);
    } else {
        int settled = learn_partial_settle(into); /* two records with one key, perhaps */
        assert_true(settled == SHOAL_OK || settled == SHOAL_BROKEN);
    }
    base_free(&before.bytes);
    learn_partial_free(&into);
    return status;
}

/* Reads it; what is accepted must encode to the bytes that were read. */
static int read_thing(thing what, encoded bytes)
{
    base_reader in = base_reader_of(bytes.bytes, bytes.size);
    shoal_round *round = NULL;
    shoal_result *result = NULL;
    encoded again = {0};
    if (what == A_PARTIAL)
        return read_partial(bytes);
    int status = what == A_ROUND ? learn_round_read(&round, &in) : learn_result_read(&result, &in);
    if (status == SHOAL_OK) {
        again = round ? encode_round(round) : encode_result(result);
        assert_int_equal(again.size, bytes.size - in.left);
        assert_memory_equal(again.bytes, bytes.bytes, again.size);
    } else {
        assert_null(round);
        assert_null(result);
    }
    base_free(&again.bytes);
    shoal_round_free(&round);
    shoal_result_free(&result);
    return status;
}

/* In memory of just that size, so that the address sanitizer sees a byte too many. */
static encoded copy_of(encoded bytes, size_t size)
{
    encoded copy = {malloc(size ? size : 1), size};
    memcpy(copy.bytes, bytes.bytes, size);
    return copy;
}

static void test_every_truncation(void **state)
{
    (void)state;
    for (thing what = 0; what < THINGS; what++) {
        encoded bytes = make_thing(what);
        assert_int_equal(read_thing(what, bytes), SHOAL_OK);
        for (size_t size = 0; size < bytes.size; size++) {
            encoded cut = copy_of(bytes, size);
            assert_int_equal(read_thing(what, cut), SHOAL_BROKEN);
            assert_true(shoal_error()[0] != 0);
            free(cut.bytes);
        }
        base_free(&bytes.bytes);
    }
}

static void test_every_flipped_byte(void **state)
{
    (void)state;
    static const unsigned char flips[] = {1, 2, 4, 8, 16, 32, 64, 128, 255, 0x7f};
    for (thing what = 0; what < THINGS; what++) {
        encoded bytes = make_thing(what);
        int64_t refused = 0, accepted = 0;
        for (size_t i = 0; i < bytes.size; i++)
            for (size_t f = 0; f < sizeof flips; f++) {
                encoded flipped = copy_of(bytes, bytes.size);
                ((unsigned char *)flipped.bytes)[i] ^= flips[f];
                int status = read_thing(what, flipped);
                assert_true(status == SHOAL_OK || status == SHOAL_BROKEN);
                refused += status < 0;
                accepted += status == SHOAL_OK;
                free(flipped.bytes);
            }
        assert_true(refused > 50 && accepted > 50); /* a model's byte, or a sum's, can be anything */
        base_free(&bytes.bytes);
    }
}

/* The same for every round of a real run, which is what meets real trouble. */
static void test_real_rounds_flipped(void **state)
{
    (void)state;
    sliced_work work;
    make_work(&work, &(sliced_case){"parallel", 40, 2, 3, 1, DATA_UNIFORM, true, false, false});
    sliced run = sliced_of(&work, work.algorithm, 2, 1);
    shoal_round *round = NULL, *next = NULL;
    shoal_result *result = NULL;
    sliced_begin(&run);
    hand_check(run.algorithm->start(&round, run.config, &run.shape));
    for (; !result; round = next) {
        hand_check(engine_mapper_begin(run.mapper, round));
        encoded part[2] = {encode_slice(&run, 0), encode_slice(&run, 1)};
        for (int p = 0; p < 2; p++)
            for (size_t i = 0; i < part[p].size; i++) {
                shoal_partial *into = new_partial(&round->layout, 0, run.shape.rows);
                encoded flipped = copy_of(part[p], part[p].size);
                ((unsigned char *)flipped.bytes)[i] ^= (unsigned char)(1 + draw(255));
                base_reader in = base_reader_of(flipped.bytes, flipped.size);
                int status = learn_partial_merge_read(into, &in);
                assert_true(status == SHOAL_OK || status == SHOAL_BROKEN);
                hand_check(learn_partial_settle(into));
                learn_partial_free(&into);
                free(flipped.bytes);
            }
        shoal_partial *merged = merge_encoded(&round->layout, 0, run.shape.rows, part, (const int64_t[]){1, 0}, 2);
        next = NULL;
        hand_check(
            run.algorithm->update(&next, &result, round, merged, &run.shape, engine_mapper_crew(run.mapper), false));
        if (next)
            next->number = round->number + 1;
        shoal_round_free(&round);
        learn_partial_free(&merged);
        base_free(&part[0].bytes);
        base_free(&part[1].bytes);
    }
    shoal_result_free(&result);
    sliced_end(&run);
    drop_work(&work);
}

/* ---- what is refused, and why ------------------------------------------------------------------------------------ */

/* Refused without asking for memory: when no allocation would succeed, the answer is still what is wrong. */
static void expect_broken_round(const shoal_round *round)
{
    shoal_round *there = NULL;
    encoded bytes = encode_round(round);
    base_reader in = base_reader_of(bytes.bytes, bytes.size);
    base_memory_fail_after(0);
    int status = learn_round_read(&there, &in);
    base_memory_fail_after(-1);
    assert_int_equal(status, SHOAL_BROKEN);
    assert_null(there);
    base_free(&bytes.bytes);
}

static void test_rounds_that_can_not_be(void **state)
{
    (void)state;
    shoal_round *good = make_round(), bad;
    for (int i = 0; i < 12; i++) {
        bad = *good;
        shoal_cell *cell = &bad.layout.cell[SUMS];
        switch (i) {
        case 0: cell->kind = SHOAL_CELL_ROW + 1; break;
        case 1: cell->count = -1; break;
        case 2: cell->count = INT64_MAX / 8; break;
        case 3: cell->bytes = SIZE_MAX; break;
        case 4: bad.layout.cell[MAXIMA].carried = true; break;
        case 5: bad.layout.memo_row_bytes = SIZE_MAX; break;
        case 6: bad.layout.carry_from = -2; break;
        case 7: bad.layout.carry_from = bad.number; break;
        case 8: bad.number = -1, bad.layout.carry_from = -1; break;
        case 9: bad.number = INT64_MAX; break;
        case 10: bad.layout.cell[ROWS].count = INT64_MIN; break;
        default: bad.layout.cell[ALL_RECORDS].bytes = (size_t)INT64_MAX; break;
        }
        expect_broken_round(&bad);
    }
    shoal_round_free(&good);
}

/* A round of `cells` cells: that of one cell, with the cell as often as is said. */
static int read_round_of(int cells)
{
    shoal_round *round = make_round(), *there = NULL;
    round->layout.cells = 1;
    encoded bytes = encode_round(round);
    const unsigned char *start = bytes.bytes;
    size_t before = 8 + 4 + strlen(round->phase) + 5 * 8, cell = 4 + strlen("sums") + 1 + 8 + 8 + 1;
    assert_int_equal(start[before], 1);
    base_writer out = {0};
    base_write_bytes(&out, start, before);
    base_write_u8(&out, (uint8_t)cells);
    for (int i = 0; i < cells; i++)
        base_write_bytes(&out, start + before + 1, cell);
    base_write_bytes(&out, start + before + 1 + cell, bytes.size - before - 1 - cell);
    base_reader in = base_reader_of(out.data, out.size);
    int status = learn_round_read(&there, &in);
    assert_true(status < 0 || (base_reader_done(&in) && there->layout.cells == cells));
    shoal_round_free(&there);
    shoal_round_free(&round);
    base_writer_release(&out);
    base_free(&bytes.bytes);
    return status;
}

static int read_result_of(int tensors, int numbers)
{
    shoal_result *there = NULL;
    base_writer out = {0};
    base_write_u8(&out, 0);
    base_write_u32(&out, (uint32_t)tensors);
    for (int i = 0; i < tensors; i++) {
        base_write_text(&out, "byte");
        base_write_u8(&out, SHOAL_UINT8);
        base_write_u8(&out, 0);
        base_write_u64(&out, 1);
        base_write_u8(&out, 7);
    }
    base_write_u32(&out, (uint32_t)numbers);
    for (int i = 0; i < numbers; i++) {
        base_write_text(&out, "one");
        base_write_double(&out, 1);
        base_write_u8(&out, 0);
        base_write_u8(&out, 0);
    }
    base_reader in = base_reader_of(out.data, out.size);
    int status = learn_result_read(&there, &in);
    assert_true(status < 0 || (base_reader_done(&in) && there->tensors == tensors && there->numbers == numbers));
    shoal_result_free(&there);
    base_writer_release(&out);
    return status;
}

/* What a round keeps was born in rounds one after the other, the first of them 1, the last of them itself. */
static void test_kept_by_time(void **state)
{
    static const int64_t born[][2] = {{4, 4}, {4, 3}, {0, 3}, {-1, 3}, {3, 6}};
    (void)state;
    for (size_t i = 0; i < sizeof born / sizeof *born; i++) {
        shoal_round *round = make_round();
        for (int k = 0; k < 2; k++)
            round->kept[k]->born = born[i][k];
        expect_broken_round(round);
        shoal_round_free(&round);
    }
}

static void test_more_than_there_is_room_for(void **state)
{
    (void)state;
    hand_check(read_round_of(0));
    hand_check(read_round_of(SHOAL_CELLS_MOST));
    assert_int_equal(read_round_of(SHOAL_CELLS_MOST + 1), SHOAL_BROKEN);
    hand_check(read_result_of(300, 500));
    hand_check(read_result_of(0, LEARN_RESULT_MOST));
    assert_int_equal(read_result_of(LEARN_RESULT_MOST + 1, 0), SHOAL_BROKEN);
    assert_int_equal(read_result_of(0, LEARN_RESULT_MOST + 1), SHOAL_BROKEN);
}

static int merge_into(const shoal_layout *layout, int64_t first_row, int64_t rows, const shoal_partial *from)
{
    shoal_partial *into = new_partial(layout, first_row, rows);
    encoded bytes = encode_partial(from);
    base_reader in = base_reader_of(bytes.bytes, bytes.size);
    int status = learn_partial_merge_read(into, &in);
    base_free(&bytes.bytes);
    learn_partial_free(&into);
    return status;
}

static void test_rows_must_belong(void **state)
{
    (void)state;
    shoal_partial *partial = make_partial(FIRST_ROW, ROW_COUNT, 9);
    hand_check(merge_into(&everything, FIRST_ROW, ROW_COUNT, partial));
    hand_check(merge_into(&everything, FIRST_ROW - 1, ROW_COUNT + 2, partial));
    assert_int_equal(merge_into(&everything, FIRST_ROW + 1, ROW_COUNT, partial), SHOAL_BROKEN);
    assert_non_null(strstr(shoal_error(), "row 100 "));
    assert_int_equal(merge_into(&everything, FIRST_ROW, ROW_COUNT - 1, partial), SHOAL_BROKEN);
    assert_int_equal(merge_into(&everything, FIRST_ROW - 1, ROW_COUNT, partial), SHOAL_BROKEN);
    assert_int_equal(merge_into(&everything, FIRST_ROW + ROW_COUNT, ROW_COUNT, partial), SHOAL_BROKEN);
    assert_int_equal(merge_into(&everything, 0, FIRST_ROW, partial), SHOAL_BROKEN);
    learn_partial_free(&partial);
    shoal_layout sums = everything; /* without ROW cells nothing else would notice */
    sums.cells = 1;
    partial = new_partial(&sums, 3, -1);
    assert_int_equal(merge_into(&sums, 0, 10, partial), SHOAL_BROKEN);
    learn_partial_free(&partial);
}

static void test_layouts_must_agree(void **state)
{
    (void)state;
    shoal_partial *partial = make_partial(FIRST_ROW, ROW_COUNT, 9);
    for (int i = 0; i < 7; i++) {
        shoal_layout other = everything;
        switch (i) {
        case 0: strcpy(other.cell[SUMS].name, "summs"); break;
        case 1: other.cell[MAXIMA].kind = SHOAL_CELL_SUM; break;
        case 2: other.cell[SUMS].carried = false; break;
        case 3: other.cell[ALL_RECORDS].bytes = 4; break;
        case 4: other.cell[SOME_RECORDS].count = 3; break;
        case 5: other.cells--; break;
        default: other.carry_from = -1, other.writes_memo = false, other.memo_row_bytes = 3; break;
        }
        /* The last is only about the memo, which no partial has. */
        assert_int_equal(merge_into(&other, FIRST_ROW, ROW_COUNT, partial), i < 6 ? SHOAL_BROKEN : SHOAL_OK);
    }
    learn_partial_free(&partial);
}

static void test_records_must_be_settled(void **state)
{
    (void)state;
    shoal_partial *partial = new_partial(&everything, FIRST_ROW, ROW_COUNT);
    hand_check(shoal_partial_record(partial, ALL_RECORDS, (shoal_key){1, 2}, "bytes"));
    hand_check(merge_into(&everything, FIRST_ROW, ROW_COUNT, partial));
    hand_check(shoal_partial_record(partial, ALL_RECORDS, (shoal_key){1, 2}, "bytes")); /* twice */
    assert_int_equal(merge_into(&everything, FIRST_ROW, ROW_COUNT, partial), SHOAL_BROKEN);
    hand_check(learn_partial_settle(partial));
    hand_check(merge_into(&everything, FIRST_ROW, ROW_COUNT, partial));
    hand_check(shoal_partial_record(partial, ALL_RECORDS, (shoal_key){0, 3}, "bytes")); /* backwards */
    assert_int_equal(merge_into(&everything, FIRST_ROW, ROW_COUNT, partial), SHOAL_BROKEN);
    hand_check(learn_partial_settle(partial));
    for (uint64_t k = 0; k <= KEPT; k++) /* more than are kept */
        hand_check(shoal_partial_record(partial, SOME_RECORDS, (shoal_key){k, 0}, "abc"));
    assert_int_equal(merge_into(&everything, FIRST_ROW, ROW_COUNT, partial), SHOAL_BROKEN);
    hand_check(learn_partial_settle(partial));
    hand_check(merge_into(&everything, FIRST_ROW, ROW_COUNT, partial));
    learn_partial_free(&partial);
}

/* One key, two contents: no crash, but an answer when the records are settled. */
static void test_records_that_contradict(void **state)
{
    (void)state;
    shoal_partial *a = new_partial(&everything, 0, 1), *b = new_partial(&everything, 0, 1);
    hand_check(shoal_partial_record(a, ALL_RECORDS, (shoal_key){1, 2}, "bytes"));
    hand_check(shoal_partial_record(b, ALL_RECORDS, (shoal_key){1, 2}, "bites"));
    encoded bytes = encode_partial(b);
    base_reader in = base_reader_of(bytes.bytes, bytes.size);
    hand_check(learn_partial_merge_read(a, &in));
    assert_int_equal(learn_partial_settle(a), SHOAL_BROKEN);
    base_free(&bytes.bytes);
    learn_partial_free(&a);
    learn_partial_free(&b);
}

static void test_maxima_are_numbers(void **state)
{
    (void)state;
    static const struct {
        int64_t key;
        int status;
    } cases[] = {{INT64_MAX, SHOAL_BROKEN}, {INT64_MIN, SHOAL_BROKEN}, {0, SHOAL_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_partial *partial = make_partial(FIRST_ROW, ROW_COUNT, 9);
        shoal_partial_values(partial, MAXIMA)[0] = cases[i].key;
        assert_int_equal(merge_into(&everything, FIRST_ROW, ROW_COUNT, partial), cases[i].status);
        shoal_partial_values(partial, MAXIMA)[0] = shoal_order_key(i % 2 ? INFINITY : -INFINITY);
        hand_check(merge_into(&everything, FIRST_ROW, ROW_COUNT, partial));
        learn_partial_free(&partial);
    }
}

/* ---- no memory --------------------------------------------------------------------------------------------------- */

static void test_no_memory(void **state)
{
    (void)state;
    for (thing what = 0; what < THINGS; what++) {
        encoded bytes = make_thing(what);
        int status = SHOAL_MEMORY;
        for (int64_t n = 0; status < 0; n++) {
            shoal_partial *into = new_partial(&everything, 0, 1000);
            base_reader in = base_reader_of(bytes.bytes, bytes.size);
            shoal_round *round = NULL;
            shoal_result *result = NULL;
            assert_true(n < 100);
            base_memory_fail_after(n);
            status = what == A_ROUND     ? learn_round_read(&round, &in)
                     : what == A_PARTIAL ? learn_partial_merge_read(into, &in)
                                         : learn_result_read(&result, &in);
            base_memory_fail_after(-1);
            assert_true(status == SHOAL_OK ? n > 0 : status == SHOAL_MEMORY);
            assert_int_equal(round || result, status == SHOAL_OK && what != A_PARTIAL);
            if (status < 0) /* nothing was merged by halves */
                assert_int_equal(shoal_partial_values(into, SUMS)[0], 0);
            shoal_round_free(&round);
            shoal_result_free(&result);
            learn_partial_free(&into);
        }
        base_free(&bytes.bytes);
    }
    shoal_partial *partial = make_partial(FIRST_ROW, ROW_COUNT, 9);
    base_writer out = {0};
    base_memory_fail_after(0);
    learn_partial_write(&out, partial);
    base_memory_fail_after(-1);
    assert_int_equal(out.status, SHOAL_MEMORY);
    base_writer_release(&out);
    learn_partial_free(&partial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kmeans_travels),
                                       cmocka_unit_test(test_everything_returns),
                                       cmocka_unit_test(test_one_behind_the_other),
                                       cmocka_unit_test(test_kept_records),
                                       cmocka_unit_test(test_every_truncation),
                                       cmocka_unit_test(test_every_flipped_byte),
                                       cmocka_unit_test(test_real_rounds_flipped),
                                       cmocka_unit_test(test_rounds_that_can_not_be),
                                       cmocka_unit_test(test_kept_by_time),
                                       cmocka_unit_test(test_more_than_there_is_room_for),
                                       cmocka_unit_test(test_rows_must_belong),
                                       cmocka_unit_test(test_layouts_must_agree),
                                       cmocka_unit_test(test_records_must_be_settled),
                                       cmocka_unit_test(test_records_that_contradict),
                                       cmocka_unit_test(test_maxima_are_numbers),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
