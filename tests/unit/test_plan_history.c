/* src/plan/history*.c: lines are added whole by any number of processes, damaged ones are left out, the file does not
 * grow forever, and fitting finds the constants that the runs were made with. Labels: threads */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/random.h"
#include "plan/history_internal.h"

static char folder[] = "/tmp/shoal-history-XXXXXX";
static char file[96];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(file, sizeof file, "%s/state/shoal/history.jsonl", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void assert_says(const char *part)
{
    if (!strstr(shoal_error(), part))
        fail_msg("'%s' does not say '%s'", shoal_error(), part);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static plan_run make_run(int number)
{
    plan_run run = {.date = 1790000000 + number,
                    .learner = "kmeans",
                    .store = "az://acct/box",
                    .kernel = "avx2",
                    .rows = 1e6 + number,
                    .columns = 32,
                    .value_bytes = 4,
                    .source = SHOAL_PLAN_UPLOADED,
                    .workers = 8,
                    .machines = 1,
                    .lost = 1,
                    .threads = 2,
                    .cores = 16,
                    .phases = 2,
                    .seconds = 12.5,
                    .predicted = 11.25,
                    .low = 9,
                    .high = 14,
                    .requests = 1234,
                    .host = "here",
                    .reduce = "tree:4",
                    .split_roles = true,
                    .slices = 12,
                    .partial = true};
    run.phase[0] = (struct plan_run_phase){"scan", 2, 0.5, 2, 0, 4096, 512, 0, 0};
    run.phase[1] = (struct plan_run_phase){"run", 28, 11, 301, 6400, 25600, 25856, 4, 1e6};
    return run;
}

static void expect_same(const plan_run *a, const plan_run *b)
{
    assert_int_equal(a->date, b->date);
    assert_string_equal(a->learner, b->learner);
    assert_string_equal(a->store, b->store);
    assert_string_equal(a->kernel, b->kernel);
    assert_string_equal(a->host, b->host);
    assert_string_equal(a->reduce, b->reduce);
    assert_string_equal(a->job, b->job);
    assert_true(a->rows == b->rows && a->columns == b->columns && a->value_bytes == b->value_bytes);
    assert_true(a->source == b->source && a->workers == b->workers && a->machines == b->machines && a->lost == b->lost);
    assert_true(a->threads == b->threads && a->cores == b->cores && a->seconds == b->seconds);
    assert_true(a->predicted == b->predicted && a->low == b->low && a->high == b->high && a->requests == b->requests);
    assert_true(a->partial == b->partial && a->split_roles == b->split_roles && a->slices == b->slices);
    assert_int_equal(a->phases, b->phases);
    for (int i = 0; i < a->phases; i++) {
        const struct plan_run_phase *x = &a->phase[i], *y = &b->phase[i];
        assert_string_equal(x->name, y->name);
        assert_true(x->rounds == y->rounds && x->seconds == y->seconds && x->expected_rounds == y->expected_rounds);
        assert_true(x->operations_per_row == y->operations_per_row && x->model_bytes == y->model_bytes &&
                    x->partial_bytes == y->partial_bytes && x->row_bytes == y->row_bytes &&
                    x->kept_bytes == y->kept_bytes);
    }
}

static int64_t read_all(plan_run **out, int64_t *damaged, int64_t most)
{
    int64_t count = -1;
    assert_int_equal(plan_history_read(out, &count, damaged, file, most), SHOAL_OK);
    return count;
}

static void write_text(const char *text, size_t size)
{
    FILE *stream = fopen(file, "we");
    assert_non_null(stream);
    assert_int_equal(fwrite(text, 1, size, stream), size);
    fclose(stream);
}

static void test_adding(void **state)
{
    plan_run *found = NULL;
    int64_t damaged = -1;
    (void)state;
    assert_int_equal(read_all(&found, &damaged, 0), 0); /* not there */
    assert_true(!found && damaged == 0);
    for (int i = 0; i < 5; i++) {
        const plan_run run = make_run(i);
        assert_int_equal(plan_history_add(file, &run), SHOAL_OK); /* makes the folders */
    }
    assert_int_equal(read_all(&found, &damaged, 0), 5);
    assert_int_equal(damaged, 0);
    for (int i = 0; i < 5; i++) {
        const plan_run run = make_run(i);
        expect_same(&found[i], &run);
    }
    base_free(&found);
    assert_int_equal(read_all(&found, &damaged, 2), 2); /* the last ones */
    assert_int_equal(found[0].date, 1790000003);
    base_free(&found);
    struct stat about;
    assert_int_equal(stat(file, &about), 0);
    assert_int_equal(about.st_mode & 077, 0); /* for this user alone */
}

/* Whoever follows a job tells of it, and it is kept once. */
static void test_a_job_is_added_once(void **state)
{
    plan_run *found = NULL;
    int64_t damaged = 0;
    (void)state;
    unlink(file);
    for (int i = 0; i < 6; i++) {
        plan_run run = make_run(i);
        snprintf(run.job, sizeof run.job, "km-%d", i / 2);
        assert_int_equal(plan_history_add(file, &run), SHOAL_OK);
    }
    assert_int_equal(read_all(&found, &damaged, 0), 3);
    for (int i = 0; i < 3; i++) {
        plan_run run = make_run(2 * i);
        snprintf(run.job, sizeof run.job, "km-%d", i);
        expect_same(&found[i], &run);
    }
    base_free(&found);
}

static void test_many_processes(void **state)
{
    enum { PROCESSES = 12, LINES = 40 };
    plan_run *found = NULL;
    int64_t damaged = 0;
    bool seen[PROCESSES * LINES] = {false};
    (void)state;
    unlink(file);
    for (int p = 0; p < PROCESSES; p++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child > 0)
            continue;
        int status = SHOAL_OK;
        for (int i = 0; i < LINES && status == SHOAL_OK; i++) {
            const plan_run run = make_run(p * LINES + i);
            status = plan_history_add(file, &run);
        }
        _exit(status == SHOAL_OK ? 0 : 1);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status = -1;
        assert_true(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(read_all(&found, &damaged, 0), PROCESSES * LINES);
    assert_int_equal(damaged, 0);
    for (int i = 0; i < PROCESSES * LINES; i++) {
        int64_t number = found[i].date - 1790000000;
        assert_true(number >= 0 && number < PROCESSES * LINES && !seen[number]);
        seen[number] = true;
    }
    base_free(&found);
}

/* Every prefix of a line is damaged, and so is every line with a byte changed to a zero. */
static void test_damaged_lines(void **state)
{
    const plan_run run = make_run(1);
    char *line = NULL;
    size_t size = 0;
    plan_run found;
    (void)state;
    assert_int_equal(plan_history_line_write(&line, &size, &run), SHOAL_OK);
    assert_true(plan_history_line_read(&found, line, size - 1));
    for (size_t cut = 0; cut + 1 < size; cut++)
        assert_false(plan_history_line_read(&found, line, cut));
    for (size_t i = 0; i + 1 < size; i++) {
        char kept = line[i];
        line[i] = '\0';
        assert_false(plan_history_line_read(&found, line, size - 1));
        line[i] = kept;
    }
    base_free(&line);
}

/* Replaces the first `from` of a good line. */
static bool reads_with(const char *from, const char *to)
{
    const plan_run run = make_run(1);
    char *line = NULL, *changed = NULL;
    size_t size = 0;
    plan_run found;
    assert_int_equal(plan_history_line_write(&line, &size, &run), SHOAL_OK);
    char *at = strstr(line, from);
    assert_non_null(at);
    assert_int_equal(base_format(&changed, "%.*s%s%s", (int)(at - line), line, to, at + strlen(from)), SHOAL_OK);
    bool well = plan_history_line_read(&found, changed, strlen(changed) - 1);
    base_free(&line);
    base_free(&changed);
    return well;
}

static void test_wrong_lines(void **state)
{
    (void)state;
    assert_true(reads_with("\"version\":1", "\"more\":[1,2],\"version\":1"));
    assert_false(reads_with("\"version\":1", "\"version\":2"));
    assert_false(reads_with("\"version\":1", "\"version\":\"1\""));
    assert_false(reads_with("\"learner\":\"kmeans\"", "\"learner\":7"));
    assert_false(reads_with("\"learner\":\"kmeans\"", "\"learner\":\"0123456789012345678901234567890123456789\""));
    assert_false(reads_with("\"learner\":\"kmeans\"", "\"learner\":\"k\\u001b[2J\""));
    assert_false(reads_with("\"learner\":\"kmeans\",", ""));
    assert_false(reads_with("\"seconds\":12.5", "\"seconds\":-1"));
    assert_false(reads_with("\"seconds\":12.5", "\"seconds\":1e999"));
    assert_false(reads_with("\"seconds\":12.5", "\"seconds\":null"));
    assert_false(reads_with("\"source\":\"uploaded\"", "\"source\":\"moon\""));
    assert_false(reads_with("\"workers\":8", "\"workers\":8.5"));
    assert_false(reads_with("\"phases\":[{", "\"phases\":[1,2,3,4,5,6,7,8,9,{"));
    assert_false(reads_with("\"phases\":[{", "\"phases\":[7,{"));
    assert_false(reads_with("\"partial\":true", "\"partial\":1"));
    assert_true(reads_with("\"job\":\"\",", "")); /* older ones have none */
}

static void test_damaged_file(void **state)
{
    const plan_run run = make_run(7);
    plan_run *found = NULL;
    int64_t damaged = 0;
    char *line = NULL, *text = NULL;
    size_t size = 0;
    (void)state;
    assert_int_equal(plan_history_line_write(&line, &size, &run), SHOAL_OK);
    /* A good one, rubbish, an empty line, one of a later version, a good one, one that was cut short. */
    assert_int_equal(base_format(&text, "%s\xff\xfe rubbish\n\n{\"version\":2}\n%s%.40s", line, line, line), SHOAL_OK);
    write_text(text, strlen(text));
    assert_int_equal(read_all(&found, &damaged, 0), 2);
    assert_int_equal(damaged, 3);
    base_free(&found);
    /* What comes after the truncated line is a separate line. */
    assert_int_equal(plan_history_add(file, &run), SHOAL_OK);
    assert_int_equal(read_all(&found, &damaged, 0), 3);
    assert_int_equal(damaged, 3);
    base_free(&found);
    base_free(&text);
    base_free(&line);
    char zeros[5000] = {0};
    write_text(zeros, sizeof zeros);
    assert_int_equal(read_all(&found, &damaged, 0), 0);
    assert_int_equal(damaged, 1);
    base_free(&found);
}

/* The newer half stays, whole lines of it, and adding goes on. */
static void test_growing(void **state)
{
    plan_run *found = NULL;
    int64_t damaged = 0;
    struct stat about;
    (void)state;
    unlink(file);
    FILE *stream = fopen(file, "we");
    assert_non_null(stream);
    int lines = 0;
    for (; ftell(stream) <= 4 << 20; lines++) {
        const plan_run run = make_run(lines);
        char *line = NULL;
        size_t size = 0;
        assert_int_equal(plan_history_line_write(&line, &size, &run), SHOAL_OK);
        assert_int_equal(fwrite(line, 1, size, stream), size);
        base_free(&line);
    }
    fclose(stream);
    const plan_run last = make_run(lines), more = make_run(lines + 1);
    assert_int_equal(plan_history_add(file, &last), SHOAL_OK);
    assert_int_equal(stat(file, &about), 0);
    assert_true(about.st_size > (2 << 20) - 2000 && about.st_size <= 2 << 20);
    assert_int_equal(plan_history_add(file, &more), SHOAL_OK);
    int64_t count = read_all(&found, &damaged, 0);
    assert_true(damaged == 0 && count > 1000 && count < lines);
    for (int64_t i = 0; i < count; i++) /* none is missing in between */
        assert_int_equal(found[i].date, more.date - (count - 1 - i));
    base_free(&found);
    unlink(file);
}

static void test_no_plain_file(void **state)
{
    const plan_run run = make_run(1);
    plan_run *found = NULL;
    int64_t count, damaged;
    char path[128];
    (void)state;
    assert_int_equal(plan_history_add(folder, &run), SHOAL_SYSTEM); /* a folder */
    assert_says(folder);
    assert_int_equal(plan_history_read(&found, &count, &damaged, folder, 0), SHOAL_INVALID);
    assert_says("must be a regular file");
    assert_int_equal(plan_history_read(&found, &count, &damaged, "/dev/zero", 0), SHOAL_INVALID);
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(plan_history_add(path, &run), SHOAL_INVALID); /* would wait for a reader */
    assert_int_equal(plan_history_read(&found, &count, &damaged, path, 0), SHOAL_INVALID);
    snprintf(path, sizeof path, "%s/pipe/below/history.jsonl", folder);
    assert_int_equal(plan_history_add(path, &run), SHOAL_SYSTEM);
    assert_says(path);
    assert_int_equal(plan_history_read(&found, &count, &damaged, path, 0), SHOAL_OK);
    assert_int_equal(count, 0);
    assert_int_equal(plan_history_add("/dev/full", &run), SHOAL_INVALID);
    plan_run odd = run;
    odd.seconds = INFINITY; /* no number of JSON */
    assert_int_equal(plan_history_add(file, &odd), SHOAL_INVALID);
    odd = run;
    snprintf(odd.store, sizeof odd.store, "\xff");
    assert_int_equal(plan_history_add(file, &odd), SHOAL_INVALID);
    assert_int_equal(access(file, F_OK), -1);
}

static void test_path(void **state)
{
    char *path = NULL;
    (void)state;
    setenv("XDG_STATE_HOME", "/somewhere", 1);
    assert_int_equal(plan_history_path(&path), SHOAL_OK);
    assert_string_equal(path, "/somewhere/shoal/history.jsonl");
    base_free(&path);
    setenv("XDG_STATE_HOME", "relative", 1); /* the specification has it ignored */
    setenv("HOME", "/home/me", 1);
    assert_int_equal(plan_history_path(&path), SHOAL_OK);
    assert_string_equal(path, "/home/me/.local/state/shoal/history.jsonl");
    base_free(&path);
    unsetenv("HOME");
    assert_int_equal(plan_history_path(&path), SHOAL_USAGE);
}

/* ---- fitting ----------------------------------------------------------------------------------------------------- */

enum { RUNS = 40 };

static const shoal_pace truth[] = {{"kmeans", "scan", 4e-7, 0, 2e-2, 0, 1, 0},
                                   {"kmeans", "run", 1e-7, 5e-8, 1e-1, 2e-6, 1, 0}};

/* A number about 1, by chance. */
static double about_one(int64_t index, double deviation)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += base_random_unit(9, BASE_FOR_DATA, (uint64_t)index, (uint32_t)i);
    return exp(deviation * (sum - 6));
}

static plan_calibration known_truth(void)
{
    plan_calibration all = {
        .host = "here", .kernel = "avx2", .threads = 4, .thread_loss = 0.05, .error = 0.2, .paces = 2};
    memcpy(all.pace, truth, sizeof truth);
    return all;
}

/* Shapes that tell the constants apart. */
static plan_run alone_run(int i)
{
    double k = 4 << i % 6, columns = 3 + 40 * (i % 7);
    plan_run run = {.date = 1790000000 + i,
                    .learner = "kmeans",
                    .kernel = "avx2",
                    .host = "here",
                    .rows = 2e4 * (1 + i * 11 % 23),
                    .columns = columns,
                    .value_bytes = 4,
                    .source = SHOAL_PLAN_FILE,
                    .workers = 1,
                    .machines = 1,
                    .threads = 1 + i % 4,
                    .cores = 4,
                    .phases = 2};
    run.phase[0] = (struct plan_run_phase){"scan", 2, 0, 2, 0, 8 * k * columns, 16 * columns, 0, 0};
    run.phase[1] =
        (struct plan_run_phase){"run", 10 + i % 5, 0, 100, 2 * k * columns, 8 * k * columns, 8 * k * columns, 0, 0};
    return run;
}

/* Lets the run have happened as the calibration tells, but for chance. */
static void happen(plan_run *run, const plan_calibration *as, int64_t number, double deviation)
{
    shoal_estimate estimate;
    assert_int_equal(plan_history_estimate(&estimate, as, run), SHOAL_OK);
    run->seconds = run->store[0] ? estimate.seconds * about_one(number, deviation) : 0;
    for (int p = 0; p < run->phases; p++) {
        run->phase[p].seconds = estimate.phase[p].seconds * about_one(number * 8 + p, deviation);
        run->seconds += run->store[0] ? 0 : run->phase[p].seconds;
    }
}

static void expect_near(double found, double wanted, double share)
{
    if (!(fabs(found - wanted) <= share * wanted))
        fail_msg("%g is not within %g%% of %g", found, 100 * share, wanted);
}

static void test_refit_paces(void **state)
{
    plan_calibration wanted = known_truth(), found = wanted;
    plan_run run[RUNS];
    int64_t used = 0;
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        run[i] = alone_run(i);
        happen(&run[i], &wanted, i, 0.03);
    }
    for (int p = 0; p < 2; p++) { /* what was measured is wrong */
        found.pace[p].value *= 1.6;
        found.pace[p].operation *= 0.6;
        found.pace[p].round *= 2;
    }
    assert_int_equal(plan_history_refit(&found, &used, run, RUNS), SHOAL_OK);
    assert_int_equal(used, RUNS);
    assert_int_equal(found.paces, 2);
    expect_near(found.pace[0].value, truth[0].value, 0.03);
    expect_near(found.pace[1].operation, truth[1].operation, 0.03);
    expect_near(found.pace[1].rounds, 12, 0.1);  /* 10 to 14 of 100 */
    expect_near(found.pace[0].rounds, 1, 1e-12); /* as it was: none ended early */
    shoal_estimate estimate;
    for (int i = 0; i < RUNS; i++) {
        assert_int_equal(plan_history_estimate(&estimate, &found, &run[i]), SHOAL_OK);
        expect_near(estimate.seconds, run[i].seconds, 0.12);
    }
    /* Four runs with 0.2, and forty with about 0.03. */
    assert_true(found.error > 0.05 && found.error < 0.09);
}

/* A phase that nobody measured is found from runs alone. */
static void test_refit_unmeasured(void **state)
{
    plan_calibration wanted = known_truth(), found = wanted;
    plan_run run[RUNS];
    int64_t used = 0;
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        run[i] = alone_run(i);
        happen(&run[i], &wanted, i, 0.03);
    }
    found.paces = 0;
    assert_int_equal(plan_history_refit(&found, &used, run, 1), SHOAL_OK);
    assert_int_equal(used, 1);
    shoal_estimate estimate;
    assert_int_equal(plan_history_estimate(&estimate, &found, &run[0]), SHOAL_OK);
    expect_near(estimate.seconds, run[0].seconds, 0.1);
    found = wanted;
    found.paces = 0;
    assert_int_equal(plan_history_refit(&found, &used, run, RUNS), SHOAL_OK);
    expect_near(found.pace[0].value, truth[0].value, 0.05);
    expect_near(found.pace[1].operation, truth[1].operation, 0.05);
}

