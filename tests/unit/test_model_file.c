/* src/cli/model_file.c: what a model says of itself, tensors of the right shape, and a sentence for everything else. */
#include "data_support.h"

#include <math.h>

#include "base/memory.h"
#include "cli/model_file.c"
#include "cli/print.c"
#include "cli/read_values.c"

static const shoal_algorithm learner = {.name = "thing"};

/* A result of two tensors and three numbers, as a learner leaves it. */
static void make_job(cli_job *job)
{
    double *weights = NULL;
    *job = (cli_job){.algorithm = &learner, .rows = 150, .columns = 3};
    assert_int_equal(shoal_result_new(&job->result), SHOAL_OK);
    weights = shoal_result_add(job->result, "weights", SHOAL_FLOAT64, 2, (const int64_t[]){2, 3});
    for (int i = 0; i < 6; i++)
        weights[i] = i + 0.5;
    ((float *)shoal_result_add(job->result, "bias", SHOAL_FLOAT32, 1, (const int64_t[]){2}))[1] = -4;
    shoal_result_add(job->result, "labels", SHOAL_INT32, 1, (const int64_t[]){150});
    shoal_result_set(job->result, "objective", 0.1);
    shoal_result_set(job->result, "nothing", NAN);
    shoal_result_set_whole(job->result, "iterations", 12);
    shoal_result_set_truth(job->result, "converged", true);
}

static const char *write_model(const char *name, const json_t *options, const data_metadata *more)
{
    static const char *const parts[] = {"weights", "absent", "bias", NULL};
    const char *path = file_path(name);
    cli_job job;
    make_job(&job);
    assert_int_equal(cli_model_write(path, &job, parts, options, more), SHOAL_OK);
    shoal_result_free(&job.result);
    return path;
}

static void open_model(cli_model *model, const char *path)
{
    if (cli_model_open(model, path) < 0)
        fail_msg("%s", shoal_error());
}

static void what_is_written_is_read_back(void **state)
{
    const data_metadata more[] = {{"seed", "7"}, {"rows", "many"}, {NULL, NULL}};
    json_t *options =
        json_pack("{s:s, s:i, s:f, s:b, s:n}", "init", "auto", "hidden", 25, "decay", 1e-4, "tied", 1, "none");
    int64_t rows = 0, columns = 3, count = 0;
    double *weights = NULL, *bias = NULL, number = 0;
    bool truth = false;
    cli_model model;
    (void)state;
    open_model(&model, write_model("m.safetensors", options, more));
    json_decref(options);
    assert_string_equal(model.learner, "thing");
    assert_int_equal(data_safetensors_count(model.file), 2);
    assert_true(cli_model_has(&model, "bias"));
    assert_false(cli_model_has(&model, "labels"));
    assert_int_equal(cli_model_matrix(&weights, &rows, &columns, &model, "weights"), SHOAL_OK);
    assert_int_equal(rows, 2);
    assert_true(weights[0] == 0.5 && weights[5] == 5.5);
    assert_int_equal(cli_model_vector(&bias, &count, &model, "bias"), SHOAL_OK); /* float32, read as float64 */
    assert_true(count == 2 && bias[0] == 0 && bias[1] == -4);
    assert_int_equal(cli_model_number(&number, &model, "objective"), SHOAL_OK);
    assert_true(number == 0.1);
    assert_int_equal(cli_model_truth(&truth, &model, "converged"), SHOAL_OK);
    assert_true(truth);
    static const char *const entries[][2] = {
        {"learner", "thing"},    {"version", SHOAL_VERSION}, {"rows", "many"},        {"columns", "3"},
        {"objective", "0.1"},    {"iterations", "12"},       {"converged", "true"},   {"option.init", "auto"},
        {"option.hidden", "25"}, {"option.decay", "0.0001"}, {"option.tied", "true"}, {"seed", "7"}};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        assert_string_equal(cli_model_text(&model, entries[i][0]), entries[i][1]);
    assert_null(cli_model_text(&model, "nothing"));
    assert_null(cli_model_text(&model, "option.none"));
    base_free(&weights);
    base_free(&bias);
    cli_model_close(&model);
    cli_model_close(&model);
}

/* Every double has a text of at most 17 digits that is it. */
static void numbers_keep_all_their_bits(void **state)
{
    static const double numbers[] = {0.1, 1.0 / 3, 71693.810064101752, 5e-324, 1.7976931348623157e308, -0.0, 12};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[40];
        double back = 1;
        format_real(text, sizeof text, numbers[i]);
        assert_true(base_parse_real(&back, text));
        assert_memory_equal(&back, &numbers[i], sizeof back);
    }
}

