/* Labels: threads
 * include/shoal/run.h: requests by the names of options, what they refuse, and outcomes that are those of shoal_run. */
#include "data_support.h"

#include <math.h>
#include <pthread.h>
#include <shoal/kmeans.h>
#include <shoal/model.h>
#include <shoal/run.h>
#include <shoal/version.h>
#include <sys/stat.h>

#include "base/path.h"
#include "run/resume.h"

static const char rows[] = "gen:blobs?rows=3000&cols=4&seed=5&centres=6";

static shoal_request *request_of(const char *learner, const char *const options[][2])
{
    shoal_request *request = NULL;
    if (shoal_request_new(&request, learner) < 0)
        fail_msg("%s", shoal_error());
    for (int i = 0; options[i][0]; i++)
        if (shoal_request_set(request, options[i][0], options[i][1]) < 0)
            fail_msg("%s", shoal_error());
    return request;
}

static shoal_outcome *run(shoal_request *request)
{
    shoal_outcome *outcome = NULL;
    if (shoal_request_run(&outcome, request) < 0)
        fail_msg("%s", shoal_error());
    return outcome;
}

static void assert_same_centres(const shoal_result *a, const shoal_result *b)
{
    const shoal_tensor *one = shoal_result_tensor(a, "centres"), *other = shoal_result_tensor(b, "centres");
    assert_int_equal(one->shape[0] * one->shape[1], other->shape[0] * other->shape[1]);
    assert_memory_equal(one->values, other->values, (size_t)(one->shape[0] * one->shape[1]) * sizeof(double));
}

static void a_request_is_what_shoal_run_does(void **state)
{
    shoal_kmeans_config config = {0};
    shoal_result *expected = NULL;
    shoal_data *data = NULL;
    (void)state;
    assert_int_equal(shoal_options_default(&config, shoal_kmeans.options), SHOAL_OK);
    config.k = 6;
    config.seed = 3;
    assert_int_equal(shoal_data_open(&data, rows, NULL), SHOAL_OK);
    assert_int_equal(shoal_run(&expected, NULL, &shoal_kmeans, &config, data, NULL, NULL), SHOAL_OK);
    shoal_request *request = request_of("kmeans", (const char *const[][2]){{"data", rows},
                                                                           {"clusters", "6"},
                                                                           {"seed", "3"},
                                                                           {"threads", "2"},
                                                                           {"centres", file_path("centres.npy")},
                                                                           {0}});
    shoal_outcome *outcome = run(request);
    assert_same_centres(shoal_outcome_result(outcome), expected);
    assert_int_equal(shoal_outcome_report(outcome)->threads, 2);
    assert_string_equal(shoal_outcome_job(outcome), "");
    assert_null(shoal_outcome_resume(outcome));
    shoal_data *written = NULL;
    assert_int_equal(shoal_data_open(&written, file_path("centres.npy"), NULL), SHOAL_OK);
    assert_int_equal(shoal_data_rows(written), 6);
    shoal_data_free(&written);
    shoal_outcome_free(&outcome);
    shoal_outcome_free(&outcome);
    outcome = run(request); /* and again */
    assert_same_centres(shoal_outcome_result(outcome), expected);
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
    shoal_request_free(&request);
    shoal_result_free(&expected);
    shoal_data_free(&data);
}

static void rows_weights_and_start_may_lie_in_memory(void **state)
{
    static const double values[] = {0, 0, 0, 1, 9, 9, 9, 8}, weights[] = {1, 3, 1, 1}, start[] = {0, 0, 9, 9};
    shoal_data *data = NULL;
    (void)state;
    assert_int_equal(shoal_data_wrap(&data, values, 4, 2, SHOAL_FLOAT64), SHOAL_OK);
    shoal_request *request = request_of("kmeans", (const char *const[][2]){{0}});
    assert_int_equal(shoal_request_rows(request, data, weights), SHOAL_OK);
    assert_int_equal(shoal_request_start(request, start, 2, 2), SHOAL_OK);
    shoal_outcome *outcome = run(request);
    const double *centres = shoal_result_tensor(shoal_outcome_result(outcome), "centres")->values;
    assert_true(centres[0] == 0 && centres[1] == 0.75 && centres[2] == 9 && centres[3] == 8.5);
    shoal_outcome_free(&outcome);
    assert_int_equal(shoal_request_start(request, start, 1, 4), SHOAL_OK);
    assert_int_equal(shoal_request_run(&outcome, request), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "a start of 4 columns"));
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
    shoal_data_free(&data);
}

