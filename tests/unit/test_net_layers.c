/* src/learn/train/layers*.c: the gradient of nets with every layer beside finite differences of a plain computation in
 * float64, and the same bits in every kernel set. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/train/train_internal.h"

enum { ROWS = 5, ROWS_MOST = 21, LAYERS_MOST = 24, VALUES_MOST = 4096, PARAMETERS_MOST = 20000 };

static const struct {
    const char *text;
    train_shape in;
    int rows;
} nets[] = {
    {"dense 7 tanh; dense 5 logistic; dense 3 softmax", {11, 1, 1, true}, ROWS},
    {"conv 3 3x3 tanh; pool 2; dense 4 softmax", {2, 8, 9, false}, ROWS},
    {"conv 17 5x5 relu; pool max 3 stride 2; conv 18 3x3 pad same logistic; dense 20 relu6; dense 3 softmax",
     {1, 13, 13, false},
     ROWS},
    {"conv 4 3x2 stride 2 pad 1 relu; conv 5 1x1 tanh; pool average 2; dense 3 softmax", {3, 9, 10, false}, ROWS},
    {"conv 6 3x3 stride 3 pad same tanh; conv 3 3x3; global pool average; softmax", {2, 14, 11, false}, ROWS},
    {"conv 5 4x4 pad 3 relu; global pool max; dense 6 relu6; dropout 0; dense 2 softmax", {1, 6, 5, false}, ROWS},
    {"dropout 0.2; conv 4 3x3 relu; dropout 0.5; pool 2x2; flatten; dense 9 tanh; dropout 0.25; dense 3 softmax",
     {2, 10, 10, false},
     ROWS},
    {"pool average 2 stride 1; conv 40 2x2 tanh; dense 33 relu; dense 10 softmax", {1, 5, 6, false}, ROWS},
    {"dense 6; tanh; logistic; relu6; tanh; dense 3 softmax", {7, 1, 1, true}, ROWS},
    {"conv 6 3x3 groups 2 tanh; conv 9 2x2 stride 2 groups 3 relu; dense 3 softmax", {4, 8, 9, false}, ROWS},
    {"conv 12 1x1 tanh; depthwise 3x3 pad same tanh; depthwise 5x4 stride 2 pad 2 logistic; conv 12 2x2 groups 12; "
     "depthwise 1x1 stride 2; dense 3 softmax",
     {3, 11, 13, false},
     ROWS},
    {"depthwise 3x3 stride 3 relu; conv 5 1x1 stride 2 tanh; conv 4 1x1 pad 1; dense 2 softmax",
     {2, 20, 9, false},
     ROWS},
    {"conv 5 3x3; batch norm relu; conv 7 1x1; batch norm epsilon 0.01; dense 4 softmax", {2, 6, 7, false}, ROWS},
    {"batch norm; conv 4 3x3 tanh; batch norm momentum 1 tanh; dense 9; batch norm relu; dense 3 softmax",
     {3, 5, 5, false},
     21},
    {"batch norm tanh; dense 19; batch norm; tanh; dense 3 softmax", {17, 1, 1, true}, 17},
    {"save a; conv 3 3x3 pad same; add a tanh; save b; relu; save c; conv 3 1x1; add b; logistic; add c relu6; save a; "
     "add a; dense 4 tanh; save z; save y; dense 4; add y; batch norm; add z; dense 3 softmax",
     {3, 5, 4, false},
     ROWS},
    {"conv 4 3x3 pad same; save a; relu; conv 4 1x1; save b; add a; relu6; conv 4 1x1; add b; dense 3 softmax",
     {2, 5, 4, false},
     ROWS},
    {"conv 8 1x1; batch norm; save a; conv 16 1x1; batch norm relu6; depthwise 3x3 pad same; batch norm relu6; conv 8 "
     "1x1; batch norm; add a; conv 6 3x3 stride 2 relu; dropout 0.3; global pool; softmax",
     {2, 7, 6, false},
     18},
    {"conv 5 3x3 relu; pool 2; dropout 0.3; conv 18 3x2 pad 1; pool 2 relu; conv 4 2x2 stride 2 pad 1 relu; pool 2; "
     "dense 3 softmax",
     {2, 19, 21, false},
     ROWS},
    {"conv 17 2x2 relu; pool 2; conv 19 3x3 pad same relu; pool 2; conv 3 1x1 tanh; dense 3 softmax",
     {1, 13, 14, false},
     18},
    {"conv 4 2x2 relu; pool 2; save a; conv 4 3x3 pad same relu; add a; conv 4 1x1; save b; pool 2; conv 4 2x2 pad 2; "
     "add b; pool 2; dense 3 softmax",
     {1, 13, 14, false},
     ROWS},
};
enum { NETS = sizeof nets / sizeof *nets };

typedef struct fixture {
    train_net net;
    float parameters[PARAMETERS_MOST];
    float input[ROWS_MOST * VALUES_MOST];
    int rows;
    int32_t class[ROWS_MOST];
    train_drop drop;
} fixture;

static fixture now;
static const int64_t row_numbers[ROWS_MOST] = {
    7, 100000, 3, INT64_C(1) << 40, 0, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27};

static void make_fixture(int index)
{
    assert_int_equal(train_net_parse(&now.net, nets[index].text, "--net", &nets[index].in), SHOAL_OK);
    assert_true(train_net_values(&now.net) <= PARAMETERS_MOST && now.net.layers < LAYERS_MOST);
    now.rows = nets[index].rows;
    train_first_parameters(now.parameters, &now.net, 5);
    for (int64_t i = 0; i < train_net_values(&now.net); i++) /* biases, too */
        now.parameters[i] += (float)(0.2 * base_random_unit(2, BASE_FOR_DATA, (uint64_t)i, 0) - 0.1);
    for (int64_t i = 0; i < now.rows * train_shape_values(&now.net.in); i++)
        now.input[i] = (float)(2 * base_random_unit(3, BASE_FOR_DATA, (uint64_t)i, 0) - 1);
    for (int i = 0; i < now.rows; i++)
        now.class[i] = (int32_t)(i * 3 % now.net.classes);
    now.drop = (train_drop){.seed = 11, .step = 4, .row = row_numbers};
}

