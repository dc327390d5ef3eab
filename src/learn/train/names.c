/* What the layers of a net are called in a file of weights.  See names.h. */
#include "learn/train/names.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

int train_tensors(train_tensor out[4], const train_net *net, int index)
{
    const train_layer *layer = &net->layer[index];
    const bool conv = layer->kind == TRAIN_CONV, norm = layer->kind == TRAIN_NORM;
    const int64_t running = net->parameters + layer->running;
    out[0] = (train_tensor){.name = "weight",
                            .first = layer->first,
                            .rank = conv   ? 4
                                    : norm ? 1
                                           : 2,
                            .shape = {layer->outputs, conv ? layer->in.channels / layer->groups : layer->depth,
                                      layer->kernel_height, layer->kernel_width}};
    out[1] = (train_tensor){"bias", layer->first + train_layer_weights(layer), {layer->outputs}, 1};
    out[2] = (train_tensor){"running_mean", running, {layer->outputs}, 1};
    out[3] = (train_tensor){"running_var", running + layer->outputs, {layer->outputs}, 1};
    return layer->outputs == 0 ? 0 : norm ? 4 : 2;
}

static bool is_missing_bias(const learn_model_file *model, const train_tensor *part, const char *name)
{
    return strcmp(part->name, "bias") == 0 && !learn_model_file_has(model, name);
}

/* Whether the file has all tensors of a layer by this name. */
static int fits(bool *out, const train_net *net, int index, const learn_model_file *model, const char *layer)
{
    train_tensor part[4];
    const int count = train_tensors(part, net, index);
    *out = count > 0;
    for (int k = 0; k < count && *out; k++) {
        char *name = NULL;
        int status = base_format(&name, "%s.%s", layer, part[k].name);
        if (status < 0)
            return status;
        *out =
            learn_model_file_fits(model, name, part[k].rank, part[k].shape) || is_missing_bias(model, &part[k], name);
        base_free(&name);
    }
    return SHOAL_OK;
}

void train_names_release(train_names *names)
{
    for (int i = 0; i < TRAIN_LAYERS_MOST; i++)
        base_free(&names->layer[i]);
}

/* ---- by number, by what is given, by shape ----------------------------------------------------------------------- */

static int find_numbers(train_names *out, bool *any, const train_net *net, const learn_model_file *model)
{
    int status = SHOAL_OK;
    for (int i = 0; i < net->layers && status == SHOAL_OK; i++) {
        char number[16];
        bool there = false;
        snprintf(number, sizeof number, "%d", i);
        status = fits(&there, net, i, model, number);
        if (status == SHOAL_OK && there)
            status = base_copy_text(&out->layer[i], number);
        *any = *any || there;
    }
    return status;
}

static int count_learning(const train_net *net)
{
    int count = 0;
    for (int i = 0; i < net->layers; i++)
        count += net->layer[i].outputs > 0;
    return count;
}

static int take_given(train_names *out, const train_net *net, const learn_model_file *model, const char *given)
{
    const char *at = given;
    int taken = 0, status = SHOAL_OK;
    for (int i = 0; i < net->layers && at && status == SHOAL_OK; i++) {
        const size_t length = strcspn(at, ",");
        bool there = false;
        if (net->layer[i].outputs == 0)
            continue;
        status = base_copy_text_n(&out->layer[i], at, length);
        if (status == SHOAL_OK)
            status = fits(&there, net, i, model, out->layer[i]);
        if (status == SHOAL_OK && !there)
            status = shoal_fail(SHOAL_INVALID,
                                "--start-names: '%s' of %s does not have the tensors of layer %d, or not in "
                                "their shapes",
                                out->layer[i], model->path, i);
        taken++;
        at = at[length] ? at + length + 1 : NULL;
    }
    const int needed = count_learning(net);
    if (status == SHOAL_OK && (at || taken < needed))
        status = shoal_fail(SHOAL_USAGE, "--start-names has %s names than the net has layers with weights, %d",
                            at ? "more" : "fewer", needed);
    out->own = true;
    return status;
}

