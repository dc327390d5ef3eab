/* One step down a gradient: rates, momentum, Adam; the first parameters; and the order in which others keep them.  See
 * train_internal.h.
 *
 * Every parameter is one chain of float32 operations, each rounded, so that the bits do not depend on who computes
 * them.  The C library's pow and cos differ between machines: powers are products here, and the cosine is our own. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "learn/train/train_internal.h"

/* ---- the rate ---------------------------------------------------------------------------------------------------- */

/* cos(pi x) for x from 0 to 1, within 1e-11: the series of the sine around the middle. */
static double half_cosine(double x)
{
    const double pi = 0x1.921fb54442d18p+1, z = pi * (0.5 - x), z2 = z * z;
    static const double inverse[] = {1.0 / 6, 1.0 / 20, 1.0 / 42, 1.0 / 72, 1.0 / 110, 1.0 / 156, 1.0 / 210};
    double sum = 1;
    for (int i = (int)(sizeof inverse / sizeof *inverse) - 1; i >= 0; i--)
        sum = 1 - z2 * inverse[i] * sum;
    return z * sum;
}

double train_rate(const train_settings *set, int64_t step, int64_t steps_of_epoch)
{
    const double warm = set->warm_up * (double)steps_of_epoch, all = (double)set->epochs * (double)steps_of_epoch;
    const double at = (double)step;
    double factor = 1;
    if (at < warm)
        return set->rate * ((at + 1) / warm < 1 ? (at + 1) / warm : 1);
    if (set->schedule == TRAIN_COSINE && all > warm)
        return set->rate * (0.5 * (1 + half_cosine((at - warm) / (all - warm))));
    for (int64_t i = 0; set->schedule == TRAIN_STEPS && i < step / steps_of_epoch / set->every && factor != 0; i++)
        factor *= set->decay;
    return set->rate * factor;
}

/* ---- optimisers -------------------------------------------------------------------------------------------------- */

int64_t train_moments(int64_t optimiser)
{
    return optimiser == TRAIN_SGD ? 0 : optimiser >= TRAIN_ADAM ? 2 : 1;
}

/* Some parameters of one kind: weights, which are kept small, or biases.  What loops go along lies side by side, so
 * that compilers make vectors of it. */
typedef struct stretch {
    int64_t first, end;
    float l1, l2;
} stretch;

/* So many parameters at a time: their slopes stay in the first cache. */
enum { SLOPES = 1024 };

static void find_slopes(float *restrict slope, const int64_t *restrict sum, const float *restrict weight, int64_t count,
                        double scale, const stretch *of)
{
    const float l1 = of->l1, l2 = of->l2;
    for (int64_t i = 0; i < count; i++)
        slope[i] = (float)((double)sum[i] * scale);
    for (int64_t i = 0; i < count; i++) {
        const float sign = (float)((weight[i] > 0) - (weight[i] < 0)); /* no branches: signs are random */
        slope[i] = slope[i] + l2 * weight[i] + l1 * sign;
    }
}

static void go_plain(float *restrict after, const float *restrict before, const float *restrict slope, int64_t count,
                     float rate)
{
    for (int64_t i = 0; i < count; i++)
        after[i] = before[i] - rate * slope[i];
}

static void go_momentum(float *restrict after, float *restrict speed, const float *restrict before,
                        const float *restrict speed_before, const float *restrict slope, int64_t count,
                        const train_step *step)
{
    const float rate = (float)step->rate, momentum = (float)step->model->set.momentum;
    if (step->model->set.optimiser == TRAIN_NESTEROV)
        for (int64_t i = 0; i < count; i++) {
            speed[i] = momentum * speed_before[i] + slope[i];
            after[i] = before[i] - rate * (slope[i] + momentum * speed[i]);
        }
    else
        for (int64_t i = 0; i < count; i++) {
            speed[i] = momentum * speed_before[i] + slope[i];
            after[i] = before[i] - rate * speed[i];
        }
}

/* Where Adam keeps its means and squares. */
typedef struct moments {
    float *mean, *square;
    const float *mean_before, *square_before;
} moments;

