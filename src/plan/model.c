/* What a run will take: the model of docs/plan.md, whose symbols are named in comments.
 *
 * A run is a start, the loading of rows, and rounds.  A round of workers that meet in a store is a chain: fetch the
 * model, map, put the partial, merge level by level, update, put the next model.  Rates are shared by all who fetch or
 * put at the same time. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <shoal/plan.h>

#include "plan/bill.h"
#include "plan/model.h"
#include "plan/tree.h"

/* What stays the same through all phases of an estimate. */
typedef struct setting {
    const shoal_plan_job *job;
    const shoal_site *site;
    const shoal_plan_crew *crew;
    double mappers, capacity; /* W; threads' worth of work that one of them does (c) */
    double part;              /* of the rows, that the one with most of them maps: 1/W where there are slices enough */
    double sharing;           /* workers of one machine (h) */
    plan_tree tree;
    plan_slowest slowest;
} setting;

/* Seconds of one round, by what they are spent on, and the requests. */
typedef struct round_parts {
    double map, straggle, reduce, update, publish;
    double deviation; /* of the whole */
    double gets, puts;
} round_parts;

/* ---- refusing ---------------------------------------------------------------------------------------------------- */

static const double LARGEST = 1e18;

static int check_amount(const char *name, double value, double least)
{
    if (isfinite(value) && value >= least && value <= LARGEST)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "--%s: must be %g to %g, not %g", name, least, LARGEST, value);
}

static int check_question(const shoal_plan_job *job, const shoal_site *site, const shoal_plan_crew *crew)
{
    const struct {
        const char *name;
        double value, least;
    } sizes[] = {{"rows", job->rows, 1},
                 {"cols", job->columns, 1},
                 {"workers", (double)crew->workers, 1},
                 {"threads", crew->threads, 1},
                 {"cores", crew->cores, 0.01},
                 {"start", crew->start, 0},
                 {"losses", crew->losses, 0},
                 {"replace", crew->replace, 0},
                 {"price", crew->dollars_per_hour, 0},
                 {"speed", crew->speed, 0},
                 {"straggle", site->straggle, 0},
                 {"latency", site->get + site->put, 0},
                 {"bandwidth", crew->alone ? 1 : site->read, 1e-3},
                 {"write-bandwidth", crew->alone ? 1 : site->write, 1e-3},
                 {"connections", crew->alone ? 1 : site->connections, 1}};
    int status = job->learner ? SHOAL_OK : shoal_fail(SHOAL_USAGE, "a plan needs the name of its learner");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && status == SHOAL_OK; i++)
        status = check_amount(sizes[i].name, sizes[i].value, sizes[i].least);
    if (status == SHOAL_OK && job->cost->phases == 0 && job->cost->rounds <= 0)
        status = shoal_fail(SHOAL_USAGE, "%s does not report its cost, so it cannot be planned", job->learner);
    return status;
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

/* What t threads do together, as a multiple of one. */
static double together(double threads, const shoal_site *site)
{
    double known = site->loss_threads > 1 ? fmin(threads, site->loss_threads) : threads;
    return threads <= 1 ? threads : threads / (1 + (known - 1) * site->thread_loss);
}

static double sharing_of(const shoal_plan_crew *crew)
{
    return crew->machines > 0 ? fmax((double)crew->workers / (double)crew->machines, 1) : 1;
}

/* Workers that share machines share their cores, too; a thread has at least a grain to do. */
static double capacity_of(const shoal_plan_crew *crew, double sharing, double grains, const shoal_site *site)
{
    double threads = fmin(crew->threads, ceil(grains / (double)crew->workers));
    double busy = fmin(sharing * threads, crew->cores);
    return (crew->speed > 0 ? crew->speed : 1) * together(busy, site) / sharing;
}

static double reducers_of(const setting *all)
{
    return all->job->split_roles ? ceil(sqrt(all->mappers)) + 1 : 0;
}

