/* What people see of nets.  See learn/face.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "learn/classes_face.h"
#include "learn/train/follow.h"
#include "learn/train/names.h"
#include "learn/train/need.h"
#include "learn/train/train_internal.h"

/* ---- before the run ---------------------------------------------------------------------------------------------- */

static const shoal_option inputs[] = {
    LEARN_CLASSES_TARGET,
    {"start", 0, SHOAL_OPTION_TEXT, offsetof(learn_inputs, start), "FILE.safetensors",
     .help = "start from the weights of this file, by the names that PyTorch's nn.Sequential gives them: a model of an "
             "earlier run, or weights of a net like this from elsewhere; layers that it does not have, or in another "
             "shape, begin at random"},
    {"start-names", 0, SHOAL_OPTION_TEXT, offsetof(learn_inputs, start_names), "NAME,NAME,...",
     .help = "--start: what the layers with weights are called there, in the order of the net, such as conv1,conv2,fc",
     .default_text = "their numbers, as nn.Sequential has them, or found by their shapes"},
    {"validation-target", 0, SHOAL_OPTION_TEXT, offsetof(learn_inputs, held_target), "COLUMN|FILE",
     .help = "the known classes of the rows of --validation DATA, as --target gives those of the others",
     .default_text = "the same column as --target, or the last one"},
    {"shuffle-rows", 0, SHOAL_OPTION_FLAG, offsetof(learn_inputs, shuffle_rows), NULL,
     .help = "put the rows of DATA in random order, a function of --seed, once they are loaded: for files that are "
             "sorted by class"},
    {0},
};

static const char *start_file(const char **option, const void *config, const learn_inputs *given)
{
    (void)config;
    *option = "--start";
    return given->start;
}

/* A path or URL that --validation names; NULL for a share. */
static const char *validation_data(const train_config *config)
{
    double share;
    return config->validation && !base_parse_real(&share, config->validation) ? config->validation : NULL;
}

static void arrange_train(learn_arrangement *out, void *into, const learn_inputs *given)
{
    train_config *config = into;
    *out = (learn_arrangement){.held = given->of_job ? given->held : validation_data(config),
                               .held_target = given->held_target,
                               .shuffle = given->shuffle_rows,
                               .seed = (uint64_t)config->seed,
                               .held_rows = &config->held};
}

/* The shape of the rows, if their file says one. */
static void note_shape(train_shape *out, const learn_rows *rows)
{
    const int64_t *side = NULL;
    const int dimensions = rows->data ? shoal_data_dimensions(rows->data, &side) : 0;
    if (dimensions == 2 || dimensions == 3)
        *out = (train_shape){.height = side[0], .width = side[1], .channels = dimensions == 3 ? side[2] : 1};
    if (train_shape_values(out) != rows->columns - 1)
        *out = (train_shape){0};
}

/* Whether the words that the classes stand for are those of the model. */
static bool same_classes(const learn_model_file *model, const learn_schema *ours, bool *failed)
{
    learn_schema theirs = {0};
    *failed = learn_model_file_schema(&theirs, model) < 0;
    bool same = !*failed && (!model->learner || theirs.classes_count == (ours ? ours->classes_count : 0));
    for (int64_t i = 0; same && ours && i < theirs.classes_count; i++)
        same = strcmp(theirs.classes[i], ours->classes[i]) == 0;
    learn_schema_release(&theirs);
    return same;
}

static int last_learning(const train_net *net)
{
    int last = net->layers - 1;
    while (net->layer[last].outputs == 0)
        last--;
    return last;
}

/* Weights to start from: any safetensors that have the names.  Layers that are not there, or of another shape, begin
 * anew, and so does the last one where it tells other classes apart. */
static int load_start(train_config *config, double *values[4], const train_net *net, const learn_inputs *given,
                      const learn_rows *about)
{
    learn_model_file model = {0};
    train_names names = {0};
    bool failed = false, any = false;
    const int last = last_learning(net);
    int status = learn_model_file_open_tensors(&model, given->start);
    if (status == SHOAL_OK)
        status = base_alloc(&values[1], (size_t)train_net_values(net), sizeof **values, given->start);
    if (status == SHOAL_OK)
        status = train_names_find(&names, net, &model, given->start_names);
    for (int i = 0; i < net->layers && status == SHOAL_OK; i++) {
        config->started[i] = names.layer[i] && (i != last || same_classes(&model, about->schema, &failed));
        any = any || config->started[i];
        status = failed               ? SHOAL_MEMORY
                 : config->started[i] ? train_names_load(values[1], &names, net, i, &model)
                                      : SHOAL_OK;
    }
    if (status == SHOAL_OK && names.own)
        status = train_names_list((char **)(void *)&values[2], &names);
    train_names_release(&names);
    learn_model_file_close(&model);
    if (status == SHOAL_OK && !any)
        return shoal_fail(SHOAL_INVALID,
                          "--start: %s has no weights for this net: none of its tensors has the name and the shape of "
                          "one of the layers, such as %d.weight",
                          given->start, last);
    config->start = values[1];
    config->start_name = given->start;
    config->start_layers = (const char *)(const void *)values[2];
    return status;
}