/* Kingma and Ba 2015, algorithm 1; with Loshchilov and Hutter's decay apart from the gradient for adamw. */
static void go_adam(float *restrict after, const moments *of, const float *restrict before, const float *restrict slope,
                    int64_t count, const train_step *step, float decay)
{
    const float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, rate = (float)step->rate;
    const float first_scale = (float)(1 / (1 - step->power[0])), second_scale = (float)(1 / (1 - step->power[1]));
    float *restrict mean = of->mean, *restrict square = of->square;
    const float *restrict mean_before = of->mean_before, *restrict square_before = of->square_before;
    for (int64_t i = 0; i < count; i++) {
        mean[i] = beta1 * mean_before[i] + (1 - beta1) * slope[i];
        square[i] = beta2 * square_before[i] + (1 - beta2) * (slope[i] * slope[i]);
        after[i] = before[i] * decay - rate * ((mean[i] * first_scale) / (sqrtf(square[i] * second_scale) + epsilon));
    }
}

static void step_stretch(const train_step *step, const stretch *of, int64_t unit)
{
    static const float none[SLOPES]; /* moments before the first step */
    const double scale = ldexp(1, (int)unit) / step->rows;
    const int64_t optimiser = step->model->set.optimiser, fixed = step->net->fixed;
    const int64_t learns = train_net_learns(step->net);
    const bool apart = optimiser == TRAIN_ADAMW;
    const float decay = apart ? 1 - (float)step->rate * of->l2 : 1;
    const stretch within = {.l1 = of->l1, .l2 = apart ? 0 : of->l2};
    float slope[SLOPES];
    for (int64_t i = of->first, count; i < of->end; i += count) {
        const int64_t at = i - fixed; /* where there is nothing for frozen layers */
        const float *before = step->before + i, *moment = step->moments_before ? step->moments_before + at : none;
        float *after = step->after + i;
        count = of->end - i < SLOPES ? of->end - i : SLOPES;
        find_slopes(slope, step->sum + at, before, count, scale, &within);
        if (optimiser == TRAIN_SGD)
            go_plain(after, before, slope, count, (float)step->rate);
        else if (optimiser < TRAIN_ADAM)
            go_momentum(after, step->moments_after + at, before, moment, slope, count, step);
        else
            go_adam(after,
                    &(moments){.mean = step->moments_after + at,
                               .square = step->moments_after + learns + at,
                               .mean_before = moment,
                               .square_before = step->moments_before ? moment + learns : none},
                    before, slope, count, step, decay);
    }
}

/* What a thread does at a time: enough of them in a small net for all threads, each worth a few microseconds. */
enum { AT_ONCE = 1 << 13 };

/* Trained parameters from item * AT_ONCE on, whatever layers they are of. */
static int step_item(void *context, int64_t item, int thread)
{
    const train_step *step = context;
    const int64_t begin = step->net->fixed + item * AT_ONCE, end = begin + AT_ONCE;
    (void)thread;
    for (int i = step->net->frozen; i < step->net->layers; i++) {
        const train_layer *layer = &step->net->layer[i];
        const int64_t border = layer->first + train_layer_weights(layer);
        const int64_t last = layer->first + train_layer_parameters(layer);
        const stretch weights = {.first = begin > layer->first ? begin : layer->first,
                                 .end = end < border ? end : border,
                                 .l1 = layer->kind == TRAIN_NORM ? 0 : (float)step->model->set.l1,
                                 .l2 = layer->kind == TRAIN_NORM ? 0 : (float)step->model->set.l2};
        const stretch biases = {.first = begin > border ? begin : border, .end = end < last ? end : last};
        if (layer->outputs == 0)
            continue;
        step_stretch(step, &weights, step->model->unit[TRAIN_OF_GRADIENT][i]);
        step_stretch(step, &biases, step->model->unit[TRAIN_OF_GRADIENT][i]);
    }
    return SHOAL_OK;
}

int train_step_run(const train_step *step, const shoal_crew *crew)
{
    const int64_t items = (train_net_learns(step->net) + AT_ONCE - 1) / AT_ONCE;
    memcpy(step->after, step->before, (size_t)step->net->fixed * sizeof *step->after);
    if (items == 1)
        return step_item((void *)step, 0, 0);
    return crew->each(crew, items, step_item, (void *)step);
}

