/* The shape of a reduction.  See tree.h. */
#include "plan/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As jobs choose them: two slices for every thread, at least four, none of more bytes than this; merged in one step up to so many. */
static const double SLICES_A_SLOT = 2, SLICES_LEAST = 4, SLICE_BYTES = 256e6, FLAT_MOST = 16;

static double choose_slices(const shoal_plan_job *job, const shoal_plan_crew *crew)
{
    double bytes = job->rows * job->columns * job->value_bytes;
    if (job->slices > 0)
        return fmin(job->slices, job->rows);
    if (job->split_roles)
        return fmin((double)crew->workers, job->rows);
    double wanted = fmax((double)crew->workers * floor(fmax(crew->threads, 1)) * SLICES_A_SLOT, SLICES_LEAST);
    return fmin(fmax(wanted, ceil(bytes / SLICE_BYTES)), job->rows);
}

/* How many pieces one of the first level above the slices merges, 0 for all; and whether the levels above merge as many each, or all. */
static int choose_fan(double *out, bool *all_above, const char *reduce, double slices)
{
    bool automatic = !reduce || strcmp(reduce, "auto") == 0;
    *out = 0;
    *all_above = true;
    if (automatic ? slices <= FLAT_MOST : strcmp(reduce, "flat") == 0)
        return SHOAL_OK;
    if (automatic || strcmp(reduce, "two-level") == 0) {
        *out = slices < 4 ? 0 : ceil(slices / ceil(sqrt(slices)));
        return SHOAL_OK;
    }
    char *end = NULL;
    if (strncmp(reduce, "tree:", 5) == 0 && reduce[5] >= '1' && reduce[5] <= '9') {
        *out = strtod(reduce + 5, &end);
        *all_above = false;
        if (*end == '\0' && *out >= 2 && *out <= 1e9 && *out == floor(*out))
            return SHOAL_OK;
    }
    return shoal_fail(SHOAL_USAGE, "--reduce: '%.40s' is none of auto, flat, two-level and tree:F, as in tree:8",
                      reduce);
}

/* Makers of a piece hold some of its children themselves: at first all slices that one worker maps, then one piece. */
static void add_level(plan_tree *tree, double *pieces, double *own, double fan)
{
    plan_tree_level *at = &tree->level[tree->levels++];
    double merged = fan > 0 && fan < *pieces ? fan : *pieces;
    at->parents = ceil(*pieces / merged);
    at->fetched = fmax(merged - *own, 0);
    *pieces = at->parents;
    *own = *own > 0 ? 1 : 0;
}

int plan_tree_make(plan_tree *out, const shoal_plan_job *job, const shoal_site *site, const shoal_plan_crew *crew)
{
    *out = (plan_tree){.slices = choose_slices(job, crew)};
    double fan = 0, workers = fmin((double)crew->workers, out->slices), each = out->slices / workers;
    double pieces = out->slices, own = job->split_roles ? 0 : each;
    bool all_above = false;
    int status = choose_fan(&fan, &all_above, job->reduce, pieces);
    if (status < 0)
        return status;
    /* Where a further step costs next to nothing, the slices of a worker's thread are merged by itself before anything is put. */
    bool automatic = !job->reduce || strcmp(job->reduce, "auto") == 0;
    if (automatic && !job->split_roles && job->slices <= 0 && site->requests_per_second <= 0 &&
        pieces <= 8 * SLICES_A_SLOT) {
        pieces = ceil(pieces / SLICES_A_SLOT);
        own = fmin(fmax(own / SLICES_A_SLOT, 1), pieces);
        each = own;
    }
    out->pieces = pieces;
    do
        add_level(out, &pieces, &own, out->levels > 0 && all_above ? 0 : fan);
    while (pieces > 1 && out->levels < PLAN_LEVELS_MOST);
    out->put_by_mapper = out->level[0].fetched > 0 ? each : 0;
    return SHOAL_OK;
}
