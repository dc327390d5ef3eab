/* src/learn/exec: programs that answer, and every way in which they do not.  The programs are a line of shell each.
 * Labels: threads */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/engine.h>
#include <shoal/exec.h>

#include "base/memory.h"
#include "base/world.h"
#include "learn/exec/exec_program.h"

extern char **environ;

static char folder[] = "/tmp/shoal-exec-XXXXXX";
static char command_path[64], files_path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(command_path, sizeof command_path, "%s/command", folder);
    snprintf(files_path, sizeof files_path, "%s/files", folder);
    return mkdir(files_path, 0700);
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(command_path);
    rmdir(files_path);
    return rmdir(folder); /* fails when a test has left a file behind */
}

static void assert_says(const char *part)
{
    if (!strstr(shoal_error(), part))
        fail_msg("'%s' does not say '%s'", shoal_error(), part);
}

static void assert_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* ---- one program ------------------------------------------------------------------------------------------------- */

static exec_program *started(const char *text)
{
    const exec_command command = {.text = text, .folder = files_path, .environment = environ, .extra = -1};
    exec_program *program = NULL;
    assert_int_equal(exec_program_start(&program, &command), SHOAL_OK);
    return program;
}

static int64_t in_seconds(double seconds)
{
    return base_time_after(base_now(), seconds);
}

static const int32_t three_rows[3][2] = {{1, 2}, {3, 4}, {5, -6}};
static const exec_question question = {.values = three_rows, .rows = 3, .columns = 2, .type = SHOAL_INT32};

static void a_program_answers_as_often_as_it_is_asked(void **state)
{
    exec_program *program = started("exec cat");
    exec_answer answer;
    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(exec_program_ask(&answer, program, &question, in_seconds(20)), SHOAL_OK);
        assert_int_equal(answer.type, SHOAL_INT32);
        assert_int_equal(answer.rank, 2);
        assert_int_equal(answer.shape[0], 3);
        assert_int_equal(answer.shape[1], 2);
        assert_int_equal(answer.count, 6);
        assert_memory_equal(answer.values, three_rows, sizeof three_rows);
    }
    exec_program_close(program);
    assert_int_equal(exec_program_finish(program, in_seconds(20)), SHOAL_OK);
    exec_program_end(&program, 0);
    assert_null(program);
    assert_no_children();
}

/* Far more than pipes hold, answered while it is still being sent. */
static void both_sides_may_write_at_once(void **state)
{
    enum { ROWS = 1 << 20 };
    exec_program *program = started("exec cat");
    exec_answer answer;
    double *values = NULL;
    (void)state;
    assert_int_equal(base_alloc(&values, ROWS, sizeof *values, "rows"), SHOAL_OK);
    for (int i = 0; i < ROWS; i++)
        values[i] = i * 0.5;
    const exec_question large = {.values = values, .rows = ROWS, .columns = 1, .type = SHOAL_FLOAT64};
    assert_int_equal(exec_program_ask(&answer, program, &large, in_seconds(60)), SHOAL_OK);
    assert_int_equal(answer.count, ROWS);
    assert_memory_equal(answer.values, values, ROWS * sizeof *values);
    assert_int_equal(exec_program_ask(&answer, program, &question, in_seconds(20)), SHOAL_OK);
    assert_int_equal(answer.count, 6);
    exec_program_end(&program, 0);
    base_free(&values);
    assert_no_children();
}

/* What it says on the way is not an answer. */
#define NPY(shape) "\\223NUMPY\\001\\000\\106\\000{'descr': '<i4', 'fortran_order': False, 'shape': " shape
#define ONE NPY("(), }              \\n") "\\007\\000\\000\\000"

static void a_program_need_not_read(void **state)
{
    exec_program *program = started("echo first >&2; echo second >&2; printf \"" ONE "\"; exec cat >/dev/null");
    exec_answer answer;
    char said[64];
    (void)state;
    assert_int_equal(exec_program_ask(&answer, program, &question, in_seconds(20)), SHOAL_OK);
    assert_int_equal(answer.rank, 0);
    assert_int_equal(answer.count, 1);
    assert_int_equal(*(const int32_t *)answer.values, 7);
    exec_program_close(program);
    assert_int_equal(exec_program_finish(program, in_seconds(20)), SHOAL_OK);
    exec_program_said(program, said, sizeof said);
    assert_string_equal(said, "first | second");
    exec_program_said(program, said, 16);
    assert_string_equal(said, "... second");
    exec_program_end(&program, 0);
    assert_no_children();
}

