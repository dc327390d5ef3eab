/* src/run/speed: batches of pixels beside what each image is by itself, from files, TFRecords and a store; what is
 * broken; and what times say that were made up.  Labels: threads */
#include "data_support.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include <jpeglib.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/page_cache.h"
#include "data/format/example.h"
#include "data/format/tfrecord.h"
#include "data/image/image_prepare.h"
#include "run/speed/speed.h"
#include "run/speed/speed_reader.h"

enum { SIDE = 16, PIXELS = SIDE * SIDE * 3, IMAGES = 7 };

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static unsigned char *jpeg[IMAGES];
static unsigned long jpeg_size[IMAGES];
static unsigned char pixels[IMAGES][PIXELS];

/* Image i has a colour of its own and its own size. */
static void make_jpeg(int i)
{
    struct jpeg_compress_struct to;
    struct jpeg_error_mgr errors;
    unsigned char row[3 * 64], *rows[1] = {row};
    const data_image_recipe recipe = {.height = SIDE, .width = SIDE, .encode = DATA_IMAGE_RAW, .quality = 95};
    data_image_maker *maker = NULL;
    data_image_item item;
    to.err = jpeg_std_error(&errors);
    jpeg_create_compress(&to);
    jpeg_mem_dest(&to, &jpeg[i], &jpeg_size[i]);
    to.image_width = (JDIMENSION)(SIDE + 2 * i);
    to.image_height = (JDIMENSION)(SIDE + i);
    to.input_components = 3;
    to.in_color_space = JCS_RGB;
    jpeg_set_defaults(&to);
    jpeg_start_compress(&to, TRUE);
    while (to.next_scanline < to.image_height) {
        for (int x = 0; x < 3 * (int)to.image_width; x++)
            row[x] = (unsigned char)(i * 30 + x * (x % 3) + (int)to.next_scanline);
        jpeg_write_scanlines(&to, rows, 1);
    }
    jpeg_finish_compress(&to);
    jpeg_destroy_compress(&to);
    assert_int_equal(data_image_maker_new(&maker), SHOAL_OK);
    assert_int_equal(data_image_prepare(&item, maker, &recipe, jpeg[i], jpeg_size[i], "x"), SHOAL_OK);
    memcpy(pixels[i], item.bytes, PIXELS);
    data_image_maker_free(&maker);
}

