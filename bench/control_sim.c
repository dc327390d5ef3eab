/* Deadlines and budgets on a model of rounds: what src/control decides, beside fixed numbers of machines, for
 * bench/bench_control.py.
 *
 *     bench_control_sim SEEDS ERROR LOSSES DRIFT [SLOPE [DEADLINE]]       one line of JSON a policy
 *
 * A job has 100 rounds, of  work / W * straggling(W) + 2 + SLOPE * W  seconds with W machines, and noise: 8%.
 * `work` is off by exp(ERROR * normal), and DRIFT times as much from half on.  A machine takes 90 s to come, is lost
 * LOSSES times an hour, and then costs the others 30 s and half a round; whoever keeps a number replaces it.  The same
 * seed gives every policy the same noise, and machine k of a round the same fate.  DEADLINE is a multiple of what 12
 * machines were predicted to take.  A deadline is feasible if some fixed number, tried afterwards, meets it. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "control/choice.h"

enum { ROUNDS = 100, MOST = 64, PENDING = 256 };
static const double WORK = 800, FIXED = 2, START = 90, NOISE = 0.08, LOSS_SECONDS = 30;

typedef struct scenario {
    double error, losses, drift, slope, deadline;
    control_option option[MOST];
} scenario;

typedef struct run {
    double seconds, cost; /* cost: machine seconds */
    int changes;
    bool done; /* false: the budget ended it */
} run;

/* ---- the world --------------------------------------------------------------------------------------------------- */

