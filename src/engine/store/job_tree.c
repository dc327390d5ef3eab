/* The shape of a reduction.  See job_tree.h.
 *
 * Fans have one canonical form: never more than there are pieces to merge, and 1 only if there is a single slice. So
 * two trees are the same exactly when their fans are, and every level but the lowest pair is smaller than the one below
 * it. */
#include "engine/store/job_tree.h"

#include <stdlib.h>
#include <string.h>

#include <shoal/job.h>

enum { FLAT_MOST = 16, PIECES_MOST = 1 << 30, UNITS_MOST = 4 * SHOAL_JOB_SLICES_MOST };

bool job_tree_make(job_tree *out, int64_t slices, int levels, const int64_t *fan)
{
    job_tree tree = {.levels = levels, .ranges = 1};
    if (slices < 1 || slices > PIECES_MOST || levels < 2 || levels > JOB_LEVELS_MOST)
        return false;
    tree.count[0] = slices;
    tree.pieces = slices;
    for (int level = 0; level + 1 < levels; level++) {
        int64_t count = tree.count[level], least = slices == 1 && level == 0 ? 1 : 2;
        if (fan[level] < least || fan[level] > count)
            return false;
        tree.fan[level] = fan[level];
        tree.count[level + 1] = (count + fan[level] - 1) / fan[level];
        tree.first[level + 1] = tree.pieces;
        tree.pieces += tree.count[level + 1];
    }
    if (tree.count[levels - 1] != 1)
        return false;
    memcpy(tree.nodes, tree.count, sizeof tree.nodes);
    *out = tree;
    return true;
}

bool job_tree_cut(job_tree *out, const job_tree *whole, int64_t ranges)
{
    job_tree tree = *whole;
    if (whole->ranges != 1 || ranges < 2 || ranges > JOB_RANGES_MOST || whole->levels == JOB_LEVELS_MOST ||
        (whole->pieces - whole->count[0]) * ranges > UNITS_MOST - whole->count[0] - 1)
        return false;
    tree.ranges = ranges;
    tree.pieces = 0;
    tree.nodes[tree.levels] = 1;
    tree.levels++;
    for (int level = 0; level < tree.levels; level++) {
        tree.first[level] = tree.pieces;
        tree.count[level] = level + 1 < tree.levels ? tree.nodes[level] * ranges : 1;
        tree.pieces += tree.count[level];
    }
    *out = tree;
    return true;
}

static void make_flat(job_tree *out, int64_t slices)
{
    job_tree_make(out, slices, 2, &slices);
}

/* About as many groups as each has slices: the longest chain of merging is then shortest. */
static void make_two_level(job_tree *out, int64_t slices)
{
    int64_t groups = 1;
    while (groups * groups < slices)
        groups++;
    int64_t fan[2] = {(slices + groups - 1) / groups};
    if (slices < 4) { /* groups of one would only pass on what they get */
        make_flat(out, slices);
        return;
    }
    fan[1] = (slices + fan[0] - 1) / fan[0];
    job_tree_make(out, slices, 3, fan);
}

static void make_fanned(job_tree *out, int64_t slices, int64_t wanted)
{
    int64_t fan[JOB_LEVELS_MOST], count = slices;
    int levels = 1;
    do {
        fan[levels - 1] = wanted < count ? wanted : count;
        count = (count + fan[levels - 1] - 1) / fan[levels - 1];
        levels++;
    } while (count > 1 && levels < JOB_LEVELS_MOST);
    job_tree_make(out, slices, levels, fan);
}

/* F of "tree:F": plain digits, at least 2; anything larger than a tree can need counts as the maximum. */
static bool parse_fan(int64_t *out, const char *text)
{
    int64_t value = 0;
    size_t length = strspn(text, "0123456789");
    if (length == 0 || text[length] != '\0')
        return false;
    for (size_t i = 0; i < length && value <= PIECES_MOST; i++)
        value = value * 10 + (text[i] - '0');
    *out = value;
    return value >= 2;
}

/* "ranged", which is 0, and "ranged:R". */
static bool parse_ranges(int64_t *out, const char *text)
{
    static const char word[] = "ranged";
    *out = 0;
    if (strncmp(text, word, sizeof word - 1) != 0)
        return false;
    text += sizeof word - 1;
    return *text == '\0' || (*text == ':' && parse_fan(out, text + 1) && *out <= JOB_RANGES_MOST);
}

/* As many ranges as a group has slices: then each holder of a slice merges one. */
bool job_tree_choose_ranges(job_tree *out, int64_t *bytes, const char *reduce, const job_tree *tree)
{
    enum { RANGES_USUAL = 32, BYTES_USUAL = 64 << 10 };
    int64_t ranges;
    *out = (job_tree){0};
    *bytes = 0;
    if (!reduce || !parse_ranges(&ranges, reduce))
        return true;
    *bytes = ranges > 0 ? 1 : BYTES_USUAL;
    if (ranges > 0)
        return job_tree_cut(out, tree, ranges);
    ranges = tree->fan[0] < RANGES_USUAL ? tree->fan[0] : RANGES_USUAL;
    (void)(ranges > 1 && job_tree_cut(out, tree, ranges));
    return true;
}

