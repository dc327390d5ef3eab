/* src/learn/model_file.c: what a model says of itself, tensors of the right shape, and a sentence for everything
 * else. */
#include "data_support.h"

#include <math.h>

#include "base/memory.h"
#include "learn/model_file.c"

typedef struct thing_config {
    const char *init, *none;
    int64_t hidden;
    double decay;
    bool tied;
} thing_config;

static const shoal_option options[] = {
    {"init", 0, SHOAL_OPTION_TEXT, offsetof(thing_config, init), "INIT", .help = "where it starts"},
    {"none", 0, SHOAL_OPTION_TEXT, offsetof(thing_config, none), "NONE", .help = "nothing"},
    {"hidden", 0, SHOAL_OPTION_COUNT, offsetof(thing_config, hidden), "N", .help = "units"},
    {"decay", 0, SHOAL_OPTION_REAL, offsetof(thing_config, decay), "X", .help = "of weights"},
    {"tied", 0, SHOAL_OPTION_FLAG, offsetof(thing_config, tied), NULL, .help = "one matrix"},
    {0},
};
static const shoal_algorithm learner = {.name = "thing", .options = options};
static const char *const parts[] = {"weights", "absent", "bias", NULL};

static void annotate(shoal_result *facts, const learn_ended *ended)
{
    shoal_result_set_whole(facts, "seed", 7);
    shoal_result_set_whole(facts, "rows", ended->rows.rows + 1);
}

static const learn_face face = {.algorithm = &learner, .parts = parts, .annotate = annotate};
static const thing_config config = {.init = "auto", .hidden = 25, .decay = 1e-4, .tied = true};

/* A result of two tensors and three numbers, as a learner leaves it. */
static learn_ended make_ended(shoal_result **result)
{
    double *weights = NULL;
    assert_int_equal(shoal_result_new(result), SHOAL_OK);
    weights = shoal_result_add(*result, "weights", SHOAL_FLOAT64, 2, (const int64_t[]){2, 3});
    for (int i = 0; i < 6; i++)
        weights[i] = i + 0.5;
    ((float *)shoal_result_add(*result, "bias", SHOAL_FLOAT32, 1, (const int64_t[]){2}))[1] = -4;
    shoal_result_add(*result, "labels", SHOAL_INT32, 1, (const int64_t[]){150});
    shoal_result_set(*result, "objective", 0.1);
    shoal_result_set(*result, "nothing", NAN);
    shoal_result_set_whole(*result, "iterations", 12);
    shoal_result_set_truth(*result, "converged", true);
    return (learn_ended){.config = &config, .result = *result, .rows = {.rows = 150, .columns = 3}};
}

static const char *write_model(const char *name)
{
    const char *path = file_path(name);
    shoal_result *result = NULL;
    const learn_ended ended = make_ended(&result);
    assert_int_equal(learn_model_file_write(path, &face, &ended), SHOAL_OK);
    shoal_result_free(&result);
    return path;
}

static void open_model(learn_model_file *model, const char *path)
{
    if (learn_model_file_open(model, path) < 0)
        fail_msg("%s", shoal_error());
}

static void what_is_written_is_read_back(void **state)
{
    int64_t rows = 0, columns = 3, count = 0;
    double *weights = NULL, *bias = NULL, number = 0;
    bool truth = false;
    learn_model_file model;
    (void)state;
    open_model(&model, write_model("m.safetensors"));
    assert_string_equal(model.learner, "thing");
    assert_int_equal(data_safetensors_count(model.file), 2);
    assert_true(learn_model_file_has(&model, "bias"));
    assert_false(learn_model_file_has(&model, "labels"));
    assert_int_equal(learn_model_file_matrix(&weights, &rows, &columns, &model, "weights"), SHOAL_OK);
    assert_int_equal(rows, 2);
    assert_true(weights[0] == 0.5 && weights[5] == 5.5);
    assert_int_equal(learn_model_file_vector(&bias, &count, &model, "bias"), SHOAL_OK); /* float32, read as float64 */
    assert_true(count == 2 && bias[0] == 0 && bias[1] == -4);
    assert_int_equal(learn_model_file_number(&number, &model, "objective"), SHOAL_OK);
    assert_true(number == 0.1);
    assert_int_equal(learn_model_file_truth(&truth, &model, "converged"), SHOAL_OK);
    assert_true(truth);
    static const char *const entries[][2] = {
        {"learner", "thing"},    {"version", SHOAL_VERSION}, {"rows", "151"},         {"columns", "3"},
        {"objective", "0.1"},    {"iterations", "12"},       {"converged", "true"},   {"option.init", "auto"},
        {"option.hidden", "25"}, {"option.decay", "0.0001"}, {"option.tied", "true"}, {"seed", "7"}};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        assert_string_equal(learn_model_file_text(&model, entries[i][0]), entries[i][1]);
    assert_null(learn_model_file_text(&model, "nothing"));
    assert_null(learn_model_file_text(&model, "option.none"));
    base_free(&weights);
    base_free(&bias);
    learn_model_file_close(&model);
    learn_model_file_close(&model);
}

