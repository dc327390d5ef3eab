/* From round to round: the scan, then the points that L-BFGS asks for.  See gradient.h. */
#include "learn/gradient/gradient.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/gradient/gradient_internal.h"

int gradient_start(shoal_round **out, const gradient_class *of, const void *own, size_t own_bytes,
                   const shoal_shape *shape)
{
    const gradient_model head = {.phase = GRADIENT_SCAN, .own_bytes = (int64_t)own_bytes};
    return gradient_round_new(out, of, &head, own, shape);
}

/* ---- mapping ----------------------------------------------------------------------------------------------------- */

/* What the maps of a process share. */
typedef struct gradient_ready {
    const kernel_set *kernel;
    void *own; /* the learner's */
} gradient_ready;

int gradient_prepare(void **prepared, const gradient_class *of, const shoal_round *round, const shoal_shape *shape,
                     const shoal_crew *crew)
{
    const gradient_model *model = round->model;
    gradient_ready *ready = *prepared;
    int status = SHOAL_OK;
    if (!ready)
        status = base_alloc(prepared, 1, sizeof *ready, "what maps share");
    if (status < 0)
        return status;
    ready = *prepared;
    status = kernel_choose(&ready->kernel, crew->kernel);
    if (status == SHOAL_OK && model->phase == GRADIENT_DESCEND)
        status = of->prepare(&ready->own, gradient_own(model), gradient_point(model), shape, crew);
    return status;
}

void gradient_forget(void **prepared, const gradient_class *of)
{
    gradient_ready *ready = *prepared;
    if (!ready)
        return;
    of->forget(&ready->own);
    base_free(prepared);
}

size_t gradient_scratch_bytes(const gradient_class *of, const shoal_round *round, const void *prepared,
                              const shoal_shape *shape)
{
    const gradient_model *model = round->model;
    const gradient_ready *ready = prepared;
    if (model->phase == GRADIENT_SCAN)
        return of->scan_scratch ? of->scan_scratch(gradient_own(model), shape) : 0;
    return of->scratch_bytes(gradient_own(model), ready->own, shape);
}

int gradient_map(shoal_partial *partial, const gradient_class *of, const shoal_round *round, const void *prepared,
                 const shoal_grain *grain, const shoal_scratch *scratch)
{
    const gradient_model *model = round->model;
    const gradient_ready *ready = prepared;
    if (model->phase == GRADIENT_SCAN)
        return of->scan(partial, gradient_own(model), grain, scratch);
    gradient_sums sums = {.model = model,
                          .kernel = ready->kernel,
                          .grains = grain->shape->grains,
                          .values = shoal_partial_values(partial, GRADIENT_CELL_SUMS),
                          .greatest = shoal_partial_values(partial, GRADIENT_CELL_GREATEST)};
    return of->map(&sums, gradient_own(model), ready->own, grain, scratch);
}

/* ---- after the scan ---------------------------------------------------------------------------------------------- */

static int first_point(shoal_round **next, const gradient_class *of, const gradient_model *model,
                       const shoal_partial *merged, const shoal_shape *shape)
{
    gradient_model head = {.phase = GRADIENT_DESCEND};
    size_t own_bytes = (size_t)model->own_bytes;
    void *own = NULL;
    double *x = NULL;
    int status = base_alloc(&own, own_bytes, 1, "a model");
    if (status < 0)
        return status;
    memcpy(own, gradient_own(model), own_bytes);
    status = of->plan(&head.plan, &own, &own_bytes, merged, shape);
    if (status == SHOAL_OK)
        status = gradient_plan_check(&head.plan);
    if (status == SHOAL_OK)
        status = learn_lbfgs_start(&head.search, &head.plan.search);
    if (status == SHOAL_OK)
        status = base_alloc(&x, (size_t)head.plan.search.parameters, sizeof *x, "a point");
    if (status == SHOAL_OK)
        status = of->first(x, own, &own_bytes, shape);
    head.own_bytes = (int64_t)own_bytes;
    for (int64_t i = 0; status == SHOAL_OK && i < head.plan.groups; i++) {
        double size = head.plan.group[i].size;
        head.quantum[i] = gradient_quantum(size > 0 && isfinite(size) ? size : 1, shape->grains);
    }
    if (status == SHOAL_OK)
        status = gradient_round_new(next, of, &head, own, shape);
    if (status == SHOAL_OK)
        memcpy((double *)gradient_point((*next)->model), x, (size_t)head.plan.search.parameters * sizeof *x);
    base_free(&x);
    base_free(&own);
    return status;
}