/* Two lucky runs do not make an estimate certain, and a few runs far off do not spoil the rest. */
/* ---- trust ------------------------------------------------------------------------------------------------------- */

/* Earlier runs that took `factor` times what the calibration says, every other one the inverse of it. */
static void make_earlier(plan_run *run, int count, const plan_calibration *as, double factor)
{
    for (int i = 0; i < count; i++) {
        run[i] = alone_run(7); /* all of one length */
        happen(&run[i], as, i, 0);
        run[i].seconds *= i % 2 ? factor : 1 / factor;
    }
}

static void test_trust_widens_intervals(void **state)
{
    plan_calibration kept = known_truth();
    plan_run earlier[RUNS], run = alone_run(7);
    shoal_estimate plain, estimate;
    plan_trust trust;
    (void)state;
    happen(&run, &kept, 0, 0);
    assert_int_equal(plan_history_estimate(&plain, &kept, &run), SHOAL_OK);
    /* Good predictions leave the interval as the calibration has it, and so do too few bad ones. */
    make_earlier(earlier, RUNS, &kept, 1.05);
    assert_int_equal(plan_history_predict(&estimate, &trust, &kept, &run, earlier, RUNS), SHOAL_OK);
    assert_true(trust.reliable && trust.runs == 20 && trust.median < 0.06);
    assert_true(estimate.low == plain.low && estimate.high == plain.high);
    make_earlier(earlier, 2, &kept, 9);
    assert_int_equal(plan_history_predict(&estimate, &trust, &kept, &run, earlier, 2), SHOAL_OK);
    assert_true(trust.reliable && trust.runs == 2 && estimate.high == plain.high);
    /* A few that were off widen it until it holds them. */
    make_earlier(earlier, 4, &kept, 1.45);
    assert_int_equal(plan_history_predict(&estimate, &trust, &kept, &run, earlier, 4), SHOAL_OK);
    assert_true(trust.reliable && trust.runs == 4);
    expect_near(estimate.seconds, plain.seconds, 1e-12);
    expect_near(estimate.high, 1.45 * plain.seconds, 1e-6);
    expect_near(estimate.low, plain.seconds / 1.45, 1e-6);
}

