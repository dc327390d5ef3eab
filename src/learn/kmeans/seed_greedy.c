/* Greedy k-means++ (Arthur and Vassilvitskii 2007, with the several trials a step that scikit-learn makes): every
 * step draws a few rows by their potential and keeps the one that lowers the total potential most.
 *
 * One JUDGE round takes the centre that the step before chose into the memo and sums the potential under each of the
 * new candidates.  A row looks only at members of that set that are near its nearest centre (seed_may_be_nearer). */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/seed.h"

enum { JUDGE_POTENTIAL, JUDGE_MOST };

/* So few members in reach are measured by the definition at once; more go through a filter by scores first. */
enum { JUDGE_AT_ONCE = 2 };

int64_t seed_trials(int64_t k)
{
    return 2 + (int64_t)log((double)k);
}

static int64_t trials_of(const kmeans_model *model)
{
    return seed_trials(model->k);
}

/* ---- the rounds -------------------------------------------------------------------------------------------------- */

int seed_greedy_judge(shoal_round **next, const shoal_round *fetched, shoal_partial *merged)
{
    const seed_view before = seed_view_of(fetched);
    int status = seed_round_from(next, fetched, KMEANS_JUDGE, 0, before.state->draws);
    if (status < 0)
        return status;
    seed_view view = seed_view_of(*next);
    view.state->candidates = seed_take_rows(view.candidate, merged, view.base.model->columns);
    if (view.base.model->filled == 0)
        view.state->most = view.base.model->distance_most * view.base.model->weight_most;
    return SHOAL_OK;
}

/* The memo knows all centres but perhaps the newest. */
static bool check_judge(const kmeans_view *view, const shoal_shape *shape)
{
    const seed_state *state = view->extra;
    const kmeans_model *model = view->model;
    (void)shape;
    return seed_section_is_whole(view) && model->start == KMEANS_START_GREEDY && model->filled < model->k &&
           state->applied <= model->filled && model->filled - state->applied <= 1 && state->candidates >= 1 &&
           state->candidates <= trials_of(model);
}

static void describe_judge(shoal_round *round, const shoal_shape *shape)
{
    seed_view view = seed_view_of(round);
    shoal_layout *layout = &round->layout;
    layout->cells = 2;
    layout->cell[JUDGE_POTENTIAL] =
        (shoal_cell){"potentials", SHOAL_CELL_SUM, view.state->candidates * shape->grains, 0, false};
    /* Before any candidate, and under the candidate when there is just one. */
    layout->cell[JUDGE_MOST] = (shoal_cell){"greatest potential", SHOAL_CELL_MAX, 2, 0, false};
    layout->memo_row_bytes = SEED_MEMO_BYTES + (seed_keeps_bytes(shape) ? seed_bytes_row(shape) : 0);
    layout->carry_from = view.base.model->memo_round;
    layout->writes_memo = true;
    round->step = view.base.model->filled;
    round->steps = view.base.model->k;
}

/* The set a round looks at: the newest centre, unless the memo knows it, and then the candidates. */
static int64_t unapplied(const seed_view *view)
{
    return view->base.model->filled - view->state->applied;
}

typedef struct nearing {
    kmeans_prepared *prepared;
    const double *centres;
    int64_t count, columns;
} nearing;

static int find_near(void *context, int64_t j, int thread)
{
    const nearing *job = context;
    (void)thread;
    for (int64_t c = 0; c < job->count; c++)
        job->prepared->near[j * SEED_MEMBERS + c] = job->prepared->kernel->distance64(
            job->prepared->set + c * job->columns, job->centres + j * job->columns, job->columns);
    return SHOAL_OK;
}