/* Every double has a text of at most 17 digits that is it. */
static void numbers_keep_all_their_bits(void **state)
{
    static const double numbers[] = {0.1, 1.0 / 3, 71693.810064101752, 5e-324, 1.7976931348623157e308, -0.0, 12};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        static entries self;
        double back = 1;
        put_real(&self, "x", numbers[i]);
        assert_true(self.count == 1 && base_parse_real(&back, self.text[0]));
        assert_memory_equal(&back, &numbers[i], sizeof back);
        base_free(&self.text[0]);
        self.count = 0;
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
    const char *path = write_model("m.safetensors");
    double *values = NULL;
    int64_t three = 3, four = 4, any = 0, none = 0;
    learn_model_file model;
    (void)state;
    open_model(&model, path);
    assert_says(learn_model_file_matrix(&values, &four, &three, &model, "encoder.weight"), path,
                "there is no tensor 'encoder.weight' of 4 x 3");
    assert_says(learn_model_file_matrix(&values, &any, &four, &model, "weights"), path,
                "tensor 'weights' has shape 2 x 3, not rows x 4");
    assert_says(learn_model_file_matrix(&values, &four, &none, &model, "weights"), path,
                "tensor 'weights' has shape 2 x 3, not 4 x columns");
    assert_says(learn_model_file_matrix(&values, &any, &none, &model, "bias"), path,
                "tensor 'bias' has shape 2, not rows x columns");
    assert_says(learn_model_file_vector(&values, &any, &model, "weights"), path,
                "tensor 'weights' has shape 2 x 3, not one dimension");
    assert_says(learn_model_file_vector(&values, &three, &model, "bias"), path, "tensor 'bias' has shape 2, not 3");
    assert_true(any == 0 && none == 0 && three == 3 && four == 4);
    assert_null(values);
    learn_model_file_close(&model);
}

static void entries_of_another_kind_are_told(void **state)
{
    static const char *const choices[] = {"logistic", "tanh", NULL};
    const data_metadata entries[] = {
        {"learner", "thing"}, {"scale", "much"}, {"shift", "1e999"}, {"tied", "yes"}, {"activation", "tanh"}};
    const char *path = file_path("m.safetensors");
    double number = 0;
    bool truth = true;
    int choice = 7;
    learn_model_file model;
    (void)state;
    assert_int_equal(data_safetensors_write(path, NULL, 0, entries, 5), SHOAL_OK);
    open_model(&model, path);
    assert_says(learn_model_file_number(&number, &model, "scale"), path,
                "'scale' is 'much' in its metadata, not a number");
    assert_says(learn_model_file_number(&number, &model, "shift"), path,
                "'shift' is '1e999' in its metadata, not a number");
    assert_says(learn_model_file_number(&number, &model, "none"), path,
                "its metadata lack 'none', which must be a number");
    assert_says(learn_model_file_truth(&truth, &model, "tied"), path,
                "'tied' is 'yes' in its metadata, not true or false");
    assert_int_equal(learn_model_file_choice(&choice, &model, "activation", choices), SHOAL_OK);
    assert_int_equal(choice, 1);
    assert_says(learn_model_file_choice(&choice, &model, "scale", choices), path,
                "'scale' is 'much' in its metadata, not one of logistic, tanh");
    assert_says(learn_model_file_choice(&choice, &model, "none", choices), path,
                "its metadata lack 'none', which must be one of logistic, tanh");
    learn_model_file_close(&model);
}