static void test_trust_is_lost(void **state)
{
    plan_calibration kept = known_truth();
    plan_run earlier[RUNS], run = alone_run(7);
    shoal_estimate estimate;
    plan_trust trust;
    (void)state;
    happen(&run, &kept, 0, 0);
    make_earlier(earlier, 6, &kept, 1);
    for (int i = 0; i < 6; i++)
        earlier[i].seconds *= 0.21; /* all were predicted nearly five times too long */
    assert_int_equal(plan_history_predict(&estimate, &trust, &kept, &run, earlier, 6), SHOAL_OK);
    assert_true(!trust.reliable && trust.runs == 6);
    expect_near(trust.median, 0.79, 1e-6);
    /* Four do not tell yet, and one wild one among good ones does not either. */
    plan_history_trust(&trust, &kept, &run, earlier, 4);
    assert_true(trust.reliable);
    make_earlier(earlier, 9, &kept, 1.1);
    earlier[4].seconds *= 1000;
    plan_history_trust(&trust, &kept, &run, earlier, 9);
    assert_true(trust.reliable && trust.runs == 9);
}

/* What a prediction that is not reliable says of itself. */
static void test_doubt_is_told(void **state)
{
    plan_calibration kept = known_truth();
    plan_run earlier[RUNS], run = alone_run(7);
    shoal_estimate estimate;
    plan_trust trust;
    char why[PLAN_DOUBT_BYTES];
    (void)state;
    happen(&run, &kept, 0, 0);
    make_earlier(earlier, 6, &kept, 1);
    for (int i = 0; i < 6; i++) {
        earlier[i].seconds *= 140;
        earlier[i].date = 1000 + i;
    }
    plan_history_trust(&trust, &kept, &run, earlier, 6);
    plan_trust_describe(why, &trust);
    assert_string_equal(why, "the last 6 runs were off by a factor of 140 (median; worst: a factor of 140); run `shoal "
                             "calibrate --refit`");
    /* Nobody is sent to refit again before there are runs since. */
    kept.refitted = 1001;
    plan_history_trust(&trust, &kept, &run, earlier, 6);
    plan_trust_describe(why, &trust);
    assert_true(!trust.reliable && trust.refitted && !strstr(why, "--refit") && strstr(why, "even after a refit"));
    kept.refitted = 1000;
    plan_history_trust(&trust, &kept, &run, earlier, 6);
    assert_true(!trust.reliable && !trust.refitted);
    /* Three are too few for the median, but an interval of decades is no prediction. */
    assert_int_equal(plan_history_predict(&estimate, &trust, &kept, &run, earlier, 3), SHOAL_OK);
    assert_true(!trust.reliable && estimate.high > 10 * estimate.low);
    kept.error = 2;
    assert_int_equal(plan_history_predict(&estimate, &trust, &kept, &run, NULL, 0), SHOAL_OK);
    plan_trust_describe(why, &trust);
    assert_true(!trust.reliable && strstr(why, "run `shoal calibrate` on an idle machine"));
}

