/* Packing images as a learner: blobs in memory, so that every call and every allocation can fail; forged rounds,
 * records and parts do no harm. */
#include "data_support.h"

#include <pthread.h>

#include <png.h>

#include <shoal/engine.h>

#include "base/memory.h"
#include "data/example.h"
#include "data/tar.h"
#include "learn/check.h"
#include "learn/pack/pack_internal.h"
#include "learn/partial.h"

/* ---- blobs in memory --------------------------------------------------------------------------------------------- */

enum { BLOBS_MOST = 64 };

typedef struct memory_blobs {
    shoal_blobs table;
    pthread_mutex_t lock;
    int count;
    struct {
        char name[64];
        unsigned char *bytes; /* NULL: removed */
        size_t size;
    } blob[BLOBS_MOST];
    int calls, fail_at; /* the call that fails, counted from 1; 0: none */
} memory_blobs;

static int begin_call(memory_blobs *self)
{
    return ++self->calls == self->fail_at ? shoal_fail(SHOAL_SYSTEM, "a call that fails") : SHOAL_OK;
}

static int find_blob(const memory_blobs *self, const char *name)
{
    for (int i = 0; i < self->count; i++)
        if (strcmp(self->blob[i].name, name) == 0)
            return i;
    return -1;
}

static memory_blobs *unlocked(const shoal_blobs *table)
{
    memory_blobs *self = (memory_blobs *)(uintptr_t)table;
    pthread_mutex_lock(&self->lock);
    return self;
}

static int locked(memory_blobs *self, int status)
{
    pthread_mutex_unlock(&self->lock);
    return status;
}

static int get_memory(const shoal_blobs *table, const char *name, int64_t most, void **bytes, size_t *size)
{
    memory_blobs *self = unlocked(table);
    int status = begin_call(self), at = find_blob(self, name);
    *bytes = NULL;
    if (status == SHOAL_OK && (at < 0 || !self->blob[at].bytes))
        status = shoal_fail(SHOAL_ABSENT, "%s: there is no such blob", name);
    if (status == SHOAL_OK && (int64_t)self->blob[at].size > most)
        status = shoal_fail(SHOAL_MEMORY, "%s is too large", name);
    if (status == SHOAL_OK) {
        *size = self->blob[at].size;
        *bytes = malloc(*size ? *size : 1);
        memcpy(*bytes, self->blob[at].bytes, *size);
    }
    return locked(self, status);
}

static void release_memory(const shoal_blobs *table, void **bytes)
{
    (void)table;
    free(*bytes);
    *bytes = NULL;
}

static int put_memory(const shoal_blobs *table, const char *name, const void *bytes, size_t size)
{
    memory_blobs *self = unlocked(table);
    int status = begin_call(self), at = find_blob(self, name);
    if (status < 0)
        return locked(self, status);
    if (at < 0) {
        at = self->count++;
        assert_true(at < BLOBS_MOST);
        snprintf(self->blob[at].name, sizeof self->blob[at].name, "%s", name);
    }
    free(self->blob[at].bytes);
    self->blob[at].bytes = malloc(size ? size : 1);
    self->blob[at].size = size;
    if (size > 0)
        memcpy(self->blob[at].bytes, bytes, size);
    return locked(self, SHOAL_OK);
}

static int has_memory(const shoal_blobs *table, const char *name, int64_t *size)
{
    memory_blobs *self = unlocked(table);
    int status = begin_call(self), at = find_blob(self, name);
    if (status == SHOAL_OK && (at < 0 || !self->blob[at].bytes))
        status = shoal_fail(SHOAL_ABSENT, "%s: there is no such blob", name);
    if (status == SHOAL_OK)
        *size = (int64_t)self->blob[at].size;
    return locked(self, status);
}

static int remove_memory(const shoal_blobs *table, const char *name)
{
    memory_blobs *self = unlocked(table);
    int status = begin_call(self), at = find_blob(self, name);
    if (status == SHOAL_OK && at >= 0) {
        free(self->blob[at].bytes);
        self->blob[at].bytes = NULL;
    }
    return locked(self, status);
}

static memory_blobs new_blobs(void)
{
    return (memory_blobs){.table = {get_memory, release_memory, put_memory, has_memory, remove_memory},
                          .lock = PTHREAD_MUTEX_INITIALIZER};
}

static void free_blobs(memory_blobs *blobs)
{
    for (int i = 0; i < blobs->count; i++)
        free(blobs->blob[i].bytes);
    blobs->count = 0;
}

