/* Any bytes as a file of weights: a model that shoal predict would load, and a start for several nets.  What is read is
 * whole, and what is not is refused with a message that names the file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "learn/face.h"
#include "learn/train/names.h"
#include "learn/train/train_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must_name_the_file(void)
{
    if (!strstr(shoal_error(), "input") && !strstr(shoal_error(), "--start") && !strstr(shoal_error(), "memory"))
        abort();
}

static void must_be_finite(const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            abort();
}

static void predict(const learn_model_file *model, const learn_predictor *predictor)
{
    learn_applied applied = {0};
    if (base_alloc(&applied.config, 1, predictor->algorithm->config_size, "a model") < 0)
        return;
    if (predictor->load(&applied, model, "input") < 0) {
        must_name_the_file();
    } else {
        const train_predict_config *config = applied.config;
        const train_shape in = {config->channels, config->height, config->width, config->flat != 0};
        train_net net;
        if (train_net_parse(&net, config->text, "input", &in) < 0 || applied.columns != train_shape_values(&in) ||
            net.classes != applied.classes_count)
            abort();
        must_be_finite(config->parameters, train_net_values(&net));
        must_be_finite(config->classes, config->classes_count);
    }
    for (int i = 0; i < LEARN_VALUES_MOST; i++)
        base_free(&applied.values[i]);
    base_free(&applied.config);
}

static void start(const learn_model_file *model, const train_net *net, const char *given)
{
    train_names names = {0};
    double *values = NULL;
    char *list = NULL;
    if (train_names_find(&names, net, model, given) < 0) {
        must_name_the_file();
        return;
    }
    if (base_alloc(&values, (size_t)train_net_values(net), sizeof *values, "input") < 0)
        abort();
    for (int i = 0; i < net->layers; i++)
        if (names.layer[i] && train_names_load(values, &names, net, i, model) < 0)
            must_name_the_file();
        else
            must_be_finite(values, train_net_values(net));
    if (train_names_list(&list, &names) < 0)
        abort();
    base_free(&list);
    base_free(&values);
    train_names_release(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const texts[] = {"dense 2 softmax", "conv 2 2x2 relu; batch norm; dense 2; dense 2 softmax",
                                        "depthwise 2x2; conv 2 1x1; conv 2 1x1; global pool; dense 2 softmax"};
    static const char *const given[] = {NULL, "conv1,norm,fc1,fc2", "a", "a,,b,c,d"};
    const train_shape in = {2, 3, 3, false};
    learn_model_file model = {.path = "input"};
    if (data_safetensors_parse(&model.file, bytes, size, "input") < 0)
        return 0;
    model.learner = data_safetensors_metadata(model.file, "learner");
    predict(&model, learn_face_find("train")->predictor);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t k = 0; k < sizeof given / sizeof *given; k++) {
            train_net net;
            if (train_net_parse(&net, texts[i], "--net", &in) < 0)
                abort();
            start(&model, &net, given[k]);
        }
    learn_model_file_close(&model);
    return 0;
}
