/* Workers on Slurm without a Slurm: its commands are scripts that tell what the test wants, and note how they were
 * called.  What a real one does is in tests/system/test_slurm.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/world.h"
#include "launch/slurm_command.h"
#include "launch/slurm_internal.h"
#include "launch/slurm_options.h"
#include "launch/slurm_script.h"
#include "process_world.h"

/* ---- commands ---------------------------------------------------------------------------------------------------- */

/* Each appends its words to `calls` and its input to `input`, and then does as the file `NAME.does` says. */
static const char stand_in[] = "#!/bin/sh\n"
                               "here=%s name=%s\n"
                               "echo \"$name $*\" >>$here/calls\n"
                               "[ $name = sbatch ] && cat >$here/input\n"
                               "[ -e $here/$name.does ] || exit 0\n"
                               ". $here/$name.does\n";
static const char *const commands[] = {"sbatch", "squeue", "scancel", "sacct"};

typedef struct cluster {
    char folder[64];
    launch_order order;
    launch_workers *workers;
    int said, gone;
    char line[1200], why[700];
    uint64_t who;
} cluster;

static void write_file(const cluster *self, const char *name, const char *format, ...)
{
    char path[160];
    va_list rest;
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    va_start(rest, format);
    vfprintf(file, format, rest);
    va_end(rest);
    assert_int_equal(fclose(file), 0);
}

static void read_file(const cluster *self, const char *name, char *out, size_t size)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    FILE *file = fopen(path, "r");
    size_t count = file ? fread(out, 1, size - 1, file) : 0;
    out[count] = '\0';
    if (file)
        fclose(file);
}