/* "layers 0 to 3, 7": those with weights that were taken, or the others. */
static void list_layers(char *out, size_t size, const train_config *config, const train_net *net, bool taken)
{
    size_t length = 0;
    int runs = 0, listed = 0;
    out[0] = '\0';
    for (int i = 0; i < net->layers && length < size; i++) {
        int first = i, end = i;
        if (net->layer[i].outputs == 0 || config->started[i] != taken)
            continue;
        for (int j = i; j < net->layers && (net->layer[j].outputs == 0 || config->started[j] == taken); j++)
            if (net->layer[j].outputs > 0)
                i = end = j, listed++;
        length += (size_t)snprintf(out + length, size - length, end > first ? "%s%d to %d" : "%s%d", runs++ ? ", " : "",
                                   first, end);
    }
    if (length < size) {
        char list[200];
        snprintf(list, sizeof list, "%s", out);
        snprintf(out, size, "layer%s %s", base_plural(listed), list);
    }
}

/* Where all layers are from there, by their own names, nobody needs to be told. */
static int tell_start_train(char **out, const void *untyped, const learn_rows *rows)
{
    const train_config *config = untyped;
    char *text = NULL, taken[240], others[240];
    bool all = true;
    train_net net;
    *out = NULL;
    if (!config->start)
        return SHOAL_OK;
    int status = train_config_net(&net, &text, config, rows->columns - 1);
    base_free(&text);
    for (int i = 0; i < net.layers && status == SHOAL_OK; i++)
        all = all && (net.layer[i].outputs == 0 || config->started[i]);
    if (status == SHOAL_OK && all && config->start_layers)
        return base_format(out, "the layers of %s are, in the order of the net, %s", config->start_name,
                           config->start_layers);
    if (status < 0 || all)
        return status;
    list_layers(taken, sizeof taken, config, &net, true);
    list_layers(others, sizeof others, config, &net, false);
    return base_format(out, "%s from %s; %s begin%s at random", taken, config->start_name, others,
                       strncmp(others, "layers", 6) == 0 ? "" : "s");
}

/* The text of a net in a file is read once, so that all that follows sees the same. */
static int settle_train(void *into, double *values[4], const learn_inputs *given, const learn_rows *about)
{
    train_config *config = into;
    char *text = NULL;
    train_net net;
    config->settled = !given->planned;
    config->target = about->target;
    config->bytes = about->own_type == SHOAL_UINT8;
    note_shape(&config->rows, about);
    int status = train_config_net(&net, &text, config, about->columns - 1);
    if (status < 0)
        return status;
    values[0] = (double *)(void *)text; /* the caller frees it */
    config->text = text;
    return given->start ? load_start(config, values, &net, given, about) : SHOAL_OK;
}

static int check_train(const void *untyped, const learn_inputs *given)
{
    const train_config *config = untyped;
    train_shape shape;
    if (!config->net)
        return shoal_fail(SHOAL_USAGE, "--net is missing: the layers, such as 'dense 32 relu; dense 10 softmax'");
    if (given->start_names && !given->start)
        return shoal_fail(SHOAL_USAGE, "--start-names needs --start FILE: it says what layers are called there");
    if (given->held_target && !validation_data(config))
        return shoal_fail(SHOAL_USAGE, "--validation-target needs --validation DATA: it is the target of that file");
    return config->shape ? train_shape_parse(&shape, config->shape) : SHOAL_OK;
}