static void write_bytes(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(file_path(name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void write_photo(int i)
{
    char name[32];
    snprintf(name, sizeof name, "%d.jpg", i);
    write_bytes(name, jpeg[i], jpeg_size[i]);
}

static void add_record(base_writer *out, const void *image, size_t size)
{
    base_writer example = {0};
    data_example_write(&example,
                       &(data_example){.image = image, .image_size = size, .label = -1, .height = SIDE, .width = SIDE});
    data_tfrecord_write(out, example.data, example.size);
    base_writer_release(&example);
}

/* Images `from` and up to `past`. */
static void write_shard(const char *name, int from, int past)
{
    base_writer out = {0};
    for (int i = from; i < past; i++)
        add_record(&out, jpeg[i], jpeg_size[i]);
    write_bytes(name, out.data, out.size);
    base_writer_release(&out);
}

static int start(void **state)
{
    if (folder_setup(state) != 0)
        return -1;
    for (int i = 0; i < IMAGES; i++) {
        jpeg[i] = NULL;
        make_jpeg(i);
    }
    return 0;
}

static int stop(void **state)
{
    for (int i = 0; i < IMAGES; i++)
        free(jpeg[i]);
    return folder_teardown(state);
}

/* ---- readers ----------------------------------------------------------------------------------------------------- */

typedef struct reading {
    speed_sources sources;
    base_pool *pool;
    speed_reader *reader;
    unsigned char *batch;
} reading;

enum { BATCH_MOST = 64 };

static int open_reading(reading *out, const char *word, int threads, bool skip_broken)
{
    const speed_reading how = {SIDE, SIDE, skip_broken};
    *out = (reading){.batch = malloc(BATCH_MOST * PIXELS)};
    int status = speed_sources_open(&out->sources, &word, 1);
    if (status == SHOAL_OK)
        status = base_pool_new(&out->pool, threads);
    return status == SHOAL_OK ? speed_reader_new(&out->reader, &out->sources.source[0], &how, out->pool) : status;
}

static void close_reading(reading *of)
{
    speed_reader_free(&of->reader);
    base_pool_free(&of->pool);
    speed_sources_release(&of->sources);
    free(of->batch);
}

/* Which image the batch has at a place; -1 for none of them. */
static int image_at(const reading *of, int place)
{
    for (int i = 0; i < IMAGES; i++)
        if (memcmp(of->batch + (size_t)place * PIXELS, pixels[i], PIXELS) == 0)
            return i;
    return -1;
}

/* Reads batches of `size` and checks that images come in order, from `first` on, among `count` of them. */
static void expect_round(reading *of, uint64_t begin, int first, int count, int size)
{
    int next = first;
    assert_int_equal(speed_reader_start(of->reader, begin), SHOAL_OK);
    for (int batch = 0; batch < 4; batch++) {
        assert_int_equal(speed_reader_batch(of->reader, of->batch, size), SHOAL_OK);
        for (int i = 0; i < size; i++, next = (next + 1) % count)
            assert_int_equal(image_at(of, i), next);
    }
    assert_true(speed_reader_bytes(of->reader) > 0);
    assert_int_equal(speed_reader_skipped(of->reader), 0);
    speed_reader_stop(of->reader);
}

/* From any image on, batches larger than the source too, by one thread and by three. */
static void photos_come_in_order_and_round_again(void **state)
{
    reading of;
    (void)state;
    for (int i = 0; i < IMAGES; i++)
        write_photo(i);
    for (int threads = 1; threads <= 3; threads += 2) {
        assert_int_equal(open_reading(&of, test_folder, threads, false), SHOAL_OK);
        assert_int_equal(of.sources.source[0].kind, SPEED_IMAGES);
        for (int first = 0; first < IMAGES; first++)
            for (int size = 1; size <= 20; size += 6)
                expect_round(&of, (uint64_t)(first + 5 * IMAGES), first, IMAGES, size);
        close_reading(&of);
    }
}

/* Records are cut by blocks and shards anywhere; one of the shards is empty. */
static void records_come_in_order_and_round_again(void **state)
{
    static const int firsts[] = {0, 3, 3}; /* the second one is empty */
    reading of;
    (void)state;
    write_shard("a.tfrec", 0, 3);
    write_bytes("b.tfrec", "", 0);
    write_shard("c.tfrec", 3, IMAGES);
    write_bytes("a.idx", "0 17\n", 5);
    for (int threads = 1; threads <= 3; threads += 2) {
        assert_int_equal(open_reading(&of, test_folder, threads, false), SHOAL_OK);
        assert_int_equal(of.sources.source[0].kind, SPEED_TFRECORD);
        for (int shard = 0; shard < 3; shard++)
            for (int size = 1; size <= 20; size += 6)
                expect_round(&of, (uint64_t)(shard + 3 * 4), firsts[shard], IMAGES, size);
        close_reading(&of);
    }
}

static void records_longer_than_a_block(void **state)
{
    enum { LONG = 700000 };
    unsigned char *raw = calloc(1, LONG);
    base_writer out = {0};
    reading of;
    (void)state;
    memcpy(raw, jpeg[2], jpeg_size[2]); /* what follows the end of a JPEG is left alone */
    for (int i = 0; i < 3; i++)
        add_record(&out, i == 1 ? raw : jpeg[i], i == 1 ? LONG : jpeg_size[i]);
    add_record(&out, pixels[5], PIXELS); /* not encoded */
    write_bytes("long.tfrec", out.data, out.size);
    assert_int_equal(open_reading(&of, file_path("long.tfrec"), 1, false), SHOAL_OK);
    assert_int_equal(speed_reader_start(of.reader, 0), SHOAL_OK);
    assert_int_equal(speed_reader_batch(of.reader, of.batch, 4), SHOAL_OK);
    assert_int_equal(image_at(&of, 0), 0);
    assert_int_equal(image_at(&of, 1), 2);
    assert_int_equal(image_at(&of, 2), 2);
    assert_int_equal(image_at(&of, 3), 5);
    assert_int_equal(speed_reader_bytes(of.reader), out.size);
    close_reading(&of);
    base_writer_release(&out);
    free(raw);
}

static void a_store_gives_the_same(void **state)
{
    char url[128];
    shoal_store *store = NULL;
    reading of;
    base_writer shard = {0};
    (void)state;
    snprintf(url, sizeof url, "dir:%s/st", test_folder);
    assert_int_equal(shoal_store_open(&store, url, &(shoal_store_options){.create = true}, shoal_after(60)), SHOAL_OK);
    for (int i = 0; i < IMAGES; i++) {
        char key[32];
        snprintf(key, sizeof key, "photos/%d.jpg", i);
        assert_int_equal(shoal_store_put(store, key, jpeg[i], jpeg_size[i], NULL, NULL, shoal_after(60)), SHOAL_OK);
        add_record(&shard, jpeg[i], jpeg_size[i]);
    }
    assert_int_equal(shoal_store_put(store, "packed/x.tfrec", shard.data, shard.size, NULL, NULL, shoal_after(60)),
                     SHOAL_OK);
    assert_int_equal(shoal_store_put(store, "packed/manifest.json", "{}", 2, NULL, NULL, shoal_after(60)), SHOAL_OK);
    for (int what = 0; what < 3; what++) {
        snprintf(url, sizeof url, "dir:%s/st/%s", test_folder,
                 (const char *const[]){"photos", "packed/", "packed/x.tfrec"}[what]);
        assert_int_equal(open_reading(&of, url, 2, false), SHOAL_OK);
        expect_round(&of, 0, 0, IMAGES, 5);
        close_reading(&of);
    }
    snprintf(url, sizeof url, "dir:%s/st", test_folder);
    assert_int_equal(open_reading(&of, url, 1, false), SHOAL_USAGE); /* both kinds */
    close_reading(&of);
    snprintf(url, sizeof url, "dir:%s/st/absent", test_folder);
    assert_int_equal(open_reading(&of, url, 1, false), SHOAL_INVALID);
    close_reading(&of);
    base_writer_release(&shard);
    for (const char *const *key = (const char *const[]){"packed/x.tfrec", "packed/manifest.json", NULL}; *key; key++)
        assert_int_equal(shoal_store_remove(store, *key, shoal_after(60)), SHOAL_OK);
    shoal_store_close(&store);
    snprintf(url, sizeof url, "rm -r '%s/st'", test_folder);
    assert_int_equal(system(url), 0);
}

/* ---- what is broken ---------------------------------------------------------------------------------------------- */

static void expect_failure(const char *word, const char *says)
{
    reading of;
    int status = open_reading(&of, word, 1, false);
    if (status == SHOAL_OK)
        status = speed_reader_start(of.reader, 0);
    if (status == SHOAL_OK)
        status = speed_reader_batch(of.reader, of.batch, IMAGES);
    assert_int_equal(status, SHOAL_INVALID);
    if (!strstr(shoal_error(), says))
        fail_msg("%s: not %s", shoal_error(), says);
    close_reading(&of);
}

static void broken_records_are_named_or_passed_over(void **state)
{
    base_writer out = {0};
    reading of;
    char says[160];
    (void)state;
    for (int i = 0; i < IMAGES; i++)
        add_record(&out, jpeg[i], jpeg_size[i]);
    unsigned char *bytes = out.data;
    data_tfrecord third = {0};
    for (int i = 0; i < 3; i++)
        assert_int_equal(data_tfrecord_next(&third, bytes, out.size), DATA_TFRECORD_ONE);
    bytes[third.offset + 40] ^= 1;
    write_bytes("a.tfrec", bytes, out.size);
    snprintf(says, sizeof says, "a.tfrec: record 3, byte %zu: it is damaged", third.offset);
    expect_failure(test_folder, says);
    assert_int_equal(open_reading(&of, test_folder, 2, true), SHOAL_OK);
    assert_int_equal(speed_reader_start(of.reader, 0), SHOAL_OK);
    assert_int_equal(speed_reader_batch(of.reader, of.batch, 9), SHOAL_OK);
    for (int i = 0; i < 9; i++)
        assert_int_equal(image_at(&of, i), ((const int[]){0, 1, 3, 4, 5, 6, 0, 1, 3}[i]));
    assert_int_equal(speed_reader_skipped(of.reader), 2);
    assert_non_null(strstr(speed_reader_broken(of.reader), says));
    close_reading(&of);
    bytes[third.offset] ^= 1; /* its length: the rest of the shard is lost */
    write_bytes("a.tfrec", bytes, out.size);
    expect_failure(test_folder, "its length has another checksum");
    assert_int_equal(open_reading(&of, test_folder, 1, true), SHOAL_OK);
    assert_int_equal(speed_reader_start(of.reader, 0), SHOAL_OK);
    assert_int_equal(speed_reader_batch(of.reader, of.batch, 5), SHOAL_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(image_at(&of, i), i % 2);
    assert_int_equal(speed_reader_skipped(of.reader), 2);
    close_reading(&of);
    base_writer_release(&out);
}

/* A shard that ends anywhere. */
static void shards_that_are_cut_off(void **state)
{
    base_writer out = {0};
    (void)state;
    add_record(&out, jpeg[0], jpeg_size[0]);
    const size_t one = out.size;
    add_record(&out, jpeg[1], jpeg_size[1]);
    for (size_t cut = one + 1; cut < out.size; cut += cut < one + 20 ? 1 : 97) {
        write_bytes("a.tfrec", out.data, cut);
        expect_failure(test_folder, "the file is cut off");
    }
    base_writer_release(&out);
}

/* Bytes that were changed anywhere end in pixels or in a sentence, soon. */
static void shards_that_are_damaged_anywhere(void **state)
{
    base_writer out = {0};
    uint32_t random = 7;
    int read = 0, refused = 0;
    (void)state;
    for (int i = 0; i < 3; i++)
        add_record(&out, jpeg[i], jpeg_size[i]);
    unsigned char *bytes = out.data;
    for (int turn = 0; turn < 300; turn++) {
        size_t at[3];
        unsigned char old[3];
        reading of;
        for (int i = 0; i < 3; i++) {
            random = random * 1664525 + 1013904223;
            at[i] = (turn % 3 == 0 ? 0 : random >> 8) % (turn % 3 == 1 ? 13 : out.size);
            old[i] = bytes[at[i]];
            bytes[at[i]] = (unsigned char)(random >> 24);
        }
        write_bytes("a.tfrec", bytes, out.size);
        assert_int_equal(open_reading(&of, test_folder, 1, turn % 2), SHOAL_OK);
        assert_int_equal(speed_reader_start(of.reader, 0), SHOAL_OK);
        int status = speed_reader_batch(of.reader, of.batch, 5);
        assert_true(status == SHOAL_OK || status == SHOAL_INVALID);
        read += status == SHOAL_OK;
        refused += status == SHOAL_INVALID;
        close_reading(&of);
        for (int i = 2; i >= 0; i--)
            bytes[at[i]] = old[i];
    }
    assert_true(read > 20 && refused > 20);
    base_writer_release(&out);
}

static void broken_photos_are_named_or_passed_over(void **state)
{
    reading of;
    (void)state;
    for (int i = 0; i < IMAGES; i++)
        write_photo(i);
    write_bytes("3.jpg", jpeg[3], jpeg_size[3] / 2);
    write_bytes("6.jpg", "", 0);
    expect_failure(test_folder, "3.jpg: a broken JPEG image: the file is cut off");
    assert_int_equal(open_reading(&of, test_folder, 1, true), SHOAL_OK);
    assert_int_equal(speed_reader_start(of.reader, 0), SHOAL_OK);
    assert_int_equal(speed_reader_batch(of.reader, of.batch, 8), SHOAL_OK);
    for (int i = 0; i < 8; i++)
        assert_int_equal(image_at(&of, i), ((const int[]){0, 1, 2, 4, 5, 0, 1, 2}[i]));
    close_reading(&of);
    for (int i = 0; i < IMAGES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.jpg", i);
        write_bytes(name, "no image", 8);
    }
    assert_int_equal(open_reading(&of, test_folder, 1, true), SHOAL_OK); /* and does not look for one forever */
    assert_int_equal(speed_reader_start(of.reader, 3), SHOAL_OK);
    assert_int_equal(speed_reader_batch(of.reader, of.batch, 2), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "has no image that can be read: "));
    close_reading(&of);
}

static void sources_that_are_none(void **state)
{
    reading of;
    (void)state;
    assert_int_equal(open_reading(&of, test_folder, 1, false), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "nothing to read"));
    close_reading(&of);
    assert_int_equal(open_reading(&of, file_path("absent"), 1, false), SHOAL_SYSTEM);
    close_reading(&of);
    write_bytes("text", "hello", 5);
    assert_int_equal(open_reading(&of, file_path("text"), 1, false), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "is neither an image nor TFRecords"));
    close_reading(&of);
    write_bytes("x.tfrec.gz", "\x1f\x8b\x08\0\0\0\0\0\0\0\0\0", 12);
    assert_int_equal(open_reading(&of, file_path("x.tfrec.gz"), 1, false), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "is compressed (gzip)"));
    close_reading(&of);
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

/* Runs that take what the fit says are explained by it. */
static void times_are_explained(void **state)
{
    enum { RUNS = 4 * 3 * 2 };
    speed_run runs[RUNS];
    speed_outcome outcome = {.sources = 1, .passes = 1, .run = runs, .runs = RUNS};
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        runs[i] = (speed_run){.batch_size = 5 << i % 4, .batches = 3 + 4 * (i / 4 % 3), .repetition = i / 12 + 1};
        runs[i].images = runs[i].batch_size * runs[i].batches;
        runs[i].seconds = 0.02 + 0.003 * (double)runs[i].batches + 0.0005 * (double)runs[i].images;
        runs[i].processor = 0.0004 * (double)runs[i].images;
    }
    assert_int_equal(speed_analyse(&outcome), SHOAL_OK);
    const speed_found *found = &outcome.source[0].found;
    const double expected[] = {0.02, 0.003, 0.0005};
    assert_true(found->fit.known && found->fit.r2 > 1 - 1e-12);
    for (int i = 0; i < 3; i++)
        assert_true(fabs(found->fit.of[i].value - expected[i]) < 1e-12);
    assert_true(fabs(found->processor - 0.0004) < 1e-12);
    assert_true(fabs(found->work.of[2].value - 0.0004) < 1e-12 && fabs(found->work.of[1].value) < 1e-12);
    for (int i = 0; i < SPEED_REPETITION; i++) {
        assert_true(fabs(found->factor[i].correlation.value - found->factor[i].explained) < 1e-9);
        assert_true(found->factor[i].correlation.value > 0.1 && found->factor[i].line.of[1].value > 0);
    }
    assert_true(fabs(found->factor[SPEED_REPETITION].correlation.value) < 1e-9);
    for (int i = 0; i < RUNS; i++)
        runs[i].batches = 3;
    assert_int_equal(speed_analyse(&outcome), SHOAL_OK); /* one number of batches tells nothing about them */
    assert_false(found->fit.known);
    assert_true(isnan(found->factor[SPEED_BATCHES].correlation.value));
    assert_true(isnan(found->factor[SPEED_BATCH_SIZE].explained));
}