/* Writing to a reader that is gone is neither a failure nor a signal. */
static void a_program_may_close_its_input(void **state)
{
    enum { ROWS = 1 << 19 };
    exec_program *program = started("exec <&-; printf \"" ONE "\"; exec sleep 1000");
    exec_answer answer;
    double *values = NULL;
    (void)state;
    assert_int_equal(base_alloc(&values, ROWS, sizeof *values, "rows"), SHOAL_OK);
    const exec_question large = {.values = values, .rows = ROWS, .columns = 1, .type = SHOAL_FLOAT64};
    assert_int_equal(exec_program_ask(&answer, program, &large, in_seconds(20)), SHOAL_OK);
    assert_int_equal(*(const int32_t *)answer.values, 7);
    assert_int_equal(exec_program_ask(&answer, program, &large, in_seconds(0.3)), SHOAL_INVALID);
    exec_program_end(&program, 0);
    base_free(&values);
    assert_no_children();
}

static const struct {
    const char *program, *what;
} failures[] = {
    {"exit 0", "it exited with code 0 before it answered"},
    {"exec head -c 1 >/dev/null", "it exited with code 0 before it answered"},
    {"read -r line; echo gone >&2; exit 9", "it exited with code 9 before it answered"},
    {"kill -9 $$", "it was killed by signal 9"},
    {"echo hello; exec cat >/dev/null", "it wrote 'hello' where an .npy array should begin"},
    {"printf '\\223NUMPX'; exec cat >/dev/null", "where an .npy array should begin"},
    {"printf '\\223NUMPY\\001'; exit 0", "it exited with code 0 in the middle of its answer"},
    {"printf '\\223NUMPY\\011\\000\\106\\000\\000\\000%70s'; exec cat >/dev/null", "version 9.0"},
    {"printf '\\223NUMPY\\001\\000\\106\\000%70s'; exec cat >/dev/null", "its answer: the npy header is damaged"},
    {"printf \"" NPY("(3,),}             \\n") "1234\"; exit 0", "in the middle of its answer"},
    {"printf \"" NPY("(9223372036854775807,9,),}") "\"; exec cat >/dev/null", "its answer"},
    {"printf \"" NPY("(1,1,1,1,1,), }    \\n") "\"; exec cat >/dev/null", "its answer has 5 dimensions, more than 4"},
    {"exec >&-; exec sleep 100", "it closed its standard output"},
    {"exec sleep 100", "it did not answer within 0.3 s"},
    {"while :; do echo x >&2; done", "it did not answer within 0.3 s"},
    {"printf \"" ONE "x\"; exec cat >/dev/null", "it wrote more than one array"},
};

static void every_failure_has_its_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        bool waits = strstr(failures[i].what, "within") != NULL;
        exec_program *program = started(failures[i].program);
        exec_answer answer;
        int status = exec_program_ask(&answer, program, &question, in_seconds(waits ? 0.3 : 20));
        if (status != SHOAL_INVALID)
            fail_msg("%s: status %d", failures[i].program, status);
        assert_says(failures[i].what);
        exec_program_end(&program, 0);
        assert_no_children();
    }
}

static void what_follows_an_answer_is_too_much(void **state)
{
    exec_program *program =
        started("printf \"" ONE "\"; read -r line; sleep 0.05; printf \"" ONE "\"; exec cat >/dev/null");
    exec_answer answer;
    (void)state;
    assert_int_equal(exec_program_ask(&answer, program, &question, in_seconds(20)), SHOAL_OK);
    exec_program_close(program);
    assert_int_equal(exec_program_finish(program, in_seconds(20)), SHOAL_INVALID);
    assert_says("it wrote more than one array");
    exec_program_end(&program, 0);
    program = started("printf \"" ONE "\"; cat >/dev/null; exit 3");
    assert_int_equal(exec_program_ask(&answer, program, &question, in_seconds(20)), SHOAL_OK);
    exec_program_close(program);
    assert_int_equal(exec_program_finish(program, in_seconds(20)), SHOAL_INVALID);
    assert_says("it exited with code 3 when its input had ended");
    exec_program_end(&program, 0);
    program = started("printf \"" ONE "\"; exec >&-; exec sleep 100");
    assert_int_equal(exec_program_ask(&answer, program, &question, in_seconds(20)), SHOAL_OK);
    exec_program_close(program);
    assert_int_equal(exec_program_finish(program, in_seconds(0.2)), SHOAL_INVALID);
    assert_says("it did not exit in time");
    exec_program_end(&program, 0);
    assert_no_children();
}

