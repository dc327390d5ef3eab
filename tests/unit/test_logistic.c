/* Logistic regression below the command line: the gradient against differences of the value, the frame of the search,
 * labels, and what is refused.  Against scikit-learn it is compared by tests/system/test_logistic.py. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/engine.h>
#include <shoal/logistic.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/gradient/gradient_internal.h"
#include "learn/logistic/logistic_internal.h"
#include "learn/partial.h"

enum { ROWS = 90, COLUMNS = 5, GRAIN = 40 };

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* A number between -1 and 1. */
static double any(uint64_t index)
{
    return 2 * base_random_unit(1, BASE_FOR_DATA, index, 0) - 1;
}

typedef struct rows {
    double values[ROWS * COLUMNS], weights[ROWS];
    shoal_shape shape;
} rows;

/* Columns of different size and place; the target in the middle has `classes` labels, which are not numbers from 0. */
static void make_rows(rows *out, int64_t target, int classes)
{
    for (int64_t i = 0; i < ROWS; i++) {
        int class = (int)(i * 7 % classes);
        for (int64_t k = 0; k < COLUMNS; k++)
            out->values[i * COLUMNS + k] =
                k == target
                    ? 2.5 * class - 3
                    : 10 * (double)k + ldexp(any((uint64_t)(i * COLUMNS + k)), (int)k) + (double)(class * (k % 2));
        out->weights[i] = 0.5 + (double)(i % 4);
    }
    out->shape = (shoal_shape){.rows = ROWS,
                               .columns = COLUMNS,
                               .type = SHOAL_FLOAT64,
                               .weighted = true,
                               .rows_per_grain = GRAIN,
                               .grains = (ROWS + GRAIN - 1) / GRAIN};
}

static int each_alone(const shoal_crew *self, int64_t items, int (*task)(void *context, int64_t item, int thread),
                      void *context)
{
    int status = SHOAL_OK;
    (void)self;
    for (int64_t i = 0; status == SHOAL_OK && i < items; i++)
        status = task(context, i, 0);
    return status;
}

static const shoal_crew alone = {.each = each_alone, .threads = 1, .kernel = "auto"};

/* Maps all grains of a round. */
static shoal_partial *map_all(const shoal_round *round, const rows *data)
{
    shoal_partial *partial = NULL;
    void *prepared = NULL;
    shoal_scratch scratch = {0};
    int64_t counters[SHOAL_COUNTERS] = {0};
    assert_int_equal(learn_partial_new(&partial, &round->layout, 0, ROWS, NULL), SHOAL_OK);
    assert_int_equal(shoal_logistic.prepare(&prepared, round, &data->shape, &alone), SHOAL_OK);
    scratch.bytes = shoal_logistic.scratch_bytes(round, prepared, &data->shape);
    scratch.counters = counters;
    assert_int_equal(base_alloc(&scratch.memory, scratch.bytes, 1, "scratch"), SHOAL_OK);
    memset(scratch.memory, 0xa5, scratch.bytes);
    for (int64_t i = 0; i < data->shape.grains; i++) {
        int64_t first = i * GRAIN;
        const shoal_grain grain = {.shape = &data->shape,
                                   .index = i,
                                   .first_row = first,
                                   .rows = ROWS - first < GRAIN ? ROWS - first : GRAIN,
                                   .values = data->values + first * COLUMNS,
                                   .weights = data->weights + first};
        assert_int_equal(shoal_logistic.map(partial, round, prepared, &grain, &scratch), SHOAL_OK);
    }
    assert_int_equal(learn_partial_settle(partial), SHOAL_OK);
    shoal_logistic.forget(&prepared);
    base_free(&scratch.memory);
    return partial;
}