/* Without rows, --shape says what they would be. */
static int describe_train(char **out, const void *untyped, const learn_rows *rows)
{
    const train_config *config = untyped;
    char *text = NULL;
    train_net net;
    train_shape shape = {.channels = rows->columns - 1, .height = 1, .width = 1};
    *out = NULL;
    if (rows->columns == 0 && !config->shape)
        return shoal_fail(SHOAL_USAGE,
                          "--describe without DATA needs --shape, such as 28x28: what images the rows are");
    int status = rows->columns == 0 ? train_shape_parse(&shape, config->shape) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = train_config_net(&net, &text, config, train_shape_values(&shape));
    if (status == SHOAL_OK)
        status = train_net_describe(out, &net);
    base_free(&text);
    return status;
}

/* ---- the model as a file ----------------------------------------------------------------------------------------- */

static const learn_output outputs[] = {
    {"model", 'm', "FILE.safetensors",
     "write the net: its text, and its weights by the names that PyTorch's nn.Sequential gives them, for shoal predict",
     .kind = LEARN_MODEL},
    {"picture", 0, "FILE",
     "draw loss and accuracy over the epochs, and the filters of a first layer that is a convolution of one or three "
     "channels: .png or .svg",
     .kind = LEARN_CHART},
    {0},
};

static const char *const parts[] = {"classes", "history", NULL};

static int parse_result(train_net *net, char **text, const shoal_result *result)
{
    const shoal_tensor *tensor = shoal_result_tensor(result, "net");
    const train_shape in = {.channels = (int64_t)shoal_result_number(result, "channels"),
                            .height = (int64_t)shoal_result_number(result, "height"),
                            .width = (int64_t)shoal_result_number(result, "width"),
                            .flat = shoal_result_number(result, "flat") != 0};
    int status = base_copy_text_n(text, tensor->values, (size_t)tensor->shape[0]);
    if (status == SHOAL_OK)
        status = train_net_parse(net, *text, "--net", &in);
    return status;
}

/* What a weight or a bias is called: "3.weight". */
static int name_part(char **out, int layer, const char *what)
{
    return base_format(out, "%d.%s", layer, what);
}

static int add_part(learn_composed *out, int layer, const train_tensor *of, const float *values)
{
    data_tensor *tensor = &out->tensor[out->tensors];
    char *name = NULL;
    int status = name_part(&name, layer, of->name);
    if (status < 0)
        return status;
    *tensor = (data_tensor){.name = name, .type = SHOAL_FLOAT32, .rank = of->rank, .values = values + of->first};
    memcpy(tensor->shape, of->shape, (size_t)of->rank * sizeof *of->shape);
    out->tensors++;
    return SHOAL_OK;
}

static int compose_train(learn_composed *out, const learn_ended *ended)
{
    const float *values = shoal_result_tensor(ended->result, "parameters")->values;
    train_net net;
    int status = parse_result(&net, &out->text, ended->result);
    if (status < 0)
        return status;
    train_net_join(out->text);
    out->key = "net";
    for (int i = 0; i < net.layers; i++) {
        train_tensor parts_of[4];
        const int count = train_tensors(parts_of, &net, i);
        for (int k = 0; k < count && status == SHOAL_OK; k++)
            status = add_part(out, i, &parts_of[k], values);
    }
    return status;
}

/* "loss 0.0312, accuracy 99.02%" */
static void say_scores(learn_lines *lines, const shoal_result *result, const char *loss, const char *accuracy)
{
    learn_say_more(lines, "loss %.4g, accuracy %.2f%%", shoal_result_number(result, loss),
                   100 * shoal_result_number(result, accuracy));
}

/* Trained on and held out; 0 when that is not known. */
static double rows_per_second(const learn_ended *ended)
{
    const double rows = shoal_result_number(ended->result, "steps") * shoal_result_number(ended->result, "batch");
    return ended->seconds > 0 && rows > 0 ? rows / ended->seconds : 0;
}

static void say_epochs(learn_lines *lines, const learn_ended *ended)
{
    const train_config *config = ended->config;
    const shoal_result *result = ended->result;
    const double epochs = shoal_result_number(result, "epochs"), batch = shoal_result_number(result, "batch");
    char steps[32];
    base_format_count(steps, sizeof steps, (int64_t)shoal_result_number(result, "steps"));
    learn_say(lines, "epochs", "%.0f, in %s step%s", epochs, steps,
              base_plural((int64_t)shoal_result_number(result, "steps")));
    if ((double)config->batch > batch)
        learn_say_more(lines, " of all %.0f row%s, since --batch %" PRId64 " is more than there are", batch,
                       base_plural((int64_t)batch), config->batch);
    if (shoal_result_number(result, "stopped_early") > 0)
        learn_say_more(lines, "; the validation loss has not improved for %" PRId64 " epoch%s", config->patience,
                       base_plural(config->patience));
    if (rows_per_second(ended) > 0) {
        base_format_count(steps, sizeof steps, (int64_t)rows_per_second(ended));
        learn_say_more(lines, "; %s rows/s", steps);
    }
}

