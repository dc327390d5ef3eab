/* From the text of a net to its layers.  See net.h. */
#include "learn/train/net.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"

enum { WORDS_MOST = 12, WORD_BYTES = 32, LINE_BYTES = 200, SAVED_MOST = 16 };

/* What a later line is to add. */
typedef struct net_saved {
    char name[WORD_BYTES];
    int layer;  /* what this one gives; -1: the rows */
    int number; /* of the line */
    bool added;
} net_saved;

/* A line, cut into words, and where it stands. */
typedef struct net_line {
    train_net *net;
    const char *name; /* of the text */
    bool of_lines;    /* the text has several lines, else layers are counted */
    int number;
    char text[LINE_BYTES];
    char word[WORDS_MOST][WORD_BYTES];
    int words, at;               /* at: the next one that was not taken */
    net_saved saved[SAVED_MOST]; /* by the lines before */
    int saves;
} net_line;

static int fail_line(const net_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *line_or_layer(const net_line *line)
{
    return line->of_lines ? "line" : "layer";
}

static int fail_line(const net_line *line, const char *format, ...)
{
    char why[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return shoal_fail(SHOAL_USAGE, "%s, %s %d, '%s': %s", line->name, line_or_layer(line), line->number, line->text,
                      why);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static const char *next_word(net_line *line)
{
    return line->at < line->words ? line->word[line->at++] : NULL;
}

/* Takes the next word if it is this one. */
static bool take_word(net_line *line, const char *word)
{
    const bool is = line->at < line->words && strcmp(line->word[line->at], word) == 0;
    line->at += is;
    return is;
}

static int take_count(int64_t *out, net_line *line, const char *what, int64_t least)
{
    const char *word = next_word(line);
    if (!word)
        return fail_line(line, "%s is missing", what);
    if (!base_parse_count(out, word) || *out < least || *out > TRAIN_SIDE_MOST)
        return fail_line(line, "%s is '%s', not a whole number from %" PRId64 " to %d", what, word, least,
                         TRAIN_SIDE_MOST);
    return SHOAL_OK;
}

/* Whole numbers with an x between them; returns how many there are, 0 where there is anything else. */
static int parse_sides(int64_t *out, int most, const char *text)
{
    char part[WORD_BYTES];
    int count = 0;
    for (;; count++) {
        const size_t length = strcspn(text, "x");
        if (count == most || length >= sizeof part)
            return 0;
        memcpy(part, text, length);
        part[length] = '\0';
        if (!base_parse_count(&out[count], part) || out[count] < 1 || out[count] > TRAIN_SIDE_MOST)
            return 0;
        if (!text[length])
            return count + 1;
        text += length + 1;
    }
}

/* "5x5", or "5" for the same. */
static int take_kernel(train_layer *layer, net_line *line)
{
    int64_t side[2] = {0};
    const char *word = next_word(line);
    if (!word)
        return fail_line(line, "the size of the kernel is missing, such as 5x5");
    const int count = parse_sides(side, 2, word);
    if (count == 0)
        return fail_line(line, "'%s' is not the size of a kernel, such as 5x5", word);
    layer->kernel_height = side[0];
    layer->kernel_width = side[count - 1];
    return SHOAL_OK;
}

int train_shape_parse(train_shape *out, const char *text)
{
    int64_t side[3] = {0};
    const int count = strlen(text) < WORD_BYTES ? parse_sides(side, 3, text) : 0;
    if (count < 2)
        return shoal_fail(SHOAL_USAGE, "'%s' is not HEIGHTxWIDTH or HEIGHTxWIDTHxCHANNELS, such as 28x28", text);
    *out = (train_shape){.height = side[0], .width = side[1], .channels = count == 3 ? side[2] : 1};
    return SHOAL_OK;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    train_kind kind;
} activations[] = {{"relu", TRAIN_RELU},
                   {"relu6", TRAIN_RELU6},
                   {"tanh", TRAIN_TANH},
                   {"logistic", TRAIN_LOGISTIC},
                   {"softmax", TRAIN_SOFTMAX}};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

static const train_shape *shape_behind(const train_net *net)
{
    return net->layers > 0 ? &net->layer[net->layers - 1].out : &net->in;
}

static int add_layer(net_line *line, train_layer *layer)
{
    train_net *net = line->net;
    layer->in = *shape_behind(net);
    if (net->layers == TRAIN_LAYERS_MOST)
        return fail_line(line, "a net has at most %d layers", TRAIN_LAYERS_MOST);
    if (net->layers > 0 && net->layer[net->layers - 1].kind == TRAIN_SOFTMAX)
        return fail_line(line, "nothing may follow the softmax");
    const double values = (double)layer->out.channels * (double)layer->out.height * (double)layer->out.width;
    const double parameters = (double)net->parameters + ((double)layer->depth + 1) * (double)layer->outputs;
    if (values > TRAIN_VALUES_MOST)
        return fail_line(line, "it gives %.0f values for a row, more than %d", values, TRAIN_VALUES_MOST);
    if (parameters > TRAIN_VALUES_MOST)
        return fail_line(line, "the net would have %.0f parameters, more than %d", parameters, TRAIN_VALUES_MOST);
    layer->first = net->parameters;
    net->parameters += train_layer_parameters(layer);
    layer->running = net->running;
    net->running += layer->kind == TRAIN_NORM ? 2 * layer->outputs : 0;
    net->layer[net->layers++] = *layer;
    return SHOAL_OK;
}

/* Makes a list of values of what a layer before gave as maps. */
static int add_flatten(net_line *line)
{
    const train_shape *in = shape_behind(line->net);
    train_layer layer = {.kind = TRAIN_FLATTEN,
                         .out = {.channels = train_shape_values(in), .height = 1, .width = 1, .flat = true}};
    return add_layer(line, &layer);
}

static int add_activation(net_line *line, train_kind kind)
{
    const bool flattens = kind == TRAIN_SOFTMAX && !shape_behind(line->net)->flat;
    int status = flattens ? add_flatten(line) : SHOAL_OK;
    train_layer layer = {.kind = kind, .out = *shape_behind(line->net)};
    return status == SHOAL_OK ? add_layer(line, &layer) : status;
}

/* What may stand at the end of a line with weights. */
static int take_activation(net_line *line)
{
    const char *word = next_word(line);
    for (int i = 0; word && i < ACTIVATIONS; i++)
        if (strcmp(word, activations[i].name) == 0)
            return add_activation(line, activations[i].kind);
    return word ? fail_line(line, "'%s' is not understood here", word) : SHOAL_OK;
}

/* Along one side: how many places a kernel has. */
static int64_t places(int64_t side, int64_t kernel, int64_t stride, int64_t padding)
{
    return side + padding < kernel ? 0 : (side + padding - kernel) / stride + 1;
}

/* What "same" adds along one side, so that there are as many places as without a kernel. */
static int64_t same_padding(int64_t side, int64_t kernel, int64_t stride)
{
    const int64_t wanted = ((side + stride - 1) / stride - 1) * stride + kernel - side;
    return wanted > 0 ? wanted : 0;
}

/* [stride S] [pad P|same|valid] [groups G], in any order; a pool has strides alone. */
static int take_steps(int64_t *pad_height, int64_t *pad_width, train_layer *layer, net_line *line)
{
    const train_shape *in = shape_behind(line->net);
    int64_t pad = 0;
    bool same = false;
    int status = SHOAL_OK;
    for (;;) {
        if (status == SHOAL_OK && take_word(line, "stride")) {
            status = take_count(&layer->stride, line, "the stride", 1);
        } else if (status == SHOAL_OK && layer->kind == TRAIN_CONV && take_word(line, "pad")) {
            same = take_word(line, "same");
            if (!same && !take_word(line, "valid"))
                status = take_count(&pad, line, "the padding", 0);
        } else if (status == SHOAL_OK && layer->kind == TRAIN_CONV && layer->groups == 0 && take_word(line, "groups")) {
            status = take_count(&layer->groups, line, "the number of groups", 1);
        } else {
            break;
        }
    }
    *pad_height = same ? same_padding(in->height, layer->kernel_height, layer->stride) : 2 * pad;
    *pad_width = same ? same_padding(in->width, layer->kernel_width, layer->stride) : 2 * pad;
    layer->pad_top = *pad_height / 2;
    layer->pad_left = *pad_width / 2;
    return status;
}

/* Where a kernel has its places, once its size and steps are known. */
static int place_kernel(train_layer *layer, const net_line *line, int64_t pad_height, int64_t pad_width)
{
    const train_shape *in = shape_behind(line->net);
    layer->out.height = places(in->height, layer->kernel_height, layer->stride, pad_height);
    layer->out.width = places(in->width, layer->kernel_width, layer->stride, pad_width);
    if (layer->out.height > 0 && layer->out.width > 0)
        return SHOAL_OK;
    return fail_line(line, "a kernel of %" PRId64 "x%" PRId64 " does not fit into what it sees, %" PRId64 "x%" PRId64,
                     layer->kernel_height, layer->kernel_width, in->height + pad_height, in->width + pad_width);
}

static int refuse_flat(const net_line *line)
{
    const train_shape *in = shape_behind(line->net);
    if (!in->flat)
        return SHOAL_OK;
    return line->net->layers > 0
               ? fail_line(line, "it needs maps, but what comes before it is a list of %" PRId64 " values",
                           in->channels)
               : fail_line(line,
                           "it needs images, but the rows are lists of %" PRId64
                           " values; --shape HEIGHTxWIDTH says what images they are",
                           in->channels);
}

/* Its kernel, and what follows that; groups that the layer has already are not asked for. */
static int add_conv(net_line *line, train_layer *layer, int64_t maps)
{
    int64_t pad_height = 0, pad_width = 0;
    const int64_t channels = shape_behind(line->net)->channels;
    int status = take_kernel(layer, line);
    if (status == SHOAL_OK)
        status = take_steps(&pad_height, &pad_width, layer, line);
    if (status == SHOAL_OK)
        status = place_kernel(layer, line, pad_height, pad_width);
    if (status < 0)
        return status;
    layer->groups = layer->groups > 0 ? layer->groups : 1;
    if (maps % layer->groups != 0 || channels % layer->groups != 0)
        return fail_line(line,
                         "%" PRId64 " groups do not divide the %" PRId64 " maps that it sees and the %" PRId64
                         " that it gives",
                         layer->groups, channels, maps);
    layer->out.channels = layer->outputs = maps;
    layer->depth = channels / layer->groups * layer->kernel_height * layer->kernel_width;
    status = add_layer(line, layer);
    return status == SHOAL_OK ? take_activation(line) : status;
}

static int parse_conv(net_line *line)
{
    train_layer layer = {.kind = TRAIN_CONV, .stride = 1};
    int64_t maps = 0;
    int status = refuse_flat(line);
    if (status == SHOAL_OK)
        status = take_count(&maps, line, "the number of maps", 1);
    return status == SHOAL_OK ? add_conv(line, &layer, maps) : status;
}

/* Each map has a kernel of its own. */
static int parse_depthwise(net_line *line)
{
    const int64_t channels = shape_behind(line->net)->channels;
    train_layer layer = {.kind = TRAIN_CONV, .stride = 1, .groups = channels};
    int status = refuse_flat(line);
    return status == SHOAL_OK ? add_conv(line, &layer, channels) : status;
}

/* One value of each map where `whole`; the stride is the kernel's side unless it is given. */
static int add_pool(net_line *line, bool whole)
{
    train_layer layer = {.kind = TRAIN_POOL_MAX};
    const train_shape *in = shape_behind(line->net);
    int64_t pad_height = 0, pad_width = 0;
    int status = refuse_flat(line);
    if (take_word(line, "average") || (!take_word(line, "max") && whole))
        layer.kind = TRAIN_POOL_AVERAGE;
    if (status == SHOAL_OK && !whole)
        status = take_kernel(&layer, line);
    if (whole)
        layer.kernel_height = in->height, layer.kernel_width = in->width;
    if (status == SHOAL_OK && !whole)
        status = take_steps(&pad_height, &pad_width, &layer, line);
    if (status == SHOAL_OK && layer.stride == 0 && !whole && layer.kernel_height != layer.kernel_width)
        return fail_line(line, "a kernel that is not square needs a stride");
    if (layer.stride == 0)
        layer.stride = layer.kernel_height;
    if (status == SHOAL_OK)
        status = place_kernel(&layer, line, 0, 0);
    layer.out.channels = in->channels;
    if (status == SHOAL_OK)
        status = add_layer(line, &layer);
    return status == SHOAL_OK ? take_activation(line) : status;
}

static int parse_pool(net_line *line)
{
    return add_pool(line, false);
}

static int parse_global(net_line *line)
{
    return take_word(line, "pool") ? add_pool(line, true) : fail_line(line, "'global' is followed by 'pool'");
}

static int parse_dense(net_line *line)
{
    train_layer layer = {.kind = TRAIN_DENSE, .out = {.height = 1, .width = 1, .flat = true}};
    int status = take_count(&layer.outputs, line, "the number of units", 1);
    if (status == SHOAL_OK && !shape_behind(line->net)->flat)
        status = add_flatten(line);
    if (status < 0)
        return status;
    layer.out.channels = layer.outputs;
    layer.depth = shape_behind(line->net)->channels;
    status = add_layer(line, &layer);
    return status == SHOAL_OK ? take_activation(line) : status;
}

static int parse_dropout(net_line *line)
{
    train_layer layer = {.kind = TRAIN_DROPOUT, .out = *shape_behind(line->net)};
    const char *word = next_word(line);
    if (!word || !base_parse_real(&layer.dropped, word) || !(layer.dropped >= 0 && layer.dropped < 1))
        return fail_line(line, "the share to drop is at least 0 and less than 1, such as 0.5");
    return add_layer(line, &layer);
}

static int parse_flatten(net_line *line)
{
    return add_flatten(line);
}

static int take_share(double *out, net_line *line, const char *what)
{
    const char *word = next_word(line);
    if (word && base_parse_real(out, word) && *out > 0 && *out <= 1)
        return SHOAL_OK;
    return fail_line(line, "%s is a number above 0 and at most 1", what);
}

/* batch norm [momentum M] [epsilon E], in any order. */
static int parse_batch(net_line *line)
{
    const train_shape *in = shape_behind(line->net);
    train_layer layer = {
        .kind = TRAIN_NORM, .out = *in, .depth = 1, .outputs = in->channels, .momentum = 0.1, .epsilon = 1e-5};
    int status = take_word(line, "norm") ? SHOAL_OK : fail_line(line, "'batch' is followed by 'norm'");
    while (status == SHOAL_OK) {
        if (take_word(line, "momentum"))
            status = take_share(&layer.momentum, line, "the momentum");
        else if (take_word(line, "epsilon"))
            status = take_share(&layer.epsilon, line, "epsilon");
        else
            break;
    }
    if (status == SHOAL_OK)
        status = add_layer(line, &layer);
    return status == SHOAL_OK ? take_activation(line) : status;
}

/* ---- what is saved and added ------------------------------------------------------------------------------------- */

static net_saved *find_saved(net_line *line, const char *name)
{
    for (int i = 0; i < line->saves; i++)
        if (strcmp(line->saved[i].name, name) == 0)
            return &line->saved[i];
    return NULL;
}

/* A name may be used again once what it stood for was added. */
static int parse_save(net_line *line)
{
    const char *name = next_word(line);
    if (!name)
        return fail_line(line, "the name to save it by is missing, such as 'save a'");
    net_saved *of = find_saved(line, name);
    if (of && !of->added)
        return fail_line(line, "'%s' was saved in %s %d and is not added before this", name, line_or_layer(line),
                         of->number);
    if (!of && line->saves == SAVED_MOST)
        return fail_line(line, "a net has at most %d names; one can be used again once it was added", SAVED_MOST);
    of = of ? of : &line->saved[line->saves++];
    *of = (net_saved){.layer = line->net->layers - 1, .number = line->number};
    memcpy(of->name, name, strlen(name) + 1);
    return SHOAL_OK;
}

static void describe_shape(char *out, size_t size, const train_shape *shape)
{
    if (shape->flat)
        snprintf(out, size, "a list of %" PRId64, shape->channels);
    else
        snprintf(out, size, "%" PRId64 " x %" PRId64 " x %" PRId64, shape->channels, shape->height, shape->width);
}

static int parse_add(net_line *line)
{
    train_net *net = line->net;
    const char *name = next_word(line);
    if (!name)
        return fail_line(line, "the name of what it adds is missing, such as 'add a' after 'save a'");
    net_saved *of = find_saved(line, name);
    if (!of)
        return fail_line(line, "nothing before it is saved as '%s'", name);
    const train_shape *here = shape_behind(net), *there = of->layer < 0 ? &net->in : &net->layer[of->layer].out;
    char is[80], was[80];
    describe_shape(is, sizeof is, here);
    describe_shape(was, sizeof was, there);
    if (!train_shape_same(here, there))
        return fail_line(line, "'%s' of %s %d is %s, but what comes before this is %s", name, line_or_layer(line),
                         of->number, was, is);
    of->added = true;
    if (of->layer >= 0)
        net->layer[of->layer].saved = true;
    train_layer layer = {.kind = TRAIN_ADD, .out = *here, .source = of->layer};
    int status = add_layer(line, &layer);
    return status == SHOAL_OK ? take_activation(line) : status;
}

static int check_saved(const net_line *line)
{
    for (int i = 0; i < line->saves; i++)
        if (!line->saved[i].added)
            return shoal_fail(SHOAL_USAGE, "%s, %s %d: '%s' is saved, but never added", line->name, line_or_layer(line),
                              line->saved[i].number, line->saved[i].name);
    return SHOAL_OK;
}

static int parse_line(net_line *line)
{
    static const struct {
        const char *name;
        int (*parse)(net_line *line);
    } kinds[] = {{"conv", parse_conv},       {"depthwise", parse_depthwise}, {"pool", parse_pool},
                 {"global", parse_global},   {"dense", parse_dense},         {"batch", parse_batch},
                 {"dropout", parse_dropout}, {"flatten", parse_flatten},     {"save", parse_save},
                 {"add", parse_add}};
    int status = SHOAL_OK;
    bool known = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !known; i++)
        if ((known = take_word(line, kinds[i].name)))
            status = kinds[i].parse(line);
    for (int i = 0; i < ACTIVATIONS && !known; i++)
        if ((known = take_word(line, activations[i].name)))
            status = add_activation(line, activations[i].kind);
    if (!known)
        return fail_line(line,
                         "'%s' is no layer; there are conv, depthwise, pool, global pool, dense, batch norm, dropout, "
                         "flatten, save, add, relu, relu6, tanh, logistic and softmax",
                         line->word[0]);
    if (status == SHOAL_OK && line->at < line->words)
        return fail_line(line, "'%s' is not understood here", line->word[line->at]);
    return status;
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

/* Cuts a line into words. */
static int cut_words(net_line *line, const char *text, size_t length)
{
    const char *end = text + length;
    line->words = line->at = 0;
    const size_t indent = strspn(text, " \t"), shown = length > indent ? length - indent : 0;
    snprintf(line->text, sizeof line->text, "%.*s", (int)shown, text + indent);
    base_text_clean(line->text);
    while (text < end) {
        const size_t space = strspn(text, " \t\r"), word = strcspn(text + space, " \t\r\n;#"); /* a text has an end */
        text += space;
        if (text >= end)
            break;
        if (line->words == WORDS_MOST || word >= WORD_BYTES)
            return fail_line(line, "no layer has so long a line");
        memcpy(line->word[line->words], text, word);
        line->word[line->words++][word] = '\0';
        text += word;
    }
    return SHOAL_OK;
}

static int check_input(const train_shape *in, const char *name)
{
    const double values = (double)in->channels * (double)in->height * (double)in->width;
    if (in->channels >= 1 && in->height >= 1 && in->width >= 1 && values <= TRAIN_VALUES_MOST)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "%s: rows of %.0f values are none that a net takes", name, values);
}

int train_net_parse(train_net *out, const char *text, const char *name, const train_shape *in)
{
    net_line line = {.net = out, .name = name, .of_lines = strchr(text, '\n') != NULL, .number = 1};
    *out = (train_net){.in = *in};
    int status = check_input(in, name);
    if (status == SHOAL_OK && strlen(text) >= TRAIN_TEXT_MOST)
        return shoal_fail(SHOAL_USAGE, "%s: the text of a net has at most %d bytes", name, TRAIN_TEXT_MOST - 1);
    while (status == SHOAL_OK && *text) {
        size_t length = strcspn(text, ";\n#");
        status = cut_words(&line, text, length);
        if (status == SHOAL_OK && line.words > 0)
            status = parse_line(&line);
        length += text[length] == '#' ? strcspn(text + length, "\n") : 0; /* a remark */
        line.number += line.of_lines ? text[length] == '\n' : line.words > 0;
        text += length + (text[length] != '\0');
    }
    if (status == SHOAL_OK)
        status = check_saved(&line);
    if (status < 0)
        return status;
    if (out->parameters == 0)
        return shoal_fail(SHOAL_USAGE, "%s: a net needs at least one layer with weights, conv or dense", name);
    const train_layer *last = &out->layer[out->layers - 1];
    if (last->kind != TRAIN_SOFTMAX)
        return shoal_fail(SHOAL_USAGE, "%s: the last layer must be a softmax, as in 'dense 10 softmax' for ten classes",
                          name);
    out->classes = last->out.channels;
    if (out->classes < 2)
        return shoal_fail(SHOAL_USAGE, "%s: the softmax has one value; there must be one for each class", name);
    return SHOAL_OK;
}

/* After how many layers the last one gives all that is needed further on: no layer behind them adds what one before
 * gave.  0 where there are no weights before. */
static int remembered_of(const train_net *net)
{
    for (int end = net->frozen; end > 0 && net->layer[end].first > 0; end--) {
        int i = end;
        while (i < net->layers && (net->layer[i].kind != TRAIN_ADD || net->layer[i].source >= end - 1))
            i++;
        if (i == net->layers)
            return end;
    }
    return 0;
}

int train_net_freeze(train_net *net, int64_t layers)
{
    int last = net->layers - 1;
    while (net->layer[last].outputs == 0)
        last--;
    if (layers < 0 || layers > net->layers)
        return shoal_fail(SHOAL_USAGE, "--freeze %" PRId64 ": the layers are 0 to %d", layers - 1, net->layers - 1);
    if (layers > last)
        return shoal_fail(SHOAL_USAGE, "--freeze %" PRId64 ": layer %d is the last with weights, and must be trained",
                          layers - 1, last);
    net->frozen = (int)layers;
    while (layers > 0 && net->layer[net->frozen].outputs == 0 && net->layer[net->frozen].kind != TRAIN_DROPOUT)
        net->frozen++;
    net->fixed = net->layer[net->frozen].first;
    net->fixed_running = net->layer[net->frozen].running;
    net->remembered = remembered_of(net);
    return SHOAL_OK;
}

void train_net_join(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from == '#')
            from += strcspn(from, "\n");
        if (*from == '\0')
            break;
        const bool ends = *from == '\n' || *from == ';', space = ends || strchr(" \t\r", *from);
        while (ends && to > text && to[-1] == ' ')
            to--;
        if (!space)
            *to++ = *from;
        else if (to > text && to[-1] != ';' && to[-1] != ' ')
            *to++ = ends ? ';' : ' ';
    }
    while (to > text && (to[-1] == ' ' || to[-1] == ';'))
        to--;
    *to = '\0';
}