static bool same_blob(const memory_blobs *a, const memory_blobs *b, const char *name)
{
    int i = find_blob(a, name), j = find_blob(b, name);
    return i >= 0 && j >= 0 && a->blob[i].bytes && b->blob[j].bytes && a->blob[i].size == b->blob[j].size &&
           memcmp(a->blob[i].bytes, b->blob[j].bytes, a->blob[i].size) == 0;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

enum { IMAGES = 7, SIDE = 20, ROW = 32 };

static unsigned char rows[IMAGES * ROW];
static memory_blobs photographs;

static void add_photograph(int number, int32_t class)
{
    unsigned char pixels[SIDE * SIDE * 3], file[4096];
    png_image image = {.version = PNG_IMAGE_VERSION, .width = SIDE, .height = SIDE, .format = PNG_FORMAT_RGB};
    png_alloc_size_t size = sizeof file;
    char name[16];
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        pixels[i] = (unsigned char)(i * (number + 3));
    assert_true(png_image_write_to_memory(&image, file, &size, 0, pixels, 0, NULL));
    snprintf(name, sizeof name, "p%d.png", number);
    assert_int_equal(put_memory(&photographs.table, name, file, size), SHOAL_OK);
    pack_row_write(rows + number * ROW, ROW, (int64_t)size, class, name);
}

static int setup(void **state)
{
    (void)state;
    photographs = new_blobs();
    for (int i = 0; i < IMAGES; i++)
        add_photograph(i, i % 2);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free_blobs(&photographs);
    return 0;
}

/* Another content of the same size: no image any more. */
static void break_photograph(int number)
{
    char name[16];
    snprintf(name, sizeof name, "p%d.png", number);
    int at = find_blob(&photographs, name);
    memset(photographs.blob[at].bytes, 'x', photographs.blob[at].size);
}

static pack_config usual(void)
{
    pack_config config = {0};
    assert_int_equal(shoal_options_default(&config, pack_algorithm.options), SHOAL_OK);
    config.size = "8x8";
    config.shards = 3;
    config.name = "photo";
    config.classes = "even\nodd";
    config.parts = true;
    return config;
}

static int pack(shoal_result **out, memory_blobs *to, const pack_config *config, int threads)
{
    shoal_data *data = NULL;
    const shoal_run_options options = {.threads = threads, .from = &photographs.table, .to = &to->table};
    int status = shoal_data_wrap(&data, rows, IMAGES, ROW, SHOAL_UINT8);
    if (status == SHOAL_OK)
        status = shoal_run(out, NULL, &pack_algorithm, config, data, NULL, &options);
    shoal_data_free(&data);
    return status;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_shards(void **state)
{
    memory_blobs one = new_blobs(), many = new_blobs();
    const pack_config config = usual();
    shoal_result *result = NULL;
    (void)state;
    assert_int_equal(pack(&result, &one, &config, 1), SHOAL_OK);
    assert_int_equal(shoal_result_number(result, "written"), IMAGES);
    assert_int_equal(shoal_result_number(result, "shards_count"), 3);
    shoal_result_free(&result);
    assert_int_equal(pack(&result, &many, &config, 4), SHOAL_OK);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"photo00-3.tfrec", "photo01-3.tfrec", "photo02-1.tfrec"};
        assert_true(same_blob(&one, &many, names[i]));
    }
    const learn_rows about = {.rows = IMAGES, .columns = ROW};
    const learn_ended ended = {.config = &config, .result = result, .rows = about};
    const learn_face *face = learn_face_find("pack");
    assert_int_equal(face->end_blobs(&many.table, &ended), SHOAL_OK);
    int at = find_blob(&many, "manifest.json");
    assert_non_null(memmem(many.blob[at].bytes, many.blob[at].size, "photo02-1.tfrec", 15));
    at = find_blob(&many, "photo01-3.part");
    assert_true(at >= 0 && !many.blob[at].bytes);
    char *name = NULL;
    assert_int_equal(face->blob_of(&name, rows + 2 * ROW, &about), SHOAL_OK);
    assert_string_equal(name, "p2.png");
    base_free(&name);
    shoal_result_free(&result);
    free_blobs(&one);
    free_blobs(&many);
}

/* Only what is missing or was changed is made again. */
static void test_resume(void **state)
{
    memory_blobs to = new_blobs();
    pack_config config = usual();
    shoal_result *result = NULL;
    (void)state;
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
    shoal_result_free(&result);
    config.resume = true;
    photographs.calls = 0;
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
    assert_int_equal(photographs.calls, 0);
    shoal_result_free(&result);
    assert_int_equal(remove_memory(&to.table, "photo00-3.tfrec"), SHOAL_OK);
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
    assert_int_equal(photographs.calls, 3);
    shoal_result_free(&result);
    config.quality = 50; /* other options make other shards */
    photographs.calls = 0;
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
    assert_int_equal(photographs.calls, IMAGES);
    shoal_result_free(&result);
    free_blobs(&to);
}

