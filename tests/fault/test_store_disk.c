/* The embedded store on a disk that fills up, and under a limit on the size of files: what fails says why, nothing is
 * half there, nothing else is harmed, and once there is room again it goes on.
 *
 * The small disk is mounted in a namespace of the test's own; where no process may do that, the test is skipped. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store/store_internal.h"
#include "folder_support.h"

enum { LARGE = 100000, SKIPPED = 77 };

static char folder[64], url[96];
static unsigned char bytes[LARGE];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/shoal-disk-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(url, sizeof url, "dir:%s/store", folder);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 24);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int64_t soon(void)
{
    return shoal_after(30);
}

static shoal_store *open_store(void)
{
    shoal_store *store = NULL;
    ENSURE(shoal_store_open(&store, url, &(shoal_store_options){.create = true}, soon()) == SHOAL_OK);
    return store;
}

static void ensure_blob(shoal_store *store, const char *key, size_t size)
{
    shoal_blob blob = {0};
    ENSURE(shoal_store_get(store, key, &blob, soon()) == SHOAL_OK);
    ENSURE(blob.size == size && memcmp(blob.data, bytes, size) == 0);
    shoal_blob_release(&blob);
}

static void ensure_sound(void)
{
    sqlite3 *db = open_intact_index(folder);
    sqlite3_close(db);
}

/* Puts until it fails, and returns how many there are; the failure must be about the disk and name the key. */
static int fill(shoal_store *store, const char *prefix, size_t size, const char *why)
{
    for (int i = 0; i < 100000; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s/%d", prefix, i);
        int status = shoal_store_put(store, key, bytes, size, SHOAL_NOTHING, NULL, soon());
        if (status == SHOAL_OK)
            continue;
        ENSURE(status == SHOAL_SYSTEM && strstr(shoal_error(), why) && strstr(shoal_error(), key));
        shoal_blob blob = {0};
        ENSURE(shoal_store_get(store, key, &blob, soon()) == SHOAL_ABSENT);
        return i;
    }
    ENSURE(!"the disk never filled up");
    return 0;
}

static void ensure_all(shoal_store *store, const char *prefix, int from, int count, size_t size)
{
    for (int i = from; i < count; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s/%d", prefix, i);
        ensure_blob(store, key, size);
    }
}

/* Somebody else takes the very last byte; returns the file that has it. */
static int use_up(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s/junk", folder);
    int junk = open(path, O_WRONLY | O_CREAT, 0600);
    while (write(junk, bytes, 4096) > 0 || write(junk, bytes, 1) > 0)
        ;
    ENSURE(errno == ENOSPC);
    return junk;
}

static void on_a_small_disk(void)
{
    static const char full[] = "No space left on device";
    shoal_message message = {0};
    int64_t count = -1;
    shoal_store *store = open_store();
    ENSURE(shoal_store_put(store, "keep", bytes, LARGE, NULL, NULL, soon()) == SHOAL_OK);
    int large = fill(store, "large", LARGE, full);
    ENSURE(large > 5 && count_in(folder, "store/temp") == 0 && count_in(folder, "store/bodies") == large + 1);
    int small = fill(store, "small", 2000, full);
    ENSURE(shoal_store_put(store, "keep", bytes, LARGE / 2, NULL, NULL, soon()) == SHOAL_SYSTEM); /* an old one stays */
    ENSURE(shoal_store_push(store, "q", bytes, LARGE, soon()) == SHOAL_SYSTEM && strstr(shoal_error(), full));
    ENSURE(shoal_store_count(store, "q", &count, soon()) == SHOAL_OK && count == 0);
    ENSURE(count_in(folder, "store/temp") == 0 && count_in(folder, "store/bodies") == large + 1);
    ensure_blob(store, "keep", LARGE);
    ensure_all(store, "large", 0, large, LARGE);
    ensure_all(store, "small", 0, small, 2000);
    shoal_store_close(&store);

    use_up();
    store = open_store(); /* a full disk does not keep anybody out, */
    ensure_all(store, "large", 0, large, LARGE);
    for (int i = 0; i < 3; i++) { /* nor from making room */
        char key[64];
        snprintf(key, sizeof key, "large/%d", i);
        ENSURE(shoal_store_remove(store, key, soon()) == SHOAL_OK);
    }
    ENSURE(shoal_store_put(store, "keep", bytes, LARGE / 2, NULL, NULL, soon()) == SHOAL_OK);
    ENSURE(shoal_store_push(store, "q", bytes, LARGE / 2, soon()) == SHOAL_OK);
    ENSURE(shoal_store_take(store, "q", 60, &message, soon()) == SHOAL_OK);
    ENSURE(shoal_store_finish(store, "q", &message, soon()) == SHOAL_OK);
    shoal_message_release(&message);
    ensure_all(store, "large", 3, large, LARGE);
    ensure_all(store, "small", 0, small, 2000);
    ENSURE(count_in(folder, "store/temp") == 0 && count_in(folder, "store/bodies") == large - 3 + 1);
    shoal_store_close(&store);
    ensure_sound();
}