static double normal(uint64_t seed, uint64_t index)
{
    double u = base_random_unit(seed, BASE_FOR_RUNS, index, 0), v = base_random_unit(seed, BASE_FOR_RUNS, index, 1);
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

static double straggling(int64_t machines)
{
    return machines > 1 ? exp(0.15 * 0.85 * sqrt(2 * log((double)machines))) : 1;
}

static double work_of(int64_t machines)
{
    return WORK / (double)machines * straggling(machines);
}

typedef struct pending {
    double at;
    int64_t count;
} pending;

typedef struct world {
    const scenario *what;
    uint64_t seed;
    double off; /* the model's error */
    double now, cost, budget;
    int round; /* that comes next */
    int64_t running, coming;
    pending pending[PENDING];
    int pendings, changes;
    double last;     /* seconds of the last round; 0: none yet */
    int64_t last_by; /* and by how many machines */
} world;

static void arrive(world *self)
{
    int kept = 0;
    for (int i = 0; i < self->pendings; i++)
        if (self->pending[i].at <= self->now) {
            self->running += self->pending[i].count;
            self->coming -= self->pending[i].count;
        } else {
            self->pending[kept++] = self->pending[i];
        }
    self->pendings = kept;
}

static void pass(world *self, double seconds)
{
    double billed = (double)(self->running + self->coming) * seconds;
    self->now += seconds;
    self->cost += billed;
}

static void play_round(world *self)
{
    const scenario *what = self->what;
    int64_t by = self->running, lost = 0;
    double drift = self->round >= ROUNDS / 2 ? what->drift : 1;
    double seconds = work_of(by) * self->off * drift + FIXED + what->slope * (double)by;
    seconds *= exp(NOISE * normal(self->seed, (uint64_t)self->round));
    for (int64_t k = 0; k < by; k++)
        lost += base_random_unit(self->seed, BASE_FOR_FAULTS, (uint64_t)(self->round * MOST + k), 0) <
                what->losses * seconds / 3600;
    if (lost)
        seconds += LOSS_SECONDS + seconds / 2;
    pass(self, seconds);
    self->running -= lost;
    self->last = seconds;
    self->last_by = by;
    self->round++;
}

static void scale_to(world *self, int64_t target)
{
    int64_t have = self->running + self->coming;
    if (target > have && self->pendings < PENDING) {
        self->pending[self->pendings++] = (pending){.at = self->now + START, .count = target - have};
        self->coming += target - have;
    }
    for (int64_t cut = have - target; cut > 0;) { /* those that have not come first */
        if (self->pendings > 0) {
            pending *last = &self->pending[self->pendings - 1];
            int64_t some = cut < last->count ? cut : last->count;
            last->count -= some;
            self->coming -= some;
            cut -= some;
            self->pendings -= last->count == 0;
        } else {
            self->running -= cut;
            cut = 0;
        }
    }
}

/* ---- policies ---------------------------------------------------------------------------------------------------- */

typedef struct policy {
    const char *name;
    int64_t (*target)(struct policy *self, const world *at);
    bool counts_replacing; /* replacing a lost machine is no change of plan */
    int64_t number;
    double smooth;
    control_trend trend;
    control_state state;
} policy;

static int64_t target_fixed(policy *self, const world *at)
{
    (void)at;
    return self->number;
}

static double predicted(const scenario *what, int64_t machines)
{
    return work_of(machines) + FIXED + what->slope * (double)machines;
}

/* Jockey (Ferguson, Bodik, Kandula, Boutin, Fonseca, EuroSys 2012), its constants from memory: what is predicted of the
 * work that is left, times a slack of 1.2, against a deadline three minutes early, smoothed by 0.2. */
static int64_t target_jockey(policy *self, const world *at)
{
    double left = at->what->deadline - at->now - 180 - (at->round == 0 ? START : 0);
    int64_t need = 1;
    while (need < MOST && 1.2 * (ROUNDS - at->round) * predicted(at->what, need) > left)
        need++;
    self->smooth = at->round == 0 ? (double)need : self->smooth + 0.2 * ((double)need - self->smooth);
    int64_t target = (int64_t)ceil(self->smooth - 1e-9);
    return target < MOST ? target : MOST;
}

static int64_t target_control(policy *self, const world *at)
{
    const scenario *what = at->what;
    if (at->round == 0 && at->last == 0)
        control_trend_init(&self->trend, what->error);
    else
        control_trend_see(&self->trend, &what->option[at->last_by - 1], at->last);
    const control_question question = {
        .option = what->option,
        .options = MOST,
        .trend = &self->trend,
        .course = {.rounds = ROUNDS - at->round, .start = START, .losses = what->losses, .replace = LOSS_SECONDS},
        .running = at->round == 0 ? 0 : self->number, /* who is lost is replaced */
        .deadline = what->deadline - at->now,
        .budget = at->budget - at->cost / 3600};
    control_answer answer = control_choose(&self->state, &question);
    self->number = answer.machines;
    return answer.machines;
}

static run play(policy *self, const scenario *what, uint64_t seed, double budget)
{
    world at = {.what = what, .seed = seed, .off = exp(what->error * normal(seed, 1 << 20)), .budget = budget};
    int64_t planned = 0;
    while (at.round < ROUNDS && at.cost / 3600 < budget) {
        int64_t target = self->target(self, &at), have = at.running + at.coming;
        at.changes += at.round > 0 && target != (self->counts_replacing ? planned : have);
        planned = target;
        scale_to(&at, target);
        arrive(&at);
        while (at.running == 0) {
            pass(&at, at.pending[0].at - at.now);
            arrive(&at);
        }
        play_round(&at);
    }
    bool done = at.cost / 3600 <= budget; /* permits end machines on the second */
    return (run){.seconds = at.now, .cost = done ? at.cost : budget * 3600, .changes = at.changes, .done = done};
}

/* ---- tallies ----------------------------------------------------------------------------------------------------- */

typedef struct tally {
    int64_t feasible, met, changes, worst_changes, exceeded;
    double cost, best_cost, late; /* the latest, as a share of the deadline */
} tally;

/* The cheapest fixed number that meets the deadline; 0: none does. */
static int64_t best_fixed(run *out, const scenario *what, uint64_t seed)
{
    int64_t best = 0;
    for (int64_t n = 1; n <= MOST; n++) {
        policy fixed = {.target = target_fixed, .number = n, .counts_replacing = true};
        run one = play(&fixed, what, seed, INFINITY);
        if (one.seconds <= what->deadline && (best == 0 || one.cost < out->cost)) {
            *out = one;
            best = n;
        }
    }
    return best;
}

static void add_run(tally *all, const run *one, const run *best, double deadline)
{
    all->feasible++;
    all->met += one->done && one->seconds <= deadline;
    all->changes += one->changes;
    all->worst_changes = one->changes > all->worst_changes ? one->changes : all->worst_changes;
    all->cost += one->cost;
    all->best_cost += best->cost;
    all->late = fmax(all->late, one->seconds / deadline);
}

static void print_tally(const char *name, const tally *all)
{
    double n = all->feasible > 0 ? (double)all->feasible : 1;
    printf("{\"policy\": \"%s\", \"feasible\": %lld, \"met\": %.5f, \"cost\": %.4f, \"changes\": %.2f, "
           "\"worst_changes\": %lld, \"latest\": %.4f}\n",
           name, (long long)all->feasible, (double)all->met / n, all->cost / fmax(all->best_cost, 1e-9),
           (double)all->changes / n, (long long)all->worst_changes, all->late);
}

/* The number that the plan's 95% bound gives, once, before the start. */
static int64_t planned_number(const scenario *what)
{
    control_trend trend;
    control_trend_init(&trend, what->error);
    const control_course course = {.rounds = ROUNDS, .start = START, .losses = what->losses, .replace = LOSS_SECONDS};
    for (int64_t n = 1; n < MOST; n++)
        if (control_foresee(&trend, &what->option[n - 1], &course).high <= what->deadline)
            return n;
    return MOST;
}

static void compare(const scenario *what, int64_t seeds)
{
    enum { STATIC, JOCKEY, PEAK, CONTROL, BUDGET, POLICIES };
    static const char *const name[POLICIES] = {"static 95%", "Jockey", "peak", "control", "control, budget"};
    tally all[POLICIES] = {0};
    int64_t number = planned_number(what);
    for (int64_t seed = 1; seed <= seeds; seed++) {
        run best = {0};
        if (best_fixed(&best, what, (uint64_t)seed) == 0)
            continue;
        policy tried[POLICIES] = {[STATIC] = {.target = target_fixed, .number = number, .counts_replacing = true},
                                  [JOCKEY] = {.target = target_jockey, .counts_replacing = true},
                                  [PEAK] = {.target = target_fixed, .number = MOST, .counts_replacing = true},
                                  [CONTROL] = {.target = target_control, .counts_replacing = true},
                                  [BUDGET] = {.target = target_control, .counts_replacing = true}};
        double budget = 1.15 * best.cost / 3600;
        for (int i = 0; i < POLICIES; i++) {
            run one = play(&tried[i], what, (uint64_t)seed, i == BUDGET ? budget : INFINITY);
            add_run(&all[i], &one, &best, what->deadline);
            all[i].exceeded += i == BUDGET && one.cost / 3600 > budget;
        }
    }
    for (int i = 0; i < POLICIES; i++)
        print_tally(name[i], &all[i]);
    printf("{\"exceeded\": %lld, \"planned\": %lld}\n", (long long)all[BUDGET].exceeded, (long long)number);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: %s SEEDS ERROR LOSSES DRIFT [SLOPE [DEADLINE]]\n", argv[0]);
        return 2;
    }
    scenario what = {.error = atof(argv[2]),
                     .losses = atof(argv[3]),
                     .drift = atof(argv[4]),
                     .slope = argc > 5 ? atof(argv[5]) : 0.05};
    what.deadline = (argc > 6 ? atof(argv[6]) : 1.3) * (predicted(&what, 12) * ROUNDS + START);
    for (int64_t n = 1; n <= MOST; n++)
        what.option[n - 1] = (control_option){.machines = n,
                                              .work = work_of(n),
                                              .fixed = FIXED + what.slope * (double)n,
                                              .price = (double)n}; /* one unit a machine and hour */
    compare(&what, atol(argv[1]));
    return 0;
}