static void assert_says(int status, const char *path, const char *sentence)
{
    char expected[512];
    snprintf(expected, sizeof expected, "%s: %s", path, sentence);
    assert_int_equal(status, SHOAL_INVALID);
    assert_string_equal(shoal_error(), expected);
}

static void tensors_of_another_shape_are_told(void **state)
{
    const char *path = write_model("m.safetensors", NULL, NULL);
    double *values = NULL;
    int64_t three = 3, four = 4, any = 0, none = 0;
    cli_model model;
    (void)state;
    open_model(&model, path);
    assert_says(cli_model_matrix(&values, &four, &three, &model, "encoder.weight"), path,
                "no tensor 'encoder.weight' of 4 x 3 in it");
    assert_says(cli_model_matrix(&values, &any, &four, &model, "weights"), path,
                "no tensor 'weights' of rows x 4 in it: it is 2 x 3");
    assert_says(cli_model_matrix(&values, &four, &none, &model, "weights"), path,
                "no tensor 'weights' of 4 x columns in it: it is 2 x 3");
    assert_says(cli_model_matrix(&values, &any, &none, &model, "bias"), path,
                "no tensor 'bias' of rows x columns in it: it is 2");
    assert_says(cli_model_vector(&values, &any, &model, "weights"), path,
                "no tensor 'weights' of one dimension in it: it is 2 x 3");
    assert_says(cli_model_vector(&values, &three, &model, "bias"), path, "no tensor 'bias' of 3 in it: it is 2");
    assert_true(any == 0 && none == 0 && three == 3 && four == 4);
    assert_null(values);
    cli_model_close(&model);
}

static void entries_of_another_kind_are_told(void **state)
{
    static const char *const choices[] = {"logistic", "tanh", NULL};
    const data_metadata more[] = {
        {"scale", "much"}, {"shift", "1e999"}, {"tied", "yes"}, {"activation", "tanh"}, {NULL, NULL}};
    const char *path = write_model("m.safetensors", NULL, more);
    double number = 0;
    bool truth = true;
    int choice = 7;
    cli_model model;
    (void)state;
    open_model(&model, path);
    assert_says(cli_model_number(&number, &model, "scale"), path, "'scale' is 'much' in its metadata, not a number");
    assert_says(cli_model_number(&number, &model, "shift"), path, "'shift' is '1e999' in its metadata, not a number");
    assert_says(cli_model_number(&number, &model, "none"), path, "its metadata have no 'none', which is a number");
    assert_says(cli_model_truth(&truth, &model, "tied"), path, "'tied' is 'yes' in its metadata, not true or false");
    assert_int_equal(cli_model_choice(&choice, &model, "activation", choices), SHOAL_OK);
    assert_int_equal(choice, 1);
    assert_says(cli_model_choice(&choice, &model, "scale", choices), path,
                "'scale' is 'much' in its metadata, not one of logistic, tanh");
    assert_says(cli_model_choice(&choice, &model, "none", choices), path,
                "its metadata have no 'none', which is one of logistic, tanh");
    cli_model_close(&model);
}

static void values_that_are_not_finite_are_told(void **state)
{
    static const double centres[] = {1, 2, NAN, 4};
    const data_tensor tensor = {"centres", SHOAL_FLOAT64, 2, {2, 2}, centres, 0};
    const char *path = file_path("m.safetensors");
    double *values = NULL;
    int64_t rows = 0, columns = 0;
    cli_model model;
    (void)state;
    assert_int_equal(data_safetensors_write(path, &tensor, 1, NULL, 0), SHOAL_OK);
    open_model(&model, path);
    assert_string_equal(model.learner, "kmeans"); /* centres alone are a model of kmeans */
    assert_says(cli_model_matrix(&values, &rows, &columns, &model, "centres"), path,
                "tensor 'centres': row 2, column 1 is NaN, not a finite number");
    assert_null(values);
    cli_model_close(&model);
}

static void a_tensor_of_every_type_is_read(void **state)
{
    static const shoal_type types[] = {SHOAL_FLOAT64, SHOAL_FLOAT32, SHOAL_INT64,  SHOAL_INT32,  SHOAL_INT16,
                                       SHOAL_INT8,    SHOAL_UINT64,  SHOAL_UINT32, SHOAL_UINT16, SHOAL_UINT8};
    static const double ones[4] = {0};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const data_tensor tensors[] = {{"pad", SHOAL_UINT8, 1, {1}, ones, 0},
                                       {"centres", types[i], 2, {2, 2}, ones, 0}};
        const char *path = file_path("m.safetensors");
        double *values = NULL;
        int64_t rows = 0, columns = 0;
        cli_model model;
        assert_int_equal(data_safetensors_write(path, tensors, 2, NULL, 0), SHOAL_OK); /* at an odd address */
        open_model(&model, path);
        assert_int_equal(cli_model_matrix(&values, &rows, &columns, &model, "centres"), SHOAL_OK);
        assert_true(values[0] == 0 && values[3] == 0);
        base_free(&values);
        cli_model_close(&model);
    }
}

