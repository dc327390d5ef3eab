/* Packing images as a learner: blobs in memory, so that every call and every allocation can fail; forged rounds,
 * records and parts do no harm. */
#include "data_support.h"

#include <pthread.h>

#include <png.h>

#include <shoal/engine.h>

#include "base/memory.h"
#include "data/format/example.h"
#include "data/format/tar.h"
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

static int get_part_memory(const shoal_blobs *table, const char *name, int64_t first, void *into, size_t size)
{
    memory_blobs *self = unlocked(table);
    int status = begin_call(self), at = find_blob(self, name);
    if (status == SHOAL_OK && (at < 0 || !self->blob[at].bytes))
        status = shoal_fail(SHOAL_ABSENT, "%s: there is no such blob", name);
    else if (status == SHOAL_OK && (size_t)first + size > self->blob[at].size)
        status = shoal_fail(SHOAL_INVALID, "%s is too short", name);
    if (status == SHOAL_OK)
        memcpy(into, self->blob[at].bytes + first, size);
    return locked(self, status);
}

static memory_blobs new_blobs(void)
{
    return (memory_blobs){.table = {get_memory, release_memory, put_memory, has_memory, remove_memory, get_part_memory},
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

enum { IMAGES = 7, SIDE = 20, LARGE = 1000, ROW = 32 };

static unsigned char rows[IMAGES * ROW];
static memory_blobs photographs;

static void add_square(int number, int32_t class, uint32_t side)
{
    static unsigned char pixels[LARGE * LARGE * 3], file[1 << 16];
    png_image image = {.version = PNG_IMAGE_VERSION, .width = side, .height = side, .format = PNG_FORMAT_RGB};
    png_alloc_size_t size = sizeof file;
    char name[16];
    for (uint32_t i = 0; i < side * side * 3; i++)
        pixels[i] = (unsigned char)(side == LARGE ? 7 : i * (uint32_t)(number + 3));
    assert_true(png_image_write_to_memory(&image, file, &size, 0, pixels, 0, NULL));
    snprintf(name, sizeof name, "p%d.png", number);
    assert_int_equal(put_memory(&photographs.table, name, file, size), SHOAL_OK);
    pack_row_write(rows + number * ROW, ROW, (int64_t)size, class, name);
}

static void add_photograph(int number, int32_t class)
{
    add_square(number, class, SIDE);
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
    to.blob[find_blob(&to, "photo00-3.tfrec")].size--; /* as a full disk leaves it */
    photographs.calls = 0;
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
    assert_int_equal(photographs.calls, 3);
    shoal_result_free(&result);
    to.blob[find_blob(&to, "photo00-3.tfrec")].bytes[40] ^= 1; /* as a bad disk leaves it */
    photographs.calls = 0;
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

static void end_pack(memory_blobs *to, const pack_config *config, const shoal_result *result)
{
    const learn_ended ended = {.config = config, .result = result, .rows = {.rows = IMAGES, .columns = ROW}};
    assert_int_equal(learn_face_find("pack")->end_blobs(&to->table, &ended), SHOAL_OK);
}

/* Of a run that was done nothing is made again but what is missing; what is not the same is only replaced when that is
 * wanted. */
static void test_resume_of_what_is_done(void **state)
{
    memory_blobs to = new_blobs(), whole = new_blobs();
    pack_config config = usual();
    shoal_result *result = NULL;
    (void)state;
    break_photograph(4);
    config.skip_broken = true;
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
    end_pack(&to, &config, result);
    shoal_result_free(&result);
    for (int i = 0; i < to.count; i++)
        if (to.blob[i].bytes)
            assert_int_equal(put_memory(&whole.table, to.blob[i].name, to.blob[i].bytes, to.blob[i].size), SHOAL_OK);
    config.resume = true;
    for (int missing = 0; missing < 2; missing++) {
        photographs.calls = 0;
        if (missing)
            remove_memory(&to.table, "photo00-3.tfrec");
        assert_int_equal(pack(&result, &to, &config, 2), SHOAL_OK);
        assert_int_equal(photographs.calls, missing ? 3 : 0);
        assert_int_equal(shoal_result_number(result, "skipped_images"), 1);
        end_pack(&to, &config, result);
        shoal_result_free(&result);
        for (int i = 0; i < whole.count; i++)
            assert_true(same_blob(&whole, &to, whole.blob[i].name));
    }
    config.skip_broken = false; /* which images are broken is known of the manifest, too */
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "p4.png: "));
    config.skip_broken = true;
    config.quality = 50;
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "already holds packed images (manifest.json), made of other images"));
    for (int i = 0; i < whole.count; i++)
        assert_true(same_blob(&whole, &to, whole.blob[i].name));
    config.replace = true;
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
    assert_false(same_blob(&whole, &to, "photo00-3.tfrec"));
    shoal_result_free(&result);
    config.replace = false;
    assert_int_equal(put_memory(&to.table, "manifest.json", "[1, 2]", 6), SHOAL_OK);
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_USAGE);
    free_blobs(&to);
    free_blobs(&whole);
}

