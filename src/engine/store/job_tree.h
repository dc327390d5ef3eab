/* The shape of a reduction: slices at the bottom, one piece at the top.
 *
 * Level 0 has one piece per slice.  Piece i of level l + 1 merges the pieces [i * fan[l], (i + 1) * fan[l]) of level l,
 * as many as there are; the last level has one piece, whose merging is followed by `update`.  The shape is a function
 * of the spec, and never changes the result: merging is exact. */
#ifndef JOB_TREE_H
#define JOB_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum { JOB_LEVELS_MOST = 20 };

typedef struct job_tree {
    int levels;                     /* at least 2 */
    int64_t fan[JOB_LEVELS_MOST];   /* of the level above; levels - 1 of them */
    int64_t count[JOB_LEVELS_MOST]; /* pieces of each level */
    int64_t first[JOB_LEVELS_MOST]; /* number of a level's first piece when all are counted, slices first */
    int64_t pieces;                 /* of all levels; the last one is the top */
} job_tree;

/* "flat", "two-level", "tree:F" or "auto" (two-level above 16 slices).  SHOAL_USAGE for anything else. */
int job_tree_choose(job_tree *out, const char *reduce, int64_t slices);
/* From levels - 1 fans, as a spec has them; false when they do not make a tree of that many slices. */
bool job_tree_make(job_tree *out, int64_t slices, int levels, const int64_t *fan);

int job_tree_level(const job_tree *tree, int64_t piece);
/* The piece it is merged into; -1 for the top. */
int64_t job_tree_parent(const job_tree *tree, int64_t piece);
/* Its children are [*first, *end); none for a slice. */
void job_tree_children(const job_tree *tree, int64_t piece, int64_t *first, int64_t *end);
/* The slices below it, or itself. */
void job_tree_slices(const job_tree *tree, int64_t piece, int64_t *first, int64_t *end);

#endif
