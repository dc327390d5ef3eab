/* Logistic regression as a learner that goes down a gradient: options, the plan, and value and gradient from sums.  See
 * shoal/logistic.h.
 *
 * The value is the plain sum, so that what is shown on the way is the objective; L-BFGS does not mind its size.  Only
 * the tolerance and the gradient that is told are for a mean row. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "learn/check.h"
#include "learn/logistic/logistic_internal.h"

enum { COLUMNS_MOST = INT32_MAX };
enum { NOTE_LOSS, NOTE_RIGHT, NOTES }; /* the sums behind those of the gradient */

/* Products in float32 leave about so much noise in the value: changes that are smaller are none. */
#define SINGLE_CHANGE 0x1p-30

/* Sizes of columns are known as float32 (scan.c): far beyond it the frame is so wrong that the search finds no first
 * step. */
#define VALUE_MOST 1e25

static const char *const precisions[] = {"auto", "float32", "float64", NULL};

static const shoal_option logistic_options[] = {
    {"l2", 0, SHOAL_OPTION_REAL, offsetof(shoal_logistic_config, l2), "X",
     "weight of half the sum of squared weights; scikit-learn's C is 1 / X", "1", 0, .most = INFINITY},
    {"l1", 0, SHOAL_OPTION_REAL, offsetof(shoal_logistic_config, l1), "X",
     "weight of the sum of absolute weights, which makes many of them exactly 0", "0", 0, .most = INFINITY},
    {"no-intercept", 0, SHOAL_OPTION_FLAG, offsetof(shoal_logistic_config, no_intercept), NULL,
     .help = "fit no intercept"},
    {"iterations", 0, SHOAL_OPTION_COUNT, offsetof(shoal_logistic_config, iterations), "N",
     "maximum number of L-BFGS iterations", "1000", 0, .most = INT32_MAX},
    {"tolerance", 0, SHOAL_OPTION_REAL, offsetof(shoal_logistic_config, tolerance), "T",
     "stop when no component of the mean row's gradient, for centred and scaled columns, exceeds T", "1e-4", 0,
     .most = INFINITY},
    {"history", 0, SHOAL_OPTION_COUNT, offsetof(shoal_logistic_config, history), "M",
     "number of past iterations that L-BFGS uses", "20", 1, .most = LEARN_LBFGS_HISTORY_MOST},
    {"precision", 0, SHOAL_OPTION_CHOICE, offsetof(shoal_logistic_config, precision), "TYPE",
     "of the products with the data; losses and sums are float64 in any case; auto is float64", "auto", 0, 0,
     .choices = precisions},
    {0}};

/* ---- round 0 ----------------------------------------------------------------------------------------------------- */

static size_t own_bytes_of(const logistic_own *own)
{
    int64_t found = own->classes ? own->classes + 2 * own->features : 0;
    int64_t start = own->start_outputs * (own->features + 1) + own->start_classes;
    return sizeof *own + (size_t)(found + start) * sizeof(double);
}

static int64_t parameters_of(const logistic_own *own)
{
    return own->outputs * (own->features + (own->intercept ? 1 : 0));
}

static int check_config_numbers(const shoal_logistic_config *config)
{
    const struct {
        const char *name;
        double value;
    } least_0[] = {{"--l1", config->l1}, {"--l2", config->l2}, {"--tolerance", config->tolerance}};
    for (size_t i = 0; i < sizeof least_0 / sizeof *least_0; i++)
        if (!(least_0[i].value >= 0 && isfinite(least_0[i].value)))
            return shoal_fail(SHOAL_USAGE, "%s must be finite and at least 0, not %g", least_0[i].name,
                              least_0[i].value);
    if (config->iterations < 0)
        return shoal_fail(SHOAL_USAGE, "--iterations must be at least 0, not %" PRId64, config->iterations);
    if (config->history < 1 || config->history > LEARN_LBFGS_HISTORY_MOST)
        return shoal_fail(SHOAL_USAGE, "--history must be 1 to %d, not %" PRId64, LEARN_LBFGS_HISTORY_MOST,
                          config->history);
    if (config->precision < 0 || config->precision > 2)
        return shoal_fail(SHOAL_USAGE, "--precision must be auto, float32 or float64");
    return SHOAL_OK;
}

