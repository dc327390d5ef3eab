/* The embedded store: which folder a URL means, what is refused and how it is said, where bodies lie, what is swept,
 * and that hints of other processes, dead or stopped ones, never stand in the way.  What every store promises is in
 * tests/conform, and what survives a kill in tests/fault/test_store_crash.c. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/world.h"
#include "store/folder/folder_internal.h"
#include "folder_support.h"

static char folder[64], root[128], bytes[100000];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/shoal-folder-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(root, sizeof root, "%s/store", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A path in the test's folder; valid until the fourth call from now. */
static const char *at(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static int64_t soon(void)
{
    return shoal_after(20);
}

static shoal_store *open_store(const char *url)
{
    shoal_store *store = NULL;
    if (shoal_store_open(&store, url, &(shoal_store_options){.create = true}, soon()) < 0)
        fail_msg("%s", shoal_error());
    return store;
}

static void expect_refusal(const char *url, bool create, int status, const char *words)
{
    shoal_store *store = NULL;
    assert_int_equal(shoal_store_open(&store, url, &(shoal_store_options){.create = create}, soon()), status);
    assert_null(store);
    if (!strstr(shoal_error(), words))
        fail_msg("'%s' is not in '%s'", words, shoal_error());
}

static void put(shoal_store *store, const char *key, size_t size)
{
    if (shoal_store_put(store, key, bytes, size, NULL, NULL, soon()) < 0)
        fail_msg("%s", shoal_error());
}

static void expect_blob(shoal_store *store, const char *key, size_t size)
{
    shoal_blob blob = {0};
    if (shoal_store_get(store, key, &blob, soon()) < 0)
        fail_msg("%s", shoal_error());
    assert_int_equal(blob.size, size);
    assert_memory_equal(blob.data, bytes, size);
    shoal_blob_release(&blob);
}

/* Runs a statement on the index of a store that nobody has open. */
static void execute(const char *text)
{
    sqlite3 *db = NULL;
    char *message = NULL, path[256];
    snprintf(path, sizeof path, "%s/index.db", root);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(db);
}

/* ---- which folder ------------------------------------------------------------------------------------------------ */

static void expect_rest(const char *url, const char *wanted)
{
    shoal_store *store = NULL;
    char *rest = NULL;
    if (shoal_store_open_at(&store, &rest, url, NULL, soon()) < 0)
        fail_msg("%s: %s", url, shoal_error());
    assert_string_equal(rest, wanted);
    shoal_text_free(&rest);
    shoal_store_close(&store);
}

static void test_the_store_is_the_nearest_folder_with_the_marker(void **state)
{
    char url[512], before[4096];
    (void)state;
    shoal_store *store = open_store(root);
    put(store, "a/b", 3);
    shoal_store_close(&store);
    expect_rest(root, "");
    expect_rest(at("store/"), "");
    expect_rest(at("store//a/./b/"), "a/b");
    expect_rest(at("store/bodies/x"), "bodies/x"); /* a name like any other */
    snprintf(url, sizeof url, "dir:%s/a", root);
    expect_rest(url, "a");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    expect_rest("dir:store/a", "a");
    expect_rest("./store", "");
    assert_int_equal(chdir(root), 0);
    expect_rest("a/b", "a/b");
    expect_rest("../store/a", "a");
    assert_int_equal(chdir(before), 0);
    assert_int_equal(symlink(root, at("link")), 0);
    expect_rest(at("link/a"), "a");

    store = open_store(at("store/a"));
    expect_blob(store, "b", 3);
    shoal_store_close(&store);
    store = open_store(at("store/inner/deep")); /* below a store there is no other */
    shoal_store_close(&store);
    assert_int_equal(access(at("store/inner"), F_OK), -1);
    store = open_store(at("new/deep/store"));
    shoal_store_close(&store);
    expect_rest(at("new/deep/store/x"), "x");
}

static void test_what_is_no_store_is_refused(void **state)
{
    char url[512];
    (void)state;
    expect_refusal(root, false, SHOAL_ABSENT, "there is no store at");
    assert_int_equal(access(root, F_OK), -1);
    write_file(at("file"), "x", 1);
    expect_refusal(at("file"), false, SHOAL_ABSENT, "it is a file");
    expect_refusal(at("file"), true, SHOAL_INVALID, "not a folder");
    expect_refusal(at("file/below"), true, SHOAL_INVALID, "not a folder");
    expect_refusal(folder, true, SHOAL_INVALID, "neither a store nor empty (it holds 'file')");
    assert_int_equal(count_in(folder, ""), 1);
    expect_refusal(at("no/../store"), true, SHOAL_USAGE, "..");
    snprintf(url, sizeof url, "dir:%s?sync=some", root);
    expect_refusal(url, true, SHOAL_USAGE, "sync must be normal or full, not 'some'");
    expect_refusal("dir:", true, SHOAL_USAGE, "path");
    expect_refusal("/proc/shoal", true, SHOAL_SYSTEM, "can't be made");
}

static void test_network_disks_are_refused_by_name(void **state)
{
    (void)state;
    assert_string_equal(folder_disk_refused(0x6969), "NFS");
    assert_string_equal(folder_disk_refused((long)(int)0xff534d42), "CIFS"); /* as a 32-bit kernel has it */
    assert_string_equal(folder_disk_refused(0x01021997), "9p");
    assert_non_null(strstr(folder_disk_refused(0x65735546), "FUSE"));
    assert_string_equal(folder_disk_refused(0x0bd00bd0), "Lustre");
    assert_null(folder_disk_refused(0xef53));     /* ext4 */
    assert_null(folder_disk_refused(0x01021994)); /* tmpfs */
    assert_null(folder_disk_refused(0x794c7630)); /* overlay */
}

static void test_formats(void **state)
{
    (void)state;
    shoal_store *store = open_store(root);
    shoal_store_close(&store);
    write_file(at("store/shoal-store"), "shoal store, format 2\n", 22);
    expect_refusal(root, true, SHOAL_INVALID, "newer version");
    write_file(at("store/shoal-store"), "something else", 14);
    expect_refusal(root, true, SHOAL_INVALID, "not the marker");
    write_file(at("store/shoal-store"), "shoal store, format 1\n", 22);
    execute("PRAGMA user_version = 7");
    expect_refusal(root, true, SHOAL_BROKEN, "index.db");
    write_file(at("store/index.db"), bytes, 5000);
    expect_refusal(root, true, SHOAL_BROKEN, "index.db is damaged");
    unlink(at("store/index.db"));
    expect_refusal(root, true, SHOAL_BROKEN, "index.db is missing");
    assert_int_equal(access(at("store/index.db"), F_OK), -1); /* an empty one would hide that all is lost */
}

static void test_a_store_half_made_is_made(void **state)
{
    static const char *const left[] = {"gate", "wake", "index.db", "index.db-wal", "shoal-store.new"};
    (void)state;
    assert_int_equal(mkdir(root, 0700), 0);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", root, left[i]);
        write_file(path, "", 0);
    }
    mkdir(at("store/temp"), 0700);
    expect_refusal(root, false, SHOAL_ABSENT, "there is no store");
    shoal_store *store = open_store(root);
    put(store, "key", 100);
    shoal_store_close(&store);
    rmdir(at("store/temp")); /* what holds nothing may get lost when a store is copied */
    rmdir(at("store/bodies"));
    unlink(at("store/wake"));
    unlink(at("store/gate"));
    store = open_store(root);
    put(store, "large", 10000);
    expect_blob(store, "key", 100);
    shoal_store_close(&store);
}