static int prepare_judge(kmeans_prepared *prepared, const shoal_round *round, const shoal_shape *shape,
                         const shoal_crew *crew)
{
    seed_view view = seed_view_of(round);
    int64_t columns = shape->columns, fresh = unapplied(&view), count = fresh + view.state->candidates;
    size_t bytes = (size_t)columns * sizeof(double);
    int status = seed_reserve(prepared, view.base.model->k, trials_of(view.base.model) + 1, columns);
    if (status < 0)
        return status;
    memcpy(prepared->set, view.base.centres + view.state->applied * columns, (size_t)fresh * bytes);
    memcpy(prepared->set + fresh * columns, view.candidate, (size_t)view.state->candidates * bytes);
    nearing job = {prepared, view.base.centres, count, columns};
    status = crew->each(crew, view.state->applied, find_near, &job);
    prepared->pack.prefers_bytes = seed_keeps_bytes(shape);
    if (status == SHOAL_OK)
        status = kmeans_pack_fill(&prepared->pack, prepared->kernel, prepared->set, NULL, count, &view.base,
                                  shape->type, crew);
    return status;
}

static size_t scratch_judge(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    const kmeans_model *model = round->model;
    return kmeans_rows_bytes(shape->columns) + kmeans_cut_size((size_t)shape->rows_per_grain * sizeof(int32_t)) +
           kmeans_cut_size((size_t)trials_of(model) * sizeof(int64_t)) +
           kmeans_cut_size((size_t)shape->rows_per_grain * sizeof(double)) +
           kmeans_nearer_bytes(&prepared->pack, prepared->kernel);
}

/* ---- map --------------------------------------------------------------------------------------------------------- */

typedef struct judging {
    const kmeans_rows *rows;
    const kmeans_prepared *prepared;
    seed_view view;
    seed_memo memo;
    double inverse;
    int64_t *saved; /* by candidate: how much lower the potential is under it */
    double *under;  /* by row: its distance when the only candidate is taken; NULL when there are several */
    int64_t *counters;
} judging;

/* Row i may be nearer to some of the set: takes the newest centre in, then sees what each candidate would save. */
static void judge_row(void *context, int64_t i, const int32_t *places, int count)
{
    judging *job = context;
    const kmeans_pack *pack = &job->prepared->pack;
    int64_t fresh = unapplied(&job->view), columns = pack->columns;
    double distance[SEED_MEMBERS], *current = &job->memo.distance[i];
    for (int c = 0; c < count; c++) {
        int32_t member = pack->id[places[c]];
        distance[c] = kmeans_rows_distance(job->rows, i, job->prepared->set + member * columns);
        if (member < fresh && distance[c] < *current) {
            *current = distance[c];
            job->memo.nearest[i] = (int32_t)(job->view.state->applied + member);
        }
    }
    job->counters[KMEANS_DEFINITIONS] += count;
    int64_t potential = seed_potential(job->rows, i, *current, job->inverse);
    if (job->under)
        job->under[i] = *current;
    for (int c = 0; c < count; c++) {
        int64_t candidate = pack->id[places[c]] - fresh;
        if (candidate < 0 || !(distance[c] < *current))
            continue;
        job->saved[candidate] = base_add_wrapping(
            job->saved[candidate],
            base_subtract_wrapping(potential, seed_potential(job->rows, i, distance[c], job->inverse)));
        if (job->under)
            job->under[i] = distance[c];
    }
}

/* Distances from nothing: the memo is new or was lost. */
static void measure_again(judging *job)
{
    const kmeans_model *model = job->view.base.model;
    for (int64_t i = 0; i < job->rows->grain->rows; i++) {
        job->memo.distance[i] = job->view.base.model->distance_most;
        job->memo.nearest[i] = 0;
        for (int64_t j = 0; j < job->view.state->applied; j++) {
            double distance = kmeans_rows_distance(job->rows, i, job->view.base.centres + j * model->columns);
            if (j == 0 || distance < job->memo.distance[i]) {
                job->memo.distance[i] = distance;
                job->memo.nearest[i] = (int32_t)j;
            }
        }
    }
}

/* Places of the members that row i must look at; the members of its nearest centre's list that may be nearer. */
static int members_in_reach(const judging *job, int64_t i, int32_t *places)
{
    const kmeans_pack *pack = &job->prepared->pack;
    const double *near = job->prepared->near + (int64_t)job->memo.nearest[i] * SEED_MEMBERS;
    int count = 0;
    for (int32_t p = 0; p < pack->count; p++)
        if (seed_may_be_nearer(near[pack->id[p]], job->memo.distance[i]))
            places[count++] = p;
    return count;
}

