/* The shape of a reduction, as far as its time depends on it: how many pieces are put and fetched at each level by
 * those who have most to do. It follows what jobs choose (src/engine/store/job_setup.c, job_tree.c), and says for any
 * shape what it would take. */
#ifndef PLAN_TREE_H
#define PLAN_TREE_H

#include <shoal/plan.h>

enum { PLAN_LEVELS_MOST = 24 };

typedef struct plan_tree_level {
    double parents; /* pieces that are made at this level */
    double makers;  /* who make them, each as many */
    double fetched; /* children of one that its maker has to fetch: all but its own */
    double part;    /* of the sums, that each child has */
} plan_tree_level;

typedef struct plan_tree {
    double grains, slices;        /* that the rows are cut into; no slice has less than a grain */
    double pieces, put_by_mapper; /* that are merged at the first level; of these, what a worker puts */
    int levels; /* of merging, but for those at which nobody needs what others have; the last one has one parent */
    plan_tree_level level[PLAN_LEVELS_MOST];
    double ranges, range_bytes; /* the sums may be cut into that many, where each has so many bytes; 0: they are not */
} plan_tree;

/* SHOAL_USAGE for a --reduce that is none. */
int plan_tree_make(plan_tree *out, const shoal_plan_job *job, const shoal_site *site, const shoal_plan_crew *crew);
/* The same where sums are reduced in tree->ranges ranges. */
plan_tree plan_tree_cut(const plan_tree *tree, const shoal_plan_job *job, const shoal_plan_crew *crew);

#endif
