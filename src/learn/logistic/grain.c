/* One grain of logistic regression: outputs, losses and the gradient.  logistic_grain.h has the products, for both
 * types. */
#include <string.h>

#include "base/memory.h"
#include "learn/logistic/logistic_internal.h"

/* ---- memory ------------------------------------------------------------------------------------------------------ */

enum { ALIGNMENT = 64, BLOCK_BYTES = 1 << 18, BLOCK_LEAST = 32, BLOCK_MOST = 512 };

static size_t cut_size(int64_t count, size_t size)
{
    return ((size_t)count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void *cut_array(unsigned char **memory, int64_t count, size_t size)
{
    void *out = *memory;
    *memory += cut_size(count, size);
    return out;
}

/* As many rows as a second-level cache holds as float64. */
static int64_t rows_at_once(int64_t columns)
{
    int64_t rows = BLOCK_BYTES / (columns * (int64_t)sizeof(double)) / BLOCK_LEAST * BLOCK_LEAST;
    return rows < BLOCK_LEAST ? BLOCK_LEAST : rows > BLOCK_MOST ? BLOCK_MOST : rows;
}

/* What link.c and the labels need. */
typedef struct space {
    logistic_block block;
    int32_t *class;
} space;

static space cut_space(unsigned char **memory, int64_t rows, int64_t outputs)
{
    space out = {.block = {.outputs = outputs}};
    out.block.output = cut_array(memory, rows * outputs, sizeof(double));
    out.block.spare = cut_array(memory, rows, sizeof(double));
    out.block.most = cut_array(memory, rows, sizeof(int32_t));
    out.class = cut_array(memory, rows, sizeof(int32_t));
    return out;
}

size_t logistic_grain_scratch(const logistic_own *own, const shoal_shape *shape)
{
    int64_t rows = rows_at_once(shape->columns);
    return 2 * cut_size(rows * own->outputs, sizeof(double)) + cut_size(rows, sizeof(double)) +
           2 * cut_size(rows, sizeof(int32_t)) + cut_size(rows * shape->columns, sizeof(double)) +
           cut_size(own->features * own->outputs, sizeof(double)) + cut_size(own->outputs, sizeof(double));
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

#define REAL float
#define TYPE SHOAL_FLOAT32
#define DENSE dense32
#define ADD gradient_add32
#define NAMED(name) name##_of_floats
#include "learn/logistic/logistic_grain.h"
#undef REAL
#undef TYPE
#undef DENSE
#undef ADD
#undef NAMED

#define REAL double
#define TYPE SHOAL_FLOAT64
#define DENSE dense64
#define ADD gradient_add64
#define NAMED(name) name##_of_doubles
#include "learn/logistic/logistic_grain.h"
#undef REAL
#undef TYPE
#undef DENSE
#undef ADD
#undef NAMED

int logistic_grain_sums(gradient_sums *sums, const logistic_own *own, const logistic_prepared *prepared,
                        const shoal_grain *grain, const shoal_scratch *scratch)
{
    (own->single ? sums_of_floats : sums_of_doubles)(sums, own, prepared, grain, scratch->memory);
    return SHOAL_OK;
}

void logistic_grain_outputs(const logistic_own *own, const logistic_prepared *prepared, const shoal_grain *grain,
                            const shoal_scratch *scratch, logistic_each *each, void *context)
{
    unsigned char *memory = scratch->memory;
    int64_t columns = grain->shape->columns, at_once = rows_at_once(columns);
    space space = cut_space(&memory, at_once, own->outputs);
    double *converted = cut_array(&memory, at_once * columns, sizeof(double));
    for (int64_t first = 0; first < grain->rows; first += at_once) {
        int64_t rows = grain->rows - first < at_once ? grain->rows - first : at_once;
        const double *x = rows_of_doubles(converted, grain, first, rows, prepared);
        outputs_of_doubles(space.block.output, x, rows, own, prepared, columns);
        space.block.rows = rows;
        each(context, &space.block, grain->first_row + first);
    }
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static int make_prepared_room(logistic_prepared *prepared, const logistic_own *own)
{
    size_t weights = (size_t)(own->features * own->outputs), outputs = (size_t)own->outputs;
    if (prepared->outputs == own->outputs)
        return SHOAL_OK;
    base_free(&prepared->values);
    base_free(&prepared->weights);
    base_free(&prepared->intercept);
    prepared->outputs = 0;
    int status = base_alloc(&prepared->values, weights + outputs, sizeof(double), "weights");
    if (status == SHOAL_OK)
        status = base_alloc(&prepared->weights, weights, sizeof(double), "weights");
    if (status == SHOAL_OK)
        status = base_alloc(&prepared->intercept, outputs, sizeof(double), "intercepts");
    if (status == SHOAL_OK)
        prepared->outputs = own->outputs;
    return status;
}

/* Turns the weights into columns, one an output. */
static void lay_out_weights(logistic_prepared *prepared, const logistic_own *own, const double *weights,
                            const double *intercept)
{
    int64_t features = own->features, outputs = own->outputs;
    float *singles = prepared->values;
    double *doubles = prepared->values;
    for (int64_t k = 0; k < outputs; k++)
        for (int64_t j = 0; j <= features; j++) {
            double value = j < features ? weights[k * features + j] : intercept[k];
            if (own->single)
                singles[j * outputs + k] = (float)value;
            else
                doubles[j * outputs + k] = value;
        }
}

static int begin_prepared(logistic_prepared **inout, const logistic_own *own, const char *kernel)
{
    int status = *inout ? SHOAL_OK : base_alloc(inout, 1, sizeof **inout, "what rounds share");
    if (status == SHOAL_OK)
        status = kernel_choose(&(*inout)->kernel, kernel);
    return status == SHOAL_OK ? make_prepared_room(*inout, own) : status;
}

int logistic_prepare_point(logistic_prepared **inout, const logistic_own *own, const double *x, const char *kernel)
{
    int status = begin_prepared(inout, own, kernel);
    if (status < 0)
        return status;
    logistic_frame_leave((*inout)->weights, (*inout)->intercept, x, own);
    lay_out_weights(*inout, own, (*inout)->weights, (*inout)->intercept);
    return SHOAL_OK;
}

int logistic_prepare_model(logistic_prepared **inout, const logistic_own *own, const double *weights,
                           const double *intercept, const char *kernel)
{
    int status = begin_prepared(inout, own, kernel);
    if (status == SHOAL_OK)
        lay_out_weights(*inout, own, weights, intercept);
    return status;
}

void logistic_forget(void **inout)
{
    logistic_prepared *prepared = *inout;
    if (!prepared)
        return;
    base_free(&prepared->values);
    base_free(&prepared->weights);
    base_free(&prepared->intercept);
    base_free(inout);
}