/* Of two runs that write to one place the later one takes away what it has made, and nothing of the other. */
static void test_two_runs_at_one_place(void **state)
{
    memory_blobs to = new_blobs();
    pack_config first = usual(), second = usual();
    shoal_result *result = NULL, *later = NULL;
    int64_t size = 0;
    (void)state;
    first.parts = false;
    second.shards = 1;
    assert_int_equal(pack(&result, &to, &first, 1), SHOAL_OK);
    assert_int_equal(pack(&later, &to, &second, 1), SHOAL_OK);
    assert_int_equal(has_memory(&to.table, "photo00-7.tfrec", &size), SHOAL_OK);
    assert_int_equal(has_memory(&to.table, "photo00-7.part", &size), SHOAL_OK);
    end_pack(&to, &first, result);
    const learn_ended ended = {.config = &second, .result = later, .rows = {.rows = IMAGES, .columns = ROW}};
    assert_int_equal(learn_face_find("pack")->end_blobs(&to.table, &ended), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "of another run, which was done meanwhile"));
    assert_int_equal(has_memory(&to.table, "photo00-7.tfrec", &size), SHOAL_ABSENT);
    assert_int_equal(has_memory(&to.table, "photo00-7.part", &size), SHOAL_ABSENT);
    assert_int_equal(has_memory(&to.table, "photo00-3.tfrec", &size), SHOAL_OK);
    end_pack(&to, &first, result); /* its own manifest is no other's: it may have been killed right after it */
    shoal_result_free(&result);
    shoal_result_free(&later);
    free_blobs(&to);
}

