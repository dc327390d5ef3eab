/* Gaussian naive Bayes as a learner: a scan, then sums for the means of each class, then sums for the variances.  See
 * docs/learn/bayes.md. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "learn/bayes/bayes_internal.h"
#include "learn/check.h"

static const char *const priors[] = {"data", "uniform", NULL};

static const shoal_option options[] = {
    {"smoothing", 0, SHOAL_OPTION_REAL, offsetof(bayes_config, smoothing), "X",
     .help = "this fraction of the largest column variance is added to all variances; scikit-learn's var_smoothing",
     .fallback = "1e-9", .least = 0, .most = INFINITY},
    {"priors", 0, SHOAL_OPTION_CHOICE, offsetof(bayes_config, priors), "WHICH",
     .help = "prior probability of each class: its share of the rows (data), or the same for all (uniform)",
     .fallback = "data", .choices = priors},
    {0},
};

static const char *phase_name(const bayes_model *model)
{
    return model->phase == BAYES_SCAN ? "scan" : "run";
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* Doubles after a model. */
static int64_t doubles_of(const bayes_model *model)
{
    int64_t table = model->classes * model->columns;
    return model->phase == BAYES_SCAN    ? 0
           : model->phase == BAYES_MEANS ? model->classes + model->columns
                                         : 2 * model->classes + 2 * table;
}

size_t bayes_model_bytes(const bayes_model *model)
{
    return sizeof *model + (size_t)doubles_of(model) * sizeof(double);
}

bayes_arrays bayes_arrays_of(const bayes_model *model)
{
    double *label = (double *)(model + 1);
    if (model->phase == BAYES_SCAN)
        return (bayes_arrays){0};
    if (model->phase == BAYES_MEANS)
        return (bayes_arrays){.label = label, .unit = label + model->classes};
    double *weight = label + model->classes, *mean = weight + model->classes;
    return (bayes_arrays){
        .label = label, .weight = weight, .mean = mean, .unit = mean + model->classes * model->columns};
}

static void lay_out(shoal_layout *layout, const bayes_model *model)
{
    int64_t table = model->classes * model->columns;
    *layout = (shoal_layout){.carry_from = -1};
    switch (model->phase) {
    case BAYES_SCAN:
        learn_scan_layout(layout);
        layout->cell[BAYES_COLUMNS] = (shoal_cell){"columns", SHOAL_CELL_MAX, model->columns, 0, false};
        layout->cells = BAYES_COLUMNS + 1;
        return;
    case BAYES_MEANS:
        layout->cell[BAYES_SUMS] = (shoal_cell){"sums", SHOAL_CELL_WIDE, table, 0, false};
        layout->cell[BAYES_GREATEST] = (shoal_cell){"greatest", SHOAL_CELL_MAX, table, 0, false};
        layout->cell[BAYES_NEGATIVES] = (shoal_cell){"negatives", SHOAL_CELL_MAX, table, 0, false};
        layout->cells = BAYES_NEGATIVES + 1;
        return;
    default:
        layout->cell[BAYES_SQUARES] = (shoal_cell){"squares", SHOAL_CELL_WIDE, table, 0, false};
        layout->cells = BAYES_SQUARES + 1;
    }
}

static int new_round(shoal_round **out, const bayes_model *header)
{
    int status = shoal_round_new(out, bayes_model_bytes(header));
    if (status < 0)
        return status;
    memcpy((*out)->model, header, sizeof *header);
    lay_out(&(*out)->layout, header);
    snprintf((*out)->phase, sizeof(*out)->phase, "%s", phase_name(header));
    (*out)->step = header->phase; /* 1 and 2 of the run */
    (*out)->steps = header->phase == BAYES_SCAN ? 1 : 2;
    return SHOAL_OK;
}

static int start_bayes(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    const bayes_config *config = untyped;
    bayes_model header = {.phase = BAYES_SCAN,
                          .columns = shape->columns,
                          .uniform = config->priors == BAYES_PRIORS_UNIFORM,
                          .smoothing = config->smoothing};
    if (!(config->smoothing >= 0 && isfinite(config->smoothing)))
        return shoal_fail(SHOAL_USAGE, "--smoothing must be finite and at least 0, not %g", config->smoothing);
    if (config->priors != BAYES_PRIORS_DATA && config->priors != BAYES_PRIORS_UNIFORM)
        return shoal_fail(SHOAL_USAGE, "--priors must be data or uniform");
    int status = learn_target_place(&header.target, config->target, shape, BAYES_CALLED);
    return status == SHOAL_OK ? new_round(out, &header) : status;
}