/* A part that says anything: the shard is made again, or what it says is a record like any other. */
static void test_damaged_parts(void **state)
{
    memory_blobs good = new_blobs(), to = new_blobs();
    pack_config config = usual();
    shoal_result *result = NULL;
    (void)state;
    config.resume = config.skip_broken = true;
    break_photograph(1);
    assert_int_equal(pack(&result, &good, &config, 1), SHOAL_OK);
    assert_int_equal(shoal_result_number(result, "skipped_images"), 1);
    shoal_result_free(&result);
    int part = find_blob(&good, "photo00-3.part");
    const size_t size = good.blob[part].size;
    for (size_t i = 0; i < size + 3; i++) {
        unsigned char *bytes = good.blob[part].bytes;
        for (int j = 0; j < good.count; j++)
            assert_int_equal(put_memory(&to.table, good.blob[j].name, good.blob[j].bytes, good.blob[j].size), SHOAL_OK);
        if (i < size) {
            bytes[i] ^= 0x85;
            assert_int_equal(put_memory(&to.table, "photo00-3.part", bytes, size), SHOAL_OK);
            bytes[i] ^= 0x85;
        } else { /* cut short */
            assert_int_equal(put_memory(&to.table, "photo00-3.part", bytes, size - (i - size) - 1), SHOAL_OK);
        }
        int status = pack(&result, &to, &config, 1);
        assert_true(status == SHOAL_OK || status == SHOAL_BROKEN);
        shoal_result_free(&result);
    }
    free_blobs(&good);
    free_blobs(&to);
}

static void test_broken_images(void **state)
{
    memory_blobs to = new_blobs();
    pack_config config = usual();
    shoal_result *result = NULL;
    (void)state;
    break_photograph(4);
    assert_int_equal(pack(&result, &to, &config, 2), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "p4.png: "));
    assert_non_null(strstr(shoal_error(), "--skip-broken"));
    config.skip_broken = true;
    assert_int_equal(pack(&result, &to, &config, 2), SHOAL_OK);
    assert_int_equal(shoal_result_number(result, "written"), IMAGES - 1);
    const shoal_tensor *skipped = shoal_result_tensor(result, "skipped");
    assert_int_equal(skipped->shape[0], 1);
    assert_int_equal(((const int64_t *)skipped->values)[0], 4);
    assert_string_equal(shoal_result_tensor(result, "why")->values, "p4.png");
    shoal_result_free(&result);
    pack_row_write(rows, ROW, 7, 0, "p0.png"); /* listed with another size */
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "p0.png has another size"));
    free_blobs(&to);
}

static void test_rows_that_are_none(void **state)
{
    static const struct {
        int64_t size;
        int32_t class, length;
        const char *name;
    } wrong[] = {{-1, 0, 1, "a"}, {1, -2, 1, "a"}, {1, 2, 1, "a"},    {1, 0, 0, ""}, {1, 0, 99, "a"},
                 {1, 0, -1, "a"}, {1, 0, 2, "/a"}, {1, 0, 4, "../a"}, {1, 0, 3, "a"}};
    const pack_config config = usual();
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memory_blobs to = new_blobs();
        shoal_result *result = NULL;
        memset(rows, 0, ROW);
        memcpy(rows, &wrong[i].size, 8);
        memcpy(rows + 8, &wrong[i].class, 4);
        memcpy(rows + 12, &wrong[i].length, 4);
        memcpy(rows + 16, wrong[i].name, strlen(wrong[i].name));
        assert_int_equal(pack(&result, &to, &config, 1), SHOAL_INVALID);
        assert_non_null(strstr(shoal_error(), "row 1 does not name an image"));
        free_blobs(&to);
    }
}

static void test_options(void **state)
{
    const shoal_shape shape = {.rows = IMAGES, .columns = ROW, .type = SHOAL_UINT8, .rows_per_grain = 3, .grains = 3};
    static const char *const sizes[] = {"", "8", "8x", "x8", "8x8x3", "0x8", "8x99999", "8 x 8", "-1x4", "16384x16384"};
    shoal_round *round = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pack_config config = usual();
        config.size = sizes[i];
        assert_int_equal(pack_algorithm.start(&round, &config, &shape), SHOAL_USAGE);
    }
    pack_config config = usual();
    shoal_shape other = shape;
    other.type = SHOAL_FLOAT32;
    assert_int_equal(pack_algorithm.start(&round, &config, &other), SHOAL_INVALID);
}

