/* What people see of logistic regression.  See learn/face.h. */
#include <inttypes.h>
#include <math.h>
#include <shoal/logistic.h>

#include "base/text.h"
#include "learn/classes_face.h"

/* ---- before the run ---------------------------------------------------------------------------------------------- */

static const shoal_option inputs[] = {
    LEARN_CLASSES_INPUTS,
    {"start", 0, SHOAL_OPTION_TEXT, offsetof(learn_inputs, start), "MODEL",
     .help = "start from a model that an earlier run wrote with --model; its columns are matched by name"},
    LEARN_STANDARDISE,
    {0},
};

static const char *start_file(const char **option, const void *config, const learn_inputs *given)
{
    (void)config;
    *option = "--start";
    return given->start;
}

/* Loads an earlier model, if there is one to start from. */
static int settle_logistic(void *into, double *values[4], const learn_inputs *given, const learn_rows *about)
{
    shoal_logistic_config *config = into;
    learn_model_file model = {0};
    int64_t columns = about->columns - 1;
    config->target = about->target;
    if (!given->start)
        return SHOAL_OK;
    int status = learn_model_file_open_as(&model, given->start, "logistic");
    if (status == SHOAL_OK)
        status = learn_model_file_matrix(&values[0], &config->start_outputs, &columns, &model, "weights");
    if (status == SHOAL_OK)
        status = learn_model_file_vector(&values[1], &config->start_outputs, &model, "intercept");
    if (status == SHOAL_OK)
        status = learn_model_file_vector(&values[2], &config->start_classes_count, &model, "classes");
    learn_model_file_close(&model);
    config->start_columns = columns;
    config->start_weights = values[0];
    config->start_intercept = values[1];
    config->start_classes = values[2];
    return status;
}

/* Only a run finds out how many classes there are. */
static void learnt(void *into, const shoal_result *result)
{
    shoal_logistic_config *config = into;
    config->expected_classes = (int64_t)fmax(shoal_result_number(result, "classes"), 0);
}

/* ---- after the run ----------------------------------------------------------------------------------------------- */

static const learn_output outputs[] = {
    {"model", 'm', "FILE.safetensors", "write the model: weights, intercept and classes, for shoal predict",
     .kind = LEARN_MODEL},
    {"picture", 0, "FILE",
     "where rows are images: draw the weights of each class as a small image, in red and blue by their sign: .png or "
     ".svg",
     .kind = LEARN_PICTURE},
    {0},
};

/* Two classes have one row of weights, whose signs speak for one or the other. */
static int draw_logistic(data_sheet *sheet, double **images, const learn_ended *ended)
{
    const shoal_tensor *weights = shoal_result_tensor(ended->result, "weights");
    (void)images;
    sheet->values = weights->values;
    sheet->images = weights->shape[0];
    sheet->of_classes = true;
    return SHOAL_OK;
}

static const char *const parts[] = {"weights", "intercept", "classes", NULL};

static void summarise_logistic(learn_lines *lines, const learn_ended *ended)
{
    const shoal_result *result = ended->result;
    const shoal_tensor *weights = shoal_result_tensor(result, "weights");
    const double *weight = weights->values;
    int64_t count = weights->shape[0] * weights->shape[1], others = 0;
    for (int64_t i = 0; i < count; i++)
        others += weight[i] != 0;
    learn_say(lines, "classes", "%.0f; %" PRId64 " weight%s, %" PRId64 " nonzero",
              shoal_result_number(result, "classes"), count, base_plural(count), others);
    learn_say_descent(lines, ended);
    learn_say(lines, "loss", "%.10g, training accuracy %.2f%%", shoal_result_number(result, "loss"),
              100 * shoal_result_number(result, "accuracy"));
}

/* ---- applying a model -------------------------------------------------------------------------------------------- */

enum { LABELS, PROBABILITIES };
static const learn_output predictions[] = {
    [LABELS] = {"labels", 'l', "FILE", "the most probable class: float64, or words", .kind = LEARN_TENSOR,
                .type = "float64", .rank = 1},
    [PROBABILITIES] = {"probabilities", 'p', "FILE",
                       "write the probability of each class: float64, one column per class", .kind = LEARN_TENSOR,
                       .type = "float64", .rank = 2},
    {0},
};

/* Two classes have one row of weights, more have one each. */
static int load_logistic(learn_applied *out, const learn_model_file *model, const char *path)
{
    shoal_logistic_predict_config *config = out->config;
    int status = learn_model_file_vector(&out->values[0], &config->classes_count, model, "classes");
    if (status == SHOAL_OK && config->classes_count < 2)
        status = shoal_fail(SHOAL_INVALID, "%s: tensor 'classes' has one value; at least two classes are needed", path);
    if (status == SHOAL_OK)
        config->outputs = config->classes_count == 2 ? 1 : config->classes_count;
    if (status == SHOAL_OK)
        status = learn_model_file_matrix(&out->values[1], &config->outputs, &config->columns, model, "weights");
    if (status == SHOAL_OK)
        status = learn_model_file_vector(&out->values[2], &config->outputs, model, "intercept");
    config->classes = out->classes = out->values[0];
    out->classes_count = config->classes_count;
    config->weights = out->values[1];
    config->intercept = out->values[2];
    out->columns = config->columns;
    return status;
}

