/* Specs: what is written is read back the same, bit for bit, and everything that is not quite a spec is refused with a
 * sentence that names the job and the field. */
#include "job_support.h"

#include <jansson.h>

#include "base/bytes.h"
#include "learn/wire.h"

/* One with everything in it. */
static job_spec *full_spec(job_source_kind source, bool weighted, int64_t slices)
{
    job_spec *spec = NULL;
    EXPECT_OK(base_alloc(&spec, 1, sizeof *spec, "a spec"));
    strcpy(spec->id, "toy-0123456789abcdef");
    strcpy(spec->version, "1.2.3");
    strcpy(spec->algorithm, "toy");
    spec->shape = (shoal_shape){.rows = slices * 20 - 7, .columns = 4, .type = SHOAL_FLOAT64, .weighted = weighted};
    spec->shape.rows_per_grain = 10;
    spec->shape.grains = slices * 2;
    spec->fingerprint = 0x0123456789abcdef;
    spec->source = source;
    EXPECT_OK(base_copy_text(&spec->data_name, "n\xc3\xa4me \"x\".npy"));
    EXPECT_OK(base_copy_text(&spec->settings, "{\"k\": 8}"));
    EXPECT_OK(base_copy_text(&spec->place, source == JOB_GENERATED ? "gen:uniform?rows=1&cols=4" : "/a/b.npy"));
    if (source == JOB_RANGES) {
        strcpy(spec->etag.text, "\"0x8D\"");
        EXPECT_OK(base_copy_text(&spec->store_url, "az://acct/box/a/b.npy"));
    }
    if (source == JOB_RANGES || source == JOB_FILE) {
        spec->offset = 128;
        spec->size = 128 + spec->shape.rows * 32;
    }
    spec->slices = slices;
    EXPECT_OK(base_alloc(&spec->slice, (size_t)slices, sizeof *spec->slice, "slices"));
    for (int64_t i = 0; i < slices; i++) {
        spec->slice[i] = (job_slice){.first_grain = 2 * i, .grains = 2};
        for (int j = 0; j < BASE_HASH_SIZE; j++) {
            spec->slice[i].hash[j] = source == JOB_UPLOADED || source == JOB_FILE ? (unsigned char)(i + 7 * j) : 0;
            spec->slice[i].weights_hash[j] = weighted ? (unsigned char)(i ^ (11 * j)) : 0;
        }
    }
    EXPECT_OK(job_tree_choose(&spec->tree, "two-level", slices));
    spec->lease = 10.1;
    spec->keep_rounds = 3;
    spec->workers = 12;
    spec->created = 1794756000.25;
    EXPECT_OK(start_toy(&spec->first, NULL, &spec->shape));
    spec->first->number = 0;
    return spec;
}

static void expect_text(const char *left, const char *right)
{
    assert_int_equal(left != NULL, right != NULL);
    if (left)
        assert_string_equal(left, right);
}

static void expect_same(const job_spec *a, const job_spec *b)
{
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->version, b->version);
    assert_string_equal(a->algorithm, b->algorithm);
    assert_memory_equal(&a->shape, &b->shape, sizeof a->shape);
    assert_true(a->fingerprint == b->fingerprint);
    expect_text(a->data_name, b->data_name);
    expect_text(a->settings, b->settings);
    expect_text(a->place, b->place);
    expect_text(a->store_url, b->store_url);
    assert_int_equal(a->source, b->source);
    assert_string_equal(a->etag.text, b->etag.text);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->slices, b->slices);
    assert_memory_equal(a->slice, b->slice, (size_t)a->slices * sizeof *a->slice);
    assert_memory_equal(&a->tree, &b->tree, sizeof a->tree);
    assert_memory_equal(&a->ranged, &b->ranged, sizeof a->ranged);
    assert_int_equal(a->range_bytes, b->range_bytes);
    assert_true(a->lease == b->lease && a->created == b->created);
    assert_int_equal(a->keep_rounds, b->keep_rounds);
    assert_int_equal(a->workers, b->workers);
    assert_int_equal(a->first->model_bytes, 5);
    assert_memory_equal(b->first->model, "hello", 5);
    assert_string_equal(b->first->phase, "toy");
    assert_memory_equal(a->sha256, b->sha256, sizeof a->sha256);
}

