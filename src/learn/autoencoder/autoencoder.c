/* The sparse autoencoder as a learner: options, the first round, and the hand-over to the gradient layer.  See
 * shoal/autoencoder.h. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "learn/autoencoder/autoencoder_internal.h"
#include "learn/check.h"

/* The defaults of the sparsity are made for logistic units; relu has to be told its own, and these tell whether it
 * was. */
#define SPARSITY "0.01"
#define SPARSITY_WEIGHT "3"
static const double sparsity_fallback = 0.01, sparsity_weight_fallback = 3;

static const char *const activation_choices[] = {"logistic", "tanh", "relu", NULL};
static const char *const output_choices[] = {"auto", "same", "linear", NULL};
static const char *const precision_choices[] = {"auto", "float32", "float64", NULL};

#define AT(field) offsetof(shoal_autoencoder_config, field)
static const shoal_option autoencoder_options[] = {
    {"hidden", 0, SHOAL_OPTION_COUNT, AT(hidden), "H", "number of hidden units", NULL, 1, .most = INT32_MAX},
    {"sparsity", 0, SHOAL_OPTION_REAL, AT(sparsity), "P",
     "target mean activation of each hidden unit, between 0 and 1; not for relu", SPARSITY, -INFINITY,
     .most = INFINITY},
    {"sparsity-weight", 0, SHOAL_OPTION_REAL, AT(sparsity_weight), "W",
     "weight of the sparsity term, 0 for none; for relu, of the sum of the mean activations", SPARSITY_WEIGHT, 0,
     .most = INFINITY},
    {"weight-decay", 0, SHOAL_OPTION_REAL, AT(weight_decay), "L", "weight of half the sum of squared weights", "1e-4",
     0, .most = INFINITY},
    {"activation", 0, SHOAL_OPTION_CHOICE, AT(activation), "F",
     "activation of the hidden units: logistic, tanh or relu", "logistic", 0, 0, .choices = activation_choices},
    {"output", 0, SHOAL_OPTION_CHOICE, AT(output), "F",
     "activation of the output units: the same, linear, or auto (the same, but linear for "
     "relu)",
     "auto", 0, 0, .choices = output_choices},
    {"tied", 0, SHOAL_OPTION_FLAG, AT(tied), NULL, .help = "use the transposed encoder as the decoder"},
    {"rescale", 0, SHOAL_OPTION_TEXT, AT(rescale), "HOW",
     "values of the data to map to the ends of the output's range: LOW:HIGH, auto (the smallest and the largest), or "
     "none",
     .fallback = "none"},
    {"iterations", 0, SHOAL_OPTION_COUNT, AT(iterations), "N", "maximum number of L-BFGS iterations", "400", 0,
     .most = INT32_MAX},
    {"history", 0, SHOAL_OPTION_COUNT, AT(history), "N", "number of past iterations that L-BFGS uses", "10", 1,
     .most = LEARN_LBFGS_HISTORY_MOST},
    {"tolerance", 0, SHOAL_OPTION_REAL, AT(tolerance), "T", "stop when no component of the gradient exceeds T", "1e-5",
     0, .most = INFINITY},
    {"change", 0, SHOAL_OPTION_REAL, AT(change), "T",
     "stop when an iteration lowers the cost by no more than the fraction T", "1e-9", 0, .most = INFINITY},
    {"seed", 0, SHOAL_OPTION_COUNT, AT(seed), "N", "random seed of the first weights", "0", 0, .most = 0x1p53},
    {"precision", 0, SHOAL_OPTION_CHOICE, AT(precision), "TYPE",
     "arithmetic inside a grain: float32, float64, or auto (that of the data, float32 for integers)", "auto", 0, 0,
     .choices = precision_choices},
    {0}};
#undef AT

/* ---- activations ------------------------------------------------------------------------------------------------- */

kernel_activation autoencoder_kernel_activation(int activation)
{
    return activation == SHOAL_TANH ? KERNEL_TANH : activation == SHOAL_RELU ? KERNEL_RELU : KERNEL_LOGISTIC;
}