static int check_start(const shoal_logistic_config *config, const shoal_shape *shape)
{
    if (!config->start_weights)
        return SHOAL_OK;
    if (!config->start_intercept || !config->start_classes || config->start_classes_count < 2 ||
        config->start_classes_count > SHOAL_LOGISTIC_CLASSES_MOST ||
        config->start_outputs != logistic_outputs(config->start_classes_count))
        return shoal_fail(SHOAL_INVALID,
                          "a model of %" PRId64 " rows of weights and %" PRId64 " classes cannot be a start",
                          config->start_outputs, config->start_classes_count);
    if (config->start_columns != shape->columns - 1)
        return shoal_fail(SHOAL_INVALID,
                          "the model to start from is for %" PRId64 " column%s, but the data has %" PRId64
                          " beside the labels",
                          config->start_columns, base_plural(config->start_columns), shape->columns - 1);
    return SHOAL_OK;
}

static void copy_start(logistic_own *own, const shoal_logistic_config *config)
{
    double *to = (double *)(own + 1);
    size_t weights = (size_t)(own->start_outputs * own->features), intercepts = (size_t)own->start_outputs;
    memcpy(to, config->start_weights, weights * sizeof *to);
    memcpy(to + weights, config->start_intercept, intercepts * sizeof *to);
    memcpy(to + weights + intercepts, config->start_classes, (size_t)own->start_classes * sizeof *to);
}

/* ---- after the scan ---------------------------------------------------------------------------------------------- */

static bool has_same_classes(const logistic_own *own, const learn_scanned *found)
{
    const double *labels = logistic_start(own) + own->start_outputs * (own->features + 1);
    return own->start_classes == found->classes &&
           memcmp(labels, found->label, (size_t)found->classes * sizeof *labels) == 0;
}

/* `greatest` is of all columns, and labels may be as great as they like. */
static bool is_too_great(const learn_scanned *found)
{
    double label = fmax(fabs(found->label[0]), fabs(found->label[found->classes - 1]));
    return found->greatest > VALUE_MOST && found->greatest > label;
}

static int check_found(const logistic_own *own, const learn_scanned *found)
{
    if (own->single && found->greatest > FLT_MAX)
        return shoal_fail(SHOAL_INVALID, "values of up to %g are too large for --precision float32", found->greatest);
    if (is_too_great(found))
        return shoal_fail(SHOAL_INVALID, "values of up to %g are too large: scale the columns to at most %g",
                          found->greatest, VALUE_MOST);
    if (own->start_outputs && !has_same_classes(own, found))
        return shoal_fail(SHOAL_INVALID, "the labels are not the %" PRId64 " classes of the model to start from",
                          own->start_classes);
    return SHOAL_OK;
}

/* `value` and `weight` are the greatest of the data. */
static void fill_plan(gradient_plan *out, const logistic_own *own, double value, double weight,
                      const shoal_shape *shape)
{
    int64_t weights = own->outputs * own->features, intercepts = own->intercept ? own->outputs : 0;
    double rows = (double)shape->rows_per_grain * weight;
    int64_t groups = 0;
    *out = (gradient_plan){0};
    out->group[groups++] = (gradient_group){.count = weights, .size = rows * value, .narrow = own->single};
    if (intercepts)
        out->group[groups++] =
            (gradient_group){.first = weights, .count = intercepts, .size = rows, .narrow = own->single};
    out->group[groups++] =
        (gradient_group){.first = weights + intercepts, .count = 1, .size = rows * kernel_log((double)own->classes)};
    out->group[groups++] = (gradient_group){.first = weights + intercepts + 1, .count = 1, .size = rows};
    out->groups = groups;
    out->sums = weights + intercepts + 2;
    out->notes = NOTES;
    out->search = (learn_lbfgs_options){.parameters = weights + intercepts,
                                        .change_tolerance = own->single ? SINGLE_CHANGE : 0,
                                        .history = own->history,
                                        .iterations = own->iterations,
                                        .gradient_tolerance = own->tolerance * own->weight,
                                        .l1 = own->l1,
                                        .l1_count = weights};
}