static void what_is_wrong_with_rows_in_memory_names_no_file(void **state)
{
    static const double values[] = {0, 0, NAN, 1}, equal[] = {1, 1, 1, 1};
    shoal_data *data = NULL;
    shoal_outcome *outcome = NULL;
    (void)state;
    assert_int_equal(shoal_data_wrap(&data, values, 2, 2, SHOAL_FLOAT64), SHOAL_OK);
    shoal_request *request = request_of("kmeans", (const char *const[][2]){{"clusters", "2"}, {0}});
    assert_int_equal(shoal_request_rows(request, data, NULL), SHOAL_OK);
    assert_int_equal(shoal_request_run(&outcome, request), SHOAL_INVALID);
    assert_string_equal(shoal_error(), "row 2, column 1 is not a number; k-means needs finite numbers");
    shoal_outcome_free(&outcome);
    shoal_data_free(&data);
    assert_int_equal(shoal_data_wrap(&data, equal, 2, 2, SHOAL_FLOAT64), SHOAL_OK);
    assert_int_equal(shoal_request_rows(request, data, NULL), SHOAL_OK);
    assert_int_equal(shoal_request_run(&outcome, request), SHOAL_INVALID);
    assert_int_equal(strncmp(shoal_error(), "-k 2 is more than the data's 1 distinct", 39), 0);
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
    shoal_data_free(&data);
}

enum { AT_ONCE = 4 };
static pthread_barrier_t all_there;

static void *run_one(void *into)
{
    pthread_barrier_wait(&all_there);
    shoal_request *request =
        request_of("kmeans", (const char *const[][2]){{"data", rows}, {"clusters", "6"}, {"threads", "1"}, {0}});
    *(shoal_outcome **)into = run(request);
    shoal_request_free(&request);
    return NULL;
}

static void requests_of_several_threads_run_side_by_side(void **state)
{
    pthread_t thread[AT_ONCE];
    shoal_outcome *outcome[AT_ONCE] = {0};
    (void)state;
    assert_int_equal(pthread_barrier_init(&all_there, NULL, AT_ONCE), 0);
    for (int i = 0; i < AT_ONCE; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_one, &outcome[i]), 0);
    for (int i = 0; i < AT_ONCE; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&all_there);
    for (int i = 0; i < AT_ONCE; i++) {
        assert_same_centres(shoal_outcome_result(outcome[i]), shoal_outcome_result(outcome[0]));
        if (i > 0)
            shoal_outcome_free(&outcome[i]);
    }
    shoal_outcome_free(&outcome[0]);
}

/* Runs k-means with a history of its own; whether the run is in it. */
static bool is_noted(bool bound)
{
    shoal_request *request = request_of("kmeans", (const char *const[][2]){{"data", rows}, {"clusters", "6"}, {0}});
    if (bound)
        shoal_request_bind(request);
    shoal_outcome *outcome = run(request);
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
    bool noted = remove(file_path("state/shoal/history.jsonl")) == 0;
    remove(file_path("state/shoal"));
    remove(file_path("state"));
    return noted;
}

static void nothing_is_noted_of_a_run_that_is_bound(void **state)
{
    (void)state;
    setenv("XDG_STATE_HOME", file_path("state"), 1);
    unsetenv("SHOAL_HISTORY");
    bool noted = is_noted(false), noted_bound = is_noted(true);
    setenv("SHOAL_HISTORY", "off", 1);
    unsetenv("XDG_STATE_HOME");
    assert_true(noted);
    assert_false(noted_bound);
}

