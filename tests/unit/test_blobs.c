/* Blobs in folders and stores as maps see them: what is put is got, names that lead elsewhere are refused, and so is
 * what is not a plain file or too large. */
#include "job_support.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <shoal/engine.h>

#include "engine/blobs.h"

static void put_text(const shoal_blobs *blobs, const char *name, const char *text)
{
    EXPECT_OK(blobs->put(blobs, name, text, strlen(text)));
}

static void expect_text(const shoal_blobs *blobs, const char *name, const char *text)
{
    void *bytes = NULL;
    size_t size = 0;
    int64_t whole = -1;
    EXPECT_OK(blobs->get(blobs, name, 100, &bytes, &size));
    assert_int_equal(size, strlen(text));
    assert_memory_equal(bytes, text, size);
    blobs->release(blobs, &bytes);
    assert_null(bytes);
    EXPECT_OK(blobs->has(blobs, name, &whole));
    assert_int_equal(whole, strlen(text));
}

/* What is the same wherever they are. */
static void try_blobs(const char *place)
{
    static const char *const wrong[] = {"", "/", "a/", "/a", "..", "a/../b", "a//b", ".", "a\nb"};
    const shoal_blobs *blobs = NULL;
    void *bytes = NULL;
    size_t size = 0;
    int64_t whole = 0;
    EXPECT_OK(shoal_blobs_open(&blobs, place, true, 20));
    put_text(blobs, "a", "first");
    put_text(blobs, "b/c/d", "");
    put_text(blobs, "a", "second");
    put_text(blobs, "kept", "as it is");
    expect_text(blobs, "a", "second");
    expect_text(blobs, "b/c/d", "");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT_FAIL(blobs->put(blobs, wrong[i], "x", 1), SHOAL_INVALID, "can't be the name of a blob");
        EXPECT_FAIL(blobs->get(blobs, wrong[i], 100, &bytes, &size), SHOAL_INVALID, "can't be the name of a blob");
        EXPECT_FAIL(blobs->has(blobs, wrong[i], &whole), SHOAL_INVALID, "can't be the name of a blob");
    }
    EXPECT_FAIL(blobs->get(blobs, "none", 100, &bytes, &size), SHOAL_ABSENT, "there is no");
    EXPECT_FAIL(blobs->has(blobs, "none", &whole), SHOAL_ABSENT, "there is no");
    EXPECT_FAIL(blobs->get(blobs, "a", 5, &bytes, &size), SHOAL_MEMORY, "a has 6 bytes, more than 5");
    assert_null(bytes);
    EXPECT_OK(blobs->remove(blobs, "a"));
    EXPECT_OK(blobs->remove(blobs, "a"));
    EXPECT_FAIL(blobs->has(blobs, "a", &whole), SHOAL_ABSENT, "there is no");
    EXPECT_FAIL(blobs->remove(blobs, "../a"), SHOAL_INVALID, "can't be the name of a blob");
    shoal_blobs_close(&blobs);
    shoal_blobs_close(&blobs); /* NULL */
}

static void test_folder(void **state)
{
    struct stat about;
    (void)state;
    try_blobs(at("new/folder"));
    assert_int_equal(stat(at("new/folder/b/c/d"), &about), 0); /* as people find it */
    assert_int_equal(about.st_size, 0);
}

static void test_store(void **state)
{
    char url[600];
    (void)state;
    snprintf(url, sizeof url, "dir:%s", at("store"));
    try_blobs(url);
    shoal_store *store = open_store(url);
    shoal_blob blob = {0};
    EXPECT_OK(shoal_store_get(store, "kept", &blob, soon()));
    shoal_blob_release(&blob);
    shoal_store_close(&store);
    strcat(url, "/below/it");
    try_blobs(url);
}