static void summarise_train(learn_lines *lines, const learn_ended *ended)
{
    const shoal_result *result = ended->result;
    const double epoch = shoal_result_number(result, "epoch");
    char parameters[32];
    base_format_count(parameters, sizeof parameters, (int64_t)shoal_result_number(result, "parameters"));
    learn_say(lines, "net", "%s parameters, %.0f classes", parameters, shoal_result_number(result, "classes"));
    say_epochs(lines, ended);
    if (!isfinite(shoal_result_number(result, "loss")))
        return;
    learn_say(lines, "training", "%s", "");
    say_scores(lines, result, "loss", "accuracy");
    if (epoch == 0 || epoch == shoal_result_number(result, "epochs"))
        learn_say_more(lines, " in the last epoch");
    else
        learn_say_more(lines, " in epoch %.0f, whose weights are kept", epoch);
    if (!isfinite(shoal_result_number(result, "validation_loss")))
        return;
    learn_say(lines, "validation", "%s", "");
    say_scores(lines, result, "validation_loss", "validation_accuracy");
    learn_say_more(lines, " after it");
}

/* The curves, for --json. */
static int tell_train(shoal_result *facts, const learn_ended *ended)
{
    const shoal_tensor *history = shoal_result_tensor(ended->result, "history");
    const double *from = history->values;
    char name[32];
    shoal_result_set(facts, "rows_per_second", rows_per_second(ended) > 0 ? rows_per_second(ended) : NAN);
    for (int k = 0; k < TRAIN_EPOCH_VALUES; k++) {
        snprintf(name, sizeof name, "epoch_%s", train_follow_names[k]);
        double *values = shoal_result_add(facts, name, SHOAL_FLOAT64, 1, &history->shape[0]);
        for (int64_t i = 0; values && i < history->shape[0]; i++)
            values[i] = from[i * TRAIN_EPOCH_VALUES + k];
    }
    return SHOAL_OK;
}

/* ---- as a picture ------------------------------------------------------------------------------------------------ */

/* Loss and accuracy of rows that are trained on, before each step, and of those held out. */
static void draw_epochs(learn_curve *curve, const shoal_result *result, const char *name, int place, int held)
{
    const shoal_tensor *history = shoal_result_tensor(result, "history");
    const double *values = history->values;
    const bool others = isfinite(shoal_result_number(result, "validation_loss"));
    *curve = (learn_curve){
        .name = name,
        .values = values + place,
        .others = others ? values + held : NULL,
        .stride = TRAIN_EPOCH_VALUES,
        .called = {"training", "validation"},
        .picked = others && shoal_result_number(result, "epoch") > 0 ? shoal_result_number(result, "epoch") : NAN,
        .rule = "weights kept"};
}

/* The first layer of weights, where its inputs are what people see. */
static void draw_filters(learn_filters *out, const shoal_result *result)
{
    train_net net;
    char *text = NULL;
    if (parse_result(&net, &text, result) == SHOAL_OK && net.layer[0].kind == TRAIN_CONV &&
        (net.layer[0].in.channels == 1 || net.layer[0].in.channels == 3)) {
        const train_layer *layer = &net.layer[0];
        *out = (learn_filters){
            .values = (const float *)shoal_result_tensor(result, "parameters")->values + layer->first,
            .images = layer->outputs,
            .channels = layer->in.channels,
            .height = layer->kernel_height,
            .width = layer->kernel_width,
        };
        snprintf(out->title, sizeof out->title, "Filters of layer 0: conv %" PRId64 " %" PRId64 "x%" PRId64,
                 layer->outputs, layer->kernel_height, layer->kernel_width);
    }
    base_free(&text);
}

static void chart_train(learn_chart *out, const learn_ended *ended)
{
    const shoal_tensor *history = shoal_result_tensor(ended->result, "history");
    *out = (learn_chart){.title = "Learning curves", .x_name = "epoch", .count = history->shape[0], .curves = 2};
    draw_epochs(&out->curve[0], ended->result, "loss", TRAIN_EPOCH_LOSS, TRAIN_HELD_LOSS);
    draw_epochs(&out->curve[1], ended->result, "accuracy", TRAIN_EPOCH_ACCURACY, TRAIN_HELD_ACCURACY);
    draw_filters(&out->filters, ended->result);
}