static bool is_there(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", files_path, name);
    return access(path, F_OK) == 0;
}

static void make_or_remove(const char *name, bool make)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", files_path, name);
    FILE *file = make ? fopen(path, "we") : NULL;
    assert_true(make ? file && fclose(file) == 0 : unlink(path) == 0);
}

/* An array that comes between two questions must not be taken for the answer to the second. */
static void what_comes_before_a_question_is_no_answer(void **state)
{
    exec_program *program = started("printf \"" ONE "\"; until [ -e go ]; do sleep 0.01; done; printf \"" ONE
                                    "\"; : >gone; exec cat >/dev/null");
    exec_answer answer;
    (void)state;
    assert_int_equal(exec_program_ask(&answer, program, &question, in_seconds(20)), SHOAL_OK);
    make_or_remove("go", true);
    for (int64_t until = in_seconds(20); !is_there("gone"); base_sleep_until(in_seconds(0.01)))
        assert_true(base_seconds_until(until) > 0);
    assert_int_equal(exec_program_ask(&answer, program, &question, in_seconds(20)), SHOAL_INVALID);
    assert_says("it wrote more than one array for the rows before");
    exec_program_end(&program, 0);
    make_or_remove("go", false);
    make_or_remove("gone", false);
    assert_no_children();
}

/* What a program started itself goes with it. */
static void the_whole_group_is_ended(void **state)
{
    exec_program *program = started("sleep 1000 & echo $! >&2; exec sleep 1000");
    exec_answer answer;
    char said[64];
    (void)state;
    assert_int_equal(exec_program_ask(&answer, program, &question, in_seconds(0.3)), SHOAL_INVALID);
    exec_program_said(program, said, sizeof said);
    long child = atol(said);
    assert_true(child > 1);
    assert_int_equal(kill((pid_t)child, 0), 0);
    exec_program_end(&program, 0);
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", child);
    for (int64_t until = in_seconds(20);; base_sleep_until(in_seconds(0.01))) { /* its new parent has to take note */
        FILE *file = fopen(path, "re");
        if (!file || !fgets(line, sizeof line, file) || strstr(line, ") Z")) {
            if (file)
                fclose(file);
            break;
        }
        fclose(file);
        assert_true(base_seconds_until(until) > 0);
    }
}

/* ---- the learner ------------------------------------------------------------------------------------------------- */

enum { ROWS = 1000, COLUMNS = 3 };
static double rows[ROWS][COLUMNS];

static int run(shoal_result **out, const char *command, const shoal_exec_config *config, int threads)
{
    shoal_data *data = NULL;
    const shoal_run_options options = {.threads = threads, .rows_per_grain = 100, .code = folder};
    FILE *file = fopen(command_path, "we");
    assert_non_null(file);
    fputs(command, file);
    fclose(file);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            rows[i][j] = (i - 300) * 0.1 + j * 1e10;
    int status = shoal_data_wrap(&data, rows, ROWS, COLUMNS, SHOAL_FLOAT64);
    if (status == SHOAL_OK)
        status = shoal_run(out, NULL, &shoal_exec, config, data, NULL, &options);
    shoal_data_free(&data);
    return status;
}

static void answers_are_joined_in_order(void **state)
{
    const shoal_exec_config config = {.collect = true, .timeout = 30};
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        shoal_result *result = NULL;
        assert_int_equal(run(&result, "cat", &config, threads), SHOAL_OK);
        const shoal_tensor *all = shoal_result_tensor(result, "result");
        assert_non_null(all);
        assert_int_equal(all->rank, 2);
        assert_int_equal(all->shape[0], ROWS);
        assert_int_equal(all->shape[1], COLUMNS);
        assert_memory_equal(all->values, rows, sizeof rows);
        shoal_result_free(&result);
        assert_no_children();
    }
}