static void settle_wanted(learn_applied *applied, const learn_rows *rows)
{
    (void)rows;
    ((shoal_logistic_predict_config *)applied->config)->probabilities = applied->wanted[PROBABILITIES];
}

static void shape_probabilities(int64_t *columns, shoal_type *type, const learn_applied *applied, const char *output)
{
    (void)type, (void)output;
    *columns = applied->classes_count;
}

static void summarise_labels(learn_lines *lines, const learn_applied *applied, const shoal_result *result)
{
    learn_say_classes(lines, result, applied);
}

static int tell_labels(shoal_result *facts, const learn_applied *applied, const shoal_result *result)
{
    return learn_tell_classes(facts, result, applied);
}

static const learn_predictor predictor = {
    .algorithm = &shoal_logistic_predict,
    .outputs = predictions,
    .load = load_logistic,
    .settle = settle_wanted,
    .shape = shape_probabilities,
    .summarise = summarise_labels,
    .tell = tell_labels,
    .hint = learn_classes_hint,
};

/* ---- the face ---------------------------------------------------------------------------------------------------- */

static const learn_probe probe = {
    .set = {{"iterations", "10"}, {"tolerance", "0"}},
    .shape = {{4, "2"}, {32, "2"}, {64, "10"}, {256, "2"}, {512, "3"}},
};

static const shoal_option plan_options[] = {
    LEARN_CLASSES_EXPECTED(shoal_logistic_config, expected_classes),
    {0},
};

static const char *const description[] = {
    "Trains a classifier: logistic regression for two classes, softmax regression for more. It minimises the sum over "
    "rows of -log(probability of the row's class), plus l2/2 times the squared weights, plus l1 times the absolute "
    "weights; the intercept is not penalised. That is scikit-learn's objective with C = 1 / l2. Classes are numbers or "
    "words, at most 1,000 different ones. DATA is any file "
    "that shoal data info reads, or the URL of a .npy blob in a store, and holds the target in one of its columns, or "
    "--target names a file with it.",
    "If columns differ widely in scale, convergence is slow: use --standardise. If a plane separates the classes, "
    "there is no minimum without l2 or l1, and the weights grow until --iterations stops the run.",
    "The result depends on the data, the options under Learning, the weights of rows, the start and --grain. The "
    "number of threads or workers and the kernel never change one bit of it.",
    "SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the run after the round it is in: the model is written from the best "
    "point so far, a sentence on stderr says so, and the exit code is 130. A second signal ends it at once, and "
    "nothing is written.",
    NULL,
};

static const learn_example examples[] = {
    {"shoal logistic digits.csv --target class --model digits.safetensors", "train on a column of a text file"},
    {"shoal predict digits.safetensors new.csv --labels labels.npy", "classify new rows"},
    {"shoal logistic images.idx.gz --target labels.idx.gz --l2 100", "the target in a file of its own"},
    {"shoal logistic train-images-idx3-ubyte.gz --target train-labels-idx1-ubyte.gz --l2 1000 --picture weights.png",
     "see which pixels speak for which class"},
    {"shoal logistic rows.npy --l2 0 --l1 5", "a sparse model: most weights are exactly 0"},
    {"shoal logistic rows.npy --start model.safetensors --model better.safetensors", "continue from an earlier model"},
    {"shoal logistic rows.npy --workers local:4 --json", "with four processes, any of which may die"},
    {NULL, NULL},
};

static const learn_example plan_examples[] = {
    {"shoal plan logistic --rows 50e6 --cols 300 --iterations 40 --machines 'azure:eastus/Standard_D*s_v5'",
     "which machines and how many"},
    {NULL, NULL},
};

const learn_face learn_logistic = {
    .algorithm = &shoal_logistic,
    .summary = "train a logistic or softmax classifier",
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .plan_examples = plan_examples,
    .options_title = "Learning",
    .inputs_title = "Target, weights and scaling",
    .inputs = inputs,
    .plan_options = plan_options,
    .outputs = outputs,
    .classes_most = SHOAL_LOGISTIC_CLASSES_MOST,
    .keeps_part = true,
    .kept = "the weights are those",
    .start_file = start_file,
    .settle = settle_logistic,
    .learnt = learnt,
    .summarise = summarise_logistic,
    .draw = draw_logistic,
    .parts = parts,
    .annotate = learn_classes_annotate,
    .predictor = &predictor,
    .probe = &probe,
};
