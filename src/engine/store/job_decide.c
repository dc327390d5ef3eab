/* Who does what in the next round, and what to do now.  See job_decide.h. */
#include "engine/store/job_decide.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- assigning --------------------------------------------------------------------------------------------------- */

/* A member's place in the trailer. */
typedef struct job_named {
    uint64_t worker;
    int32_t place;
} job_named;

typedef struct assigning {
    job_trailer *out;
    const job_tree *tree;
    int64_t slices, slots; /* of all that may map */
    int64_t *held;         /* slices of each member */
    int64_t *last;         /* of these the last, -1 for none; while slices are given back */
    job_named *named;      /* the members by the worker's number */
    int64_t free;          /* slices of nobody */
    int64_t empty;         /* members without slices that are due some */
} assigning;

static bool may(const job_member *member, unsigned role)
{
    return member->slots > 0 && (member->roles & role);
}

/* A member's share of the slices: in proportion to its slots, rounded up. */
static int64_t slices_due(const assigning *all, int64_t member)
{
    const job_member *m = &all->out->member[member];
    return may(m, SHOAL_ROLE_MAP) ? (all->slices * (int64_t)m->slots + all->slots - 1) / all->slots : 0;
}

static int by_worker(const void *a, const void *b)
{
    const job_named *one = a, *other = b;
    if (one->worker != other->worker)
        return one->worker < other->worker ? -1 : 1;
    return one->place - other->place;
}

static void name_members(assigning *all)
{
    for (int64_t m = 0; m < all->out->members; m++)
        all->named[m] = (job_named){all->out->member[m].worker, (int32_t)m};
    qsort(all->named, (size_t)all->out->members, sizeof *all->named, by_worker);
}

static int32_t find_member(const assigning *all, uint64_t worker)
{
    int64_t low = 0, high = all->out->members;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (all->named[middle].worker < worker)
            low = middle + 1;
        else
            high = middle;
    }
    return low < all->out->members && all->named[low].worker == worker ? all->named[low].place : -1;
}

static bool is_mapper(const job_trailer *trailer, int32_t member)
{
    return member >= 0 && may(&trailer->member[member], SHOAL_ROLE_MAP);
}

/* A slice stays with the worker assigned to it in the last round, or else with the one that mapped it. */
static void keep_holders(assigning *all, const job_trailer *before, const uint64_t *maker)
{
    for (int64_t s = 0; s < all->slices; s++) {
        int32_t told = s < before->pieces ? before->holder[s] : -1;
        int32_t holder = told >= 0 ? find_member(all, before->member[told].worker) : -1;
        if (!is_mapper(all->out, holder))
            holder = find_member(all, maker[s]);
        if (!is_mapper(all->out, holder))
            holder = -1;
        all->out->holder[s] = holder;
        if (holder >= 0)
            all->held[holder]++;
    }
}

static bool is_empty(const assigning *all, int64_t member)
{
    return all->held[member] == 0 && slices_due(all, member) > 0;
}

/* A worker with more than its share gives up one slice per round, since its rows have to be loaded elsewhere; and so
 * does one with several while others have none. */
static void give_back(assigning *all)
{
    memset(all->last, -1, (size_t)all->out->members * sizeof *all->last);
    for (int64_t s = 0; s < all->slices; s++)
        if (all->out->holder[s] < 0)
            all->free++;
        else
            all->last[all->out->holder[s]] = s;
    for (int64_t m = 0; m < all->out->members; m++)
        all->empty += is_empty(all, m);
    for (int64_t m = 0; m < all->out->members; m++) {
        bool over = all->held[m] > slices_due(all, m);
        if (all->last[m] < 0 || !(over || (all->held[m] > 1 && all->free < all->empty)))
            continue;
        all->out->holder[all->last[m]] = -1;
        all->held[m]--;
        all->free++;
        all->empty += is_empty(all, m);
    }
}

/* A free slice goes to the worker farthest below its share; but the holder of the slice before it comes first, while
 * enough are left for those that have none: adjacent slices make whole groups. */
