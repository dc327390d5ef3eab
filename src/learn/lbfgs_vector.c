/* Passes over the vectors of L-BFGS.
 *
 * Vectors are cut into blocks of fixed size.  The sums of a block are made in a fixed number of lanes, the sums of
 * blocks are added in order, so a result has the same bits for any number of threads.  Memory is what these passes
 * wait for; therefore each does all that can be done with what it reads, and differences of iterates are never
 * stored. */
#include "learn/lbfgs_internal.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

enum { BLOCK = 4096, LANES = 8, SUMS = 8, GREATEST = SUMS - 1, PARALLEL_BLOCKS = 8 };

/* What one pass works on; each uses the fields it needs. */
typedef struct operands {
    const double *x, *g, *x_old, *g_old, *d_old;
    const double *next, *next_old;
    double *out_x, *out_g, *q;
    double amount, scale;
} operands;

/* Works on `count` numbers from `first` on, all of them with the L1 weight `l1`, and adds to the sums. */
typedef void pass_work(const operands *on, int64_t first, int64_t count, double l1, double *sums);

typedef struct pass {
    const lbfgs_space *space;
    pass_work *work;
    const operands *on;
} pass;

/* Runs the body for every number; `at` is its index, `lane` the lane it is added to.  The body's sums go to arrays of
 * LANES. */