static void assert_file_refused(const char *name, const char *workers, const char *sentence)
{
    shoal_outcome *outcome = NULL;
    shoal_request *request = request_of("exec", (const char *const[][2]){{"data", rows}, {"exec", "cat"}, {0}});
    if (workers)
        assert_int_equal(shoal_request_set(request, "workers", workers), SHOAL_OK);
    assert_int_equal(shoal_request_file(request, name, "text", 4), SHOAL_OK);
    assert_int_equal(shoal_request_program(request, "/bin/true"), SHOAL_OK); /* which never gets to run */
    assert_int_equal(shoal_request_run(&outcome, request), SHOAL_USAGE);
    assert_string_equal(shoal_error(), sentence);
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
}

static void files_in_memory_are_for_commands_on_workers(void **state)
{
    shoal_request *request = request_of("kmeans", (const char *const[][2]){{0}});
    (void)state;
    assert_int_equal(shoal_request_file(request, "a.py", "text", 4), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "kmeans takes no files along");
    shoal_request_free(&request);
    assert_file_refused("a.py", NULL, "files in memory need workers: without them a command runs in this folder");
    assert_file_refused("../a.py", "local:1", "../a.py: such a name can't be sent");
    assert_file_refused("/a.py", "local:1", "/a.py: such a name can't be sent");
    request = request_of("exec", (const char *const[][2]){{0}});
    for (int i = 0; i < SHOAL_CODE_MOST; i++)
        assert_int_equal(shoal_request_file(request, "a.py", "text", 4), SHOAL_OK);
    assert_int_equal(shoal_request_file(request, "a.py", "text", 4), SHOAL_USAGE);
    shoal_request_free(&request);
}

static int count_rounds, stop;

static void on_round(void *context, const shoal_round *done, const shoal_round *next, int64_t count, double seconds)
{
    (void)context, (void)done, (void)count, (void)seconds;
    count_rounds++;
    stop = next && strcmp(next->phase, "run") == 0 && next->step >= 2;
}

static void a_watcher_hears_rounds_and_stops_the_run(void **state)
{
    (void)state;
    shoal_request *request =
        request_of("kmeans", (const char *const[][2]){{"data", rows}, {"clusters", "50"}, {"tolerance", "0"}, {0}});
    shoal_request_watch(request, &(shoal_watcher){.round = on_round, .stop = &stop});
    shoal_outcome *outcome = run(request);
    assert_true(count_rounds > 3);
    assert_true(shoal_outcome_report(outcome)->stopped);
    assert_non_null(shoal_outcome_result(outcome));
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
}

static void assert_refused(const char *name, const char *text, const char *sentence)
{
    shoal_request *request = NULL;
    assert_int_equal(shoal_request_new(&request, "kmeans"), SHOAL_OK);
    assert_int_equal(shoal_request_set(request, name, text), SHOAL_USAGE);
    assert_string_equal(shoal_error(), sentence);
    shoal_request_free(&request);
}

static void what_is_wrong_is_told(void **state)
{
    shoal_request *request = NULL;
    shoal_outcome *outcome = NULL;
    (void)state;
    assert_int_equal(shoal_request_new(&request, "kmean"), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "unknown learner 'kmean'; did you mean 'kmeans'?");
    assert_null(request);
    assert_refused("sparsity", "5", "kmeans has no option 'sparsity'");
    assert_refused("n_clusters", "0", "--n_clusters must be at least 1, not 0"); /* an alias */
    assert_refused("max-ite", "0", "kmeans has no option 'max-ite'; did you mean 'iterations'?");
    assert_refused("clusters", "many", "--clusters: 'many' is not a number");
    assert_int_equal(shoal_request_new(&request, "kmeans"), SHOAL_OK);
    assert_int_equal(shoal_request_set(request, "clusters", "3"), SHOAL_OK);
    assert_int_equal(shoal_request_run(&outcome, request), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "kmeans needs data");
    shoal_outcome_free(&outcome);
    assert_int_equal(shoal_request_set(request, "data", "/nowhere/rows.npy"), SHOAL_OK);
    assert_true(shoal_request_run(&outcome, request) < 0);
    assert_non_null(strstr(shoal_error(), "/nowhere/rows.npy"));
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
    assert_int_equal(shoal_request_new(&request, "logistic"), SHOAL_OK);
    assert_int_equal(shoal_request_start(request, (const double[]){1}, 1, 1), SHOAL_USAGE);
    shoal_request_free(&request);
}