/* ---- the store --------------------------------------------------------------------------------------------------- */

/* Bytes a second that each of n gets who read (or write) at once. */
static double share(const shoal_site *site, double connection, double account, double n)
{
    double rate = connection * site->connections;
    if (site->worker > 0)
        rate = fmin(rate, site->worker);
    return account > 0 ? fmin(rate, account / fmax(n, 1)) : rate;
}

/* Seconds in which each of n reads `count` blobs of that many bytes. */
static double reading(const shoal_site *site, double n, double count, double bytes)
{
    return count > 0
               ? ceil(count / site->connections) * site->get + count * bytes / share(site, site->read, site->account, n)
               : 0;
}

static double writing(const shoal_site *site, double n, double count, double bytes)
{
    double account = site->account_write > 0 ? site->account_write : site->account;
    double rate = share(site, site->write, account, n);
    return count > 0 ? ceil(count / site->connections) * site->put + count * bytes / rate : 0;
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

/* Merging, level by level.  What comes early is fetched while the slowest still map: the first level hides behind
 * `spread` all but the last piece. */
static void add_reduction(round_parts *round, const setting *all, double sums, double row_bytes, double spread)
{
    const shoal_site *site = all->site;
    const plan_tree *tree = &all->tree;
    plan_tree cut;
    if (tree->ranges > 1 && row_bytes == 0 && sums / tree->ranges >= tree->range_bytes && sums >= 8 * tree->ranges) {
        cut = plan_tree_cut(tree, all->job, all->crew);
        tree = &cut;
    }
    double put = tree->put_by_mapper, bytes = sums + row_bytes * all->job->rows / tree->pieces;
    if (tree->pieces > tree->slices) /* of which each is a range */
        bytes *= tree->level[0].part;
    round->reduce += writing(site, all->mappers, put, bytes);
    round->puts += put * all->mappers;
    for (int level = 0; level < tree->levels; level++) {
        const plan_tree_level *at = &tree->level[level];
        double above = at->part * sums + row_bytes * all->job->rows / at->parents, each = at->parents / at->makers;
        if (at->part < 1)
            bytes = at->part * sums;
        double whole = reading(site, at->makers, each * at->fetched, bytes), last = reading(site, at->makers, 1, bytes);
        double hidden = level == 0 ? fmin(spread, fmax(whole - last, 0)) : 0;
        round->reduce += site->wait + whole - hidden;
        round->gets += at->fetched * at->parents;
        if (level + 1 < tree->levels) {
            round->reduce += writing(site, at->makers, each, above);
            round->puts += at->parents;
        }
        bytes = above;
    }
}

/* The next model, and how everyone comes to it. */
static void add_publishing(round_parts *round, const setting *all, double bytes)
{
    const shoal_site *site = all->site;
    double readers = all->mappers - (all->job->split_roles ? 0 : 1), put = writing(site, 1, 1, bytes);
    round->puts += 1;
    if (readers > 0)
        round->publish +=
            site->sync + site->crowd * (all->sharing - 1) + put + site->wait + reading(site, readers, 1, bytes);
    else /* nobody waits for it: it is put while the next round is mapped */
        round->publish += fmax(put - round->map, 0);
    round->gets += readers + site->requests * (all->mappers + reducers_of(all));
}

static round_parts round_of(const setting *all, const shoal_cost_phase *phase, const shoal_pace *pace)
{
    const shoal_plan_job *job = all->job;
    double speed = all->crew->speed > 0 ? all->crew->speed : 1;
    double row = pace->row + pace->value * job->columns + pace->operation * phase->operations_per_row;
    double mean = job->rows * row * all->part / all->capacity;
    double spread = mean * (all->slowest.mean - 1);
    round_parts round = {.map = mean, .straggle = spread, .deviation = mean * all->slowest.deviation};
    round.update = (pace->round + pace->model_byte * phase->model_bytes) / speed;
    if (all->crew->alone)
        return round;
    add_reduction(&round, all, phase->partial_bytes, phase->row_bytes, spread);
    add_publishing(&round, all, phase->model_bytes);
    if (phase->kept_bytes > 0) {
        round.publish += writing(all->site, 1, 1, phase->kept_bytes);
        round.puts += 1;
    }
    return round;
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

static const shoal_pace *find_pace(const shoal_pace *pace, int paces, const char *learner, const char *phase)
{
    for (int i = 0; i < paces; i++)
        if (strcmp(pace[i].learner, learner) == 0 && strcmp(pace[i].phase, phase) == 0)
            return &pace[i];
    return NULL;
}

/* Rows that are put into the store are so slice by slice, and fetched so. */
static void add_load(shoal_estimate *out, double requests[2], const setting *all)
{
    const shoal_site *site = all->site;
    double bytes = all->job->rows * all->job->columns * all->job->value_bytes;
    if (all->crew->alone)
        out->load += all->job->open;
    if (all->crew->alone || all->job->source == SHOAL_PLAN_GENERATED)
        return;
    if (all->job->source == SHOAL_PLAN_FILE) { /* the process that submits opens and hashes it, then the workers do */
        double cores = together(all->crew->cores, site);
        out->load += 2 * all->job->open;
        out->load += bytes * site->hash * (1 / cores + 1 / (all->mappers * all->capacity));
        return;
    }
    if (all->job->source == SHOAL_PLAN_UPLOADED) {
        out->load += all->job->open;
        out->load += writing(site, 1, 1, bytes);
        requests[1] += all->tree.slices;
    }
    requests[0] += all->tree.slices;
    out->load += reading(site, all->mappers, 1, bytes / all->mappers);
}

/* Adds the rounds of a phase; `variance` of the whole. */
static int add_phase(shoal_estimate *out, double *variance, double requests[2], const setting *all,
                     const shoal_cost_phase *phase, const shoal_pace *pace, int paces)
{
    const shoal_pace *own = find_pace(pace, paces, all->job->learner, phase->name);
    if (!own)
        return shoal_fail(SHOAL_USAGE,
                          "the speed of %s is unknown here (its phase '%s'): run `shoal calibrate --learner %s`",
                          all->job->learner, phase->name, all->job->learner);
    double rounds = all->job->known_rounds || own->rounds <= 0 ? phase->rounds : fmin(phase->rounds, own->rounds);
    round_parts round = round_of(all, phase, own);
    double seconds = round.map + round.straggle + round.reduce + round.update + round.publish;
    out->map += rounds * round.map;
    out->straggle += rounds * round.straggle;
    out->reduce += rounds * round.reduce;
    out->update += rounds * round.update;
    out->publish += rounds * round.publish;
    *variance += rounds * round.deviation * round.deviation;
    requests[0] += rounds * round.gets;
    requests[1] += rounds * round.puts;
    double alone =
        own->round + own->model_byte * phase->model_bytes +
        all->job->rows * (own->row + own->value * all->job->columns + own->operation * phase->operations_per_row);
    out->sequential += rounds * alone / (all->crew->speed > 0 ? all->crew->speed : 1);
    struct shoal_estimate_phase *told = &out->phase[out->phases++];
    snprintf(told->name, sizeof told->name, "%s", phase->name);
    told->rounds = rounds;
    told->seconds = rounds * seconds;
    return SHOAL_OK;
}

/* A worker that is lost stops its round until it counts as dead, and its part is done again. */
static void add_losses(shoal_estimate *out, double *variance, const setting *all)
{
    double rounds = 0;
    for (int i = 0; i < out->phases; i++)
        rounds += out->phase[i].rounds;
    double rate = (all->mappers + reducers_of(all)) * all->crew->losses / 3600;
    double delay = all->crew->replace + (rounds > 0 ? out->map / rounds : 0) + out->load;
    double share_lost = rate * delay;
    if (!(share_lost < 1)) {
        out->lost = out->seconds = INFINITY;
        return;
    }
    out->lost = out->seconds * share_lost / (1 - share_lost);
    out->seconds += out->lost;
    *variance += rate * out->seconds * delay * delay;
}

static void add_interval(shoal_estimate *out, double variance, double error)
{
    static const double NINETY = 1.6448536269514722; /* 5% of a normal variable lie above it */
    double relative = isfinite(out->seconds) && out->seconds > 0 ? variance / (out->seconds * out->seconds) : 0;
    double deviation = sqrt(error * error + log1p(relative));
    out->low = out->seconds * exp(-NINETY * deviation);
    out->high = out->seconds * exp(NINETY * deviation);
}

static void add_cost(shoal_estimate *out, const setting *all, const double requests[2])
{
    const shoal_plan_crew *crew = all->crew;
    double machines = crew->machines > 0 ? (double)crew->machines : out->units;
    double waiting = out->straggle + out->reduce + out->update + out->publish + out->lost;
    double waited = crew->alone ? 0 : all->site->requests_per_second * out->units * waiting;
    out->requests = requests[0] + requests[1] + waited;
    out->request_price = (requests[0] + waited) * all->site->get_price + requests[1] * all->site->put_price;
    out->cost = plan_bill(machines, out->seconds, crew->dollars_per_hour, crew->billed) + out->request_price;
    out->cost_low = plan_bill(machines, out->low, crew->dollars_per_hour, crew->billed) + out->request_price;
    out->cost_high = plan_bill(machines, out->high, crew->dollars_per_hour, crew->billed) + out->request_price;
}

int plan_estimate(shoal_estimate *out, plan_slowest_memo *memo, const shoal_plan_job *job, const shoal_site *site,
                  const shoal_pace *pace, int paces, const shoal_plan_crew *crew)
{
    *out = (shoal_estimate){0};
    int status = check_question(job, site, crew);
    if (status < 0)
        return status;
    setting all = {.job = job, .site = site, .crew = crew, .mappers = (double)crew->workers};
    all.sharing = sharing_of(crew);
    status = plan_tree_make(&all.tree, job, site, crew);
    if (status < 0)
        return status;
    all.capacity = capacity_of(crew, all.sharing, all.tree.grains, site);
    all.part = crew->alone ? 1 : ceil(all.tree.slices / all.mappers) / all.tree.slices;
    all.slowest = plan_slowest_again(memo, fmin(all.mappers, all.tree.slices), site->straggle);
    const shoal_cost_phase only = {.name = "run",
                                   .rounds = (double)job->cost->rounds,
                                   .operations_per_row = job->cost->operations_per_row,
                                   .model_bytes = job->cost->model_bytes,
                                   .partial_bytes = job->cost->partial_bytes};
    int phases = job->cost->phases > 0 ? job->cost->phases : 1;
    double variance = 0, requests[2] = {0};
    for (int i = 0; i < phases && status == SHOAL_OK; i++)
        status = add_phase(out, &variance, requests, &all, job->cost->phases > 0 ? &job->cost->phase[i] : &only, pace,
                           paces);
    if (status < 0)
        return status;
    out->units = all.mappers + reducers_of(&all);
    out->start = crew->start;
    add_load(out, requests, &all);
    out->seconds = out->start + out->load + out->map + out->straggle + out->reduce + out->update + out->publish;
    add_losses(out, &variance, &all);
    add_interval(out, variance, site->error);
    out->speedup = out->sequential / out->seconds;
    out->efficiency = out->speedup / (out->units * fmin(crew->threads, crew->cores));
    add_cost(out, &all, requests);
    return SHOAL_OK;
}

int shoal_plan_estimate(shoal_estimate *out, const shoal_plan_job *job, const shoal_site *site, const shoal_pace *pace,
                        int paces, const shoal_plan_crew *crew)
{
    return plan_estimate(out, &(plan_slowest_memo){0}, job, site, pace, paces, crew);
}
