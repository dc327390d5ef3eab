/* Choosing.  See choose.h. */
#include "plan/choose.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "plan/model.h"
#include "plan/pareto.h"

static const double GIB = 1073741824.0;

/* ---- one option -------------------------------------------------------------------------------------------------- */

static double memory_of(const plan_question *question, const plan_option *option, double threads)
{
    const shoal_cost *cost = question->job.cost;
    double rows = question->job.rows / (double)option->workers;
    double row_bytes = question->job.columns * question->job.value_bytes + cost->memo_row_bytes;
    return rows * row_bytes + (threads + 2) * (cost->model_bytes + cost->partial_bytes);
}

static shoal_plan_crew crew_of(const plan_question *question, const plan_option *option)
{
    shoal_plan_crew crew = question->crew;
    const plan_machine *machine = option->machine;
    crew.workers = option->workers;
    if (machine) {
        crew.cores = machine->vcpus;
        crew.speed = (crew.speed > 0 ? crew.speed : 1) * machine->speed;
        crew.dollars_per_hour = question->spot ? machine->dollars_spot : machine->dollars_per_hour;
    }
    double sharing =
        crew.machines > 0 ? ceil((double)crew.workers / (double)crew.machines) : 1; /* of one machine's cores */
    crew.threads = question->threads > 0 ? question->threads : fmax(floor(crew.cores / sharing), 1);
    return crew;
}

/* What is true of this machine alone.  Its speed-ups compare whole programs, starting and reading included.  Where
 * others have a share of it, all takes longer by as much, and threads that wait for each other in every round by more:
 * no run is faster for it, so only the upper limit moves. */
static void settle_here(shoal_estimate *estimate, const plan_question *question, double threads)
{
    static const double BUSY_MOST = 0.95; /* what is above can't be told apart */
    double share = 1 - fmin(question->busy, BUSY_MOST);
    estimate->high /= share * share;
    if (!(question->alone.one_thread > 0))
        return;
    estimate->sequential = question->alone.one_thread;
    estimate->speedup = estimate->sequential / estimate->seconds;
    estimate->efficiency = estimate->speedup / (estimate->units * fmin(threads, question->crew.cores));
}

int plan_estimate_alone(plan_option *out, const plan_question *question, int64_t threads)
{
    shoal_plan_crew crew = {.workers = 1,
                            .alone = true,
                            .threads = (double)threads,
                            .cores = question->crew.cores,
                            .machines = 1,
                            .start = question->alone.start};
    shoal_site site = question->site;
    site.error = question->alone.error;
    *out = (plan_option){.workers = 1, .alone = true, .threads = threads, .fits = true};
    out->memory = memory_of(question, out, crew.threads);
    int status = shoal_plan_estimate(&out->estimate, &question->job, &site, question->pace, question->paces, &crew);
    settle_here(&out->estimate, question, crew.threads);
    return status;
}

