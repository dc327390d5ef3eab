/* Logistic regression by stochastic gradient descent; the last column is the label, 0 or 1:
 * shoal run sgd.c data.npy --params '{"rate": 0.05, "batch": 64, "epochs": 20}' */
#include <math.h>
#include <shoal/module.h>

static int64_t batch(int64_t round, const shoal_setting *setting)
{
    double rows = shoal_param(setting, "batch", 64);
    (void)round;
    return rows >= 1 && rows < 1e18 && rows == floor(rows)
               ? (int64_t)rows
               : shoal_fail(SHOAL_USAGE, "batch must be a whole number of rows, 1 or more");
}

static void add_gradient(double *sum, const double *weight, const shoal_rows *rows, const shoal_setting *setting)
{
    const int64_t last = rows->columns - 1; /* where the label is, and the intercept among the weights */
    for (const double *x = rows->values; x < rows->values + rows->count * rows->columns; x += rows->columns) {
        double z = weight[last];
        for (int64_t j = 0; j < last; j++)
            z += weight[j] * x[j];
        double error = 1 / (1 + exp(-z)) - x[last];
        for (int64_t j = 0; j <= last; j++)
            sum[j] += error * (j < last ? x[j] : 1);
    }
}

/* The last batch of an epoch may be smaller, so the step is by the mean of what was seen. */
static bool step(double *weight, const double *sum, int64_t round, const shoal_setting *setting)
{
    double rate = shoal_param(setting, "rate", 0.05), rows = (double)setting->seen;
    double rounds = shoal_param(setting, "epochs", 20) * ceil((double)setting->rows / (double)batch(0, setting));
    for (int64_t j = 0; j < setting->numbers; j++)
        weight[j] -= rate * sum[j] / rows;
    return (double)(round + 1) >= rounds;
}

SHOAL_MODULE(.summary = "logistic regression by stochastic gradients", .map = add_gradient, .update = step,
             .batch = batch);