static void values_that_are_not_finite_are_told(void **state)
{
    static const double centres[] = {1, 2, NAN, 4};
    const data_tensor tensor = {"centres", SHOAL_FLOAT64, 2, {2, 2}, centres, 0};
    const char *path = file_path("m.safetensors");
    double *values = NULL;
    int64_t rows = 0, columns = 0;
    learn_model_file model;
    (void)state;
    assert_int_equal(data_safetensors_write(path, &tensor, 1, NULL, 0), SHOAL_OK);
    open_model(&model, path);
    assert_string_equal(model.learner, "kmeans"); /* centres alone are a model of kmeans */
    assert_says(learn_model_file_matrix(&values, &rows, &columns, &model, "centres"), path,
                "tensor 'centres': row 2, column 1 is NaN, not a finite number");
    assert_null(values);
    learn_model_file_close(&model);
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
        learn_model_file model;
        assert_int_equal(data_safetensors_write(path, tensors, 2, NULL, 0), SHOAL_OK); /* at an odd address */
        open_model(&model, path);
        assert_int_equal(learn_model_file_matrix(&values, &rows, &columns, &model, "centres"), SHOAL_OK);
        assert_true(values[0] == 0 && values[3] == 0);
        base_free(&values);
        learn_model_file_close(&model);
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
    learn_model_file model = {0};
    (void)state;
    assert_int_equal(data_safetensors_write(path, &tensor, 1, NULL, 0), SHOAL_OK);
    assert_says(learn_model_file_open(&model, path), path,
                "not a model: its metadata do not name a learner, and it has no tensor 'centres'");
    assert_null(model.file);
    assert_int_equal(data_safetensors_write(path, &empty, 1, NULL, 0), SHOAL_OK);
    open_model(&model, path);
    assert_says(learn_model_file_matrix(&values, &rows, &columns, &model, "centres"), path,
                "tensor 'centres' has shape 0 x 4, not rows x columns");
    learn_model_file_close(&model);
    assert_int_equal(learn_model_file_open(&model, "/nowhere/m"), SHOAL_SYSTEM);
}

static void a_model_of_another_learner_is_told(void **state)
{
    const char *path = write_model("m.safetensors");
    learn_model_file model;
    (void)state;
    assert_int_equal(learn_model_file_open_as(&model, path, "thing"), SHOAL_OK);
    learn_model_file_close(&model);
    assert_says(learn_model_file_open_as(&model, path, "autoencoder"), path, "a model of thing, not of autoencoder");
    assert_null(model.file);
}

static void a_file_that_was_cut_is_told(void **state)
{
    char bytes[4096], name[512];
    learn_model_file model;
    (void)state;
    snprintf(name, sizeof name, "%s", write_model("m.safetensors"));
    FILE *file = fopen(name, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 100 && size < sizeof bytes);
    for (size_t cut = 0; cut < size; cut++) {
        const char *path = write_file("cut.safetensors", bytes, cut);
        assert_int_equal(learn_model_file_open(&model, path), SHOAL_INVALID);
        assert_ptr_equal(strstr(shoal_error(), path), shoal_error());
    }
}

/* No file is left when there is no memory for it, and the old one stays. */
static void every_allocation_may_fail(void **state)
{
    char path[512];
    shoal_result *result = NULL;
    (void)state;
    snprintf(path, sizeof path, "%s", write_model("m.safetensors"));
    const learn_ended ended = make_ended(&result);
    for (int64_t n = 0;; n++) {
        double *values = NULL;
        int64_t rows = 0, columns = 0;
        learn_model_file model = {0};
        base_memory_fail_after(n);
        int status = learn_model_file_write(path, &face, &ended);
        if (status == SHOAL_OK)
            status = learn_model_file_open(&model, path);
        if (status == SHOAL_OK)
            status = learn_model_file_matrix(&values, &rows, &columns, &model, "weights");
        base_memory_fail_after(-1);
        base_free(&values);
        learn_model_file_close(&model);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
        open_model(&model, path);
        learn_model_file_close(&model);
        assert_true(n < 100);
    }
    assert_int_equal(learn_model_file_write("/nowhere/m", &face, &ended), SHOAL_SYSTEM);
    shoal_result_free(&result);
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