static void test_trust_is_by_runs_alike(void **state)
{
    plan_calibration kept = known_truth();
    plan_run earlier[8], run = alone_run(7);
    plan_trust trust;
    (void)state;
    happen(&run, &kept, 0, 0);
    make_earlier(earlier, 8, &kept, 9);
    snprintf(earlier[0].host, sizeof earlier->host, "elsewhere");
    snprintf(earlier[1].learner, sizeof earlier->learner, "logistic");
    snprintf(earlier[2].store, sizeof earlier->store, "dir");
    snprintf(earlier[3].kernel, sizeof earlier->kernel, "portable");
    earlier[4].partial = true;
    earlier[5].lost = 1;
    earlier[6].seconds = 0.04;              /* too short to tell */
    earlier[7].seconds = run.seconds / 100; /* much shorter */
    plan_history_trust(&trust, &kept, &run, earlier, 8);
    assert_true(trust.runs == 0 && trust.reliable && isnan(trust.median) && trust.error == 0);
    plan_history_trust(&trust, &kept, &run, NULL, 0);
    assert_true(trust.runs == 0 && trust.reliable);
}

static void test_a_history_that_is_poor(void **state)
{
    plan_run run[8];
    plan_history history = {.run = run, .count = 8};
    plan_history_errors errors;
    (void)state;
    for (int i = 0; i < 8; i++)
        run[i] = (plan_run){.seconds = 1, .predicted = 1, .low = 0.8, .high = 1.2};
    assert_int_equal(plan_history_judge(&errors, &history, 0), SHOAL_OK);
    assert_true(!errors.poor && errors.within == 8 && errors.median == 0);
    for (int i = 0; i < 3; i++)
        run[i].seconds = 1.3; /* not by much, but three of eight are outside of what nine of ten should be in */
    assert_int_equal(plan_history_judge(&errors, &history, 0), SHOAL_OK);
    assert_true(errors.poor && errors.within == 5);
    for (int i = 0; i < 8; i++)
        run[i] = (plan_run){.seconds = 1, .predicted = 4.8, .low = 0.1, .high = 50};
    assert_int_equal(plan_history_judge(&errors, &history, 0), SHOAL_OK);
    assert_true(errors.poor && errors.within == 8);
    for (int i = 0; i < 8; i++)
        run[i].date = 100 + i;
    assert_int_equal(plan_history_judge(&errors, &history, 103), SHOAL_OK); /* calibrated since, and four do not tell */
    assert_true(!errors.poor && errors.predicted == 8);
    assert_int_equal(plan_history_judge(&errors, &history, 102), SHOAL_OK);
    assert_true(errors.poor);
    history.count = 4;
    assert_int_equal(plan_history_judge(&errors, &history, 0), SHOAL_OK);
    assert_false(errors.poor);
    history.count = 8;
    for (int i = 0; i < 8; i++)
        run[i].seconds = 0.04; /* too short to tell */
    assert_int_equal(plan_history_judge(&errors, &history, 0), SHOAL_OK);
    assert_true(!errors.poor && errors.predicted == 0);
}