/* Even a tree that merges two at a time has room for as many slices as a job can have. */
_Static_assert(SHOAL_JOB_SLICES_MOST <= 1 << (JOB_LEVELS_MOST - 1), "too many slices for a tree");

int job_tree_choose(job_tree *out, const char *reduce, int64_t slices)
{
    int64_t fan = 0, ranges;
    if (slices < 1 || slices > SHOAL_JOB_SLICES_MOST)
        return shoal_fail(SHOAL_USAGE, "slices must be 1 to %d, not %lld", SHOAL_JOB_SLICES_MOST, (long long)slices);
    bool automatic = !reduce || strcmp(reduce, "auto") == 0;
    if (automatic ? slices <= FLAT_MOST : strcmp(reduce, "flat") == 0)
        make_flat(out, slices);
    else if (automatic || strcmp(reduce, "two-level") == 0 || parse_ranges(&ranges, reduce))
        make_two_level(out, slices);
    else if (strncmp(reduce, "tree:", 5) != 0)
        return shoal_fail(SHOAL_USAGE, "reduce must be auto, flat, two-level, tree:F or ranged, not '%.40s'", reduce);
    else if (!parse_fan(&fan, reduce + 5))
        return shoal_fail(SHOAL_USAGE,
                          "reduce needs a whole number of at least 2 after tree:, as in tree:8, not '%.40s'",
                          reduce + 5);
    else
        make_fanned(out, slices, fan);
    return SHOAL_OK;
}

int job_tree_level(const job_tree *tree, int64_t piece)
{
    int level = 0;
    while (level + 1 < tree->levels && piece >= tree->first[level + 1])
        level++;
    return level;
}

/* Whether it is the sum of all ranges. */
static bool joins_ranges(const job_tree *tree, int level)
{
    return tree->ranges > 1 && level + 1 == tree->levels;
}

int64_t job_tree_range(const job_tree *tree, int64_t piece)
{
    int level = job_tree_level(tree, piece);
    return joins_ranges(tree, level) ? 0 : (piece - tree->first[level]) / tree->nodes[level];
}

int64_t job_tree_node(const job_tree *tree, int64_t piece)
{
    int level = job_tree_level(tree, piece);
    return (piece - tree->first[level]) % tree->nodes[level];
}

int64_t job_tree_sum(const job_tree *tree, int64_t piece)
{
    int level = job_tree_level(tree, piece);
    int64_t sum = job_tree_node(tree, piece);
    for (int below = 1; below < level; below++)
        sum += tree->nodes[below];
    return sum;
}

int64_t job_tree_sums(const job_tree *tree)
{
    return job_tree_sum(tree, tree->pieces - 1) + 1;
}

int64_t job_tree_units(const job_tree *tree)
{
    return tree->nodes[0] + tree->pieces - tree->count[0];
}

int64_t job_tree_of_unit(const job_tree *tree, int64_t unit)
{
    return unit < tree->nodes[0] ? unit : unit - tree->nodes[0] + tree->count[0];
}

int64_t job_tree_parent(const job_tree *tree, int64_t piece)
{
    int level = job_tree_level(tree, piece);
    if (level + 1 == tree->levels)
        return -1;
    if (joins_ranges(tree, level + 1))
        return tree->first[level + 1];
    int64_t index = piece - tree->first[level], range = index / tree->nodes[level];
    return tree->first[level + 1] + range * tree->nodes[level + 1] + index % tree->nodes[level] / tree->fan[level];
}

/* The nodes of level `below` that lie under the nodes [*first, *end) of the level above it. */
static void step_down(const job_tree *tree, int below, int64_t *first, int64_t *end)
{
    if (joins_ranges(tree, below + 1)) {
        *end = tree->nodes[below];
        return;
    }
    *first *= tree->fan[below];
    *end *= tree->fan[below];
    if (*end > tree->nodes[below])
        *end = tree->nodes[below];
}

void job_tree_children(const job_tree *tree, int64_t piece, int64_t *first, int64_t *end)
{
    int level = job_tree_level(tree, piece);
    *first = *end = 0;
    if (level == 0)
        return;
    int64_t before = tree->first[level - 1];
    if (joins_ranges(tree, level)) {
        *first = before;
        *end = before + tree->count[level - 1];
        return;
    }
    before += job_tree_range(tree, piece) * tree->nodes[level - 1];
    *first = job_tree_node(tree, piece);
    *end = *first + 1;
    step_down(tree, level - 1, first, end);
    *first += before;
    *end += before;
}

void job_tree_slices(const job_tree *tree, int64_t piece, int64_t *first, int64_t *end)
{
    int level = job_tree_level(tree, piece);
    *first = job_tree_node(tree, piece);
    *end = *first + 1;
    while (level > 0)
        step_down(tree, --level, first, end);
}