static void files_that_are_no_models_are_told(void **state)
{
    static const double one = 1;
    const data_tensor tensor = {"weights", SHOAL_FLOAT64, 1, {1}, &one, 0};
    const data_tensor empty = {"centres", SHOAL_FLOAT64, 2, {0, 4}, &one, 0};
    const char *path = file_path("m.safetensors");
    double *values = NULL;
    int64_t rows = 0, columns = 0;
    cli_model model = {0};
    (void)state;
    assert_int_equal(data_safetensors_write(path, &tensor, 1, NULL, 0), SHOAL_OK);
    assert_says(cli_model_open(&model, path), path,
                "no model: its metadata name no learner, and it has no tensor 'centres'");
    assert_null(model.file);
    assert_int_equal(data_safetensors_write(path, &empty, 1, NULL, 0), SHOAL_OK);
    open_model(&model, path);
    assert_says(cli_model_matrix(&values, &rows, &columns, &model, "centres"), path,
                "no tensor 'centres' of rows x columns in it: it is 0 x 4");
    cli_model_close(&model);
    assert_int_equal(cli_model_open(&model, "/nowhere/m"), SHOAL_SYSTEM);
}

static void a_model_of_another_learner_is_told(void **state)
{
    const char *path = write_model("m.safetensors", NULL, NULL);
    cli_model model;
    (void)state;
    assert_int_equal(cli_model_open_as(&model, path, "thing"), SHOAL_OK);
    cli_model_close(&model);
    assert_says(cli_model_open_as(&model, path, "autoencoder"), path, "a model of thing, not of autoencoder");
    assert_null(model.file);
}

static void a_file_that_was_cut_is_told(void **state)
{
    char bytes[4096], name[512];
    cli_model model;
    (void)state;
    snprintf(name, sizeof name, "%s", write_model("m.safetensors", NULL, NULL));
    FILE *file = fopen(name, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 100 && size < sizeof bytes);
    for (size_t cut = 0; cut < size; cut++) {
        const char *path = write_file("cut.safetensors", bytes, cut);
        assert_int_equal(cli_model_open(&model, path), SHOAL_INVALID);
        assert_ptr_equal(strstr(shoal_error(), path), shoal_error());
    }
}

/* No file is left when there is no memory for it, and the old one stays. */
static void every_allocation_may_fail(void **state)
{
    static const char *const parts[] = {"weights", NULL};
    char path[512];
    cli_job job;
    (void)state;
    snprintf(path, sizeof path, "%s", write_model("m.safetensors", NULL, NULL));
    make_job(&job);
    for (int64_t n = 0;; n++) {
        double *values = NULL;
        int64_t rows = 0, columns = 0;
        cli_model model = {0};
        base_memory_fail_after(n);
        int status = cli_model_write(path, &job, parts, NULL, NULL);
        if (status == SHOAL_OK)
            status = cli_model_open(&model, path);
        if (status == SHOAL_OK)
            status = cli_model_matrix(&values, &rows, &columns, &model, "weights");
        base_memory_fail_after(-1);
        base_free(&values);
        cli_model_close(&model);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
        open_model(&model, path);
        cli_model_close(&model);
        assert_true(n < 100);
    }
    assert_int_equal(cli_model_write(NULL, &job, parts, NULL, NULL), SHOAL_OK);
    assert_int_equal(cli_model_write("/nowhere/m", &job, parts, NULL, NULL), SHOAL_SYSTEM);
    shoal_result_free(&job.result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),        cmocka_unit_test(numbers_keep_all_their_bits),
        cmocka_unit_test(tensors_of_another_shape_are_told),   cmocka_unit_test(entries_of_another_kind_are_told),
        cmocka_unit_test(values_that_are_not_finite_are_told), cmocka_unit_test(a_tensor_of_every_type_is_read),
        cmocka_unit_test(files_that_are_no_models_are_told),   cmocka_unit_test(a_model_of_another_learner_is_told),
        cmocka_unit_test(a_file_that_was_cut_is_told),         cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
