/* The sparse autoencoder against plain loops that follow the definition, against finite differences, and against
 * itself: kernel sets, blocks, threads and grains. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/autoencoder.h>
#include <shoal/engine.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/autoencoder/autoencoder_internal.h"
#include "learn/gradient/gradient_internal.h"
#include "learn/partial.h"

static void check(int status)
{
    if (status < 0)
        fail_msg("status %d: %s", status, shoal_error());
}

static double unit(uint64_t index)
{
    return base_random_unit(7, BASE_FOR_DATA, index, 0);
}

static shoal_autoencoder_config default_config(int64_t hidden)
{
    shoal_autoencoder_config config = {0};
    check(shoal_options_default(&config, shoal_autoencoder.options));
    config.hidden = hidden;
    return config;
}

static int each_in_turn(const shoal_crew *crew, int64_t items, int (*task)(void *, int64_t, int), void *context)
{
    (void)crew;
    for (int64_t i = 0; i < items; i++) {
        int status = task(context, i, 0);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

/* ---- a problem: a network and data, at whose points value and gradient are asked for ----------------------------- */

typedef struct problem {
    shoal_shape shape;
    const void *values;
    shoal_round *round; /* the first of the descent */
    const char *kernel;
    int64_t block_rows; /* 0: as chosen */
} problem;

static shoal_grain grain_of(const problem *p, int64_t index)
{
    int64_t first = index * p->shape.rows_per_grain, left = p->shape.rows - first;
    size_t row_bytes = (size_t)p->shape.columns * shoal_type_size(p->shape.type);
    return (shoal_grain){.shape = &p->shape,
                         .index = index,
                         .first_row = first,
                         .rows = left < p->shape.rows_per_grain ? left : p->shape.rows_per_grain,
                         .values = (const char *)p->values + (size_t)first * row_bytes};
}

static shoal_shape shape_of(int64_t rows, int64_t columns, shoal_type type, int64_t rows_per_grain)
{
    return (shoal_shape){.rows = rows,
                         .columns = columns,
                         .type = type,
                         .rows_per_grain = rows_per_grain,
                         .grains = (rows + rows_per_grain - 1) / rows_per_grain};
}

/* Starts, and scans in a partial for each grain, merged from the last to the first. */
static int scan(problem *p, const shoal_autoencoder_config *config)
{
    shoal_round *first = NULL;
    shoal_partial *merged = NULL;
    shoal_result *result = NULL;
    const shoal_crew crew = {.each = each_in_turn, .threads = 1, .kernel = "portable"};
    int status = shoal_autoencoder.start(&first, config, &p->shape);
    if (status < 0)
        return status;
    void *prepared = NULL;
    check(shoal_autoencoder.prepare(&prepared, first, &p->shape, &crew));
    size_t bytes = shoal_autoencoder.scratch_bytes(first, prepared, &p->shape);
    shoal_scratch scratch = {.memory = aligned_alloc(64, (bytes + 63) / 64 * 64), .bytes = bytes};
    check(learn_partial_new(&merged, &first->layout, 0, p->shape.rows, NULL));
    for (int64_t g = p->shape.grains - 1; g >= 0; g--) {
        shoal_partial *one = NULL;
        shoal_grain grain = grain_of(p, g);
        check(learn_partial_new(&one, &first->layout, 0, p->shape.rows, merged));
        check(shoal_autoencoder.map(one, first, prepared, &grain, &scratch));
        for (int cell = 0; cell < first->layout.cells; cell++)
            learn_partial_merge_values(merged, one, cell, 0, learn_cell_values(&first->layout.cell[cell]));
        check(learn_partial_merge_records(merged, one));
        learn_partial_free(&one);
    }
    check(learn_partial_settle(merged));
    status = shoal_autoencoder.update(&p->round, &result, first, merged, &p->shape, &crew, false);
    assert_null(result);
    shoal_autoencoder.forget(&prepared);
    free(scratch.memory);
    learn_partial_free(&merged);
    shoal_round_free(&first);
    return status;
}

static const autoencoder_own *own_of(const problem *p)
{
    return gradient_own(p->round->model);
}

static int64_t parameters_of(const problem *p)
{
    return autoencoder_place_of(own_of(p)).count;
}

/* The merged sums at x with the quanta that the round has. */
static shoal_partial *map_at(const problem *p, const double *x)
{
    const gradient_model *model = p->round->model;
    const shoal_crew crew = {.each = each_in_turn, .threads = 1, .kernel = p->kernel ? p->kernel : "portable"};
    void *prepared = NULL;
    shoal_partial *merged = NULL;
    check(autoencoder_class.prepare(&prepared, own_of(p), x, &p->shape, &crew));
    autoencoder_prepared *shared = prepared;
    if (p->block_rows)
        shared->block_rows = p->block_rows;
    size_t bytes = autoencoder_class.scratch_bytes(own_of(p), prepared, &p->shape);
    shoal_scratch scratch = {.memory = aligned_alloc(64, (bytes + 63) / 64 * 64), .bytes = bytes};
    memset(scratch.memory, 0xc3, bytes);
    check(learn_partial_new(&merged, &p->round->layout, 0, p->shape.rows, NULL));
    gradient_sums sums = {.model = model,
                          .kernel = shared->kernel,
                          .grains = p->shape.grains,
                          .values = shoal_partial_values(merged, GRADIENT_CELL_SUMS),
                          .greatest = shoal_partial_values(merged, GRADIENT_CELL_GREATEST)};
    for (int64_t g = p->shape.grains - 1; g >= 0; g--) {
        shoal_grain grain = grain_of(p, g);
        check(autoencoder_class.map(&sums, own_of(p), prepared, &grain, &scratch));
    }
    check(learn_partial_settle(merged));
    autoencoder_class.forget(&prepared);
    assert_null(prepared);
    free(scratch.memory);
    return merged;
}