/* ---- a plain computation ----------------------------------------------------------------------------------------- */

static double activated(train_kind kind, double z)
{
    switch (kind) {
    case TRAIN_RELU: return z > 0 ? z : 0;
    case TRAIN_RELU6: return z < 0 ? 0 : z > 6 ? 6 : z;
    case TRAIN_TANH: return tanh(z);
    case TRAIN_LOGISTIC: return 1 / (1 + exp(-z));
    default: return z;
    }
}

/* What a place in the image holds; 0 outside. */
static double pixel(const double *x, const train_shape *shape, int64_t c, int64_t y, int64_t x_at)
{
    if (y < 0 || x_at < 0 || y >= shape->height || x_at >= shape->width)
        return 0;
    return x[(c * shape->height + y) * shape->width + x_at];
}

static double conv_at(const train_layer *layer, const double *p, const double *x, int64_t map, int64_t y, int64_t x_at)
{
    double sum = p[layer->first + train_layer_weights(layer) + map];
    int64_t k = 0;
    const int64_t channels = layer->in.channels / layer->groups,
                  first = map / (layer->outputs / layer->groups) * channels;
    for (int64_t c = first; c < first + channels; c++)
        for (int64_t ky = 0; ky < layer->kernel_height; ky++)
            for (int64_t kx = 0; kx < layer->kernel_width; kx++, k++)
                sum += p[layer->first + k * layer->outputs + map] * pixel(x, &layer->in, c,
                                                                          y * layer->stride + ky - layer->pad_top,
                                                                          x_at * layer->stride + kx - layer->pad_left);
    return sum;
}

static double pool_at(const train_layer *layer, const double *x, int64_t c, int64_t y, int64_t x_at)
{
    double sum = 0, greatest = -INFINITY;
    for (int64_t ky = 0; ky < layer->kernel_height; ky++)
        for (int64_t kx = 0; kx < layer->kernel_width; kx++) {
            const double value = pixel(x, &layer->in, c, y * layer->stride + ky, x_at * layer->stride + kx);
            sum += value;
            greatest = fmax(greatest, value);
        }
    return layer->kind == TRAIN_POOL_MAX ? greatest : sum / (double)(layer->kernel_height * layer->kernel_width);
}

static void run_plain(double *out, const train_layer *layer, const double *p, const double *x, int row, int index)
{
    const int64_t places = layer->out.height * layer->out.width;
    for (int64_t i = 0; i < train_shape_values(&layer->out); i++) {
        const int64_t map = i / places, y = i % places / layer->out.width, x_at = i % layer->out.width;
        uint32_t bits[4];
        switch (layer->kind) {
        case TRAIN_CONV: out[i] = conv_at(layer, p, x, map, y, x_at); break;
        case TRAIN_POOL_MAX:
        case TRAIN_POOL_AVERAGE: out[i] = pool_at(layer, x, map, y, x_at); break;
        case TRAIN_DENSE:
            out[i] = p[layer->first + train_layer_weights(layer) + i];
            for (int64_t k = 0; k < layer->depth; k++)
                out[i] += p[layer->first + k * layer->outputs + i] * x[k];
            break;
        case TRAIN_DROPOUT:
            base_random(bits,
                        base_random_u64(now.drop.seed, BASE_FOR_DROPOUT, (uint64_t)now.drop.step, (uint32_t)index),
                        BASE_FOR_DROPOUT, (uint64_t)row_numbers[row], (uint32_t)(i / 4));
            out[i] = bits[i % 4] * 0x1p-32 < layer->dropped ? 0 : x[i] / (1 - layer->dropped);
            break;
        default: out[i] = activated(layer->kind, x[i]);
        }
    }
}

