/* What a rank does that could not meet the others: MPICH's launcher, which minds no exit code, is told to end them
 * all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/ranks.h>

/* What the launcher would read on the descriptor that PMI_FD names; "" for nothing. */
static void say_give_up(char out[64], const shoal_ranks_started *started, const char *variable)
{
    int ends[2];
    char number[32];
    assert_int_equal(pipe(ends), 0);
    snprintf(number, sizeof number, variable, ends[1]);
    setenv("PMI_FD", number, 1);
    shoal_ranks_give_up(started);
    unsetenv("PMI_FD");
    close(ends[1]);
    ssize_t got = read(ends[0], out, 63);
    close(ends[0]);
    assert_true(got >= 0);
    out[got] = '\0';
}

static void test_the_launcher_of_mpich_is_told(void **state)
{
    const shoal_ranks_started mpich = {.size = 2, .launcher = "mpirun", .kind = "mpich"};
    char said[64];
    (void)state;
    say_give_up(said, &mpich, "%d");
    assert_string_equal(said, "cmd=abort exitcode=1\n");
}

static void test_others_are_not(void **state)
{
    const shoal_ranks_started mpirun = {.size = 2, .launcher = "mpirun"}, srun = {.size = 2, .launcher = "srun"},
                              nobody = {.size = 1};
    char said[64];
    (void)state;
    say_give_up(said, &srun, "%d");
    assert_string_equal(said, "");
    say_give_up(said, &nobody, "%d");
    assert_string_equal(said, "");
    say_give_up(said, &mpirun, "x%d");
    assert_string_equal(said, "");
    shoal_ranks_give_up(&mpirun);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_launcher_of_mpich_is_told),
        cmocka_unit_test(test_others_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
