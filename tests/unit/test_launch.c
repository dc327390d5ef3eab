/* Workers as processes: started, started again after growing pauses, given up with their reason, scaled, ended.  The
 * clock is the test's own, so that a minute takes no time; processes are real. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/world.h"
#include "launch/launch_internal.h"
#include "process_world.h"

/* What the workers of a test do, and what became of them. */
typedef struct story {
    const char *script; /* of sh; $0 is the worker's number */
    int started, gone;
    uint64_t last_gone;
    uint64_t last_started;
    char number[24], why[700];
} story;

static void arguments(void *context, launch_arguments *out, int64_t slot, uint64_t worker)
{
    story *self = context;
    self->started++;
    self->last_started = worker;
    snprintf(self->number, sizeof self->number, "%lld", (long long)slot);
    out->argument[0] = "-c";
    out->argument[1] = self->script;
    out->argument[2] = self->number;
    out->count = 3;
}

static void gone(void *context, uint64_t worker, const char *why)
{
    story *self = context;
    self->gone++;
    self->last_gone = worker;
    snprintf(self->why, sizeof self->why, "%s", why);
}

static launch_crew *launch(story *self, int64_t count)
{
    launch_crew *workers = NULL;
    const launch_crew_options options = {.program = "/bin/sh", .arguments = arguments, .gone = gone, .context = self};
    if (launch_crew_new(&workers, count, &options) < 0)
        fail_msg("%s", shoal_error());
    return workers;
}

static void stop(launch_crew *workers, double seconds)
{
    launch_crew_tell_leave(workers);
    if (!launch_crew_wait(workers, seconds))
        launch_crew_end(workers);
}

/* Waits until some child has ended, and leaves it to be noticed. */
static pid_t await_end(void)
{
    siginfo_t end = {0};
    if (waitid(P_ALL, 0, &end, WEXITED | WNOWAIT) < 0)
        fail_msg("there is no child to wait for");
    return end.si_pid;
}

static void ticks(launch_crew *workers)
{
    if (launch_crew_tick(workers) < 0)
        fail_msg("%s", shoal_error());
}

static void pass(double seconds)
{
    clock_now += (int64_t)(seconds * 1e9);
}

static int own_clock(void **state)
{
    (void)state;
    base_world_set(&own_world);
    return 0;
}

static int real_clock(void **state)
{
    (void)state;
    base_world_set(NULL);
    return 0;
}

static void test_what_is_asked_for(void **state)
{
    static const char *const wrong[] = {
        "local", "local:", "local:0",  "local:-1",  "local:x",    "local:5000",    "0",    "5000", "-1", "4x",
        "",      "ftp:a",  "ssh:1..2", "local:1..", "local:1..x", "local:1..2..3", "2..1", "0..2"};
    launch_ask ask;
    (void)state;
    const launch_specs two = {.count = 2, .text = {"local:8", "2"}}; /* a bare number is local:N */
    assert_int_equal(launch_ask_for(&ask, &two, "dir", 3), SHOAL_OK);
    assert_int_equal(ask.workers, 10);
    assert_int_equal(ask.slots, 30);
    assert_true(ask.local && !ask.far && !ask.through && ask.patience == 60);
    assert_int_equal(ask.count, 2);
    assert_int_equal(ask.part[0].workers, 8);
    assert_int_equal(ask.part[1].workers, 2);
    const launch_specs mixed = {.count = 3, .text = {"ssh:corn10,corn11:4", "slurm:5", "local:1"}};
    assert_int_equal(launch_ask_for(&ask, &mixed, "az", 0), SHOAL_OK);
    assert_true(!ask.local && ask.far && ask.patience == 24 * 3600); /* the longest */
    assert_string_equal(ask.through, "ssh");                         /* Slurm's reach this store by themselves */
    assert_int_equal(ask.part[0].workers, 5);
    assert_int_equal(launch_ask_for(&ask, &mixed, "dir", 0), SHOAL_OK);
    assert_string_equal(ask.through, "slurm");
    assert_int_equal(launch_ask_for(&ask, &(launch_specs){0}, "dir", 0), SHOAL_OK);
    assert_true(ask.local && !ask.through && ask.workers == 0 && ask.count == 0 && ask.patience == 3600);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const launch_specs specs = {.count = 1, .text = {wrong[i]}};
        assert_int_equal(launch_ask_for(&ask, &specs, "dir", 0), SHOAL_USAGE);
        assert_non_null(strstr(shoal_error(), wrong[i]));
    }
    const launch_specs many = {.count = 2, .text = {"local:4000", "local:97"}};
    assert_int_equal(launch_ask_for(&ask, &many, NULL, 0), SHOAL_USAGE);
}