static void answers_are_added(void **state)
{
    const shoal_exec_config config = {.timeout = 30};
    double first[100 * COLUMNS];
    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        shoal_result *result = NULL;
        assert_int_equal(run(&result, "cat", &config, threads), SHOAL_OK);
        const shoal_tensor *sum = shoal_result_tensor(result, "result");
        assert_int_equal(sum->shape[0], 100);
        if (threads == 1)
            memcpy(first, sum->values, sizeof first);
        assert_memory_equal(first, sum->values, sizeof first);
        shoal_result_free(&result);
    }
    for (int j = 0; j < COLUMNS; j++) { /* long doubles hold these ten exactly */
        long double whole = 0;
        for (int grain = 0; grain < 10; grain++)
            whole += rows[100 * grain + 7][j];
        assert_true((double)whole == first[7 * COLUMNS + j]);
    }
}

static void failures_name_the_rows_and_the_machine(void **state)
{
    const shoal_exec_config config = {.timeout = 30, .params = "{\"a\": 1}"};
    shoal_result *result = NULL;
    char host[65] = "", where[128];
    (void)state;
    gethostname(host, sizeof host - 1);
    snprintf(where, sizeof where, "rows 1 to 100 on %s: it exited with code 3 before", host);
    assert_int_equal(run(&result, "echo \"$SHOAL_PARAMS at $SHOAL_HOST\" >&2; exit 3", &config, 2), SHOAL_INVALID);
    assert_says(where);
    snprintf(where, sizeof where, "its last lines on stderr: {\"a\": 1} at %s", host);
    assert_says(where);
    assert_null(result);
    assert_no_children();
}

static void a_lack_of_memory_leaves_nothing_behind(void **state)
{
    const shoal_exec_config config = {.timeout = 30};
    int status = SHOAL_MEMORY;
    (void)state;
    for (int64_t n = 0; status == SHOAL_MEMORY; n++) {
        shoal_result *result = NULL;
        base_memory_fail_after(n);
        status = run(&result, "cat", &config, 1);
        base_memory_fail_after(-1);
        shoal_result_free(&result);
        assert_no_children();
        assert_true(n < 1000);
    }
    assert_int_equal(status, SHOAL_OK);
}

/* Models come from the store: one that does not agree with what its partials hold would be written beyond them. */
static void a_model_that_does_not_fit_its_partials_is_refused(void **state)
{
    const shoal_exec_config config = {.timeout = 1};
    const shoal_shape shape = {.rows = 10, .columns = 2, .type = SHOAL_FLOAT64, .rows_per_grain = 5, .grains = 2};
    (void)state;
    for (int wrong = 0; wrong < 4; wrong++) {
        shoal_round *round = NULL;
        assert_int_equal(shoal_exec.start(&round, &config, &shape), SHOAL_OK);
        switch (wrong) {
        case 0: round->layout.cell[0].bytes = 8; break;
        case 1: round->layout.cell[0].kind = SHOAL_CELL_SUM; break;
        case 2: *(int32_t *)round->model = 1; break; /* as if it were the next round */
        default: round->layout.cells = 2; break;
        }
        assert_int_equal(shoal_exec.check(&shoal_exec, round, &shape), SHOAL_BROKEN);
        assert_says("not one of exec");
        shoal_round_free(&round);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_program_answers_as_often_as_it_is_asked),
                                       cmocka_unit_test(both_sides_may_write_at_once),
                                       cmocka_unit_test(a_program_need_not_read),
                                       cmocka_unit_test(a_program_may_close_its_input),
                                       cmocka_unit_test(every_failure_has_its_sentence),
                                       cmocka_unit_test(what_follows_an_answer_is_too_much),
                                       cmocka_unit_test(what_comes_before_a_question_is_no_answer),
                                       cmocka_unit_test(the_whole_group_is_ended),
                                       cmocka_unit_test(answers_are_joined_in_order),
                                       cmocka_unit_test(answers_are_added),
                                       cmocka_unit_test(failures_name_the_rows_and_the_machine),
                                       cmocka_unit_test(a_model_that_does_not_fit_its_partials_is_refused),
                                       cmocka_unit_test(a_lack_of_memory_leaves_nothing_behind)};
    return cmocka_run_group_tests_name("exec", tests, make_folder, remove_folder);
}
