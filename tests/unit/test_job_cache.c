/* Labels: threads The folder of slices: what was put is found, what is damaged is not, the oldest go first, the limit
 * holds, and neither other processes nor a full disk nor a lock that nobody lets go do any harm. */
#include "job_support.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/hex.h"
#include "engine/store/job_cache.h"

enum { SIZE = 10000, FILE_SIZE = SIZE + 64 };

static unsigned char content[SIZE];

/* Content number n, and its id. */
static const unsigned char *make(int n, unsigned char id[BASE_HASH_SIZE])
{
    for (int i = 0; i < SIZE; i++)
        content[i] = (unsigned char)(i * 7 + n + (i >> 8));
    memcpy(content, &n, sizeof n);
    base_hash_of(id, content, SIZE);
    return content;
}

static job_cache *cache_of(int64_t bytes)
{
    job_cache *cache = NULL;
    EXPECT_OK(job_cache_new(&cache, at("deep/cache"), bytes));
    return cache;
}

static void put(job_cache *cache, int n)
{
    unsigned char id[BASE_HASH_SIZE];
    const void *bytes = make(n, id);
    job_cache_put(cache, id, bytes, SIZE);
}

/* Whether it is there; what is found is checked. */
static bool has(job_cache *cache, int n)
{
    unsigned char id[BASE_HASH_SIZE];
    job_cached found = {0};
    make(n, id);
    if (!job_cache_get(&found, cache, id, SIZE))
        return false;
    assert_memory_equal(found.data, content, SIZE);
    assert_int_equal((uintptr_t)found.data % 64, 0);
    job_cached_release(&found);
    assert_null(found.data);
    return true;
}

static const char *file_of(int n)
{
    static char path[256];
    unsigned char id[BASE_HASH_SIZE];
    char name[BASE_HASH_HEX];
    make(n, id);
    base_hex_write(name, id, sizeof id);
    snprintf(path, sizeof path, "%s/deep/cache/slices/%s", job_folder, name);
    return path;
}

static void set_age(int n, int seconds)
{
    struct timespec time = {.tv_sec = 1700000000 - seconds};
    assert_int_equal(utimensat(AT_FDCWD, file_of(n), (struct timespec[]){time, time}, 0), 0);
}