/* What one run has found out of its rows and files is nothing to the next. */
static void a_request_may_change_between_runs(void **state)
{
    static const double seven[7 * 4] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3,
                                        3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6};
    (void)state;
    assert_int_equal(shoal_npy_write(file_path("7.npy"), seven, SHOAL_FLOAT64, 2, (const int64_t[]){7, 4}), SHOAL_OK);
    assert_int_equal(shoal_npy_write(file_path("5.npy"), seven, SHOAL_FLOAT64, 2, (const int64_t[]){5, 4}), SHOAL_OK);
    shoal_request *request =
        request_of("kmeans", (const char *const[][2]){{"data", rows}, {"init", file_path("7.npy")}, {0}});
    shoal_outcome *outcome = run(request);
    assert_int_equal(shoal_result_tensor(shoal_outcome_result(outcome), "centres")->shape[0], 7);
    shoal_outcome_free(&outcome);
    assert_int_equal(shoal_request_set(request, "init", file_path("5.npy")), SHOAL_OK);
    outcome = run(request);
    assert_int_equal(shoal_result_tensor(shoal_outcome_result(outcome), "centres")->shape[0], 5);
    shoal_outcome_free(&outcome);
    assert_int_equal(shoal_request_set(request, "init", NULL), SHOAL_OK); /* as if nobody had given it */
    assert_int_equal(shoal_request_set(request, "clusters", "3"), SHOAL_OK);
    outcome = run(request);
    assert_int_equal(shoal_result_tensor(shoal_outcome_result(outcome), "centres")->shape[0], 3);
    shoal_outcome_free(&outcome);
    assert_int_equal(shoal_request_start(request, seven, 7, 4), SHOAL_OK);
    assert_int_equal(shoal_request_run(&outcome, request), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "-k is 3, but the start has 7 rows");
    shoal_outcome_free(&outcome);
    assert_int_equal(shoal_request_set(request, "clusters", NULL), SHOAL_OK);
    assert_int_equal(shoal_request_set(request, "init", file_path("5.npy")), SHOAL_OK);
    assert_int_equal(shoal_request_run(&outcome, request), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "kmeans has both a start in memory and --init");
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
}

static void parameters_are_read_for_every_run(void **state)
{
    (void)state;
    shoal_request *request = request_of(
        "exec",
        (const char *const[][2]){
            {"data", rows}, {"exec", "cat"}, {"collect", "true"}, {"params", "{\"a\": 1}"}, {"threads", "1"}, {0}});
    for (int i = 0; i < 2; i++) {
        shoal_outcome *outcome = run(request);
        assert_int_equal(shoal_outcome_result(outcome)->tensor[0].shape[0], 3000);
        shoal_outcome_free(&outcome);
    }
    shoal_request_free(&request);
}

static void assert_run_refused(const char *const options[][2], shoal_data *data, const double *weights,
                               const char *sentence)
{
    shoal_request *request = request_of("kmeans", options);
    shoal_outcome *outcome = NULL;
    assert_int_equal(shoal_request_rows(request, data, weights), SHOAL_OK);
    assert_int_equal(shoal_request_run(&outcome, request), SHOAL_USAGE);
    assert_string_equal(shoal_error(), sentence);
    assert_non_null(outcome);
    assert_null(shoal_outcome_result(outcome));
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
}

