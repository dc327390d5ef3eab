/* Labels: threads
 * Rows of slices: from every source, on stores near and far, they are the rows of the data set; data that changed, are
 * cut off, gone or out of bounds are refused with a sentence. */
#include "job_support.h"

#include <fcntl.h>
#include <sys/stat.h>

/* ---- what is read ------------------------------------------------------------------------------------------------ */

/* Every slice's rows, in runs of several lengths, are those of `data`. */
static void expect_rows(job_loader *loader, const job_spec *spec, const void *all, const double *weights)
{
    size_t row_bytes = (size_t)spec->shape.columns * shoal_type_size(spec->shape.type);
    for (int64_t slice = 0; slice < spec->slices; slice++) {
        job_rows *rows = NULL;
        int64_t first = job_slice_first_row(spec, slice), count = job_slice_rows(spec, slice);
        EXPECT_OK(job_rows_load(&rows, loader, slice, soon()));
        engine_rows view = job_rows_view(rows);
        for (int64_t at = 0, run = 1; at < count; at += run, run = run * 2 + 1) {
            const void *found = NULL;
            int64_t length = run < count - at ? run : count - at;
            EXPECT_OK(view.read(view.context, &found, first + at, length, (int)(run % 2)));
            assert_memory_equal(found, (const char *)all + (size_t)(first + at) * row_bytes,
                                (size_t)length * row_bytes);
        }
        assert_int_equal(view.weights != NULL, weights != NULL);
        if (weights)
            assert_memory_equal(view.weights, weights + first, (size_t)count * sizeof *weights);
        EXPECT_OK(job_rows_check(rows));
        job_rows_free(&rows);
    }
}

static job_loader *loader_of(const job_spec *spec, shoal_store *store, const char *root, const char *cache)
{
    job_loader *loader = NULL;
    EXPECT_OK(
        job_loader_new(&loader, spec, store, &(job_loader_options){.threads = 2, .data_root = root, .cache = cache}));
    return loader;
}

static void expect_counts(const job_loader *loader, int64_t hits, int64_t fetched, int64_t bytes)
{
    int64_t found[3];
    job_loader_counted(loader, &found[0], &found[1], &found[2]);
    assert_int_equal(found[0], hits);
    assert_int_equal(found[1], fetched);
    assert_int_equal(found[2], bytes);
}

static void uploaded(void **state)
{
    (void)state;
    shoal_store *stores[] = {open_store("mem:"), open_store(at("store"))};
    for (int i = 0; i < 2; i++) {
        shoal_data *data = wrapped();
        job_spec *spec = announced(stores[i], data, job_weights, 7);
        job_loader *loader = loader_of(spec, stores[i], NULL, NULL);
        job_rows *rows = NULL;
        EXPECT_FAIL(job_rows_load(&rows, loader, 3, soon()), SHOAL_ABSENT, "jobs/");
        assert_null(rows);
        EXPECT_OK(job_setup_upload(stores[i], spec, data, job_weights, NULL, soon()));
        expect_rows(loader, spec, job_values, job_weights);
        expect_counts(loader, 0, 7, sizeof job_values + sizeof job_weights);
        job_loader_free(&loader);
        job_spec_free(&spec);
        shoal_data_free(&data);
        shoal_store_close(&stores[i]);
    }
}

static void overwrite(shoal_store *store, job_key key, const void *bytes, size_t size)
{
    EXPECT_OK(shoal_store_put(store, key.text, bytes, size, NULL, NULL, soon()));
}

