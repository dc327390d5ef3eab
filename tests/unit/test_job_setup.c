/* Labels: threads
 * Setting a job up: how rows are cut, where they are said to be, what is put where, and that an upload ends complete
 * whatever was cut short before. */
#include "job_support.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/crc.h"
#include "data/data_place.h"

/* ---- choices ----------------------------------------------------------------------------------------------------- */

static shoal_data *generated(const char *address)
{
    shoal_data *data = NULL;
    EXPECT_OK(shoal_data_open(&data, address, NULL));
    return data;
}

static int64_t slices_of(const char *address, const shoal_job_options *options)
{
    shoal_store *store = open_store("mem:");
    shoal_data *data = generated(address);
    job_spec *spec = spec_of(store, data, NULL, options);
    int64_t slices = spec->slices, most = 0, least = INT64_MAX, next = 0;
    for (int64_t i = 0; i < slices; i++) {
        assert_int_equal(spec->slice[i].first_grain, next);
        next += spec->slice[i].grains;
        most = spec->slice[i].grains > most ? spec->slice[i].grains : most;
        least = spec->slice[i].grains < least ? spec->slice[i].grains : least;
    }
    assert_int_equal(next, spec->shape.grains);
    assert_true(most - least <= 1);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
    return slices;
}

static void slices(void **state)
{
    (void)state;
    const char *many = "gen:uniform?rows=100000&cols=2", *few = "gen:uniform?rows=600&cols=2";
    assert_int_equal(slices_of(many, NULL), 16);
    assert_int_equal(slices_of(many, &(shoal_job_options){.workers = 1}), 4);
    assert_int_equal(slices_of(many, &(shoal_job_options){.workers = 9}), 18);
    assert_int_equal(slices_of(many, &(shoal_job_options){.slices = 7, .workers = 9}), 7);
    assert_int_equal(slices_of(few, NULL), 3); /* grains of 252 rows */
    assert_int_equal(slices_of(few, &(shoal_job_options){.rows_per_grain = 1, .workers = SHOAL_JOB_SLOTS_MOST}), 600);
    /* 100 GB in grains of a megabyte: no slice has more than 256 MB. */
    assert_int_equal(slices_of("gen:uniform?rows=125000000&cols=100&type=float64", &(shoal_job_options){.workers = 2}),
                     393);
}