/* No byte of a model that differs makes a map do harm: it is refused, or the model is another good one. */
static void test_forged_rounds(void **state)
{
    const shoal_shape shape = {.rows = IMAGES, .columns = ROW, .type = SHOAL_UINT8, .rows_per_grain = 3, .grains = 3};
    const pack_config config = usual();
    shoal_round *round = NULL;
    int refused = 0;
    (void)state;
    assert_int_equal(pack_algorithm.start(&round, &config, &shape), SHOAL_OK);
    assert_int_equal(learn_round_check(&pack_algorithm, round, &shape), SHOAL_OK);
    unsigned char *bytes = round->model;
    for (size_t i = 0; i < round->model_bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (unsigned char)(1 << bit);
            refused += learn_round_check(&pack_algorithm, round, &shape) == SHOAL_BROKEN;
            bytes[i] ^= (unsigned char)(1 << bit);
        }
    assert_true(refused > 500);
    round->model_bytes--;
    assert_int_equal(learn_round_check(&pack_algorithm, round, &shape), SHOAL_BROKEN);
    round->model_bytes++;
    round->layout.cells = 1;
    assert_int_equal(learn_round_check(&pack_algorithm, round, &shape), SHOAL_BROKEN);
    shoal_round_free(&round);
}

/* What a worker says of a broken image may lack the ends of its texts. */
static void test_forged_records(void **state)
{
    const shoal_shape shape = {.rows = IMAGES, .columns = ROW, .type = SHOAL_UINT8, .rows_per_grain = 3, .grains = 3};
    const pack_config config = usual();
    shoal_round *round = NULL, *next = NULL;
    shoal_partial *merged = NULL;
    shoal_result *result = NULL;
    char text[PACK_WHY_BYTES];
    (void)state;
    memset(text, 'x', sizeof text);
    assert_int_equal(pack_algorithm.start(&round, &config, &shape), SHOAL_OK);
    assert_int_equal(learn_partial_new(&merged, &round->layout, 0, shape.rows, NULL), SHOAL_OK);
    assert_int_equal(shoal_partial_record(merged, PACK_CELL_BROKEN, (shoal_key){0, 0}, text), SHOAL_OK);
    assert_int_equal(pack_algorithm.update(&next, &result, round, merged, &shape, NULL, false), SHOAL_INVALID);
    assert_true(strlen(shoal_error()) < sizeof text);
    assert_null(result);
    learn_partial_free(&merged);
    shoal_round_free(&round);
}

/* Every call that fails, and every allocation, ends the run with that failure and leaves nothing behind. */
static void test_failures(void **state)
{
    pack_config config = usual();
    (void)state;
    config.shards = 1;
    config.index = true;
    for (int side = 0; side < 2; side++)
        for (int n = 1;; n++) {
            memory_blobs to = new_blobs();
            shoal_result *result = NULL;
            photographs.calls = 0;
            photographs.fail_at = side == 0 ? n : 0;
            to.fail_at = side == 1 ? n : 0;
            int status = pack(&result, &to, &config, 1);
            bool failed = (side == 0 ? photographs.calls : to.calls) >= n;
            shoal_result_free(&result);
            free_blobs(&to);
            assert_int_equal(status, failed ? SHOAL_SYSTEM : SHOAL_OK);
            if (!failed)
                break;
        }
    photographs.fail_at = 0;
    for (int64_t n = 0;; n++) {
        memory_blobs to = new_blobs();
        shoal_result *result = NULL;
        base_memory_fail_after(n);
        int status = pack(&result, &to, &config, 1);
        base_memory_fail_after(-1);
        shoal_result_free(&result);
        free_blobs(&to);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
        assert_true(n < 2000);
    }
}

/* One record as protobuf has it, byte by byte; and the head of a member of an archive. */
static void test_bytes_of_formats(void **state)
{
    static const unsigned char expected[] = "\n#"
                                            "\n\x10\n\x05"
                                            "image\x12\x07\n\x05\n\x03"
                                            "abc"
                                            "\n\x0f\n\x04"
                                            "size\x12\x07\x1a\x05\n\x03\x05\xac\x02";
    base_writer out = {0}, tar = {0};
    (void)state;
    data_example_write(&out, &(data_example){.image = "abc", .image_size = 3, .label = -1, .height = 5, .width = 300});
    assert_int_equal(out.size, sizeof expected - 1);
    assert_memory_equal(out.data, expected, out.size);
    base_writer_release(&out);
    data_tar_write(&tar, "a.jpg", "abc", 3);
    data_tar_end(&tar);
    assert_int_equal(tar.size, 4 * DATA_TAR_BLOCK);
    assert_string_equal(tar.data, "a.jpg");
    assert_string_equal(tar.data + 124, "00000000003");
    unsigned sum = 8 * ' ';
    for (int i = 0; i < DATA_TAR_BLOCK; i++)
        sum += i >= 148 && i < 156 ? 0 : tar.data[i];
    assert_int_equal(strtoul((const char *)tar.data + 148, NULL, 8), sum);
    base_writer_release(&tar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resume, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken_images, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rows_that_are_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_options, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forged_rounds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forged_records, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
        cmocka_unit_test(test_bytes_of_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