int train_net_read(char **out, const char *given)
{
    char *text = NULL;
    size_t size = 0;
    *out = NULL;
    const int file = strpbrk(given, ";\n") ? -1 : open(given, O_RDONLY | O_CLOEXEC);
    if (file < 0 && !strpbrk(given, " ;\n") && strpbrk(given, "./"))
        return shoal_fail(SHOAL_USAGE, "--net %s: there is no such file, and it is not the text of a net", given);
    if (file < 0)
        return base_copy_text(out, given);
    int status = base_read_whole(&text, &size, file, TRAIN_TEXT_MOST - 1, given);
    const int error = errno;
    close(file);
    if (status == SHOAL_SYSTEM)
        status = shoal_fail(SHOAL_SYSTEM, "--net %s: can't read: %s", given, strerror(error));
    else if (status == SHOAL_INVALID)
        status =
            shoal_fail(SHOAL_USAGE, "--net %s: the text of a net has at most %d bytes", given, TRAIN_TEXT_MOST - 1);
    if (status == SHOAL_OK && memchr(text, '\0', size))
        status = shoal_fail(SHOAL_USAGE, "%s: a net is text, and this has a byte of 0", given);
    if (status == SHOAL_OK)
        status = base_copy_text_n(out, text, size);
    base_free(&text);
    return status;
}
