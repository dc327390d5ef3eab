/* Logistic regression by gradient descent; the last column is the label, 0 or 1:
 * shoal run logistic.c data.npy --params '{"rate": 0.5, "rounds": 100}' */
#include <math.h>
#include <shoal/module.h>

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

static bool step(double *weight, const double *sum, int64_t round, const shoal_setting *setting)
{
    for (int64_t j = 0; j < setting->numbers; j++)
        weight[j] -= shoal_param(setting, "rate", 0.5) * sum[j] / (double)setting->rows;
    return round + 1 >= shoal_param(setting, "rounds", 100);
}

SHOAL_MODULE(.summary = "logistic regression", .map = add_gradient, .update = step);
