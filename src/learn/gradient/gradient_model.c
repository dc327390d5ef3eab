/* How a round of a gradient learner lies in bytes: making one, and looking at one that came from elsewhere.  See
 * gradient_internal.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "learn/gradient/gradient_internal.h"
#include "learn/check.h"

static const int64_t NUMBERS_MOST = INT64_C(1) << 40;

static size_t padded(int64_t own_bytes)
{
    return ((size_t)own_bytes + 7) / 8 * 8;
}

const void *gradient_own(const gradient_model *model)
{
    return model + 1;
}

const void *gradient_own_of(const shoal_round *round)
{
    return gradient_own(round->model);
}

const double *gradient_point(const gradient_model *model)
{
    return (const double *)((const char *)(model + 1) + padded(model->own_bytes));
}

static size_t model_bytes(const gradient_model *head)
{
    size_t point = head->phase == GRADIENT_DESCEND ? (size_t)head->plan.search.parameters * sizeof(double) : 0;
    return sizeof *head + padded(head->own_bytes) + point;
}

static void lay_out_gradient(shoal_layout *layout, const gradient_class *of, const gradient_model *head,
                             const void *own, const shoal_shape *shape)
{
    *layout = (shoal_layout){.carry_from = -1};
    if (head->phase == GRADIENT_SCAN) {
        of->scan_layout(layout, own, shape);
        return;
    }
    layout->cells = 2;
    layout->cell[GRADIENT_CELL_SUMS] = (shoal_cell){.name = "sums", .kind = SHOAL_CELL_SUM, .count = head->plan.sums};
    layout->cell[GRADIENT_CELL_GREATEST] =
        (shoal_cell){.name = "greatest", .kind = SHOAL_CELL_MAX, .count = head->plan.groups};
}

int gradient_plan_check(const gradient_plan *plan)
{
    int64_t covered = 0;
    bool good = plan->groups >= 1 && plan->groups <= GRADIENT_GROUPS_MOST && plan->sums >= 1 &&
                plan->sums <= NUMBERS_MOST && plan->search.parameters >= 1 && plan->search.parameters <= NUMBERS_MOST &&
                plan->notes >= 0 && plan->notes <= NUMBERS_MOST;
    for (int64_t i = 0; good && i < plan->groups; i++) {
        const gradient_group *group = &plan->group[i];
        good = group->first == covered && group->count >= 0 && group->count <= plan->sums - covered;
        covered += good ? group->count : 0;
    }
    return good && covered == plan->sums
               ? SHOAL_OK
               : shoal_fail(SHOAL_USAGE, "too many parameters, or sums that do not lie in groups");
}

bool gradient_plan_alike(const gradient_plan *a, const gradient_plan *b)
{
    bool alike = a->sums == b->sums && a->groups == b->groups && a->notes == b->notes &&
                 memcmp(&a->search, &b->search, sizeof a->search) == 0;
    for (int64_t i = 0; alike && i < a->groups; i++)
        alike = a->group[i].first == b->group[i].first && a->group[i].count == b->group[i].count &&
                a->group[i].narrow == b->group[i].narrow;
    return alike;
}

int gradient_round_new(shoal_round **out, const gradient_class *of, const gradient_model *head, const void *own,
                       const shoal_shape *shape)
{
    int status = shoal_round_new(out, model_bytes(head));
    if (status < 0)
        return status;
    shoal_round *round = *out;
    memcpy(round->model, head, sizeof *head);
    memcpy((gradient_model *)round->model + 1, own, (size_t)head->own_bytes);
    snprintf(round->phase, sizeof round->phase, "%s", head->phase == GRADIENT_SCAN ? "scan" : "run");
    if (head->phase == GRADIENT_DESCEND) {
        round->step = head->search.iteration;
        round->steps = head->plan.search.iterations;
        if (head->search.evaluations > 0) {
            round->objective = head->search.value;
            round->change = head->search.change;
        }
    }
    lay_out_gradient(&round->layout, of, head, own, shape);
    return SHOAL_OK;
}

static bool quanta_good(const gradient_model *model)
{
    for (int64_t i = 0; i < model->plan.groups; i++) {
        int exponent;
        if (!(model->quantum[i] > 0) || frexp(model->quantum[i], &exponent) != 0.5 || exponent < -1000 ||
            exponent > 1000)
            return false;
    }
    return true;
}

static bool kept_good(const shoal_round *round, const gradient_model *model)
{
    for (int i = 0; i < round->keeps; i++)
        if (round->kept[i]->bytes != gradient_kept_numbers(&model->plan) * sizeof(double))
            return false;
    return round->keeps <= LEARN_LBFGS_HISTORY_MOST + 1 &&
           memcmp(&model->search.options, &model->plan.search, sizeof model->plan.search) == 0 &&
           learn_lbfgs_good(&model->search, model->plan.search.parameters, round->keeps);
}

int gradient_check(const gradient_class *of, const shoal_round *round, const shoal_shape *shape)
{
    const gradient_model *model = round->model;
    shoal_layout expected;
    bool good = round->model_bytes >= sizeof *model && model->own_bytes >= 0 &&
                (uint64_t)model->own_bytes <= round->model_bytes - sizeof *model &&
                (model->phase == GRADIENT_SCAN || model->phase == GRADIENT_DESCEND);
    if (good && model->phase == GRADIENT_DESCEND)
        good = gradient_plan_check(&model->plan) == SHOAL_OK && quanta_good(model) && kept_good(round, model);
    good = good && round->model_bytes == model_bytes(model) &&
           of->good(gradient_own(model), (size_t)model->own_bytes,
                    model->phase == GRADIENT_DESCEND ? &model->plan : NULL, shape);
    if (good)
        lay_out_gradient(&expected, of, model, gradient_own(model), shape);
    return good && shoal_layout_same(&round->layout, &expected)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the model of a round is not that of a gradient learner");
}
