/* The products of a grain, for the type REAL.  Included by grain.c, once for float and once for double; hence no guard.
 *
 * REAL and TYPE are the type, DENSE its table in a kernel set, ADD its way into the sums, and NAMED(x) gives functions
 * their names.
 *
 * A grain is done in blocks of rows, which stay in the cache for both products.  Each element of outputs and gradient
 * is one chain of fused multiply-adds, over columns and over rows, which the next block goes on with: so blocks change
 * no bits. */

/* The rows of a block as REAL, the target among them. */
static const REAL *NAMED(rows)(REAL *space, const shoal_grain *grain, int64_t first, int64_t rows,
                               const logistic_prepared *prepared)
{
    const shoal_shape *shape = grain->shape;
    const char *at = (const char *)grain->values + (size_t)(first * shape->columns) * shoal_type_size(shape->type);
    if (shape->type == TYPE)
        return (const REAL *)at;
    prepared->kernel->DENSE.convert(space, at, shape->type, 1, 0, rows * shape->columns);
    return space;
}

/* z = intercept + x w for `rows` rows.  Where the target lies between columns the chain has two parts. */
static void NAMED(outputs)(REAL *z, const REAL *x, int64_t rows, const logistic_own *own,
                           const logistic_prepared *prepared, int64_t columns)
{
    const REAL *weights = prepared->values, *intercept = weights + own->features * own->outputs;
    int64_t outputs = own->outputs, before = own->target;
    for (int64_t i = 0; i < rows; i++)
        memcpy(z + i * outputs, intercept, (size_t)outputs * sizeof *z);
    prepared->kernel->DENSE.product(z, outputs, x, columns, 1, weights, outputs, rows, outputs, before);
    if (before < own->features)
        prepared->kernel->DENSE.product(z, outputs, x + before + 1, columns, 1, weights + before * outputs, outputs,
                                        rows, outputs, own->features - before);
}

/* gradient += d' x. */
static void NAMED(gradient)(REAL *gradient, const REAL *d, const REAL *x, int64_t rows, const logistic_own *own,
                            const logistic_prepared *prepared, int64_t columns)
{
    int64_t outputs = own->outputs, features = own->features, before = own->target;
    prepared->kernel->DENSE.product(gradient, features, d, 1, outputs, x, columns, outputs, before, rows);
    if (before < features)
        prepared->kernel->DENSE.product(gradient + before, features, d, 1, outputs, x + before + 1, columns, outputs,
                                        features - before, rows);
}

static void NAMED(sums)(gradient_sums *sums, const logistic_own *own, const logistic_prepared *prepared,
                        const shoal_grain *grain, unsigned char *memory)
{
    int64_t columns = grain->shape->columns, outputs = own->outputs, at_once = rows_at_once(columns);
    space space = cut_space(&memory, at_once, outputs);
    REAL *converted = cut_array(&memory, at_once * columns, sizeof(REAL));
    REAL *z = cut_array(&memory, at_once * outputs, sizeof(REAL));
    REAL *gradient = cut_array(&memory, own->features * outputs, sizeof(REAL)),
         *intercept = cut_array(&memory, outputs, sizeof(REAL));
    const kernel_set *kernel = prepared->kernel;
    logistic_sums rest = {0};
    memset(gradient, 0, (size_t)(own->features * outputs) * sizeof *gradient);
    memset(intercept, 0, (size_t)outputs * sizeof *intercept);
    for (int64_t first = 0; first < grain->rows; first += at_once) {
        int64_t rows = grain->rows - first < at_once ? grain->rows - first : at_once;
        const REAL *x = NAMED(rows)(converted, grain, first, rows, prepared);
        NAMED(outputs)(z, x, rows, own, prepared, columns);
        kernel->dense64.convert(space.block.output, z, TYPE, 1, 0, rows * outputs);
        learn_classes_find(space.class, logistic_classes(own), own->classes, grain, first, rows, own->target);
        space.block.rows = rows;
        logistic_losses(&rest, &space.block, space.class, grain->weights ? grain->weights + first : NULL,
                        &kernel->dense64);
        kernel->DENSE.convert(z, space.block.output, SHOAL_FLOAT64, 1, 0, rows * outputs);
        NAMED(gradient)(gradient, z, x, rows, own, prepared, columns);
        kernel->DENSE.add_rows(intercept, z, outputs, rows, outputs);
    }
    int group = 0;
    ADD(sums, group++, gradient);
    if (own->intercept)
        ADD(sums, group++, intercept);
    gradient_add64(sums, group++, &rest.loss);
    gradient_add64(sums, group, &rest.right);
}