/* ---- descending -------------------------------------------------------------------------------------------------- */

/* One step of the search, with the memory it needs. */
typedef struct descent {
    const gradient_class *of;
    const shoal_round *round;
    const gradient_model *model;
    const shoal_shape *shape;
    gradient_model head; /* of the next round */
    double *sums, *gradient, *x;
    double *iterate; /* x, g, d and notes: what is kept of a point that is accepted */
    double value;
    learn_lbfgs_answer answer;
} descent;

static int descent_alloc(descent *self)
{
    size_t parameters = (size_t)self->model->plan.search.parameters;
    int status = base_alloc_unset(&self->sums, (size_t)self->model->plan.sums, sizeof *self->sums, "sums");
    if (status == SHOAL_OK)
        status = base_alloc(&self->gradient, parameters, sizeof *self->gradient, "a gradient");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&self->x, parameters, sizeof *self->x, "a point");
    if (status == SHOAL_OK)
        status =
            base_alloc(&self->iterate, gradient_kept_numbers(&self->model->plan), sizeof *self->iterate, "a point");
    return status;
}

static void descent_release(descent *self)
{
    base_free(&self->sums);
    base_free(&self->gradient);
    base_free(&self->x);
    base_free(&self->iterate);
}

/* Where the notes lie in what is kept of a point. */
static double *notes_of(const descent *self, const double *iterate)
{
    return (double *)iterate + 3 * self->model->plan.search.parameters;
}

/* Value and gradient at the round's point, and what the learner notes about it. */
static int evaluate(descent *self, const shoal_partial *merged, gradient_merit merit)
{
    const gradient_model *model = self->model;
    self->value = INFINITY;
    if (merit == GRADIENT_NOT_FINITE)
        return SHOAL_OK;
    gradient_read_sums(self->sums, model, merged);
    int status = self->of->combine(&self->value, self->gradient, self->sums, gradient_own(model), gradient_point(model),
                                   self->shape);
    if (status == SHOAL_OK && self->of->note)
        status = self->of->note(notes_of(self, self->iterate), self->sums, gradient_own(model), gradient_point(model),
                                self->shape);
    return status;
}

static int step_lbfgs(descent *self, const shoal_crew *crew)
{
    size_t parameters = (size_t)self->model->plan.search.parameters;
    learn_past past = {.count = self->round->keeps};
    for (int i = 0; i < past.count; i++)
        past.iterate[i] = self->round->kept[i]->values;
    memcpy(self->x, gradient_point(self->model), parameters * sizeof *self->x);
    int status = learn_lbfgs_step(&self->answer, &self->head.search, &past, self->value, self->gradient, self->x,
                                  self->iterate, crew);
    /* Where a search failed, the iterate is not the point that was just evaluated but the newest one once more. */
    bool again = self->answer.accepted && past.count && self->head.search.iteration == self->model->search.iteration;
    if (status == SHOAL_OK && again)
        memcpy(notes_of(self, self->iterate), notes_of(self, past.iterate[past.count - 1]),
               (size_t)self->model->plan.notes * sizeof *self->iterate);
    return status;
}

/* The next round keeps what this one does, but for what is too old, and the new iterate. */
static int keep_history(shoal_round *next, const descent *self)
{
    int most = (int)self->model->plan.search.history + 1, have = self->round->keeps + self->answer.accepted;
    for (int i = have > most ? have - most : 0; i < self->round->keeps; i++)
        shoal_round_keep_on(next, self->round, i);
    if (!self->answer.accepted)
        return SHOAL_OK;
    size_t bytes = gradient_kept_numbers(&self->model->plan) * sizeof(double);
    void *kept = shoal_round_keep(next, bytes);
    if (!kept)
        return SHOAL_MEMORY;
    memcpy(kept, self->iterate, bytes);
    return SHOAL_OK;
}