/* What each layer gives; [0] are the rows. */
static double plain_at[LAYERS_MOST][ROWS_MOST][VALUES_MOST];

/* Each map less its mean over its deviation, of all rows; or by running averages. */
static void run_plain_norm(int index, const double *p, bool fixed)
{
    const train_layer *layer = &now.net.layer[index];
    const int64_t places = layer->in.height * layer->in.width;
    const double count = (double)(now.rows * places);
    for (int64_t c = 0; c < layer->outputs; c++) {
        const double *running = p + now.net.parameters + layer->running + c;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < now.rows * places; i++)
            mean += plain_at[index][i / places][c * places + i % places] / count;
        for (int64_t i = 0; i < now.rows * places; i++)
            variance += pow(plain_at[index][i / places][c * places + i % places] - mean, 2) / count;
        mean = fixed ? running[0] : mean;
        variance = fixed ? running[layer->outputs] : variance;
        for (int64_t i = 0; i < now.rows * places; i++) {
            const double x = plain_at[index][i / places][c * places + i % places];
            plain_at[index + 1][i / places][c * places + i % places] =
                (x - mean) / sqrt(variance + layer->epsilon) * p[layer->first + c] +
                p[layer->first + layer->outputs + c];
        }
    }
}

static void run_plain_layer(int index, const double *p, bool fixed)
{
    const train_layer *layer = &now.net.layer[index];
    if (layer->kind == TRAIN_NORM) {
        run_plain_norm(index, p, fixed);
        return;
    }
    for (int row = 0; row < now.rows; row++)
        if (layer->kind == TRAIN_ADD)
            for (int64_t i = 0; i < train_shape_values(&layer->out); i++)
                plain_at[index + 1][row][i] = plain_at[index][row][i] + plain_at[layer->source + 1][row][i];
        else if (layer->kind == TRAIN_DROPOUT && fixed)
            memcpy(plain_at[index + 1][row], plain_at[index][row], sizeof plain_at[0][0]);
        else
            run_plain(plain_at[index + 1][row], layer, p, plain_at[index][row], row, index);
}

static double plain_loss(const double *parameters, bool fixed)
{
    const int64_t values = train_shape_values(&now.net.in);
    double loss = 0;
    for (int row = 0; row < now.rows; row++)
        for (int64_t i = 0; i < values; i++)
            plain_at[0][row][i] = (double)now.input[row * values + i];
    for (int i = 0; i < now.net.layers; i++)
        run_plain_layer(i, parameters, fixed);
    for (int row = 0; row < now.rows; row++) {
        const double *z = plain_at[now.net.layers][row];
        double sum = 0;
        for (int64_t j = 0; j < now.net.classes; j++)
            sum += exp(z[j]);
        loss += log(sum) - z[now.class[row]];
    }
    return loss;
}

/* ---- ours -------------------------------------------------------------------------------------------------------- */

/* With `gradient` NULL as rows that are held out are seen. */
static void compute(float *gradient, double *loss, int64_t *right, const char *kernel)
{
    static float turned[PARAMETERS_MOST];
    const kernel_set *set = NULL;
    const int64_t rows = now.rows;
    train_work work;
    void *memory = NULL;
    assert_int_equal(kernel_choose(&set, kernel), SHOAL_OK);
    train_turn(turned, &now.net, now.parameters);
    const train_with with = {.net = &now.net, .kernel = set, .parameters = now.parameters, .turned = turned};
    train_work_cut(&work, &now.net, rows, gradient != NULL, NULL);
    const size_t bytes = work.bytes;
    assert_int_equal(base_alloc(&memory, bytes, 1, "memory"), SHOAL_OK);
    memset(memory, 0x7f, bytes);
    train_work_cut(&work, &now.net, rows, gradient != NULL, memory);
    memcpy(work.input, now.input, (size_t)(rows * train_shape_values(&now.net.in)) * sizeof *work.input);
    if (gradient)
        memset(work.gradient, 0, (size_t)train_net_values(&now.net) * sizeof *work.gradient);
    train_forwards(&work, &with, rows, gradient ? &now.drop : NULL);
    train_loss(loss, right, &work, set, now.class, rows);
    if (gradient) {
        train_backwards(&work, &with, rows, &now.drop);
        memcpy(gradient, work.gradient, (size_t)train_net_values(&now.net) * sizeof *gradient);
    }
    base_free(&memory);
}