/* ---- what came from elsewhere ------------------------------------------------------------------------------------ */

static bool are_finite(const double *values, int64_t count, double above)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]) || !(values[i] > above))
            return false;
    return true;
}

static bool has_good_arrays(const bayes_model *model)
{
    const bayes_arrays arrays = bayes_arrays_of(model);
    int64_t table = model->classes * model->columns;
    if (model->phase == BAYES_SCAN)
        return true;
    for (int64_t i = 0; i < (model->phase == BAYES_MEANS ? model->columns : table); i++)
        if (!bayes_unit_good(arrays.unit[i]))
            return false;
    return learn_classes_good(arrays.label, model->classes) &&
           (model->phase == BAYES_MEANS ||
            (are_finite(arrays.weight, model->classes, 0) && are_finite(arrays.mean, table, -INFINITY)));
}

static bool is_good(const shoal_round *round, const shoal_shape *shape)
{
    const bayes_model *model = round->model;
    shoal_layout expected;
    if (round->model_bytes < sizeof *model || model->phase < 0 || model->phase >= BAYES_PHASES ||
        model->columns != shape->columns || model->columns < 2 || model->columns > INT32_MAX || model->target < 0 ||
        model->target >= model->columns || (model->uniform != 0 && model->uniform != 1) ||
        !(model->smoothing >= 0 && isfinite(model->smoothing)) ||
        (model->phase == BAYES_SCAN ? model->classes != 0
                                    : model->classes < 2 || model->classes > LEARN_CLASSES_MOST) ||
        round->model_bytes != bayes_model_bytes(model) || strcmp(round->phase, phase_name(model)) != 0)
        return false;
    lay_out(&expected, model);
    return shoal_layout_same(&round->layout, &expected) && has_good_arrays(model);
}

static int check_bayes(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    (void)self;
    return is_good(round, shape)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "round %" PRId64 " is not a naive Bayes round for these rows", round->number);
}

static const double *values_of(const shoal_result *result, const char *name)
{
    return shoal_result_tensor(result, name)->values;
}

/* Only the data tell how many classes there are. */
static int check_result_bayes(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                              const shoal_shape *shape)
{
    const shoal_tensor *classes = shoal_result_tensor(result, "classes");
    const int64_t count = classes && classes->rank == 1 ? classes->shape[0] : 0, features = shape->columns - 1;
    const int64_t size[2] = {count, features};
    (void)self, (void)first;
    return count >= 2 && count <= LEARN_CLASSES_MOST && learn_result_has(result, "classes", SHOAL_FLOAT64, 1, size) &&
                   learn_result_has(result, "means", SHOAL_FLOAT64, 2, size) &&
                   learn_result_has(result, "variances", SHOAL_FLOAT64, 2, size) &&
                   learn_result_has(result, "priors", SHOAL_FLOAT64, 1, size) &&
                   learn_result_has(result, "counts", SHOAL_FLOAT64, 1, size) &&
                   learn_classes_good(classes->values, count) &&
                   are_finite(values_of(result, "means"), count * features, -INFINITY) &&
                   are_finite(values_of(result, "variances"), count * features, 0) &&
                   are_finite(values_of(result, "priors"), count, 0) &&
                   are_finite(values_of(result, "counts"), count, 0)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the result is not a naive Bayes model for these rows");
}

static int broken(const shoal_round *round)
{
    return shoal_fail(SHOAL_BROKEN, "round %" PRId64 ": no rows add up to these sums", round->number);
}

/* ---- after the scan ---------------------------------------------------------------------------------------------- */

/* So that sums, squares and all, stay finite. */
static int check_size(double bound, int64_t column, const shoal_shape *shape)
{
    return isfinite(bound * (double)shape->rows)
               ? SHOAL_OK
               : shoal_fail(SHOAL_INVALID, "column %" PRId64 ": its values are too great to be added; scale it",
                            column + 1);
}