/* A store can't be made where there is no room for it, and nothing of it is left in the way. */
static void on_a_full_disk(void)
{
    shoal_store *store = NULL;
    int junk = use_up();
    ENSURE(shoal_store_open(&store, url, &(shoal_store_options){.create = true}, soon()) == SHOAL_SYSTEM);
    ENSURE(strstr(shoal_error(), "No space left on device") && strstr(shoal_error(), folder));
    ENSURE(ftruncate(junk, 0) == 0);
    close(junk);
    store = open_store();
    ENSURE(shoal_store_put(store, "key", bytes, 100, NULL, NULL, soon()) == SHOAL_OK);
    shoal_store_close(&store);
}

/* A store that was closed while there was room can be opened when there is none, to make some. */
static void on_a_disk_that_others_filled(void)
{
    shoal_store *store = open_store();
    ENSURE(shoal_store_put(store, "large", bytes, LARGE, NULL, NULL, soon()) == SHOAL_OK);
    ENSURE(shoal_store_put(store, "keep", bytes, LARGE, NULL, NULL, soon()) == SHOAL_OK);
    shoal_store_close(&store);
    use_up();
    store = open_store();
    ensure_blob(store, "keep", LARGE);
    ENSURE(shoal_store_remove(store, "large", soon()) == SHOAL_OK);
    ENSURE(shoal_store_put(store, "small", bytes, 1000, NULL, NULL, soon()) == SHOAL_OK);
    ensure_blob(store, "keep", LARGE);
    shoal_store_close(&store);
    ensure_sound();
}

/* Mounts a disk of 2 MiB over the test's folder, for this process only. */
static bool mount_small_disk(void)
{
    return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", folder, "tmpfs", 0, "size=2m") == 0;
}