static void test_gradients_are_finite_differences(void **state)
{
    static double parameters[PARAMETERS_MOST];
    static float gradient[PARAMETERS_MOST];
    (void)state;
    for (int n = 0; n < NETS; n++) {
        double loss, greatest = 0, off = 0;
        int64_t right;
        make_fixture(n);
        compute(gradient, &loss, &right, "portable");
        for (int64_t i = 0; i < now.net.parameters; i++)
            parameters[i] = (double)now.parameters[i];
        assert_true(fabs(loss - plain_loss(parameters, false)) < 1e-5 * loss);
        const int64_t stride = now.net.parameters / 400 + 1; /* of large nets, some are enough */
        for (int64_t i = 0; i < now.net.parameters; i += stride) {
            const double h = 1e-6, was = parameters[i];
            parameters[i] = was + h;
            const double above = plain_loss(parameters, false);
            parameters[i] = was - h;
            const double slope = (above - plain_loss(parameters, false)) / (2 * h);
            parameters[i] = was;
            greatest = fmax(greatest, fabs(slope));
            off = fmax(off, fabs(slope - (double)gradient[i]));
        }
        print_message("%s: largest %.3g, off by %.2g of it\n", nets[n].text, greatest, off / greatest);
        assert_true(greatest > 1e-3);
        assert_true(off < 2e-6 * greatest);
    }
}

/* Means and unbiased variances of these rows, times the rows; by running ones rows that are held out are seen. */
static void test_averages_run(void **state)
{
    static double parameters[PARAMETERS_MOST];
    static float gradient[PARAMETERS_MOST];
    int norms = 0;
    (void)state;
    for (int n = 0; n < NETS; n++) {
        double loss;
        int64_t right;
        make_fixture(n);
        for (int64_t i = 0; i < train_net_values(&now.net); i++)
            parameters[i] = (double)now.parameters[i];
        compute(NULL, &loss, &right, "portable");
        assert_true(fabs(loss - plain_loss(parameters, true)) < 1e-5 * loss);
        compute(gradient, &loss, &right, "portable");
        plain_loss(parameters, false);
        for (int i = 0; i < now.net.layers; i++) {
            const train_layer *layer = &now.net.layer[i];
            const int64_t places = layer->in.height * layer->in.width, count = now.rows * places;
            const float *means = gradient + now.net.parameters + layer->running;
            for (int64_t c = 0; layer->kind == TRAIN_NORM && c < layer->outputs; c++, norms++) {
                double mean = 0, variance = 0;
                for (int64_t k = 0; k < count; k++)
                    mean += plain_at[i][k / places][c * places + k % places] / (double)count;
                for (int64_t k = 0; k < count; k++)
                    variance += pow(plain_at[i][k / places][c * places + k % places] - mean, 2) / (double)(count - 1);
                assert_true(fabs((double)means[c] / now.rows - mean) < 2e-6);
                assert_true(fabs((double)means[layer->outputs + c] / now.rows - variance) < 4e-6 * variance);
            }
        }
    }
    assert_true(norms > 60);
}

static void test_kernel_sets_agree(void **state)
{
    static const char *const sets[] = {"avx2", "avx512", "vnni"};
    static float first[PARAMETERS_MOST], other[PARAMETERS_MOST];
    (void)state;
    for (int n = 0; n < NETS; n++) {
        double loss[2];
        int64_t right[2];
        make_fixture(n);
        compute(first, &loss[0], &right[0], "portable");
        for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
            const kernel_set *set = NULL;
            if (kernel_choose(&set, sets[i]) < 0)
                continue; /* not on this machine */
            compute(other, &loss[1], &right[1], sets[i]);
            assert_memory_equal(&loss[0], &loss[1], sizeof *loss);
            assert_int_equal(right[0], right[1]);
            for (int64_t k = 0; k < train_net_values(&now.net); k++)
                if (first[k] != other[k]) /* but for the sign of a zero */
                    fail_msg("%s: parameter %lld with %s", nets[n].text, (long long)k, sets[i]);
        }
    }
}