static int32_t choose_taker(const assigning *all, int64_t slice)
{
    int32_t neighbour = slice > 0 ? all->out->holder[slice - 1] : -1, best = -1;
    double most = 0;
    if (neighbour >= 0 && all->held[neighbour] < slices_due(all, neighbour) && all->free > all->empty)
        return neighbour;
    for (int64_t m = 0; m < all->out->members; m++) {
        if (!may(&all->out->member[m], SHOAL_ROLE_MAP))
            continue;
        double room = (double)(slices_due(all, m) - all->held[m]) / (double)all->out->member[m].slots;
        if (best < 0 || room > most) {
            best = (int32_t)m;
            most = room;
        }
    }
    return best;
}

static void hand_out(assigning *all)
{
    for (int64_t s = 0; s < all->slices; s++) {
        if (all->out->holder[s] >= 0)
            continue;
        int32_t taker = choose_taker(all, s);
        all->out->holder[s] = taker;
        if (taker >= 0) {
            all->empty -= is_empty(all, taker);
            all->held[taker]++;
            all->free--;
        }
    }
}

/* The members that have a role, in turn. */
typedef struct turns {
    unsigned role;
    int64_t able;
} turns;

static turns count_able(const assigning *all, unsigned role)
{
    turns turns = {.role = role};
    for (int64_t m = 0; m < all->out->members; m++)
        turns.able += may(&all->out->member[m], role);
    return turns;
}

static int32_t take_turn(const assigning *all, turns turns, int64_t turn)
{
    int32_t member = 0;
    if (turns.able == 0)
        return -1;
    for (turn %= turns.able; !may(&all->out->member[member], turns.role) || turn-- > 0;)
        member++;
    return member;
}

/* A group goes to the holder of its first slice or, if that may not reduce, to those that may, in turn.  Its ranges go
 * to the holders of its slices one after the other, so that each merges as much as the others and has a part of that
 * here; the last ranges, of which there are fewer, begin elsewhere than the first groups do. */
static void assign_groups(assigning *all)
{
    const job_tree *tree = all->tree;
    const turns reducers = count_able(all, SHOAL_ROLE_REDUCE), last = count_able(all, SHOAL_ROLE_LAST);
    for (int64_t unit = all->slices; unit < all->out->pieces; unit++) {
        int64_t first, end, piece = job_tree_of_unit(tree, unit);
        turns able = piece == tree->pieces - 1 ? last : reducers;
        job_tree_slices(tree, piece, &first, &end);
        int32_t holder = all->out->holder[first + job_tree_range(tree, piece) * (end - first) / tree->ranges];
        if (holder < 0 || !may(&all->out->member[holder], able.role))
            holder = take_turn(all, able, unit - all->slices);
        all->out->holder[unit] = holder;
    }
}

int job_assign(job_trailer *out, const job_trailer *before, const uint64_t *maker, const job_tree *tree)
{
    assigning all = {.out = out, .tree = tree, .slices = tree->nodes[0]};
    int status = base_alloc(&all.held, (size_t)out->members + 1, sizeof *all.held, "members");
    if (status == SHOAL_OK)
        status = base_alloc(&all.last, (size_t)out->members + 1, sizeof *all.last, "members");
    if (status == SHOAL_OK)
        status = base_alloc(&all.named, (size_t)out->members + 1, sizeof *all.named, "members");
    if (status == SHOAL_OK)
        status = base_alloc(&out->holder, (size_t)job_tree_units(tree), sizeof *out->holder, "the pieces of a job");
    if (status < 0)
        goto done;
    out->pieces = job_tree_units(tree);
    name_members(&all);
    for (int64_t m = 0; m < out->members; m++)
        all.slots += may(&out->member[m], SHOAL_ROLE_MAP) ? out->member[m].slots : 0;
    keep_holders(&all, before, maker);
    give_back(&all);
    hand_out(&all);
    assign_groups(&all);
done:
    base_free(&all.held);
    base_free(&all.last);
    base_free(&all.named);
    return status;
}

/* ---- doing ------------------------------------------------------------------------------------------------------- */

static bool is(const job_view *view, int64_t piece, unsigned flag)
{
    return view->piece[piece] & flag;
}

static bool is_top(const job_view *view, int64_t piece)
{
    return piece == view->tree->pieces - 1;
}

static bool is_known(const job_view *view, int64_t piece)
{
    return is(view, piece, JOB_HERE | JOB_STORED);
}