static kernel_activation output_of(const shoal_autoencoder_config *config)
{
    bool linear = config->output == SHOAL_OUTPUT_LINEAR ||
                  (config->output == SHOAL_OUTPUT_AUTO && config->activation == SHOAL_RELU);
    return linear ? KERNEL_LINEAR : autoencoder_kernel_activation(config->activation);
}

void autoencoder_range(double *low, double *high, kernel_activation output)
{
    bool bounded = output == KERNEL_LOGISTIC || output == KERNEL_TANH;
    *low = output == KERNEL_LOGISTIC ? 0 : bounded ? -1 : -INFINITY;
    *high = bounded ? 1 : INFINITY;
}

const char *autoencoder_activation_name(kernel_activation activation)
{
    static const char *const names[] = {
        [KERNEL_LINEAR] = "linear", [KERNEL_LOGISTIC] = "logistic", [KERNEL_TANH] = "tanh", [KERNEL_RELU] = "relu"};
    return names[activation];
}

/* ---- the first round --------------------------------------------------------------------------------------------- */

static int check_sparsity(const shoal_autoencoder_config *config)
{
    if (!(config->sparsity_weight >= 0 && config->sparsity_weight < INFINITY))
        return shoal_fail(SHOAL_USAGE, "--sparsity-weight must be at least 0, not %g", config->sparsity_weight);
    if (config->activation == SHOAL_RELU) {
        if (config->sparsity != sparsity_fallback)
            return shoal_fail(SHOAL_USAGE,
                              "--sparsity: relu units have no mean activation to aim at; their sparsity has a weight "
                              "alone, --sparsity-weight");
        if (config->sparsity_weight == sparsity_weight_fallback)
            return shoal_fail(SHOAL_USAGE, "--activation relu needs an explicit --sparsity-weight, the weight of the "
                                           "mean activations' sum: 0 for none, or 0.01, say; " SPARSITY_WEIGHT
                                           " is for logistic and tanh units");
        return SHOAL_OK;
    }
    if (config->sparsity_weight > 0 && !(config->sparsity > 0 && config->sparsity < 1))
        return shoal_fail(SHOAL_USAGE,
                          "--sparsity must be greater than 0 and less than 1, not %g: no unit can be always off or "
                          "always on; --sparsity-weight 0 turns it off",
                          config->sparsity);
    return SHOAL_OK;
}

static int check_shape(const shoal_autoencoder_config *config, const shoal_shape *shape)
{
    if (config->hidden < 1 || config->hidden > INT32_MAX)
        return shoal_fail(SHOAL_USAGE, "--hidden must be at least 1 and below 2^31, not %lld",
                          (long long)config->hidden);
    if (shape->rows < 1 || shape->columns < 1)
        return shoal_fail(SHOAL_INVALID,
                          "the data has %lld rows and %lld columns; an autoencoder needs at least one of each",
                          (long long)shape->rows, (long long)shape->columns);
    if (config->hidden > AUTOENCODER_WEIGHTS_MOST / shape->columns)
        return shoal_fail(SHOAL_USAGE, "--hidden: %lld units and %lld columns make more than 2^31 weights",
                          (long long)config->hidden, (long long)shape->columns);
    if (shape->weighted)
        return shoal_fail(SHOAL_USAGE, "an autoencoder takes no weights of rows");
    return SHOAL_OK;
}

static int check_start(const shoal_autoencoder_config *config, const shoal_shape *shape)
{
    if (!config->start_encoder)
        return SHOAL_OK;
    if (!config->start_encoder_bias || !config->start_decoder_bias)
        return shoal_fail(SHOAL_USAGE, "--start needs the biases of encoder and decoder, too");
    if (config->start_hidden != config->hidden || config->start_columns != shape->columns)
        return shoal_fail(
            SHOAL_INVALID,
            "--start: a model of %lld hidden units and %lld columns, but --hidden is %lld and the data has %lld "
            "columns",
            (long long)config->start_hidden, (long long)config->start_columns, (long long)config->hidden,
            (long long)shape->columns);
    if (config->tied && config->start_decoder)
        return shoal_fail(SHOAL_INVALID, "--start: a model with a separate decoder can't be --tied");
    return SHOAL_OK;
}

