/* Labels: threads The journal of a transfer: what was added is there the next time, and nothing else is, whatever
 * became of the file. */
#include "data_support.h"

#include <pthread.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "store/transfer/transfer_journal.c"

static transfer_journal *open_journal(const char *from, const char *to)
{
    transfer_journal *journal = NULL;
    if (transfer_journal_open(&journal, from, to) < 0)
        fail_msg("%s", shoal_error());
    return journal;
}

static transfer_mark number_mark(int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    return transfer_mark_of((const char *const[]){"done", text, NULL});
}

/* The one file of the folder state/shoal. */
static const char *journal_file(const char *from, const char *to)
{
    static char path[512];
    char *made = NULL;
    assert_int_equal(journal_path(&made, from, to), SHOAL_OK);
    snprintf(path, sizeof path, "%s", made);
    base_free(&made);
    return path;
}

static long file_size(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (long)info.st_size : -1;
}

static int setup(void **state)
{
    int failed = folder_setup(state);
    setenv("XDG_STATE_HOME", test_folder, 1);
    return failed;
}

static int teardown(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/shoal", test_folder);
    return system(command) || folder_teardown(state);
}

static void test_marks_depend_on_every_text_and_where_it_ends(void **state)
{
    (void)state;
    const char *const lists[][4] = {{"a", "b", NULL},     {"ab", NULL},         {"b", "a", NULL}, {"a", "b", "", NULL},
                                    {"", "a", "b", NULL}, {"a", "", "b", NULL}, {"a", NULL},      {NULL}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (size_t j = 0; j < sizeof lists / sizeof *lists; j++) {
            transfer_mark a = transfer_mark_of(lists[i]), b = transfer_mark_of(lists[j]);
            assert_int_equal(memcmp(&a, &b, sizeof a) == 0, i == j);
        }
}

static void test_what_was_added_is_there_the_next_time(void **state)
{
    enum { MANY = 5000 };
    (void)state;
    for (int round = 0; round < 3; round++) {
        transfer_journal *journal = open_journal("from", "to");
        for (int i = 0; i < MANY; i++) {
            transfer_mark mark = number_mark(i);
            assert_int_equal(transfer_journal_has(journal, &mark), round > 0);
            transfer_journal_add(journal, &mark);
            assert_true(transfer_journal_has(journal, &mark));
        }
        transfer_mark other = number_mark(MANY);
        assert_false(transfer_journal_has(journal, &other));
        transfer_journal_close(&journal, false);
        assert_null(journal);
        assert_int_equal(file_size(journal_file("from", "to")), 16 * (MANY + 1));
    }
    transfer_journal *journal = open_journal("from", "elsewhere");
    transfer_mark mark = number_mark(0);
    assert_false(transfer_journal_has(journal, &mark));
    transfer_journal_close(&journal, true);
}

static void test_a_mark_that_was_cut_is_forgotten_alone(void **state)
{
    (void)state;
    transfer_journal *journal = open_journal("cut", "to");
    for (int i = 0; i < 10; i++) {
        transfer_mark mark = number_mark(i);
        transfer_journal_add(journal, &mark);
    }
    transfer_journal_close(&journal, false);
    const char *path = journal_file("cut", "to");
    for (long size = 16 * 11; size >= 0; size -= 7) {
        assert_int_equal(truncate(path, size), 0);
        journal = open_journal("cut", "to");
        for (int i = 0; i < 10; i++) {
            transfer_mark mark = number_mark(i);
            assert_int_equal(transfer_journal_has(journal, &mark), 16 * (i + 2) <= size);
        }
        transfer_journal_close(&journal, false);
        assert_int_equal(file_size(path) % 16, 0);
    }
    journal = open_journal("cut", "to");
    transfer_mark mark = number_mark(3);
    transfer_journal_add(journal, &mark);
    transfer_journal_close(&journal, false);
    journal = open_journal("cut", "to");
    assert_true(transfer_journal_has(journal, &mark));
    transfer_journal_close(&journal, false);
}

static void test_another_file_is_replaced(void **state)
{
    (void)state;
    transfer_journal *journal = open_journal("foreign", "to");
    transfer_journal_close(&journal, false);
    FILE *file = fopen(journal_file("foreign", "to"), "w");
    fputs("this is somebody else's file, whose bytes are no marks", file);
    fclose(file);
    journal = open_journal("foreign", "to");
    assert_int_equal(journal->count, 0);
    transfer_journal_close(&journal, false);
    assert_int_equal(file_size(journal_file("foreign", "to")), 16);
}

static void test_a_run_that_is_done_keeps_what_it_asked_for(void **state)
{
    (void)state;
    transfer_journal *journal = open_journal("done", "to");
    for (int i = 0; i < 100; i++) {
        transfer_mark mark = number_mark(i);
        transfer_journal_add(journal, &mark);
    }
    transfer_journal_close(&journal, true);
    assert_int_equal(file_size(journal_file("done", "to")), 16 * 101);
    journal = open_journal("done", "to");
    for (int i = 90; i < 110; i++) {
        transfer_mark mark = number_mark(i);
        assert_int_equal(transfer_journal_has(journal, &mark), i < 100);
    }
    transfer_journal_close(&journal, true);
    assert_int_equal(file_size(journal_file("done", "to")), 16 * 11);
    journal = open_journal("done", "to");
    for (int i = 0; i < 100; i++) {
        transfer_mark mark = number_mark(i);
        assert_int_equal(transfer_journal_has(journal, &mark), i >= 90);
    }
    transfer_journal_close(&journal, false);
}

static void test_without_a_home_there_is_none(void **state)
{
    (void)state;
    transfer_journal *journal = NULL;
    transfer_mark mark = number_mark(1);
    setenv("XDG_STATE_HOME", "/proc/nowhere", 1);
    assert_int_equal(transfer_journal_open(&journal, "a", "b"), SHOAL_SYSTEM);
    assert_null(journal);
    assert_false(transfer_journal_has(journal, &mark));
    transfer_journal_add(journal, &mark);
    transfer_journal_close(&journal, true);
    setenv("XDG_STATE_HOME", test_folder, 1);
}

static void test_memory_that_runs_out_is_reported(void **state)
{
    (void)state;
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        transfer_journal *journal = NULL;
        base_memory_fail_after(n);
        int status = transfer_journal_open(&journal, "done", "to");
        base_memory_fail_after(-1);
        done = status == SHOAL_OK;
        assert_true(done || (status == SHOAL_MEMORY && !journal));
        transfer_journal_close(&journal, false);
        assert_true(n < 100);
    }
}

static void *add_many(void *journal)
{
    for (int i = 0; i < 2000; i++) {
        transfer_mark mark = number_mark(i);
        if (!transfer_journal_has(journal, &mark))
            transfer_journal_add(journal, &mark);
    }
    return NULL;
}

static void test_threads_add_each_mark_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    transfer_journal *journal = open_journal("threads", "to");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, journal), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    transfer_journal_close(&journal, false);
    assert_int_equal(file_size(journal_file("threads", "to")), 16 * 2001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_depend_on_every_text_and_where_it_ends),
        cmocka_unit_test(test_what_was_added_is_there_the_next_time),
        cmocka_unit_test(test_a_mark_that_was_cut_is_forgotten_alone),
        cmocka_unit_test(test_another_file_is_replaced),
        cmocka_unit_test(test_a_run_that_is_done_keeps_what_it_asked_for),
        cmocka_unit_test(test_without_a_home_there_is_none),
        cmocka_unit_test(test_memory_that_runs_out_is_reported),
        cmocka_unit_test(test_threads_add_each_mark_once),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