/* A round for the point `x`. */
static int next_round(shoal_round **out, const descent *self, const double *x)
{
    int status = gradient_round_new(out, self->of, &self->head, gradient_own(self->model), self->shape);
    if (status < 0)
        return status;
    memcpy((double *)gradient_point((*out)->model), x, (size_t)self->model->plan.search.parameters * sizeof *x);
    status = keep_history(*out, self);
    if (status < 0)
        shoal_round_free(out);
    return status;
}

static int make_gradient_result(shoal_result **out, const descent *self, const double *x, bool stopped)
{
    const learn_lbfgs *search = &self->head.search;
    int status = shoal_result_new(out);
    if (status < 0)
        return status;
    (*out)->incomplete = stopped;
    shoal_result_set(*out, "objective", search->value);
    shoal_result_set_whole(*out, "iterations", search->iteration);
    shoal_result_set_whole(*out, "evaluations", search->evaluations);
    shoal_result_set(*out, "gradient", search->gradient_most);
    shoal_result_set_truth(*out, "converged",
                           search->end == LEARN_LBFGS_GRADIENT || search->end == LEARN_LBFGS_CHANGE ||
                               search->end == LEARN_LBFGS_STUCK);
    shoal_result_set_truth(*out, "diverged", search->end == LEARN_LBFGS_DIVERGED);
    shoal_result_set_whole(*out, "end", search->end);
    status = self->of->result(*out, gradient_own(self->model), (size_t)self->model->own_bytes, x, self->shape);
    if (status == SHOAL_OK && self->of->tell)
        status = self->of->tell(*out, notes_of(self, x), gradient_own(self->model), self->shape);
    if (status < 0)
        shoal_result_free(out);
    return status;
}

/* The newest accepted point; NULL when there is none. */
static const double *best_point(const descent *self)
{
    if (self->answer.accepted)
        return self->iterate;
    return self->round->keeps ? self->round->kept[self->round->keeps - 1]->values : NULL;
}

static int go_on_descending(shoal_round **next, shoal_result **result, const descent *self, bool stop)
{
    const double *best = best_point(self);
    if (!self->answer.done && !stop)
        return next_round(next, self, self->x);
    if (best)
        return make_gradient_result(result, self, best, !self->answer.done);
    return self->answer.done
               ? shoal_fail(SHOAL_INVALID, "the cost is not a finite number at the point where the search starts")
               : shoal_fail(SHOAL_STOPPED, "stopped before there was a first result");
}

static int descend(shoal_round **next, shoal_result **result, const gradient_class *of, const shoal_round *round,
                   const shoal_partial *merged, const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    descent self = {
        .of = of, .round = round, .model = round->model, .shape = shape, .head = *(gradient_model *)round->model};
    gradient_merit merit = gradient_judge(self.head.quantum, self.model, merged, shape->grains);
    int status = descent_alloc(&self);
    if (status == SHOAL_OK && merit == GRADIENT_AGAIN) {
        status =
            stop ? go_on_descending(next, result, &self, true) : next_round(next, &self, gradient_point(self.model));
    } else {
        if (status == SHOAL_OK)
            status = evaluate(&self, merged, merit);
        if (status == SHOAL_OK)
            status = step_lbfgs(&self, crew);
        if (status == SHOAL_OK)
            status = go_on_descending(next, result, &self, stop);
    }
    descent_release(&self);
    return status;
}

int gradient_update(shoal_round **next, shoal_result **result, const gradient_class *of, const shoal_round *round,
                    shoal_partial *merged, const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const gradient_model *model = round->model;
    if (model->phase == GRADIENT_DESCEND)
        return descend(next, result, of, round, merged, shape, crew, stop);
    return stop ? shoal_fail(SHOAL_STOPPED, "stopped before there was a first result")
                : first_point(next, of, model, merged, shape);
}