static void test_refit_is_careful(void **state)
{
    plan_calibration wanted = known_truth(), found = wanted;
    plan_run run[RUNS];
    int64_t used = 0;
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        run[i] = alone_run(i);
        happen(&run[i], &wanted, i, 0);
    }
    assert_int_equal(plan_history_refit(&found, &used, run, 2), SHOAL_OK);
    assert_int_equal(used, 2);
    expect_near(found.error, sqrt(4 * 0.2 * 0.2 / 6), 0.02);
    for (int i = 0; i < 4; i++) /* something else kept the machine busy */
        for (int p = 0; p < 2; p++)
            run[10 * i].phase[p].seconds *= 3;
    found = wanted;
    found.pace[1].operation *= 1.5;
    found.pace[1].value *= 1.5;
    assert_int_equal(plan_history_refit(&found, &used, run, RUNS), SHOAL_OK);
    for (int i = 1; i < 10; i++) {
        shoal_estimate estimate;
        assert_int_equal(plan_history_estimate(&estimate, &found, &run[i]), SHOAL_OK);
        expect_near(estimate.seconds, run[i].seconds, 0.1);
    }
}

/* Other machines, other arithmetic and parts of runs tell nothing. */
static void test_refit_leaves_out(void **state)
{
    plan_calibration wanted = known_truth(), found = wanted;
    plan_run run[4];
    int64_t used = -1;
    (void)state;
    for (int i = 0; i < 4; i++) {
        run[i] = alone_run(i);
        happen(&run[i], &wanted, i, 0);
        run[i].seconds *= 2;
        for (int p = 0; p < 2; p++)
            run[i].phase[p].seconds *= 2;
    }
    snprintf(run[0].host, sizeof run[0].host, "elsewhere");
    snprintf(run[1].kernel, sizeof run[1].kernel, "portable");
    run[2].phases = 0;
    run[3].seconds = 0;
    for (int i = 0; i < 4; i++)
        run[i].phase[0].expected_rounds = run[i].phase[1].expected_rounds = 0;
    assert_int_equal(plan_history_refit(&found, &used, run, 4), SHOAL_OK);
    assert_int_equal(used, 0);
    assert_memory_equal(&found, &wanted, sizeof found);
    assert_int_equal(plan_history_refit(&found, &used, NULL, 0), SHOAL_OK);
    assert_int_equal(used, 0);
}