static void round_trip(job_spec *spec)
{
    job_spec *back = NULL;
    void *bytes = NULL, *again = NULL;
    size_t size = 0, size_again = 0;
    EXPECT_OK(job_spec_encode(&bytes, &size, spec));
    EXPECT_OK(job_spec_decode(&back, spec->id, bytes, size));
    expect_same(spec, back);
    EXPECT_OK(job_spec_encode(&again, &size_again, back));
    assert_int_equal(size, size_again);
    assert_memory_equal(bytes, again, size);
    job_spec_free(&back);
    base_free(&bytes);
    base_free(&again);
    job_spec_free(&spec);
}

static void round_trips(void **state)
{
    (void)state;
    for (job_source_kind source = JOB_UPLOADED; source <= JOB_GENERATED; source++)
        for (int weighted = 0; weighted < 2; weighted++)
            for (int64_t slices = 1; slices < 20; slices += 6)
                round_trip(full_spec(source, weighted, slices));
    job_spec *spec = full_spec(JOB_RANGES, false, 2);
    base_free(&spec->store_url);
    base_free(&spec->settings);
    round_trip(spec);
    spec = full_spec(JOB_UPLOADED, false, 9);
    assert_true(job_tree_cut(&spec->ranged, &spec->tree, 3));
    spec->range_bytes = 65536;
    round_trip(spec);
}

static void many_slices_are_compact(void **state)
{
    (void)state;
    job_spec *spec = full_spec(JOB_UPLOADED, false, SHOAL_JOB_SLICES_MOST);
    void *bytes = NULL;
    size_t size = 0;
    EXPECT_OK(job_spec_encode(&bytes, &size, spec));
    assert_true(size < 5000000);
    base_free(&bytes);
    round_trip(spec);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

/* The spec with its JSON changed by `change`, of a JSON text like {"shape": {"rows": 7}}: what is null there is
 * removed. */
static void merge(json_t *into, json_t *change)
{
    const char *name;
    json_t *value;
    json_object_foreach(change, name, value)
    {
        json_t *old = json_object_get(into, name);
        if (json_is_null(value))
            json_object_del(into, name);
        else if (json_is_object(value) && json_is_object(old))
            merge(old, value);
        else
            json_object_set(into, name, value);
    }
}

static void *changed_bytes(size_t *size, job_spec *spec, const char *change)
{
    void *bytes = NULL, *out = NULL;
    EXPECT_OK(job_spec_encode(&bytes, size, spec));
    base_reader reader = base_reader_of(bytes, *size);
    size_t length = base_read_u32(&reader);
    json_t *json = json_loadb(base_read_bytes(&reader, length), length, 0, NULL),
           *changes = json_loads(change, 0, NULL);
    assert_non_null(json);
    if (!changes)
        fail_msg("no JSON: %s", change);
    merge(json, changes);
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17));
    base_writer writer = {0};
    base_write_text(&writer, text);
    base_write_bytes(&writer, reader.at, reader.left);
    EXPECT_OK(base_writer_take(&writer, &out, size));
    free(text);
    json_decref(json);
    json_decref(changes);
    base_free(&bytes);
    return out;
}

static void expect_refusal(job_source_kind source, const char *change, int status, const char *words)
{
    job_spec *spec = full_spec(source, true, 5), *back = NULL;
    size_t size;
    void *bytes = changed_bytes(&size, spec, change);
    int found = job_spec_decode(&back, spec->id, bytes, size);
    if (found != status || !strstr(shoal_error(), words) || !strstr(shoal_error(), "job toy-0123456789abcdef"))
        fail_msg("%s: status %d, \"%s\" lacks \"%s\"", change, found, shoal_error(), words);
    assert_null(back);
    base_free(&bytes);
    job_spec_free(&spec);
}