static int estimate_option(plan_option *option, plan_slowest_memo *memo, const plan_question *question)
{
    option->fits = true;
    if (question->paper)
        return shoal_paper_estimate(&option->estimate, question->paper, option->workers);
    shoal_plan_crew crew = crew_of(question, option);
    shoal_site site = question->site;
    if (option->machine && option->machine->network > 0)
        site.worker = site.worker > 0 ? fmin(site.worker, option->machine->network) : option->machine->network;
    option->threads = (int64_t)crew.threads;
    option->memory = memory_of(question, option, crew.threads);
    if (option->machine && option->machine->memory_gib > 0)
        option->fits = option->memory <= PLAN_MEMORY_USABLE * option->machine->memory_gib * GIB;
    int status = plan_estimate(&option->estimate, memo, &question->job, &site, question->pace, question->paces, &crew);
    if (crew.machines == 1 && !option->machine)
        settle_here(&option->estimate, question, crew.threads);
    return status;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static double option_value(const plan_option *option, plan_goal goal)
{
    const shoal_estimate *estimate = &option->estimate;
    return goal == PLAN_GOAL_TIME   ? estimate->seconds
           : goal == PLAN_GOAL_COST ? estimate->cost
                                    : estimate->cost * estimate->seconds;
}

static bool is_less(const plan_option *a, const plan_option *b, plan_goal goal)
{
    double x = option_value(a, goal), y = option_value(b, goal);
    if (x != y)
        return x < y;
    plan_goal other = goal == PLAN_GOAL_COST ? PLAN_GOAL_TIME : PLAN_GOAL_COST;
    x = option_value(a, other);
    y = option_value(b, other);
    return x != y ? x < y : a->workers < b->workers;
}

bool plan_is_better(const plan_option *a, const plan_option *b, plan_goal goal)
{
    bool meets_a = a->fits && a->in_time && a->in_budget, meets_b = b->fits && b->in_time && b->in_budget;
    return meets_a != meets_b ? meets_a : is_less(a, b, goal);
}

static int64_t find_best(const plan_choice *choice, plan_goal goal, bool meeting)
{
    int64_t best = -1;
    for (int64_t i = 0; i < choice->options; i++) {
        const plan_option *option = &choice->option[i];
        if (!option->fits || !isfinite(option->estimate.seconds) ||
            (meeting && !(option->in_time && option->in_budget)))
            continue;
        if (best < 0 || is_less(option, &choice->option[best], goal))
            best = i;
    }
    return best;
}

static void judge_options(plan_choice *choice, const plan_question *question)
{
    for (int64_t i = 0; i < choice->options; i++) {
        plan_option *option = &choice->option[i];
        bool ends = option->fits && isfinite(option->estimate.seconds);
        option->in_time = question->deadline <= 0 || option->estimate.high <= question->deadline;
        option->in_budget = question->budget <= 0 || option->estimate.cost_high <= question->budget;
        choice->fitting += ends;
        choice->meeting += ends && option->in_time && option->in_budget;
    }
    choice->goal = question->goal != PLAN_GOAL_NONE ? question->goal
                   : question->deadline > 0         ? PLAN_GOAL_COST
                                                    : PLAN_GOAL_TIME;
    choice->best = find_best(choice, choice->goal, true);
    choice->fastest = find_best(choice, PLAN_GOAL_TIME, false);
    choice->cheapest = find_best(choice, PLAN_GOAL_COST, false);
}

static int mark_front(plan_choice *choice)
{
    plan_tradeoff *outcome = NULL;
    bool *front = NULL;
    int status = base_alloc(&outcome, (size_t)choice->options, sizeof *outcome, "the options of a plan");
    if (status == SHOAL_OK)
        status = base_alloc(&front, (size_t)choice->options, sizeof *front, "the options of a plan");
    for (int64_t i = 0; i < choice->options && status == SHOAL_OK; i++) {
        const plan_option *option = &choice->option[i];
        outcome[i] = (plan_tradeoff){option->fits ? option->estimate.seconds : INFINITY, option->estimate.cost};
    }
    if (status == SHOAL_OK)
        status = plan_pareto(front, outcome, choice->options);
    for (int64_t i = 0; i < choice->options && status == SHOAL_OK; i++)
        choice->option[i].front = front[i];
    base_free(&front);
    base_free(&outcome);
    return status;
}

int plan_choose(plan_choice *out, const plan_question *question)
{
    *out = (plan_choice){.best = -1, .fastest = -1, .cheapest = -1};
    int64_t machines = question->machines ? question->machines->machines : 1, count = question->workers_count;
    const int64_t alone = question->alone.count, options = alone + machines * count;
    plan_slowest_memo memo = {0};
    int status = base_alloc(&out->option, (size_t)options, sizeof *out->option, "the options of a plan");
    out->options = status == SHOAL_OK ? options : 0;
    for (int64_t i = 0; i < alone && status == SHOAL_OK; i++)
        status = plan_estimate_alone(&out->option[i], question, question->alone.threads[i]);
    for (int64_t j = 0; j < count && status == SHOAL_OK;
         j++) /* machine by machine for each number: see plan_estimate */
        for (int64_t i = 0; i < machines && status == SHOAL_OK; i++) {
            plan_option *option = &out->option[alone + i * count + j];
            *option = (plan_option){.machine = question->machines ? question->machines->machine[i] : NULL,
                                    .workers = question->workers[j]};
            status = estimate_option(option, &memo, question);
        }
    if (status == SHOAL_OK)
        judge_options(out, question);
    if (status == SHOAL_OK)
        status = mark_front(out);
    if (status < 0)
        plan_choice_free(out);
    return status;
}

void plan_choice_free(plan_choice *choice)
{
    base_free(&choice->option);
    choice->options = 0;
}

bool plan_is_one_place(const plan_choice *choice)
{
    bool one = true;
    for (int64_t i = 1; i < choice->options && choice->option[0].machine; i++) {
        const plan_machine *a = choice->option[0].machine, *b = choice->option[i].machine;
        one &= strcmp(a->cloud, b->cloud) == 0 && strcmp(a->region, b->region) == 0;
    }
    return one;
}