#define IN_LANES(count, ...)                                                                                           \
    do {                                                                                                               \
        int64_t run_ = 0;                                                                                              \
        for (; run_ + LANES <= (count); run_ += LANES)                                                                 \
            for (int lane = 0; lane < LANES; lane++) {                                                                 \
                const int64_t at = run_ + lane;                                                                        \
                __VA_ARGS__                                                                                            \
            }                                                                                                          \
        for (int lane = 0; run_ + lane < (count); lane++) {                                                            \
            const int64_t at = run_ + lane;                                                                            \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    } while (0)

static double add_lanes(const double *lanes)
{
    return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

int lbfgs_space_init(lbfgs_space *space, const learn_lbfgs_options *options, const shoal_crew *crew)
{
    const bool penalised = options->l1 > 0 && options->l1_count > 0;
    const int64_t blocks = (options->parameters + BLOCK - 1) / BLOCK;
    *space = (lbfgs_space){.count = options->parameters, .status = SHOAL_OK};
    if (penalised) {
        space->l1 = options->l1;
        space->l1_first = options->l1_first;
        space->l1_end = options->l1_first + options->l1_count;
    }
    if (crew != NULL && crew->threads > 1 && blocks >= PARALLEL_BLOCKS) {
        space->crew = crew;
        space->status = base_alloc_unset(&space->partial, (size_t)blocks, SUMS * sizeof(double), "the sums of L-BFGS");
    }
    return space->status;
}

void lbfgs_space_release(lbfgs_space *space)
{
    base_free(&space->partial);
}

/* A block may begin before the part that L1 weighs, and end after it. */
static void do_block(const pass *of, int64_t block, double *sums)
{
    const lbfgs_space *space = of->space;
    const int64_t first = block * BLOCK;
    const int64_t end = first + BLOCK < space->count ? first + BLOCK : space->count;
    int64_t cut[4] = {first, space->l1_first, space->l1_end, end};
    for (int i = 1; i < 3; i++)
        cut[i] = cut[i] < first ? first : cut[i] > end ? end : cut[i];
    memset(sums, 0, SUMS * sizeof *sums);
    for (int i = 0; i < 3; i++)
        if (cut[i] < cut[i + 1])
            of->work(of->on, cut[i], cut[i + 1] - cut[i], i == 1 ? space->l1 : 0, sums);
}

static int block_task(void *context, int64_t block, int thread)
{
    const pass *of = context;
    (void)thread;
    do_block(of, block, of->space->partial + block * SUMS);
    return SHOAL_OK;
}

static void add_block(double *sums, const double *block)
{
    for (int i = 0; i < GREATEST; i++)
        sums[i] += block[i];
    if (block[GREATEST] > sums[GREATEST])
        sums[GREATEST] = block[GREATEST];
}

static void make_pass(lbfgs_space *space, pass_work *work, const operands *on, double *sums)
{
    pass of = {.space = space, .work = work, .on = on};
    const int64_t blocks = (space->count + BLOCK - 1) / BLOCK;
    memset(sums, 0, SUMS * sizeof *sums);
    if (space->status != SHOAL_OK)
        return;
    if (space->crew == NULL) {
        for (int64_t block = 0; block < blocks; block++) {
            double own[SUMS];
            do_block(&of, block, own);
            add_block(sums, own);
        }
        return;
    }
    space->status = space->crew->each(space->crew, blocks, block_task, &of);
    for (int64_t block = 0; block < blocks && space->status == SHOAL_OK; block++)
        add_block(sums, space->partial + block * SUMS);
}

/* ---- the arithmetic ---------------------------------------------------------------------------------------------- */

/* The component of the pseudo-gradient: of all slopes that |x| has at 0, the one that leaves the least.  Andrew and
 * Gao 2007, (4). */
static inline double pseudo(double x, double g, double l1)
{
    if (l1 == 0)
        return g;
    if (x != 0)
        return x > 0 ? g + l1 : g - l1;
    return g + l1 < 0 ? g + l1 : g - l1 > 0 ? g - l1 : 0;
}

static void work_first(const operands *on, int64_t first, int64_t count, double l1, double *sums)
{
    const double *restrict x = on->x + first, *restrict g = on->g + first;
    double *restrict out_x = on->out_x + first, *restrict out_g = on->out_g + first, *restrict q = on->q + first;
    double pp[LANES] = {0}, size[LANES] = {0}, greatest = sums[GREATEST];
    IN_LANES(count, {
        const double p = pseudo(x[at], g[at], l1);
        out_x[at] = x[at];
        out_g[at] = g[at];
        q[at] = -p;
        pp[lane] += p * p;
        size[lane] += fabs(x[at]);
        greatest = fabs(p) > greatest ? fabs(p) : greatest;
    });
    sums[0] += add_lanes(pp);
    sums[1] += l1 > 0 ? l1 * add_lanes(size) : 0;
    sums[GREATEST] = greatest;
}

void lbfgs_pass_first(lbfgs_space *space, lbfgs_measure *out, double *iterate, const double *x, const double *g)
{
    const int64_t n = space->count;
    operands on = {.x = x, .g = g, .out_x = iterate, .out_g = iterate + n, .q = iterate + 2 * n};
    double sums[SUMS];
    make_pass(space, work_first, &on, sums);
    *out = (lbfgs_measure){.pp = sums[0], .l1 = sums[1], .greatest = sums[GREATEST]};
}

static void work_steepest(const operands *on, int64_t first, int64_t count, double l1, double *sums)
{
    const double *restrict x = on->x + first, *restrict g = on->g + first;
    double *restrict q = on->q + first;
    double pp[LANES] = {0};
    IN_LANES(count, {
        const double p = pseudo(x[at], g[at], l1);
        q[at] = -p;
        pp[lane] += p * p;
    });
    sums[0] += add_lanes(pp);
}

double lbfgs_pass_steepest(lbfgs_space *space, double *iterate)
{
    const int64_t n = space->count;
    double sums[SUMS];
    make_pass(space, work_steepest, &(operands){.x = iterate, .g = iterate + n, .q = iterate + 2 * n}, sums);
    return sums[0];
}

static void work_meet(const operands *on, int64_t first, int64_t count, double l1, double *sums)
{
    const double *restrict x = on->x + first, *restrict g = on->g + first;
    const double *restrict x_old = on->x_old + first, *restrict g_old = on->g_old + first;
    double *restrict out_x = on->out_x + first, *restrict out_g = on->out_g + first, *restrict q = on->q + first;
    double pp[LANES] = {0}, size[LANES] = {0}, greatest = sums[GREATEST];
    double sy[LANES] = {0}, yy[LANES] = {0}, ss[LANES] = {0}, sp[LANES] = {0};
    IN_LANES(count, {
        const double p = pseudo(x[at], g[at], l1);
        const double s = x[at] - x_old[at];
        const double y = g[at] - g_old[at];
        out_x[at] = x[at];
        out_g[at] = g[at];
        q[at] = p;
        pp[lane] += p * p;
        size[lane] += fabs(x[at]);
        sy[lane] += s * y;
        yy[lane] += y * y;
        ss[lane] += s * s;
        sp[lane] += s * p;
        greatest = fabs(p) > greatest ? fabs(p) : greatest;
    });
    sums[0] += add_lanes(pp);
    sums[1] += l1 > 0 ? l1 * add_lanes(size) : 0;
    sums[2] += add_lanes(sy);
    sums[3] += add_lanes(yy);
    sums[4] += add_lanes(ss);
    sums[5] += add_lanes(sp);
    sums[GREATEST] = greatest;
}

void lbfgs_pass_meet(lbfgs_space *space, lbfgs_measure *out, double *iterate, const double *x, const double *g,
                     const double *iterate_old)
{
    const int64_t n = space->count;
    operands on = {.x = x,
                   .g = g,
                   .x_old = iterate_old,
                   .g_old = iterate_old + n,
                   .out_x = iterate,
                   .out_g = iterate + n,
                   .q = iterate + 2 * n};
    double sums[SUMS];
    make_pass(space, work_meet, &on, sums);
    *out = (lbfgs_measure){.pp = sums[0],
                           .l1 = sums[1],
                           .sy = sums[2],
                           .yy = sums[3],
                           .ss = sums[4],
                           .sp = sums[5],
                           .greatest = sums[GREATEST]};
}

/* q += amount * (x - x_old), and the product with another difference. */
static void work_chain(const operands *on, int64_t first, int64_t count, double l1, double *sums)
{
    const double *restrict x = on->x + first, *restrict x_old = on->x_old + first;
    const double *restrict next = on->next + first, *restrict next_old = on->next_old + first;
    double *restrict q = on->q + first;
    const double amount = on->amount;
    double dot[LANES] = {0};
    (void)l1;
    IN_LANES(count, {
        const double value = q[at] + amount * (x[at] - x_old[at]);
        q[at] = value;
        dot[lane] += value * (next[at] - next_old[at]);
    });
    sums[0] += add_lanes(dot);
}

static double chain(lbfgs_space *space, const operands *on)
{
    double sums[SUMS];
    make_pass(space, work_chain, on, sums);
    return sums[0];
}

double lbfgs_pass_down(lbfgs_space *space, double *q, double amount, const lbfgs_pair *pair, const lbfgs_pair *next)
{
    return chain(
        space,
        &(operands){
            .q = q, .amount = -amount, .x = pair->g, .x_old = pair->g_old, .next = next->x, .next_old = next->x_old});
}

double lbfgs_pass_up(lbfgs_space *space, double *q, double amount, const lbfgs_pair *pair, const lbfgs_pair *next)
{
    return chain(
        space,
        &(operands){
            .q = q, .amount = amount, .x = pair->x, .x_old = pair->x_old, .next = next->g, .next_old = next->g_old});
}

static void work_turn(const operands *on, int64_t first, int64_t count, double l1, double *sums)
{
    const double *restrict g = on->g + first, *restrict g_old = on->g_old + first;
    double *restrict q = on->q + first;
    const double amount = on->amount, scale = on->scale;
    double dot[LANES] = {0};
    (void)l1;
    IN_LANES(count, {
        const double y = g[at] - g_old[at];
        const double value = scale * (q[at] - amount * y);
        q[at] = value;
        dot[lane] += value * y;
    });
    sums[0] += add_lanes(dot);
}

double lbfgs_pass_turn(lbfgs_space *space, double *q, double amount, double scale, const lbfgs_pair *pair)
{
    double sums[SUMS];
    make_pass(space, work_turn,
              &(operands){.q = q, .amount = amount, .scale = scale, .g = pair->g, .g_old = pair->g_old}, sums);
    return sums[0];
}

static void work_close(const operands *on, int64_t first, int64_t count, double l1, double *sums)
{
    const double *restrict x = on->x + first, *restrict x_old = on->x_old + first, *restrict g = on->g + first;
    double *restrict q = on->q + first;
    const double amount = on->amount;
    double slope[LANES] = {0}, length[LANES] = {0};
    IN_LANES(count, {
        const double p = pseudo(x[at], g[at], l1);
        double d = -(q[at] + amount * (x[at] - x_old[at]));
        if (l1 > 0 && !(d * p < 0))
            d = 0;
        q[at] = d;
        slope[lane] += d * p;
        length[lane] += d * d;
    });
    sums[0] += add_lanes(slope);
    sums[1] += add_lanes(length);
}

void lbfgs_pass_close(lbfgs_space *space, double *slope, double *length, double *iterate, double amount,
                      const lbfgs_pair *pair)
{
    const int64_t n = space->count;
    double sums[SUMS];
    make_pass(space, work_close,
              &(operands){.q = iterate + 2 * n, .amount = amount, .x = pair->x, .x_old = pair->x_old, .g = iterate + n},
              sums);
    *slope = sums[0];
    *length = sums[1];
}

static void work_move(const operands *on, int64_t first, int64_t count, double l1, double *sums)
{
    const double *restrict x = on->x + first, *restrict d = on->d_old + first;
    double *restrict out = on->out_x + first;
    const double step = on->amount;
    (void)sums;
    if (l1 == 0) {
        for (int64_t i = 0; i < count; i++)
            out[i] = x[i] + step * d[i];
        return;
    }
    /* From 0 any direction leads into an orthant; d has the sign of -p there already. */
    for (int64_t i = 0; i < count; i++) {
        const double value = x[i] + step * d[i];
        out[i] = (x[i] > 0 && value < 0) || (x[i] < 0 && value > 0) || value == 0 ? 0 : value;
    }
}

void lbfgs_pass_move(lbfgs_space *space, double *out, const double *iterate, double step)
{
    double sums[SUMS];
    make_pass(space, work_move,
              &(operands){.x = iterate, .d_old = iterate + 2 * space->count, .out_x = out, .amount = step}, sums);
}

static void work_slope(const operands *on, int64_t first, int64_t count, double l1, double *sums)
{
    const double *restrict g = on->g + first, *restrict d = on->d_old + first;
    double slope[LANES] = {0}, square[LANES] = {0};
    (void)l1;
    IN_LANES(count, {
        slope[lane] += g[at] * d[at];
        square[lane] += g[at] * g[at];
    });
    sums[0] += add_lanes(slope);
    sums[1] += add_lanes(square);
}

void lbfgs_pass_slope(lbfgs_space *space, double *slope, double *square, const double *g, const double *iterate_old)
{
    double sums[SUMS];
    make_pass(space, work_slope, &(operands){.g = g, .d_old = iterate_old + 2 * space->count}, sums);
    *slope = sums[0];
    *square = sums[1];
}

static void work_change(const operands *on, int64_t first, int64_t count, double l1, double *sums)
{
    const double *restrict x = on->x + first, *restrict g = on->g + first;
    const double *restrict x_old = on->x_old + first, *restrict g_old = on->g_old + first;
    double promised[LANES] = {0}, trapezium[LANES] = {0}, size[LANES] = {0}, moved[LANES] = {0}, square[LANES] = {0};
    IN_LANES(count, {
        const double s = x[at] - x_old[at];
        promised[lane] += pseudo(x_old[at], g_old[at], l1) * s;
        trapezium[lane] += (0.5 * g_old[at] + 0.5 * g[at]) * s + l1 * (fabs(x[at]) - fabs(x_old[at]));
        size[lane] += fabs(x[at]);
        moved[lane] += s * s;
        square[lane] += g[at] * g[at];
    });
    sums[0] += add_lanes(promised);
    sums[1] += add_lanes(trapezium);
    sums[2] += l1 > 0 ? l1 * add_lanes(size) : 0;
    sums[3] += add_lanes(moved);
    sums[4] += add_lanes(square);
}

void lbfgs_pass_change(lbfgs_space *space, lbfgs_change *out, const double *x, const double *g,
                       const double *iterate_old)
{
    double sums[SUMS];
    make_pass(space, work_change,
              &(operands){.x = x, .g = g, .x_old = iterate_old, .g_old = iterate_old + space->count}, sums);
    *out =
        (lbfgs_change){.promised = sums[0], .trapezium = sums[1], .l1 = sums[2], .moved = sums[3], .square = sums[4]};
}