static int plan_logistic(gradient_plan *out, void **own_inout, size_t *own_bytes, const shoal_partial *merged,
                         const shoal_shape *shape)
{
    const logistic_own *before = *own_inout;
    logistic_own header = *before, *own = NULL;
    learn_scanned *found = NULL;
    int status = base_alloc(&found, 1, sizeof *found, "what the scan found");
    if (status == SHOAL_OK)
        status = learn_scan_read(found, merged, shape, before->target, LOGISTIC_CALLED);
    if (status == SHOAL_OK)
        status = check_found(before, found);
    if (status < 0)
        goto done;
    header.classes = found->classes;
    header.outputs = logistic_outputs(found->classes);
    header.weight = found->weight;
    if ((status = base_alloc(&own, own_bytes_of(&header), 1, "classes")) < 0)
        goto done;
    *own = header;
    memcpy(own + 1, found->label, (size_t)own->classes * sizeof(double));
    memcpy((double *)logistic_start(own), before + 1, own_bytes_of(before) - sizeof *before);
    logistic_frame_choose((double *)logistic_centre(own), (double *)logistic_scale(own), own, merged, shape);
    fill_plan(out, own, found->greatest, found->weight_greatest, shape);
    *own_bytes = own_bytes_of(own);
    base_free(own_inout);
    *own_inout = own;
done:
    base_free(&found);
    return status;
}

static int first_logistic(double *x, void *untyped, size_t *own_bytes, const shoal_shape *shape)
{
    logistic_own *own = untyped;
    (void)shape;
    memset(x, 0, (size_t)parameters_of(own) * sizeof *x);
    if (own->start_outputs)
        logistic_frame_enter(x, logistic_start(own), logistic_start(own) + own->outputs * own->features, own);
    own->start_outputs = own->start_classes = 0;
    *own_bytes = own_bytes_of(own);
    return SHOAL_OK;
}