/* Each run once in every pass, in an order that the seed says. */
static void runs_are_those_that_were_asked_for(void **state)
{
    const char *word = test_folder;
    const speed_request request = {.words = &word,
                                   .count = 1,
                                   .batch_sizes = {2, {1, 3}},
                                   .batches = {2, {1, 2}},
                                   .repeat = 2,
                                   .height = SIDE,
                                   .width = SIDE,
                                   .threads = 1,
                                   .seed = 5,
                                   .cold = true,
                                   .again = true};
    speed_outcome outcome[2] = {{0}};
    int64_t images = 0;
    (void)state;
    write_shard("a.tfrec", 0, 4);
    for (int i = 0; i < 2; i++)
        assert_int_equal(speed_measure(&outcome[i], &request, &(shoal_watcher){0}), SHOAL_OK);
    assert_int_equal(outcome[0].runs, 8 * SPEED_PASSES_MOST);
    for (int64_t i = 0; i < outcome[0].runs; i++) {
        const speed_run *run = &outcome[0].run[i], *same = &outcome[1].run[i];
        assert_true(run->batch_size == same->batch_size && run->batches == same->batches && run->start == same->start);
        assert_int_equal(run->pass, i / 8);
        assert_true(run->seconds > 0 && run->resident >= 0 && run->resident <= 1);
        images += run->images;
    }
    assert_int_equal(images, SPEED_PASSES_MOST * 2 * (1 + 2) * (1 + 3));
    speed_outcome_release(&outcome[0]);
    speed_outcome_release(&outcome[1]);
}