static void comes_back(void **state)
{
    (void)state;
    struct stat info;
    job_cache *cache = cache_of(1 << 20);
    assert_false(has(cache, 1));
    put(cache, 1);
    put(cache, 2);
    put(cache, 1);
    assert_true(has(cache, 1));
    assert_true(has(cache, 2));
    assert_false(has(cache, 3));
    assert_int_equal(job_cache_missed(cache), 0);
    assert_int_equal(count_in(job_folder, "deep/cache/slices"), 2);
    assert_int_equal(stat(at("deep/cache"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    job_cache_free(&cache);
    EXPECT_FAIL(job_cache_new(&cache, "x", -1), SHOAL_USAGE, "can't have -1 bytes");
}

/* Readers continue, and ask afterwards. */
static void shrinks_while_it_is_used(void **state)
{
    (void)state;
    job_cache *cache = cache_of(1 << 20);
    unsigned char id[BASE_HASH_SIZE], sum = 0;
    job_cached found = {0};
    put(cache, 1);
    make(1, id);
    assert_true(job_cache_get(&found, cache, id, SIZE));
    assert_false(job_cached_is_lost(&found));
    assert_int_equal(truncate(file_of(1), 0), 0);
    for (size_t i = 0; i < SIZE; i++)
        sum |= ((const unsigned char *)found.data)[i];
    assert_true(job_cached_is_lost(&found));
    assert_int_equal(sum, 0);
    job_cached_release(&found);
    assert_false(has(cache, 1));
    job_cache_free(&cache);
}

static void stays_while_it_is_used(void **state)
{
    (void)state;
    job_cache *cache = cache_of(1 << 20);
    unsigned char id[BASE_HASH_SIZE];
    job_cached found = {0};
    put(cache, 1);
    make(1, id);
    assert_true(job_cache_get(&found, cache, id, SIZE));
    assert_int_equal(unlink(file_of(1)), 0);
    assert_memory_equal(found.data, content, SIZE);
    job_cached_release(&found);
    job_cache_free(&cache);
}

static void damage(off_t place)
{
    unsigned char byte;
    int file = open(file_of(1), O_RDWR);
    assert_int_equal(pread(file, &byte, 1, place), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(file, &byte, 1, place), 1);
    close(file);
}

static void damaged_files_go(void **state)
{
    (void)state;
    job_cache *cache = cache_of(1 << 20);
    static const off_t places[] = {0, 8, 15, 16, 47, 48, 51, 52, 59, 60, 63, 64, 5000, FILE_SIZE - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        put(cache, 1);
        damage(places[i]);
        if (has(cache, 1))
            fail_msg("byte %lld", (long long)places[i]);
        assert_int_equal(access(file_of(1), F_OK), -1);
    }
    static const off_t lengths[] = {0, 1, 63, 64, FILE_SIZE - 1, FILE_SIZE + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        put(cache, 1);
        assert_int_equal(truncate(file_of(1), lengths[i]), 0);
        assert_false(has(cache, 1));
        assert_int_equal(access(file_of(1), F_OK), -1);
    }
    put(cache, 1);
    put(cache, 2);
    char other[256];
    snprintf(other, sizeof other, "%s", file_of(2));
    assert_int_equal(rename(other, file_of(1)), 0); /* one that is whole, and not what its name says */
    assert_false(has(cache, 1));
    put(cache, 1);
    assert_true(has(cache, 1));
    job_cache_free(&cache);
}

static void the_oldest_go_first(void **state)
{
    (void)state;
    job_cache *cache = cache_of(4 * FILE_SIZE);
    for (int i = 0; i < 4; i++)
        put(cache, i);
    set_age(0, 10);
    set_age(1, 40);
    set_age(2, 30);
    set_age(3, 20);
    assert_true(has(cache, 1)); /* so it is the newest now */
    put(cache, 4);
    assert_true(access(file_of(2), F_OK) < 0);
    put(cache, 5);
    assert_true(access(file_of(3), F_OK) < 0);
    put(cache, 6);
    assert_true(access(file_of(0), F_OK) < 0);
    assert_true(has(cache, 1) && has(cache, 4) && has(cache, 5) && has(cache, 6));
    assert_int_equal(job_cache_missed(cache), 0);
    job_cache_free(&cache);
}

static void the_limit_holds(void **state)
{
    (void)state;
    job_cache *cache = cache_of(3 * FILE_SIZE - 1);
    for (int i = 0; i < 30; i++) {
        put(cache, i);
        assert_true(has(cache, i)); /* what came last is never what goes */
        assert_true(count_in(job_folder, "deep/cache/slices") <= 2);
    }
    job_cache_free(&cache);
    cache = cache_of(FILE_SIZE); /* room for just one */
    set_age(29, -300000000);     /* one that another clock calls newer goes all the same */
    put(cache, 99);
    assert_true(has(cache, 99));
    assert_int_equal(count_in(job_folder, "deep/cache/slices"), 1);
    assert_int_equal(job_cache_missed(cache), 0);
    job_cache_free(&cache);
    cache = cache_of(FILE_SIZE - 1); /* and for none: what is there stays */
    put(cache, 100);
    assert_false(has(cache, 100));
    assert_int_equal(job_cache_missed(cache), 1);
    assert_true(has(cache, 99));
    job_cache_free(&cache);
    cache = cache_of(0); /* a tenth of the disk is more than this */
    put(cache, 100);
    assert_true(has(cache, 100) && has(cache, 99));
    job_cache_free(&cache);
}

/* Files that someone began and did not end. */
static void leftovers_go(void **state)
{
    (void)state;
    job_cache *cache = cache_of(1 << 20);
    put(cache, 1);
    const char *old = at("deep/cache/slices/.new-1"), *fresh = at("deep/cache/slices/.new-2");
    close(open(old, O_CREAT | O_WRONLY, 0600));
    close(open(fresh, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(utimensat(AT_FDCWD, old, (struct timespec[]){{.tv_sec = 1}, {.tv_sec = 1}}, 0), 0);
    put(cache, 2);
    assert_int_equal(access(old, F_OK), -1);
    assert_int_equal(access(fresh, F_OK), 0);
    assert_true(has(cache, 1) && has(cache, 2));
    job_cache_free(&cache);
}

static void trouble_is_only_counted(void **state)
{
    (void)state;
    job_cache *cache = NULL;
    close(open(at("file"), O_CREAT | O_WRONLY, 0600));
    EXPECT_OK(job_cache_new(&cache, at("file/cache"), 1 << 20)); /* no folder can be there */
    put(cache, 1);
    assert_false(has(cache, 1));
    assert_int_equal(job_cache_missed(cache), 1);
    job_cache_free(&cache);
    cache = cache_of(1 << 20);
    put(cache, 1);
    struct rlimit limit, small;
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = SIZE / 2; /* as if the disk were full */
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    put(cache, 2);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_false(has(cache, 2));
    assert_true(has(cache, 1));
    assert_int_equal(job_cache_missed(cache), 1);
    DIR *names = opendir(at("deep/cache/slices"));
    for (struct dirent *entry; (entry = readdir(names));)
        assert_null(strstr(entry->d_name, ".new")); /* nothing half is left */
    closedir(names);
    job_cache_free(&cache);
}

/* Someone holds the lock and never lets go. */
static void a_stuck_lock_is_no_trouble(void **state)
{
    (void)state;
    job_cache *cache = cache_of(1 << 20);
    put(cache, 1);
    int file = open(at("deep/cache/slices/.lock"), O_RDWR);
    assert_int_equal(flock(file, LOCK_EX | LOCK_NB), 0);
    put(cache, 2);
    assert_false(has(cache, 2));
    assert_int_equal(job_cache_missed(cache), 1);
    assert_true(has(cache, 1));
    close(file);
    put(cache, 2);
    assert_true(has(cache, 2));
    job_cache_free(&cache);
}

/* ---- many at once ------------------------------------------------------------------------------------------------ */

enum { PROCESSES = 4, TURNS = 60 };

/* For use in children: whatever is found is right. */
static void use(int seed)
{
    job_cache *cache = NULL;
    ENSURE(job_cache_new(&cache, at("deep/cache"), 5 * FILE_SIZE) == SHOAL_OK);
    for (int i = 0; i < TURNS; i++) {
        int n = (i * 5 + seed * 3) % 11;
        unsigned char id[BASE_HASH_SIZE];
        job_cached found = {0};
        make(n, id);
        if (job_cache_get(&found, cache, id, SIZE))
            ENSURE(memcmp(found.data, content, SIZE) == 0);
        else
            job_cache_put(cache, id, content, SIZE);
        job_cached_release(&found);
    }
    job_cache_free(&cache);
}

static void several_processes(void **state)
{
    (void)state;
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            use(i);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    job_cache *cache = cache_of(5 * FILE_SIZE);
    put(cache, 0);
    assert_true(count_in(job_folder, "deep/cache/slices") <= 5);
    assert_true(has(cache, 0));
    job_cache_free(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(comes_back, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(stays_while_it_is_used, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(shrinks_while_it_is_used, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(damaged_files_go, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(the_oldest_go_first, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(the_limit_holds, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(leftovers_go, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(trouble_is_only_counted, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(a_stuck_lock_is_no_trouble, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(several_processes, job_setup, job_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