/* The order of PyTorch, and back. */
static void test_parameters_go_both_ways(void **state)
{
    static float out[PARAMETERS_MOST], back[PARAMETERS_MOST];
    static double wide[PARAMETERS_MOST];
    (void)state;
    for (int n = 0; n < NETS; n++) {
        make_fixture(n);
        train_export(out, &now.net, now.parameters);
        for (int64_t i = 0; i < now.net.parameters; i++)
            wide[i] = (double)out[i];
        for (int64_t i = now.net.parameters; i < train_net_values(&now.net); i++) {
            assert_true(out[i] == now.parameters[i]);
            wide[i] = (double)out[i];
        }
        train_import(back, &now.net, wide, NULL);
        assert_memory_equal(back, now.parameters, (size_t)train_net_values(&now.net) * sizeof *back);
    }
    make_fixture(0);
    train_export(out, &now.net, now.parameters);
    assert_true(out[1] == now.parameters[7] && out[11] == now.parameters[1]); /* 11 inputs, 7 outputs */
}

/* The largest is found, the first of equals, and a NaN is not hidden. */
static void test_nan_passes_a_pool(void **state)
{
    double loss;
    int64_t right;
    static float gradient[PARAMETERS_MOST];
    (void)state;
    make_fixture(1);
    now.input[3] = NAN;
    compute(gradient, &loss, &right, NULL);
    assert_true(isnan(loss));
    make_fixture(NETS - 1); /* with batch norms, relu6 and what is added */
    now.input[3] = NAN;
    compute(gradient, &loss, &right, NULL);
    assert_true(isnan(loss));
}

/* 1, then down to 0 as a cosine, or in steps, after a warm-up. */
static void test_rates(void **state)
{
    train_settings set = {.rate = 2, .epochs = 10, .every = 3, .decay = 0.5, .schedule = TRAIN_COSINE};
    (void)state;
    for (int64_t step = 0; step < 1000; step++)
        assert_true(fabs(train_rate(&set, step, 100) - (1 + cos(acos(-1) * (double)step / 1000))) < 1e-10);
    set.warm_up = 0.5;
    assert_true(fabs(train_rate(&set, 24, 100) - 1) < 1e-15);
    assert_true(train_rate(&set, 49, 100) == 2 && fabs(train_rate(&set, 50, 100) - 2) < 1e-10);
    set.schedule = TRAIN_STEPS;
    assert_true(train_rate(&set, 299, 100) == 2 && train_rate(&set, 300, 100) == 1 &&
                train_rate(&set, 999, 100) == 0.25);
    set.schedule = TRAIN_CONSTANT;
    assert_true(train_rate(&set, 999, 100) == 2);
}

static bool has(train_kind kind, int first, int end)
{
    for (int i = first; i < end; i++)
        if (now.net.layer[i].kind == kind)
            return true;
    return false;
}

/* Frozen layers have no gradient and drop nothing; that of the others is what it is without them being frozen, but for
 * batch norms, which then normalise by other averages. */
static void test_gradients_behind_frozen_layers(void **state)
{
    static float whole[PARAMETERS_MOST], part[PARAMETERS_MOST];
    double loss[2];
    int64_t right[2];
    int frozen = 0, still = 0;
    (void)state;
    for (int n = 0; n < NETS; n++) {
        make_fixture(n);
        compute(whole, &loss[0], &right[0], NULL);
        for (int layers = 1; train_net_freeze(&now.net, layers) == SHOAL_OK; layers++, frozen++) {
            now.drop.step = 7;
            compute(part, &loss[1], &right[1], NULL);
            for (int64_t i = 0; i < now.net.fixed; i++)
                assert_true(part[i] == 0);
            if (!has(TRAIN_DROPOUT, 0, now.net.layers) && !has(TRAIN_NORM, 0, now.net.frozen)) {
                assert_true(loss[0] == loss[1]);
                assert_memory_equal(part + now.net.fixed, whole + now.net.fixed,
                                    (size_t)train_net_learns(&now.net) * sizeof *part);
            } else if (!has(TRAIN_DROPOUT, now.net.frozen, now.net.layers)) {
                now.drop.step = 8;
                compute(part, &loss[0], &right[0], NULL);
                assert_true(loss[0] == loss[1]);
                still++;
            }
        }
    }
    assert_true(frozen > NETS && still > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_are_finite_differences),
        cmocka_unit_test(test_averages_run),
        cmocka_unit_test(test_kernel_sets_agree),
        cmocka_unit_test(test_parameters_go_both_ways),
        cmocka_unit_test(test_nan_passes_a_pool),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_gradients_behind_frozen_layers),
    };
    return cmocka_run_group_tests_name("net layers", tests, NULL, NULL);
}