/* From row `first` on: judges rows with one or two members in reach at once and lists those with more, which go through
 * a filter. */
static int64_t judge_or_list(judging *job, int64_t first, int32_t *which)
{
    int64_t count = 0, rows = job->rows->grain->rows;
    int32_t places[SEED_MEMBERS];
    bool any = job->view.state->applied == 0;
    for (int64_t i = first; i < rows; i++) {
        int members = any ? SEED_MEMBERS : members_in_reach(job, i, places);
        if (members > JUDGE_AT_ONCE)
            which[count++] = (int32_t)i;
        else if (members > 0)
            judge_row(job, i, places, members);
    }
    return count;
}

/* Judges the rows that are kept as bytes, all of them against all members, and returns how many those are. */
static int64_t judge_bytes(judging *job, unsigned char *memory)
{
    const shoal_grain *grain = job->rows->grain;
    const kmeans_pack *pack = &job->prepared->pack;
    seed_bytes bytes = seed_bytes_of(grain, job->rows->kernel);
    if (!grain->carried)
        seed_bytes_fill(&bytes, job->rows, (float *)memory);
    kmeans_nearer_kept(job->rows, pack, &bytes.rows, bytes.square, bytes.count, job->memo.distance, judge_row, job,
                       memory, job->counters);
    return bytes.count;
}

static int map_judge(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                     const shoal_grain *grain, const shoal_scratch *scratch)
{
    judging job = {
        .prepared = prepared, .view = seed_view_of(round), .memo = seed_memo_of(grain), .counters = scratch->counters};
    int64_t candidates = job.view.state->candidates, grains = grain->shape->grains;
    int64_t *potentials = shoal_partial_values(partial, JUDGE_POTENTIAL), total = 0;
    unsigned char *memory = scratch->memory;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, &job.view.base, grain, &memory);
    int32_t *which = kmeans_cut(&memory, (size_t)grain->rows * sizeof *which);
    job.rows = &rows;
    job.inverse = seed_potential_inverse(job.view.base.model, job.view.state->most);
    job.saved = kmeans_cut(&memory, (size_t)trials_of(job.view.base.model) * sizeof *job.saved);
    memset(job.saved, 0, (size_t)candidates * sizeof *job.saved);
    double *under = kmeans_cut(&memory, (size_t)grain->rows * sizeof *under);
    int status = SHOAL_OK;
    if (!grain->carried)
        measure_again(&job);
    else if ((status = kmeans_memo_check(grain, job.memo.nearest, job.view.base.model->k)) < 0)
        return status;
    if (candidates == 1) {
        job.under = under;
        memcpy(under, job.memo.distance, (size_t)grain->rows * sizeof *under);
    }
    int64_t done = prepared->pack.bytes && seed_keeps_bytes(grain->shape) ? judge_bytes(&job, memory) : 0;
    int64_t count = judge_or_list(&job, done, which);
    kmeans_nearer(&rows, &prepared->pack, which, count, job.memo.distance, judge_row, &job, memory, scratch->counters);
    double most = 0, most_under = 0;
    for (int64_t i = 0; i < grain->rows; i++) {
        double weight = kmeans_rows_weight(&rows, i), term = weight * job.memo.distance[i];
        total = base_add_wrapping(total, seed_potential(&rows, i, job.memo.distance[i], job.inverse));
        most = term > most ? term : most;
        if (job.under && weight * under[i] > most_under)
            most_under = weight * under[i];
    }
    for (int64_t c = 0; c < candidates; c++) {
        int64_t *sum = &potentials[c * grains + grain->index];
        *sum = base_add_wrapping(*sum, base_subtract_wrapping(total, job.saved[c]));
    }
    shoal_max_raise(shoal_partial_values(partial, JUDGE_MOST), 0, most);
    shoal_max_raise(shoal_partial_values(partial, JUDGE_MOST), 1, most_under);
    return SHOAL_OK;
}

/* ---- update ------------------------------------------------------------------------------------------------------ */

static int64_t total_of(const int64_t *potentials, int64_t grains)
{
    int64_t total = 0;
    for (int64_t g = 0; g < grains; g++)
        total += potentials[g];
    return total;
}