/* The names of layers in the file: of all tensors that are a "weight". */
static int layer_of(char **out, const data_tensor *tensor)
{
    const size_t length = strlen(tensor->name), end = strlen(".weight");
    *out = NULL;
    if (length <= end || strcmp(tensor->name + length - end, ".weight") != 0)
        return SHOAL_OK;
    return base_copy_text_n(out, tensor->name, length - end);
}

/* Which layers of the net have the tensors of this one. */
static int find_same(int *first, int *count, const train_net *net, const learn_model_file *model, const char *layer)
{
    *count = 0;
    for (int i = 0; i < net->layers; i++) {
        bool there = false;
        int status = fits(&there, net, i, model, layer);
        if (status < 0)
            return status;
        if (there && (*count)++ == 0)
            *first = i;
    }
    return SHOAL_OK;
}

static int fail_ambiguous(const learn_model_file *model, const char *one, const char *other)
{
    return shoal_fail(
        SHOAL_INVALID,
        "--start: %s has names of its own, and '%s' may be the same layer of the net as '%s': --start-names "
        "gives those of the layers with weights, in the order of the net",
        model->path, one, other);
}

static int match_shapes(train_names *out, const train_net *net, const learn_model_file *model)
{
    int status = SHOAL_OK;
    for (int t = 0; t < data_safetensors_count(model->file) && status == SHOAL_OK; t++) {
        char *layer = NULL;
        int first = 0, count = 0;
        status = layer_of(&layer, data_safetensors_at(model->file, t));
        if (status == SHOAL_OK && layer)
            status = find_same(&first, &count, net, model, layer);
        if (status == SHOAL_OK && count == 1 && out->layer[first])
            status = fail_ambiguous(model, out->layer[first], layer);
        else if (status == SHOAL_OK && count > 1)
            status =
                shoal_fail(SHOAL_INVALID,
                           "--start: %s has names of its own, and '%s' may be any of %d layers: --start-names gives "
                           "those of the layers with weights, in the order of the net",
                           model->path, layer, count);
        else if (status == SHOAL_OK && count == 1) {
            out->layer[first] = layer;
            layer = NULL;
        }
        base_free(&layer);
    }
    out->own = true;
    return status;
}

int train_names_find(train_names *out, const train_net *net, const learn_model_file *model, const char *given)
{
    bool any = false;
    *out = (train_names){0};
    int status = given ? take_given(out, net, model, given) : find_numbers(out, &any, net, model);
    if (status == SHOAL_OK && !given && !any && !model->learner)
        status = match_shapes(out, net, model);
    if (status < 0)
        train_names_release(out);
    return status;
}

/* ---- using them -------------------------------------------------------------------------------------------------- */

int train_names_load(double *to, const train_names *names, const train_net *net, int index,
                     const learn_model_file *model)
{
    train_tensor part[4];
    const int count = train_tensors(part, net, index);
    int status = SHOAL_OK;
    for (int k = 0; k < count && status == SHOAL_OK; k++) {
        char *name = NULL;
        status = base_format(&name, "%s.%s", names->layer[index], part[k].name);
        if (status == SHOAL_OK && !is_missing_bias(model, &part[k], name)) /* which is 0: memory is zeroed */
            status = learn_model_file_values(to + part[k].first, model, name, part[k].rank, part[k].shape);
        base_free(&name);
    }
    return status;
}

int train_names_list(char **out, const train_names *names)
{
    char *text = NULL;
    int status = base_copy_text(&text, "");
    for (int i = 0; i < TRAIN_LAYERS_MOST && status == SHOAL_OK; i++) {
        char *longer = NULL;
        if (!names->layer[i])
            continue;
        status = base_format(&longer, "%s%s%s", text, text[0] ? ", " : "", names->layer[i]);
        base_free(&text);
        text = longer;
    }
    *out = text;
    return status;
}
