/* Between outputs and losses: softplus for two classes, softmax for more.
 *
 * All of it is float64, whatever the products were computed in, with the kernels' own exp and log, so the bits are the
 * same everywhere.  Sums of exponentials leave the greatest, which is 1, out until the end: so a loss near 0 keeps its
 * digits. */
#include <math.h>

#include "learn/logistic/logistic_internal.h"

/* ---- two classes ------------------------------------------------------------------------------------------------- */

/* The output, turned so that the row's own class lies on the negative side, is the log-odds of being wrong. */
static void losses_of_two(logistic_sums *sums, const logistic_block *block, const int32_t *class, const double *weight,
                          const kernel_dense64 *dense)
{
    double *output = block->output, *small = block->spare;
    for (int64_t i = 0; i < block->rows; i++) {
        output[i] = class[i] ? -output[i] : output[i];
        small[i] = -fabs(output[i]);
    }
    dense->exp(small, block->rows);
    for (int64_t i = 0; i < block->rows; i++) {
        double wrong = output[i], factor = weight ? weight[i] : 1;
        sums->loss += factor * ((wrong > 0 ? wrong : 0) + kernel_log_one_plus(small[i]));
        sums->right += wrong < 0 || (wrong == 0 && !class[i]) ? factor : 0;
        double probability = (wrong > 0 ? 1 : small[i]) / (1 + small[i]);
        output[i] = factor * (class[i] ? -probability : probability);
    }
}

static void decide_between_two(const logistic_block *block, double *probabilities, const kernel_dense64 *dense)
{
    const double *output = block->output;
    double *small = block->spare;
    for (int64_t i = 0; i < block->rows; i++) {
        block->most[i] = output[i] > 0;
        small[i] = -fabs(output[i]);
    }
    if (!probabilities)
        return;
    dense->exp(small, block->rows);
    for (int64_t i = 0; i < block->rows; i++) {
        double likely = 1 / (1 + small[i]), other = small[i] / (1 + small[i]);
        probabilities[2 * i] = output[i] > 0 ? other : likely;
        probabilities[2 * i + 1] = output[i] > 0 ? likely : other;
    }
}

/* ---- more classes ------------------------------------------------------------------------------------------------ */

static void losses_of_many(logistic_sums *sums, const logistic_block *block, const int32_t *class, const double *weight,
                           const kernel_dense64 *dense)
{
    int64_t outputs = block->outputs;
    learn_subtract_greatest(block->most, block->output, block->rows, outputs);
    for (int64_t i = 0; i < block->rows; i++)
        block->spare[i] = block->output[i * outputs + class[i]];
    dense->exp(block->output, block->rows * outputs);
    for (int64_t i = 0; i < block->rows; i++) {
        double *row = block->output + i * outputs, factor = weight ? weight[i] : 1;
        double others = learn_sum_others(row, outputs, block->most[i]), all = 1 + others;
        double own = block->most[i] == class[i] ? -others : row[class[i]] - all;
        sums->loss += factor * (kernel_log_one_plus(others) - block->spare[i]);
        sums->right += block->most[i] == class[i] ? factor : 0;
        row[block->most[i]] = 1;
        for (int64_t k = 0; k < outputs; k++)
            row[k] = factor * (row[k] / all);
        row[class[i]] = factor * (own / all);
    }
}

/* -------------------------------------------------------------------------------------------------------------- */

void logistic_losses(logistic_sums *sums, const logistic_block *block, const int32_t *class, const double *weight,
                     const kernel_dense64 *dense)
{
    (block->outputs == 1 ? losses_of_two : losses_of_many)(sums, block, class, weight, dense);
}

void logistic_decide(const logistic_block *block, double *probabilities, const kernel_dense64 *dense)
{
    if (block->outputs == 1)
        decide_between_two(block, probabilities, dense);
    else
        learn_classes_decide(block->most, probabilities, block->output, block->rows, block->outputs, dense);
}