static int64_t best_candidate(const int64_t *potentials, int64_t candidates, int64_t grains)
{
    int64_t best = 0;
    for (int64_t c = 1; c < candidates; c++)
        if (total_of(potentials + c * grains, grains) < total_of(potentials + best * grains, grains))
            best = c;
    return best;
}

/* Candidate `best` becomes a centre; the next ones are drawn by the potentials under it. */
static int choose_candidate(shoal_round **next, const shoal_round *round, shoal_partial *merged, int64_t best,
                            const shoal_shape *shape)
{
    seed_view view = seed_view_of(round);
    const kmeans_model *model = view.base.model;
    const int64_t *potentials = shoal_partial_values(merged, JUDGE_POTENTIAL) + best * shape->grains;
    bool last = model->filled + 1 == model->k;
    int status =
        last ? kmeans_begin_lloyd(next, round, shape) : seed_round_from(next, round, KMEANS_FETCH, trials_of(model), 0);
    if (status < 0)
        return status;
    kmeans_view fresh = kmeans_view_of(*next);
    memcpy(fresh.centres + model->filled * model->columns, view.candidate + best * model->columns,
           (size_t)model->columns * sizeof(double));
    fresh.model->filled = model->filled + 1;
    if (last)
        return SHOAL_OK;
    seed_view after = seed_view_of(*next);
    fresh.model->memo_round = round->number;
    after.state->applied = model->filled;
    after.state->inverse = seed_potential_inverse(model, view.state->most);
    after.state->most = shoal_max_value(shoal_partial_values(merged, JUDGE_MOST)[0]);
    seed_draw_rows(&after, potentials, shape->grains);
    return SHOAL_OK;
}

/* The quantum swallowed all potentials: judges the best candidate again, alone, by its own greatest potential.  When
 * even that is zero, or as good as that, every row of positive weight is a centre already. */
static int judge_finer(shoal_round **next, const shoal_round *round, shoal_partial *merged, int64_t best)
{
    seed_view view = seed_view_of(round);
    int64_t columns = view.base.model->columns;
    bool alone = view.state->candidates == 1;
    double most = shoal_max_value(shoal_partial_values(merged, JUDGE_MOST)[alone]);
    if (alone && !seed_can_weigh(view.base.model, most) && view.base.model->filled + 1 < view.base.model->k)
        return seed_too_few(view.base.model, view.base.model->filled + 1);
    int status = seed_round_from(next, round, KMEANS_JUDGE, 0, 1);
    if (status < 0)
        return status;
    seed_view after = seed_view_of(*next);
    memcpy(after.candidate, view.candidate + best * columns, (size_t)columns * sizeof(double));
    after.base.model->memo_round = round->number;
    after.state->applied = view.base.model->filled;
    after.state->most = most;
    return SHOAL_OK;
}

static int update_judge(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    seed_view view = seed_view_of(round);
    const int64_t *potentials = shoal_partial_values(merged, JUDGE_POTENTIAL);
    (void)result, (void)crew;
    if (stop)
        return kmeans_stop_early(next, round, "choosing the first centres");
    for (int64_t c = 0; c < view.state->candidates; c++)
        if (!seed_are_potentials(potentials + c * shape->grains, shape->grains, 0))
            return kmeans_fail_merged(round, "potentials");
    for (int i = 0; i < 2; i++)
        if (!isfinite(shoal_max_value(shoal_partial_values(merged, JUDGE_MOST)[i])))
            return kmeans_fail_merged(round, "greatest potentials");
    int64_t best = best_candidate(potentials, view.state->candidates, shape->grains);
    bool last = view.base.model->filled + 1 == view.base.model->k; /* then potentials no longer matter */
    if (!last && total_of(potentials + best * shape->grains, shape->grains) == 0)
        return judge_finer(next, round, merged, best);
    return choose_candidate(next, round, merged, best, shape);
}

const kmeans_phase kmeans_judge = {.name = "seed",
                                   .check = check_judge,
                                   .describe = describe_judge,
                                   .prepare = prepare_judge,
                                   .scratch_bytes = scratch_judge,
                                   .map = map_judge,
                                   .update = update_judge};