static void what_comes_from_two_places_is_refused(void **state)
{
    static const double values[] = {0, 1, 2}, weights[] = {1, 1, 1};
    shoal_data *data = NULL;
    (void)state;
    assert_int_equal(shoal_data_wrap(&data, values, 3, 1, SHOAL_FLOAT64), SHOAL_OK);
    assert_run_refused((const char *const[][2]){{"clusters", "2"}, {"data", "x.npy"}, {0}}, data, NULL,
                       "kmeans has both data, x.npy, and rows in memory");
    assert_run_refused((const char *const[][2]){{"clusters", "2"}, {"weights", "w.npy"}, {0}}, data, weights,
                       "kmeans has both weights in memory and --weights w.npy");
    assert_run_refused((const char *const[][2]){{"clusters", "2"}, {"workers", "local:2"}, {0}}, data, NULL,
                       "workers are processes of the program shoal: say where it is (shoal_request_program)");
    shoal_data_free(&data);
}

static void assert_program_refused(const char *program, const char *sentence)
{
    static const double values[] = {0, 1, 2};
    shoal_data *data = NULL;
    shoal_outcome *outcome = NULL;
    shoal_request *request = request_of(
        "kmeans",
        (const char *const[][2]){{"clusters", "2"}, {"workers", "local:2"}, {"store", file_path("programs")}, {0}});
    assert_int_equal(shoal_data_wrap(&data, values, 3, 1, SHOAL_FLOAT64), SHOAL_OK);
    assert_int_equal(shoal_request_rows(request, data, NULL), SHOAL_OK);
    assert_int_equal(shoal_request_program(request, program), SHOAL_OK);
    assert_int_equal(shoal_request_run(&outcome, request), SHOAL_USAGE);
    assert_string_equal(shoal_error(), sentence);
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
    shoal_data_free(&data);
}

/* A script in the place of the program. */
static void assert_says(const char *script, const char *said)
{
    char program[256], sentence[1024];
    snprintf(program, sizeof program, "%s", file_path("program"));
    FILE *file = fopen(program, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(program, 0700), 0);
    snprintf(sentence, sizeof sentence, "%s is not the program shoal %s, which workers run: `%s --version` prints %s",
             program, shoal_version(), program, said);
    assert_program_refused(program, sentence);
}

static void a_program_that_is_not_shoal_is_refused_before_there_is_a_job(void **state)
{
    shoal_store *store = NULL;
    shoal_job_id *ids = NULL;
    int64_t count = -1;
    (void)state;
    assert_says("exit 0", "nothing");
    assert_says("echo shoal 0.0.9; sleep 1000", "\"shoal 0.0.9\"");
    assert_program_refused("/nowhere/shoal",
                           "can't start /nowhere/shoal, which should be the program shoal: No such file or directory");
    assert_int_equal(shoal_store_open(&store, file_path("programs"), &(shoal_store_options){0}, shoal_after(60)),
                     SHOAL_OK);
    assert_int_equal(shoal_job_list(&ids, &count, store, shoal_after(60)), SHOAL_OK);
    assert_int_equal(count, 0);
    shoal_job_list_free(&ids);
    shoal_store_close(&store);
    base_remove_folder(file_path("programs"));
}

