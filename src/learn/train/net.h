/* A net as text, and the layers it is made of once the shape of its rows is known.
 *
 *     conv 20 5x5 relu        # 20 maps, kernels of 5x5, and what is done to their outputs
 *     pool 2
 *     dense 10 softmax
 *
 * One line a layer; a semicolon is as good as the end of a line.  The text is what travels and what a model keeps: who
 * gets it from elsewhere parses it again, so that no size or offset has to be believed.  Layers are counted as
 * PyTorch's nn.Sequential counts modules: an activation is one of its own, and so is the flatten that a dense layer
 * behind an image implies. */
#ifndef TRAIN_NET_H
#define TRAIN_NET_H

#include <stdbool.h>
#include <stdint.h>

enum { TRAIN_LAYERS_MOST = 192, TRAIN_TEXT_MOST = 4096, TRAIN_SIDE_MOST = 1 << 16 };
/* Of parameters, and of values that a layer gives for one row. */
enum { TRAIN_VALUES_MOST = 1 << 28 };

typedef enum train_kind {
    TRAIN_CONV,
    TRAIN_POOL_MAX,
    TRAIN_POOL_AVERAGE,
    TRAIN_FLATTEN,
    TRAIN_DENSE,
    TRAIN_RELU,
    TRAIN_RELU6,
    TRAIN_TANH,
    TRAIN_LOGISTIC,
    TRAIN_DROPOUT,
    TRAIN_NORM,
    TRAIN_ADD,
    TRAIN_SOFTMAX
} train_kind;

/* Of what goes from layer to layer for one row: maps, one after another, or a plain list of `channels` values. */
typedef struct train_shape {
    int64_t channels, height, width;
    bool flat;
} train_shape;

static inline int64_t train_shape_values(const train_shape *shape)
{
    return shape->channels * shape->height * shape->width;
}

static inline bool train_shape_same(const train_shape *a, const train_shape *b)
{
    return a->channels == b->channels && a->height == b->height && a->width == b->width && a->flat == b->flat;
}

typedef struct train_layer {
    train_kind kind;
    train_shape in, out;
    int64_t kernel_height, kernel_width, stride, pad_top, pad_left; /* of CONV and POOL */
    int64_t groups;           /* of CONV: each output sees the maps of its group */
    double dropped;           /* of DROPOUT: the share that becomes 0 */
    double momentum, epsilon; /* of NORM: the share of running averages that is new; what is added to variances */
    int source;               /* of ADD: it adds what this layer gives, -1 for the rows */
    bool saved;               /* an ADD further on is to see what this layer gives */
    /* Of CONV and DENSE: each output is a bias and `depth` inputs times weights.  Among all parameters the weights
     * begin at `first`, an input's side by side: weight[input * outputs + output]; the biases follow.  A NORM has one
     * weight for each map, or value of a list. */
    int64_t first, depth, outputs;
    int64_t running; /* of NORM: where among the running averages its means begin; its variances follow */
} train_layer;

static inline int64_t train_layer_weights(const train_layer *layer)
{
    return layer->depth * layer->outputs;
}

static inline int64_t train_layer_parameters(const train_layer *layer)
{
    return layer->outputs > 0 ? (layer->depth + 1) * layer->outputs : 0;
}

/* The last layer is a softmax.  Of the first `frozen` layers, which have the first `fixed` parameters, a row gives the
 * same in every step: they learn nothing and drop nothing. */
typedef struct train_net {
    train_shape in;
    int layers;
    train_layer layer[TRAIN_LAYERS_MOST];
    int64_t parameters, classes;
    int64_t running; /* averages that batch norms keep: no parameters, but they follow them wherever these are */
    int frozen;
    int64_t fixed, fixed_running;
    int remembered; /* what the last of so many layers gives is all that the trained ones see of them; 0: it is not */
} train_net;

/* Parameters and running averages. */
static inline int64_t train_net_values(const train_net *net)
{
    return net->parameters + net->running;
}

/* Parameters that are trained; running averages that follow them; and both. */
static inline int64_t train_net_learns(const train_net *net)
{
    return net->parameters - net->fixed;
}

static inline int64_t train_net_averages(const train_net *net)
{
    return net->running - net->fixed_running;
}

static inline int64_t train_net_added(const train_net *net)
{
    return train_net_learns(net) + train_net_averages(net);
}

/* Parses a net for rows of a shape.  SHOAL_USAGE with a sentence that names the line and the layer; `name` is what it
 * calls the text. */
int train_net_parse(train_net *out, const char *text, const char *name, const train_shape *in);
/* Freezes the first `layers` layers, and those behind them that have nothing to learn and leave nothing to chance.
 * SHOAL_USAGE unless there are so many, and weights behind them. */
int train_net_freeze(train_net *net, int64_t layers);
/* The text of a net that is given as text, or as the path of a file with it.  The caller frees *out. */
int train_net_read(char **out, const char *given);
/* Makes a text one line, without remarks, empty lines or more spaces than are needed. */
void train_net_join(char *text);
/* "28x28" or "32x32x3": height, width and, if there are several, channels. */
int train_shape_parse(train_shape *out, const char *text);

/* Floating-point operations of one row, forwards. */
double train_layer_operations(const train_layer *layer);
/* The table of layers that people know from other programs.  The caller frees *out. */
int train_net_describe(char **out, const train_net *net);

#endif
