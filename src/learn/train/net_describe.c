/* The table of a net's layers: what each gives, its parameters and its operations.  See net.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/text.h"
#include "learn/train/net.h"

enum { NAME_BYTES = 64 };

double train_layer_operations(const train_layer *layer)
{
    const double in = (double)train_shape_values(&layer->in), out = (double)train_shape_values(&layer->out);
    switch (layer->kind) {
    case TRAIN_CONV:
    case TRAIN_DENSE: return 2 * (double)layer->depth * out;
    case TRAIN_POOL_MAX:
    case TRAIN_POOL_AVERAGE: return (double)(layer->kernel_height * layer->kernel_width) * out;
    case TRAIN_NORM: return 2 * in;
    case TRAIN_FLATTEN: return 0;
    default: return in;
    }
}

static const char *kind_name(train_kind kind)
{
    static const char *const names[] = {
        [TRAIN_CONV] = "conv",       [TRAIN_POOL_MAX] = "max pool", [TRAIN_POOL_AVERAGE] = "average pool",
        [TRAIN_FLATTEN] = "flatten", [TRAIN_DENSE] = "dense",       [TRAIN_RELU] = "relu",
        [TRAIN_RELU6] = "relu6",     [TRAIN_TANH] = "tanh",         [TRAIN_LOGISTIC] = "logistic",
        [TRAIN_DROPOUT] = "dropout", [TRAIN_NORM] = "batch norm",   [TRAIN_ADD] = "add",
        [TRAIN_SOFTMAX] = "softmax"};
    return names[kind];
}

/* "3 conv 5x5, stride 2" */
static void name_layer(char out[NAME_BYTES], const train_layer *layer, int index, bool frozen)
{
    const bool depthwise = layer->kind == TRAIN_CONV && layer->groups > 1 && layer->groups == layer->outputs &&
                           layer->groups == layer->in.channels;
    int length = snprintf(out, NAME_BYTES, "%d %s", index, depthwise ? "depthwise" : kind_name(layer->kind));
    if (layer->kernel_height > 0)
        length += snprintf(out + length, (size_t)(NAME_BYTES - length), " %" PRId64 "x%" PRId64, layer->kernel_height,
                           layer->kernel_width);
    if (layer->kernel_height > 0 && layer->stride != (layer->kind == TRAIN_CONV ? 1 : layer->kernel_height))
        length += snprintf(out + length, (size_t)(NAME_BYTES - length), ", stride %" PRId64, layer->stride);
    if (layer->pad_top > 0 || layer->pad_left > 0)
        length += snprintf(out + length, (size_t)(NAME_BYTES - length), ", padded");
    if (layer->groups > 1 && !depthwise)
        length += snprintf(out + length, (size_t)(NAME_BYTES - length), ", %" PRId64 " groups", layer->groups);
    if (layer->kind == TRAIN_ADD && layer->source < 0)
        length += snprintf(out + length, (size_t)(NAME_BYTES - length), " the rows");
    else if (layer->kind == TRAIN_ADD)
        length += snprintf(out + length, (size_t)(NAME_BYTES - length), " %d", layer->source);
    if (layer->kind == TRAIN_DROPOUT)
        length += snprintf(out + length, (size_t)(NAME_BYTES - length), " %g", layer->dropped);
    if (frozen)
        snprintf(out + length, (size_t)(NAME_BYTES - length), ", frozen");
}

static void name_shape(char out[NAME_BYTES], const train_shape *shape)
{
    if (shape->flat)
        snprintf(out, NAME_BYTES, "%" PRId64, shape->channels);
    else
        snprintf(out, NAME_BYTES, "%" PRId64 " x %" PRId64 " x %" PRId64, shape->channels, shape->height, shape->width);
}

static void put_row(FILE *to, int width, const char *name, const char *shape, int64_t parameters, double operations)
{
    char of_parameters[32], of_operations[32];
    base_format_count(of_parameters, sizeof of_parameters, parameters);
    base_format_count(of_operations, sizeof of_operations, (int64_t)operations);
    fprintf(to, "%-*s %-18s %12s %16s\n", width, name, shape, of_parameters, of_operations);
}

int train_net_describe(char **out, const train_net *net)
{
    char *text = NULL, name[NAME_BYTES], shape[NAME_BYTES];
    size_t size = 0;
    int width = 28;
    double operations = 0, trained = 0;
    *out = NULL;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return shoal_fail(SHOAL_MEMORY, "out of memory for the table of a net");
    for (int i = 0; i < net->layers; i++) {
        name_layer(name, &net->layer[i], i, i < net->frozen);
        width = (int)strlen(name) > width ? (int)strlen(name) : width;
    }
    fprintf(to, "%-*s %-18s %12s %16s\n", width, "layer", "output", "parameters", "operations");
    name_shape(shape, &net->in);
    put_row(to, width, "  rows", shape, 0, 0);
    for (int i = 0; i < net->layers; i++) {
        const train_layer *layer = &net->layer[i];
        name_layer(name, layer, i, i < net->frozen);
        name_shape(shape, &layer->out);
        put_row(to, width, name, shape, train_layer_parameters(layer), train_layer_operations(layer));
        operations += train_layer_operations(layer);
        trained += i < net->frozen ? 0 : train_layer_operations(layer);
    }
    put_row(to, width, "  in all", "", net->parameters, operations);
    if (net->frozen > 0)
        put_row(to, width, "  trained", "", train_net_learns(net), trained);
    const bool failed = ferror(to);
    int status = fclose(to) != 0 || failed ? shoal_fail(SHOAL_MEMORY, "out of memory for the table of a net")
                                           : base_copy_text(out, text);
    free(text);
    return status;
}