/* Whoever may write to a store can leave jobs there that no verb submits. */
static void a_prediction_that_is_resumed_has_its_result_in_the_store(void **state)
{
    static const double centres[] = {0, 0, 0, 0, 9, 9, 9, 9};
    const shoal_predict_config config = {.centres = centres, .k = 2, .columns = 4};
    const shoal_job_options options = {.settings = "{\"outputs\": {\"model\": \"m\"}, \"options\": 7}"};
    char url[600], id[SHOAL_JOB_ID_BYTES];
    shoal_store *store = NULL;
    shoal_data *data = NULL;
    shoal_worker *worker = NULL;
    shoal_outcome *outcome = NULL;
    run_jobs jobs = {0};
    (void)state;
    snprintf(url, sizeof url, "dir:%s", file_path("st"));
    assert_int_equal(shoal_store_open(&store, url, &(shoal_store_options){.create = true}, shoal_after(20)), SHOAL_OK);
    assert_int_equal(shoal_data_open(&data, rows, NULL), SHOAL_OK);
    assert_int_equal(shoal_job_submit(id, store, &shoal_kmeans_predict, &config, data, NULL, &options), SHOAL_OK);
    assert_int_equal(
        shoal_worker_new(&worker, store, &(shoal_worker_options){.algorithms = learn_algorithms(), .job = id}),
        SHOAL_OK);
    assert_int_equal(shoal_worker_run(worker), SHOAL_OK);
    shoal_worker_free(&worker);
    assert_int_equal(run_jobs_open(&jobs, &(run_jobs_settings){.store = url}, RUN_JOBS_WRITE), SHOAL_OK);
    assert_int_equal(run_resume(&outcome, &jobs, id, &(run_resume_options){.workers = {.write_outputs = true}}),
                     SHOAL_OK);
    assert_true(outcome->away.bare);
    shoal_outcome_free(&outcome);
    shoal_data_free(&data);
    shoal_store_close(&store);
    base_remove_folder(file_path("st"));
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static const float flowers[][2] = {{1, 2}, {1.5f, 2}, {1, 2.5f}, {7, 1}, {8, 1.5f}, {7.5f, 1}};
enum { FLOWERS = 6 };

static shoal_data *wrap_flowers(void)
{
    shoal_data *data = NULL;
    assert_int_equal(shoal_data_wrap(&data, flowers, FLOWERS, 2, SHOAL_FLOAT32), SHOAL_OK);
    return data;
}

/* Applies the model to rows in memory, into memory. */
static int apply_to(const shoal_model *model, shoal_data *data, const char *output, void *values, size_t bytes)
{
    shoal_application *apply = NULL;
    int status = shoal_application_new(&apply, model);
    if (status == SHOAL_OK)
        status = shoal_application_rows(apply, data, NULL);
    if (status == SHOAL_OK)
        status = shoal_application_into(apply, output, values, bytes);
    if (status == SHOAL_OK)
        status = shoal_application_run(apply);
    if (status == SHOAL_OK)
        assert_ptr_equal(shoal_result_tensor(shoal_application_result(apply), output)->values, values);
    shoal_application_free(&apply);
    return status;
}

static void a_model_is_what_the_run_writes(void **state)
{
    const char *path = file_path("model.safetensors");
    shoal_request *request =
        request_of("kmeans", (const char *const[][2]){{"clusters", "2"}, {"seed", "4"}, {"model", path}, {0}});
    shoal_data *data = wrap_flowers();
    shoal_model *found = NULL, *read = NULL, *copy = NULL;
    size_t found_size = 0, read_size = 0;
    int32_t labels[2][FLOWERS];
    double distances[FLOWERS], all[FLOWERS][2];
    (void)state;
    assert_int_equal(shoal_data_name_columns(data, (const char *const[]){"length", "width"}), SHOAL_OK);
    assert_int_equal(shoal_request_rows(request, data, NULL), SHOAL_OK);
    shoal_outcome *outcome = run(request);
    assert_int_equal(shoal_model_of(&found, outcome), SHOAL_OK);
    assert_int_equal(shoal_model_open(&read, path), SHOAL_OK);
    const void *bytes = shoal_model_bytes(found, &found_size), *file = shoal_model_bytes(read, &read_size);
    assert_int_equal(found_size, read_size);
    assert_memory_equal(bytes, file, read_size);
    assert_int_equal(shoal_model_read(&copy, bytes, found_size, "a copy"), SHOAL_OK);
    assert_string_equal(shoal_model_learner(copy), "kmeans");
    assert_string_equal(shoal_model_text(copy, "option.seed"), "4");
    assert_string_equal(shoal_model_column_name(copy, 1), "width");
    assert_null(shoal_model_column_name(copy, 2));
    assert_int_equal(shoal_model_columns(copy), 2);
    shoal_tensor centres;
    assert_int_equal(shoal_model_tensor(&centres, copy, "centres"), SHOAL_OK);
    assert_int_equal(centres.shape[0], 2);
    assert_int_equal(shoal_model_tensor(&centres, copy, "weights"), SHOAL_ABSENT);
    assert_int_equal(apply_to(found, data, "labels", labels[0], sizeof labels[0]), SHOAL_OK);
    assert_int_equal(apply_to(copy, data, "labels", labels[1], sizeof labels[1]), SHOAL_OK);
    assert_memory_equal(labels[0], labels[1], sizeof labels[0]);
    assert_memory_equal(labels[0], shoal_result_tensor(shoal_outcome_result(outcome), "labels")->values,
                        sizeof labels[0]);
    assert_int_equal(apply_to(copy, data, "distances", distances, sizeof distances), SHOAL_OK);
    for (int i = 0; i < FLOWERS; i++)
        assert_true(distances[i] > 0 && distances[i] < 1);
    assert_int_equal(apply_to(copy, data, "all-distances", all, sizeof all), SHOAL_OK);
    for (int i = 0; i < FLOWERS; i++)
        assert_true(all[i][labels[0][i]] == distances[i] && all[i][1 - labels[0][i]] > 5);
    assert_int_equal(apply_to(copy, data, "distances", distances, sizeof distances - 1), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "distances: memory of 47 bytes, but 6 rows take 8 bytes each"));
    assert_int_equal(apply_to(copy, data, "features", distances, sizeof distances), SHOAL_USAGE);
    shoal_model_free(&read);
    assert_int_equal(shoal_model_read(&read, bytes, found_size - 1, "cut short"), SHOAL_INVALID);
    assert_null(read);
    shoal_model_free(&found);
    shoal_model_free(&copy);
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
    shoal_data_free(&data);
}