static int check_config(const shoal_autoencoder_config *config, const shoal_shape *shape)
{
    int status = check_shape(config, shape);
    if (status == SHOAL_OK)
        status = check_sparsity(config);
    if (status == SHOAL_OK && !(config->weight_decay >= 0 && config->weight_decay < INFINITY))
        status = shoal_fail(SHOAL_USAGE, "--weight-decay must be at least 0, not %g", config->weight_decay);
    if (status == SHOAL_OK && !(config->tolerance >= 0 && config->change >= 0))
        status = shoal_fail(SHOAL_USAGE, "--tolerance and --change must be at least 0");
    if (status == SHOAL_OK && (config->iterations < 0 || config->iterations > INT32_MAX || config->history < 1 ||
                               config->history > LEARN_LBFGS_HISTORY_MOST))
        status = shoal_fail(SHOAL_USAGE, "--iterations must be at least 0 and --history from 1 to %d",
                            LEARN_LBFGS_HISTORY_MOST);
    if (status == SHOAL_OK &&
        (config->seed < 0 || config->activation < SHOAL_LOGISTIC || config->activation > SHOAL_RELU ||
         config->output < 0 || config->precision < 0 || config->output > SHOAL_OUTPUT_LINEAR || config->precision > 2))
        status = shoal_fail(SHOAL_USAGE, "--seed, --activation, --output or --precision is out of range");
    return status == SHOAL_OK ? check_start(config, shape) : status;
}

/* "none", "auto" or "LOW:HIGH". */
static int read_rescale(autoencoder_own *own, const char *text)
{
    own->scale = 1;
    own->shift = 0;
    own->scaling = AUTOENCODER_AS_IT_IS;
    if (!text || strcmp(text, "none") == 0)
        return SHOAL_OK;
    if (strcmp(text, "auto") == 0) {
        own->scaling = AUTOENCODER_AUTO;
        return SHOAL_OK;
    }
    if (!strchr(text, ':'))
        return shoal_fail(SHOAL_USAGE, "--rescale: %s is not none, auto or LOW:HIGH such as 0:255", text);
    if (!base_parse_range(&own->low, &own->high, text))
        return shoal_fail(SHOAL_USAGE, "--rescale: %s is not a number, a colon and a greater number, such as 0:255",
                          text);
    own->scaling = AUTOENCODER_GIVEN;
    return SHOAL_OK;
}

/* Puts the values of a start behind own, in the order of the parameters. */
static void copy_start(autoencoder_own *own, const shoal_autoencoder_config *config)
{
    autoencoder_place place = autoencoder_place_of(own);
    double *values = (double *)(own + 1);
    size_t weights = (size_t)(own->hidden * own->columns);
    memcpy(values + place.encoder, config->start_encoder, weights * sizeof *values);
    if (!own->tied && config->start_decoder)
        autoencoder_transpose(values + place.decoder, config->start_decoder, own->columns, own->hidden, true);
    else if (!own->tied)
        memcpy(values + place.decoder, config->start_encoder, weights * sizeof *values);
    memcpy(values + place.encoder_bias, config->start_encoder_bias, (size_t)own->hidden * sizeof *values);
    memcpy(values + place.decoder_bias, config->start_decoder_bias, (size_t)own->columns * sizeof *values);
}

