/* Blobs in folders and stores as maps see them: what is put is got, names that lead elsewhere are refused, and so is
 * what is not a plain file or too large. */
#include "job_support.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include <shoal/engine.h>

#include "engine/blobs.h"
#include "engine/blobs_copy.h"

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
    char part[3] = "";
    EXPECT_OK(blobs->get_part(blobs, "a", 2, part, 3));
    assert_memory_equal(part, "con", 3);
    EXPECT_FAIL(blobs->get_part(blobs, "a", 4, part, 3), SHOAL_INVALID, "a has no 3 bytes from byte 4 on");
    EXPECT_FAIL(blobs->get_part(blobs, "none", 0, part, 3), SHOAL_ABSENT, "there is no");
    EXPECT_FAIL(blobs->get_part(blobs, "../a", 0, part, 3), SHOAL_INVALID, "can't be the name of a blob");
    EXPECT_FAIL(blobs->get(blobs, "none", 100, &bytes, &size), SHOAL_ABSENT, "there is no");
    json_t *names = NULL;
    EXPECT_OK(engine_blobs_names(&names, blobs));
    assert_non_null(json_object_get(names, "a"));
    assert_non_null(json_object_get(names, "kept"));
    assert_null(json_object_get(names, "none"));
    json_decref(names);
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

/* A folder that is gone as a whole is not one without a blob. */
static void test_folder_that_is_gone(void **state)
{
    const shoal_blobs *blobs = NULL;
    void *bytes = NULL;
    size_t size = 0;
    (void)state;
    EXPECT_OK(shoal_blobs_open(&blobs, at("gone"), true, 20));
    EXPECT_FAIL(blobs->get(blobs, "a", 9, &bytes, &size), SHOAL_ABSENT, "there is no such file");
    assert_int_equal(rmdir(at("gone")), 0);
    EXPECT_FAIL(blobs->get(blobs, "a", 9, &bytes, &size), SHOAL_SYSTEM, "can't read the folder");
    shoal_blobs_close(&blobs);
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

/* ---- copying ----------------------------------------------------------------------------------------------------- */

enum { COPY_MEMORY = 1500, COPY_LARGE = 5000 };

/* Blobs whose bytes are all the last letter of their name.  What their readers hold is counted. */
typedef struct made_blobs {
    shoal_blobs table;
    int64_t size;    /* of each; 0: as the caller expects */
    int fail_at;     /* the part that fails, counted from 1; 0: none */
    int parts, puts; /* that were asked for, and put */
    int64_t held, most;
} made_blobs;

static _Thread_local int64_t held_here;

static made_blobs *made_of(const shoal_blobs *table)
{
    return (made_blobs *)(uintptr_t)table;
}

static int get_made(const shoal_blobs *table, const char *name, int64_t most, void **bytes, size_t *size)
{
    made_blobs *self = made_of(table);
    const int64_t held = __atomic_add_fetch(&self->held, most, __ATOMIC_SEQ_CST);
    held_here = most;
    if (held > COPY_MEMORY && held != most)
        __atomic_store_n(&self->most, held, __ATOMIC_SEQ_CST); /* more than there is room for, and not alone */
    for (int i = 0; i < 100; i++)
        sched_yield();
    *size = (size_t)(self->size ? self->size : most);
    *bytes = malloc(*size + 1);
    memset(*bytes, name[strlen(name) - 1], *size);
    return SHOAL_OK;
}

static void release_made(const shoal_blobs *table, void **bytes)
{
    __atomic_sub_fetch(&made_of(table)->held, held_here, __ATOMIC_SEQ_CST);
    free(*bytes);
    *bytes = NULL;
}

static int put_made(const shoal_blobs *table, const char *name, const void *bytes, size_t size)
{
    __atomic_add_fetch(&made_of(table)->puts, 1, __ATOMIC_SEQ_CST);
    return size > 0 && ((const char *)bytes)[size - 1] == name[strlen(name) - 1] ? SHOAL_OK : SHOAL_BROKEN;
}

static int has_made(const shoal_blobs *table, const char *name, int64_t *size)
{
    (void)name;
    *size = made_of(table)->size;
    return SHOAL_OK;
}

static int get_part_made(const shoal_blobs *table, const char *name, int64_t first, void *into, size_t size)
{
    made_blobs *self = made_of(table);
    if (++self->parts == self->fail_at || size > ENGINE_COPY_PIECE || first + (int64_t)size > self->size)
        return shoal_fail(SHOAL_SYSTEM, "part %d of %s fails", self->parts, name);
    memset(into, name[strlen(name) - 1], size);
    return SHOAL_OK;
}

/* Into a store: never more bytes at the same time than allowed, unless it is one blob alone. */
static void test_copying_in_bounded_memory(void **state)
{
    enum { BLOBS = 60 };
    made_blobs from = {.table = {.get = get_made, .release = release_made}}, to = {.table = {.put = put_made}};
    engine_blob list[BLOBS];
    char names[BLOBS][8];
    const engine_copy copy = {
        .from = &from.table, .to = &to.table, .blob = list, .count = BLOBS, .threads = 8, .memory = COPY_MEMORY};
    (void)state;
    for (int i = 0; i < BLOBS; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        list[i] = (engine_blob){names[i], i % 20 == 7 ? COPY_LARGE : 100 * (1 + i % 10)};
    }
    EXPECT_OK(engine_blobs_copy(&copy));
    assert_int_equal(to.puts, BLOBS);
    assert_int_equal(from.most, 0);
    assert_int_equal(from.held, 0);
    from.size = 50; /* of each, which is not what was listed */
    EXPECT_FAIL(engine_blobs_copy(&copy), SHOAL_INVALID, "has another size than when it was listed");
}

/* Into a folder: piece by piece, and nothing is left of one that fails. */
static void test_copying_in_pieces(void **state)
{
    const int64_t size = 2 * (int64_t)ENGINE_COPY_PIECE + 5;
    made_blobs from = {.table = {.has = has_made, .get_part = get_part_made}, .size = size};
    engine_blob one = {(char[]){"below/x"}, size};
    engine_copy copy = {.blob = &one, .count = 1, .threads = 8, .memory = COPY_MEMORY, .from = &from.table};
    struct stat about;
    (void)state;
    EXPECT_OK(shoal_blobs_open(&copy.to, at("pieces"), true, 20));
    from.fail_at = 3;
    EXPECT_FAIL(engine_blobs_copy(&copy), SHOAL_SYSTEM, "part 3 of below/x fails");
    assert_int_equal(rmdir(at("pieces/below")), 0);
    from.fail_at = from.parts = 0;
    EXPECT_OK(engine_blobs_copy(&copy));
    assert_int_equal(from.parts, 3);
    assert_int_equal(stat(at("pieces/below/x"), &about), 0);
    assert_int_equal(about.st_size, size);
    char last[2];
    EXPECT_OK(copy.to->get_part(copy.to, "below/x", size - 2, last, 2));
    assert_memory_equal(last, "xx", 2);
    one.size = from.size = 0;
    EXPECT_OK(engine_blobs_copy(&copy));
    expect_text(copy.to, "below/x", "");
    one.size = 1;
    EXPECT_FAIL(engine_blobs_copy(&copy), SHOAL_INVALID, "has another size than when it was listed");
    shoal_blobs_close(&copy.to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_folder, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(test_folder_that_is_gone, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(test_store, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_only_read, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(test_places_that_can_not_be, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(test_of_a_job, job_setup, job_teardown),
        cmocka_unit_test(test_copying_in_bounded_memory),
        cmocka_unit_test_setup_teardown(test_copying_in_pieces, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(test_memory, job_setup, job_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
