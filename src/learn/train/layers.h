/* What a net computes for some rows: its outputs, the loss, and the gradient of its parameters.
 *
 *     train_work work;
 *     train_work_cut(&work, net, rows, true, scratch->memory);
 *     ... fill work.input ...
 *     train_forwards(&work, &with, rows, NULL);
 *     train_loss(&loss, &right, &work, class, rows);
 *     train_backwards(&work, &with, rows, NULL);
 *
 * Everything is float32 and *exact* in the sense of kernel/dense.h: each value is one written chain of operations, so
 * that every kernel set gives the same bits.  docs/learn/train.md has the chains.  The sign of a
 * zero may differ: it adds nothing to a sum that ends as a whole number. */
#ifndef TRAIN_LAYERS_H
#define TRAIN_LAYERS_H

#include "kernel/kernel.h"
#include "learn/train/net.h"

/* What all rows are computed with. */
typedef struct train_with {
    const train_net *net;
    const kernel_set *kernel;
    const float *parameters;
    const float *turned; /* weights at their place among the parameters, an output's side by side */
} train_with;

/* Writes what `turned` holds; `out` has room for all parameters, and biases in it stay. */
void train_turn(float *out, const train_net *net, const float *parameters);

/* Which values dropout makes 0 is a function of these and the layer. */
typedef struct train_drop {
    uint64_t seed;
    int64_t step;
    const int64_t *row; /* the numbers of the rows */
} train_drop;

/* The memory of a thread.
 *
 * Lists lie row by row.  Maps lie in blocks of KERNEL_BLOCK rows (kernel/convolution.h): value v of row i is
 * [i / KERNEL_BLOCK][v][i % KERNEL_BLOCK], v counting map, line and column; train_values_of says how many numbers these
 * are.  What a layer does value by value it does to blocks and lists alike.  The rows that fill up the last block hold
 * numbers that mean nothing; what adds up rows leaves them out. */
typedef struct train_work {
    const train_net *net;
    float *input;                       /* rows x values, channel by channel */
    float *maps;                        /* the input as blocks, where it is no list */
    float *out[TRAIN_LAYERS_MOST];      /* what a layer gives; that of the layer before where it is changed in place */
    int32_t *chosen[TRAIN_LAYERS_MOST]; /* of a max pool: which place of the kernel each value is from */
    float *kept[TRAIN_LAYERS_MOST];     /* of one that is computed together with its convolution: which of four */
    int joined[TRAIN_LAYERS_MOST];      /* how many layers are computed together with this one, the first or last */
    float *slope, *other;               /* derivatives by what a layer gives, and by what it sees */
    float *border, *weights;            /* of a convolution: a block with its border; workspace */
    float *listed;                      /* a block of what `kept` has, row by row */
    bool slopes_listed;                 /* whether slopes of maps are lists at the moment */
    double *moments[TRAIN_LAYERS_MOST]; /* of a batch norm: the means, then one over the deviations */
    double *sums;                       /* of a batch norm: two of each map */
    float *factors;                     /* of a batch norm: three of each map */
    float *blocks, *slopes;             /* of a batch norm of lists: what it sees and its slopes as blocks */
    float *branch[TRAIN_LAYERS_MOST];   /* of a layer that is saved: derivatives by way of what adds it */
    float *gradient; /* of all values that are trained: sums over the rows, and of running averages */
    float *exps;     /* of one row of the softmax */
    size_t bytes;
} train_work;

/* How many numbers so many rows of a shape are. */
static inline int64_t train_values_of(const train_shape *shape, int64_t rows)
{
    const int64_t filled = (rows + KERNEL_BLOCK - 1) / KERNEL_BLOCK * KERNEL_BLOCK;
    return train_shape_values(shape) * (shape->flat ? rows : filled);
}

/* Rows of `values` values each from lists to blocks, whose last is filled up with zeros, and back. */
void train_to_blocks(float *out, const float *lists, int64_t values, const kernel_set *kernel, int64_t rows);
void train_to_lists(float *out, const float *blocks, int64_t values, const kernel_set *kernel, int64_t rows);

/* Cuts memory for up to so many rows; with `memory` NULL it only counts the bytes.  SIZE_MAX for too many. */
void train_work_cut(train_work *out, const train_net *net, int64_t rows, bool learns, void *memory);

/* Computes what the layers from `first` up to `end` give, of which all are up to what the softmax sees; what those
 * before `first` give is there.  Without dropout where `drop` is NULL, and with running
 * averages, as in frozen layers.  Otherwise batch norms find those of these rows, at least two, and add them to the
 * gradient. */
void train_forwards_part(train_work *work, const train_with *with, int first, int end, int64_t rows,
                         const train_drop *drop);
static inline void train_forwards(train_work *work, const train_with *with, int64_t rows, const train_drop *drop)
{
    train_forwards_part(work, with, 0, work->net->layers, rows, drop);
}
/* The sums of the rows' cross-entropies and of those that are right; what the softmax saw is replaced by the
 * derivatives. */
void train_loss(double *loss, int64_t *right, train_work *work, const kernel_set *kernel, const int32_t *class,
                int64_t rows);
/* The most likely class of each row, and with `probabilities` (rows x classes) that of each class. */
void train_decide(int32_t *most, double *probabilities, train_work *work, const kernel_set *kernel, int64_t rows);
/* Adds to the gradient, which has been cleared; that of frozen layers stays as it is. */
void train_backwards(train_work *work, const train_with *with, int64_t rows, const train_drop *drop);

#endif