static bool are_finite(const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static bool is_wide(const shoal_autoencoder_config *config, const shoal_shape *shape)
{
    return config->precision == 2 || (config->precision == 0 && shape->type == SHOAL_FLOAT64);
}

static int start_autoencoder(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    const shoal_autoencoder_config *config = untyped;
    autoencoder_own *own = NULL;
    int status = check_config(config, shape);
    if (status < 0)
        return status;
    autoencoder_own head = {.hidden = config->hidden,
                            .columns = shape->columns,
                            .activation = autoencoder_kernel_activation(config->activation),
                            .output = output_of(config),
                            .tied = config->tied,
                            .wide = is_wide(config, shape),
                            .iterations = config->iterations,
                            .history = config->history,
                            .seed = config->seed,
                            .sparsity = config->sparsity,
                            .sparsity_weight = config->sparsity_weight,
                            .weight_decay = config->weight_decay,
                            .tolerance = config->tolerance,
                            .change = config->change};
    if ((status = read_rescale(&head, config->rescale)) < 0)
        return status;
    head.starts = config->start_encoder ? autoencoder_place_of(&head).count : 0;
    size_t bytes = sizeof head + (size_t)head.starts * sizeof(double);
    if ((status = base_alloc(&own, bytes, 1, "the first weights")) < 0)
        return status;
    *own = head;
    if (head.starts)
        copy_start(own, config);
    status = are_finite(autoencoder_start_values(own), head.starts)
                 ? gradient_start(out, &autoencoder_class, own, bytes, shape)
                 : shoal_fail(SHOAL_INVALID, "--start: the model has weights that are not finite");
    base_free(&own);
    return status;
}

/* ---- the rest of the contract ------------------------------------------------------------------------------------ */

static bool is_truth(int64_t value)
{
    return value == 0 || value == 1;
}

static bool good_numbers(const autoencoder_own *own)
{
    bool relu = own->activation == KERNEL_RELU;
    return own->sparsity_weight >= 0 && own->sparsity_weight < INFINITY && own->weight_decay >= 0 &&
           own->weight_decay < INFINITY && own->tolerance >= 0 && own->change >= 0 && isfinite(own->scale) &&
           isfinite(own->shift) && isfinite(own->low) && isfinite(own->high) &&
           (relu || own->sparsity_weight == 0 || (own->sparsity > 0 && own->sparsity < 1));
}

static bool good(const void *untyped, size_t bytes, const gradient_plan *plan, const shoal_shape *shape)
{
    const autoencoder_own *own = untyped;
    if (bytes < sizeof *own || own->columns != shape->columns || shape->columns < 1 || shape->rows < 1 ||
        own->hidden < 1 || own->hidden > AUTOENCODER_WEIGHTS_MOST / own->columns)
        return false;
    bool whole = own->activation >= KERNEL_LOGISTIC && own->activation <= KERNEL_RELU && own->output >= KERNEL_LINEAR &&
                 own->output <= KERNEL_RELU && is_truth(own->tied) && is_truth(own->wide) &&
                 own->scaling >= AUTOENCODER_AS_IT_IS && own->scaling <= AUTOENCODER_GIVEN && own->seed >= 0 &&
                 (own->starts == 0 || own->starts == autoencoder_place_of(own).count);
    return whole && bytes == sizeof *own + (size_t)own->starts * sizeof(double) && good_numbers(own) &&
           (!plan || autoencoder_is_plan(plan, own, shape));
}

const gradient_class autoencoder_class = {.scan_layout = autoencoder_scan_layout,
                                          .scan = autoencoder_scan,
                                          .scan_scratch = autoencoder_scan_scratch,
                                          .plan = autoencoder_plan,
                                          .first = autoencoder_first,
                                          .prepare = autoencoder_prepare,
                                          .forget = autoencoder_forget,
                                          .scratch_bytes = autoencoder_scratch_bytes,
                                          .map = autoencoder_map,
                                          .combine = autoencoder_combine,
                                          .result = autoencoder_result,
                                          .good = good,
                                          .note = autoencoder_note,
                                          .tell = autoencoder_tell};

/* Grains are part of the definition of the result, so this is a function of the number of rows alone.  About 32 grains,
 * for as many threads and workers; not so small that handing over the sums costs more than making them, nor so large
 * that one takes long. */
static int64_t rows_per_grain(const void *config, const shoal_shape *shape)
{
    enum { GRAINS = 32, ROWS_LEAST = 64, ROWS_MOST = 1024 };
    int64_t rows = (shape->rows / GRAINS + KERNEL_LANES - 1) / KERNEL_LANES * KERNEL_LANES;
    (void)config;
    return rows < ROWS_LEAST ? ROWS_LEAST : rows > ROWS_MOST ? ROWS_MOST : rows;
}

static int check_round(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    (void)self;
    return gradient_check(&autoencoder_class, round, shape);
}

static int check_result_autoencoder(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                                    const shoal_shape *shape)
{
    const autoencoder_own *own = gradient_own_of(first);
    const int64_t encoder[2] = {own->hidden, shape->columns}, decoder[2] = {shape->columns, own->hidden};
    (void)self;
    return learn_result_has(result, "encoder.weight", SHOAL_FLOAT64, 2, encoder) &&
                   learn_result_has(result, "encoder.bias", SHOAL_FLOAT64, 1, encoder) &&
                   (own->tied || learn_result_has(result, "decoder.weight", SHOAL_FLOAT64, 2, decoder)) &&
                   learn_result_has(result, "decoder.bias", SHOAL_FLOAT64, 1, decoder) &&
                   learn_result_has(result, "activity", SHOAL_FLOAT64, 1, encoder)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the result is no autoencoder of %lld hidden units for these rows",
                            (long long)own->hidden);
}

