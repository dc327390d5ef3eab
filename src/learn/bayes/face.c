/* What people see of naive Bayes.  See learn/face.h. */
#include <inttypes.h>
#include <math.h>

#include "learn/bayes/bayes_internal.h"
#include "learn/classes_face.h"

/* ---- before the run ---------------------------------------------------------------------------------------------- */

static const shoal_option inputs[] = {LEARN_CLASSES_INPUTS, LEARN_STANDARDISE, {0}};

static int settle_bayes(void *config, double *values[4], const learn_inputs *given, const learn_rows *about)
{
    (void)values;
    (void)given;
    ((bayes_config *)config)->target = about->target;
    return SHOAL_OK;
}

/* Only a run finds out how many classes there are. */
static void learnt(void *config, const shoal_result *result)
{
    ((bayes_config *)config)->expected_classes = (int64_t)fmax(shoal_result_number(result, "classes"), 0);
}

/* ---- after the run ----------------------------------------------------------------------------------------------- */

static const learn_output outputs[] = {
    {"model", 'm', "FILE.safetensors", "write the model: means, variances, priors and classes, for shoal predict",
     .kind = LEARN_MODEL},
    {0},
};

static const char *const parts[] = {"classes", "means", "variances", "priors", "counts", NULL};

static void summarise_bayes(learn_lines *lines, const learn_ended *ended)
{
    const shoal_tensor *counts = shoal_result_tensor(ended->result, "counts");
    const double *count = counts->values;
    double least = count[0], most = count[0];
    for (int64_t i = 1; i < counts->shape[0]; i++) {
        least = fmin(least, count[i]);
        most = fmax(most, count[i]);
    }
    learn_say_sizes(lines, "classes", counts->shape[0], least, most);
    learn_say(lines, "smoothing", "%.4g, added to every variance", shoal_result_number(ended->result, "smoothing"));
    learn_say(lines, "likelihood", "%.10g (natural logarithm)", shoal_result_number(ended->result, "log_likelihood"));
}

/* ---- applying a model -------------------------------------------------------------------------------------------- */

enum { LABELS, PROBABILITIES };
static const learn_output predictions[] = {
    [LABELS] = {"labels", 'l', "FILE", "the same", .kind = LEARN_TENSOR, .type = "float64", .rank = 1},
    [PROBABILITIES] = {"probabilities", 'p', "FILE", "the same", .kind = LEARN_TENSOR, .type = "float64", .rank = 2},
    {0},
};

static int load_bayes(learn_applied *out, const learn_model_file *model, const char *path)
{
    bayes_predict_config *config = out->config;
    (void)path;
    int status = learn_model_file_vector(&out->values[0], &config->classes_count, model, "classes");
    if (status == SHOAL_OK)
        status = learn_model_file_matrix(&out->values[1], &config->classes_count, &config->columns, model, "means");
    if (status == SHOAL_OK)
        status = learn_model_file_matrix(&out->values[2], &config->classes_count, &config->columns, model, "variances");
    if (status == SHOAL_OK)
        status = learn_model_file_vector(&out->values[3], &config->classes_count, model, "priors");
    config->classes = out->classes = out->values[0];
    out->classes_count = config->classes_count;
    config->means = out->values[1];
    config->variances = out->values[2];
    config->priors = out->values[3];
    out->columns = config->columns;
    return status;
}

static void settle_wanted(learn_applied *applied, const learn_rows *rows)
{
    (void)rows;
    ((bayes_predict_config *)applied->config)->probabilities = applied->wanted[PROBABILITIES];
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
    .algorithm = &bayes_predict_algorithm,
    .outputs = predictions,
    .load = load_bayes,
    .settle = settle_wanted,
    .shape = shape_probabilities,
    .summarise = summarise_labels,
    .tell = tell_labels,
    .hint = learn_classes_hint,
};

/* ---- the face ---------------------------------------------------------------------------------------------------- */

static const learn_probe probe = {.shape = {{4, "2"}, {32, "2"}, {64, "10"}, {256, "2"}, {512, "3"}}};

static const shoal_option plan_options[] = {LEARN_CLASSES_EXPECTED(bayes_config, expected_classes), {0}};

static const char *const description[] = {
    "Finds the mean and the variance of every column in each class, and how frequent each class is: Gaussian naive "
    "Bayes, which assumes that columns are independent within a class. A row is assigned to the class for which the "
    "prior times the product of normal densities is greatest, as in scikit-learn's GaussianNB. Classes are numbers or "
    "words, at most 1,000 different ones. DATA is any file that shoal data info reads, or the URL of a .npy blob in a "
    "store, and holds the target in one of its columns, or --target names a file with it.",
    "It takes three rounds: classes, means, variances. The result depends on the data, the options under Learning and "
    "the weights of rows alone. The number of threads or workers, the grain and the kernel never change one bit of it.",
    "SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the run after the round it is in; nothing is written before the last, a "
    "sentence on stderr says so, and the exit code is 130.",
    NULL,
};

static const learn_example examples[] = {
    {"shoal bayes iris.csv --target species --model iris.safetensors", "train on a column of a text file"},
    {"shoal predict iris.safetensors new.csv --labels labels.npy", "classify new rows"},
    {"shoal bayes images.idx.gz --target labels.idx.gz --smoothing 0.01", "the target in a file of its own"},
    {"shoal bayes rows.npy --priors uniform --json", "equal priors, however frequent the classes are"},
    {"shoal bayes rows.npy --workers local:4 --model m.safetensors", "with four processes, any of which may die"},
    {NULL, NULL},
};

static const learn_example plan_examples[] = {
    {"shoal plan bayes --rows 1e9 --cols 100 --classes 5 --machines 'aws:us-east-1/c7i.*'",
     "which machines and how many"},
    {NULL, NULL},
};

const learn_face learn_bayes = {
    .algorithm = &bayes_algorithm,
    .summary = "train a Gaussian naive Bayes classifier",
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .plan_examples = plan_examples,
    .options_title = "Learning",
    .inputs_title = "Target, weights and scaling",
    .inputs = inputs,
    .plan_options = plan_options,
    .outputs = outputs,
    .classes_most = LEARN_CLASSES_MOST,
    .settle = settle_bayes,
    .learnt = learnt,
    .summarise = summarise_bayes,
    .parts = parts,
    .annotate = learn_classes_annotate,
    .predictor = &predictor,
    .probe = &probe,
};