static void test_what_is_only_read(void **state)
{
    const shoal_blobs *blobs = NULL;
    void *bytes = NULL;
    size_t size = 0;
    int64_t whole = 0;
    (void)state;
    EXPECT_OK(shoal_blobs_open(&blobs, at("own"), true, 20));
    put_text(blobs, "a", "text");
    shoal_blobs_close(&blobs);
    EXPECT_OK(shoal_blobs_open(&blobs, at("own"), false, 20));
    expect_text(blobs, "a", "text");
    EXPECT_FAIL(blobs->put(blobs, "a", "x", 1), SHOAL_DENIED, "can only be read");
    EXPECT_FAIL(blobs->remove(blobs, "a"), SHOAL_DENIED, "can only be read");
    assert_int_equal(mkfifo(at("own/pipe"), 0600), 0);
    assert_int_equal(symlink("a", at("own/link")), 0);
    expect_text(blobs, "link", "text");
    EXPECT_FAIL(blobs->get(blobs, "pipe", 100, &bytes, &size), SHOAL_INVALID, "pipe is not a plain file");
    EXPECT_FAIL(blobs->has(blobs, "pipe", &whole), SHOAL_INVALID, "pipe is not a plain file");
    EXPECT_FAIL(blobs->get(blobs, "a/b", 100, &bytes, &size), SHOAL_ABSENT, "there is no such file");
    shoal_blobs_close(&blobs);
}

static void test_places_that_can_not_be(void **state)
{
    const shoal_blobs *blobs = NULL;
    (void)state;
    int file = open(at("file"), O_CREAT | O_WRONLY, 0600);
    close(file);
    EXPECT_FAIL(shoal_blobs_open(&blobs, at("file"), true, 20), SHOAL_SYSTEM, "can't make the folder");
    EXPECT_FAIL(shoal_blobs_open(&blobs, "nothing://x", true, 20), SHOAL_USAGE, "nothing");
    assert_null(blobs);
}

/* Those of a job: names that no store could keep are hashed, and what is not there yet is waited for. */
static void test_of_a_job(void **state)
{
    char url[600];
    engine_blobs *blobs = NULL;
    (void)state;
    snprintf(url, sizeof url, "dir:%s", at("jobs"));
    shoal_store *store = open_store(url);
    EXPECT_OK(engine_blobs_in_store(
        &blobs, &(engine_blobs_in){.store = store, .prefix = "jobs/toy-1/from/", .patience = 20, .hashed = true}));
    EXPECT_OK(shoal_job_put_blob(store, "toy-1", "odd name. /x.", "text", 4, soon()));
    expect_text(engine_blobs_table(blobs), "odd name. /x.", "text");
    engine_blobs_free(&blobs);
    const shoal_blobs *made = NULL;
    EXPECT_OK(shoal_store_put(store, "jobs/toy-1/to/a/b", "made", 4, NULL, NULL, soon()));
    EXPECT_OK(shoal_job_blobs(&made, store, "toy-1", 20));
    expect_text(made, "a/b", "made");
    shoal_blobs_close(&made);
    EXPECT_FAIL(shoal_job_blobs(&made, store, "../x", 20), SHOAL_USAGE, "");
    EXPECT_FAIL(shoal_job_put_blob(store, "../x", "a", "", 0, soon()), SHOAL_USAGE, "");
    shoal_store_close(&store);
}

/* Every failing allocation is reported, and leaves nothing behind. */
static void test_memory(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 200; n++) {
        const shoal_blobs *blobs = NULL;
        void *bytes = NULL;
        size_t size = 0;
        base_memory_fail_after(n);
        int status = shoal_blobs_open(&blobs, at("memory"), true, 20);
        if (status == SHOAL_OK)
            status = blobs->put(blobs, "x/y", "abc", 3);
        if (status == SHOAL_OK)
            status = blobs->get(blobs, "x/y", 10, &bytes, &size);
        base_memory_fail_after(-1);
        if (bytes)
            blobs->release(blobs, &bytes);
        shoal_blobs_close(&blobs);
        if (status == SHOAL_OK)
            return;
        assert_int_equal(status, SHOAL_MEMORY);
    }
    fail_msg("it never had enough memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_folder, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(test_store, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_only_read, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(test_places_that_can_not_be, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(test_of_a_job, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(test_memory, job_setup, job_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