static void test_refit_store(void **state)
{
    plan_calibration wanted = known_truth(), found;
    plan_calibrated_site dir = {.store = "dir", .date = 5};
    plan_run run[RUNS];
    int64_t used = 0;
    bool measured;
    (void)state;
    plan_calibration_site(&dir.site, &measured, NULL, "dir");
    dir.site.sync = 0.02;
    dir.site.error = 0.3;
    assert_int_equal(plan_calibration_set_site(&wanted, &dir), SHOAL_OK);
    for (int i = 0; i < RUNS; i++) {
        run[i] = alone_run(i);
        snprintf(run[i].store, sizeof run[i].store, "dir");
        run[i].workers = 1 + i % 4;
        run[i].threads = 1;
        run[i].source = SHOAL_PLAN_UPLOADED;
        happen(&run[i], &wanted, i, 0.01);
    }
    run[3].partial = true;
    run[3].seconds *= 50;
    found = wanted;
    found.site[0].site.sync = 0.001;
    assert_int_equal(plan_history_refit(&found, &used, run, RUNS), SHOAL_OK);
    assert_int_equal(used, RUNS - 1);
    assert_int_equal(found.sites, 1);
    assert_int_equal(found.site[0].date, 5);
    expect_near(found.site[0].site.sync, 0.02, 0.15);
    assert_true(found.site[0].site.error < 0.12 && found.site[0].site.error > 0.02);
    assert_true(found.error == wanted.error && found.pace[1].operation == wanted.pace[1].operation);
    /* A store that nobody measured gets an entry that says so. */
    found = wanted;
    found.sites = 0;
    for (int i = 0; i < RUNS; i++)
        snprintf(run[i].store, sizeof run[i].store, "s3://bucket");
    assert_int_equal(plan_history_refit(&found, &used, run, RUNS), SHOAL_OK);
    assert_int_equal(found.sites, 1);
    assert_string_equal(found.site[0].store, "s3://bucket");
    assert_int_equal(found.site[0].date, 0);
}