static void a_model_is_scored_after_a_run_that_asked_for_it(void **state)
{
    shoal_request *request =
        request_of("autoencoder", (const char *const[][2]){{"hidden", "2"}, {"rescale", "auto"}, {0}});
    shoal_data *data = wrap_flowers();
    shoal_model *model = NULL;
    shoal_application *apply = NULL;
    shoal_result *score = NULL;
    (void)state;
    assert_int_equal(shoal_request_rows(request, data, NULL), SHOAL_OK);
    shoal_outcome *outcome = run(request);
    assert_int_equal(shoal_model_of(&model, outcome), SHOAL_OK);
    for (int asked = 0; asked < 2; asked++) {
        assert_int_equal(shoal_application_new(&apply, model), SHOAL_OK);
        assert_int_equal(shoal_application_rows(apply, data, NULL), SHOAL_OK);
        assert_int_equal(shoal_application_set(apply, "score", asked ? "true" : NULL), SHOAL_OK);
        assert_int_equal(shoal_application_score(&score, apply), SHOAL_USAGE); /* before it ran */
        assert_int_equal(shoal_application_run(apply), SHOAL_OK);
        assert_int_equal(shoal_application_score(&score, apply), asked ? SHOAL_OK : SHOAL_USAGE);
        shoal_application_free(&apply);
    }
    assert_float_equal(shoal_result_number(score, "error"), shoal_result_number(shoal_outcome_result(outcome), "error"),
                       1e-6); /* of float32 activations */
    shoal_result_free(&score);
    shoal_model_free(&model);
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
    shoal_data_free(&data);
}