static bool children_known(const job_view *view, int64_t piece)
{
    int64_t first, end;
    job_tree_children(view->tree, piece, &first, &end);
    while (first < end)
        if (!is_known(view, first++))
            return false;
    return true;
}

/* Whether I may make the piece at all. */
static bool allowed(const job_view *view, int64_t piece)
{
    unsigned role = is_top(view, piece)                    ? SHOAL_ROLE_LAST
                    : job_tree_is_slice(view->tree, piece) ? SHOAL_ROLE_MAP
                                                           : SHOAL_ROLE_REDUCE;
    return view->roles & role;
}

/* Whether an ancestor of this piece is known: then nobody needs this one. */
static bool is_covered(const job_view *view, int64_t piece)
{
    while ((piece = job_tree_parent(view->tree, piece)) >= 0)
        if (is_known(view, piece))
            return true;
    return false;
}

/* A hash, so that idle workers do not all help with the same piece. */
static uint64_t preference(const job_view *view, int64_t piece)
{
    uint64_t x = view->worker ^ (view->round * 0x9e3779b97f4a7c15u) ^ ((uint64_t)piece * 0xd1b54a32d192ed03u);
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* A piece that I hold and others need: its parent is not mine, or they may be waiting for what I have only in
 * memory. */
static bool must_put(const job_view *view, int64_t piece)
{
    int64_t parent = job_tree_parent(view->tree, piece);
    if (!is(view, piece, JOB_HERE) || is(view, piece, JOB_STORED | JOB_FETCHED) || parent < 0 ||
        is_covered(view, piece))
        return false;
    return view->flush || view->late || !is(view, parent, JOB_MINE);
}

/* What stands for a piece in an action: a slice is mapped and put with all its ranges. */
static int64_t whole_of(const job_view *view, int64_t piece)
{
    return job_tree_is_slice(view->tree, piece) ? job_tree_node(view->tree, piece) : piece;
}

static bool find_own(const job_view *view, job_action *out)
{
    int64_t slices = view->tree->count[0];
    for (int64_t piece = 0; piece < view->tree->pieces; piece++)
        if (must_put(view, piece)) {
            *out = (job_action){JOB_PUT, whole_of(view, piece), false};
            return true;
        }
    for (int64_t piece = 0; piece < slices; piece++)
        if (is(view, piece, JOB_MINE) && !is(view, piece, JOB_LACKING) && !is_known(view, piece) &&
            !is_covered(view, piece)) {
            *out = (job_action){JOB_MAP, whole_of(view, piece), false};
            return true;
        }
    for (int64_t piece = slices; piece < view->tree->pieces; piece++)
        if (is(view, piece, JOB_MINE) && !is_known(view, piece) && !is_covered(view, piece) &&
            children_known(view, piece)) {
            *out = (job_action){JOB_MERGE, piece, false};
            return true;
        }
    return false;
}

/* Below `piece`, which is missing, looks for something to make for another worker: a slice, or a group whose children
 * are known. */
static void find_rescue(const job_view *view, int64_t piece, job_action *best)
{
    int64_t first, end, whole = whole_of(view, piece);
    job_tree_children(view->tree, piece, &first, &end);
    bool free_to_make = view->late || is(view, piece, JOB_ORPHAN);
    free_to_make |= view->quiet && first < end;
    bool ready = first == end ? !is(view, piece, JOB_LACKING) : children_known(view, piece);
    if (ready && free_to_make && allowed(view, piece) && !is(view, piece, JOB_MINE) &&
        (best->piece < 0 || preference(view, whole) > preference(view, best->piece)))
        *best = (job_action){first == end ? JOB_MAP : JOB_MERGE, whole, true};
    for (; first < end; first++)
        if (!is_known(view, first))
            find_rescue(view, first, best);
}

job_action job_decide(const job_view *view)
{
    job_action action;
    int64_t top = view->tree->pieces - 1;
    if (find_own(view, &action))
        return action;
    action = (job_action){JOB_WAIT, -1, false};
    if (!is_known(view, top))
        find_rescue(view, top, &action);
    if (action.piece >= 0)
        return action;
    for (int64_t piece = view->tree->count[0]; piece <= top; piece++)
        if (is(view, piece, JOB_MINE) && !is_known(view, piece) && !is_covered(view, piece))
            return (job_action){JOB_FETCH, piece, false};
    return action;
}
