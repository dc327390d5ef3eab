/* The model of Durut and Rossi.  See shoal/plan.h and docs/plan.md. */
#include <math.h>
#include <shoal/plan.h>

#include "plan/bill.h"

static int check_paper(const shoal_paper *paper, int64_t mappers)
{
    const struct {
        const char *name;
        double value;
    } positive[] = {{"rows", paper->rows},   {"cols", paper->columns},   {"clusters", paper->clusters},
                    {"flops", paper->flops}, {"bandwidth", paper->read}, {"workers", (double)mappers}};
    for (size_t i = 0; i < sizeof positive / sizeof positive[0]; i++)
        if (!(positive[i].value > 0 && isfinite(positive[i].value)))
            return shoal_fail(SHOAL_USAGE, "--%s: must be above 0 for the paper's model, not %g", positive[i].name,
                              positive[i].value);
    if (!(paper->iterations >= 0 && paper->write >= 0))
        return shoal_fail(SHOAL_USAGE,
                          "the paper's model needs iterations and a rate of writing that are not negative");
    return SHOAL_OK;
}

static const double DOUBLE = 8; /* bytes */

double shoal_paper_best(const shoal_paper *paper)
{
    double read = DOUBLE / paper->read, write = paper->write > 0 ? DOUBLE / paper->write : 0;
    return pow(3 * paper->rows / paper->flops / (read + 0.5 * write), 2.0 / 3);
}

/* Blobs and messages: a slice to load; in each iteration a mapper reads the prototypes and writes its sums, a group's
 * reducer reads those and writes one, and the last one reads these and writes the prototypes.  Looking whether
 * something is there yet is not counted. */
static double count_requests(double mappers, double groups, double iterations)
{
    return mappers + (mappers + groups + 1) + iterations * (3 * mappers + 2 * groups + 1);
}

int shoal_paper_estimate(shoal_estimate *out, const shoal_paper *paper, int64_t mappers)
{
    int status = check_paper(paper, mappers);
    if (status < 0)
        return status;
    double p = (double)mappers, groups = ceil(sqrt(p)), cells = paper->clusters * paper->columns;
    double read = DOUBLE / paper->read, write = paper->write > 0 ? DOUBLE / paper->write : 0;
    *out = (shoal_estimate){.units = p + groups + 1};
    out->sequential = paper->iterations * 3 * paper->rows * cells / paper->flops;
    out->load = paper->rows * paper->columns * read / p;
    out->map = out->sequential / p;
    out->reduce = paper->iterations * groups * cells * (2 * read + write);
    out->seconds = out->low = out->high = out->load + out->map + out->reduce;
    out->speedup = out->sequential / out->seconds;
    out->efficiency = out->speedup / out->units;
    out->requests = count_requests(p, groups, paper->iterations);
    out->request_price = out->requests * paper->dollars_per_request;
    out->cost = plan_bill(out->units, out->seconds, paper->dollars_per_hour, paper->billed) + out->request_price;
    out->cost_low = out->cost_high = out->cost;
    return SHOAL_OK;
}
