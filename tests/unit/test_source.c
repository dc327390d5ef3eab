/* Labels: threads
 * Rows of a process: from wherever they come, those of any run of grains are the data set's own, only they take
 * memory, and the fingerprint of all is the same however the grains are dealt out, and another one when anything
 * differs. */
#include "job_support.h"

#include "data/data_place.h"
#include "engine/source.h"

enum { THREADS = 3, PER_GRAIN = 70, GRAINS = 15 }; /* the last one has 20 rows */

static base_pool *pool;

static int start(void **state)
{
    fill_values();
    return base_pool_new(&pool, THREADS) == SHOAL_OK ? job_setup(state) : -1;
}

static int stop(void **state)
{
    base_pool_free(&pool);
    return job_teardown(state);
}

static shoal_shape shape_of(const shoal_data *data)
{
    shoal_shape shape = {.rows = shoal_data_rows(data),
                         .columns = shoal_data_columns(data),
                         .type = shoal_data_type(data),
                         .rows_per_grain = PER_GRAIN};
    shape.grains = (shape.rows + PER_GRAIN - 1) / PER_GRAIN;
    return shape;
}

static size_t row_bytes(const shoal_shape *shape)
{
    return (size_t)shape->columns * shoal_type_size(shape->type);
}

static engine_source *loaded(shoal_data *data, int64_t first, int64_t grains, int64_t memory)
{
    const shoal_shape shape = shape_of(data);
    engine_source *source = NULL;
    EXPECT_OK(engine_source_new(&source, data, &shape, first, grains, THREADS, memory));
    EXPECT_OK(engine_source_load(source, pool));
    return source;
}

/* Every grain of the source, by every thread in turn, has these rows and weights. */
static void expect_rows(engine_source *source, const shoal_data *data, int64_t first, int64_t grains, const void *all)
{
    const shoal_shape shape = shape_of(data);
    engine_rows rows = engine_source_rows(source, job_weights);
    if (grains > 0)
        assert_ptr_equal(rows.weights, job_weights + first * PER_GRAIN);
    assert_null(engine_source_rows(source, NULL).weights);
    for (int64_t grain = first; grain < first + grains; grain++) {
        int64_t row = grain * PER_GRAIN, count = shape.rows - row < PER_GRAIN ? shape.rows - row : PER_GRAIN;
        const void *found = NULL;
        EXPECT_OK(rows.read(rows.context, &found, row, count, (int)(grain % THREADS)));
        assert_memory_equal(found, (const char *)all + (size_t)row * row_bytes(&shape),
                            (size_t)count * row_bytes(&shape));
    }
}

static const struct {
    int64_t first, grains;
} parts[] = {{0, GRAINS}, {0, 1}, {GRAINS - 1, 1}, {4, 7}, {3, 0}, {GRAINS, 0}, {0, 0}};
enum { PARTS = sizeof parts / sizeof parts[0] };

static void expect_everywhere(shoal_data *data, const void *all, int64_t memory)
{
    for (int i = 0; i < PARTS; i++) {
        engine_source *source = loaded(data, parts[i].first, parts[i].grains, memory);
        expect_rows(source, data, parts[i].first, parts[i].grains, all);
        engine_source_free(&source);
        assert_null(source);
    }
}

/* ---- the places rows come from ----------------------------------------------------------------------------------- */

static void in_memory_and_in_files(void **state)
{
    shoal_data *data[] = {wrapped(), filed()};
    (void)state;
    for (int i = 0; i < 2; i++) {
        expect_everywhere(data[i], job_values, 1); /* what is mapped takes no memory */
        engine_source *source = loaded(data[i], 2, 3, 1);
        engine_rows rows = engine_source_rows(source, NULL);
        const void *theirs = NULL, *ours = NULL;
        EXPECT_OK(shoal_data_read(&theirs, data[i], 2 * PER_GRAIN, 5, NULL));
        EXPECT_OK(rows.read(rows.context, &ours, 2 * PER_GRAIN, 5, 0));
        assert_ptr_equal(theirs, ours);
        engine_source_free(&source);
        shoal_data_free(&data[i]);
    }
}