/* Whatever a manifest says, the shards that it lists are there, or are made again. */
static void test_damaged_manifests(void **state)
{
    memory_blobs to = new_blobs();
    pack_config config = usual();
    shoal_result *result = NULL;
    (void)state;
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
    end_pack(&to, &config, result);
    shoal_result_free(&result);
    config.resume = true;
    const int at = find_blob(&to, "manifest.json");
    for (size_t i = 0; i < to.blob[at].size; i += 3) {
        to.blob[at].bytes[i] ^= 1;
        int status = pack(&result, &to, &config, 1);
        assert_true(status == SHOAL_OK || status == SHOAL_USAGE || status == SHOAL_BROKEN || status == SHOAL_INVALID);
        shoal_result_free(&result);
        to.blob[at].bytes[i] ^= 1;
    }
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
    /* What was no file when it was listed is not even looked for; what has gone since is found out. */
    pack_row_write(rows + ROW, ROW, PACK_LOST, 1, "p1.png");
    remove_memory(&photographs.table, "p2.png");
    photographs.calls = 0;
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
    assert_int_equal(photographs.calls, IMAGES - 1);
    assert_int_equal(shoal_result_number(result, "written"), IMAGES - 3);
    const char *why = shoal_result_tensor(result, "why")->values;
    assert_string_equal(why + strlen("p1.png") + 1, "there is no file behind this link");
    assert_string_equal(why + PACK_WHY_BYTES + strlen("p2.png") + 1, "it is not there any more");
    shoal_result_free(&result);
    photographs.fail_at = 2; /* blobs that are out of reach are no broken images */
    photographs.calls = 0;
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_SYSTEM);
    photographs.fail_at = 0;
    pack_row_write(rows, ROW, 7, 0, "p0.png"); /* listed with another size */
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "p0.png has another size"));
    pack_row_write(rows, ROW, 100000, 0, "p0.png");
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
    } wrong[] = {{-5, 0, 1, "a"}, {1, -2, 1, "a"}, {1, 2, 1, "a"},    {1, 0, 0, ""}, {1, 0, 99, "a"},
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

/* In which options shards can be read back: all formats, with classes and without. */
static pack_config packing_number(int number)
{
    pack_config config = usual();
    config.format = number % 3;
    config.encode = number % 3 == PACK_NPY ? DATA_IMAGE_RAW : DATA_IMAGE_JPEG;
    if (number == 6)
        config.encode = DATA_IMAGE_RAW;
    if (number >= 3 && number < 6)
        config.classes = "";
    return config;
}

enum { PACKINGS = 7 };

/* A shard of all images, in so much memory; the blocks that it holds are bounded by `hold`. */
static int pack_held(const pack_config *config, int64_t spare, int64_t hold)
{
    const shoal_shape shape = {
        .rows = IMAGES, .columns = ROW, .type = SHOAL_UINT8, .rows_per_grain = IMAGES, .grains = 1};
    const shoal_grain grain = {.rows = IMAGES, .values = rows};
    memory_blobs to = new_blobs();
    const pack_ready ready = {.from = &photographs.table, .to = &to.table, .shape = &shape};
    shoal_round *round = NULL;
    shoal_partial *partial = NULL;
    assert_int_equal(pack_algorithm.start(&round, config, &shape), SHOAL_OK);
    assert_int_equal(learn_partial_new(&partial, &round->layout, 0, IMAGES, NULL), SHOAL_OK);
    base_memory_hold(hold);
    int status = pack_make_shard(partial, round->model, &ready, &grain, spare);
    base_memory_hold(INT64_MAX);
    assert_int_equal(shoal_partial_records(partial, PACK_CELL_SHARDS), status == SHOAL_OK);
    learn_partial_free(&partial);
    shoal_round_free(&round);
    free_blobs(&to);
    return status;
}

static int pack_within(const pack_config *config, int64_t spare)
{
    enum { SLACK = 64 << 10 };
    return pack_held(config, spare, spare + SLACK);
}

/* What there is no memory for is refused before it is allocated, in a sentence that says what to change. */
static void test_bounded_memory(void **state)
{
    static const char *const sizes[] = {"300x300", "64x64"};
    (void)state;
    for (int number = 0; number < 2 * PACKINGS; number++) {
        pack_config config = packing_number(number % PACKINGS);
        int64_t spare = 1, refused = 0;
        config.size = sizes[number / PACKINGS];
        config.parts = false;
        for (int i = 0; i < IMAGES; i++)
            add_photograph(i, config.classes[0] ? i % 2 : -1);
        for (int status = SHOAL_MEMORY; status != SHOAL_OK; spare += 20000 + spare / 8) {
            status = pack_within(&config, spare);
            assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
            if (status == SHOAL_MEMORY)
                assert_non_null(strstr(shoal_error(), "that a thread may use here"));
            refused += status == SHOAL_MEMORY;
        }
        assert_true(refused > 0 && spare < 20000000);
    }
    /* An image whose file is small and whose pixels are not. */
    pack_config config = usual();
    add_square(3, 1, LARGE);
    assert_int_equal(pack_held(&config, 1000000, INT64_MAX), SHOAL_MEMORY);
    assert_non_null(strstr(shoal_error(), "p3.png: its pixels take more than the 1.0 MB that a thread may use here"));
    assert_int_equal(pack_within(&config, 5000000), SHOAL_OK); /* of large blocks pages of 2 MiB are taken */
}

/* What a sheet shows of the shards. */
static int show(learn_shown *out, memory_blobs *to, const pack_config *config, const shoal_result *result)
{
    *out = (learn_shown){0};
    return learn_face_find("pack")->show(
        out, &to->table, &(learn_ended){.config = config, .result = result, .rows = {.rows = IMAGES, .columns = ROW}});
}

static void test_sheets(void **state)
{
    (void)state;
    for (int number = 0; number < PACKINGS; number++) {
        const pack_config config = packing_number(number);
        memory_blobs to = new_blobs();
        shoal_result *result = NULL;
        learn_shown shown;
        for (int i = 0; i < IMAGES; i++)
            add_photograph(i, config.classes[0] ? i % 2 : -1);
        assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
        assert_int_equal(show(&shown, &to, &config, result), SHOAL_OK);
        assert_int_equal(shown.images, IMAGES);
        assert_true(shown.height == 8 && shown.width == 8);
        assert_string_equal(shown.title, "photo: 7 of 7 packed images");
        for (int i = 0; i < IMAGES; i++) /* class by class: 0 2 4 6, 1 3 5 */
            assert_string_equal(shown.names[i], !config.classes[0] ? "" : i < 4 ? "even" : "odd");
        if (config.format == PACK_NPY && config.classes[0]) { /* the second one shown is the third image */
            int at = find_blob(&to, "photo00-3.npy");
            assert_memory_equal(shown.pixels + 192, to.blob[at].bytes + to.blob[at].size - 192, 192);
        }
        learn_shown_release(&shown);
        shoal_result_free(&result);
        free_blobs(&to);
    }
}

/* Any byte of a shard may be another one, and it may end anywhere. */
static void test_sheets_of_damaged_shards(void **state)
{
    (void)state;
    for (int number = 0; number < PACKINGS; number++) {
        pack_config config = packing_number(number);
        memory_blobs to = new_blobs();
        shoal_result *result = NULL;
        learn_shown shown;
        config.shards = 1;
        config.parts = false;
        for (int i = 0; i < IMAGES; i++)
            add_photograph(i, config.classes[0] ? i % 2 : -1);
        assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
        for (int b = 0; b < to.count; b++) {
            const size_t size = to.blob[b].size;
            for (size_t i = 0; i < size; i += i < 600 ? 1 : 37) {
                to.blob[b].bytes[i] ^= 0x41;
                int status = show(&shown, &to, &config, result);
                assert_true(status == SHOAL_OK || status == SHOAL_INVALID);
                assert_true(status == SHOAL_INVALID || number % 3 != PACK_TFRECORD); /* records have checksums */
                learn_shown_release(&shown);
                to.blob[b].bytes[i] ^= 0x41;
                to.blob[b].size = i;
                status = show(&shown, &to, &config, result);
                assert_true(status == SHOAL_INVALID || (number % 3 == PACK_TAR && size - i <= 2 * DATA_TAR_BLOCK));
                learn_shown_release(&shown);
                to.blob[b].size = size;
            }
        }
        shoal_result_free(&result);
        free_blobs(&to);
    }
}

static void test_sheets_that_fail(void **state)
{
    pack_config config = usual();
    memory_blobs to = new_blobs();
    shoal_result *result = NULL;
    learn_shown shown;
    (void)state;
    assert_int_equal(pack(&result, &to, &config, 1), SHOAL_OK);
    for (int n = 1;; n++) {
        to.calls = 0;
        to.fail_at = n;
        int status = show(&shown, &to, &config, result);
        learn_shown_release(&shown);
        assert_int_equal(status, to.calls < n ? SHOAL_OK : SHOAL_SYSTEM);
        if (status == SHOAL_OK)
            break;
    }
    to.fail_at = 0;
    for (int64_t n = 0;; n++) {
        base_memory_fail_after(n);
        int status = show(&shown, &to, &config, result);
        base_memory_fail_after(-1);
        learn_shown_release(&shown);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
        assert_true(n < 2000);
    }
    shoal_result_free(&result);
    free_blobs(&to);
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
    data_tar_member member;
    assert_true(data_tar_read(&member, tar.data));
    assert_string_equal(member.name, "a.jpg");
    assert_int_equal(member.size, 3);
    for (int i = 0; i < DATA_TAR_BLOCK;
         i++) { /* whatever is another byte, the checksum notices, but for its last one */
        tar.data[i] ^= 0x41;
        assert_int_equal(data_tar_read(&member, tar.data), i == 155);
        tar.data[i] ^= 0x41;
    }
    assert_false(data_tar_read(&member, tar.data + 2 * DATA_TAR_BLOCK));
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
        cmocka_unit_test_setup_teardown(test_resume_of_what_is_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_runs_at_one_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_manifests, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken_images, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rows_that_are_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_options, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forged_rounds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forged_records, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bounded_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sheets, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sheets_of_damaged_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sheets_that_fail, setup, teardown),
        cmocka_unit_test(test_bytes_of_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
