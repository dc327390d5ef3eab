/* Assigning rows of few columns: scoring all centres costs so little that there is nothing to gain by looking at
 * some of them.  Rows go through nearest_few in blocks, and the bounds of a block are computed in one loop that the
 * compiler can vectorise. */
#include "learn/kmeans/assign.h"

enum { BLOCK_ROWS = 336 };

typedef struct few_block {
    float *z;
    kernel_nearest nearest;
    float *upper, *lower;
    int32_t *sure; /* the float32 scores alone prove the label */
    float *workspace;
} few_block;

static few_block cut_block(int64_t columns, unsigned char **memory)
{
    size_t values = BLOCK_ROWS * sizeof(float);
    few_block block = {.z = kmeans_cut(memory, values * (size_t)columns)};
    block.nearest.best = kmeans_cut(memory, values);
    block.nearest.second = kmeans_cut(memory, values);
    block.nearest.square = kmeans_cut(memory, values);
    block.nearest.index = kmeans_cut(memory, values);
    block.upper = kmeans_cut(memory, values);
    block.lower = kmeans_cut(memory, values);
    block.sure = kmeans_cut(memory, values);
    block.workspace = kmeans_cut(memory, KERNEL_FEW_WORKSPACE * sizeof(float));
    return block;
}

size_t assign_few_bytes(const kmeans_pack *pack)
{
    return (size_t)BLOCK_ROWS * sizeof(float) * (size_t)(pack->columns + 8) + KERNEL_FEW_WORKSPACE * sizeof(float) +
           16 * 64;
}

static void load_block(const assigning *a, float *z, const int32_t *which, int count)
{
    for (int r = 0; r < count;) { /* rows that follow each other are centred in one go */
        int run = 1;
        while (r + run < count && run < KMEANS_ORIGIN_COPIES && which[r + run] == which[r] + run)
            run++;
        kmeans_rows_centre_run(z + (int64_t)r * a->columns, a->rows, which[r], run);
        r += run;
    }
}

/* assign_error, assign_upper and assign_lower in float32.  Every float32 operation here errs by a unit in the last
 * place of |z|^2, |z| |c| or |c|^2; doubling the error bound, which holds many such units of each, covers them. */
static void bound(const assigning *a, const few_block *block, int count)
{
    const float product = (float)(2.01 * a->pack->error_product), constant = (float)(2.01 * a->pack->error_constant);
    const float square_error = (float)(2.01 * a->pack->error_square);
    const float more = (float)(1 + 1.01 * a->norm_slack), less = (float)(1 - 1.01 * a->norm_slack);
    const float *restrict best = block->nearest.best, *restrict second = block->nearest.second;
    const float *restrict square = block->nearest.square;
    float *restrict upper = block->upper, *restrict lower = block->lower;
    int32_t *restrict sure = block->sure;
    for (int r = 0; r < count; r++) {
        float error = product * sqrtf(square[r]) + constant + square_error * square[r];
        float farthest = square[r] * more + 2 * (best[r] + error), nearest = square[r] * less + 2 * (second[r] - error);
        upper[r] = sqrtf(farthest > 0 ? farthest : 0) * (1 + 0x1p-20f);
        lower[r] = sqrtf(nearest > 0 ? nearest : 0) * (1 - 0x1p-21f);
        sure[r] = second[r] - best[r] > 2 * error;
    }
}

/* Too close to call in float32: the definition decides, and the bounds allow for either order. */
static int64_t decide_row(const assigning *a, const few_block *block, int r, int64_t row)
{
    const float *z = block->z + (int64_t)r * a->columns;
    float square = block->nearest.square[r];
    double error = assign_error(a, square);
    int64_t place = assign_decide(a, row, NULL, NULL, a->pack->count, INFINITY);
    block->upper[r] = assign_upper(a, square, assign_score(a, z, place) + error);
    block->lower[r] = assign_lower(a, square, block->nearest.best[r] - error);
    return place;
}

void assign_few(const assigning *a, const int32_t *which, int64_t count, unsigned char *memory)
{
    const kmeans_pack *pack = a->pack;
    few_block block = cut_block(a->columns, &memory);
    for (int64_t first = 0; first < count; first += BLOCK_ROWS) {
        int size = count - first < BLOCK_ROWS ? (int)(count - first) : BLOCK_ROWS;
        load_block(a, block.z, which + first, size);
        a->kernel->nearest_few(&block.nearest, block.z, size, pack->rows, pack->bias, (int)pack->count, a->columns,
                               block.workspace);
        bound(a, &block, size);
        for (int r = 0; r < size; r++) {
            int64_t row = which[first + r];
            int64_t place = block.sure[r] ? block.nearest.index[r] : decide_row(a, &block, r, row);
            a->memo.upper[row] = block.upper[r];
            a->memo.lower[row] = block.lower[r];
            assign_label(a, row, pack->id[place]);
        }
    }
    a->counters[KMEANS_COMPUTED] += count * pack->count;
}