static void made(void **state)
{
    static unsigned char all[ROWS * 5 * 8];
    shoal_data *data = NULL;
    const void *read = NULL;
    (void)state;
    EXPECT_OK(shoal_data_open(&data, "gen:uniform?rows=1000&cols=5&seed=4", NULL));
    assert_true((size_t)shoal_data_rows(data) * 5 * shoal_type_size(shoal_data_type(data)) <= sizeof all);
    EXPECT_OK(shoal_data_read(&read, data, 0, ROWS, all));
    expect_everywhere(data, all, 0); /* kept */
    expect_everywhere(data, all, 1); /* made again by each read */
    shoal_data_free(&data);
}

/* The address of `row` as the first two reads of it find it. */
static bool is_kept(engine_source *source, int64_t row)
{
    engine_rows rows = engine_source_rows(source, NULL);
    const void *by_one = NULL, *by_other = NULL;
    EXPECT_OK(rows.read(rows.context, &by_one, row, 1, 0));
    EXPECT_OK(rows.read(rows.context, &by_other, row, 1, 1));
    return by_one == by_other;
}

/* Memory is for the rows of this process and not for all. */
static void made_rows_are_kept_when_they_fit(void **state)
{
    shoal_data *data = NULL;
    (void)state;
    EXPECT_OK(shoal_data_open(&data, "gen:uniform?rows=1000&cols=5&type=float32", NULL));
    const int64_t grain_bytes = PER_GRAIN * 5 * (int64_t)shoal_type_size(shoal_data_type(data));
    for (int fits = 0; fits < 2; fits++) {
        engine_source *source = loaded(data, 6, 4, 4 * grain_bytes - !fits);
        assert_int_equal(is_kept(source, 6 * PER_GRAIN + 3), fits);
        engine_source_free(&source);
    }
    shoal_data_free(&data);
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

static void put_rows(shoal_store *store, const char *key)
{
    static char bytes[128 + sizeof job_values];
    shoal_data *data = filed();
    shoal_data_free(&data);
    FILE *file = fopen(at("rows.npy"), "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
    fclose(file);
    EXPECT_OK(shoal_store_put(store, key, bytes, sizeof bytes, NULL, NULL, soon()));
}

static void expect_changed(shoal_data *data, const char *words)
{
    const shoal_shape shape = shape_of(data);
    engine_source *source = NULL;
    EXPECT_OK(engine_source_new(&source, data, &shape, 0, 2, THREADS, 0));
    EXPECT_FAIL(engine_source_load(source, pool), SHOAL_INVALID, words);
    assert_non_null(strstr(shoal_error(), "in/rows.npy: the rows changed"));
    engine_source_free(&source);
    EXPECT_OK(engine_source_new(&source, data, &shape, 2, 0, THREADS, 0));
    EXPECT_OK(engine_source_load(source, pool)); /* none of the rows are its own */
    engine_source_free(&source);
}

static void in_stores(void **state)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s", at("store/in/rows.npy"));
    const char *urls[] = {"mem:rows/in/rows.npy", folder};
    shoal_store *stores[] = {open_store("mem:rows"), open_store(at("store"))};
    (void)state;
    for (int i = 0; i < 2; i++) {
        shoal_data *data = NULL;
        put_rows(stores[i], "in/rows.npy");
        EXPECT_OK(shoal_job_data_open(&data, urls[i], NULL, soon()));
        expect_everywhere(data, job_values, 0);
        expect_everywhere(data, job_values, 1); /* in a temporary file */
        put_rows(stores[i], "in/rows.npy");     /* the same bytes, but another version */
        expect_changed(data, "the blob has another version");
        EXPECT_OK(shoal_store_remove(stores[i], "in/rows.npy", soon()));
        expect_changed(data, "the blob is gone");
        shoal_data_free(&data);
        shoal_store_close(&stores[i]);
    }
}

/* So many bytes that they come in several parts, which meet at bytes that are no multiple of a row. */
static void in_many_parts(void **state)
{
    enum { WIDE = 1003, TALL = 2000 };
    shoal_store *store = open_store("mem:parts");
    shoal_data *data = NULL;
    uint16_t *values = calloc((size_t)WIDE * TALL, sizeof *values);
    (void)state;
    for (size_t i = 0; i < (size_t)WIDE * TALL; i++)
        values[i] = (uint16_t)(i * 40503u >> 3);
    EXPECT_OK(shoal_store_put(store, "r", values, (size_t)WIDE * TALL * sizeof *values, NULL, NULL, soon()));
    EXPECT_OK(shoal_job_data_open(&data, "mem:parts/r", &(shoal_data_options){.columns = WIDE, .type = "u2"}, soon()));
    engine_source *source = loaded(data, 1, 27, 0);
    engine_rows rows = engine_source_rows(source, NULL);
    const void *found = NULL;
    EXPECT_OK(rows.read(rows.context, &found, PER_GRAIN, 27 * PER_GRAIN, 0));
    assert_memory_equal(found, values + (size_t)PER_GRAIN * WIDE, (size_t)27 * PER_GRAIN * WIDE * sizeof *values);
    engine_source_free(&source);
    shoal_data_free(&data);
    shoal_store_close(&store);
    free(values);
}

static void bools_in_stores(void **state)
{
    static unsigned char stored[ROWS * 2], clean[ROWS * 2];
    shoal_store *store = open_store("mem:bools");
    shoal_data *data = NULL;
    (void)state;
    for (int i = 0; i < ROWS * 2; i++) {
        stored[i] = (unsigned char)(i % 3);
        clean[i] = i % 3 != 0;
    }
    EXPECT_OK(shoal_store_put(store, "b", stored, sizeof stored, NULL, NULL, soon()));
    EXPECT_OK(shoal_job_data_open(&data, "mem:bools/b", &(shoal_data_options){.columns = 2, .type = "bool"}, soon()));
    expect_everywhere(data, clean, 0);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* ---- fingerprints ------------------------------------------------------------------------------------------------ */

/* Of the grains that `cuts` cuts, added up as processes would. */
static uint64_t fingerprint(shoal_data *data, const double *weights, int cuts, int64_t memory)
{
    const int64_t grains = shape_of(data).grains;
    uint64_t sum = 0;
    for (int i = 0; i < cuts; i++) {
        int64_t first = grains * i / cuts, end = grains * (i + 1) / cuts;
        uint64_t part = 0;
        engine_source *source = loaded(data, first, end - first, memory);
        EXPECT_OK(engine_source_fingerprint(&part, source, weights, pool));
        engine_source_free(&source);
        sum += part;
    }
    return sum;
}

static void same_however_it_is_cut(void **state)
{
    shoal_store *store = open_store("mem:cut");
    shoal_data *data[4] = {wrapped(), filed()};
    (void)state;
    put_rows(store, "rows.npy");
    EXPECT_OK(shoal_job_data_open(&data[2], "mem:cut/rows.npy", NULL, soon()));
    const uint64_t plain = fingerprint(data[0], NULL, 1, 0), weighted = fingerprint(data[0], job_weights, 1, 0);
    assert_true(plain != weighted);
    for (int i = 0; i < 3; i++)
        for (int cuts = 1; cuts < GRAINS + 4; cuts += 3) {
            assert_true(fingerprint(data[i], NULL, cuts, 0) == plain);
            assert_true(fingerprint(data[i], job_weights, cuts, 0) == weighted);
        }
    EXPECT_OK(shoal_data_open(&data[3], "gen:blobs?rows=1000&cols=5&seed=2", NULL));
    assert_true(fingerprint(data[3], NULL, 4, 1) == fingerprint(data[3], NULL, 1, 0)); /* made again or kept */
    for (int i = 0; i < 4; i++)
        shoal_data_free(&data[i]);
    shoal_store_close(&store);
}

static uint64_t of_values(void)
{
    shoal_data *data = NULL;
    EXPECT_OK(shoal_data_wrap(&data, job_values, ROWS, COLUMNS, SHOAL_FLOAT32));
    uint64_t found = fingerprint(data, job_weights, 2, 0);
    shoal_data_free(&data);
    return found;
}

/* One bit anywhere, two rows that change places, grains that do: each gives another one, and about half of all bits
 * differ. */
static void another_when_anything_differs(void **state)
{
    const uint64_t before = of_values();
    const int bits = (int)sizeof job_values * 8;
    int changed = 0, tried = 0;
    float grain[PER_GRAIN * COLUMNS];
    (void)state;
    for (int bit = 0; bit < bits; bit += 997, tried++) {
        ((unsigned char *)job_values)[bit / 8] ^= (unsigned char)(1 << bit % 8);
        uint64_t after = of_values();
        assert_true(after != before);
        changed += __builtin_popcountll(after ^ before);
        ((unsigned char *)job_values)[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_in_range(changed, tried * 28, tried * 36);
    assert_true(of_values() == before);
    memcpy(grain, job_values, sizeof grain);
    memcpy(job_values, job_values + PER_GRAIN * COLUMNS, sizeof grain);
    memcpy(job_values + PER_GRAIN * COLUMNS, grain, sizeof grain);
    assert_true(of_values() != before);
    fill_values();
    job_weights[ROWS - 1] += 1;
    assert_true(of_values() != before);
    fill_values();
    double weight = job_weights[3];
    job_weights[3] = job_weights[8];
    job_weights[8] = weight;
    assert_true(of_values() != before);
    fill_values();
}

/* Zeros hash by their number, too. */
static void lengths_count(void **state)
{
    static const unsigned char zeros[256];
    uint64_t seen[200];
    (void)state;
    for (int rows = 1; rows < 200; rows++) {
        shoal_data *data = NULL;
        EXPECT_OK(shoal_data_wrap(&data, zeros, rows, 1, SHOAL_UINT8));
        seen[rows] = fingerprint(data, NULL, 1, 0);
        for (int before = 1; before < rows; before++)
            assert_true(seen[before] != seen[rows]);
        shoal_data_free(&data);
    }
}

static void without_memory(void **state)
{
    const char *addresses[] = {"gen:uniform?rows=1000&cols=5", "mem:oom/r"};
    shoal_store *store = open_store("mem:oom");
    (void)state;
    put_rows(store, "r");
    for (int i = 0; i < 4; i++) {
        shoal_data *data = NULL;
        const int64_t memory = i / 2; /* kept, or made again; in memory, or in a file */
        EXPECT_OK(i % 2 ? shoal_job_data_open(&data, addresses[1], NULL, soon())
                        : shoal_data_open(&data, addresses[0], NULL));
        const shoal_shape shape = shape_of(data);
        int status = SHOAL_MEMORY;
        for (int64_t n = 0; status == SHOAL_MEMORY && n < 100; n++) {
            engine_source *source = NULL;
            base_memory_fail_after(n);
            status = engine_source_new(&source, data, &shape, 1, 9, THREADS, memory);
            if (status == SHOAL_OK)
                status = engine_source_load(source, pool);
            base_memory_fail_after(-1);
            engine_source_free(&source);
        }
        EXPECT_OK(status);
        shoal_data_free(&data);
    }
    shoal_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(in_memory_and_in_files, start, stop),
        cmocka_unit_test_setup_teardown(made, start, stop),
        cmocka_unit_test_setup_teardown(made_rows_are_kept_when_they_fit, start, stop),
        cmocka_unit_test_setup_teardown(in_stores, start, stop),
        cmocka_unit_test_setup_teardown(in_many_parts, start, stop),
        cmocka_unit_test_setup_teardown(bools_in_stores, start, stop),
        cmocka_unit_test_setup_teardown(same_however_it_is_cut, start, stop),
        cmocka_unit_test_setup_teardown(another_when_anything_differs, start, stop),
        cmocka_unit_test_setup_teardown(lengths_count, start, stop),
        cmocka_unit_test_setup_teardown(without_memory, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