/* The sums at x, once quanta fit. */
static shoal_partial *sums_at(problem *p, const double *x)
{
    gradient_model *model = p->round->model;
    for (int attempt = 0; attempt < 2; attempt++) {
        double quantum[GRADIENT_GROUPS_MOST];
        shoal_partial *merged = map_at(p, x);
        gradient_merit merit = gradient_judge(quantum, model, merged, p->shape.grains);
        assert_int_not_equal(merit, GRADIENT_NOT_FINITE);
        if (merit == GRADIENT_FINE)
            return merged;
        memcpy(model->quantum, quantum, sizeof quantum);
        learn_partial_free(&merged);
    }
    fail_msg("the quanta never fit");
    return NULL;
}

static double evaluate(problem *p, double *gradient, const double *x)
{
    const gradient_model *model = p->round->model;
    double value = NAN, *sums = malloc((size_t)model->plan.sums * sizeof *sums);
    shoal_partial *merged = sums_at(p, x);
    gradient_read_sums(sums, model, merged);
    check(autoencoder_class.combine(&value, gradient, sums, own_of(p), x, &p->shape));
    learn_partial_free(&merged);
    free(sums);
    return value;
}

/* ---- the definition, in plain loops and two passes --------------------------------------------------------------- */

static double function(kernel_activation f, double z)
{
    return f == KERNEL_LOGISTIC ? 1 / (1 + exp(-z)) : f == KERNEL_TANH ? tanh(z) : f == KERNEL_RELU ? fmax(z, 0) : z;
}

static double derivative(kernel_activation f, double z)
{
    double y = function(f, z);
    return f == KERNEL_LOGISTIC ? y * (1 - y) : f == KERNEL_TANH ? 1 - y * y : f == KERNEL_RELU ? z > 0 : 1;
}

/* Everything about the network that the definition needs; H and D as in the documentation. */
typedef struct plain {
    int64_t H, D, rows;
    kernel_activation hidden, output;
    bool tied;
    double sparsity, beta, lambda;
    const double *data; /* as the network sees it */
} plain;

static double plain_hidden(const plain *n, const double *W1, const double *b1, int64_t row, int64_t j)
{
    double z = b1[j];
    for (int64_t k = 0; k < n->D; k++)
        z += W1[j * n->D + k] * n->data[row * n->D + k];
    return z;
}

static double plain_divergence(double *slope, const plain *n, double mean)
{
    double p = n->hidden == KERNEL_TANH ? (1 + mean) / 2 : mean, s = n->sparsity;
    if (n->hidden == KERNEL_RELU) {
        *slope = 1;
        return mean;
    }
    *slope = (-s / p + (1 - s) / (1 - p)) * (n->hidden == KERNEL_TANH ? 0.5 : 1);
    return s * log(s / p) + (1 - s) * log((1 - s) / (1 - p));
}

/* Cost and gradient: first the mean activations of all rows, then back-propagation with the sparsity inside the
 * delta. */
static double plain_cost(double *gradient, const plain *n, const double *x)
{
    int64_t H = n->H, D = n->D, weights = H * D, decoder = n->tied ? 0 : weights, bias = decoder + weights;
    const double *W1 = x, *W2t = x + decoder, *b1 = x + bias, *b2 = x + bias + H;
    double *z = malloc((size_t)H * sizeof *z), *mean = calloc((size_t)H, sizeof *mean);
    double *delta = malloc((size_t)D * sizeof *delta), *factor = calloc((size_t)H, sizeof *factor);
    double error = 0, divergence = 0, decay = 0, m = (double)n->rows;
    memset(gradient, 0, (size_t)(bias + H + D) * sizeof *gradient);
    for (int64_t i = 0; i < n->rows; i++)
        for (int64_t j = 0; j < H; j++)
            mean[j] += function(n->hidden, plain_hidden(n, W1, b1, i, j)) / m;
    for (int64_t j = 0; n->beta > 0 && j < H; j++)
        divergence += n->beta * plain_divergence(&factor[j], n, mean[j]);
    for (int64_t i = 0; i < n->rows; i++) {
        for (int64_t j = 0; j < H; j++)
            z[j] = plain_hidden(n, W1, b1, i, j);
        for (int64_t k = 0; k < D; k++) {
            double out = b2[k], target = n->data[i * D + k];
            for (int64_t j = 0; j < H; j++)
                out += W2t[j * D + k] * function(n->hidden, z[j]);
            double miss = function(n->output, out) - target;
            error += miss * miss / 2 / m;
            delta[k] = miss * derivative(n->output, out) / m;
            gradient[bias + H + k] += delta[k];
            for (int64_t j = 0; j < H; j++)
                gradient[decoder + j * D + k] += delta[k] * function(n->hidden, z[j]);
        }
        for (int64_t j = 0; j < H; j++) {
            double back = n->beta * factor[j] / m;
            for (int64_t k = 0; k < D; k++)
                back += W2t[j * D + k] * delta[k];
            back *= derivative(n->hidden, z[j]);
            gradient[bias + j] += back;
            for (int64_t k = 0; k < D; k++)
                gradient[j * D + k] += back * n->data[i * D + k];
        }
    }
    for (int64_t i = 0; i < bias; i++) {
        decay += n->lambda / 2 * x[i] * x[i];
        gradient[i] += n->lambda * x[i];
    }
    free(z);
    free(mean);
    free(delta);
    free(factor);
    return error + decay + divergence;
}

/* ---- cost and gradient ------------------------------------------------------------------------------------------- */

enum { ROWS = 41, COLUMNS = 7, HIDDEN = 5 }; /* no multiple of anything */

static double values64[ROWS * COLUMNS];
static float values32[ROWS * COLUMNS];