static int begin_means(shoal_round **next, const shoal_round *round, const shoal_partial *merged,
                       const shoal_shape *shape)
{
    bayes_model header = *(const bayes_model *)round->model;
    const int64_t *keys = shoal_partial_values_const(merged, BAYES_COLUMNS);
    learn_scanned *found = NULL;
    shoal_round *made = NULL;
    int status = base_alloc(&found, 1, sizeof *found, "what the scan found");
    if (status == SHOAL_OK)
        status = learn_scan_read(found, merged, shape, header.target, BAYES_CALLED);
    if (status < 0)
        goto done;
    header.phase = BAYES_MEANS;
    header.classes = found->classes;
    if ((status = new_round(&made, &header)) < 0)
        goto done;
    const bayes_arrays arrays = bayes_arrays_of(made->model);
    memcpy(arrays.label, found->label, (size_t)header.classes * sizeof *arrays.label);
    for (int64_t k = 0; status == SHOAL_OK && k < header.columns; k++) {
        double greatest = k == header.target ? 1 : shoal_max_value(keys[k]), bound = found->weight_greatest * greatest;
        if (!(greatest >= 0))
            status = broken(round);
        else if ((status = check_size(bound, k, shape)) == SHOAL_OK)
            arrays.unit[k] = bayes_unit(bound, bayes_bits(shape->rows));
    }
    if (status == SHOAL_OK) {
        *next = made;
        made = NULL;
    }
done:
    shoal_round_free(&made);
    base_free(&found);
    return status;
}

/* ---- after the means --------------------------------------------------------------------------------------------- */

/* Fills the means of a class, and the units for squares of distances from them.  Rounding is monotone, so no row's
 * square is greater than that of the farther end. */