static int prepare_autoencoder(void **prepared, const shoal_round *round, const shoal_shape *shape,
                               const shoal_crew *crew)
{
    return gradient_prepare(prepared, &autoencoder_class, round, shape, crew);
}

static void forget_autoencoder(void **prepared)
{
    gradient_forget(prepared, &autoencoder_class);
}

static size_t scratch_bytes_autoencoder(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    return gradient_scratch_bytes(&autoencoder_class, round, prepared, shape);
}

static int map_autoencoder(shoal_partial *partial, const shoal_round *round, const void *prepared,
                           const shoal_grain *grain, const shoal_scratch *scratch)
{
    return gradient_map(partial, &autoencoder_class, round, prepared, grain, scratch);
}

static int update_autoencoder(shoal_round **next, shoal_result **result, const shoal_round *round,
                              shoal_partial *merged, const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    return gradient_update(next, result, &autoencoder_class, round, merged, shape, crew, stop);
}

/* Five products with a matrix of weights: two forwards, one back, two gradients; a sparse network has one gradient
 * more. */
static int cost_autoencoder(shoal_cost *out, const void *untyped, const shoal_shape *shape)
{
    const shoal_autoencoder_config *config = untyped;
    double hidden = (double)config->hidden, columns = (double)shape->columns, weights = hidden * columns;
    double matrices = config->tied ? 1 : 2, sparse = config->sparsity_weight > 0, word = sizeof(double);
    double parameters = matrices * weights + hidden + columns, own_bytes = sizeof(autoencoder_own);
    const gradient_sizes sizes = {.own_bytes = own_bytes + (config->start_encoder ? parameters * word : 0),
                                  .run_own_bytes = own_bytes,
                                  .scan_bytes = 3 * word,
                                  .parameters = parameters,
                                  .sums = 1 + 2 * hidden + columns + matrices * weights + sparse * (hidden + weights),
                                  .groups = 4 + matrices + 2 * sparse,
                                  .notes = hidden + 3,
                                  .operations_per_row = (10 + 2 * sparse) * weights,
                                  .iterations = (double)config->iterations};
    gradient_cost(out, &sizes);
    return SHOAL_OK;
}

const shoal_algorithm shoal_autoencoder = {.version = SHOAL_ALGORITHM_VERSION,
                                           .bytes = sizeof(shoal_algorithm),
                                           .name = "autoencoder",
                                           .summary = "one hidden layer that reproduces its input",
                                           .options = autoencoder_options,
                                           .config_size = sizeof(shoal_autoencoder_config),
                                           .kernel_free = true,
                                           .start = start_autoencoder,
                                           .rows_per_grain = rows_per_grain,
                                           .check = check_round,
                                           .check_result = check_result_autoencoder,
                                           .prepare = prepare_autoencoder,
                                           .forget = forget_autoencoder,
                                           .scratch_bytes = scratch_bytes_autoencoder,
                                           .map = map_autoencoder,
                                           .update = update_autoencoder,
                                           .cost = cost_autoencoder};