/* One worker by itself waits for nobody: what its rounds take besides says nothing of sync. */
static void test_refit_one_worker(void **state)
{
    plan_calibration found = known_truth(), wanted = known_truth();
    plan_calibrated_site box = {.store = "az://acct/other", .date = 5};
    plan_run run[8];
    int64_t used = 0;
    bool measured;
    (void)state;
    found.date = wanted.date = 7;
    plan_calibration_site(&box.site, &measured, NULL, "az");
    assert_int_equal(plan_calibration_set_site(&found, &box), SHOAL_OK);
    wanted = found;
    for (int i = 0; i < 8; i++) {
        run[i] = alone_run(i);
        snprintf(run[i].store, sizeof run[i].store, "az://acct/box");
        happen(&run[i], &wanted, i, 0);
        run[i].seconds *= 3;
    }
    assert_int_equal(plan_history_refit(&found, &used, run, 8), SHOAL_OK);
    assert_int_equal(used, 8);
    assert_int_equal(found.sites, 2);
    assert_string_equal(found.site[1].store, "az://acct/box");
    assert_true(found.site[1].site.sync == box.site.sync);
    assert_int_equal(found.site[1].date, 7); /* it was measured, in another container of the account */
}

/* What no run can have taken is left out, and what is left is finite. */
static void test_refit_absurd(void **state)
{
    plan_calibration wanted = known_truth(), found = wanted;
    plan_run run[4];
    int64_t used = 0;
    (void)state;
    for (int i = 0; i < 4; i++) {
        run[i] = alone_run(i);
        happen(&run[i], &wanted, i, 0);
    }
    run[0].seconds = run[1].seconds = run[0].phase[1].seconds = run[1].phase[1].seconds = 1.7e308;
    run[2].rows = 1e300;
    run[3].phase[1].operations_per_row = 1e300;
    assert_int_equal(plan_history_refit(&found, &used, run, 4), SHOAL_OK);
    for (int i = 0; i < found.paces; i++)
        assert_true(isfinite(found.pace[i].value) && isfinite(found.pace[i].operation) &&
                    isfinite(found.pace[i].round) && isfinite(found.pace[i].model_byte) && isfinite(found.pace[i].row));
    assert_true(isfinite(found.error));
}