static void shapes_are_those_of_shoal_run(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = generated("gen:uniform?rows=100001&cols=5");
    job_spec *spec = spec_of(store, data, NULL, NULL);
    assert_int_equal(spec->shape.rows, 100001);
    assert_int_equal(spec->shape.rows_per_grain, 1512); /* rows / 64, down to a multiple of 84 */
    assert_int_equal(spec->shape.grains, 67);
    assert_int_equal(spec->first->number, 0);
    assert_string_equal(spec->algorithm, "toy");
    assert_string_equal(spec->version, SHOAL_VERSION);
    assert_true(spec->created > 1.6e9);
    assert_int_equal(spec->tree.levels, 2);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

static void names_and_leases(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:"), *far = open_store("mem:");
    shoal_data *data = wrapped();
    make_remote(far);
    job_spec *one = spec_of(store, data, NULL, NULL),
             *two = spec_of(far, data, NULL, &(shoal_job_options){.name = "Ab-1"});
    assert_int_equal(strlen(one->id), 20);
    assert_memory_equal(one->id, "toy-", 4);
    assert_int_equal(strspn(one->id + 4, "0123456789abcdef"), 16);
    assert_memory_equal(two->id, "Ab-1-", 5);
    assert_int_equal(strlen(two->id), 21);
    assert_true(one->lease == 10 && two->lease == 30);
    job_spec_free(&two);
    two = spec_of(far, data, NULL,
                  &(shoal_job_options){.id = "x_1", .lease = 2.5, .keep_rounds = 4, .settings = "{\"k\":1}"});
    assert_string_equal(two->id, "x_1");
    assert_true(two->lease == 2.5);
    assert_int_equal(two->keep_rounds, 4);
    assert_string_equal(two->settings, "{\"k\":1}");
    assert_memory_not_equal(one->id + 4, "0000000000000000", 16);
    job_spec_free(&one);
    job_spec_free(&two);
    shoal_data_free(&data);
    shoal_store_close(&store);
    shoal_store_close(&far);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        shoal_job_options options;
        const char *words;
    } cases[] = {
        {{.slices = -1}, "slices must be 1 to 65536, not "},
        {{.slices = 65537}, "slices must be 1 to 65536, not "},
        {{.slices = 5}, "slices must be at most 4, the grains that the rows make, not 5"},
        {{.workers = -1}, "workers must be 0 to 1048576, not -1"},
        {{.workers = 1048577}, "workers must be 0 to 1048576, not 1048577"},
        {{.reduce = "circle"}, "reduce must be auto, flat, two-level, tree:F or ranged, not 'circle'"},
        {{.lease = 0.5}, "lease must be 1 to 604800 seconds, not 0.5"},
        {{.lease = -3}, "lease must be 1 to 604800 seconds, not -3"},
        {{.lease = 604801}, "lease must be 1 to 604800 seconds, not 604801"},
        {{.keep_rounds = -1}, "keep_rounds must be 1 to 1073741824, not -1"},
        {{.keep_rounds = 1073741825}, "keep_rounds must be 1 to 1073741824, not 1073741825"},
        {{.rows_per_grain = -1}, "rows_per_grain must be at least 1, not -1"},
        {{.kernel = "quantum"}, "quantum"},
        {{.settings = "{k}"}, "must be JSON"},
        {{.name = "1a"}, "name must be a letter and then at most 45 letters, digits and '-', not '"},
        {{.name = "a_b"}, "name must be a letter and then at most 45 letters, digits and '-', not '"},
        {{.name = ""}, "name must be a letter and then at most 45 letters, digits and '-', not '"},
        {{.name = "a234567890123456789012345678901234567890123456x"},
         "name must be a letter and then at most 45 letters, digits and '-', not '"},
        {{.id = "a/b"}, "can't be the name of a job"},
    };
    shoal_store *store = open_store("mem:");
    shoal_data *data = wrapped(), *wide = generated("gen:uniform?rows=5&cols=101");
    job_spec *spec = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        EXPECT_FAIL(job_setup_spec(&spec, store, &toy, NULL, data, NULL, &cases[i].options), SHOAL_USAGE,
                    cases[i].words);
    double lease = 0.0 / 0.0;
    EXPECT_FAIL(job_setup_spec(&spec, store, &toy, NULL, data, NULL, &(shoal_job_options){.lease = lease}), SHOAL_USAGE,
                "lease must be");
    EXPECT_FAIL(job_setup_spec(&spec, store, &toy, NULL, wide, NULL, NULL), SHOAL_USAGE,
                "toy: no more than 100 columns");
    int stop = 1;
    EXPECT_FAIL(job_setup_spec(&spec, store, &toy, NULL, data, NULL, &(shoal_job_options){.stop = &stop}),
                SHOAL_STOPPED, "asked to stop");
    assert_null(spec);
    shoal_data_free(&wide);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* What refusals() shows to be one too many. */
static void limits_are_inside(void **state)
{
    static const shoal_job_options cases[] = {
        {.lease = SHOAL_JOB_LEASE_LEAST},
        {.lease = SHOAL_JOB_LEASE_MOST},
        {.keep_rounds = 1},
        {.keep_rounds = SHOAL_JOB_KEEP_ROUNDS_MOST},
        {.slices = 1},
        {.rows_per_grain = SHOAL_GRAIN_ROWS_MOST + 1LL}, /* which is as many as there are rows */
        {.name = "a"},
        {.name = "a23456789012345678901234567890123456789012345x"},
    };
    shoal_store *store = open_store("mem:");
    shoal_data *data = wrapped();
    void *bytes = NULL;
    size_t size = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job_spec *spec = spec_of(store, data, NULL, &cases[i]), *read = NULL;
        EXPECT_OK(job_spec_encode(&bytes, &size, spec));
        EXPECT_OK(job_spec_decode(&read, spec->id, bytes, size));
        base_free(&bytes);
        job_spec_free(&read);
        job_spec_free(&spec);
    }
    shoal_data_free(&data);
    data = generated("gen:uniform?rows=65537&cols=2");
    job_spec *most =
        spec_of(store, data, NULL, &(shoal_job_options){.slices = SHOAL_JOB_SLICES_MOST, .rows_per_grain = 1});
    assert_int_equal(most->slices, SHOAL_JOB_SLICES_MOST);
    job_spec_free(&most);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

static void limits_of_those_who_look_after_jobs(void **state)
{
    static const double patience[] = {-1, 0.09, 1.1e9, 0.0 / 0.0};
    shoal_store *store = open_store("mem:");
    shoal_result *result = NULL;
    int64_t wanted = 0;
    (void)state;
    for (size_t i = 0; i < sizeof patience / sizeof *patience; i++)
        EXPECT_FAIL(shoal_job_follow(&result, NULL, store, "a", &(shoal_follow_options){.patience = patience[i]}),
                    SHOAL_USAGE, "patience must be 0.1 to 1000000000 seconds, not ");
    EXPECT_FAIL(shoal_job_follow(&result, NULL, store, "a", &(shoal_follow_options){.patience = 0.1}), SHOAL_ABSENT,
                "there is no job a");
    EXPECT_FAIL(shoal_job_want(store, "a", -1, soon()), SHOAL_USAGE, "workers must be 0 to 4096, not -1");
    EXPECT_FAIL(shoal_job_want(store, "a", 4097, soon()), SHOAL_USAGE, "workers must be 0 to 4096, not 4097");
    EXPECT_OK(shoal_job_want(store, "a", 4096, soon()));
    EXPECT_OK(shoal_job_wanted(&wanted, store, "a", soon()));
    assert_int_equal(wanted, 4096);
    EXPECT_OK(shoal_store_put(store, "jobs/a/want", "4097", 4, NULL, NULL, soon()));
    EXPECT_OK(shoal_job_wanted(&wanted, store, "a", soon()));
    assert_int_equal(wanted, -1); /* nobody who may ask asked for that */
    shoal_store_close(&store);
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static void sources(void **state)
{
    (void)state;
    shoal_store *near = open_store("mem:"), *far = open_store("mem:"), *folder = open_store(at("store"));
    shoal_data *data = filed(), *memory = wrapped(), *made = generated("gen:uniform?rows=100&cols=2");
    make_remote(far);
    char *real = realpath(at("rows.npy"), NULL);
    shoal_store *stores[] = {near, folder};
    for (int i = 0; i < 2; i++) {
        job_spec *spec = spec_of(stores[i], data, NULL, &(shoal_job_options){.slices = 3});
        assert_int_equal(spec->source, JOB_FILE);
        assert_string_equal(spec->place, real);
        assert_int_equal(spec->offset, 128);
        assert_int_equal(spec->size, 128 + sizeof job_values);
        job_spec_free(&spec);
    }
    free(real);
    job_spec *spec = spec_of(far, data, NULL, NULL);
    assert_int_equal(spec->source, JOB_UPLOADED);
    assert_int_equal(spec->size, 0);
    job_spec_free(&spec);
    spec = spec_of(near, memory, NULL, NULL);
    assert_int_equal(spec->source, JOB_UPLOADED);
    assert_string_equal(spec->data_name, "memory");
    job_spec_free(&spec);
    spec = spec_of(far, made, NULL, NULL);
    assert_int_equal(spec->source, JOB_GENERATED);
    assert_string_equal(spec->place, "gen:uniform?rows=100&cols=2");
    job_spec_free(&spec);
    shoal_data_free(&made);
    shoal_data_free(&memory);
    shoal_data_free(&data);
    shoal_store_close(&folder);
    shoal_store_close(&far);
    shoal_store_close(&near);
}

/* A path that JSON can't hold is not a place but only a name. */
static void odd_paths(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = filed();
    shoal_data_free(&data);
    assert_int_equal(rename(at("rows.npy"), at("r\xff.npy")), 0);
    EXPECT_OK(shoal_data_open(&data, at("r\xff.npy"), NULL));
    job_spec *spec = spec_of(store, data, NULL, NULL);
    assert_int_equal(spec->source, JOB_UPLOADED);
    assert_non_null(strstr(spec->data_name, "/r?.npy"));
    EXPECT_OK(job_setup_announce(store, spec, soon()));
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

static void put_npy(shoal_store *store, const char *key, const char *from, const char *to)
{
    char bytes[128 + sizeof job_values];
    fill_values();
    EXPECT_OK(shoal_npy_write(at("x.npy"), job_values, SHOAL_FLOAT32, 2, (int64_t[]){ROWS, COLUMNS}));
    FILE *file = fopen(at("x.npy"), "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
    fclose(file);
    char *place = from ? memmem(bytes, 128, from, strlen(from)) : NULL;
    if (from)
        memcpy(place, to, strlen(to));
    EXPECT_OK(shoal_store_put(store, key, bytes, sizeof bytes, NULL, NULL, soon()));
}

static void rows_in_a_store(void **state)
{
    (void)state;
    shoal_store *store = open_store(at("store"));
    shoal_data *data = NULL;
    const void *rows;
    char scratch[64];
    put_npy(store, "in/r.npy", NULL, NULL);
    EXPECT_OK(shoal_job_data_open(&data, at("store/in/r.npy"), NULL, soon()));
    assert_int_equal(shoal_data_rows(data), ROWS);
    assert_int_equal(shoal_data_columns(data), COLUMNS);
    assert_int_equal(shoal_data_type(data), SHOAL_FLOAT32);
    assert_false(shoal_data_is_resident(data));
    EXPECT_FAIL(shoal_data_read(&rows, data, 0, 1, scratch), SHOAL_USAGE, "the rows are in a store");
    EXPECT_FAIL(shoal_data_read(&rows, data, 0, 1, NULL), SHOAL_USAGE, "shoal store get");
    data_place place = data_place_of(data);
    assert_int_equal(place.kind, DATA_IN_BLOB);
    assert_string_equal(place.key, "in/r.npy");
    assert_int_equal(place.offset, 128);
    assert_int_equal(place.size, 128 + sizeof job_values);
    job_spec *spec = spec_of(store, data, NULL, NULL);
    assert_int_equal(spec->source, JOB_RANGES);
    assert_string_equal(spec->place, "in/r.npy");
    assert_true(strlen(spec->etag.text) > 0);
    job_spec_free(&spec);
    shoal_data_free(&data);
    EXPECT_OK(shoal_store_put(store, "in/r.raw", job_values, sizeof job_values, NULL, NULL, soon()));
    EXPECT_OK(shoal_job_data_open(&data, at("store/in/r.raw"), &(shoal_data_options){.columns = COLUMNS, .type = "f4"},
                                  soon()));
    assert_int_equal(shoal_data_rows(data), ROWS);
    assert_int_equal(data_place_of(data).offset, 0);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* Headers of version 2 may be longer than what is fetched first. */
static void long_headers(void **state)
{
    (void)state;
    enum { HEADER = 9000 };
    shoal_store *store = open_store(at("store"));
    shoal_data *data = NULL;
    static unsigned char bytes[12 + HEADER + 24];
    memcpy(bytes, "\x93NUMPY\2\0", 8);
    memcpy(bytes + 8, &(uint32_t){HEADER}, 4);
    memset(bytes + 12, ' ', HEADER);
    static const char text[] = "{'descr': '<f8', 'fortran_order': False, ";
    memcpy(bytes + 12, text, sizeof text - 1);
    static const char shape[] = "'shape': (3,)}";
    memcpy(bytes + 12 + HEADER - sizeof shape, shape, sizeof shape - 1);
    EXPECT_OK(shoal_store_put(store, "long", bytes, sizeof bytes, NULL, NULL, soon()));
    EXPECT_OK(shoal_job_data_open(&data, at("store/long"), NULL, soon()));
    assert_int_equal(shoal_data_rows(data), 3);
    assert_int_equal(data_place_of(data).offset, 12 + HEADER);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

static void what_is_no_use_in_a_store(void **state)
{
    (void)state;
    shoal_store *store = open_store(at("store"));
    shoal_data *data = NULL;
    static const struct {
        shoal_data_options options;
        int status;
        const char *key, *words;
    } cases[] = {
        {{0},
         SHOAL_INVALID,
         "fortran",
         "Fortran order can't be used where it lies in a store; fetch it first with shoal store get"},
        {{0}, SHOAL_INVALID, "big", "other byte order"},
        {{0}, SHOAL_INVALID, "csv", "neither .npy nor said to be raw"},
        {{0}, SHOAL_INVALID, "empty", "the blob is empty"},
        {{0}, SHOAL_INVALID, "cut", "ends inside its npy header"},
        {{0}, SHOAL_INVALID, "short", "take 12000 bytes, and there are 11872"},
        {{0}, SHOAL_ABSENT, "none", "none"},
        {{.columns = 3}, SHOAL_USAGE, "csv", "number of columns and their type"},
        {{.type = "f4"}, SHOAL_USAGE, "csv", "number of columns and their type"},
        {{.columns = 3, .type = "f3"}, SHOAL_USAGE, "csv", "f3"},
        {{.columns = 3, .type = ">f4"}, SHOAL_INVALID, "csv", "other byte order"},
        {{.columns = 5, .type = "u1"}, SHOAL_INVALID, "csv", "not a whole number of rows"},
        {{.columns = 3, .rows = 3, .type = "u1"}, SHOAL_INVALID, "csv", "take 9 bytes, and there are 6"},
        {{.columns = -3, .type = "u1"}, SHOAL_USAGE, "csv", "negative"},
        {{.columns = 3, .type = "u1"}, SHOAL_USAGE, "good", "this is npy"},
        {{.drop_columns = "1"}, SHOAL_USAGE, "good", "columns can't be chosen while the rows lie in a store"},
        {{.keep_columns = "1"}, SHOAL_USAGE, "good", "shoal store get"},
        {{.missing = SHOAL_MISSING_DROP}, SHOAL_USAGE, "good", "--missing needs rows that are here"},
        {{.header = SHOAL_HEADER_YES}, SHOAL_USAGE, "good", "--header is for text files"},
    };
    put_npy(store, "good", NULL, NULL);
    put_npy(store, "fortran", "False", "True ");
    put_npy(store, "big", "'<f4'", "'>f4'");
    EXPECT_OK(shoal_store_put(store, "csv", "1,2,3\n", 6, NULL, NULL, soon()));
    EXPECT_OK(shoal_store_put(store, "empty", "", 0, NULL, NULL, soon()));
    shoal_blob blob = {0};
    EXPECT_OK(shoal_store_get(store, "good", &blob, soon()));
    EXPECT_OK(shoal_store_put(store, "cut", blob.data, 100, NULL, NULL, soon()));
    EXPECT_OK(shoal_store_put(store, "short", blob.data, 12000, NULL, NULL, soon()));
    shoal_blob_release(&blob);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char url[256];
        snprintf(url, sizeof url, "%s/%s", at("store"), cases[i].key);
        EXPECT_FAIL(shoal_job_data_open(&data, url, &cases[i].options, soon()), cases[i].status, cases[i].words);
        assert_null(data);
    }
    EXPECT_FAIL(shoal_job_data_open(&data, at("store"), NULL, soon()), SHOAL_USAGE, "names a store, but no blob");
    shoal_store_close(&store);
}

/* ---- announcing -------------------------------------------------------------------------------------------------- */

/* Takes all messages of a queue and marks the pieces they name. */
static int64_t drain(shoal_store *store, job_key queue, char *named)
{
    int64_t count = 0;
    for (shoal_message message = {0}; shoal_store_take(store, queue.text, 30, &message, soon()) == SHOAL_OK; count++) {
        char text[24] = "";
        assert_in_range(message.size, 1, 9);
        memcpy(text, message.data, message.size);
        named[atoi(text)]++;
        EXPECT_OK(shoal_store_finish(store, queue.text, &message, soon()));
        shoal_message_release(&message);
        message = (shoal_message){0};
    }
    return count;
}

static void check_announced(bool remote)
{
    shoal_store *store = open_store("mem:");
    shoal_data *data = wrapped();
    shoal_blob blob = {0};
    char named[64] = "", once[64];
    if (remote)
        make_remote(store);
    job_spec *spec = spec_of(store, data, NULL, &(shoal_job_options){.slices = 20, .rows_per_grain = 30}), *got = NULL;
    EXPECT_OK(job_setup_announce(store, spec, soon()));
    EXPECT_OK(job_spec_get(&got, store, spec->id, soon()));
    assert_memory_equal(got->sha256, spec->sha256, sizeof got->sha256);
    EXPECT_OK(shoal_store_get(store, job_key_open(spec->id).text, &blob, soon()));
    shoal_blob_release(&blob);
    assert_int_equal(drain(store, job_key_of(spec->id, "map"), named), 20);
    assert_int_equal(drain(store, job_key_of(spec->id, "reduce"), named), 5);
    assert_int_equal(drain(store, job_key_of(spec->id, "last"), named), 1);
    memset(once, 1, sizeof once);
    assert_memory_equal(named, once, (size_t)spec->tree.pieces);
    EXPECT_OK(job_setup_announce(store, spec, soon())); /* the very same */
    spec->keep_rounds++;
    EXPECT_FAIL(job_setup_announce(store, spec, soon()), SHOAL_USAGE, "already");
    job_spec_free(&got);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

static void announcing(void **state)
{
    (void)state;
    check_announced(false);
    check_announced(true);
}

static void ids_that_are_taken(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = wrapped();
    char id[SHOAL_JOB_ID_BYTES];
    EXPECT_OK(shoal_job_submit(id, store, &toy, NULL, data, NULL, &(shoal_job_options){.id = "mine"}));
    assert_string_equal(id, "mine");
    EXPECT_FAIL(shoal_job_submit(id, store, &toy, NULL, data, NULL, &(shoal_job_options){.id = id}), SHOAL_USAGE,
                "there is a job mine in mem: already");
    EXPECT_OK(shoal_store_put(store, "gone/old", "", 0, NULL, NULL, soon()));
    EXPECT_FAIL(shoal_job_submit(id, store, &toy, NULL, data, NULL, &(shoal_job_options){.id = "old"}), SHOAL_USAGE,
                "job old was removed from mem: not long ago");
    EXPECT_OK(shoal_job_submit(id, store, &toy, NULL, data, NULL, NULL));
    assert_memory_equal(id, "toy-", 4);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* ---- uploading --------------------------------------------------------------------------------------------------- */

static void expect_blob(shoal_store *store, job_key key, const void *bytes, size_t size)
{
    shoal_blob blob = {0};
    EXPECT_OK(shoal_store_get(store, key.text, &blob, soon()));
    assert_int_equal(blob.size, size);
    assert_memory_equal(blob.data, bytes, size);
    shoal_blob_release(&blob);
}

static void expect_uploaded(shoal_store *store, const job_spec *spec)
{
    for (int64_t i = 0; i < spec->slices; i++) {
        int64_t first = job_slice_first_row(spec, i), rows = job_slice_rows(spec, i);
        if (spec->source == JOB_UPLOADED)
            expect_blob(store, job_key_data(spec->id, i), job_values + first * COLUMNS, (size_t)rows * COLUMNS * 4);
        if (spec->shape.weighted)
            expect_blob(store, job_key_weights(spec->id, i), job_weights + first, (size_t)rows * 8);
    }
}

static void expect_empty(shoal_store *store, const job_spec *spec)
{
    int64_t left = -1;
    EXPECT_OK(shoal_store_count(store, job_key_of(spec->id, "setup").text, &left, soon()));
    assert_int_equal(left, 0);
}

static void uploads(void **state)
{
    (void)state;
    shoal_store *stores[] = {open_store("mem:"), open_store(at("store"))};
    for (int i = 0; i < 2; i++) {
        shoal_data *data = wrapped(), *file = filed();
        job_spec *spec = announced(stores[i], data, job_weights, 20);
        EXPECT_OK(job_setup_upload(stores[i], spec, data, job_weights, NULL, soon()));
        expect_uploaded(stores[i], spec);
        expect_empty(stores[i], spec);
        EXPECT_OK(job_setup_upload(stores[i], spec, data, job_weights, NULL, soon())); /* once more changes nothing */
        expect_uploaded(stores[i], spec);
        job_spec_free(&spec);
        spec = announced(stores[i], file, job_weights, 3); /* only the weights */
        assert_int_equal(spec->source, JOB_FILE);
        EXPECT_OK(job_setup_upload(stores[i], spec, file, job_weights, NULL, soon()));
        expect_uploaded(stores[i], spec);
        job_spec_free(&spec);
        shoal_data_free(&file);
        shoal_data_free(&data);
        shoal_store_close(&stores[i]);
    }
}

/* What was there stays, what was missing comes; messages that are lost, held by the dead, or nonsense do no harm. */
static void uploads_that_were_cut_short(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = wrapped();
    job_spec *spec = announced(store, data, job_weights, 9);
    job_key queue = job_key_of(spec->id, "setup");
    int stop = 1;
    EXPECT_FAIL(job_setup_upload(store, spec, data, job_weights, &stop, soon()), SHOAL_STOPPED, "asked to stop");
    shoal_message held = {0}, lost = {0};
    EXPECT_OK(shoal_store_take(store, queue.text, 1000, &held, soon())); /* by someone who died */
    EXPECT_OK(shoal_store_take(store, queue.text, 1000, &lost, soon()));
    EXPECT_OK(shoal_store_finish(store, queue.text, &lost, soon()));
    EXPECT_OK(shoal_store_push(store, queue.text, "nonsense", 8, soon()));
    EXPECT_OK(shoal_store_push(store, queue.text, "99", 2, soon()));
    EXPECT_OK(shoal_store_push(store, queue.text, "", 0, soon()));
    EXPECT_OK(shoal_store_put(store, job_key_data(spec->id, 4).text,
                              job_values + job_slice_first_row(spec, 4) * COLUMNS,
                              (size_t)job_slice_rows(spec, 4) * COLUMNS * 4, NULL, NULL, soon()));
    stop = 0;
    EXPECT_OK(job_setup_upload(store, spec, data, job_weights, &stop, soon()));
    EXPECT_OK(shoal_store_finish(store, queue.text, &held, soon()));
    expect_uploaded(store, spec);
    expect_empty(store, spec);
    shoal_message_release(&held);
    shoal_message_release(&lost);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

static void data_that_changed(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    shoal_data *data = wrapped(), *other = NULL;
    job_spec *spec = announced(store, data, job_weights, 4);
    job_values[ROWS * COLUMNS - 1] += 1;
    EXPECT_FAIL(job_setup_upload(store, spec, data, job_weights, NULL, soon()), SHOAL_INVALID,
                "memory: rows 751 to 1000 changed since the job was made");
    fill_values();
    EXPECT_OK(job_setup_upload(store, spec, data, job_weights, NULL, soon())); /* fixed */
    expect_uploaded(store, spec);
    job_spec_free(&spec);
    spec = announced(store, data, job_weights, 4);
    job_weights[3] = 0;
    EXPECT_FAIL(job_setup_upload(store, spec, data, job_weights, NULL, soon()), SHOAL_INVALID,
                "memory: weights 1 to 240 changed since the job was made");
    fill_values();
    EXPECT_FAIL(job_setup_upload(store, spec, data, NULL, NULL, soon()), SHOAL_INVALID, "was made for other data");
    EXPECT_OK(shoal_data_wrap(&other, job_values, ROWS - 1, COLUMNS, SHOAL_FLOAT32));
    EXPECT_FAIL(job_setup_upload(store, spec, other, job_weights, NULL, soon()), SHOAL_INVALID,
                "was made for other data");
    EXPECT_OK(job_setup_upload(store, spec, data, job_weights, NULL, soon()));
    expect_uploaded(store, spec);
    shoal_data_free(&other);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* Answers that are lost, refused and doubled: the upload ends complete all the same. */
static void uploads_to_a_store_with_faults(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:faulty?faults=seed:3,before:0.1,after:0.1,duplicate:0.2");
    shoal_data *data = wrapped();
    make_remote(store);
    job_spec *spec = announced(store, data, job_weights, 12);
    EXPECT_OK(job_setup_upload(store, spec, data, job_weights, NULL, soon()));
    expect_uploaded(store, spec);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices),
        cmocka_unit_test(shapes_are_those_of_shoal_run),
        cmocka_unit_test(names_and_leases),
        cmocka_unit_test(refusals),
        cmocka_unit_test(limits_are_inside),
        cmocka_unit_test(limits_of_those_who_look_after_jobs),
        cmocka_unit_test_setup_teardown(sources, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(odd_paths, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(rows_in_a_store, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(long_headers, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_use_in_a_store, job_setup, job_teardown),
        cmocka_unit_test(announcing),
        cmocka_unit_test(ids_that_are_taken),
        cmocka_unit_test_setup_teardown(uploads, job_setup, job_teardown),
        cmocka_unit_test(uploads_that_were_cut_short),
        cmocka_unit_test(data_that_changed),
        cmocka_unit_test(uploads_to_a_store_with_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