/* What a group says of itself, with workers that can't start a job: /bin/sh takes no `worker`. */
static void test_group_shares_counts(void **state)
{
    launch_group *group = NULL;
    const launch_specs specs = {.count = 2, .text = {"local:1", "local:3"}};
    launch_ask ask;
    const launch_order order = {
        .program = "/bin/false", .store_url = "dir:x", .id = "a", .spec = "b", .kernel = "auto"};
    (void)state;
    assert_int_equal(launch_ask_for(&ask, &specs, "dir", 0), SHOAL_OK);
    assert_int_equal(launch_new(&group, &ask, &order), SHOAL_OK);
    assert_int_equal(launch_wanted(group), 4);
    assert_int_equal(launch_scale(group, 9), SHOAL_OK);
    assert_int_equal(launch_wanted(group), 9);
    assert_int_equal(launch_running(group), 9);
    assert_int_equal(launch_scale(group, 5000), SHOAL_USAGE);
    launch_stop(group, 5);
    assert_int_equal(launch_running(group), 0);
    launch_free(&group);
}

static void test_arguments_of_a_worker(void **state)
{
    launch_arguments made;
    const launch_order order = {.id = "kmeans-1", .spec = "abc", .kernel = "auto", .helpers = 2};
    const launch_worker far = {.id = 0x12,
                               .slot = 1,
                               .threads = 3,
                               .memory = 5000000000,
                               .store_url = "pipe:/s",
                               .cache = "/c",
                               .parent = 77,
                               .data_url = "pipe:/d"};
    static const char *const expected[] = {
        "worker",           "--store", "pipe:/s", "--job",    "kmeans-1",   "--spec",   "abc",    "--id",
        "0000000000000012", "--slots", "3",       "--memory", "5000000000", "--kernel", "auto",   "--data-store",
        "pipe:/d",          "--cache", "/c",      "--parent", "77",         "--roles",  "reduce", "--quiet"};
    (void)state;
    launch_arguments_of(&made, &order, &far);
    assert_int_equal(made.count, sizeof expected / sizeof *expected);
    for (int i = 0; i < made.count; i++)
        assert_string_equal(made.argument[i], expected[i]);
}

static void test_a_good_end_is_the_end(void **state)
{
    story self = {.script = "exit 0"};
    launch_crew *workers = launch(&self, 2);
    (void)state;
    assert_int_equal(launch_crew_running(workers), 2);
    while (launch_crew_running(workers) > 0) {
        await_end();
        ticks(workers);
    }
    pass(100);
    ticks(workers);
    assert_int_equal(self.started, 2);
    assert_int_equal(self.gone, 0);
    launch_crew_free(&workers);
}

static void test_the_killed_are_replaced(void **state)
{
    story self = {.script = "kill -9 $$"};
    launch_crew *workers = launch(&self, 1);
    (void)state;
    uint64_t first = self.last_started;
    await_end();
    ticks(workers); /* at once at first */
    assert_int_equal(self.started, 2);
    assert_string_equal(self.why, "died: signal 9");
    assert_true(self.last_gone == first && self.last_started != first);
    await_end();
    ticks(workers); /* then after half a second, and after one */
    assert_int_equal(self.started, 2);
    pass(0.49);
    ticks(workers);
    assert_int_equal(self.started, 2);
    pass(0.02);
    ticks(workers);
    assert_int_equal(self.started, 3);
    await_end();
    ticks(workers);
    pass(1.01);
    ticks(workers);
    assert_int_equal(self.started, 4);
    await_end();
    ticks(workers); /* three times a minute and no more */
    pass(50);
    ticks(workers);
    assert_int_equal(self.started, 4);
    pass(10);
    ticks(workers);
    assert_int_equal(self.started, 5);
    await_end();
    ticks(workers);
    stop(workers, 1);
    launch_crew_free(&workers);
}

/* Deaths of a worker that nothing helps, until it is given up; returns how many. */
static int die_until_given_up(launch_crew *workers, story *self, int progress_after)
{
    int status = SHOAL_OK;
    while (status == SHOAL_OK && self->gone < 100) {
        if (launch_crew_running(workers) > 0)
            await_end();
        status = launch_crew_tick(workers);
        if (self->gone == progress_after)
            launch_crew_progress(workers);
        pass(61);
    }
    return self->gone;
}

static void test_ten_times_without_progress(void **state)
{
    story self = {.script = "kill -9 $$"};
    launch_crew *workers = launch(&self, 1);
    (void)state;
    assert_int_equal(die_until_given_up(workers, &self, -1), 11);
    assert_non_null(strstr(shoal_error(), "died: signal 9"));
    launch_crew_free(&workers);
    self = (story){.script = "kill -9 $$"};
    workers = launch(&self, 1);
    assert_int_equal(die_until_given_up(workers, &self, 5), 16); /* progress forgives what was before */
    launch_crew_free(&workers);
}

static void test_failures_are_given_up_sooner_and_say_why(void **state)
{
    story self = {.script = "echo one >&2; echo 'shoal: there is no such store' >&2; exit 1"};
    launch_crew *workers = launch(&self, 1);
    (void)state;
    assert_int_equal(die_until_given_up(workers, &self, -1), 2);
    assert_string_equal(self.why, "failed: there is no such store");
    assert_non_null(strstr(shoal_error(), "failed: there is no such store"));
    launch_crew_free(&workers);
    self = (story){.script = "kill -SEGV $$"};
    workers = launch(&self, 1);
    assert_int_equal(die_until_given_up(workers, &self, -1), 2);
    launch_crew_free(&workers);
    self = (story){.script = "exit 3"};
    workers = launch(&self, 1);
    assert_int_equal(die_until_given_up(workers, &self, -1), 11); /* the store was away: it may come back */
    assert_string_equal(self.why, "failed: exit code 3");
    launch_crew_free(&workers);
}