void train_step_running(const train_step *step)
{
    const int64_t frozen = step->net->parameters;
    memcpy(step->after + frozen, step->before + frozen, (size_t)step->net->fixed_running * sizeof *step->after);
    for (int i = 0; i < step->net->layers; i++) {
        const train_part part = train_part_of(step->net, i, TRAIN_OF_RUNNING);
        const double scale = ldexp(1, (int)step->model->unit[TRAIN_OF_RUNNING][i]) / step->rows;
        const double share = step->net->layer[i].momentum;
        for (int64_t k = part.first; k < part.first + part.count; k++)
            step->after[k] = (float)((1 - share) * (double)step->before[k] +
                                     share * ((double)step->sum[part.at + k - part.first] * scale));
    }
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* Weights are uniform with a variance of 2 over the number of inputs behind a relu, of 1 elsewhere (He et al. 2015);
 * biases are 0.  A batch norm begins with weights, and running variances, of 1. */
void train_first_parameters(float *out, const train_net *net, int64_t seed)
{
    for (int i = 0; i < net->layers; i++) {
        const train_layer *layer = &net->layer[i];
        const int64_t weights = train_layer_weights(layer);
        const bool relu = i + 1 < net->layers && (layer[1].kind == TRAIN_RELU || layer[1].kind == TRAIN_RELU6);
        if (layer->kind == TRAIN_NORM) {
            float *variances = out + net->parameters + layer->running + layer->outputs;
            memset(out + layer->first, 0, (size_t)(2 * layer->outputs) * sizeof *out);
            memset(variances - layer->outputs, 0, (size_t)(2 * layer->outputs) * sizeof *out);
            for (int64_t k = 0; k < layer->outputs; k++)
                out[layer->first + k] = variances[k] = 1;
        }
        if (layer->outputs == 0 || layer->kind == TRAIN_NORM)
            continue;
        const double most = sqrt((relu ? 6.0 : 3.0) / (double)layer->depth);
        for (int64_t k = 0; k < weights; k++)
            out[layer->first + k] =
                (float)(most * (2 * base_random_unit((uint64_t)seed, BASE_FOR_WEIGHTS, (uint64_t)k, (uint32_t)i) - 1));
        memset(out + layer->first + weights, 0, (size_t)layer->outputs * sizeof *out);
    }
}

void train_export(float *out, const train_net *net, const float *parameters)
{
    memcpy(out, parameters, (size_t)train_net_values(net) * sizeof *out);
    train_turn(out, net, parameters);
}

void train_import(float *out, const train_net *net, const double *parameters, const bool *taken)
{
    for (int i = 0; i < net->layers; i++) {
        const train_layer *layer = &net->layer[i];
        const int64_t weights = train_layer_weights(layer), running = net->parameters + layer->running;
        const double *from = parameters + layer->first;
        if (taken && !taken[i])
            continue;
        for (int64_t j = 0; j < layer->outputs; j++) {
            for (int64_t k = 0; k < layer->depth; k++)
                out[layer->first + k * layer->outputs + j] = (float)from[j * layer->depth + k];
            out[layer->first + weights + j] = (float)from[weights + j];
        }
        for (int64_t j = 0; layer->kind == TRAIN_NORM && j < 2 * layer->outputs; j++)
            out[running + j] = (float)parameters[running + j];
    }
}

int train_check_parameters(const double *parameters, const train_net *net)
{
    for (int64_t i = 0; i < train_net_values(net); i++)
        if (!isfinite((float)parameters[i]))
            return shoal_fail(SHOAL_INVALID, "a weight of the model is %g, which is no finite float32", parameters[i]);
    for (int i = 0; i < net->layers; i++) {
        const train_layer *layer = &net->layer[i];
        const double *variances = parameters + net->parameters + layer->running + layer->outputs;
        for (int64_t k = 0; layer->kind == TRAIN_NORM && k < layer->outputs; k++)
            if (variances[k] < 0)
                return shoal_fail(SHOAL_INVALID, "a running variance of layer %d is %g, which is below 0", i,
                                  variances[k]);
    }
    return SHOAL_OK;
}