static bool is_count(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

static bool is_plan(const gradient_plan *plan, const logistic_own *own, const shoal_shape *shape)
{
    gradient_plan expected;
    fill_plan(&expected, own, 1, 1, shape);
    return own->classes > 0 && gradient_plan_alike(plan, &expected);
}

static bool is_good_own(const void *untyped, size_t own_bytes, const gradient_plan *plan, const shoal_shape *shape)
{
    const logistic_own *own = untyped;
    if (own_bytes < sizeof *own || shape->columns > COLUMNS_MOST || own->features != shape->columns - 1 ||
        !is_count(own->target, 0, own->features) || own->outputs != logistic_outputs(own->classes) ||
        !is_count(own->classes, 0, SHOAL_LOGISTIC_CLASSES_MOST) || own->classes == 1 ||
        !is_count(own->start_outputs, 0, SHOAL_LOGISTIC_CLASSES_MOST) ||
        !is_count(own->start_classes, 0, SHOAL_LOGISTIC_CLASSES_MOST) || own->start_classes == 1 ||
        own->start_outputs != logistic_outputs(own->start_classes) || own_bytes != own_bytes_of(own))
        return false;
    for (int64_t i = 1; i < own->classes; i++)
        if (!(logistic_classes(own)[i] > logistic_classes(own)[i - 1]))
            return false;
    bool scanned = own->classes > 0;
    for (int64_t i = 0; scanned && i < own->features; i++)
        if (!isfinite(logistic_centre(own)[i]) || !(logistic_scale(own)[i] > 0))
            return false;
    return (!scanned || !own->start_classes || own->start_classes == own->classes) && own->l1 >= 0 && own->l2 >= 0 &&
           (!scanned || (own->weight > 0 && isfinite(own->weight))) && (!plan || is_plan(plan, own, shape));
}

/* ---- descending -------------------------------------------------------------------------------------------------- */

static int prepare_point(void **prepared, const void *untyped, const double *x, const shoal_shape *shape,
                         const shoal_crew *crew)
{
    const logistic_own *own = untyped;
    (void)shape;
    return logistic_prepare_point((logistic_prepared **)prepared, own, x, crew->kernel);
}

static size_t scratch_point(const void *own, const void *prepared, const shoal_shape *shape)
{
    (void)prepared;
    return logistic_grain_scratch(own, shape);
}

static int map_point(gradient_sums *sums, const void *own, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    return logistic_grain_sums(sums, own, prepared, grain, scratch);
}

static int combine_logistic(double *value, double *gradient, const double *sums, const void *untyped, const double *x,
                            const shoal_shape *shape)
{
    const logistic_own *own = untyped;
    int64_t parameters = parameters_of(own), features = own->features;
    double square = 0;
    (void)shape;
    memcpy(gradient, sums, (size_t)parameters * sizeof *gradient);
    for (int64_t i = 0; i < own->outputs * features; i++) {
        double weight = x[i] / logistic_scale(own)[i % features];
        gradient[i] += own->l2 * weight;
        square += weight * weight;
    }
    logistic_frame_gradient(gradient, own);
    *value = sums[parameters] + own->l2 / 2 * square;
    return SHOAL_OK;
}

static int note_logistic(double *notes, const double *sums, const void *own, const double *x, const shoal_shape *shape)
{
    (void)x, (void)shape;
    memcpy(notes, sums + parameters_of(own), NOTES * sizeof *notes);
    return SHOAL_OK;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

static int result_logistic(shoal_result *result, const void *untyped, size_t own_bytes, const double *x,
                           const shoal_shape *shape)
{
    const logistic_own *own = untyped;
    const int64_t size[2] = {own->outputs, own->features};
    (void)own_bytes, (void)shape;
    for (int i = 0; i < result->numbers; i++)
        if (strcmp(result->number[i].name, "gradient") == 0)
            result->number[i].value /= own->weight;
    shoal_result_set_whole(result, "classes", own->classes);
    double *weights = shoal_result_add(result, "weights", SHOAL_FLOAT64, 2, size);
    double *intercept = shoal_result_add(result, "intercept", SHOAL_FLOAT64, 1, size);
    double *classes = shoal_result_add(result, "classes", SHOAL_FLOAT64, 1, &own->classes);
    if (!weights || !intercept || !classes)
        return SHOAL_MEMORY;
    logistic_frame_leave(weights, intercept, x, own);
    memcpy(classes, logistic_classes(own), (size_t)own->classes * sizeof *classes);
    return SHOAL_OK;
}

static int tell_logistic(shoal_result *result, const double *notes, const void *untyped, const shoal_shape *shape)
{
    const logistic_own *own = untyped;
    (void)shape;
    shoal_result_set(result, "loss", notes[NOTE_LOSS]);
    shoal_result_set(result, "accuracy", notes[NOTE_RIGHT] / own->weight);
    return SHOAL_OK;
}

/* ---- the learner ------------------------------------------------------------------------------------------------- */

const gradient_class logistic_class = {
    .scan_layout = logistic_scan_layout,
    .scan = logistic_scan,
    .scan_scratch = logistic_scan_scratch,
    .plan = plan_logistic,
    .first = first_logistic,
    .prepare = prepare_point,
    .forget = logistic_forget,
    .scratch_bytes = scratch_point,
    .map = map_point,
    .combine = combine_logistic,
    .result = result_logistic,
    .good = is_good_own,
    .note = note_logistic,
    .tell = tell_logistic,
};

static int start_logistic(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    const shoal_logistic_config *config = untyped;
    logistic_own header = {.features = shape->columns - 1,
                           .intercept = !config->no_intercept,
                           .single = config->precision == 1,
                           .iterations = config->iterations,
                           .history = config->history,
                           .l1 = config->l1,
                           .l2 = config->l2,
                           .tolerance = config->tolerance},
                 *own = NULL;
    int status = check_config_numbers(config);
    if (status == SHOAL_OK)
        status = learn_target_place(&header.target, config->target, shape, LOGISTIC_CALLED);
    if (status == SHOAL_OK)
        status = check_start(config, shape);
    if (status < 0)
        return status;
    if (config->start_weights) {
        header.start_outputs = config->start_outputs;
        header.start_classes = config->start_classes_count;
    }
    if ((status = base_alloc(&own, own_bytes_of(&header), 1, "where to start")) < 0)
        return status;
    *own = header;
    if (config->start_weights)
        copy_start(own, config);
    status = gradient_start(out, &logistic_class, own, own_bytes_of(own), shape);
    base_free(&own);
    return status;
}

static int prepare_logistic(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    return gradient_prepare(prepared, &logistic_class, round, shape, crew);
}

static void forget_logistic(void **prepared)
{
    gradient_forget(prepared, &logistic_class);
}

static size_t scratch_logistic(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    return gradient_scratch_bytes(&logistic_class, round, prepared, shape);
}

static int map_logistic(shoal_partial *partial, const shoal_round *round, const void *prepared,
                        const shoal_grain *grain, const shoal_scratch *scratch)
{
    return gradient_map(partial, &logistic_class, round, prepared, grain, scratch);
}

static int update_logistic(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                           const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    return gradient_update(next, result, &logistic_class, round, merged, shape, crew, stop);
}

static int check_logistic(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    (void)self;
    return gradient_check(&logistic_class, round, shape);
}

/* Only the data tell how many classes there are. */
static int check_result_logistic(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                                 const shoal_shape *shape)
{
    const shoal_tensor *classes = shoal_result_tensor(result, "classes");
    int64_t count = classes && classes->rank == 1 ? classes->shape[0] : 0;
    const int64_t size[2] = {logistic_outputs(count), shape->columns - 1};
    (void)self, (void)first;
    return is_count(count, 2, SHOAL_LOGISTIC_CLASSES_MOST) && classes->type == SHOAL_FLOAT64 &&
                   learn_result_has(result, "weights", SHOAL_FLOAT64, 2, size) &&
                   learn_result_has(result, "intercept", SHOAL_FLOAT64, 1, size)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the result is not a logistic regression model for these rows");
}

/* Two products with the data: outputs, and what each row adds to the gradient.  How many classes there are is only
 * known later. */
static int cost_logistic(shoal_cost *out, const void *untyped, const shoal_shape *shape)
{
    const shoal_logistic_config *config = untyped;
    int64_t classes = config->expected_classes ? config->expected_classes : config->start_classes_count;
    classes = classes < 2 ? 2 : classes;
    double outputs = (double)logistic_outputs(classes), features = (double)shape->columns - 1, word = sizeof(double);
    double start = (double)config->start_outputs * (features + 1) + (double)config->start_classes_count;
    double parameters = outputs * (features + !config->no_intercept);
    const gradient_sizes sizes = {.own_bytes = sizeof(logistic_own) + start * word,
                                  .run_own_bytes = sizeof(logistic_own) + ((double)classes + 2 * features) * word,
                                  .scan_bytes = logistic_scan_bytes(shape->columns, classes),
                                  .parameters = parameters,
                                  .sums = parameters + NOTES,
                                  .groups = 3 + !config->no_intercept,
                                  .notes = NOTES,
                                  .operations_per_row = 4 * outputs * features,
                                  .iterations = (double)config->iterations};
    gradient_cost(out, &sizes);
    return SHOAL_OK;
}

const shoal_algorithm shoal_logistic = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "logistic",
    .summary = "logistic and softmax regression of labels on columns",
    .options = logistic_options,
    .config_size = sizeof(shoal_logistic_config),
    .kernel_free = true,
    .start = start_logistic,
    .check = check_logistic,
    .check_result = check_result_logistic,
    .prepare = prepare_logistic,
    .forget = forget_logistic,
    .scratch_bytes = scratch_logistic,
    .map = map_logistic,
    .update = update_logistic,
    .cost = cost_logistic,
};
