/* Labels: threads
 * A worker and strangers who can write to its store: forged messages, models and specs cost time, and neither end it
 * nor change a result. */
#include "job_support.h"

#include <pthread.h>
#include <sys/stat.h>

#include "engine/store/job_memory.h"
#include "engine/store/job_model.h"

/* ---- a learner --------------------------------------------------------------------------------------------------- */

/* Adds up all values, once a round, for three rounds.  Its model says who made it. */
typedef struct adder_model {
    int64_t magic, step, sum;
} adder_model;

enum { MAGIC = 4711, STEPS = 3 };

static bool never_content;      /* prepare finds every model but the first broken */
static int discontent[STEPS];   /* how often prepare finds the model of a step broken */
static void (*on_broken)(void); /* what happens meanwhile */
static void (*on_update)(void); /* while the first step is updated */
static _Atomic int maps_of_first;
static size_t scratch_wanted;
static int64_t cells_later; /* of rounds after the first; 0: as many as in the first */

static int make_round(shoal_round **out, int64_t step, int64_t sum)
{
    int status = shoal_round_new(out, sizeof(adder_model));
    if (status < 0)
        return status;
    *(adder_model *)(*out)->model = (adder_model){MAGIC, step, sum};
    snprintf((*out)->phase, sizeof(*out)->phase, "run");
    (*out)->layout.cells = 1;
    (*out)->layout.cell[0] =
        (shoal_cell){.name = "sum", .kind = SHOAL_CELL_SUM, .count = step && cells_later ? cells_later : 1};
    (*out)->layout.carry_from = -1;
    return SHOAL_OK;
}

static int start_adder(shoal_round **out, const void *config, const shoal_shape *shape)
{
    (void)config;
    (void)shape;
    return make_round(out, 0, 0);
}

static int prepare_adder(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    const adder_model *model = round->model;
    (void)prepared;
    (void)shape;
    (void)crew;
    if (round->model_bytes != sizeof *model || model->magic != MAGIC || (never_content && model->step > 0) ||
        (model->step < STEPS && discontent[model->step]-- > 0)) {
        if (on_broken)
            on_broken();
        return shoal_fail(SHOAL_BROKEN, "a model that no adder made");
    }
    return SHOAL_OK;
}

static size_t scratch_adder(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round;
    (void)prepared;
    (void)shape;
    return scratch_wanted;
}

static int map_adder(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    (void)prepared;
    (void)scratch;
    maps_of_first += ((const adder_model *)round->model)->step == 0;
    const float *values = grain->values;
    for (int64_t i = 0; i < grain->rows * grain->shape->columns; i++)
        shoal_partial_values(partial, 0)[0] += (int64_t)(2 * values[i]);
    return SHOAL_OK;
}

static int update_adder(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const adder_model *model = round->model;
    int64_t sum = model->sum + shoal_partial_values_const(merged, 0)[0];
    (void)shape;
    (void)crew;
    (void)stop;
    if (on_update && model->step == 0)
        on_update();
    if (model->step + 1 < STEPS)
        return make_round(next, model->step + 1, sum);
    int status = shoal_result_new(result);
    if (status == SHOAL_OK)
        shoal_result_set_whole(*result, "sum", sum);
    return status;
}

static const shoal_algorithm adder = {ANY_ROUND,
                                      .name = "adder",
                                      .summary = "adds",
                                      .start = start_adder,
                                      .prepare = prepare_adder,
                                      .scratch_bytes = scratch_adder,
                                      .map = map_adder,
                                      .update = update_adder,
                                      .kernel_free = true};
static const shoal_algorithm *const known[] = {&adder, NULL};

/* ---- jobs and workers -------------------------------------------------------------------------------------------- */

static char told[16384]; /* all that workers said */
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;

static void hear(void *context, const char *line)
{
    (void)context;
    pthread_mutex_lock(&told_lock);
    size_t length = strlen(told);
    snprintf(told + length, sizeof told - length, "%s\n", line);
    pthread_mutex_unlock(&told_lock);
}

static int begin(void **state)
{
    told[0] = '\0';
    never_content = false;
    memset(discontent, 0, sizeof discontent);
    on_broken = on_update = NULL;
    maps_of_first = 0;
    scratch_wanted = 0;
    cells_later = 0;
    return job_setup(state);
}