static void every_failing_allocation_is_reported(void **state)
{
    const char *word = test_folder;
    const speed_request request = {.words = &word,
                                   .count = 1,
                                   .batch_sizes = {1, {3}},
                                   .batches = {1, {2}},
                                   .repeat = 1,
                                   .height = SIDE,
                                   .width = SIDE,
                                   .threads = 1};
    int status = SHOAL_MEMORY;
    (void)state;
    write_shard("a.tfrec", 0, 4);
    for (int n = 0; n < 1000 && status != SHOAL_OK; n++) {
        speed_outcome outcome = {0};
        base_memory_fail_after(n);
        status = speed_measure(&outcome, &request, &(shoal_watcher){0});
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
        speed_outcome_release(&outcome);
    }
    assert_int_equal(status, SHOAL_OK);
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

static void pages_are_counted(void **state)
{
    enum { SIZE = 100001 };
    char *bytes = calloc(1, SIZE);
    base_page_cache there = {0}, left = {0};
    (void)state;
    write_bytes("big", bytes, SIZE);
    write_bytes("none", "", 0);
    assert_int_equal(base_page_cache_add(&there, file_path("big")), SHOAL_OK);
    assert_int_equal(base_page_cache_add(&there, file_path("none")), SHOAL_OK);
    assert_true(there.bytes == SIZE && !there.unknown);
    assert_int_equal(there.resident, SIZE); /* it was just written */
    assert_int_equal(base_page_cache_drop(file_path("big")), SHOAL_OK);
    assert_int_equal(base_page_cache_add(&left, file_path("big")), SHOAL_OK);
    assert_true(left.bytes == SIZE && left.resident <= SIZE); /* a file system in memory keeps it */
    assert_int_equal(base_page_cache_drop(file_path("absent")), SHOAL_SYSTEM);
    assert_int_equal(base_page_cache_add(&left, test_folder), SHOAL_USAGE);
    free(bytes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(photos_come_in_order_and_round_again),
        TEST(records_come_in_order_and_round_again),
        TEST(records_longer_than_a_block),
        TEST(a_store_gives_the_same),
        TEST(broken_records_are_named_or_passed_over),
        TEST(shards_that_are_cut_off),
        TEST(shards_that_are_damaged_anywhere),
        TEST(broken_photos_are_named_or_passed_over),
        TEST(sources_that_are_none),
        TEST(times_are_explained),
        TEST(runs_are_those_that_were_asked_for),
        TEST(every_failing_allocation_is_reported),
        TEST(pages_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