static int tell_end_train(char **out, const learn_ended *ended)
{
    const shoal_result *result = ended->result;
    const int64_t step = (int64_t)shoal_result_number(result, "steps");
    const int64_t steps = (int64_t)shoal_result_number(result, "steps_per_epoch");
    const double epoch = shoal_result_number(result, "epoch");
    if (!ended->stopped)
        return base_format(out,
                           "the loss is no longer finite in epoch %" PRId64 ", step %" PRId64
                           ": try a lower --rate than %g, or a --warm-up; the weights are those of epoch %.0f",
                           step / steps + 1, step % steps + 1, shoal_result_number(result, "rate"), epoch);
    if (epoch > 0)
        return base_format(out, "stopped after %" PRId64 " steps; the weights are those that epoch %.0f ended with",
                           step, epoch);
    return base_format(out, "stopped after step %" PRId64 " of epoch %" PRId64 "; the weights are those of that step",
                       step % steps, step / steps + 1);
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

/* One tensor, as float64, to its place among the parameters. */
static int load_part(double *to, const learn_model_file *model, int layer, const train_tensor *of)
{
    char *name = NULL;
    int status = name_part(&name, layer, of->name);
    if (status == SHOAL_OK)
        status = learn_model_file_values(to + of->first, model, name, of->rank, of->shape);
    base_free(&name);
    return status;
}

static int load_layer(double *to, const learn_model_file *model, const train_net *net, int index)
{
    train_tensor parts_of[4];
    const int count = train_tensors(parts_of, net, index);
    int status = SHOAL_OK;
    for (int k = 0; k < count && status == SHOAL_OK; k++)
        status = load_part(to, model, index, &parts_of[k]);
    return status;
}

static int load_parameters(double *to, const train_net *net, const learn_model_file *model)
{
    int status = SHOAL_OK;
    for (int i = 0; i < net->layers && status == SHOAL_OK; i++)
        status = load_layer(to, model, net, i);
    return status;
}

static int load_side(int64_t *out, const learn_model_file *model, const char *key)
{
    double value = NAN;
    int status = learn_model_file_number(&value, model, key);
    if (status == SHOAL_OK && !(value >= 1 && value <= TRAIN_VALUES_MOST && value == floor(value)))
        status = shoal_fail(SHOAL_INVALID, "%s: '%s' is %g in its metadata, not a whole number above 0", model->path,
                            key, value);
    *out = status == SHOAL_OK ? (int64_t)value : 0;
    return status;
}

static int load_shape(train_predict_config *config, const learn_model_file *model)
{
    bool flat = false;
    int status = load_side(&config->channels, model, "channels");
    if (status == SHOAL_OK)
        status = load_side(&config->height, model, "height");
    if (status == SHOAL_OK)
        status = load_side(&config->width, model, "width");
    if (status == SHOAL_OK)
        status = learn_model_file_truth(&flat, model, "flat");
    if (status == SHOAL_OK)
        status = learn_model_file_number(&config->scale, model, "scale");
    if (status == SHOAL_OK)
        status = learn_model_file_number(&config->shift, model, "shift");
    config->flat = flat;
    return status;
}

static int load_train(learn_applied *out, const learn_model_file *model, const char *path)
{
    train_predict_config *config = out->config;
    const char *text = learn_model_file_text(model, "net");
    char *copy = NULL;
    train_net net;
    if (!text)
        return shoal_fail(SHOAL_INVALID, "%s: its metadata lack 'net', the text of the net", path);
    int status = load_shape(config, model);
    const train_shape in = {config->channels, config->height, config->width, config->flat != 0};
    if (status == SHOAL_OK && (status = train_net_parse(&net, text, path, &in)) < 0)
        status = shoal_fail(SHOAL_INVALID, "%s", shoal_error());
    if (status == SHOAL_OK) {
        config->classes_count = net.classes;
        status = learn_model_file_vector(&out->values[0], &config->classes_count, model, "classes");
    }
    if (status == SHOAL_OK)
        status = base_alloc(&out->values[1], (size_t)train_net_values(&net), sizeof(double), path);
    if (status == SHOAL_OK)
        status = load_parameters(out->values[1], &net, model);
    if (status == SHOAL_OK)
        status = base_copy_text(&copy, text);
    if (status < 0)
        return status;
    out->values[2] = (double *)(void *)copy; /* the owner of values frees it */
    config->text = copy;
    config->parameters = out->values[1];
    config->classes = out->classes = out->values[0];
    out->classes_count = config->classes_count;
    out->columns = config->columns = train_shape_values(&in);
    return SHOAL_OK;
}

static void settle_wanted(learn_applied *applied, const learn_rows *rows)
{
    (void)rows;
    ((train_predict_config *)applied->config)->probabilities = applied->wanted[PROBABILITIES];
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
    .algorithm = &train_predict_algorithm,
    .outputs = predictions,
    .load = load_train,
    .settle = settle_wanted,
    .shape = shape_probabilities,
    .summarise = summarise_labels,
    .tell = tell_labels,
    .hint = learn_classes_hint,
};

/* ---- the face ---------------------------------------------------------------------------------------------------- */

static const char *const description[] = {
    "Trains a classifier: a convolutional or dense net, by mini-batches. The net is text, given as --net or in a file, "
    "one line or semicolon a layer; --describe prints what it makes of the rows: the output of each layer, its "
    "parameters and its operations. The loss is the cross-entropy of a row, averaged over a batch, plus l2/2 times the "
    "squared weights and l1 times the absolute ones; biases have no penalty.",
    "DATA is any file that shoal data info reads; rows of images have the shape that their file says (IDX, npy, what "
    "shoal data pack wrote) or --shape names. The target is one of its columns, or a file of its own.",
    "Rows are drawn in random order from runs of them, --strata; a batch is mapped in groups of --group rows, whose "
    "gradient is float32 in one fixed order, is rounded once, and is added up in whole numbers. So the weights depend "
    "on the data and the options under Learning alone: the number of threads or workers and the kernel never change "
    "one bit.",
    "SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the run after the step it is in: the model is written from the weights so "
    "far, a sentence on stderr says so, and the exit code is 130. A second signal ends it at once, and nothing is "
    "written.",
    NULL,
};

static const learn_example examples[] = {
    {"shoal train train-images-idx3-ubyte.gz --target train-labels-idx1-ubyte.gz --net 'conv 20 5x5 relu; pool 2; conv "
     "40 5x5 relu; pool 2; dense 25 relu; dense 10 softmax' --epochs 6 --model digits.safetensors",
     "learn to read digits"},
    {"shoal predict digits.safetensors t10k-images-idx3-ubyte.gz --target t10k-labels-idx1-ubyte.gz --score",
     "how many it gets right"},
    {"shoal train train-images-idx3-ubyte.gz --target train-labels-idx1-ubyte.gz --net net.txt --describe",
     "the layers of a net, without training it"},
    {"shoal train iris.csv --target species --net 'dense 16 tanh; dense 3 softmax' --optimiser adam --batch 16 "
     "--epochs 100 --validation 0.2",
     "a small net on columns of a table, scored on a fifth of the rows"},
    {"shoal train new.npy --target kind --net net.txt --start digits.safetensors --rate 0.01", "go on from a model"},
    {"shoal train flowers.tfrecord --net net.txt --start digits.safetensors --freeze 5",
     "keep its layers 0 to 5, and train only those behind them"},
    {"shoal train flowers.tfrecord --net net.txt --workers local:4", "with four processes, any of which may die"},
    {NULL, NULL},
};

static const learn_example plan_examples[] = {
    {"shoal plan train --rows 60000 --cols 785 --net 'dense 100 relu; dense 10 softmax' --machines "
     "'azure:eastus/Standard_D*s_v5'",
     "which machines and how many"},
    {NULL, NULL},
};

const learn_face learn_train = {
    .algorithm = &train_algorithm,
    .summary = "train a convolutional or dense net",
    .synopsis = "--net NET [options]",
    .description = description,
    .examples = examples,
    .plan_examples = plan_examples,
    .options_title = "Learning",
    .inputs_title = "Target and start",
    .inputs = inputs,
    .outputs = outputs,
    .classes_most = LEARN_CLASSES_MOST,
    .keeps_part = true,
    .check = check_train,
    .start_file = start_file,
    .foreign_start = true,
    .arrange = arrange_train,
    .settle = settle_train,
    .tell_start = tell_start_train,
    .need = train_need,
    .describe = describe_train,
    .tell_round = train_follow,
    .history = train_follow_names,
    .summarise = summarise_train,
    .tell_end = tell_end_train,
    .tell = tell_train,
    .chart = chart_train,
    .parts = parts,
    .compose = compose_train,
    .annotate = learn_classes_annotate,
    .predictor = &predictor,
};