/* One that works is hope enough. */
static void test_one_that_works_is_enough(void **state)
{
    story self = {.script = "if [ $0 = 0 ]; then exit 1; else exec sleep 100; fi"};
    launch_crew *workers = launch(&self, 2);
    (void)state;
    while (self.gone < 2) {
        ticks(workers);
        pass(61);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    ticks(workers);
    assert_int_equal(self.started, 3);
    assert_int_equal(launch_crew_running(workers), 1);
    stop(workers, 1e6);
    launch_crew_free(&workers);
}

static void test_scaling(void **state)
{
    story self = {.script = "exec sleep 100"};
    launch_crew *workers = launch(&self, 1);
    (void)state;
    assert_int_equal(launch_crew_scale(workers, 4), SHOAL_OK);
    assert_int_equal(launch_crew_running(workers), 4);
    assert_int_equal(launch_crew_scale(workers, 2), SHOAL_OK);
    assert_int_equal(launch_crew_wanted(workers), 2);
    while (launch_crew_running(workers) > 2) {
        await_end();
        ticks(workers);
    }
    pass(100);
    ticks(workers);
    assert_int_equal(launch_crew_running(workers), 2);
    assert_int_equal(self.started, 4);
    assert_int_equal(launch_crew_scale(workers, 0), SHOAL_OK);
    assert_int_equal(launch_crew_scale(workers, 2),
                     SHOAL_OK); /* before they are gone: their successors come after them */
    while (self.started < 6) {  /* both may end before the first look */
        await_end();
        ticks(workers);
    }
    assert_int_equal(launch_crew_running(workers), 2);
    assert_int_equal(self.started, 6);
    assert_int_equal(launch_crew_scale(workers, 5000), SHOAL_USAGE);
    stop(workers, 1e6);
    assert_int_equal(launch_crew_running(workers), 0);
    launch_crew_free(&workers);
}

/* Each says by a byte in a pipe that it does not listen any more. */
static void test_who_does_not_leave_is_ended(void **state)
{
    int deaf[2];
    char script[100], byte;
    (void)state;
    assert_int_equal(pipe(deaf), 0);
    snprintf(script, sizeof script, "trap '' TERM; printf x >/proc/%d/fd/%d; exec sleep 100", getpid(), deaf[1]);
    story self = {.script = script};
    launch_crew *workers = launch(&self, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(read(deaf[0], &byte, 1), 1);
    close(deaf[0]);
    close(deaf[1]);
    int64_t before = base_now();
    stop(workers, 0.3);
    double took = (double)(base_now() - before) * 1e-9;
    assert_true(took >= 0.3);
    assert_int_equal(launch_crew_running(workers), 0);
    assert_string_equal(self.why, "died: signal 9");
    launch_crew_free(&workers);
}

/* SIGTERM waits until a process continues. */
static void test_who_is_stopped_leaves(void **state)
{
    story self = {.script = "trap 'exit 0' TERM; kill -STOP $$; exec sleep 100"};
    launch_crew *workers = launch(&self, 1);
    siginfo_t change = {0};
    (void)state;
    assert_int_equal(waitid(P_ALL, 0, &change, WSTOPPED | WNOWAIT), 0);
    launch_crew_tell_leave(workers);
    bool left = launch_crew_wait(workers, 20);
    launch_crew_end(workers);
    launch_crew_free(&workers);
    assert_true(left);
}

static void test_what_can_not_be_started(void **state)
{
    launch_crew *workers = NULL;
    story self = {.script = ""};
    const launch_crew_options options = {.program = "/nowhere/shoal", .arguments = arguments, .context = &self};
    (void)state;
    assert_int_equal(launch_crew_new(&workers, 2, &options), SHOAL_SYSTEM);
    assert_null(workers);
    assert_non_null(strstr(shoal_error(), "/nowhere/shoal"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_asked_for),
        cmocka_unit_test(test_group_shares_counts),
        cmocka_unit_test(test_arguments_of_a_worker),
        cmocka_unit_test_setup_teardown(test_a_good_end_is_the_end, own_clock, real_clock),
        cmocka_unit_test_setup_teardown(test_the_killed_are_replaced, own_clock, real_clock),
        cmocka_unit_test_setup_teardown(test_ten_times_without_progress, own_clock, real_clock),
        cmocka_unit_test_setup_teardown(test_failures_are_given_up_sooner_and_say_why, own_clock, real_clock),
        cmocka_unit_test_setup_teardown(test_one_that_works_is_enough, own_clock, real_clock),
        cmocka_unit_test_setup_teardown(test_scaling, own_clock, real_clock),
        cmocka_unit_test(test_who_does_not_leave_is_ended),
        cmocka_unit_test(test_who_is_stopped_leaves),
        cmocka_unit_test(test_what_can_not_be_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