/* The first round that descends. */
static shoal_round *after_scan(const rows *data, const shoal_logistic_config *config)
{
    shoal_round *scan = NULL, *next = NULL;
    shoal_result *result = NULL;
    assert_int_equal(shoal_logistic.start(&scan, config, &data->shape), SHOAL_OK);
    shoal_partial *merged = map_all(scan, data);
    assert_int_equal(shoal_logistic.update(&next, &result, scan, merged, &data->shape, &alone, false), SHOAL_OK);
    assert_non_null(next);
    learn_partial_free(&merged);
    shoal_round_free(&scan);
    return next;
}

/* Value and gradient at the point that the round holds. */
static double evaluate(double *gradient, shoal_round *round, const rows *data)
{
    gradient_model *model = round->model;
    double value = NAN, sums[64], quantum[GRADIENT_GROUPS_MOST];
    shoal_partial *merged = map_all(round, data);
    if (gradient_judge(quantum, model, merged, data->shape.grains) == GRADIENT_AGAIN) {
        memcpy(model->quantum, quantum, sizeof quantum);
        learn_partial_free(&merged);
        merged = map_all(round, data);
    }
    gradient_read_sums(sums, model, merged);
    assert_int_equal(
        logistic_class.combine(&value, gradient, sums, gradient_own(model), gradient_point(model), &data->shape),
        SHOAL_OK);
    learn_partial_free(&merged);
    return value;
}

/* The objective by its definition, for weights and intercepts outside the frame. */
static double defined_objective(const rows *data, int64_t target, int classes, const double *weights,
                                const double *intercept, double l2)
{
    int outputs = classes == 2 ? 1 : classes;
    double sum = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        const double *x = data->values + i * COLUMNS;
        int class = (int)((x[target] + 3) / 2.5);
        double all = 0, output[8] = {0};
        for (int k = 0; k < outputs; k++) {
            double *to = &output[classes == 2 ? 1 : k];
            *to = intercept[k];
            for (int64_t j = 0, w = 0; j < COLUMNS; j++)
                if (j != target)
                    *to += x[j] * weights[k * (COLUMNS - 1) + w++];
        }
        for (int k = 0; k < classes; k++)
            all += exp(output[k]);
        sum += data->weights[i] * (log(all) - output[class]);
    }
    for (int i = 0; i < outputs * (COLUMNS - 1); i++)
        sum += l2 / 2 * weights[i] * weights[i];
    return sum;
}

/* ---- gradient ---------------------------------------------------------------------------------------------------- */

static void check_gradient(int64_t target, int classes, bool intercept, int precision)
{
    rows data;
    int outputs = classes == 2 ? 1 : classes, features = COLUMNS - 1;
    int parameters = outputs * (features + intercept);
    double weights[32], intercepts[8], labels[8], gradient[40], unused[40];
    const double tolerance = precision == 1 ? 2e-2 : 1e-6;
    make_rows(&data, target, classes);
    for (int i = 0; i < outputs * features; i++)
        weights[i] = 0.1 * any(1000 + (uint64_t)i);
    for (int i = 0; i < classes; i++) {
        intercepts[i] = intercept ? 0.3 * any(2000 + (uint64_t)i) : 0;
        labels[i] = 2.5 * i - 3;
    }
    shoal_logistic_config config = {.start_weights = weights,
                                    .start_intercept = intercepts,
                                    .start_classes = labels,
                                    .start_outputs = outputs,
                                    .start_classes_count = classes,
                                    .start_columns = features};
    assert_int_equal(shoal_options_default(&config, shoal_logistic.options), SHOAL_OK);
    config.target = target + 1;
    config.l2 = 0.7;
    config.no_intercept = !intercept;
    config.precision = precision;
    shoal_round *round = after_scan(&data, &config);
    double value = evaluate(gradient, round, &data);
    double defined = defined_objective(&data, target, classes, weights, intercepts, config.l2);
    assert_true(fabs(value - defined) <= (precision == 1 ? 1e-5 : 1e-12) * defined);

    double *x = (double *)gradient_point(((gradient_model *)round->model));
    for (int i = 0; i < parameters; i++) {
        double step = precision == 1 ? 0x1p-6 : 0x1p-14, before = x[i];
        x[i] = before + step;
        double above = evaluate(unused, round, &data);
        x[i] = before - step;
        double below = evaluate(unused, round, &data);
        x[i] = before;
        double slope = (above - below) / (2 * step);
        if (fabs(slope - gradient[i]) > tolerance * fmax(1, fabs(slope)))
            fail_msg("target %lld, %d classes, parameter %d: gradient %.12g, difference %.12g", (long long)target,
                     classes, i, gradient[i], slope);
    }
    shoal_round_free(&round);
}

