/* What the layers of a net are called in a file of weights.
 *
 * PyTorch's nn.Sequential counts its modules, as the layers of a net are counted: "3.weight".  Other files have names
 * of their own, "conv1.weight": then people say which is which (--start-names), or the shapes do, where no two layers
 * have the same. */
#ifndef TRAIN_NAMES_H
#define TRAIN_NAMES_H

#include "learn/model_file.h"
#include "learn/train/net.h"

typedef struct train_names {
    char *layer[TRAIN_LAYERS_MOST]; /* NULL: the layer is not there */
    bool own;                       /* they are not those of nn.Sequential */
} train_names;

/* A tensor of a layer as PyTorch has it: its name after the layer's, and where it begins among the net's values. */
typedef struct train_tensor {
    const char *name;
    int64_t first, shape[4];
    int rank;
} train_tensor;

/* Returns how many tensors a layer has. */
int train_tensors(train_tensor out[4], const train_net *net, int index);

/* Finds the layers of the net; `given` are their names in its order, with commas between, or NULL.  A layer is there if
 * all of its tensors are, in their shapes; a bias may be missing, and is then 0.  The caller releases *out. */
int train_names_find(train_names *out, const train_net *net, const learn_model_file *model, const char *given);
void train_names_release(train_names *names);
/* The tensors of a layer that is there, to their places among the net's values. */
int train_names_load(double *to, const train_names *names, const train_net *net, int index,
                     const learn_model_file *model);
/* "conv1, conv2, fc" */
int train_names_list(char **out, const train_names *names);

#endif