static void uploads_that_are_wrong(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = wrapped();
    job_spec *spec = announced(store, data, job_weights, 4);
    job_loader *loader = loader_of(spec, store, NULL, NULL);
    job_rows *rows = NULL;
    size_t size = (size_t)job_slice_rows(spec, 1) * COLUMNS * 4;
    const float *right = job_values + job_slice_first_row(spec, 1) * COLUMNS;
    EXPECT_OK(job_setup_upload(store, spec, data, job_weights, NULL, soon()));
    overwrite(store, job_key_data(spec->id, 1), right, size - 4);
    EXPECT_FAIL(job_rows_load(&rows, loader, 1, soon()), SHOAL_INVALID, "rows 241 to 510 in jobs/");
    EXPECT_FAIL(job_rows_load(&rows, loader, 1, soon()), SHOAL_INVALID,
                "changed since the job was made: there are 3236 bytes, not 3240");
    overwrite(store, job_key_data(spec->id, 1), right + 1, size);
    EXPECT_FAIL(job_rows_load(&rows, loader, 1, soon()), SHOAL_INVALID, "SHA-256 is another one");
    overwrite(store, job_key_data(spec->id, 1), right, size);
    EXPECT_OK(job_rows_load(&rows, loader, 1, soon()));
    job_rows_free(&rows);
    overwrite(store, job_key_weights(spec->id, 1), job_weights, (size_t)job_slice_rows(spec, 1) * 8);
    EXPECT_FAIL(job_rows_load(&rows, loader, 1, soon()), SHOAL_INVALID, "/weights/000001 changed since");
    EXPECT_OK(shoal_store_remove(store, job_key_weights(spec->id, 1).text, soon()));
    EXPECT_FAIL(job_rows_load(&rows, loader, 1, soon()), SHOAL_ABSENT, "weights/000001");
    assert_null(rows);
    job_loader_free(&loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void files(void **state)
{
    (void)state;
    shoal_store *stores[] = {open_store("mem:"), open_store(at("store"))};
    for (int i = 0; i < 2; i++) {
        shoal_data *data = filed();
        job_spec *spec = announced(stores[i], data, NULL, 7);
        const char *roots[] = {"/", job_folder, "/tmp"};
        for (int j = 0; j < 3; j++) {
            job_loader *loader = loader_of(spec, stores[i], roots[j], NULL);
            expect_rows(loader, spec, job_values, NULL);
            job_loader_free(&loader);
        }
        job_spec_free(&spec);
        shoal_data_free(&data);
        shoal_store_close(&stores[i]);
    }
}

static void files_outside_the_root(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = filed();
    job_spec *spec = announced(store, data, NULL, 2);
    job_loader *loader = NULL;
    job_rows *rows = NULL;
    char beside[128];
    assert_int_equal(mkdir(at("in"), 0700), 0);
    snprintf(beside, sizeof beside, "%s/rows", job_folder); /* a folder whose name the file's starts with */
    assert_int_equal(mkdir(beside, 0700), 0);
    const char *roots[] = {NULL, at("in"), beside};
    for (int i = 0; i < 3; i++) {
        loader = loader_of(spec, store, roots[i], NULL);
        EXPECT_FAIL(job_rows_load(&rows, loader, 0, soon()), SHOAL_DENIED, "--data-root");
        assert_null(rows);
        job_loader_free(&loader);
    }
    EXPECT_FAIL(job_loader_new(&loader, spec, store, &(job_loader_options){.data_root = at("none")}), SHOAL_USAGE,
                "none");
    /* A link inside that points outside does not help. */
    assert_int_equal(symlink(spec->place, at("in/link.npy")), 0);
    base_free(&spec->place);
    EXPECT_OK(base_copy_text(&spec->place, at("in/link.npy")));
    loader = loader_of(spec, store, at("in"), NULL);
    EXPECT_FAIL(job_rows_load(&rows, loader, 0, soon()), SHOAL_DENIED, "below --data-root");
    job_loader_free(&loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* Changes one byte; the time of change is set, since the clock of the file system is coarse. */
static void poke(const char *path, off_t place)
{
    unsigned char byte;
    int file = open(path, O_RDWR);
    assert_int_equal(pread(file, &byte, 1, place), 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, place), 1);
    assert_int_equal(futimens(file, (struct timespec[]){{.tv_sec = 5}, {.tv_sec = 5}}), 0);
    close(file);
}

static void files_that_change(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = filed();
    job_spec *spec = announced(store, data, NULL, 2);
    job_loader *loader = loader_of(spec, store, "/", NULL);
    job_rows *first = NULL, *second = NULL;
    const char *path = at("rows.npy");
    EXPECT_OK(job_rows_load(&first, loader, 0, soon()));
    EXPECT_OK(job_rows_check(first));
    poke(path, 128 + (off_t)sizeof job_values - 1); /* of the second slice */
    EXPECT_FAIL(job_rows_check(first), SHOAL_INVALID, "rows 1 to 510 in");
    EXPECT_FAIL(job_rows_load(&second, loader, 1, soon()), SHOAL_INVALID, "rows 511 to 1000 in");
    job_rows_free(&first);
    EXPECT_OK(job_rows_load(&first, loader, 0, soon())); /* what did not change is as good as ever */
    assert_int_equal(truncate(path, 128 + (off_t)sizeof job_values - 1), 0);
    EXPECT_FAIL(job_rows_check(first), SHOAL_INVALID, "the file shrank");
    job_rows_free(&first);
    EXPECT_FAIL(job_rows_load(&first, loader, 0, soon()), SHOAL_INVALID, "another size");
    assert_int_equal(unlink(path), 0);
    EXPECT_FAIL(job_rows_load(&first, loader, 0, soon()), SHOAL_SYSTEM, "rows.npy: can't read");
    assert_null(first);
    job_loader_free(&loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* Rows that no longer exist read as zeros, and the code that mapped them is told. */
static void files_that_shrink(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = filed();
    job_spec *spec = announced(store, data, NULL, 2);
    job_loader *loader = loader_of(spec, store, "/", NULL);
    job_rows *rows = NULL;
    const void *values = NULL;
    struct stat before;
    EXPECT_OK(job_rows_load(&rows, loader, 1, soon()));
    engine_rows view = job_rows_view(rows);
    EXPECT_OK(view.read(view.context, &values, 999, 1, 0));
    EXPECT_OK(view.check(view.context));
    assert_int_equal(stat(at("rows.npy"), &before), 0);
    assert_int_equal(truncate(at("rows.npy"), 0), 0);
    assert_int_equal(*(const volatile unsigned char *)values, 0);
    EXPECT_FAIL(view.check(view.context), SHOAL_INVALID, "rows 511 to 1000 in");
    EXPECT_FAIL(view.check(view.context), SHOAL_INVALID, "rows.npy changed since the job was made: the file shrank");
    assert_int_equal(truncate(at("rows.npy"), before.st_size), 0); /* it looks as it did, but was not */
    assert_int_equal(utimensat(AT_FDCWD, at("rows.npy"), (struct timespec[]){before.st_atim, before.st_mtim}, 0), 0);
    EXPECT_FAIL(view.check(view.context), SHOAL_INVALID, "the file can no longer be read");
    job_rows_free(&rows);
    job_loader_free(&loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

static void files_that_are_replaced(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = filed();
    job_spec *spec = announced(store, data, NULL, 2);
    job_loader *loader = loader_of(spec, store, "/", NULL);
    job_rows *rows = NULL;
    struct stat before;
    assert_int_equal(stat(at("rows.npy"), &before), 0);
    EXPECT_OK(job_rows_load(&rows, loader, 0, soon()));
    shoal_data_free(&data);
    data = filed();
    assert_int_equal(utimensat(AT_FDCWD, at("rows.npy"), (struct timespec[]){before.st_atim, before.st_mtim}, 0), 0);
    EXPECT_FAIL(job_rows_check(rows), SHOAL_INVALID, "written to or replaced");
    job_rows_free(&rows);
    EXPECT_OK(job_rows_load(&rows, loader, 0, soon())); /* by the same bytes */
    assert_int_equal(unlink(at("rows.npy")), 0);
    EXPECT_FAIL(job_rows_check(rows), SHOAL_INVALID, "the file is gone");
    job_rows_free(&rows);
    assert_int_equal(mkfifo(at("rows.npy"), 0600), 0);
    EXPECT_FAIL(job_rows_load(&rows, loader, 0, soon()), SHOAL_INVALID, "rows.npy is not a plain file");
    job_loader_free(&loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

static void put_npy(shoal_store *store, const char *key)
{
    static char bytes[128 + sizeof job_values];
    shoal_data *data = filed();
    shoal_data_free(&data);
    FILE *file = fopen(at("rows.npy"), "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
    fclose(file);
    EXPECT_OK(shoal_store_put(store, key, bytes, sizeof bytes, NULL, NULL, soon()));
}

static void ranges_of(shoal_store *job_store, shoal_store *data_store, const char *url, const char *root)
{
    shoal_data *data = NULL;
    job_rows *rows = NULL;
    put_npy(data_store, "in/rows.npy");
    EXPECT_OK(shoal_job_data_open(&data, url, NULL, soon()));
    job_spec *spec = announced(job_store, data, NULL, 7);
    assert_int_equal(spec->source, JOB_RANGES);
    EXPECT_OK(job_setup_upload(job_store, spec, data, NULL, NULL, soon()));
    job_loader *loader = loader_of(spec, job_store, root, NULL);
    expect_rows(loader, spec, job_values, NULL);
    expect_counts(loader, 0, 7, sizeof job_values);
    put_npy(data_store, "in/rows.npy"); /* the same bytes, but another version */
    EXPECT_FAIL(job_rows_load(&rows, loader, 2, soon()), SHOAL_INVALID,
                "changed since the job was made: the blob has another version");
    EXPECT_FAIL(job_rows_load(&rows, loader, 2, soon()), SHOAL_INVALID, "rows 271 to 420 in ");
    EXPECT_OK(shoal_store_remove(data_store, "in/rows.npy", soon()));
    EXPECT_FAIL(job_rows_load(&rows, loader, 2, soon()), SHOAL_INVALID, "the blob is gone");
    assert_null(rows);
    job_loader_free(&loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
}

static void ranges(void **state)
{
    (void)state;
    shoal_store *folder = open_store(at("store")), *memory = open_store("mem:rows");
    ranges_of(folder, folder, at("store/in/rows.npy"), NULL); /* its own store */
    ranges_of(folder, memory, "mem:rows/in/rows.npy", "/tmp,mem:rows/in");
    ranges_of(memory, folder, at("store/in/rows.npy"), "/");
    shoal_store_close(&memory);
    shoal_store_close(&folder);
}

/* Another store is opened only if it was named, or if somebody vouched for the spec; then it may be any but a folder
 * of this machine. */
static void ranges_in_another_store(void **state)
{
    (void)state;
    shoal_store *jobs = open_store("mem:jobs"), *memory = open_store("mem:rows"), *folder = open_store(at("store"));
    const char *urls[] = {"mem:rows/in/rows.npy", at("store/in/rows.npy")};
    for (int i = 0; i < 2; i++) {
        shoal_data *data = NULL;
        job_rows *rows = NULL;
        job_loader *loader = NULL;
        put_npy(i ? folder : memory, "in/rows.npy");
        EXPECT_OK(shoal_job_data_open(&data, urls[i], NULL, soon()));
        job_spec *spec = announced(jobs, data, NULL, 2);
        const char *roots[] = {NULL, "mem:row,mem:rows/i,mem:rows/in/rows.npy/x,mem:jobs", "s3://rows/in"};
        for (int j = 0; j < 3; j++) {
            loader = loader_of(spec, jobs, roots[j], NULL);
            EXPECT_FAIL(job_rows_load(&rows, loader, 0, soon()), SHOAL_DENIED, "--data-root");
            job_loader_free(&loader);
        }
        EXPECT_OK(job_loader_new(&loader, spec, jobs, &(job_loader_options){.threads = 2, .trusted = true}));
        if (i == 0)
            expect_rows(loader, spec, job_values, NULL);
        else
            EXPECT_FAIL(job_rows_load(&rows, loader, 0, soon()), SHOAL_DENIED, "may not read the store");
        job_loader_free(&loader);
        job_spec_free(&spec);
        shoal_data_free(&data);
    }
    shoal_store_close(&folder);
    shoal_store_close(&memory);
    shoal_store_close(&jobs);
}

/* A folder store that is not the job's is files of this machine. */
static void ranges_outside_the_root(void **state)
{
    (void)state;
    shoal_store *folder = open_store(at("store")), *memory = open_store("mem:");
    shoal_data *data = NULL;
    job_rows *rows = NULL;
    put_npy(folder, "rows.npy");
    EXPECT_OK(shoal_job_data_open(&data, at("store/rows.npy"), NULL, soon()));
    job_spec *spec = announced(memory, data, NULL, 2);
    job_loader *loader = loader_of(spec, memory, NULL, NULL);
    EXPECT_FAIL(job_rows_load(&rows, loader, 0, soon()), SHOAL_DENIED, "--data-root");
    job_loader_free(&loader);
    loader = loader_of(spec, memory, job_folder, NULL);
    expect_rows(loader, spec, job_values, NULL);
    job_loader_free(&loader);
    base_free(&spec->place);
    EXPECT_OK(base_copy_text(&spec->place, "other.npy"));
    loader = loader_of(spec, memory, job_folder, NULL);
    EXPECT_FAIL(job_rows_load(&rows, loader, 0, soon()), SHOAL_INVALID, "names the key");
    job_loader_free(&loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&memory);
    shoal_store_close(&folder);
}

static void bools_in_a_store(void **state)
{
    (void)state;
    unsigned char stored[60], clean[60];
    shoal_store *store = open_store("mem:bools");
    shoal_data *data = NULL;
    for (int i = 0; i < 60; i++) {
        stored[i] = (unsigned char)(i % 3);
        clean[i] = i % 3 != 0;
    }
    EXPECT_OK(shoal_store_put(store, "b", stored, sizeof stored, NULL, NULL, soon()));
    EXPECT_OK(shoal_job_data_open(&data, "mem:bools/b", &(shoal_data_options){.columns = 2, .type = "bool"}, soon()));
    job_spec *spec = announced(store, data, NULL, 1);
    job_loader *loader = loader_of(spec, store, NULL, NULL);
    expect_rows(loader, spec, clean, NULL);
    job_loader_free(&loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* ---- made -------------------------------------------------------------------------------------------------------- */

static void generated(void **state)
{
    (void)state;
    static const char address[] = "gen:blobs?rows=1000&cols=3&centres=5";
    shoal_store *store = open_store("mem:");
    shoal_data *data = NULL;
    const void *all;
    static float scratch[ROWS * COLUMNS];
    EXPECT_OK(shoal_data_open(&data, address, NULL));
    EXPECT_OK(shoal_data_read(&all, data, 0, ROWS, scratch));
    fill_values();
    job_spec *spec = announced(store, data, job_weights, 7);
    EXPECT_OK(job_setup_upload(store, spec, data, job_weights, NULL, soon()));
    job_loader *loader = loader_of(spec, store, NULL, NULL);
    expect_rows(loader, spec, scratch, job_weights);
    job_loader_free(&loader);
    spec->shape.columns = 4;
    EXPECT_FAIL(job_loader_new(&loader, spec, store, &(job_loader_options){0}), SHOAL_INVALID, "yields other rows");
    base_free(&spec->place);
    EXPECT_OK(base_copy_text(&spec->place, "/etc/passwd"));
    EXPECT_FAIL(job_loader_new(&loader, spec, store, &(job_loader_options){0}), SHOAL_INVALID, "is not a gen: address");
    assert_null(loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* A slice that is too large to be kept is made where it is read. */
static void generated_without_end(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = NULL;
    job_rows *rows = NULL;
    const void *found, *again;
    static double expected[300];
    EXPECT_OK(shoal_data_open(&data, "gen:uniform?rows=100000000000&cols=3&type=float64", NULL));
    job_spec *spec = spec_of(store, data, NULL, &(shoal_job_options){.slices = 2, .rows_per_grain = 1000});
    job_loader *loader = loader_of(spec, store, NULL, NULL);
    EXPECT_OK(job_rows_load(&rows, loader, 1, soon()));
    engine_rows view = job_rows_view(rows);
    int64_t first = job_slice_first_row(spec, 1);
    EXPECT_OK(shoal_data_read(&again, data, first + 5, 100, expected));
    EXPECT_OK(view.read(view.context, &found, first + 5, 1, 1));
    EXPECT_OK(view.read(view.context, &found, first + 5, 100, 1));
    assert_memory_equal(found, expected, sizeof expected);
    EXPECT_OK(view.read(view.context, &again, first, 50, 0));
    assert_memory_equal(found, expected, sizeof expected); /* another thread's reading does not matter */
    job_rows_free(&rows);
    job_loader_free(&loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* ---- kept on disk ------------------------------------------------------------------------------------------------ */

static void from_the_cache(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:far");
    shoal_data *data = wrapped();
    int64_t all = sizeof job_values + sizeof job_weights;
    job_spec *near = announced(store, data, job_weights, 7);
    make_remote(store);
    job_spec *spec = announced(store, data, job_weights, 7);
    EXPECT_OK(job_setup_upload(store, spec, data, job_weights, NULL, soon()));
    job_loader *loader = loader_of(spec, store, NULL, at("cache"));
    expect_rows(loader, spec, job_values, job_weights);
    expect_counts(loader, 0, 7, all);
    expect_rows(loader, spec, job_values, job_weights);
    expect_counts(loader, 7, 7, all);
    job_loader_free(&loader);
    assert_int_equal(count_in(job_folder, "cache/slices"), 14);
    for (int i = 0; i < 7; i++) { /* they do not come from the store any more */
        EXPECT_OK(shoal_store_remove(store, job_key_data(spec->id, i).text, soon()));
        EXPECT_OK(shoal_store_remove(store, job_key_weights(spec->id, i).text, soon()));
    }
    loader = loader_of(near, store, NULL, at("cache")); /* another job with the same rows */
    expect_rows(loader, near, job_values, job_weights);
    expect_counts(loader, 7, 0, 0);
    job_loader_free(&loader);
    job_spec_free(&spec);
    job_spec_free(&near);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

static void ranges_from_the_cache(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:far");
    shoal_data *data = NULL;
    put_npy(store, "rows.npy");
    EXPECT_OK(shoal_job_data_open(&data, "mem:far/rows.npy", NULL, soon()));
    make_remote(store);
    job_spec *spec = announced(store, data, NULL, 5);
    for (int i = 0; i < 2; i++) {
        job_loader *loader = loader_of(spec, store, NULL, at("cache"));
        expect_rows(loader, spec, job_values, NULL);
        expect_counts(loader, i ? 5 : 0, i ? 0 : 5, i ? 0 : sizeof job_values);
        job_loader_free(&loader);
    }
    job_loader *loader = loader_of(spec, store, NULL, at("cache"));
    spec->etag.text[0] ^= 1; /* another version is not what was kept */
    job_rows *rows = NULL;
    EXPECT_FAIL(job_rows_load(&rows, loader, 0, soon()), SHOAL_INVALID, "another version");
    job_loader_free(&loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* A store of this machine is a cache itself. */
static void near_stores_have_no_cache(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = wrapped();
    job_spec *spec = announced(store, data, NULL, 2);
    EXPECT_OK(job_setup_upload(store, spec, data, NULL, NULL, soon()));
    job_loader *loader = loader_of(spec, store, NULL, at("cache"));
    expect_rows(loader, spec, job_values, NULL);
    assert_int_equal(access(at("cache"), F_OK), -1);
    job_loader_free(&loader);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(uploaded, job_setup, job_teardown),
        cmocka_unit_test(uploads_that_are_wrong),
        cmocka_unit_test_setup_teardown(files, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(files_outside_the_root, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(files_that_change, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(files_that_shrink, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(files_that_are_replaced, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(ranges, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(ranges_in_another_store, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(ranges_outside_the_root, job_setup, job_teardown),
        cmocka_unit_test(bools_in_a_store),
        cmocka_unit_test(generated),
        cmocka_unit_test(generated_without_end),
        cmocka_unit_test_setup_teardown(from_the_cache, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(ranges_from_the_cache, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(near_stores_have_no_cache, job_setup, job_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
