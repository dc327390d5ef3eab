/* Mapped files that shrink: they read as zeros and say so, and every other SIGBUS goes where it went before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <shoal/error.h>

#include "base/mapped.h"
#include "base/memory.h"

enum { PAGES = 64 };

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* An unnamed file of PAGES pages, all of it ones. */
static int make_file(void)
{
    char name[] = "/tmp/shoal-mapped-XXXXXX";
    int file = mkstemp(name);
    char *page = malloc(page_bytes());
    unlink(name);
    memset(page, 1, page_bytes());
    for (int i = 0; i < PAGES; i++)
        if (write(file, page, page_bytes()) != (ssize_t)page_bytes())
            abort();
    free(page);
    return file;
}

static base_mapped *map_whole(int file)
{
    base_mapped *mapped = NULL;
    if (base_mapped_open(&mapped, file, 0, PAGES * page_bytes(), "a file") < 0)
        abort();
    return mapped;
}

static size_t count_ones(const base_mapped *mapped)
{
    const volatile unsigned char *bytes = base_mapped_bytes(mapped);
    size_t ones = 0;
    for (size_t i = 0; i < base_mapped_size(mapped); i++)
        ones += bytes[i] == 1;
    return ones;
}

static void test_a_file_that_stays(void **state)
{
    (void)state;
    int file = make_file();
    base_mapped *mapped = NULL, *from_second = NULL;
    assert_int_equal(base_mapped_open(&mapped, file, 0, 100, "a file"), SHOAL_OK);
    assert_int_equal(base_mapped_open(&from_second, file, (int64_t)page_bytes(), 7, "a file"), SHOAL_OK);
    close(file);
    assert_int_equal(base_mapped_size(mapped), 100);
    assert_int_equal(count_ones(mapped), 100);
    assert_int_equal(count_ones(from_second), 7);
    assert_false(base_mapped_is_lost(mapped));
    base_mapped_close(&mapped);
    assert_null(mapped);
    base_mapped_close(&mapped);
    assert_int_equal(count_ones(from_second), 7);
    base_mapped_close(&from_second);
}

static void test_a_file_that_shrinks(void **state)
{
    (void)state;
    int file = make_file(), other = make_file();
    base_mapped *mapped = map_whole(file), *stays = map_whole(other);
    assert_int_equal(ftruncate(file, (off_t)(3 * page_bytes())), 0);
    assert_false(base_mapped_is_lost(mapped));
    assert_int_equal(count_ones(mapped), 3 * page_bytes()); /* those that were read before one was missing */
    assert_true(base_mapped_is_lost(mapped));
    assert_int_equal(count_ones(mapped), 0);
    assert_int_equal(count_ones(stays), PAGES * page_bytes());
    assert_false(base_mapped_is_lost(stays));
    base_mapped_close(&mapped);
    mapped = map_whole(other); /* in the entry of the one that was lost */
    assert_false(base_mapped_is_lost(mapped));
    assert_int_equal(count_ones(mapped), PAGES * page_bytes());
    base_mapped_close(&mapped);
    base_mapped_close(&stays);
    close(file);
    close(other);
}

static void *count_in_thread(void *mapped)
{
    return count_ones(mapped) < PAGES * page_bytes() ? mapped : NULL;
}

static void test_threads_that_read_what_is_gone(void **state)
{
    (void)state;
    enum { THREADS = 4, TIMES = 20 };
    for (int i = 0; i < TIMES; i++) {
        int file = make_file();
        base_mapped *mapped = map_whole(file);
        pthread_t thread[THREADS];
        assert_int_equal(ftruncate(file, 0), 0);
        for (int k = 0; k < THREADS; k++)
            assert_int_equal(pthread_create(&thread[k], NULL, count_in_thread, mapped), 0);
        for (int k = 0; k < THREADS; k++) {
            void *missed = NULL;
            pthread_join(thread[k], &missed);
            assert_ptr_equal(missed, mapped);
        }
        assert_true(base_mapped_is_lost(mapped));
        base_mapped_close(&mapped);
        close(file);
    }
}

static atomic_bool has_forked;

static void *map_on_and_on(void *file)
{
    while (!atomic_load(&has_forked)) {
        base_mapped *mapped = map_whole(*(int *)file);
        base_mapped_close(&mapped);
    }
    return NULL;
}