static void make_values(void)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values64[i] = values32[i] = (float)unit((uint64_t)i);
}

typedef struct network {
    int activation, output;
    bool tied, sparse;
} network;

enum { NETWORKS = 24 };

static network network_number(int i)
{
    return (network){.activation = i % 3,
                     .output = i / 3 % 2 ? SHOAL_OUTPUT_LINEAR : SHOAL_OUTPUT_SAME,
                     .tied = i / 6 % 2,
                     .sparse = i / 12};
}

static shoal_autoencoder_config config_of(const network *n)
{
    shoal_autoencoder_config config = default_config(HIDDEN);
    config.activation = n->activation;
    config.output = n->output;
    config.tied = n->tied;
    config.weight_decay = 0.01;
    config.sparsity = n->activation == SHOAL_RELU ? 0.01 : 0.1;
    config.sparsity_weight = n->sparse ? 0.7 : 0;
    return config;
}

static void make_problem(problem *p, const shoal_autoencoder_config *config, const void *values, shoal_type type,
                         int64_t rows_per_grain)
{
    *p = (problem){.shape = shape_of(ROWS, COLUMNS, type, rows_per_grain), .values = values};
    check(scan(p, config));
}

static double *make_point(const problem *p)
{
    double *x = malloc((size_t)parameters_of(p) * sizeof *x);
    for (int64_t i = 0; i < parameters_of(p); i++)
        x[i] = 2 * unit((uint64_t)(100000 + i)) - 1;
    return x;
}

static plain plain_of(const problem *p, const double *data)
{
    const autoencoder_own *own = own_of(p);
    return (plain){.H = own->hidden,
                   .D = own->columns,
                   .rows = p->shape.rows,
                   .hidden = (kernel_activation)own->activation,
                   .output = (kernel_activation)own->output,
                   .tied = own->tied,
                   .sparsity = own->sparsity,
                   .beta = own->sparsity_weight,
                   .lambda = own->weight_decay,
                   .data = data};
}

static double greatest(const double *v, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(v[i]));
    return most;
}

static void expect_near(const double *a, const double *b, int64_t count, double tolerance, const char *what, int number)
{
    double most = greatest(b, count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(a[i] - b[i]) <= tolerance * most))
            fail_msg("network %d: %s %lld is %.17g, not %.17g (greatest %g)", number, what, (long long)i, a[i], b[i],
                     most);
}

/* One round has the cost and the gradient of the definition, which needs two passes when sparse. */
static void test_definition(void **state)
{
    (void)state;
    for (int i = 0; i < NETWORKS; i++) {
        network n = network_number(i);
        shoal_autoencoder_config config = config_of(&n);
        problem p;
        make_problem(&p, &config, values64, SHOAL_FLOAT64, 16);
        int64_t count = parameters_of(&p);
        double *x = make_point(&p), *found = malloc((size_t)count * sizeof *x),
               *expected = malloc((size_t)count * sizeof *x);
        plain definition = plain_of(&p, values64);
        double value = evaluate(&p, found, x), wanted = plain_cost(expected, &definition, x);
        expect_near(&value, &wanted, 1, 1e-13, "cost", i);
        expect_near(found, expected, count, 1e-12, "component", i);
        free(x);
        free(found);
        free(expected);
        shoal_round_free(&p.round);
    }
}

/* The gradient is that of the cost. */
static void test_finite_differences(void **state)
{
    (void)state;
    for (int i = 0; i < NETWORKS; i++) {
        network n = network_number(i);
        shoal_autoencoder_config config = config_of(&n);
        problem p;
        make_problem(&p, &config, values64, SHOAL_FLOAT64, 16);
        int64_t count = parameters_of(&p);
        double *x = make_point(&p), *gradient = malloc((size_t)count * sizeof *x),
               *differences = malloc((size_t)count * sizeof *x), *ignored = malloc((size_t)count * sizeof *x);
        evaluate(&p, gradient, x);
        for (int64_t k = 0; k < count; k++) {
            double at = x[k], step = 1e-5;
            x[k] = at + step;
            double above = evaluate(&p, ignored, x);
            x[k] = at - step;
            differences[k] = (above - evaluate(&p, ignored, x)) / (2 * step);
            x[k] = at;
        }
        expect_near(gradient, differences, count, 1e-7, "component", i);
        free(x);
        free(gradient);
        free(differences);
        free(ignored);
        shoal_round_free(&p.round);
    }
}

