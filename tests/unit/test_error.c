/* Messages: one line, of the thread that failed, safe to print. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

static void test_fail_returns_its_status(void **state)
{
    (void)state;
    assert_string_equal(shoal_error(), "");
    assert_int_equal(shoal_fail(SHOAL_INVALID, "%s: row %d", "a.npy", 7), SHOAL_INVALID);
    assert_string_equal(shoal_error(), "a.npy: row 7");
    assert_int_equal(shoal_fail(SHOAL_USAGE, "again"), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "again");
}

static void test_a_message_may_hold_the_last_one(void **state)
{
    (void)state;
    shoal_fail(SHOAL_SYSTEM, "inner");
    shoal_fail(SHOAL_SYSTEM, "outer: %s", shoal_error());
    assert_string_equal(shoal_error(), "outer: inner");
    shoal_fail_errno(SHOAL_SYSTEM, ENOENT, "%s", shoal_error());
    assert_string_equal(shoal_error(), "outer: inner: No such file or directory");
}

static void test_errno_is_told(void **state)
{
    (void)state;
    assert_int_equal(shoal_fail_errno(SHOAL_SYSTEM, ENOSPC, "%s: can't write", "x"), SHOAL_SYSTEM);
    assert_string_equal(shoal_error(), "x: can't write: No space left on device");
}

static void test_control_characters_are_replaced(void **state)
{
    (void)state;
    shoal_fail(SHOAL_INVALID, "a\x1b[2Jb\nc\rd\te\x7f\a caf\xc3\xa9");
    assert_string_equal(shoal_error(), "a?[2Jb?c?d?e?? caf\xc3\xa9");
}

static void test_long_messages_are_cut(void **state)
{
    char text[5000];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    shoal_fail(SHOAL_INVALID, "%s", text);
    assert_true(strlen(shoal_error()) > 500 && strlen(shoal_error()) < 5000);
    assert_int_equal(strspn(shoal_error(), "x"), strlen(shoal_error()));
    shoal_fail_errno(SHOAL_INVALID, ENOENT, "%s", text);
    assert_int_equal(strspn(shoal_error(), "x"), strlen(shoal_error()));
    shoal_fail(SHOAL_INVALID, "%s", "");
    assert_string_equal(shoal_error(), "");
}

static void *other_thread(void *argument)
{
    (void)argument;
    if (strcmp(shoal_error(), "") != 0)
        return "a new thread starts with a message";
    shoal_fail(SHOAL_INVALID, "theirs");
    return strcmp(shoal_error(), "theirs") == 0 ? NULL : "lost its message";
}

static void test_each_thread_has_its_own(void **state)
{
    (void)state;
    shoal_fail(SHOAL_INVALID, "mine");
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *complaint = NULL;
        assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
        assert_int_equal(pthread_join(thread, &complaint), 0);
        assert_null(complaint);
        assert_string_equal(shoal_error(), "mine");
    }
}

static void test_a_bug_aborts_and_says_where(void **state)
{
    (void)state;
    int ends[2], how = 0;
    char text[512] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        SHOAL_BUG("%d is not a number", 7);
    }
    close(ends[1]);
    size_t size = 0;
    for (ssize_t got = 1; got > 0; size += (size_t)got) /* until the child is gone */
        if ((got = read(ends[0], text + size, sizeof text - 1 - size)) < 0)
            got = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
    assert_non_null(strstr(text, "7 is not a number"));
    assert_non_null(strstr(text, "test_error.c:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fail_returns_its_status),
                                       cmocka_unit_test(test_a_message_may_hold_the_last_one),
                                       cmocka_unit_test(test_errno_is_told),
                                       cmocka_unit_test(test_control_characters_are_replaced),
                                       cmocka_unit_test(test_long_messages_are_cut),
                                       cmocka_unit_test(test_each_thread_has_its_own),
                                       cmocka_unit_test(test_a_bug_aborts_and_says_where)};
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