/* How often something stands in what was called. */
static int calls(const cluster *self, const char *text)
{
    char all[16384];
    int count = 0;
    read_file(self, "calls", all, sizeof all);
    for (const char *at = all; (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

static void note_said(void *context, const char *line)
{
    cluster *self = context;
    self->said++;
    snprintf(self->line, sizeof self->line, "%s", line);
}

static void note_gone(void *context, uint64_t worker, const char *why)
{
    cluster *self = context;
    self->gone++;
    self->who = worker;
    snprintf(self->why, sizeof self->why, "%s", why);
}

static int make_cluster(void **state)
{
    cluster *self = NULL;
    char path[256], name[160];
    assert_int_equal(base_alloc(&self, 1, sizeof *self, "a test"), SHOAL_OK);
    snprintf(self->folder, sizeof self->folder, "/tmp/shoal-test-slurm-XXXXXX");
    assert_non_null(mkdtemp(self->folder));
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        write_file(self, commands[i], stand_in, self->folder, commands[i]);
        snprintf(name, sizeof name, "%s/%s", self->folder, commands[i]);
        assert_int_equal(chmod(name, 0700), 0);
    }
    write_file(self, "sbatch.does", "echo 12\n");
    chance = 0;
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", self->folder);
    setenv("PATH", path, 1);
    self->order = (launch_order){.store_url = "az://acct/it's a box",
                                 .id = "kmeans-4f",
                                 .spec = "aa",
                                 .kernel = "auto",
                                 .gone = note_gone,
                                 .say = note_said,
                                 .context = self};
    base_world_set(&own_world);
    *state = self;
    return 0;
}

static int free_cluster(void **state)
{
    cluster *self = *state;
    char command[128];
    if (self->workers)
        slurm_array.free(self->workers);
    base_free(&self->workers);
    base_world_set(NULL);
    snprintf(command, sizeof command, "rm -rf %s", self->folder);
    assert_int_equal(system(command), 0);
    base_free(&self);
    return 0;
}

/* ---- the array --------------------------------------------------------------------------------------------------- */

/* Ticks until no command runs that a tick would wait for. */
static int settle(cluster *self)
{
    siginfo_t end = {0};
    int status = slurm_array.tick(self->workers);
    while (waitid(P_ALL, 0, &end, WEXITED | WNOWAIT) == 0) /* one has ended, and is to be noticed */
        status = slurm_array.tick(self->workers);
    return status;
}

static void pass(double seconds)
{
    clock_now += (int64_t)(seconds * 1e9);
}

static void start(cluster *self, const char *rest)
{
    assert_int_equal(base_alloc((void **)&self->workers, 1, slurm_array.size, "the workers"), SHOAL_OK);
    *self->workers = (launch_workers){.class = &slurm_array, .order = &self->order};
    if (slurm_array.start(self->workers, rest, self->order.helpers) < 0)
        fail_msg("%s", shoal_error());
    assert_int_equal(settle(self), SHOAL_OK);
}

/* One line of squeue, in the columns that were asked for. */
static void line_of(char *out, size_t size, const char *task, const char *state, int restarts, int end,
                    const char *comment)
{
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%-40s%-24s%-16d%-16d%-40s%-64s%-300s\n", task, state, restarts, end, "None",
             "h1", comment);
}

/* What squeue tells from now on, and a look at it. */
static int tells(cluster *self, const char *lines)
{
    write_file(self, "squeue.does", "cat <<'END'\n%sEND\n", lines);
    pass(11);
    return settle(self);
}

static int tells_one(cluster *self, const char *task, const char *state, int restarts, int end, const char *comment)
{
    char lines[2048] = "";
    line_of(lines, sizeof lines, task, state, restarts, end, comment);
    return tells(self, lines);
}

static void submits_one_array(void **state)
{
    cluster *self = *state;
    char lines[2048] = "", input[8192];
    start(self, "3?partition=spot&time=30&cpus=2&program=/opt/shoal");
    assert_int_equal(calls(self, "sbatch"), 1);
    assert_int_equal(calls(self, "--array=0-2"), 1);
    assert_int_equal(calls(self, "--partition=spot --time=30"), 1);
    assert_int_equal(calls(self, "--cpus-per-task=2"), 1);
    assert_int_equal(calls(self, "--requeue"), 1);
    assert_string_equal(self->line, "slurm: job 12: 3 workers submitted");
    read_file(self, "input", input, sizeof input);
    assert_non_null(strstr(input, "'az://acct/it'\\''s a box'"));
    assert_non_null(strstr(input, "program='/opt/shoal'"));
    assert_non_null(strstr(input, "'--slots' '2'"));
    assert_int_equal(slurm_array.running(self->workers), 0);
    line_of(lines, sizeof lines, "12_0", "RUNNING", 0, 0, "(null)");
    line_of(lines, sizeof lines, "12_1", "PENDING", 0, 0, "(null)");
    line_of(lines, sizeof lines, "12_2", "RUNNING", 0, 0, "(null)");
    line_of(lines, sizeof lines, "99_1", "FAILED", 0, 256, "of another starter");
    assert_int_equal(tells(self, lines), SHOAL_OK);
    assert_int_equal(slurm_array.running(self->workers), 2);
    assert_int_equal(self->gone, 0);
    assert_int_equal(slurm_array.wanted(self->workers), 3);
}

static void requeued_task_is_another_worker(void **state)
{
    cluster *self = *state;
    start(self, "1");
    tells_one(self, "12_0", "RUNNING", 0, 0, "(null)");
    tells_one(self, "12_0", "PENDING", 1, 0, "(null)");
    assert_int_equal(self->gone, 1);
    assert_int_equal(self->who & 0xffffff, 0); /* task 0, before it was started again */
    assert_int_equal(slurm_array.running(self->workers), 0);
    tells_one(self, "12_0", "RUNNING", 1, 0, "(null)");
    assert_int_equal(slurm_array.running(self->workers), 1);
    tells_one(self, "12_0", "RUNNING", 2, 0, "(null)");
    assert_int_equal(self->gone, 2);
    assert_int_equal(self->who & 0xffffff, 1);
    assert_int_equal(calls(self, "sbatch"), 1);
}

static void failure_is_told_and_tried_again(void **state)
{
    cluster *self = *state;
    start(self, "1");
    assert_int_equal(tells_one(self, "12_0", "FAILED", 0, 256, "shoal: no such store"), SHOAL_OK);
    assert_string_equal(self->why, "failed: no such store on h1");
    write_file(self, "sbatch.does", "echo '13;cluster'\n");
    pass(2);
    settle(self);
    assert_int_equal(calls(self, "sbatch"), 2);
    assert_int_equal(calls(self, "--array=0 "), 2);
    assert_true(tells_one(self, "13_0", "FAILED", 0, 256, "shoal: no such store") < 0);
    assert_non_null(strstr(shoal_error(), "no such store on h1"));
    assert_true(slurm_array.tick(self->workers) < 0); /* as long as nobody is left */
    assert_int_equal(self->gone, 2);
    assert_int_equal(calls(self, "sbatch"), 2);
}

static void what_slurm_ends_is_submitted_again(void **state)
{
    static const char *const ends[] = {"TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"};
    cluster *self = *state;
    char task[24];
    start(self, "1");
    for (int i = 0; i < 4; i++) {
        snprintf(task, sizeof task, "%d_0", 12 + i);
        write_file(self, "sbatch.does", "echo %d\n", 13 + i);
        assert_int_equal(tells_one(self, task, ends[i], 0, 15, "(null)"), SHOAL_OK);
        assert_non_null(strstr(self->why, ends[i]));
        pass(60);
        settle(self);
        assert_int_equal(calls(self, "sbatch"), 2 + i);
    }
    for (int i = 0; i < 20; i++) { /* progress pays for it */
        slurm_array.progress(self->workers);
        snprintf(task, sizeof task, "%d_0", 16 + i);
        write_file(self, "sbatch.does", "echo %d\n", 17 + i);
        assert_int_equal(tells_one(self, task, "PREEMPTED", 0, 0, "(null)"), SHOAL_OK);
        pass(60);
        settle(self);
    }
    assert_int_equal(calls(self, "sbatch"), 25);
}

/* A worker that was told to leave before its time limit ends well; the job goes on and needs it. */
static void what_left_is_submitted_again(void **state)
{
    cluster *self = *state;
    start(self, "1");
    assert_int_equal(tells_one(self, "12_0", "COMPLETED", 0, 0, "(null)"), SHOAL_OK);
    assert_int_equal(calls(self, "sbatch"), 1); /* not at once: the job may have ended just now */
    pass(6);
    settle(self);
    assert_int_equal(calls(self, "sbatch"), 2);
    assert_int_equal(self->gone, 0);
}

static void what_was_cancelled_stays_so(void **state)
{
    cluster *self = *state;
    char lines[2048] = "";
    start(self, "2");
    line_of(lines, sizeof lines, "12_0", "CANCELLED", 0, 15, "(null)");
    line_of(lines, sizeof lines, "12_1", "RUNNING", 0, 0, "(null)");
    assert_int_equal(tells(self, lines), SHOAL_OK);
    assert_int_equal(self->gone, 1);
    assert_true(tells_one(self, "12_1", "CANCELLED", 0, 15, "(null)") < 0);
    assert_string_equal(shoal_error(), "slurm: the last worker died: task 12_1 was cancelled");
    assert_int_equal(calls(self, "sbatch"), 1);
}

static void controller_that_is_away_is_waited_for(void **state)
{
    cluster *self = *state;
    write_file(self, "sbatch.does", "echo 'sbatch: error: Unable to contact slurm controller' >&2\nexit 1\n");
    start(self, "1");
    assert_string_equal(self->line, "slurm: sbatch: Unable to contact slurm controller; trying again");
    int before = calls(self, "sbatch");
    pass(200);
    settle(self);
    assert_true(calls(self, "sbatch") > before);
    assert_int_equal(self->said, 1); /* once */
    write_file(self, "sbatch.does", "echo 12\n");
    pass(200);
    assert_int_equal(settle(self), SHOAL_OK);
    assert_string_equal(self->line, "slurm: job 12: 1 worker submitted");
    write_file(self, "squeue.does", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2\nexit 1\n");
    pass(11);
    assert_int_equal(settle(self), SHOAL_OK);
    assert_int_equal(self->gone, 0);
    tells_one(self, "12_0", "RUNNING", 0, 0, "(null)");
    pass(200);
    settle(self);
    assert_int_equal(slurm_array.running(self->workers), 1);
}

static void refusal_is_final(void **state)
{
    cluster *self = *state;
    write_file(self, "sbatch.does", "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2\nexit 1\n");
    assert_int_equal(base_alloc((void **)&self->workers, 1, slurm_array.size, "the workers"), SHOAL_OK);
    *self->workers = (launch_workers){.class = &slurm_array, .order = &self->order};
    assert_int_equal(slurm_array.start(self->workers, "1", 0), SHOAL_OK);
    assert_true(settle(self) < 0);
    assert_string_equal(shoal_error(), "slurm: sbatch: Batch job submission failed: Invalid account");
    pass(1000);
    assert_true(settle(self) < 0);
    assert_int_equal(calls(self, "sbatch"), 1);
}

static void answer_that_is_no_number_is_refused(void **state)
{
    cluster *self = *state;
    write_file(self, "sbatch.does", "echo 'Welcome'\n");
    assert_int_equal(base_alloc((void **)&self->workers, 1, slurm_array.size, "the workers"), SHOAL_OK);
    *self->workers = (launch_workers){.class = &slurm_array, .order = &self->order};
    assert_int_equal(slurm_array.start(self->workers, "1", 0), SHOAL_OK);
    assert_true(settle(self) < 0);
    assert_non_null(strstr(shoal_error(), "'Welcome"));
}

/* What squeue lists no more, accounting knows; where there is none, it is lost. */
static void accounting_knows_what_squeue_forgot(void **state)
{
    cluster *self = *state;
    char lines[2048] = "";
    start(self, "3");
    line_of(lines, sizeof lines, "12_0", "RUNNING", 0, 0, "(null)");
    write_file(self, "sacct.does", "echo '12_1|CANCELLED by 1000|0:15|node7'; echo '12_2|FAILED|7:0|node8'\n");
    write_file(self, "sbatch.does", "echo 13\n");
    assert_int_equal(tells(self, lines), SHOAL_OK);
    assert_int_equal(calls(self, "sacct"), 1);
    assert_int_equal(self->gone, 2);
    assert_string_equal(self->why, "failed: exit code 7 on node8");
    assert_int_equal(slurm_array.running(self->workers), 1);
    write_file(self, "sacct.does", "echo 'Slurm accounting storage is disabled' >&2\nexit 1\n");
    tells(self, ""); /* 12_2 is submitted again */
    assert_int_equal(tells(self, ""), SHOAL_OK);
    assert_int_equal(self->gone, 4); /* 12_0 and 13_2 */
    assert_string_equal(self->why, "died: Slurm no longer knows it");
}

static void scales(void **state)
{
    cluster *self = *state;
    char lines[4096] = "", task[24];
    start(self, "2");
    write_file(self, "sbatch.does", "echo 13\n");
    assert_int_equal(slurm_array.scale(self->workers, 5), SHOAL_OK);
    settle(self);
    assert_int_equal(calls(self, "--array=2-4"), 1);
    for (int i = 0; i < 5; i++) {
        snprintf(task, sizeof task, "%d_%d", i < 2 ? 12 : 13, i);
        line_of(lines, sizeof lines, task, "RUNNING", 0, 0, "(null)");
    }
    assert_int_equal(tells(self, lines), SHOAL_OK);
    assert_int_equal(slurm_array.running(self->workers), 5);
    assert_int_equal(slurm_array.scale(self->workers, 1), SHOAL_OK);
    settle(self);
    assert_int_equal(calls(self, "scancel 12_[1]"), 1);
    assert_int_equal(calls(self, "scancel 13_[2-4]"), 1);
    assert_int_equal(slurm_array.running(self->workers), 1);
    assert_int_equal(self->gone, 0);
    write_file(self, "sbatch.does", "echo 14\n");
    assert_int_equal(slurm_array.scale(self->workers, 2), SHOAL_OK);
    settle(self);
    assert_int_equal(calls(self, "--array=1 "), 1);
}

static void leaves_all_at_once(void **state)
{
    cluster *self = *state;
    char lines[2048] = "";
    start(self, "2");
    line_of(lines, sizeof lines, "12_0", "RUNNING", 0, 0, "(null)");
    line_of(lines, sizeof lines, "12_1", "PENDING", 0, 0, "(null)");
    tells(self, lines);
    slurm_array.tell_leave(self->workers);
    assert_false(slurm_array.is_over(self->workers));
    lines[0] = '\0';
    line_of(lines, sizeof lines, "12_0", "COMPLETING", 0, 0, "(null)");
    line_of(lines, sizeof lines, "12_1", "CANCELLED", 0, 0, "(null)");
    write_file(self, "squeue.does", "cat <<'END'\n%sEND\n", lines);
    slurm_array.end(self->workers);
    assert_true(slurm_array.is_over(self->workers));
    assert_int_equal(calls(self, "scancel --name=shoal-kmeans-4f\n"), 1);
    assert_int_equal(self->gone, 0);
}

static void waits_without_cancelling(void **state)
{
    cluster *self = *state;
    start(self, "1");
    tells_one(self, "12_0", "RUNNING", 0, 0, "(null)");
    assert_false(slurm_array.is_over(self->workers));
    tells_one(self, "12_0", "COMPLETED", 0, 0, "(null)");
    assert_true(slurm_array.is_over(self->workers));
    pass(100);
    settle(self);
    assert_int_equal(calls(self, "scancel"), 0);
    assert_int_equal(calls(self, "sbatch"), 1);
}

/* Whichever allocation fails, that is said, and nothing is left behind. */
static void memory_may_be_short(void **state)
{
    cluster *self = *state;
    int status = SHOAL_MEMORY;
    for (int64_t n = 0; status < 0; n++) {
        assert_true(n < 1000);
        if (self->workers)
            slurm_array.free(self->workers);
        base_free(&self->workers);
        assert_int_equal(base_alloc((void **)&self->workers, 1, slurm_array.size, "the workers"), SHOAL_OK);
        *self->workers = (launch_workers){.class = &slurm_array, .order = &self->order};
        base_memory_fail_after(n);
        status = slurm_array.start(self->workers, "3?partition=spot&cpus=2&program=/opt/shoal", 2);
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
    }
    assert_int_equal(settle(self), SHOAL_OK);
    assert_int_equal(calls(self, "sbatch"), 1);
}

/* ---- the script -------------------------------------------------------------------------------------------------- */

/* Runs it as Slurm would, with a program that prints its words. */
static void run_script(cluster *self, int task, int restarts, char *out, size_t size)
{
    char command[512];
    snprintf(
        command, sizeof command,
        "cd %s && SLURM_ARRAY_TASK_ID=%d SLURM_RESTART_COUNT=%d SLURM_JOB_ID=77 sh ./input; echo \"exit $?\" >>ran",
        self->folder, task, restarts);
    assert_int_equal(system(command), 0);
    read_file(self, "ran", out, size);
    snprintf(command, sizeof command, "rm -f %s/ran", self->folder);
    assert_int_equal(system(command), 0);
}

static void script_calls_workers(void **state)
{
    cluster *self = *state;
    char rest[160], out[4096], id[40];
    self->order.helpers = 3;
    write_file(self, "program", "#!/bin/sh\nprintf '%%s\\n' \"$*\" >>%s/ran\necho 'shoal: it is late' >&2\nexit 7\n",
               self->folder);
    write_file(self, "scontrol", "#!/bin/sh\necho \"scontrol $*\" >>%s/ran\n", self->folder);
    snprintf(rest, sizeof rest, "%s/program", self->folder);
    assert_int_equal(chmod(rest, 0700), 0);
    snprintf(rest, sizeof rest, "%s/scontrol", self->folder);
    assert_int_equal(chmod(rest, 0700), 0);
    snprintf(rest, sizeof rest, "2?program=%s/program", self->folder);
    start(self, rest);
    assert_int_equal(calls(self, "--array=0-4"), 1); /* and those that only reduce */
    static const char *const roles[] = {"last", "reduce", "reduce", "map", "map"};
    for (int task = 0; task < 5; task++) {
        run_script(self, task, task, out, sizeof out);
        snprintf(id, sizeof id, "--id %016llx", (unsigned long long)slurm_script_worker("0101010101", task, task));
        assert_non_null(strstr(out, "--store az://acct/it's a box --job kmeans-4f"));
        assert_non_null(strstr(out, id));
        snprintf(id, sizeof id, "--roles %s", roles[task]);
        assert_non_null(strstr(out, id));
        assert_non_null(strstr(out, "scontrol update JobId=77 Comment=shoal: it is late\n"));
        assert_non_null(strstr(out, "exit 7"));
    }
    write_file(self, "program", "#!/bin/sh\nexit 0\n");
    run_script(self, 0, 0, out, sizeof out);
    assert_string_equal(out, "exit 0\n");
    snprintf(rest, sizeof rest, "%s/program", self->folder);
    assert_int_equal(unlink(rest), 0);
    run_script(self, 0, 0, out, sizeof out);
    assert_non_null(strstr(out, "there is no /tmp/"));
    assert_non_null(strstr(out, "exit 1"));
}

/* Before a task's time limit Slurm sends a signal to the script alone. */
static void script_hands_on_the_signal(void **state)
{
    static const char waits[] =
        "#!/bin/sh\n"
        "trap 'echo told >>%s/ran; exit 0' TERM\n"
        "echo up >>%s/ran\n"
        "for i in $(seq 1000); do sleep 0.01; done\n"; /* and no longer, should nobody tell it */
    static const char runs[] =
        "cd %s && touch ran && { SLURM_ARRAY_TASK_ID=0 SLURM_JOB_ID=77 sh ./input & } && until grep -q up ran; do "
        "sleep 0.01; done; kill -TERM $!; wait $!; echo \"exit $?\" >>ran";
    cluster *self = *state;
    char text[512];
    write_file(self, "program", waits, self->folder, self->folder);
    snprintf(text, sizeof text, "%s/program", self->folder);
    assert_int_equal(chmod(text, 0700), 0);
    snprintf(text, sizeof text, "1?program=%s/program", self->folder);
    start(self, text);
    snprintf(text, sizeof text, runs, self->folder);
    assert_int_equal(system(text), 0);
    read_file(self, "ran", text, sizeof text);
    assert_string_equal(text, "up\ntold\nexit 0\n");
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static void options_are_read(void **state)
{
    slurm_options options;
    (void)state;
    assert_int_equal(slurm_options_parse(&options, "64"), SHOAL_OK);
    assert_int_equal(options.workers, 64);
    assert_int_equal(slurm_options_threads(&options, 0), 1);
    slurm_options_release(&options);
    assert_int_equal(
        slurm_options_parse(&options, "8?cpus=4&constraint=fast%26big&mem=2G&qos=low&account=a&exclude=h1,h2"),
        SHOAL_OK);
    assert_int_equal(slurm_options_threads(&options, 0), 4);
    assert_int_equal(slurm_options_threads(&options, 2), 2);
    assert_string_equal(options.argument[0], "--constraint=fast&big");
    assert_int_equal(options.count, 5);
    slurm_options_release(&options);
}

static void wrong_options_are_named(void **state)
{
    static const struct {
        const char *text, *sentence;
    } wrong[] = {
        {"", "slurm:N"},
        {"0", "slurm:N"},
        {"5000", "slurm:N"},
        {"many", "slurm:N"},
        {"4?", "OPTION=VALUE"},
        {"4?partition", "'partition' should be OPTION=VALUE"},
        {"4?partition=", "partition has no value"},
        {"4?wrap=rm", "unknown option 'wrap'"},
        {"4?time=30&&mem=1", "OPTION=VALUE"},
        {"4?cpus=none", "cpus=none should be a number"},
        {"4?program=shoal", "program=shoal should be an absolute path"},
        {"4?mem=1%0a2", "characters it can't have"},
        {"4?a-name-that-is-longer-than-any-option-there-is=1", "unknown option"},
    };
    slurm_options options;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(slurm_options_parse(&options, wrong[i].text), SHOAL_USAGE);
        if (!strstr(shoal_error(), wrong[i].sentence))
            fail_msg("'%s': %s", wrong[i].text, shoal_error());
    }
}

static void asks_for_what_it_needs(void **state)
{
    launch_ask ask = {0};
    (void)state;
    assert_int_equal(launch_slurm.ask(&ask, "4?cpus=2", "az", 0), SHOAL_OK);
    assert_true(ask.far && !ask.through && ask.workers == 4 && ask.slots == 8);
    assert_int_equal(launch_slurm.ask(&ask, "2", "dir", 3), SHOAL_OK);
    assert_true(ask.through && ask.workers == 6 && ask.slots == 14);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static void missing_command_is_named(void **state)
{
    slurm_command command = SLURM_COMMAND_NONE;
    const char *const words[] = {"sbatch-that-is-not-there", NULL};
    (void)state;
    assert_int_equal(slurm_command_start(&command, words, NULL, 1), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "there is no sbatch-that-is-not-there on this machine"));
}

static void silent_command_is_ended(void **state)
{
    slurm_command command = SLURM_COMMAND_NONE;
    const char *const words[] = {"sleep", "1000", NULL};
    char *text = NULL;
    (void)state;
    assert_int_equal(slurm_command_start(&command, words, NULL, 1), SHOAL_OK);
    assert_false(slurm_command_is_over(&command));
    pass(2);
    for (int i = 0; i < 300000 && !slurm_command_is_over(&command); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(slurm_command_finish(&command, &text), SHOAL_AGAIN);
    assert_string_equal(shoal_error(), "slurm: sleep does not answer");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_cluster, free_cluster)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(submits_one_array),
        CASE(requeued_task_is_another_worker),
        CASE(failure_is_told_and_tried_again),
        CASE(what_slurm_ends_is_submitted_again),
        CASE(what_left_is_submitted_again),
        CASE(what_was_cancelled_stays_so),
        CASE(controller_that_is_away_is_waited_for),
        CASE(refusal_is_final),
        CASE(answer_that_is_no_number_is_refused),
        CASE(accounting_knows_what_squeue_forgot),
        CASE(scales),
        CASE(leaves_all_at_once),
        CASE(waits_without_cancelling),
        CASE(memory_may_be_short),
        CASE(script_calls_workers),
        CASE(script_hands_on_the_signal),
        CASE(options_are_read),
        CASE(wrong_options_are_named),
        CASE(asks_for_what_it_needs),
        CASE(missing_command_is_named),
        CASE(silent_command_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
