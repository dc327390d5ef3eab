/* The shape of a reduction: slices at the bottom, one piece at the top.
 *
 * Level 0 has one piece per slice.  Piece i of level l + 1 merges the pieces [i * fan[l], (i + 1) * fan[l]) of level l,
 * as many as there are; the last level has one piece, whose merging is followed by `update`.  The shape is a function
 * of the spec, and never changes the result: merging is exact.
 *
 * A tree may be cut into R ranges of the values: then there are R such trees, one for each range, which share nothing
 * but the slices, and above their R tops one more level with a single piece, the whole sum.  On each level but the last
 * the pieces of range 0 come first, then those of range 1, and so on; so the pieces [0, slices) are range 0 of the
 * slices, and stand for the slices where ranges do not matter. */
#ifndef JOB_TREE_H
#define JOB_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum { JOB_LEVELS_MOST = 20 };

enum { JOB_RANGES_MOST = 256 };

typedef struct job_tree {
    int levels;                     /* at least 2 */
    int64_t ranges;                 /* 1: it is not cut */
    int64_t fan[JOB_LEVELS_MOST];   /* of the level above; levels - 1 of them */
    int64_t nodes[JOB_LEVELS_MOST]; /* pieces of each level that have the same range */
    int64_t count[JOB_LEVELS_MOST]; /* pieces of each level */
    int64_t first[JOB_LEVELS_MOST]; /* number of a level's first piece when all are counted, slices first */
    int64_t pieces;                 /* of all levels; the last one is the top */
} job_tree;

/* "flat", "two-level", "tree:F", "ranged[:R]" (two-level) or "auto" (two-level above 16 slices).  SHOAL_USAGE for
 * anything else. */
int job_tree_choose(job_tree *out, const char *reduce, int64_t slices);
/* From levels - 1 fans, as a spec has them; false when they do not make a tree of that many slices. */
bool job_tree_make(job_tree *out, int64_t slices, int levels, const int64_t *fan);

/* The same tree in ranges, 2 or more; false when there are more levels or pieces than there may be. */
bool job_tree_cut(job_tree *out, const job_tree *whole, int64_t ranges);

/* For "ranged[:R]" the same tree in R ranges, and the bytes that each must have on average; R given is obeyed, whatever
 * the sums' size.  For anything else, and where ranges do not pay, out->ranges is 0.  False when R is too many for that
 * many slices. */
bool job_tree_choose_ranges(job_tree *out, int64_t *bytes, const char *reduce, const job_tree *tree);

int job_tree_level(const job_tree *tree, int64_t piece);
/* The range of a piece; 0 for the top. */
int64_t job_tree_range(const job_tree *tree, int64_t piece);
/* Its place on its level among the pieces of the same range: a slice's number on the lowest level. */
int64_t job_tree_node(const job_tree *tree, int64_t piece);
/* The place of a group's sum, which has room for all ranges: groups are numbered level by level, whether the tree is
 * cut or not, and the top of a cut one comes last. */
int64_t job_tree_sum(const job_tree *tree, int64_t piece);
int64_t job_tree_sums(const job_tree *tree);
/* What is assigned: slices with all their ranges, and each piece above.  The first piece of such a unit, which is its
 * only one above the slices. */
int64_t job_tree_units(const job_tree *tree);
int64_t job_tree_of_unit(const job_tree *tree, int64_t unit);
static inline bool job_tree_is_slice(const job_tree *tree, int64_t piece)
{
    return piece < tree->count[0];
}
/* The piece it is merged into; -1 for the top. */
int64_t job_tree_parent(const job_tree *tree, int64_t piece);
/* Its children are [*first, *end); none for a slice. */
void job_tree_children(const job_tree *tree, int64_t piece, int64_t *first, int64_t *end);
/* The slices below it, or itself. */
void job_tree_slices(const job_tree *tree, int64_t piece, int64_t *first, int64_t *end);

#endif