static void submit(char id[SHOAL_JOB_ID_BYTES], shoal_store *store, shoal_data *data)
{
    EXPECT_OK(
        shoal_job_submit(id, store, &adder, NULL, data, NULL,
                         &(shoal_job_options){.slices = 4, .rows_per_grain = 30, .reduce = "tree:2", .lease = 1}));
}

static int work(shoal_store *store, shoal_worker_options options)
{
    shoal_worker *worker = NULL;
    options.algorithms = known;
    options.slots = options.slots ? options.slots : 2;
    options.log = hear;
    EXPECT_OK(shoal_worker_new(&worker, store, &options));
    int status = shoal_worker_run(worker);
    shoal_worker_free(&worker);
    return status;
}

static void expect_sum(shoal_store *store, const char *id)
{
    shoal_result *result = NULL;
    int64_t sum = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        sum += i;
    EXPECT_OK(shoal_job_result(&result, store, id, known, soon()));
    assert_true(shoal_result_number(result, "sum") == (double)(STEPS * sum));
    shoal_result_free(&result);
}

static void expect_told(const char *words)
{
    if (!strstr(told, words))
        fail_msg("nobody said \"%s\", but: %s", words, told);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Bytes in a queue made of blobs as a stranger would put them there. */
static void forge_message(shoal_store *store, const char *id, const char *queue, int number, const char *bytes)
{
    char key[256];
    shoal_etag etag;
    const store_body body = {{{NULL, 0}, {(void *)bytes, strlen(bytes)}}};
    snprintf(key, sizeof key, ".shoal/queue/jobs/%s/%s/m/%032x", id, queue, number);
    EXPECT_OK(store_put(store, key, &body, NULL, NULL, &etag, soon()));
}

static void messages_of_strangers(void **state)
{
    (void)state;
    static const char *const queues[] = {"map", "reduce", "last"};
    static const char *const kinds[] = {"mem:messages?queue=blobs", "mem:messages"};
    for (int kind = 0; kind < 2; kind++) {
        shoal_store *store = open_store(kinds[kind]);
        shoal_data *data = wrapped();
        char id[SHOAL_JOB_ID_BYTES];
        submit(id, store, data);
        for (int queue = 0; queue < 3; queue++)
            for (int i = 0; i < 8; i++) {
                job_key name = job_key_of(id, queues[queue]);
                const char *text = i % 2 ? "-1" : "one that is not a number but is long all the same";
                EXPECT_OK(shoal_store_push(store, name.text, text, strlen(text), soon()));
                EXPECT_OK(shoal_store_push(store, name.text, "99999999999999999999", 20, soon()));
                if (kind == 0)
                    forge_message(store, id, queues[queue], i, "no frame");
            }
        EXPECT_OK(work(store, (shoal_worker_options){.job = id}));
        expect_sum(store, id);
        shoal_data_free(&data);
        shoal_store_close(&store);
    }
}

/* ---- specs ------------------------------------------------------------------------------------------------------- */

/* A worker of all jobs serves the others. */
static void a_job_that_is_denied_is_refused(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:jobs");
    shoal_data *secret = filed(), *data = wrapped();
    char bad[SHOAL_JOB_ID_BYTES], good[SHOAL_JOB_ID_BYTES];
    submit(bad, store, secret);
    submit(good, store, data);
    EXPECT_OK(work(store, (shoal_worker_options){.idle = 0.3}));
    expect_sum(store, good);
    expect_told("does not serve job");
    expect_told("this worker may not read the file");
    for (const char *joins = told; (joins = strstr(joins, "joins job ")); joins++) /* nobody waits for who can't help */
        assert_memory_not_equal(joins + strlen("joins job "), bad, strlen(bad));
    shoal_data_free(&secret);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* As many broken models as there may be: that job is given up, and the others are served. */
static void rubbish_in_place_of_models(void **state)
{
    (void)state;
    enum { MODELS = 150 };
    shoal_store *store = open_store("mem:jobs");
    shoal_data *data = wrapped();
    char bad[SHOAL_JOB_ID_BYTES], good[SHOAL_JOB_ID_BYTES];
    submit(bad, store, data);
    for (int i = 1; i <= MODELS; i++)
        EXPECT_OK(shoal_store_put(store, job_key_model(bad, i).text, "junk", 4, NULL, NULL, soon()));
    submit(good, store, data);
    EXPECT_OK(work(store, (shoal_worker_options){.idle = 0.3}));
    expect_sum(store, good);
    expect_told("are broken, one after another");
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* Rows in a folder store that is not there: a missing file, not an upload that may yet come. */
static void a_missing_folder_store(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:jobs"), *rows = open_store(at("rows"));
    shoal_data *data = NULL;
    char id[SHOAL_JOB_ID_BYTES];
    static char bytes[sizeof job_values];
    EXPECT_OK(shoal_store_put(rows, "r", bytes, sizeof bytes, NULL, NULL, soon()));
    EXPECT_OK(
        shoal_job_data_open(&data, at("rows/r"), &(shoal_data_options){.columns = COLUMNS, .type = "float32"}, soon()));
    submit(id, store, data);
    shoal_store_close(&rows);
    assert_int_equal(rename(at("rows"), at("gone")), 0);
    int64_t began = shoal_now();
    EXPECT_FAIL(work(store, (shoal_worker_options){.job = id, .data_root = "/", .patience = 5}), SHOAL_SYSTEM,
                "there is no store at");
    assert_true(shoal_now() - began < INT64_C(5000000000));
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static void put_model(shoal_store *store, const char *id, int64_t number, int64_t magic, int64_t sum)
{
    job_model model = {.number = number, .state = SHOAL_JOB_RUNNING};
    void *bytes = NULL;
    size_t size = 0;
    EXPECT_OK(make_round(&model.round, number, sum));
    model.round->number = number;
    ((adder_model *)model.round->model)->magic = magic;
    EXPECT_OK(job_model_encode(&bytes, &size, &model));
    EXPECT_OK(
        shoal_store_put_framed(store, job_key_model(id, number).text, JOB_KIND_MODEL, bytes, size, NULL, NULL, soon()));
    base_free(&bytes);
    shoal_round_free(&model.round);
}

static void forge_model(shoal_store *store, const char *id, int64_t number)
{
    put_model(store, id, number, MAGIC + 1, -1);
}

static void forged_models_are_removed(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:jobs");
    shoal_data *data = wrapped();
    char id[SHOAL_JOB_ID_BYTES];
    submit(id, store, data);
    for (int64_t number = 1; number <= 2; number++)
        forge_model(store, id, number);
    EXPECT_OK(work(store, (shoal_worker_options){.job = id}));
    expect_sum(store, id);
    expect_told("round 2: a model that no adder made; removed, goes back");
    shoal_data_free(&data);
    shoal_store_close(&store);
}

static shoal_store *meeting;
static char meeting_id[SHOAL_JOB_ID_BYTES];

/* A quicker worker has removed the forged model of round 1 and put the true one. */
static void put_true_model(void)
{
    put_model(meeting, meeting_id, 1, MAGIC, ROWS * COLUMNS * (ROWS * COLUMNS - 1) / 2);
}

/* A worker that finds a model broken does not remove what others have put in its place. */
static void a_model_that_was_made_again_stays(void **state)
{
    (void)state;
    shoal_data *data = wrapped();
    meeting = open_store("mem:jobs");
    submit(meeting_id, meeting, data);
    forge_model(meeting, meeting_id, 1);
    on_broken = put_true_model;
    EXPECT_OK(work(meeting, (shoal_worker_options){.job = meeting_id}));
    expect_sum(meeting, meeting_id);
    expect_told("round 1: a model that no adder made");
    assert_int_equal(maps_of_first, 0);
    shoal_data_free(&data);
    shoal_store_close(&meeting);
}

static void put_another_sum(void)
{
    put_model(meeting, meeting_id, 1, MAGIC, 12345);
}

/* Models of one round are the same wherever they are computed: who finds another than its own says so and leaves. */
static void a_model_that_was_computed_otherwise(void **state)
{
    (void)state;
    shoal_data *data = wrapped();
    meeting = open_store("mem:jobs");
    submit(meeting_id, meeting, data);
    on_update = put_another_sum;
    EXPECT_FAIL(work(meeting, (shoal_worker_options){.job = meeting_id}), SHOAL_SYSTEM,
                "this worker computed another model for round 1 than the one in the store");
    shoal_data_free(&data);
    shoal_store_close(&meeting);
}

/* Strangers may come in every round: what counts is how often they do in one. */
static void distrust_is_forgotten_when_the_job_goes_on(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:jobs");
    shoal_data *data = wrapped();
    char id[SHOAL_JOB_ID_BYTES];
    submit(id, store, data);
    discontent[1] = discontent[2] = 3;
    EXPECT_OK(work(store, (shoal_worker_options){.job = id}));
    expect_sum(store, id);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* A learner that finds fault with what workers did make does not keep one busy forever. */
static void a_learner_that_is_never_content(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:jobs");
    shoal_data *data = wrapped();
    char id[SHOAL_JOB_ID_BYTES];
    submit(id, store, data);
    never_content = true;
    EXPECT_FAIL(work(store, (shoal_worker_options){.job = id}), SHOAL_BROKEN, "a model that no adder made");
    never_content = false;
    EXPECT_OK(work(store, (shoal_worker_options){.job = id}));
    expect_sum(store, id);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* What a job of these tests needs in its first round, for two threads. */
static job_memory need_of(shoal_store *store, const char *id)
{
    job_spec *spec = NULL;
    job_memory need;
    const job_means means = {.threads = 2, .roles = SHOAL_ROLE_ALL, .limit = INT64_MAX};
    EXPECT_OK(job_spec_get(&spec, store, id, soon()));
    EXPECT_OK(job_memory_plan(&need, spec, spec->first, &means));
    job_spec_free(&spec);
    return need;
}

/* A worker of all jobs refuses one that is allowed and absurd, and serves the others. */
static void a_job_that_needs_too_much_is_refused(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:jobs");
    shoal_data *huge = NULL, *data = wrapped();
    char bad[SHOAL_JOB_ID_BYTES], good[SHOAL_JOB_ID_BYTES];
    EXPECT_OK(shoal_data_open(&huge, "gen:uniform?rows=134217728&cols=8&type=float64", NULL));
    EXPECT_OK(shoal_job_submit(bad, store, &adder, NULL, huge, NULL,
                               &(shoal_job_options){.slices = 1, .rows_per_grain = 134217728}));
    submit(good, store, data);
    EXPECT_OK(work(store, (shoal_worker_options){.idle = 0.3, .memory = INT64_C(4) << 30}));
    expect_sum(store, good);
    expect_told("needs 8.61 GB of memory in round 0, and this worker may use 4.29 GB (--memory");
    shoal_data_free(&huge);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* A later round may ask for more than the first. */
static void a_round_that_needs_too_much(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:jobs");
    shoal_data *data = wrapped();
    char id[SHOAL_JOB_ID_BYTES];
    submit(id, store, data);
    cells_later = INT64_C(1) << 40;
    EXPECT_FAIL(work(store, (shoal_worker_options){.job = id}), SHOAL_MEMORY, "of memory in round 1, and this worker");
    shoal_data_free(&data);
    shoal_store_close(&store);
}

static void scratch_that_is_too_much(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:jobs");
    shoal_data *data = wrapped();
    char id[SHOAL_JOB_ID_BYTES];
    submit(id, store, data);
    scratch_wanted = SIZE_MAX / 2;
    EXPECT_FAIL(work(store, (shoal_worker_options){.job = id, .memory = INT64_C(1) << 30}), SHOAL_MEMORY,
                "bytes of scratch memory for each of 2 threads");
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* A model 1 that a worker with 64 MiB can't hold, and that says it is of that kind. */
static void put_large_model(shoal_store *store, const char *id, shoal_job_state kind)
{
    size_t size = 33 << 20;
    unsigned char *bytes = calloc(size, 1);
    bytes[8] = 1; /* after the content's length: its number and its kind */
    bytes[16] = (unsigned char)kind;
    EXPECT_OK(
        shoal_store_put_framed(store, job_key_model(id, 1).text, JOB_KIND_MODEL, bytes, size, NULL, NULL, soon()));
    free(bytes);
}

/* A worker that can't hold a model leaves the job to those that can, and the model where it is. */
static void a_model_that_is_too_large(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:jobs");
    shoal_data *data = wrapped();
    char id[SHOAL_JOB_ID_BYTES];
    shoal_blob blob = {0};
    submit(id, store, data);
    put_large_model(store, id, SHOAL_JOB_RUNNING);
    EXPECT_FAIL(work(store, (shoal_worker_options){.job = id, .memory = 64 << 20}), SHOAL_MEMORY,
                "it has 34603056 bytes, more than the limit of 33554432 here");
    EXPECT_OK(shoal_store_get_range(store, job_key_model(id, 1).text, 0, 1, NULL, NULL, &blob, soon()));
    shoal_blob_release(&blob);
    EXPECT_OK(work(store, (shoal_worker_options){.job = id, .memory = 512 << 20})); /* who can finds it broken */
    expect_sum(store, id);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* Who can't hold the result has done its work all the same, and leaves the result where it is. */
static void an_end_that_is_too_large(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:jobs");
    shoal_data *data = wrapped();
    char id[SHOAL_JOB_ID_BYTES];
    shoal_blob blob = {0};
    submit(id, store, data);
    put_large_model(store, id, SHOAL_JOB_DONE);
    EXPECT_OK(work(store, (shoal_worker_options){.job = id, .memory = 64 << 20, .roles = SHOAL_ROLE_MAP}));
    EXPECT_OK(shoal_store_get_range(store, job_key_model(id, 1).text, 0, 1, NULL, NULL, &blob, soon()));
    shoal_blob_release(&blob);
    EXPECT_OK(shoal_store_get(store, job_key_data(id, 0).text, &blob, soon())); /* an end that nobody has read */
    shoal_blob_release(&blob);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* Slices that do not fit are let go and brought again; the result is the same. */
static void slices_that_do_not_fit_together(void **state)
{
    (void)state;
    for (int fit = 1; fit <= 4; fit++) {
        shoal_store *store = open_store("mem:jobs");
        shoal_data *data = wrapped();
        char id[SHOAL_JOB_ID_BYTES];
        shoal_job *about = NULL;
        submit(id, store, data);
        job_memory need = need_of(store, id);
        EXPECT_OK(work(store, (shoal_worker_options){.job = id, .memory = need.fixed + fit * need.slice + 1}));
        expect_sum(store, id);
        EXPECT_OK(shoal_job_describe(&about, store, id, SHOAL_JOB_ALL_RECORDS, soon()));
        assert_int_equal(about->workers, 1);
        assert_true(fit < 4 ? about->worker[0].fetched > 4 : about->worker[0].fetched == 4);
        shoal_job_free(&about);
        shoal_data_free(&data);
        shoal_store_close(&store);
    }
}

/* Scratch takes the place of slices, where it fits at all. */
static void scratch_and_slices_share_memory(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:jobs");
    shoal_data *data = wrapped();
    char id[SHOAL_JOB_ID_BYTES];
    shoal_job *about = NULL;
    submit(id, store, data);
    job_memory need = need_of(store, id);
    scratch_wanted = (size_t)need.slice; /* of each of two threads */
    EXPECT_OK(work(store, (shoal_worker_options){.job = id, .memory = need.fixed + 4 * need.slice + 1}));
    expect_sum(store, id);
    EXPECT_OK(shoal_job_describe(&about, store, id, SHOAL_JOB_ALL_RECORDS, soon()));
    assert_int_equal(about->workers, 1);
    assert_true(about->worker[0].fetched > 4);
    shoal_job_free(&about);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages_of_strangers, begin, job_teardown),
        cmocka_unit_test_setup_teardown(a_job_that_is_denied_is_refused, begin, job_teardown),
        cmocka_unit_test_setup_teardown(rubbish_in_place_of_models, begin, job_teardown),
        cmocka_unit_test_setup_teardown(a_missing_folder_store, begin, job_teardown),
        cmocka_unit_test_setup_teardown(forged_models_are_removed, begin, job_teardown),
        cmocka_unit_test_setup_teardown(a_model_that_was_made_again_stays, begin, job_teardown),
        cmocka_unit_test_setup_teardown(a_model_that_was_computed_otherwise, begin, job_teardown),
        cmocka_unit_test_setup_teardown(distrust_is_forgotten_when_the_job_goes_on, begin, job_teardown),
        cmocka_unit_test_setup_teardown(a_learner_that_is_never_content, begin, job_teardown),
        cmocka_unit_test_setup_teardown(a_job_that_needs_too_much_is_refused, begin, job_teardown),
        cmocka_unit_test_setup_teardown(a_round_that_needs_too_much, begin, job_teardown),
        cmocka_unit_test_setup_teardown(scratch_that_is_too_much, begin, job_teardown),
        cmocka_unit_test_setup_teardown(a_model_that_is_too_large, begin, job_teardown),
        cmocka_unit_test_setup_teardown(an_end_that_is_too_large, begin, job_teardown),
        cmocka_unit_test_setup_teardown(slices_that_do_not_fit_together, begin, job_teardown),
        cmocka_unit_test_setup_teardown(scratch_and_slices_share_memory, begin, job_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