/* float32 inside a grain gives what float64 gives, but for some roundings; the cost of both is summed in float64. */
static void test_precision(void **state)
{
    (void)state;
    for (int i = 0; i < NETWORKS; i++) {
        network n = network_number(i);
        shoal_autoencoder_config config = config_of(&n);
        problem p;
        make_problem(&p, &config, values32, SHOAL_FLOAT32, 16);
        assert_false(own_of(&p)->wide);
        int64_t count = parameters_of(&p);
        double *x = make_point(&p), *found = malloc((size_t)count * sizeof *x),
               *expected = malloc((size_t)count * sizeof *x);
        plain definition = plain_of(&p, values64);
        double value = evaluate(&p, found, x), wanted = plain_cost(expected, &definition, x);
        expect_near(&value, &wanted, 1, 1e-6, "cost", i);
        expect_near(found, expected, count, 1e-5, "component", i);
        free(x);
        free(found);
        free(expected);
        shoal_round_free(&p.round);
    }
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static void expect_same_sums(const shoal_partial *a, const shoal_partial *b, const gradient_model *model)
{
    assert_memory_equal(shoal_partial_values_const(a, GRADIENT_CELL_SUMS),
                        shoal_partial_values_const(b, GRADIENT_CELL_SUMS), (size_t)model->plan.sums * sizeof(int64_t));
    assert_memory_equal(shoal_partial_values_const(a, GRADIENT_CELL_GREATEST),
                        shoal_partial_values_const(b, GRADIENT_CELL_GREATEST),
                        (size_t)model->plan.groups * sizeof(int64_t));
}

/* Neither the kernel set nor the rows of a block change a bit. */
static void test_kernels_and_blocks(void **state)
{
    (void)state;
    const kernel_set *set[8];
    int sets = kernel_list(set);
    for (int i = 0; i < 2 * NETWORKS; i++) {
        network n = network_number(i % NETWORKS);
        shoal_autoencoder_config config = config_of(&n);
        problem p;
        if (i < NETWORKS)
            make_problem(&p, &config, values32, SHOAL_FLOAT32, 48);
        else
            make_problem(&p, &config, values64, SHOAL_FLOAT64, 48);
        double *x = make_point(&p);
        shoal_partial *expected = sums_at(&p, x);
        for (int s = 0; s < sets; s++)
            for (p.block_rows = 16; p.block_rows <= 64; p.block_rows += 16) {
                p.kernel = set[s]->name;
                shoal_partial *found = map_at(&p, x);
                expect_same_sums(found, expected, p.round->model);
                learn_partial_free(&found);
            }
        learn_partial_free(&expected);
        free(x);
        shoal_round_free(&p.round);
    }
}

/* Grains of relu and linear units have no function but sums and products, so that fmaf, written down as the
 * documentation has it, gives the bits. */
static void test_chains(void **state)
{
    (void)state;
    enum { H = HIDDEN, D = COLUMNS };
    shoal_autoencoder_config config = default_config(H);
    config.activation = SHOAL_RELU;
    config.sparsity_weight = 0.5;
    problem p;
    make_problem(&p, &config, values32, SHOAL_FLOAT32, ROWS);
    double *x = make_point(&p);
    shoal_partial *merged = sums_at(&p, x);
    static float W1[H][D], W2[H][D], b1[H], b2[D], dW1[H][D], dW2[H][D], db1[H], db2[D], activity[H], slopes[H],
        reach[H][D];
    double lanes[KERNEL_LANES] = {0};
    autoencoder_place place = autoencoder_place_of(own_of(&p));
    for (int j = 0; j < H; j++)
        for (int k = 0; k < D; k++) {
            W1[j][k] = (float)x[place.encoder + j * D + k];
            W2[j][k] = (float)x[place.decoder + j * D + k];
            b1[j] = (float)x[place.encoder_bias + j];
            b2[k] = (float)x[place.decoder_bias + k];
        }
    for (int i = 0; i < ROWS; i++) {
        const float *row = values32 + i * D;
        float a[H], delta[D];
        for (int j = 0; j < H; j++) {
            float z = b1[j];
            for (int k = 0; k < D; k++)
                z = fmaf(row[k], W1[j][k], z);
            a[j] = z > 0 ? z : 0;
            activity[j] += a[j];
        }
        for (int k = 0; k < D; k++) {
            float y = b2[k];
            for (int j = 0; j < H; j++)
                y = fmaf(a[j], W2[j][k], y);
            delta[k] = y - row[k];
            lanes[(i * D + k) % KERNEL_LANES] =
                fma((double)delta[k], (double)delta[k], lanes[(i * D + k) % KERNEL_LANES]);
            db2[k] += delta[k];
            for (int j = 0; j < H; j++)
                dW2[j][k] = fmaf(a[j], delta[k], dW2[j][k]);
        }
        for (int j = 0; j < H; j++) {
            float back = 0, slope = a[j] > 0;
            for (int k = 0; k < D; k++)
                back = fmaf(delta[k], W2[j][k], back);
            back *= slope;
            db1[j] += back;
            slopes[j] += slope;
            for (int k = 0; k < D; k++) {
                dW1[j][k] = fmaf(back, row[k], dW1[j][k]);
                reach[j][k] = fmaf(slope, row[k], reach[j][k]);
            }
        }
    }
    const gradient_model *model = p.round->model;
    autoencoder_groups groups = autoencoder_groups_of(own_of(&p));
    const int64_t *values = shoal_partial_values_const(merged, GRADIENT_CELL_SUMS);
    double error = kernel_lanes_sum(lanes);
    assert_int_equal(values[model->plan.group[groups.error].first], llrint(error / model->quantum[groups.error]));
    const struct {
        int group;
        const float *sums;
    } all[] = {{groups.activity, activity},  {groups.encoder_bias, db1},   {groups.decoder_bias, db2},
               {groups.encoder, &dW1[0][0]}, {groups.decoder, &dW2[0][0]}, {groups.slopes, slopes},
               {groups.reach, &reach[0][0]}};
    for (size_t g = 0; g < sizeof all / sizeof *all; g++) {
        const gradient_group *group = &model->plan.group[all[g].group];
        for (int64_t i = 0; i < group->count; i++)
            assert_int_equal(values[group->first + i], llrint((double)all[g].sums[i] / model->quantum[all[g].group]));
    }
    learn_partial_free(&merged);
    free(x);
    shoal_round_free(&p.round);
}

static shoal_result *run(const shoal_autoencoder_config *config, const void *values, shoal_type type, int64_t rows,
                         int64_t columns, const shoal_run_options *options)
{
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    check(shoal_data_wrap(&data, values, rows, columns, type));
    check(shoal_run(&result, NULL, &shoal_autoencoder, config, data, NULL, options));
    shoal_data_free(&data);
    return result;
}

static void expect_same_results(const shoal_result *a, const shoal_result *b)
{
    assert_int_equal(a->tensors, b->tensors);
    assert_int_equal(a->numbers, b->numbers);
    for (int t = 0; t < a->tensors; t++) {
        size_t bytes = sizeof(double);
        for (int r = 0; r < a->tensor[t].rank; r++) {
            assert_int_equal(a->tensor[t].shape[r], b->tensor[t].shape[r]);
            bytes *= (size_t)a->tensor[t].shape[r];
        }
        assert_string_equal(a->tensor[t].name, b->tensor[t].name);
        assert_memory_equal(a->tensor[t].values, b->tensor[t].values, bytes);
    }
    for (int n = 0; n < a->numbers; n++)
        assert_memory_equal(&a->number[n].value, &b->number[n].value, sizeof(double));
}

static void test_runs(void **state)
{
    (void)state;
    const kernel_set *set[8];
    int sets = kernel_list(set);
    shoal_autoencoder_config config = default_config(HIDDEN);
    config.iterations = 6;
    config.tolerance = config.change = 0;
    shoal_result *expected = run(&config, values32, SHOAL_FLOAT32, ROWS, COLUMNS,
                                 &(shoal_run_options){.threads = 1, .kernel = "portable", .rows_per_grain = 8});
    assert_true(shoal_result_number(expected, "iterations") == 6);
    for (int threads = 1; threads <= 3; threads++) {
        shoal_result *found =
            run(&config, values32, SHOAL_FLOAT32, ROWS, COLUMNS,
                &(shoal_run_options){.threads = threads, .kernel = set[threads % sets]->name, .rows_per_grain = 8});
        expect_same_results(found, expected);
        shoal_result_free(&found);
    }
    shoal_result_free(&expected);
}

/* What a result says of its point is what the definition says of it. */
static void test_result(void **state)
{
    (void)state;
    for (int tied = 0; tied <= 1; tied++) {
        shoal_autoencoder_config config = default_config(HIDDEN);
        config.iterations = 20;
        config.sparsity = 0.2;
        config.tied = tied;
        config.rescale = "-1:3";
        shoal_result *result = run(&config, values64, SHOAL_FLOAT64, ROWS, COLUMNS, NULL);
        const shoal_tensor *W1 = shoal_result_tensor(result, "encoder.weight"),
                           *b1 = shoal_result_tensor(result, "encoder.bias"),
                           *W2 = shoal_result_tensor(result, "decoder.weight"),
                           *b2 = shoal_result_tensor(result, "decoder.bias"),
                           *activity = shoal_result_tensor(result, "activity");
        double scale = shoal_result_number(result, "scale"), shift = shoal_result_number(result, "shift");
        assert_true(scale == 0.25 && shift == 0.25);
        assert_true((W2 == NULL) == tied);
        static double data[ROWS * COLUMNS], x[2 * HIDDEN * COLUMNS + HIDDEN + COLUMNS], ignored[sizeof x / sizeof *x];
        for (int i = 0; i < ROWS * COLUMNS; i++)
            data[i] = values64[i] * scale + shift;
        double *at = x;
        memcpy(at, W1->values, HIDDEN * COLUMNS * sizeof *at);
        at += HIDDEN * COLUMNS;
        for (int j = 0; !tied && j < HIDDEN; j++)
            for (int k = 0; k < COLUMNS; k++)
                *at++ = ((const double *)W2->values)[k * HIDDEN + j];
        memcpy(at, b1->values, HIDDEN * sizeof *at);
        memcpy(at + HIDDEN, b2->values, COLUMNS * sizeof *at);
        plain n = {HIDDEN, COLUMNS, ROWS, KERNEL_LOGISTIC, KERNEL_LOGISTIC, tied, 0.2, 3, 1e-4, data};
        double cost = plain_cost(ignored, &n, x), objective = shoal_result_number(result, "objective");
        expect_near(&objective, &cost, 1, 1e-12, "cost", tied);
        double error = shoal_result_number(result, "error"), decay = shoal_result_number(result, "decay"),
               divergence = shoal_result_number(result, "divergence"), sum = error + decay + divergence;
        expect_near(&sum, &objective, 1, 1e-15, "sum of terms", tied);
        assert_true(error > 0 && decay > 0 && divergence > 0);
        for (int j = 0; j < HIDDEN; j++) {
            double mean = 0;
            for (int i = 0; i < ROWS; i++)
                mean += function(KERNEL_LOGISTIC, plain_hidden(&n, W1->values, b1->values, i, j)) / ROWS;
            expect_near((const double *)activity->values + j, &mean, 1, 1e-12, "activity", j);
        }
        shoal_result_free(&result);
    }
}

/* Blocks begin at lane 0 whatever the shape is, so each has a multiple of the lanes. */
static void test_blocks_are_whole(void **state)
{
    (void)state;
    for (int64_t hidden = 1; hidden < (int64_t)1 << 26; hidden = 5 * hidden + 1)
        for (int64_t grain = 1; grain < 5000; grain = 3 * grain + 1) {
            shoal_shape shape = shape_of(100000, 3, SHOAL_FLOAT32, grain);
            int64_t rows = autoencoder_block_rows(hidden, 3, &shape);
            assert_true(rows > 0 && rows % KERNEL_LANES == 0);
        }
}

/* A run that starts where another ended has its cost. */
static void test_start(void **state)
{
    (void)state;
    shoal_autoencoder_config config = default_config(HIDDEN), again;
    config.iterations = 15;
    shoal_result *first = run(&config, values64, SHOAL_FLOAT64, ROWS, COLUMNS, NULL);
    again = config;
    again.iterations = 0;
    again.start_encoder = shoal_result_tensor(first, "encoder.weight")->values;
    again.start_encoder_bias = shoal_result_tensor(first, "encoder.bias")->values;
    again.start_decoder = shoal_result_tensor(first, "decoder.weight")->values;
    again.start_decoder_bias = shoal_result_tensor(first, "decoder.bias")->values;
    again.start_hidden = HIDDEN;
    again.start_columns = COLUMNS;
    shoal_result *second = run(&again, values64, SHOAL_FLOAT64, ROWS, COLUMNS, NULL);
    double a = shoal_result_number(first, "objective"), b = shoal_result_number(second, "objective");
    expect_near(&b, &a, 1, 1e-13, "cost", 0);
    for (int t = 0; t < first->tensors; t++)
        if (strcmp(first->tensor[t].name, "activity") != 0)
            assert_memory_equal(shoal_result_tensor(second, first->tensor[t].name)->values, first->tensor[t].values,
                                HIDDEN * sizeof(double));
    shoal_result_free(&second);

    again.start_decoder = NULL; /* a tied model */
    again.tied = true;
    second = run(&again, values64, SHOAL_FLOAT64, ROWS, COLUMNS, NULL);
    again.tied = false;
    shoal_result *third = run(&again, values64, SHOAL_FLOAT64, ROWS, COLUMNS, NULL);
    a = shoal_result_number(second, "error");
    b = shoal_result_number(third, "error");
    expect_near(&b, &a, 1, 1e-13, "error", 0);
    shoal_result_free(&third);
    shoal_result_free(&second);
    shoal_result_free(&first);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void expect_refusal(int status, int wanted, const char *text)
{
    if (status != wanted || !strstr(shoal_error(), text))
        fail_msg("status %d, \"%s\" instead of status %d, \"%s\"", status, status < 0 ? shoal_error() : "", wanted,
                 text);
}

static void expect_bad_data(const void *values, shoal_type type, const shoal_autoencoder_config *config,
                            const char *text)
{
    problem p = {.shape = shape_of(ROWS, COLUMNS, type, 8), .values = values};
    int status = scan(&p, config);
    expect_refusal(status, SHOAL_INVALID, text);
    shoal_round_free(&p.round);
}

static void test_bad_data(void **state)
{
    (void)state;
    static double bad[ROWS * COLUMNS];
    shoal_autoencoder_config config = default_config(HIDDEN);
    memcpy(bad, values64, sizeof bad);
    bad[30 * COLUMNS + 1] = -INFINITY;
    bad[16 * COLUMNS + 2] = 2.5;
    bad[16 * COLUMNS + 4] = NAN;
    expect_bad_data(
        bad, SHOAL_FLOAT64, &config,
        "row 17, column 3: 2.5 is outside 0 to 1, the range of logistic outputs; --rescale auto maps the data's own "
        "range to it, or use --output linear");
    config.rescale = "auto";
    expect_bad_data(bad, SHOAL_FLOAT64, &config, "row 17, column 5 is not a number");
    config.rescale = "0:2";
    expect_bad_data(
        bad, SHOAL_FLOAT64, &config,
        "row 17, column 3: 2.5 is outside 0 to 2, which --rescale maps to 0 to 1, the range of logistic outputs");
    config.output = SHOAL_OUTPUT_LINEAR;
    expect_bad_data(bad, SHOAL_FLOAT64, &config, "row 17, column 5 is not a number");
    bad[16 * COLUMNS + 4] = 0;
    expect_bad_data(bad, SHOAL_FLOAT64, &config, "row 31, column 2 is minus infinity");
    bad[30 * COLUMNS + 1] = 1e39;
    config.precision = 1;
    expect_bad_data(bad, SHOAL_FLOAT64, &config,
                    "row 31, column 2: 1e+39 is beyond float32: only a model of --precision float64 takes it");
    config.precision = 2;
    problem p = {.shape = shape_of(ROWS, COLUMNS, SHOAL_FLOAT64, 8), .values = bad};
    check(scan(&p, &config));
    shoal_round_free(&p.round);

    config = default_config(HIDDEN);
    config.activation = SHOAL_TANH;
    memcpy(bad, values64, sizeof bad);
    bad[3] = -1;
    check(scan(&p, &config));
    shoal_round_free(&p.round);
    bad[3] = nextafter(-1, -2);
    expect_bad_data(bad, SHOAL_FLOAT64, &config, "row 1, column 4: -1 is outside -1 to 1, the range of tanh outputs");

    config = default_config(HIDDEN);
    config.rescale = "auto";
    for (int i = 0; i < ROWS * COLUMNS; i++)
        bad[i] = 3;
    expect_bad_data(bad, SHOAL_FLOAT64, &config, "every value is 3: --rescale auto finds no range to map");
    bad[5] = nextafter(3, 4);
    config.precision = 1;
    expect_bad_data(bad, SHOAL_FLOAT64, &config, "can't be scaled");
}

/* What is done to values maps the ends of the data to the ends of the range. */
static void test_scale(void **state)
{
    (void)state;
    static uint8_t bytes[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        bytes[i] = (uint8_t)(20 + 200 * unit((uint64_t)i));
    bytes[9] = 20;
    bytes[99] = 220;
    for (int activation = SHOAL_LOGISTIC; activation <= SHOAL_TANH; activation++) {
        shoal_autoencoder_config config = default_config(HIDDEN);
        config.activation = activation;
        config.rescale = "auto";
        problem p = {.shape = shape_of(ROWS, COLUMNS, SHOAL_UINT8, 8), .values = bytes};
        check(scan(&p, &config));
        const autoencoder_own *own = own_of(&p);
        double low = activation == SHOAL_TANH ? -1 : 0;
        assert_true(fabs(20 * own->scale + own->shift - low) < 1e-14);
        assert_true(fabs(220 * own->scale + own->shift - 1) < 1e-14);
        assert_false(own->wide);
        shoal_round_free(&p.round);
    }
}

static int try_start(const shoal_autoencoder_config *config, const shoal_shape *shape)
{
    shoal_round *round = NULL;
    int status = shoal_autoencoder.start(&round, config, shape);
    assert_true((status < 0) == (round == NULL));
    shoal_round_free(&round);
    return status;
}

static void test_bad_options(void **state)
{
    (void)state;
    shoal_shape shape = shape_of(ROWS, COLUMNS, SHOAL_FLOAT64, 8);
    shoal_autoencoder_config config = default_config(0);
    expect_refusal(try_start(&config, &shape), SHOAL_USAGE, "--hidden must be at least 1");
    config.hidden = (int64_t)1 << 30;
    expect_refusal(try_start(&config, &shape), SHOAL_USAGE, "more than 2^31 weights");
    const double sparsities[] = {0, 1, -0.5, 1.5, NAN};
    for (int i = 0; i < 5; i++) {
        config = default_config(3);
        config.sparsity = sparsities[i];
        expect_refusal(try_start(&config, &shape), SHOAL_USAGE, "--sparsity must be greater than 0 and less than 1");
        config.sparsity_weight = 0; /* then it does not matter */
        check(try_start(&config, &shape));
    }
    config = default_config(3);
    config.activation = SHOAL_RELU;
    expect_refusal(try_start(&config, &shape), SHOAL_USAGE, "--activation relu needs an explicit --sparsity-weight");
    config.sparsity_weight = 0.1;
    check(try_start(&config, &shape));
    config.sparsity = 0.2;
    expect_refusal(try_start(&config, &shape), SHOAL_USAGE, "--sparsity: relu units have no mean activation to aim at");
    config = default_config(3);
    config.sparsity_weight = -1;
    expect_refusal(try_start(&config, &shape), SHOAL_USAGE, "--sparsity-weight must be at least 0");
    config = default_config(3);
    config.weight_decay = -1e-4;
    expect_refusal(try_start(&config, &shape), SHOAL_USAGE, "--weight-decay must be at least 0, not -0.0001");
    const char *const scales[] = {"", "all", "1", "3:3", "4:3", "0:x", ":1", "0:inf", "0:1:2"};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        config = default_config(3);
        config.rescale = scales[i];
        expect_refusal(try_start(&config, &shape), SHOAL_USAGE, "--rescale: ");
    }
    config = default_config(3);
    shape.weighted = true;
    expect_refusal(try_start(&config, &shape), SHOAL_USAGE, "no weights");
}

static void test_bad_start(void **state)
{
    (void)state;
    shoal_shape shape = shape_of(ROWS, COLUMNS, SHOAL_FLOAT64, 8);
    shoal_autoencoder_config config = default_config(3);
    config.start_encoder = config.start_encoder_bias = config.start_decoder = config.start_decoder_bias = values64;
    config.start_hidden = 4;
    config.start_columns = COLUMNS;
    expect_refusal(try_start(&config, &shape), SHOAL_INVALID,
                   "--start: a model of 4 hidden units and 7 columns, but --hidden is 3 and the data has 7 columns");
    config.start_hidden = 3;
    config.start_columns = 9;
    expect_refusal(try_start(&config, &shape), SHOAL_INVALID, "a model of 3 hidden units and 9 columns");
    config.start_columns = COLUMNS;
    check(try_start(&config, &shape));
    config.tied = true;
    expect_refusal(try_start(&config, &shape), SHOAL_INVALID, "a separate decoder can't be --tied");
    static double bad[ROWS];
    bad[2] = NAN;
    config.tied = false;
    config.start_encoder_bias = bad;
    expect_refusal(try_start(&config, &shape), SHOAL_INVALID, "weights that are not finite");
}

/* A round from elsewhere is looked at before it is believed. */
static void test_bad_round(void **state)
{
    (void)state;
    shoal_shape shape = shape_of(ROWS, COLUMNS, SHOAL_FLOAT64, 8);
    shoal_autoencoder_config config = default_config(3);
    shoal_round *round = NULL;
    check(shoal_autoencoder.start(&round, &config, &shape));
    autoencoder_own own, *in_round = (autoencoder_own *)gradient_own(round->model);
    size_t bytes = sizeof own;
    own = *in_round;
    assert_true(autoencoder_class.good(&own, bytes, NULL, &shape));
    assert_false(autoencoder_class.good(&own, bytes - 1, NULL, &shape));
    assert_false(autoencoder_class.good(&own, bytes + 8, NULL, &shape));
    const struct {
        size_t offset;
        int64_t value;
    } lies[] = {{offsetof(autoencoder_own, hidden), 0},
                {offsetof(autoencoder_own, hidden), INT64_MAX},
                {offsetof(autoencoder_own, columns), COLUMNS + 1},
                {offsetof(autoencoder_own, activation), KERNEL_LINEAR},
                {offsetof(autoencoder_own, activation), 9},
                {offsetof(autoencoder_own, output), -1},
                {offsetof(autoencoder_own, tied), 2},
                {offsetof(autoencoder_own, wide), -1},
                {offsetof(autoencoder_own, scaling), 3},
                {offsetof(autoencoder_own, starts), 1},
                {offsetof(autoencoder_own, sparsity), 0},
                {offsetof(autoencoder_own, scale), INT64_MAX}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        autoencoder_own lie = own;
        memcpy((char *)&lie + lies[i].offset, &lies[i].value, sizeof lies[i].value);
        assert_false(autoencoder_class.good(&lie, bytes, NULL, &shape));
    }
    shoal_round_free(&round);
}

/* ---- features ---------------------------------------------------------------------------------------------------- */

static void test_features(void **state)
{
    (void)state;
    static double encoder[HIDDEN * COLUMNS], bias[HIDDEN];
    for (int i = 0; i < HIDDEN * COLUMNS; i++)
        encoder[i] = unit((uint64_t)(5000 + i)) - 0.5;
    for (int j = 0; j < HIDDEN; j++)
        bias[j] = unit((uint64_t)(6000 + j)) - 0.5;
    for (int activation = SHOAL_LOGISTIC; activation <= SHOAL_RELU; activation++)
        for (int precision = 1; precision <= 2; precision++) {
            shoal_features_config config = {.encoder = encoder,
                                            .bias = bias,
                                            .hidden = HIDDEN,
                                            .columns = COLUMNS,
                                            .activation = activation,
                                            .scale = 2,
                                            .shift = -1,
                                            .precision = precision};
            shoal_data *data = NULL;
            shoal_result *result = NULL;
            check(shoal_data_wrap(&data, values32, ROWS, COLUMNS, SHOAL_FLOAT32));
            check(shoal_run(&result, NULL, &shoal_features, &config, data, NULL,
                            &(shoal_run_options){.threads = 2, .rows_per_grain = 8}));
            const shoal_tensor *features = shoal_result_tensor(result, "features");
            assert_int_equal(features->rank, 2);
            assert_int_equal(features->shape[0], ROWS);
            assert_int_equal(features->shape[1], HIDDEN);
            assert_int_equal(features->type, precision == 2 ? SHOAL_FLOAT64 : SHOAL_FLOAT32);
            static double scaled[ROWS * COLUMNS], found[ROWS * HIDDEN];
            for (int i = 0; i < ROWS * COLUMNS; i++)
                scaled[i] = 2 * values64[i] - 1;
            plain n = {.H = HIDDEN, .D = COLUMNS, .data = scaled};
            shoal_convert_float64(found, features->values, features->type, ROWS * HIDDEN);
            for (int i = 0; i < ROWS; i++)
                for (int j = 0; j < HIDDEN; j++) {
                    double expected =
                        function(autoencoder_kernel_activation(activation), plain_hidden(&n, encoder, bias, i, j));
                    assert_true(fabs(found[i * HIDDEN + j] - expected) < (precision == 2 ? 1e-14 : 1e-6));
                }
            shoal_result_free(&result);
            shoal_data_free(&data);
        }
}

static void test_bad_features(void **state)
{
    (void)state;
    static float bad[ROWS * COLUMNS];
    static double encoder[HIDDEN * COLUMNS], bias[HIDDEN];
    shoal_features_config config = {
        .encoder = encoder, .bias = bias, .hidden = HIDDEN, .columns = COLUMNS, .scale = 1, .precision = 1};
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    memcpy(bad, values32, sizeof bad);
    bad[20 * COLUMNS + 6] = NAN;
    check(shoal_data_wrap(&data, bad, ROWS, COLUMNS, SHOAL_FLOAT32));
    expect_refusal(shoal_run(&result, NULL, &shoal_features, &config, data, NULL, NULL), SHOAL_INVALID,
                   "row 21, column 7 is not a number");
    config.columns = COLUMNS - 1;
    expect_refusal(shoal_run(&result, NULL, &shoal_features, &config, data, NULL, NULL), SHOAL_INVALID,
                   "the encoder has 6 columns, the data 7");
    config.columns = COLUMNS;
    bias[3] = INFINITY;
    expect_refusal(shoal_run(&result, NULL, &shoal_features, &config, data, NULL, NULL), SHOAL_INVALID,
                   "the encoder's bias 4 is not finite");
    assert_null(result);
    shoal_data_free(&data);
}

/* ---- memory and grains ------------------------------------------------------------------------------------------- */

static void test_every_allocation(void **state)
{
    (void)state;
    shoal_autoencoder_config config = default_config(3);
    config.iterations = 2;
    shoal_data *data = NULL;
    check(shoal_data_wrap(&data, values32, ROWS, COLUMNS, SHOAL_FLOAT32));
    for (int64_t n = 0;; n++) {
        shoal_result *result = NULL;
        base_memory_fail_after(n);
        int status =
            shoal_run(&result, NULL, &shoal_autoencoder, &config, data, NULL, &(shoal_run_options){.threads = 1});
        base_memory_fail_after(-1);
        if (status == SHOAL_OK) {
            assert_true(n > 20);
            shoal_result_free(&result);
            break;
        }
        assert_null(result);
        expect_refusal(status, SHOAL_MEMORY, "out of memory");
    }
    shoal_data_free(&data);
}

/* Enough grains for many workers, none too small to be worth it. */
static void test_grains(void **state)
{
    (void)state;
    shoal_autoencoder_config config = default_config(30);
    const struct {
        int64_t rows, grain;
    } cases[] = {{1, 64}, {1000, 64}, {10000, 320}, {100000, 1024}, {INT64_C(1) << 40, 1024}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_shape shape = {.rows = cases[i].rows, .columns = 64, .type = SHOAL_FLOAT32};
        assert_int_equal(shoal_autoencoder.rows_per_grain(&config, &shape), cases[i].grain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_definition),
                                       cmocka_unit_test(test_finite_differences),
                                       cmocka_unit_test(test_precision),
                                       cmocka_unit_test(test_kernels_and_blocks),
                                       cmocka_unit_test(test_chains),
                                       cmocka_unit_test(test_runs),
                                       cmocka_unit_test(test_result),
                                       cmocka_unit_test(test_start),
                                       cmocka_unit_test(test_blocks_are_whole),
                                       cmocka_unit_test(test_bad_data),
                                       cmocka_unit_test(test_scale),
                                       cmocka_unit_test(test_bad_options),
                                       cmocka_unit_test(test_bad_start),
                                       cmocka_unit_test(test_bad_round),
                                       cmocka_unit_test(test_features),
                                       cmocka_unit_test(test_bad_features),
                                       cmocka_unit_test(test_every_allocation),
                                       cmocka_unit_test(test_grains)};
    make_values();
    return cmocka_run_group_tests_name("autoencoder", tests, NULL, NULL);
}