static void fields(void **state)
{
    (void)state;
    static const struct {
        job_source_kind source;
        const char *change, *words;
    } cases[] = {
        {JOB_FILE, "{\"format\": null}", "field format is missing"},
        {JOB_FILE, "{\"format\": 0}", "field format is not a whole number from 1 to 1"},
        {JOB_FILE, "{\"format\": \"1\"}", "field format"},
        {JOB_FILE, "{\"id\": \"other\"}", "belongs to job other"},
        {JOB_FILE, "{\"id\": null}", "field id is missing"},
        {JOB_FILE, "{\"version\": 5}", "field version is not a text"},
        {JOB_FILE, "{\"version\": \"123456789012345678901234\"}", "field version"},
        {JOB_FILE, "{\"algorithm\": \"\"}", "field algorithm is not a text, is empty"},
        {JOB_FILE, "{\"algorithm\": null}", "field algorithm is missing"},
        {JOB_FILE, "{\"fingerprint\": \"0123456789abcdeg\"}", "field fingerprint does not have 16 digits"},
        {JOB_FILE, "{\"fingerprint\": \"0123\"}", "field fingerprint"},
        {JOB_FILE, "{\"shape\": null}", "field shape is missing"},
        {JOB_FILE, "{\"shape\": [1]}", "field shape is not an object"},
        {JOB_FILE, "{\"shape\": {\"rows\": 0}}", "field shape.rows is not a whole number"},
        {JOB_FILE, "{\"shape\": {\"rows\": -3}}", "field shape.rows"},
        {JOB_FILE, "{\"shape\": {\"rows\": 93.0}}", "field shape.rows"},
        {JOB_FILE, "{\"shape\": {\"rows\": 94}}", "field data.size is too small"},
        {JOB_FILE, "{\"shape\": {\"rows\": 80}}", "field shape.grains does not go with the rows"},
        {JOB_FILE, "{\"shape\": {\"rows\": 9223372036854775807}}", "field shape.rows makes more bytes"},
        {JOB_FILE, "{\"shape\": {\"columns\": 9223372036854775807}}", "field shape.rows makes more bytes"},
        {JOB_FILE, "{\"shape\": {\"columns\": 0}}", "field shape.columns"},
        {JOB_FILE, "{\"shape\": {\"type\": \"float16\"}}", "field shape.type is not known"},
        {JOB_FILE, "{\"shape\": {\"weighted\": 1}}", "field shape.weighted is neither"},
        {JOB_FILE, "{\"shape\": {\"rows_per_grain\": 0}}", "field shape.rows_per_grain"},
        {JOB_FILE, "{\"shape\": {\"rows_per_grain\": 94}}", "field shape.rows_per_grain"},
        {JOB_FILE, "{\"shape\": {\"grains\": 11}}", "field shape.grains does not go with the rows"},
        {JOB_FILE, "{\"shape\": {\"grains\": 4294967296}}", "field shape.grains"},
        {JOB_FILE, "{\"shape\": {\"more\": 1}}", "field shape.more is not known"},
        {JOB_FILE, "{\"data\": {\"kind\": \"tape\"}}", "field data.kind is not known"},
        {JOB_FILE, "{\"data\": {\"name\": null}}", "field data.name is missing"},
        {JOB_FILE, "{\"data\": {\"place\": \"a/b\"}}", "field data.place is not an absolute path"},
        {JOB_FILE, "{\"data\": {\"offset\": -1}}", "field data.offset"},
        {JOB_FILE, "{\"data\": {\"offset\": 9223372036854775807}}", "field data.size is too small"},
        {JOB_FILE, "{\"data\": {\"size\": 3103}}", "field data.size is too small"},
        {JOB_FILE, "{\"data\": {\"etag\": \"1\"}}", "field data.etag is not known"},
        {JOB_RANGES, "{\"data\": {\"etag\": null}}", "field data.etag is missing"},
        {JOB_RANGES, "{\"data\": {\"store\": 3}}", "field data.store is not a text"},
        {JOB_GENERATED, "{\"data\": {\"place\": \"/etc/passwd\"}}", "field data.place is not a gen: address"},
        {JOB_UPLOADED, "{\"data\": {\"offset\": 0}}", "field data.offset is not known"},
        {JOB_FILE, "{\"slices\": {\"grains\": []}}", "field slices.grains is not a list"},
        {JOB_FILE, "{\"slices\": {\"grains\": 5}}", "field slices.grains is not a list"},
        {JOB_FILE, "{\"slices\": {\"grains\": [2,2,2,2,1]}}", "field slices.grains does not cover all grains"},
        {JOB_FILE, "{\"slices\": {\"grains\": [2,2,2,2,3]}}",
         "field slices.grains has a slice without grains, or with more"},
        {JOB_FILE, "{\"slices\": {\"grains\": [0,4,2,2,2]}}", "field slices.grains has a slice without grains"},
        {JOB_FILE, "{\"slices\": {\"grains\": [-1,5,2,2,2]}}", "field slices.grains has a slice without grains"},
        {JOB_FILE, "{\"slices\": {\"grains\": [2,2,2,4]}}", "field slices.hashes does not have 64 digits per slice"},
        {JOB_FILE, "{\"slices\": {\"hashes\": null}}", "field slices.hashes"},
        {JOB_FILE, "{\"slices\": {\"weights\": null}}", "field slices.weights"},
        {JOB_FILE, "{\"slices\": {\"x\": 0}}", "field slices.x is not known"},
        {JOB_GENERATED, "{\"slices\": {\"hashes\": \"00\"}}", "field slices.hashes is not known"},
        {JOB_FILE, "{\"reduce\": [4]}", "field reduce does not make a tree"},
        {JOB_FILE, "{\"reduce\": []}", "field reduce does not make a tree"},
        {JOB_FILE, "{\"reduce\": [5, 1]}", "field reduce does not make a tree"},
        {JOB_FILE, "{\"reduce\": \"flat\"}", "field reduce does not make a tree"},
        {JOB_FILE, "{\"reduce\": [2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]}", "field reduce does not make a tree"},
        {JOB_FILE, "{\"ranges\": 3}", "field ranges does not cut the tree"},
        {JOB_FILE, "{\"ranges\": [1, 65536]}", "field ranges does not cut the tree"},
        {JOB_FILE, "{\"ranges\": [257, 65536]}", "field ranges does not cut the tree"},
        {JOB_FILE, "{\"ranges\": [3, 0]}", "field ranges does not cut the tree"},
        {JOB_FILE, "{\"ranges\": [3, 8, 1]}", "field ranges does not cut the tree"},
        {JOB_FILE, "{\"lease\": 0.5}", "field lease is not a number from 1"},
        {JOB_FILE, "{\"lease\": 1e300}", "field lease"},
        {JOB_FILE, "{\"lease\": \"ten\"}", "field lease"},
        {JOB_FILE, "{\"keep_rounds\": -1}", "field keep_rounds"},
        {JOB_FILE, "{\"workers\": -1}", "field workers"},
        {JOB_FILE, "{\"workers\": 1048577}", "field workers"},
        {JOB_FILE, "{\"workers\": 9223372036854775807}", "field workers"},
        {JOB_FILE, "{\"keep_rounds\": 9223372036854775807}", "field keep_rounds"},
        {JOB_FILE, "{\"created\": -1}", "field created"},
        {JOB_FILE, "{\"settings\": 7}", "field settings is not a text"},
        {JOB_FILE, "{\"settings\": null}", "field settings is missing"},
        {JOB_FILE, "{\"extra\": 7}", "field extra is not known"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refusal(cases[i].source, cases[i].change, SHOAL_BROKEN, cases[i].words);
}

static void newer_formats(void **state)
{
    (void)state;
    expect_refusal(JOB_FILE, "{\"format\": 2, \"version\": \"9.0\", \"shape\": null, \"all\": \"new\"}", SHOAL_INVALID,
                   "was written by a newer shoal (format 2, version 9.0): update this one");
}

static void digits(void **state)
{
    (void)state;
    job_spec *spec = full_spec(JOB_FILE, false, 1), *back = NULL;
    void *bytes = NULL;
    size_t size;
    EXPECT_OK(job_spec_encode(&bytes, &size, spec));
    char *hash = memmem(bytes, size, "\"hashes\":\"", 10);
    assert_non_null(hash);
    static const char wrong[] = "gG/:@` A";
    for (size_t i = 0; i < sizeof wrong - 1; i++)
        for (int place = 0; place < 64; place += 21) {
            char old = hash[10 + place];
            hash[10 + place] = wrong[i];
            EXPECT_FAIL(job_spec_decode(&back, spec->id, bytes, size), SHOAL_BROKEN, "contains a non-hex character");
            hash[10 + place] = old;
        }
    EXPECT_OK(job_spec_decode(&back, spec->id, bytes, size));
    job_spec_free(&back);
    base_free(&bytes);
    job_spec_free(&spec);
}

/* Cut anywhere, longer, or with another round 0. */
static void lengths(void **state)
{
    (void)state;
    job_spec *spec = full_spec(JOB_UPLOADED, false, 2), *back = NULL;
    unsigned char *bytes = NULL;
    size_t size;
    EXPECT_OK(job_spec_encode((void **)&bytes, &size, spec));
    for (size_t cut = 0; cut < size; cut++)
        EXPECT_FAIL(job_spec_decode(&back, spec->id, bytes, cut), SHOAL_BROKEN, "job toy-0123456789abcdef: ");
    EXPECT_OK(base_grow(&bytes, size, size + 1, 1, "a spec"));
    EXPECT_FAIL(job_spec_decode(&back, spec->id, bytes, size + 1), SHOAL_BROKEN, "the spec has extra bytes at its end");
    base_free(&bytes);
    spec->first->number = 1;
    EXPECT_OK(job_spec_encode((void **)&bytes, &size, spec));
    EXPECT_FAIL(job_spec_decode(&back, spec->id, bytes, size), SHOAL_BROKEN, "first round has number 1");
    base_free(&bytes);
    job_spec_free(&spec);
}

static void what_is_no_json(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "{", "[]", "7", "{\"format\":1,\"format\":1}", "\xff", "{\"a\":\"\\u0000\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        base_writer writer = {0};
        void *bytes = NULL;
        size_t size = 0;
        job_spec *back = NULL;
        base_write_text(&writer, texts[i]);
        EXPECT_OK(base_writer_take(&writer, &bytes, &size));
        EXPECT_FAIL(job_spec_decode(&back, "j", bytes, size), SHOAL_BROKEN, "job j: the spec is not a JSON object");
        base_free(&bytes);
    }
}

static void fetching(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    job_spec *spec = NULL;
    EXPECT_FAIL(job_spec_get(&spec, store, "nobody", soon()), SHOAL_ABSENT, "there is no job nobody in mem:");
    EXPECT_FAIL(job_spec_get(&spec, store, "../x", soon()), SHOAL_USAGE, "can't be the name of a job");
    EXPECT_OK(shoal_store_put(store, "jobs/raw/spec", "not framed", 10, NULL, NULL, soon()));
    EXPECT_FAIL(job_spec_get(&spec, store, "raw", soon()), SHOAL_BROKEN, "jobs/raw/spec");
    shoal_store_close(&store);
}

static void rows_of_slices(void **state)
{
    (void)state;
    job_spec *spec = full_spec(JOB_UPLOADED, false, 3); /* 53 rows in grains of 10, two a slice */
    assert_int_equal(job_slice_first_row(spec, 0), 0);
    assert_int_equal(job_slice_rows(spec, 0), 20);
    assert_int_equal(job_slice_first_row(spec, 2), 40);
    assert_int_equal(job_slice_rows(spec, 2), 13);
    job_spec_free(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),    cmocka_unit_test(many_slices_are_compact),
        cmocka_unit_test(fields),         cmocka_unit_test(newer_formats),
        cmocka_unit_test(digits),         cmocka_unit_test(lengths),
        cmocka_unit_test(fetching),       cmocka_unit_test(what_is_no_json),
        cmocka_unit_test(rows_of_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
