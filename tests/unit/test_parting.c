/* What is left when a signal ends a process at once: none of the children that are listed, and a sentence. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/io.h"
#include "base/parting.h"
#include "base/spawn.h"

static pid_t start_child(void)
{
    const char *words[] = {"sleep", "1000", NULL};
    pid_t process = 0;
    assert_int_equal(base_spawn(&process, &(base_spawning){.words = words, .stream = {-1, -1, -1}}), 0);
    base_parting_add(process);
    return process;
}

static void listed_children_end_and_others_do_not(void **state)
{
    pid_t ended = start_child(), spared = start_child();
    int how = 0;
    (void)state;
    base_parting_remove(spared);
    base_part();
    base_wait(ended, &how);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    assert_int_equal(waitpid(spared, &how, WNOHANG), 0);
    base_parting_add(spared);
    base_part();
    base_wait(spared, &how);
    assert_true(WIFSIGNALED(how));
}

/* What base_part writes to standard error. */
static const char *part_and_read(void)
{
    static char text[128];
    size_t got = 0;
    int file = memfd_create("test", MFD_CLOEXEC), kept = dup(STDERR_FILENO);
    assert_true(file >= 0 && kept >= 0 && dup2(file, STDERR_FILENO) >= 0);
    base_part();
    dup2(kept, STDERR_FILENO);
    assert_int_equal(base_read_all_at(file, text, sizeof text - 1, 0, &got), 0);
    text[got] = '\0';
    close(kept);
    close(file);
    return text;
}

static void the_line_is_said_once(void **state)
{
    (void)state;
    base_parting_say("how to go on\n");
    assert_string_equal(part_and_read(), "how to go on\n");
    assert_string_equal(part_and_read(), "");
    base_parting_say("never mind\n");
    base_parting_say(NULL);
    assert_string_equal(part_and_read(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listed_children_end_and_others_do_not),
        cmocka_unit_test(the_line_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