static void a_target_may_lie_in_memory(void **state)
{
    const double known[FLOWERS] = {1, 1, 1, 0, 0, 0}, wrong[FLOWERS] = {0, 1, 2, 0, 1, 0.5};
    const char *const words[] = {"rose", "tulip"};
    shoal_request *request = request_of("logistic", (const char *const[][2]){{"threads", "1"}, {0}});
    shoal_data *data = wrap_flowers(), *target = NULL, *bad = NULL;
    shoal_application *apply = NULL;
    shoal_outcome *outcome = NULL;
    shoal_model *model = NULL;
    shoal_tensor about;
    double labels[FLOWERS], probabilities[FLOWERS][2];
    (void)state;
    assert_int_equal(shoal_data_wrap(&target, known, FLOWERS, 1, SHOAL_FLOAT64), SHOAL_OK);
    assert_int_equal(shoal_data_name_words(target, words, 2), SHOAL_OK);
    assert_int_equal(shoal_request_rows(request, data, NULL), SHOAL_OK);
    assert_int_equal(shoal_request_target(request, target), SHOAL_OK);
    outcome = run(request);
    assert_int_equal(shoal_model_of(&model, outcome), SHOAL_OK);
    assert_string_equal(shoal_model_class_name(model, 1), "tulip");
    assert_int_equal(apply_to(model, data, "labels", labels, sizeof labels), SHOAL_OK);
    assert_memory_equal(labels, known, sizeof known);
    assert_int_equal(shoal_application_new(&apply, model), SHOAL_OK);
    assert_int_equal(shoal_application_output(&about, apply, "probabilities"), SHOAL_USAGE);
    assert_int_equal(shoal_application_rows(apply, data, NULL), SHOAL_OK);
    assert_int_equal(shoal_application_load(apply), SHOAL_OK);
    assert_int_equal(shoal_application_load(apply), SHOAL_USAGE);
    assert_int_equal(shoal_application_output(&about, apply, "probabilities"), SHOAL_OK);
    assert_int_equal(about.type, SHOAL_FLOAT64);
    assert_int_equal(about.shape[0], FLOWERS);
    assert_int_equal(about.shape[1], 2);
    assert_int_equal(shoal_application_into(apply, "probabilities", probabilities, sizeof probabilities), SHOAL_OK);
    assert_int_equal(shoal_application_run(apply), SHOAL_OK);
    for (int i = 0; i < FLOWERS; i++)
        assert_true((probabilities[i][1] > 0.5) == (known[i] == 1));
    shoal_application_free(&apply);
    shoal_outcome_free(&outcome);
    assert_int_equal(shoal_data_wrap(&bad, wrong, FLOWERS, 1, SHOAL_FLOAT64), SHOAL_OK);
    assert_int_equal(shoal_data_name_words(bad, words, 2), SHOAL_OK);
    assert_int_equal(shoal_request_target(request, bad), SHOAL_OK);
    assert_int_equal(shoal_request_run(&outcome, request), SHOAL_INVALID);
    assert_string_equal(shoal_error(), "the target: row 3 is 2, which is not the number of one of 2 words");
    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
    shoal_request *clusters = request_of("kmeans", (const char *const[][2]){{0}});
    assert_int_equal(shoal_request_target(clusters, target), SHOAL_USAGE);
    shoal_request_free(&clusters);
    shoal_model_free(&model);
    shoal_data_free(&bad);
    shoal_data_free(&target);
    shoal_data_free(&data);
}

int main(void)
{
    setenv("SHOAL_HISTORY", "off", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_is_what_shoal_run_does, folder_setup, folder_teardown),
        cmocka_unit_test(rows_weights_and_start_may_lie_in_memory),
        cmocka_unit_test(what_is_wrong_with_rows_in_memory_names_no_file),
        cmocka_unit_test(requests_of_several_threads_run_side_by_side),
        cmocka_unit_test_setup_teardown(nothing_is_noted_of_a_run_that_is_bound, folder_setup, folder_teardown),
        cmocka_unit_test(files_in_memory_are_for_commands_on_workers),
        cmocka_unit_test(a_watcher_hears_rounds_and_stops_the_run),
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test_setup_teardown(a_request_may_change_between_runs, folder_setup, folder_teardown),
        cmocka_unit_test(parameters_are_read_for_every_run),
        cmocka_unit_test_setup_teardown(a_model_is_what_the_run_writes, folder_setup, folder_teardown),
        cmocka_unit_test(a_model_is_scored_after_a_run_that_asked_for_it),
        cmocka_unit_test(a_target_may_lie_in_memory),
        cmocka_unit_test(what_comes_from_two_places_is_refused),
        cmocka_unit_test_setup_teardown(a_program_that_is_not_shoal_is_refused_before_there_is_a_job, folder_setup,
                                        folder_teardown),
        cmocka_unit_test_setup_teardown(a_prediction_that_is_resumed_has_its_result_in_the_store, folder_setup,
                                        folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