static void in_child(void (*work)(void), bool small_disk)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (small_disk && !mount_small_disk())
            _exit(SKIPPED);
        work();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED) {
        print_message("no process may mount a small disk here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_a_disk_that_fills_up(void **state)
{
    (void)state;
    in_child(on_a_small_disk, true);
}

static void test_a_disk_that_is_full(void **state)
{
    (void)state;
    in_child(on_a_full_disk, true);
}

static void test_a_disk_that_others_filled(void **state)
{
    (void)state;
    in_child(on_a_disk_that_others_filled, true);
}

/* Who ignores SIGXFSZ, as the program does, gets an error instead of being killed. */
static void under_a_limit(void)
{
    static const char limit[] = "File too large";
    const struct rlimit little = {.rlim_cur = 300000, .rlim_max = RLIM_INFINITY}, much = {RLIM_INFINITY, RLIM_INFINITY};
    unsigned char *body = calloc(1, 400000);
    signal(SIGXFSZ, SIG_IGN);
    shoal_store *store = open_store();
    ENSURE(setrlimit(RLIMIT_FSIZE, &little) == 0);
    ENSURE(shoal_store_put(store, "key", body, 400000, NULL, NULL, soon()) == SHOAL_SYSTEM);
    ENSURE(strstr(shoal_error(), limit) && count_in(folder, "store/temp") == 0);
    int small = fill(store, "small", 5000, "");
    ensure_all(store, "small", 0, small, 5000);
    /* Now there is room for a body, but not for its row. */
    ENSURE(shoal_store_put(store, "key", bytes, LARGE, NULL, NULL, soon()) == SHOAL_SYSTEM);
    ENSURE(strstr(shoal_error(), limit) && count_in(folder, "store/temp") == 0 &&
           count_in(folder, "store/bodies") == 0);
    ENSURE(shoal_store_push(store, "q", bytes, LARGE, soon()) == SHOAL_SYSTEM && count_in(folder, "store/bodies") == 0);
    ENSURE(setrlimit(RLIMIT_FSIZE, &much) == 0);
    ENSURE(shoal_store_put(store, "key", body, 400000, NULL, NULL, soon()) == SHOAL_OK);
    ensure_all(store, "small", 0, small, 5000);
    shoal_store_close(&store);
    ensure_sound();
    free(body);
}

static void test_a_limit_on_files(void **state)
{
    (void)state;
    in_child(under_a_limit, false);
}

/* ---- a disk that finds out late ---------------------------------------------------------------------------------- */

static bool log_is_lost, marker_is_safe;

static bool ends_with(int descriptor, const char *name)
{
    char link[64], path[256] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    return length > (ssize_t)strlen(name) && strcmp(path + length - strlen(name), name) == 0;
}

/* In place of the system's, for SQLite too: a disk that has taken the log's bytes and then has no room for them. */
__attribute__((visibility("default"))) int fdatasync(int descriptor)
{
    if (log_is_lost && ends_with(descriptor, "-wal"))
        return errno = ENOSPC, -1;
    return (int)syscall(SYS_fdatasync, descriptor);
}

int fsync(int descriptor)
{
    marker_is_safe |= ends_with(descriptor, "/shoal-store.new");
    return (int)syscall(SYS_fsync, descriptor);
}

static void test_a_marker_is_on_the_disk_before_it_counts(void **state)
{
    (void)state;
    marker_is_safe = false;
    shoal_store *store = open_store();
    assert_true(marker_is_safe);
    shoal_store_close(&store);
}

/* Whether such a commit is on the disk shows only after an outage: until then it is not, but its body must stay. */
static void on_a_disk_that_finds_out_late(void)
{
    strcat(url, "?sync=full");
    shoal_store *store = open_store();
    ENSURE(shoal_store_put(store, "key", bytes, LARGE, NULL, NULL, soon()) == SHOAL_OK);
    log_is_lost = true;
    ENSURE(shoal_store_put(store, "key", bytes, LARGE / 2, NULL, NULL, soon()) == SHOAL_SYSTEM);
    ENSURE(strstr(shoal_error(), "No space left on device"));
    ENSURE(count_in(folder, "store/temp") == 0 && count_in(folder, "store/bodies") == 2);
    ensure_blob(store, "key", LARGE);
    log_is_lost = false;
    ENSURE(shoal_store_put(store, "key", bytes, LARGE / 2, NULL, NULL, soon()) == SHOAL_OK);
    ensure_blob(store, "key", LARGE / 2);
    shoal_store_close(&store);
    ENSURE(count_in(folder, "store/temp") == 0 && count_in(folder, "store/bodies") == 1);
    ensure_sound();
}

static void test_a_disk_that_finds_out_late(void **state)
{
    (void)state;
    in_child(on_a_disk_that_finds_out_late, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_disk_that_fills_up),       TEST(test_a_disk_that_is_full),
        TEST(test_a_disk_that_others_filled),  TEST(test_a_limit_on_files),
        TEST(test_a_disk_that_finds_out_late), TEST(test_a_marker_is_on_the_disk_before_it_counts),
    };
    return cmocka_run_group_tests_name("store disk", tests, NULL, NULL);
}