/* A child finds the lock free, whatever the threads of its parent were doing. */
static void test_forks_while_threads_map(void **state)
{
    (void)state;
    enum { THREADS = 3, FORKS = 400, SECONDS = 60 };
    pthread_t thread[THREADS];
    int file = make_file(), status = 0;
    atomic_store(&has_forked, false);
    for (int k = 0; k < THREADS; k++)
        assert_int_equal(pthread_create(&thread[k], NULL, map_on_and_on, &file), 0);
    for (int i = 0; i < FORKS && status == 0; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(SECONDS); /* it would wait for ever */
            base_mapped *mapped = map_whole(file);
            _exit(count_ones(mapped) == PAGES * page_bytes() ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    atomic_store(&has_forked, true);
    for (int k = 0; k < THREADS; k++)
        pthread_join(thread[k], NULL);
    close(file);
    assert_int_equal(status, 0);
}

static void test_what_cannot_be_mapped(void **state)
{
    (void)state;
    base_mapped *mapped = NULL;
    int file = make_file();
    assert_int_equal(base_mapped_open(&mapped, -1, 0, 10, "x.npy"), SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "x.npy: can't map 10 bytes"));
    assert_null(mapped);
    base_mapped *held[8]; /* more than there are unused entries */
    for (int i = 0; i < 8; i++)
        held[i] = map_whole(file);
    base_memory_fail_here(0);
    assert_int_equal(base_mapped_open(&mapped, file, 0, 10, "x.npy"), SHOAL_MEMORY);
    base_memory_fail_here(-1);
    assert_null(mapped);
    for (int i = 0; i < 8; i++)
        base_mapped_close(&held[i]);
    close(file);
}

/* ---- every other SIGBUS, each in a process of its own ------------------------------------------------------------ */

enum { TAKEN = 7, TAKEN_PLAIN = 8 };

static void take_bus(int number, siginfo_t *info, void *context)
{
    (void)context;
    _exit(number == SIGBUS && info->si_code == BUS_ADRERR ? TAKEN : 1);
}

static void take_bus_plain(int number)
{
    _exit(number == SIGBUS ? TAKEN_PLAIN : 1);
}

/* Reads beyond the end of a file that base_mapped does not know, beside one that it knows. */
static void read_elsewhere(void)
{
    int file = make_file();
    base_mapped *mapped = map_whole(make_file());
    volatile unsigned char *bytes = mmap(NULL, page_bytes(), PROT_READ, MAP_PRIVATE, file, 0);
    if (ftruncate(file, 0) != 0)
        abort();
    _exit(bytes[0] + base_mapped_is_lost(mapped));
}

static void send_bus(void)
{
    base_mapped *mapped = map_whole(make_file());
    kill(getpid(), SIGBUS);
    _exit(base_mapped_is_lost(mapped) ? 1 : 0);
}

/* How a child ends that had this handler before the first mapping. */
static int end_of_child(void (*body)(void), const struct sigaction *handler)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        sigaction(SIGBUS, handler, NULL);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* A handler that came in front of ours, knows it, and passes on to it. */
static struct sigaction behind;

static void take_and_pass(int number, siginfo_t *info, void *context)
{
    static int times;
    if (times++ > 5)
        _exit(1);
    behind.sa_sigaction(number, info, context);
}

static void read_behind_another(void)
{
    const struct sigaction front = {.sa_sigaction = take_and_pass, .sa_flags = SA_SIGINFO | SA_NODEFER};
    int file = make_file();
    base_mapped *first = map_whole(file);
    sigaction(SIGBUS, &front, &behind);
    if (ftruncate(file, 0) != 0 || count_ones(first) != 0 || !base_mapped_is_lost(first))
        _exit(1);     /* passed on to ours */
    read_elsewhere(); /* which maps, so that ours is in front of it again */
}

static void test_what_others_handle(void **state)
{
    (void)state;
    const struct sigaction usual = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN},
                           plain = {.sa_handler = take_bus_plain},
                           told = {.sa_sigaction = take_bus, .sa_flags = SA_SIGINFO};
    int status = end_of_child(read_elsewhere, &usual);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = end_of_child(read_elsewhere, &ignored);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = end_of_child(read_elsewhere, &told);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == TAKEN);
    status = end_of_child(read_elsewhere, &plain);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == TAKEN_PLAIN);
    status = end_of_child(read_behind_another, &told);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == TAKEN);
    status = end_of_child(read_behind_another, &usual);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = end_of_child(send_bus, &usual);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = end_of_child(send_bus, &plain);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == TAKEN_PLAIN);
    status = end_of_child(send_bus, &ignored);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_others_handle),      cmocka_unit_test(test_a_file_that_stays),
        cmocka_unit_test(test_a_file_that_shrinks),     cmocka_unit_test(test_threads_that_read_what_is_gone),
        cmocka_unit_test(test_forks_while_threads_map), cmocka_unit_test(test_what_cannot_be_mapped)};
    return cmocka_run_group_tests_name("mapped", tests, NULL, NULL);
}
