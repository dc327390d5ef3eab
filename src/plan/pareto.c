/* What nothing beats.  See pareto.h. */
#include "plan/pareto.h"

#include <math.h>
#include <stdlib.h>

#include <shoal/error.h>

#include "base/memory.h"

static int compare_outcomes(const void *a, const void *b, void *all)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const plan_tradeoff *p = &((const plan_tradeoff *)all)[i], *q = &((const plan_tradeoff *)all)[j];
    if (p->seconds != q->seconds)
        return p->seconds < q->seconds ? -1 : 1;
    if (p->dollars != q->dollars)
        return p->dollars < q->dollars ? -1 : 1;
    return (i > j) - (i < j);
}

int plan_pareto(bool *front, const plan_tradeoff *outcome, int64_t count)
{
    int64_t *order = NULL, finite = 0;
    int status = base_alloc_unset(&order, (size_t)count, sizeof *order, "the order of points");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < count; i++) {
        front[i] = false;
        if (isfinite(outcome[i].seconds) && isfinite(outcome[i].dollars))
            order[finite++] = i;
    }
    qsort_r(order, (size_t)finite, sizeof *order, compare_outcomes, (void *)outcome);
    double least = INFINITY; /* of all that are as fast or faster */
    for (int64_t k = 0; k < finite; k++) {
        const plan_tradeoff *p = &outcome[order[k]];
        front[order[k]] = p->dollars < least;
        least = fmin(least, p->dollars);
    }
    base_free(&order);
    return SHOAL_OK;
}