static void test_gradient_is_that_of_the_value(void **state)
{
    (void)state;
    for (int64_t target = 0; target < COLUMNS; target += 2)
        for (int classes = 2; classes <= 4; classes++)
            for (int intercept = 0; intercept < 2; intercept++) {
                check_gradient(target, classes, intercept, 2);
                check_gradient(target, classes, intercept, 1);
            }
}

/* A row that is sure of its label has a loss near 0, which must not be rounded to 0; and nothing overflows. */
static void test_losses_at_the_ends(void **state)
{
    const kernel_set *kernel = NULL;
    (void)state;
    assert_int_equal(kernel_choose(&kernel, "auto"), SHOAL_OK);
    for (int size = 0; size <= 700; size += 35) {
        double output = size, three[3] = {size, 0, 0}, spare;
        int32_t most, yes = 1, first = 0, last = 2;
        logistic_sums sums = {0}, many = {0}, wrong = {0};
        logistic_losses(&sums, &(logistic_block){1, 1, &output, &spare, &most}, &yes, NULL, &kernel->dense64);
        double small = log1p(exp(-size));
        assert_true(fabs(sums.loss - small) <= 1e-15 * small);
        assert_true(fabs(output + exp(-size) / (1 + exp(-size))) <= 1e-15 * exp(-size));
        assert_true(sums.right == (size > 0));
        logistic_losses(&many, &(logistic_block){1, 3, three, &spare, &most}, &first, NULL, &kernel->dense64);
        small = log1p(2 * exp(-size));
        assert_true(fabs(many.loss - small) <= 1e-15 * small);
        assert_true(fabs(three[0] + 2 * exp(-size) / (1 + 2 * exp(-size))) <= 2e-15 * exp(-size));
        double other[3] = {size, 0, 0};
        logistic_losses(&wrong, &(logistic_block){1, 3, other, &spare, &most}, &last, NULL, &kernel->dense64);
        assert_true(fabs(wrong.loss - (size + small)) <= 1e-15 * (size + small) && isfinite(wrong.loss));
        assert_true(fabs(other[0] + other[1] + other[2]) <= 1e-15);
    }
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static shoal_result *learn(const double *values, int64_t rows, int64_t columns, const double *weights,
                           shoal_logistic_config *config, int expected)
{
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    assert_int_equal(shoal_data_wrap(&data, values, rows, columns, SHOAL_FLOAT64), SHOAL_OK);
    int status = shoal_run(&result, NULL, &shoal_logistic, config, data, weights,
                           &(shoal_run_options){.threads = 1, .rows_per_grain = 3});
    if (status != expected)
        fail_msg("status %d instead of %d: %s", status, expected, status < 0 ? shoal_error() : "");
    shoal_data_free(&data);
    return result;
}

static shoal_logistic_config usual(void)
{
    shoal_logistic_config config = {0};
    assert_int_equal(shoal_options_default(&config, shoal_logistic.options), SHOAL_OK);
    return config;
}

static void test_labels_are_any_numbers(void **state)
{
    const double values[] = {1, -7.25, 2, 1e300, 3, -0.0, 4, 0, 5, 1e300, 6, -7.25, 0.5, 0};
    const double expected[] = {-7.25, 0, 1e300};
    shoal_logistic_config config = usual();
    (void)state;
    shoal_result *result = learn(values, 7, 2, NULL, &config, SHOAL_OK);
    const shoal_tensor *classes = shoal_result_tensor(result, "classes");
    assert_int_equal(classes->shape[0], 3);
    assert_memory_equal(classes->values, expected, sizeof expected);
    assert_int_equal(shoal_result_tensor(result, "weights")->shape[0], 3);
    assert_true(shoal_result_number(result, "converged") == 1);
    assert_true(shoal_result_number(result, "objective") >= shoal_result_number(result, "loss"));
    shoal_result_free(&result);
}

/* A weight of 2 is a row that is there twice, of 0 one that is not there. */
static void test_weights_are_copies(void **state)
{
    const double values[] = {1, 0, 2, 1, 3, 0, 4, 1, 2.5, 1, 9, 0}, weights[] = {2, 1, 1, 2, 1, 0};
    const double copies[] = {1, 0, 1, 0, 2, 1, 3, 0, 4, 1, 4, 1, 2.5, 1};
    shoal_logistic_config config = usual();
    (void)state;
    config.tolerance = 1e-9;
    shoal_result *weighted = learn(values, 6, 2, weights, &config, SHOAL_OK),
                 *copied = learn(copies, 7, 2, NULL, &config, SHOAL_OK);
    double a = *(double *)shoal_result_tensor(weighted, "weights")->values,
           b = *(double *)shoal_result_tensor(copied, "weights")->values;
    assert_true(fabs(a - b) < 1e-7 && fabs(a) > 0.01);
    assert_true(fabs(shoal_result_number(weighted, "objective") - shoal_result_number(copied, "objective")) < 1e-12);
    assert_true(fabs(shoal_result_number(weighted, "accuracy") - shoal_result_number(copied, "accuracy")) < 1e-12);
    shoal_result_free(&weighted);
    shoal_result_free(&copied);
}

/* Weights that are all alike, and penalties with them, are another unit of the objective: nothing else changes, not
 * when it stops either. With labels of three classes, the last of which comes after more rows than there may be
 * classes. */
static void test_weights_are_a_unit(void **state)
{
    enum { MANY = 1200 };
    static double values[MANY * 2], weights[MANY];
    shoal_logistic_config config = usual();
    shoal_data *data = NULL;
    shoal_result *plain = NULL, *weighted = NULL;
    (void)state;
    config.tolerance = 1e-3;
    for (int64_t i = 0; i < MANY; i++) {
        values[2 * i + 1] = i < MANY - 40 ? (double)(i % 2) : 7;
        values[2 * i] = any((uint64_t)i) + 0.1 * values[2 * i + 1];
        weights[i] = 4096;
    }
    const shoal_run_options options = {.threads = 1, .rows_per_grain = MANY};
    assert_int_equal(shoal_data_wrap(&data, values, MANY, 2, SHOAL_FLOAT64), SHOAL_OK);
    assert_int_equal(shoal_run(&plain, NULL, &shoal_logistic, &config, data, NULL, &options), SHOAL_OK);
    config.l2 *= 4096;
    assert_int_equal(shoal_run(&weighted, NULL, &shoal_logistic, &config, data, weights, &options), SHOAL_OK);
    assert_true(shoal_result_number(plain, "classes") == 3);
    assert_true(shoal_result_number(plain, "objective") == shoal_result_number(weighted, "objective") / 4096);
    assert_true(shoal_result_number(plain, "iterations") == shoal_result_number(weighted, "iterations"));
    assert_true(shoal_result_number(plain, "accuracy") == shoal_result_number(weighted, "accuracy"));
    assert_true(shoal_result_number(plain, "gradient") == shoal_result_number(weighted, "gradient"));
    assert_memory_equal(shoal_result_tensor(plain, "weights")->values, shoal_result_tensor(weighted, "weights")->values,
                        3 * sizeof(double));
    shoal_result_free(&plain);
    shoal_result_free(&weighted);
    for (int i = 0; i < 3; i++)
        weights[i] = 1e308; /* each is finite, not so their sum */
    assert_int_equal(shoal_run(&plain, NULL, &shoal_logistic, &config, data, weights, &options), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "the weight of row 2"));
    shoal_data_free(&data);
}