/* ---- permissions ------------------------------------------------------------------------------------------------- */

/* Runs `work` in a process of a user who may do nothing; its failures are the parent's. */
static void as_nobody(int (*work)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(setgid(65534) || setuid(65534) ? 77 : work());
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int refused_to_nobody(void)
{
    shoal_store *store = NULL;
    char other[256];
    if (shoal_store_open(&store, root, NULL, soon()) != SHOAL_DENIED || !strstr(shoal_error(), "ermission denied"))
        return fprintf(stderr, "%s\n", shoal_error()), 1;
    snprintf(other, sizeof other, "%s/other", folder);
    if (shoal_store_open(&store, other, &(shoal_store_options){.create = true}, soon()) != SHOAL_DENIED)
        return 2;
    return 0;
}

static int read_by_nobody(void)
{
    shoal_store *store = NULL;
    shoal_blob blob = {0};
    uint32_t seen = 0;
    if (shoal_store_open(&store, root, &(shoal_store_options){.read_only = true}, soon()) < 0)
        return fprintf(stderr, "%s\n", shoal_error()), 1;
    if (shoal_store_get(store, "key", &blob, soon()) < 0 || blob.size != 100)
        return fprintf(stderr, "%s\n", shoal_error()), 2;
    if (shoal_store_get(store, "large", &blob, soon()) < 0 || blob.size != 10000)
        return 3;
    if (shoal_store_put(store, "key", "x", 1, NULL, NULL, soon()) != SHOAL_DENIED ||
        !strstr(shoal_error(), "read-only"))
        return 4;
    if (shoal_store_wait(store, "", &seen, soon()) != SHOAL_OK)
        return 5;
    shoal_store_close(&store);
    return 0;
}

/* A reader who may not write, and found no log beside the index, sees what a writer does who comes later. */
static int to_reader[2], from_reader[2];

static int read_before_and_after(void)
{
    shoal_store *store = NULL;
    shoal_blob blob = {0};
    char letter;
    close(to_reader[1]);
    if (shoal_store_open(&store, root, &(shoal_store_options){.read_only = true}, soon()) < 0)
        return 1;
    for (size_t size = 100; size <= 300; size += 100) {
        if (shoal_store_get(store, "changing", &blob, soon()) < 0 || blob.size != size)
            return fprintf(stderr, "%zu instead of %zu: %s\n", blob.size, size, shoal_error()), 2;
        shoal_blob_release(&blob);
        if (write(from_reader[1], "x", 1) != 1 || read(to_reader[0], &letter, 1) != 1)
            return 3;
    }
    shoal_store_close(&store);
    return 0;
}

static void test_a_reader_sees_a_later_writer(void **state)
{
    int status;
    char letter;
    (void)state;
    shoal_store *store = open_store(root);
    put(store, "changing", 100);
    shoal_store_close(&store);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(pipe(to_reader) | pipe(from_reader), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(setgid(65534) || setuid(65534) ? 77 : read_before_and_after());
    close(to_reader[0]);
    close(from_reader[1]);
    for (size_t size = 200; size <= 400 && read(from_reader[0], &letter, 1) == 1; size += 100) {
        if (!store)
            store = open_store(root);
        put(store, "changing", size);
        if (size == 300)
            shoal_store_close(&store);
        assert_int_equal(write(to_reader[1], "x", 1), 1);
    }
    close(to_reader[1]);
    close(from_reader[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    shoal_store_close(&store);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* What is read without locks while a writer comes and goes may be rubbish, and is not to be believed. */
static int read_across_a_writer(void)
{
    shoal_store *store = NULL;
    folder_connection *reader = NULL;
    store_attempt attempt = {.deadline = soon()};
    char letter;
    int status;
    close(to_reader[1]);
    if (shoal_store_open(&store, root, &(shoal_store_options){.read_only = true}, soon()) < 0)
        return fprintf(stderr, "%s\n", shoal_error()), 1;
    folder_store *self = (folder_store *)store;
    if (folder_reader(self, &reader, &attempt) < 0 || !reader->immutable)
        return 2;
    if (write(from_reader[1], "x", 1) != 1 || read(to_reader[0], &letter, 1) != 1)
        return 3;
    if (folder_reader_return(self, &reader, SHOAL_BROKEN) != SHOAL_AGAIN || attempt.cause != SHOAL_CAUSE_RACE)
        return 4;
    do /* just after a change nobody can tell; a moment later everybody can */
        status = folder_reader(self, &reader, &attempt);
    while (status == SHOAL_OK && (status = folder_reader_return(self, &reader, SHOAL_OK)) == SHOAL_AGAIN &&
           shoal_now() < attempt.deadline);
    shoal_store_close(&store);
    return status == SHOAL_OK ? 0 : 5;
}

static void test_a_reader_without_locks_notices_a_writer(void **state)
{
    int status;
    char letter;
    (void)state;
    shoal_store *store = open_store(root);
    shoal_store_close(&store);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(pipe(to_reader) | pipe(from_reader), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(setgid(65534) || setuid(65534) ? 77 : read_across_a_writer());
    close(to_reader[0]);
    close(from_reader[1]);
    if (read(from_reader[0], &letter, 1) == 1) {
        store = open_store(root);
        put(store, "key", 100);
        shoal_store_close(&store);
        assert_int_equal(write(to_reader[1], "x", 1), 1);
    }
    close(to_reader[1]);
    close(from_reader[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_permissions(void **state)
{
    (void)state;
    shoal_store *store = open_store(root);
    put(store, "key", 100);
    put(store, "large", 10000);
    shoal_store_close(&store);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(root, 0755), 0);
    as_nobody(read_by_nobody); /* nobody has it open: there is no log */
    as_nobody(refused_to_nobody);
    store = open_store(root);
    put(store, "another", 100);
    as_nobody(read_by_nobody); /* beside a writer */
    shoal_store_close(&store);
    assert_int_equal(chmod(root, 0700), 0);
    as_nobody(refused_to_nobody);
}

static void test_reading_only_writes_nothing(void **state)
{
    shoal_store *store = NULL;
    (void)state;
    shoal_store_options reading = {.create = true, .read_only = true};
    assert_int_equal(shoal_store_open(&store, root, &reading, soon()), SHOAL_ABSENT);
    assert_int_equal(access(root, F_OK), -1);
    store = open_store(root);
    put(store, "key", 100);
    shoal_store_close(&store);
    write_file(at("store/temp/orphan"), "x", 1);
    assert_int_equal(shoal_store_open(&store, root, &reading, soon()), SHOAL_OK);
    expect_blob(store, "key", 100);
    assert_int_equal(shoal_store_push(store, "q", "x", 1, soon()), SHOAL_DENIED);
    shoal_store_close(&store);
    assert_int_equal(count_in(folder, "store/temp"), 1);
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static void test_where_bodies_lie(void **state)
{
    shoal_message message = {0};
    (void)state;
    shoal_store *store = open_store(root);
    put(store, "small", FOLDER_INLINE_MOST);
    assert_int_equal(count_in(folder, "store/bodies"), 0);
    put(store, "large", FOLDER_INLINE_MOST + 1);
    assert_int_equal(count_in(folder, "store/bodies"), 1);
    assert_int_equal(count_in(folder, "store/temp"), 0);
    put(store, "large", 50000);
    assert_int_equal(count_in(folder, "store/bodies"), 1);
    expect_blob(store, "large", 50000);
    put(store, "large", 10);
    assert_int_equal(count_in(folder, "store/bodies"), 0);
    put(store, "large", 50000);
    assert_int_equal(shoal_store_put(store, "large", bytes, 50000, SHOAL_NOTHING, NULL, soon()), SHOAL_CONFLICT);
    assert_int_equal(count_in(folder, "store/bodies"), 1);
    assert_int_equal(count_in(folder, "store/temp"), 0);
    assert_int_equal(shoal_store_remove(store, "large", soon()), SHOAL_OK);
    assert_int_equal(count_in(folder, "store/bodies"), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(shoal_store_push(store, "q", bytes, 20000, soon()), SHOAL_OK);
    assert_int_equal(count_in(folder, "store/bodies"), 3);
    assert_int_equal(shoal_store_take(store, "q", 60, &message, soon()), SHOAL_OK);
    assert_int_equal(message.size, 20000);
    assert_int_equal(shoal_store_finish(store, "q", &message, soon()), SHOAL_OK);
    shoal_message_release(&message);
    assert_int_equal(count_in(folder, "store/bodies"), 2);
    assert_int_equal(shoal_store_drop(store, "q", soon()), SHOAL_OK);
    assert_int_equal(count_in(folder, "store/bodies"), 0);
    shoal_store_close(&store);
}

static void test_a_body_that_is_not_what_was_written(void **state)
{
    shoal_blob blob = {0};
    char path[256];
    (void)state;
    shoal_store *store = open_store(root);
    put(store, "large", 50000);
    snprintf(path, sizeof path, "%s/bodies/%016x", root, 1);
    assert_int_equal(truncate(path, 49999), 0);
    assert_int_equal(shoal_store_get(store, "large", &blob, soon()), SHOAL_BROKEN);
    assert_non_null(strstr(shoal_error(), "49999 bytes instead of 50000"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(shoal_store_get(store, "large", &blob, soon()), SHOAL_BROKEN);
    assert_non_null(strstr(shoal_error(), "missing"));
    put(store, "large", 50000);
    expect_blob(store, "large", 50000);
    shoal_store_close(&store);
}

static void *overwrite(void *context)
{
    static char own[60000];
    const char *url = context;
    shoal_store *store = NULL;
    assert_int_equal(shoal_store_open(&store, url, NULL, soon()), SHOAL_OK);
    for (int i = 1; i <= 300; i++) {
        memset(own, i, sizeof own);
        if (shoal_store_put(store, "key", own, 10000 + (size_t)i * 100, NULL, NULL, soon()) < 0)
            fail_msg("%s", shoal_error());
    }
    shoal_store_close(&store);
    return NULL;
}

/* Each get sees one version, whole, though its body is removed while it is read. */
static void test_a_body_replaced_while_it_is_read(void **state)
{
    pthread_t writer;
    shoal_blob blob = {0};
    (void)state;
    shoal_store *store = open_store(root);
    memset(bytes, 0, 10000);
    put(store, "key", 10000);
    assert_int_equal(pthread_create(&writer, NULL, overwrite, root), 0);
    for (int version = 0; version < 300;) {
        if (shoal_store_get(store, "key", &blob, soon()) < 0)
            fail_msg("%s", shoal_error());
        version = (int)(blob.size - 10000) / 100;
        const char *data = blob.data;
        for (size_t i = 0; i < blob.size; i++)
            assert_int_equal(data[i], (char)version);
        shoal_blob_release(&blob);
    }
    pthread_join(writer, NULL);
    assert_int_equal(count_in(folder, "store/bodies"), 1);
    shoal_store_close(&store);
}

/* ---- sweeping ---------------------------------------------------------------------------------------------------- */

static void test_what_the_dead_left_is_swept(void **state)
{
    char path[256];
    (void)state;
    shoal_store *store = open_store(root);
    put(store, "a", 10000);
    put(store, "b", 10000); /* bodies 1 and 2 */
    shoal_store_close(&store);
    write_file(at("store/temp/dead"), "x", 1);
    int live = open(at("store/temp/live"), O_RDWR | O_CREAT, 0600);
    assert_int_equal(flock(live, LOCK_EX), 0);
    snprintf(path, sizeof path, "%s/bodies/%016x", root, 3); /* named, and killed before the commit */
    write_file(path, "x", 1);
    snprintf(path, sizeof path, "%s/bodies/%016x", root, 9);
    write_file(path, "x", 1);
    execute("DELETE FROM blobs WHERE file = 1; INSERT INTO garbage VALUES(1)"); /* killed after the commit */
    store = open_store(root);
    assert_int_equal(access(at("store/temp/dead"), F_OK), -1);
    assert_int_equal(access(at("store/temp/live"), F_OK), 0);
    assert_int_equal(count_in(folder, "store/bodies"), 2); /* 2 and, since only an outage leaves the like, 9 */
    expect_blob(store, "b", 10000);
    shoal_store_close(&store);
    execute("UPDATE state SET value = 'another' WHERE name = 'boot'");
    store = open_store(root);
    assert_int_equal(count_in(folder, "store/bodies"), 1);
    expect_blob(store, "b", 10000);
    put(store, "c", 10000); /* number 3, after all */
    expect_blob(store, "c", 10000);
    close(live);
    shoal_store_close(&store);
}

static void test_leases_do_not_outlive_the_machine(void **state)
{
    shoal_message first = {0}, second = {0};
    (void)state;
    shoal_store *store = open_store(root);
    assert_int_equal(shoal_store_push(store, "q", "x", 1, soon()), SHOAL_OK);
    assert_int_equal(shoal_store_take(store, "q", 3600, &first, soon()), SHOAL_OK);
    shoal_store_close(&store);
    store = open_store(root);
    assert_int_equal(shoal_store_take(store, "q", 3600, &second, soon()), SHOAL_ABSENT);
    shoal_store_close(&store);
    execute("UPDATE state SET value = 'another' WHERE name = 'boot'");
    store = open_store(root);
    assert_int_equal(shoal_store_extend(store, "q", &first, 60, soon()), SHOAL_LOST);
    assert_int_equal(shoal_store_take(store, "q", 3600, &second, soon()), SHOAL_OK);
    assert_int_equal(second.deliveries, 2);
    assert_int_equal(shoal_store_finish(store, "q", &first, soon()), SHOAL_LOST);
    assert_int_equal(shoal_store_finish(store, "q", &second, soon()), SHOAL_OK);
    shoal_message_release(&first);
    shoal_message_release(&second);
    shoal_store_close(&store);
}

static void test_versions_never_come_back(void **state)
{
    enum { VERSIONS = 60 };
    static shoal_etag etags[VERSIONS];
    (void)state;
    for (int i = 0; i < VERSIONS; i++) {
        shoal_store *store = open_store(root);
        if (i % 3 == 0)
            shoal_store_remove(store, "key", soon());
        assert_int_equal(shoal_store_put(store, "key", bytes, 10, NULL, &etags[i], soon()), SHOAL_OK);
        shoal_store_close(&store);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(etags[k].text, etags[i].text);
    }
}

static void test_the_log_does_not_grow_for_ever(void **state)
{
    struct stat info;
    (void)state;
    shoal_store *store = open_store(root);
    for (int i = 0; i < 12000; i++)
        put(store, "key", FOLDER_INLINE_MOST);
    assert_int_equal(stat(at("store/index.db-wal"), &info), 0);
    assert_true(info.st_size < 64 << 20); /* of 200 MB written */
    expect_blob(store, "key", FOLDER_INLINE_MOST);
    shoal_store_close(&store);
}

/* ---- others in the way ------------------------------------------------------------------------------------------- */

typedef enum habit { LETS_GO_WHEN_CONTINUED, NEVER_LETS_GO } habit;

/* A process that holds the gate, stopped when it is to let go as soon as it is continued. */
static pid_t start_holder(habit habit)
{
    int ready[2];
    char letter;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        int gate = open(at("store/gate"), O_RDWR);
        if (flock(gate, LOCK_EX) != 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        if (habit == LETS_GO_WHEN_CONTINUED)
            raise(SIGSTOP);
        else
            for (;;)
                pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &letter, 1), 1);
    if (habit == LETS_GO_WHEN_CONTINUED)
        assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void test_a_stopped_holder_is_continued(void **state)
{
    int status;
    (void)state;
    shoal_store *store = open_store(root);
    pid_t holder = start_holder(LETS_GO_WHEN_CONTINUED);
    put(store, "key", 10);
    assert_int_equal(waitpid(holder, &status, 0), holder);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    shoal_store_close(&store);
}

static void test_a_holder_that_never_lets_go_is_named(void **state)
{
    char wanted[64];
    (void)state;
    shoal_store *store = open_store(root);
    put(store, "key", 10);
    pid_t holder = start_holder(NEVER_LETS_GO);
    int64_t began = shoal_now();
    assert_int_equal(shoal_store_put(store, "key", "x", 1, NULL, NULL, shoal_after(0.6)), SHOAL_AGAIN);
    assert_true(shoal_now() - began < 5000000000);
    snprintf(wanted, sizeof wanted, "process %d has held the store", (int)holder);
    if (!strstr(shoal_error(), wanted))
        fail_msg("%s", shoal_error());
    assert_true(shoal_store_counted(store).causes[SHOAL_CAUSE_BUSY] > 0);
    assert_int_equal(shoal_store_put(store, "key", "x", 1, NULL, NULL, shoal_after(0.02)), SHOAL_AGAIN);
    if (!strstr(shoal_error(), wanted)) /* also when there was little time to look */
        fail_msg("%s", shoal_error());
    expect_blob(store, "key", 10); /* reading does not pass the gate */
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    put(store, "key", 20);
    shoal_store_close(&store);
}

static folder_shared *map_words(void)
{
    int descriptor = open(at("store/wake"), O_RDWR);
    void *memory = mmap(NULL, sizeof(folder_shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    close(descriptor);
    return memory;
}

/* Whoever waits learns of a change though its writer was killed before it could tell: from the next writer, or by
 * itself. */
static void test_the_dead_are_spoken_for(void **state)
{
    uint32_t seen = 0;
    (void)state;
    shoal_store *store = open_store(root), *other = open_store(root);
    folder_shared *shared = map_words();
    assert_int_equal(shoal_store_wait(store, "a/b", &seen, soon()), SHOAL_OK);
    assert_int_equal(shoal_store_wait(store, "a/b", &seen, shoal_after(0.02)), SHOAL_AGAIN);
    atomic_store(&shared->committing, 1);
    put(other, "somewhere/else", 1);
    assert_int_equal(shoal_store_wait(store, "a/b", &seen, shoal_after(0)), SHOAL_OK);
    assert_int_equal(shoal_store_wait(store, "a/b", &seen, shoal_after(0.02)), SHOAL_AGAIN);
    atomic_store(&shared->committing, 1);
    assert_int_equal(shoal_store_wait(store, "a/b", &seen, soon()), SHOAL_OK);
    assert_int_equal(atomic_load(&shared->committing), 0);
    munmap(shared, sizeof *shared);
    shoal_store_close(&other);
    shoal_store_close(&store);
}

/* Nor does it matter that who waits may not pass the gate, or that who was to tell is only stopped. */
static void test_who_only_waits_learns_of_a_change(void **state)
{
    uint32_t seen = 0, seen_too = 0;
    (void)state;
    shoal_store *store = open_store(root), *reader = NULL;
    assert_int_equal(shoal_store_open(&reader, root, &(shoal_store_options){.read_only = true}, soon()), SHOAL_OK);
    folder_shared *shared = map_words();
    assert_int_equal(shoal_store_wait(reader, "key", &seen, soon()), SHOAL_OK);
    assert_int_equal(shoal_store_wait(store, "key", &seen_too, soon()), SHOAL_OK);
    atomic_store(&shared->committing, 1);
    assert_int_equal(shoal_store_wait(reader, "key", &seen, soon()), SHOAL_OK);
    pid_t holder = start_holder(NEVER_LETS_GO);
    assert_int_equal(shoal_store_wait(store, "key", &seen_too, soon()), SHOAL_OK);
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    munmap(shared, sizeof *shared);
    shoal_store_close(&reader);
    shoal_store_close(&store);
}

/* Words left by an earlier start of the machine, or by whoever, cost next to nothing. */
static void test_rubbish_in_the_shared_words(void **state)
{
    (void)state;
    shoal_store *store = open_store(root), *other = open_store(root);
    folder_shared *shared = map_words();
    for (int fill = 0; fill < 256; fill += 85) {
        memset((void *)shared, fill, sizeof *shared);
        int64_t began = shoal_now();
        for (int i = 0; i < 50; i++) {
            put(store, "key", 10);
            put(other, "key", 10);
        }
        assert_true(shoal_now() - began < 5000000000);
    }
    munmap(shared, sizeof *shared);
    shoal_store_close(&other);
    shoal_store_close(&store);
}

static void test_a_forked_child_is_refused(void **state)
{
    int status;
    (void)state;
    shoal_store *store = open_store(root);
    put(store, "key", 10);
    pid_t child = fork();
    if (child == 0) {
        shoal_blob blob = {0};
        int got = shoal_store_get(store, "key", &blob, soon());
        int put_too = shoal_store_put(store, "key", "x", 1, NULL, NULL, soon());
        shoal_store_close(&store);
        _exit(got == SHOAL_USAGE && put_too == SHOAL_USAGE && strstr(shoal_error(), "fork") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    put(store, "key", 20);
    expect_blob(store, "key", 20);
    shoal_store_close(&store);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

typedef struct racer {
    shoal_store *store;
    int number;
} racer;

static void *race(void *context)
{
    const racer *self = context;
    for (int i = 0; i < 100; i++) {
        char key[64];
        size_t size = i % 10 == 0 ? 9000 : 100;
        snprintf(key, sizeof key, "racer/%d/%d", self->number, i);
        put(self->store, key, size);
        expect_blob(self->store, key, size);
    }
    return NULL;
}

static void test_threads_share_handles(void **state)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    racer racers[THREADS];
    shoal_listing page = {0};
    (void)state;
    shoal_store *stores[2] = {open_store(root), open_store(root)};
    for (int i = 0; i < THREADS; i++) {
        racers[i] = (racer){stores[i % 2], i};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(shoal_store_list(stores[0], "racer/", NULL, &page, soon()), SHOAL_OK);
    assert_int_equal(page.count, THREADS * 100);
    assert_false(page.more);
    shoal_listing_release(&page);
    shoal_store_close(&stores[0]);
    shoal_store_close(&stores[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_the_store_is_the_nearest_folder_with_the_marker),
                                       TEST(test_what_is_no_store_is_refused),
                                       TEST(test_network_disks_are_refused_by_name),
                                       TEST(test_formats),
                                       TEST(test_a_store_half_made_is_made),
                                       TEST(test_permissions),
                                       TEST(test_a_reader_sees_a_later_writer),
                                       TEST(test_a_reader_without_locks_notices_a_writer),
                                       TEST(test_reading_only_writes_nothing),
                                       TEST(test_where_bodies_lie),
                                       TEST(test_a_body_that_is_not_what_was_written),
                                       TEST(test_a_body_replaced_while_it_is_read),
                                       TEST(test_what_the_dead_left_is_swept),
                                       TEST(test_leases_do_not_outlive_the_machine),
                                       TEST(test_versions_never_come_back),
                                       TEST(test_the_log_does_not_grow_for_ever),
                                       TEST(test_a_stopped_holder_is_continued),
                                       TEST(test_a_holder_that_never_lets_go_is_named),
                                       TEST(test_the_dead_are_spoken_for),
                                       TEST(test_who_only_waits_learns_of_a_change),
                                       TEST(test_rubbish_in_the_shared_words),
                                       TEST(test_a_forked_child_is_refused),
                                       TEST(test_threads_share_handles)};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 2654435761u >> 24);
    return cmocka_run_group_tests_name("folder", tests, NULL, NULL);
}