static int fill_class(const bayes_arrays *to, const bayes_model *model, int64_t class, const double *unit,
                      double weight_greatest, const shoal_partial *merged, const shoal_shape *shape)
{
    const int64_t *digits = shoal_partial_values_const(merged, BAYES_SUMS),
                  *greatest = shoal_partial_values_const(merged, BAYES_GREATEST),
                  *negative = shoal_partial_values_const(merged, BAYES_NEGATIVES);
    const int64_t table = model->classes * model->columns, row = class * model->columns;
    const int bits = bayes_bits(shape->rows);
    double weight = bayes_sum(digits, table, row + model->target, unit[model->target], bits);
    to->weight[class] = weight;
    if (weight == 0)
        return shoal_fail(SHOAL_INVALID, "every row with label %.10g has a weight of 0: leave these rows out",
                          to->label[class]);
    for (int64_t k = 0; k < model->columns; k++) {
        int64_t at = row + k;
        double high = shoal_max_value(greatest[at]), low = -shoal_max_value(negative[at]);
        to->unit[at] = 1;
        if (k == model->target)
            continue;
        double mean = bayes_sum(digits, table, at, unit[k], bits) / weight;
        if (!(weight > 0 && isfinite(weight) && isfinite(mean) && isfinite(low) && isfinite(high) && low <= high))
            return SHOAL_BROKEN;
        /* The mean of a constant column is that constant, whatever rounding says. */
        mean = mean < low ? low : mean > high ? high : mean;
        double farther = high - mean > mean - low ? high - mean : mean - low;
        double bound = weight_greatest * (farther * farther);
        to->mean[at] = mean;
        to->unit[at] = bayes_unit(bound, bits);
        int status = check_size(bound, k, shape);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

static int begin_variances(shoal_round **next, const shoal_round *round, const shoal_partial *merged,
                           const shoal_shape *shape)
{
    const bayes_model *model = round->model;
    const bayes_arrays from = bayes_arrays_of(model);
    /* The bound of weights that the scan found, from the unit that was made of it: at most twice as great. */
    const double weight_greatest = ldexp(1, bayes_bits(shape->rows)) / from.unit[model->target];
    bayes_model header = *model;
    shoal_round *made = NULL;
    header.phase = BAYES_VARIANCES;
    int status = new_round(&made, &header);
    if (status < 0)
        return status;
    const bayes_arrays to = bayes_arrays_of(made->model);
    memcpy(to.label, from.label, (size_t)model->classes * sizeof *to.label);
    for (int64_t c = 0; status == SHOAL_OK && c < model->classes; c++)
        status = fill_class(&to, model, c, from.unit, weight_greatest, merged, shape);
    if (status == SHOAL_BROKEN)
        status = broken(round);
    if (status < 0)
        shoal_round_free(&made);
    *next = made;
    return status;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

/* Tables of the result have no column for the target. */
typedef struct found {
    const bayes_model *model;
    bayes_arrays arrays;
    double *classes, *means, *variances, *priors, *counts;
    int64_t features;
    double weight; /* of all rows */
} found;

/* The feature's column in the data. */
static int64_t column_of(const found *self, int64_t feature)
{
    return feature < self->model->target ? feature : feature + 1;
}

static int read_variances(found *self, const shoal_round *round, const shoal_partial *merged, const shoal_shape *shape)
{
    const int64_t *digits = shoal_partial_values_const(merged, BAYES_SQUARES);
    int64_t classes = self->model->classes, columns = self->model->columns;
    for (int64_t c = 0; c < classes; c++)
        for (int64_t j = 0; j < self->features; j++) {
            int64_t at = c * columns + column_of(self, j);
            double sum = bayes_sum(digits, classes * columns, at, self->arrays.unit[at], bayes_bits(shape->rows));
            double variance = sum / self->arrays.weight[c];
            if (!(variance >= 0 && isfinite(variance)))
                return broken(round);
            self->means[c * self->features + j] = self->arrays.mean[at];
            self->variances[c * self->features + j] = variance;
        }
    return SHOAL_OK;
}

/* The variance of a feature over all rows: inside the classes and between them. */
static double whole_variance(const found *self, int64_t feature)
{
    double mean = 0, sum = 0;
    for (int64_t c = 0; c < self->model->classes; c++)
        mean += self->priors[c] * self->means[c * self->features + feature];
    for (int64_t c = 0; c < self->model->classes; c++) {
        double away = self->means[c * self->features + feature] - mean;
        sum += self->priors[c] * (self->variances[c * self->features + feature] + away * away);
    }
    return sum;
}

/* The logarithm of the likelihood of rows and labels.  The squares of a class add up to its variance, so that no row is
 * needed; it is taken before `added` is in the variances. */
static double log_likelihood(const found *self, double added)
{
    static const double circle = 0x1.921fb54442d18p+2; /* 2 pi */
    double sum = 0;
    for (int64_t c = 0; c < self->model->classes; c++) {
        double prior = self->model->uniform ? 1 / (double)self->model->classes : self->priors[c];
        double halves = 0;
        for (int64_t j = 0; j < self->features; j++) {
            double variance = self->variances[c * self->features + j];
            halves += kernel_log(circle) + kernel_log(variance + added) + variance / (variance + added);
        }
        sum += self->counts[c] * (kernel_log(prior) - halves / 2);
    }
    return sum;
}

/* Adds the smoothing; every variance must be greater than 0 then. */
static int smooth(const found *self, double added)
{
    for (int64_t i = 0; i < self->model->classes * self->features; i++) {
        self->variances[i] += added;
        if (!(self->variances[i] > 0) && self->model->smoothing > 0)
            return shoal_fail(SHOAL_INVALID, "no column but the target varies, so nothing tells the classes apart");
        if (!(self->variances[i] > 0))
            return shoal_fail(SHOAL_INVALID,
                              "column %" PRId64 " is %.10g in every row with label %.10g: with a variance of 0 "
                              "--smoothing must be greater than 0",
                              column_of(self, i % self->features) + 1, self->means[i],
                              self->arrays.label[i / self->features]);
        if (!isfinite(self->variances[i]))
            return shoal_fail(SHOAL_INVALID, "--smoothing %g: variances would be infinite", self->model->smoothing);
    }
    return SHOAL_OK;
}

static int add_tensors(found *self, shoal_result *result)
{
    const int64_t size[2] = {self->model->classes, self->features};
    self->classes = shoal_result_add(result, "classes", SHOAL_FLOAT64, 1, size);
    self->means = shoal_result_add(result, "means", SHOAL_FLOAT64, 2, size);
    self->variances = shoal_result_add(result, "variances", SHOAL_FLOAT64, 2, size);
    self->priors = shoal_result_add(result, "priors", SHOAL_FLOAT64, 1, size);
    self->counts = shoal_result_add(result, "counts", SHOAL_FLOAT64, 1, size);
    if (!self->classes || !self->means || !self->variances || !self->priors || !self->counts)
        return SHOAL_MEMORY;
    memcpy(self->classes, self->arrays.label, (size_t)size[0] * sizeof(double));
    memcpy(self->counts, self->arrays.weight, (size_t)size[0] * sizeof(double));
    for (int64_t c = 0; c < size[0]; c++)
        self->weight += self->counts[c];
    for (int64_t c = 0; c < size[0]; c++)
        self->priors[c] = self->counts[c] / self->weight;
    return SHOAL_OK;
}

static int make_result(shoal_result **out, const shoal_round *round, const shoal_partial *merged,
                       const shoal_shape *shape)
{
    const bayes_model *model = round->model;
    found self = {.model = model, .arrays = bayes_arrays_of(model), .features = model->columns - 1};
    shoal_result *result = NULL;
    double greatest = 0;
    int status = shoal_result_new(&result);
    if (status == SHOAL_OK)
        status = add_tensors(&self, result);
    if (status == SHOAL_OK)
        status = read_variances(&self, round, merged, shape);
    if (status < 0)
        goto done;
    for (int64_t j = 0; j < self.features; j++)
        greatest = fmax(greatest, whole_variance(&self, j));
    const double added = model->smoothing * greatest, likelihood = log_likelihood(&self, added);
    if ((status = smooth(&self, added)) < 0)
        goto done;
    for (int64_t c = 0; model->uniform && c < model->classes; c++)
        self.priors[c] = 1 / (double)model->classes;
    shoal_result_set_whole(result, "classes", model->classes);
    shoal_result_set(result, "smoothing", added);
    shoal_result_set(result, "log_likelihood", likelihood);
    *out = result;
    result = NULL;
done:
    shoal_result_free(&result);
    return status;
}

/* ---- the learner ------------------------------------------------------------------------------------------------- */

static size_t scratch_bytes_bayes(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)prepared;
    return bayes_scratch(round->model, shape);
}

static int map_bayes(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    const bayes_model *model = round->model;
    (void)prepared;
    if (model->phase == BAYES_SCAN)
        return bayes_scan_grain(partial, model, grain, scratch);
    (model->phase == BAYES_MEANS ? bayes_sum_values : bayes_sum_squares)(partial, model, grain, scratch);
    return SHOAL_OK;
}

static int update_bayes(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const bayes_model *model = round->model;
    (void)crew;
    if (model->phase == BAYES_VARIANCES)
        return make_result(result, round, merged, shape);
    if (stop)
        return shoal_fail(SHOAL_STOPPED, "stopped before there was a result");
    return (model->phase == BAYES_SCAN ? begin_means : begin_variances)(next, round, merged, shape);
}

/* Both rounds of the run on average. */
static int cost_bayes(shoal_cost *out, const void *untyped, const shoal_shape *shape)
{
    enum { ROUND_BYTES = 256, PARTIAL_BYTES = 28 }; /* names, numbers and a layout around them on the way */
    const bayes_config *config = untyped;
    const int64_t classes = config->expected_classes > 2 ? config->expected_classes : 2;
    const double word = sizeof(double), columns = (double)shape->columns, table = (double)classes * columns;
    const double head = ROUND_BYTES + sizeof(bayes_model);
    const shoal_cost_phase scan = {.name = "scan",
                                   .rounds = 1,
                                   .model_bytes = head,
                                   .partial_bytes = PARTIAL_BYTES + learn_scan_bytes(classes) + columns * word};
    const shoal_cost_phase run = {.name = "run",
                                  .rounds = 2,
                                  .operations_per_row = 3 * columns,
                                  .model_bytes = head + (3 * (double)classes + columns + 2 * table) / 2 * word,
                                  .partial_bytes = PARTIAL_BYTES + 3 * table * word};
    *out = (shoal_cost){.operations_per_row = run.operations_per_row,
                        .model_bytes = run.model_bytes,
                        .partial_bytes = run.partial_bytes,
                        .rounds = BAYES_PHASES,
                        .phases = 2,
                        .phase = {scan, run}};
    return SHOAL_OK;
}

const shoal_algorithm bayes_algorithm = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "bayes",
    .summary = "Gaussian naive Bayes: a mean and a variance for each class and column",
    .options = options,
    .config_size = sizeof(bayes_config),
    .kernel_free = true,
    .start = start_bayes,
    .check = check_bayes,
    .check_result = check_result_bayes,
    .scratch_bytes = scratch_bytes_bayes,
    .map = map_bayes,
    .update = update_bayes,
    .cost = cost_bayes,
};