/* Where to start is needed once: later rounds do not carry it. */
static void test_start_is_dropped(void **state)
{
    static rows data;
    shoal_logistic_config config = usual();
    const double weights[COLUMNS - 1] = {1, 2, 3, 4}, intercept = 5, classes[2] = {-3, -0.5};
    (void)state;
    make_rows(&data, COLUMNS - 1, 2);
    shoal_round *plain = after_scan(&data, &config);
    config.start_weights = weights;
    config.start_intercept = &intercept;
    config.start_classes = classes;
    config.start_outputs = 1;
    config.start_classes_count = 2;
    config.start_columns = COLUMNS - 1;
    shoal_round *started = after_scan(&data, &config);
    assert_int_equal(plain->model_bytes, started->model_bytes);
    assert_memory_not_equal(gradient_point(plain->model), gradient_point(started->model), sizeof weights);
    shoal_round_free(&plain);
    shoal_round_free(&started);
}

/* A grain of more rows than are done at once: the same sums but for rounding. */
static void test_grains_of_any_size(void **state)
{
    enum { MANY = 1300 };
    static double values[MANY * 3], weights[MANY];
    shoal_logistic_config config = usual();
    shoal_data *data = NULL;
    shoal_result *few = NULL, *all = NULL;
    (void)state;
    for (int64_t i = 0; i < MANY; i++) {
        values[3 * i] = any((uint64_t)i) + (double)(i % 3);
        values[3 * i + 1] = (double)(i % 3);
        values[3 * i + 2] = any(5000 + (uint64_t)i);
        weights[i] = (double)(i % 5);
    }
    config.target = 2;
    assert_int_equal(shoal_data_wrap(&data, values, MANY, 3, SHOAL_FLOAT64), SHOAL_OK);
    assert_int_equal(shoal_run(&few, NULL, &shoal_logistic, &config, data, weights,
                               &(shoal_run_options){.threads = 2, .rows_per_grain = 70}),
                     SHOAL_OK);
    assert_int_equal(shoal_run(&all, NULL, &shoal_logistic, &config, data, weights,
                               &(shoal_run_options){.threads = 2, .rows_per_grain = MANY}),
                     SHOAL_OK);
    double one = shoal_result_number(few, "objective"), other = shoal_result_number(all, "objective");
    assert_true(one > 1 && fabs(one - other) < 1e-12 * one);
    assert_true(fabs(shoal_result_number(few, "accuracy") - shoal_result_number(all, "accuracy")) < 1e-12);
    shoal_result_free(&few);
    shoal_result_free(&all);
    shoal_data_free(&data);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void refuse(const double *values, int64_t rows, int64_t columns, const double *weights,
                   const shoal_logistic_config *config, int status, const char *part)
{
    shoal_logistic_config copy = *config;
    assert_null(learn(values, rows, columns, weights, &copy, status));
    if (!strstr(shoal_error(), part))
        fail_msg("'%s' is not part of '%s'", part, shoal_error());
}

static void test_data_that_is_refused(void **state)
{
    double good[] = {1, 0, 2, 1, 3, 0, 4, 1}, bad[8], weights[] = {1, 1, 1, 1};
    static double many[2 * 1001];
    shoal_logistic_config config = usual();
    (void)state;
    memcpy(bad, good, sizeof bad);
    bad[6] = NAN;
    bad[3] = -INFINITY; /* comes first */
    refuse(bad, 4, 2, NULL, &config, SHOAL_INVALID, "row 2, column 2 is minus infinity");
    bad[3] = 1;
    refuse(bad, 4, 2, NULL, &config, SHOAL_INVALID, "row 4, column 1 is not a number");
    memcpy(bad, good, sizeof bad);
    bad[3] = bad[7] = 0;
    refuse(bad, 4, 2, NULL, &config, SHOAL_INVALID, "column 2, the target, is the same in every row");
    refuse(good, 8, 1, NULL, &config, SHOAL_INVALID, "needs rows with a target and at least one other column");
    weights[2] = -1;
    refuse(good, 4, 2, weights, &config, SHOAL_INVALID, "the weight of row 3 is -1");
    memset(weights, 0, sizeof weights);
    refuse(good, 4, 2, weights, &config, SHOAL_INVALID, "add up to 0");
    for (int i = 0; i < 1001; i++)
        many[2 * i + 1] = i;
    refuse(many, 1001, 2, NULL, &config, SHOAL_INVALID, "more than 1000 different values");
    config.iterations = 1;
    shoal_result *result = learn(many, 1000, 2, NULL, &config, SHOAL_OK);
    assert_true(shoal_result_number(result, "classes") == 1000);
    shoal_result_free(&result);
    config.precision = 1;
    good[2] = 1e39;
    refuse(good, 4, 2, NULL, &config, SHOAL_INVALID, "too large for --precision float32");
}

static void test_options_that_are_refused(void **state)
{
    const double good[] = {1, 0, 2, 1, 3, 0, 4, 1};
    const struct {
        shoal_logistic_config change;
        const char *part;
    } wrong[] = {{{.target = 3, .history = 1}, "--target: there is no column 3"},
                 {{.target = -3, .history = 1}, "--target: there is no column -3"},
                 {{.l1 = -1, .history = 1}, "--l1 must be finite and at least 0, not -1"},
                 {{.l2 = NAN, .history = 1}, "--l2"},
                 {{.tolerance = INFINITY, .history = 1}, "--tolerance"},
                 {{.iterations = -1, .history = 1}, "--iterations"},
                 {{.history = 0}, "--history"},
                 {{.precision = 3, .history = 1}, "--precision"}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuse(good, 4, 2, NULL, &wrong[i].change, SHOAL_USAGE, wrong[i].part);
}

static void test_models_that_are_no_start(void **state)
{
    const double good[] = {1, 0, 2, 1, 3, 0, 4, 1}, numbers[] = {0, 1, 2, 3}, others[] = {0, 2};
    shoal_logistic_config config = usual();
    (void)state;
    config.start_weights = config.start_intercept = config.start_classes = numbers;
    config.start_outputs = 1;
    config.start_classes_count = 2;
    config.start_columns = 2;
    refuse(good, 4, 2, NULL, &config, SHOAL_INVALID, "is for 2 columns, but the data has 1 beside the labels");
    config.start_columns = 1;
    config.start_classes_count = 3;
    refuse(good, 4, 2, NULL, &config, SHOAL_INVALID, "cannot be a start");
    config.start_outputs = 3;
    refuse(good, 4, 2, NULL, &config, SHOAL_INVALID, "the labels are not the 3 classes");
    config.start_outputs = 1;
    config.start_classes_count = 2;
    config.start_classes = others;
    refuse(good, 4, 2, NULL, &config, SHOAL_INVALID, "the labels are not the 2 classes");
}

/* A round may come from a store: nothing in it is believed. */
static void test_models_from_elsewhere(void **state)
{
    rows data;
    shoal_logistic_config config = usual();
    (void)state;
    make_rows(&data, 2, 3);
    config.target = 3;
    shoal_round *round = after_scan(&data, &config);
    logistic_own *own = (logistic_own *)gradient_own(round->model), before = *own;
    int64_t *const numbers[] = {&own->target,  &own->features,      &own->classes,
                                &own->outputs, &own->start_outputs, &own->start_classes};
    const int64_t lies[] = {-1, 1, 5, 1000, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
            *own = before;
            *numbers[i] = lies[k];
            if (i == 0 && lies[k] == 1)
                continue; /* another column may be the target */
            assert_int_equal(shoal_logistic.check(&shoal_logistic, round, &data.shape), SHOAL_BROKEN);
        }
    *own = before;
    assert_int_equal(shoal_logistic.check(&shoal_logistic, round, &data.shape), SHOAL_OK);
    shoal_round_free(&round);
}

/* ---- prediction -------------------------------------------------------------------------------------------------- */

static void test_prediction(void **state)
{
    const double rows_of_two[] = {1, 1, -3, 1, 0, 0.5}, weights[] = {2, -1, 0, 1, 1, 1}, intercept[] = {-1, 0, 0.5},
                 classes[] = {-4, 8, 16};
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    shoal_logistic_predict_config config = {.weights = weights,
                                            .intercept = intercept,
                                            .classes = classes,
                                            .outputs = 3,
                                            .classes_count = 3,
                                            .columns = 2,
                                            .probabilities = true};
    (void)state;
    assert_int_equal(shoal_data_wrap(&data, rows_of_two, 3, 2, SHOAL_FLOAT64), SHOAL_OK);
    assert_int_equal(shoal_run(&result, NULL, &shoal_logistic_predict, &config, data, NULL, NULL), SHOAL_OK);
    const double *labels = shoal_result_tensor(result, "labels")->values;
    const shoal_tensor *shares = shoal_result_tensor(result, "probabilities");
    assert_int_equal(shares->rank, 2);
    assert_int_equal(shares->shape[1], 3);
    for (int i = 0; i < 3; i++) {
        double output[3], all = 0;
        int most = 0;
        for (int k = 0; k < 3; k++) {
            output[k] =
                intercept[k] + weights[2 * k] * rows_of_two[2 * i] + weights[2 * k + 1] * rows_of_two[2 * i + 1];
            all += exp(output[k]);
            most = output[k] > output[most] ? k : most;
        }
        assert_true(labels[i] == classes[most]);
        for (int k = 0; k < 3; k++)
            assert_true(fabs(((double *)shares->values)[3 * i + k] - exp(output[k]) / all) < 1e-15);
    }
    shoal_result_free(&result);
    config.outputs = 2; /* for three classes */
    assert_int_equal(shoal_run(&result, NULL, &shoal_logistic_predict, &config, data, NULL, NULL), SHOAL_INVALID);
    config.outputs = 1;
    config.classes_count = 2;
    config.columns = 3;
    assert_int_equal(shoal_run(&result, NULL, &shoal_logistic_predict, &config, data, NULL, NULL), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "is for 3 columns, but the data has 2"));
    shoal_data_free(&data);
}

/* The n-th allocation fails, for every n. */
static void test_out_of_memory(void **state)
{
    const double values[] = {1, 0, 2, 1, 3, 0, 4, 1};
    shoal_data *data = NULL;
    (void)state;
    assert_int_equal(shoal_data_wrap(&data, values, 4, 2, SHOAL_FLOAT64), SHOAL_OK);
    shoal_logistic_config config = usual();
    config.iterations = 3;
    int status = SHOAL_MEMORY;
    for (int64_t n = 0; status == SHOAL_MEMORY; n++) {
        shoal_result *result = NULL;
        assert_true(n < 10000);
        base_memory_fail_after(n);
        status = shoal_run(&result, NULL, &shoal_logistic, &config, data, NULL, &(shoal_run_options){.threads = 1});
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK ? result != NULL : result == NULL);
        shoal_result_free(&result);
    }
    assert_int_equal(status, SHOAL_OK);
    shoal_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_is_that_of_the_value),
        cmocka_unit_test(test_losses_at_the_ends),
        cmocka_unit_test(test_labels_are_any_numbers),
        cmocka_unit_test(test_weights_are_copies),
        cmocka_unit_test(test_weights_are_a_unit),
        cmocka_unit_test(test_start_is_dropped),
        cmocka_unit_test(test_data_that_is_refused),
        cmocka_unit_test(test_options_that_are_refused),
        cmocka_unit_test(test_models_that_are_no_start),
        cmocka_unit_test(test_models_from_elsewhere),
        cmocka_unit_test(test_grains_of_any_size),
        cmocka_unit_test(test_prediction),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