/* Labels and what is kept travel, too; and lines from before these were written are read. */
static void test_bytes_of_rows(void **state)
{
    plan_calibration calibration = known_truth();
    plan_run run = alone_run(1), *found = NULL;
    shoal_estimate without, with;
    int64_t damaged = -1;
    static const char *const later[] = {",\"slices\":0.0", ",\"row_bytes\":0.0", ",\"kept_bytes\":0.0"};
    char *line = NULL;
    size_t size = 0;
    (void)state;
    snprintf(run.store, sizeof run.store, "az://acct/box");
    run.workers = 4;
    assert_int_equal(plan_history_line_write(&line, &size, &run), SHOAL_OK);
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        for (char *at; (at = strstr(line, later[i])) != NULL;)
            memmove(at, at + strlen(later[i]), strlen(at + strlen(later[i])) + 1);
    assert_true(strlen(line) < size && !strstr(line, "kept_bytes"));
    write_text(line, strlen(line));
    assert_int_equal(read_all(&found, &damaged, 0), 1);
    assert_int_equal(damaged, 0);
    expect_same(found, &run);
    assert_int_equal(plan_history_estimate(&without, &calibration, &run), SHOAL_OK);
    run.phase[1].row_bytes = 4;
    run.phase[1].kept_bytes = 1e6;
    assert_int_equal(plan_history_estimate(&with, &calibration, &run), SHOAL_OK);
    assert_true(with.reduce > without.reduce && with.publish > without.publish);
    base_free(&line);
    base_free(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adding),
        cmocka_unit_test(test_a_job_is_added_once),
        cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_damaged_lines),
        cmocka_unit_test(test_wrong_lines),
        cmocka_unit_test(test_damaged_file),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_no_plain_file),
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_refit_paces),
        cmocka_unit_test(test_refit_unmeasured),
        cmocka_unit_test(test_refit_is_careful),
        cmocka_unit_test(test_refit_leaves_out),
        cmocka_unit_test(test_refit_store),
        cmocka_unit_test(test_refit_one_worker),
        cmocka_unit_test(test_trust_widens_intervals),
        cmocka_unit_test(test_trust_is_lost),
        cmocka_unit_test(test_doubt_is_told),
        cmocka_unit_test(test_trust_is_by_runs_alike),
        cmocka_unit_test(test_a_history_that_is_poor),
        cmocka_unit_test(test_refit_absurd),
        cmocka_unit_test(test_bytes_of_rows),
    };
    return cmocka_run_group_tests_name("history", tests, make_folder, remove_folder);
}
