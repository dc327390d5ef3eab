/* The shape of a reduction.  See tree.h. */
#include "plan/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/grain.h"

/* As jobs choose them: two slices for every thread, at least four, none of more bytes than this; merged in one step up
 * to that many, and where a further step costs next to nothing, first by who made them. */
static const double SLICES_A_SLOT = 2, SLICES_LEAST = 4, SLICES_MOST = 65536, SLICE_BYTES = 256e6, FLAT_MOST = 16,
                    GROUPED_MOST = 16, RANGES_USUAL = 32, RANGES_MOST = 256, RANGE_BYTES = 65536;

static double usual_grains(const shoal_plan_job *job)
{
    double row_bytes = fmin(fmax(job->columns * job->value_bytes, 1), 0x1p62);
    return ceil(job->rows / (double)data_rows_per_grain((int64_t)job->rows, (int64_t)row_bytes));
}

static double choose_slices(const shoal_plan_job *job, const shoal_plan_crew *crew, double grains)
{
    double bytes = job->rows * job->columns * job->value_bytes;
    if (job->slices > 0)
        return fmin(job->slices, grains);
    if (job->slices < 0)
        return fmin((double)crew->workers, grains);
    double wanted = fmax((double)crew->workers * floor(fmax(crew->threads, 1)) * SLICES_A_SLOT, SLICES_LEAST);
    return fmin(fmin(fmax(wanted, ceil(bytes / SLICE_BYTES)), SLICES_MOST), grains);
}

/* "ranged[:R]"; 0 when R is to be chosen. */
static bool read_ranges(double *out, const char *reduce)
{
    size_t digits;
    *out = 0;
    if (!reduce || strncmp(reduce, "ranged", 6) != 0)
        return false;
    reduce += 6;
    if (*reduce != ':')
        return *reduce == '\0';
    digits = strspn(reduce + 1, "0123456789");
    *out = strtod(reduce + 1, NULL);
    return digits > 0 && reduce[1 + digits] == '\0' && *out >= 2 && *out <= RANGES_MOST;
}

/* How many pieces one of the first level above the slices merges, 0 for all; and whether the levels above merge as many
 * each, or all. */
static int choose_fan(double *out, bool *all_above, const char *reduce, double slices)
{
    bool automatic = !reduce || strcmp(reduce, "auto") == 0;
    double ranges;
    *out = 0;
    *all_above = true;
    if (automatic ? slices <= FLAT_MOST : strcmp(reduce, "flat") == 0)
        return SHOAL_OK;
    if (automatic || strcmp(reduce, "two-level") == 0 || read_ranges(&ranges, reduce)) {
        *out = slices < 4 ? 0 : ceil(slices / ceil(sqrt(slices)));
        return SHOAL_OK;
    }
    if (strncmp(reduce, "tree:", 5) == 0 && reduce[5] && strspn(reduce + 5, "0123456789") == strlen(reduce + 5)) {
        *out = strtod(reduce + 5, NULL);
        *all_above = false;
        if (*out >= 2)
            return SHOAL_OK;
    }
    return shoal_fail(SHOAL_USAGE,
                      "--reduce: '%.40s' is not one of auto, flat, two-level, tree:F and ranged[:R], as in tree:8",
                      reduce);
}

/* Makers of a piece hold some of its children themselves: at first all slices that one worker maps, then one piece.  A
 * level whose pieces have all their children with one worker takes nothing and is left out. */
static void add_level(plan_tree *tree, double *pieces, double *own, double fan, double makers)
{
    double merged = fan > 0 && fan < *pieces ? fan : *pieces, parents = ceil(*pieces / merged);
    if (*own >= merged) {
        *own = fmax(*own / merged, 1);
    } else {
        if (tree->levels == 0) {
            tree->pieces = *pieces;
            tree->put_by_mapper = *own;
        }
        tree->level[tree->levels++] =
            (plan_tree_level){.parents = parents, .makers = fmin(parents, makers), .fetched = merged - *own, .part = 1};
        *own = *own > 0 ? 1 : 0;
    }
    *pieces = parents;
}

int plan_tree_make(plan_tree *out, const shoal_plan_job *job, const shoal_site *site, const shoal_plan_crew *crew)
{
    double grains = job->grains > 0 ? fmin(job->grains, job->rows) : usual_grains(job);
    double slices = choose_slices(job, crew, grains), fan = 0, workers = fmin((double)crew->workers, slices);
    double pieces = slices, own = job->split_roles ? 0 : slices / workers;
    double makers = job->split_roles ? ceil(sqrt((double)crew->workers)) : workers;
    bool all_above = false, automatic = !job->reduce || strcmp(job->reduce, "auto") == 0;
    *out = (plan_tree){.grains = grains, .slices = slices, .pieces = slices};
    int status = choose_fan(&fan, &all_above, job->reduce, slices);
    if (status < 0)
        return status;
    if (automatic && job->slices == 0 && site->requests_per_second <= 0 && slices > SLICES_A_SLOT &&
        slices <= GROUPED_MOST)
        fan = SLICES_A_SLOT;
    bool first = true;
    do {
        add_level(out, &pieces, &own, first || !all_above ? fan : 0, makers);
        first = false;
    } while (pieces > 1 && out->levels < PLAN_LEVELS_MOST);
    if (job->split_roles && out->levels > 0) /* each has what it mapped to put, and none of what it reduces */
        out->put_by_mapper = slices / workers;
    if (read_ranges(&out->ranges, job->reduce) && out->ranges == 0) {
        out->ranges = fmin(fan > 0 ? fan : slices, RANGES_USUAL);
        out->range_bytes = RANGE_BYTES;
    }
    return SHOAL_OK;
}

/* Two levels of ranges, of which each worker makes as many as the others, and one that puts them together. */
plan_tree plan_tree_cut(const plan_tree *tree, const shoal_plan_job *job, const shoal_plan_crew *crew)
{
    double slices = tree->slices, ranges = tree->ranges, part = 1 / ranges, fan = 0;
    double workers = fmin((double)crew->workers, slices), own = job->split_roles ? 0 : slices / workers;
    double makers = job->split_roles ? ceil(sqrt((double)crew->workers)) : workers;
    bool all_above;
    plan_tree cut = *tree;
    (void)choose_fan(&fan, &all_above, "two-level", slices);
    fan = fan > 0 ? fan : slices;
    double groups = ceil(slices / fan), grouped = own >= fan ? own / fan : 0;
    cut.levels = 0;
    cut.pieces = slices;
    cut.put_by_mapper = slices / workers;
    if (grouped > 0) { /* their slices are nobody else's */
        cut.pieces = groups * ranges;
        cut.put_by_mapper = grouped * ranges;
    } else if (groups > 1) {
        cut.level[cut.levels++] = (plan_tree_level){
            .parents = groups * ranges, .makers = fmin(groups * ranges, makers), .fetched = fan - own, .part = part};
    }
    cut.level[cut.levels++] = (plan_tree_level){.parents = ranges,
                                                .makers = fmin(ranges, makers),
                                                .fetched = groups > 1 ? groups - fmax(grouped, 1) : slices - own,
                                                .part = part};
    cut.level[cut.levels++] =
        (plan_tree_level){.parents = 1, .makers = 1, .fetched = ranges - fmax(ranges / makers, 1), .part = part};
    return cut;
}
