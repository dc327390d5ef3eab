/* One look at a cluster, and what follows from it.  See cluster.h; what follows is the ledger's to say
 * (control/ledger_lead.h), and only who made a reservation starts its machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shoal/error.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/world.h"
#include "cluster_internal.h"
#include "launch/cloud/user_data.h"

enum { STEPS_AT_ONCE = 64, USER_DATA_VARIABLES = 4 };

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/* The reservation that a machine's tag names; 0 for none. */
static uint64_t token_of(const cloud_machine *machine)
{
    return base_hex_is(machine->reservation, 16) ? strtoull(machine->reservation, NULL, 16) : 0;
}

bool run_cluster_is_alive(const run_cluster *self, const cloud_machine *machine)
{
    return machine->state != CLOUD_ENDED && strcmp(machine->ledger, self->spec.ledger) == 0;
}

const ledger_entry *run_cluster_entry(const run_cluster *self, const cloud_machine *machine)
{
    uint64_t token = token_of(machine);
    const ledger_entry *entry = token ? ledger_find(&self->ledger, token) : NULL;
    return entry && (!*entry->machine || strcmp(entry->machine, machine->id) == 0) ? entry : NULL;
}

/* Two people may have clusters of one name, in stores of their own: only machines of this ledger are ours. */
static void keep_own(run_cluster *self)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < self->found.count; i++)
        if (strcmp(self->found.machine[i].ledger, self->spec.ledger) == 0)
            self->found.machine[kept++] = self->found.machine[i];
    self->found.count = kept;
}

int run_cluster_look(run_cluster *self, int64_t *begun, int64_t *wall)
{
    cloud_machines found = {0};
    *begun = shoal_now();
    *wall = time(NULL);
    int status = cloud_list(&found, self->place, self->spec.name, run_cluster_deadline(self));
    if (status < 0)
        return status;
    cloud_machines_release(&self->found);
    self->found = found;
    keep_own(self);
    ledger fresh = {0};
    if (self->has_secret)
        status = ledger_read(&fresh, &self->book, run_cluster_deadline(self));
    if (status == SHOAL_OK) {
        ledger_release(&self->ledger);
        self->ledger = fresh;
    }
    return status;
}

int run_cluster_look_only(run_cluster *self)
{
    int64_t begun, wall;
    return run_cluster_look(self, &begun, &wall);
}

/* ---- changing the ledger ----------------------------------------------------------------------------------------- */

static int change_entry(void *context, ledger *book, uint64_t fresh)
{
    const ledger_step *step = context;
    switch (step->act) {
    case LEDGER_NOTED: return ledger_note(book, step->token, step->machine, fresh);
    case LEDGER_REVOKE: return ledger_revoke(book, step->token, fresh);
    case LEDGER_ENDED: return ledger_end(book, step->token, step->seen, step->cost);
    default: return SHOAL_OK;
    }
}

/* Another leader may have been first, or know better: the next look tells. */
static int record_step(run_cluster *self, ledger_step *step)
{
    int status = ledger_change(&self->book, change_entry, step, run_cluster_deadline(self));
    return status == SHOAL_ABSENT || status == SHOAL_CONFLICT ? SHOAL_OK : status;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/* Where the store is, for a machine; never who may read it: that is the machine's role. */
static int add_variables(char *text[USER_DATA_VARIABLES + 1])
{
    static const char *const names[USER_DATA_VARIABLES] = {"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3",
                                                           "AWS_ENDPOINT_URL"};
    int count = 0, status = SHOAL_OK;
    for (int i = 0; i < USER_DATA_VARIABLES && status == SHOAL_OK; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            status = base_format(&text[count++], "%s=%s", names[i], value);
    }
    return status;
}

static int make_user_data(char **out, const run_cluster *self, const ledger_entry *entry, const char *reservation)
{
    char *variables[USER_DATA_VARIABLES + 1] = {NULL};
    int status = add_variables(variables);
    if (status == SHOAL_OK)
        status = cloud_user_data(out, &(cloud_boot){.cluster = self->spec.name,
                                                    .reservation = reservation,
                                                    .allowed = entry->allowed,
                                                    .bundle = self->bundle,
                                                    .hash = self->hash,
                                                    .store = self->far_url,
                                                    .variables = (const char *const *)variables,
                                                    .idle = self->spec.idle});
    for (int i = 0; i < USER_DATA_VARIABLES; i++)
        base_free(&variables[i]);
    return status;
}

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static void keep_refusal(run_cluster *self, run_pool *pool, cloud_refusal why)
{
    char name[LEDGER_NAME_BYTES];
    run_pool_name(name, pool);
    snprintf(self->trouble, sizeof self->trouble, "%s: %.200s", name, shoal_error());
    run_pool_refused(self->pool, self->pools, pool - self->pool, why, shoal_now());
    pool->load--;
    if (why == CLOUD_REFUSED_OTHERWISE || why == CLOUD_OTHER_ORDER)
        snprintf(self->failure, sizeof self->failure, "%s", self->trouble);
}

/* One attempt, signed with a moment before the ledger was read: a process that was stopped in between sends what the
 * provider refuses. */
static int start_entry(run_cluster *self, const ledger_entry *entry, int64_t wall)
{
    char reservation[24], token[LEDGER_NAME_BYTES], *user_data = NULL;
    cloud_machine machine;
    cloud_refusal why;
    int64_t which = run_pool_find(self->pool, self->pools, entry->pool);
    if (which < 0 || !self->bundle)
        return SHOAL_OK; /* it was made by another process with the same number, which can't be */
    run_pool *pool = &self->pool[which];
    snprintf(reservation, sizeof reservation, "%016llx", (unsigned long long)entry->token);
    snprintf(token, sizeof token, "%s-%.46s", reservation, entry->pool);
    int status = make_user_data(&user_data, self, entry, reservation);
    if (status == SHOAL_OK)
        status = ledger_lead_sent(self->lead, entry->token);
    if (status < 0) {
        base_free(&user_data);
        return status;
    }
    const cloud_order order = {.type = pool->type,
                               .zone = pool->zone,
                               .market = pool->market,
                               .cap = (double)entry->cap / (double)LEDGER_UNIT,
                               .token = token,
                               .cluster = self->spec.name,
                               .ledger = self->spec.ledger,
                               .reservation = reservation,
                               .user_data = user_data,
                               .moment = wall,
                               .image = or_null(self->spec.image),
                               .role = or_null(self->spec.role),
                               .key = or_null(self->spec.key),
                               .subnet = or_null(self->spec.subnet),
                               .group = or_null(self->spec.group)};
    status = cloud_start(&machine, &why, self->place, &order, run_cluster_deadline(self));
    if (status == SHOAL_OK) {
        ledger_step noted = {.act = LEDGER_NOTED, .token = entry->token, .machine = machine.id};
        ledger_lead_answered(self->lead, entry->token, true);
        pool->refusals = 0;
        status = record_step(self, &noted);
    } else if (why != CLOUD_UNANSWERED) {
        if (why != CLOUD_OTHER_ORDER) /* which tells that there is a machine of that token */
            ledger_lead_answered(self->lead, entry->token, false);
        keep_refusal(self, pool, why);
        status = SHOAL_OK;
    } else {
        snprintf(self->trouble, sizeof self->trouble, "%.300s", shoal_error());
        status = SHOAL_OK; /* the next look tells, or the next attempt by the same token */
    }
    base_free(&user_data);
    return status;
}

/* ---- one look and its steps -------------------------------------------------------------------------------------- */

/* Seconds that are billed; of one that ended without saying when, at most those until now. */
static double billed_seconds(const cloud_machine *machine, int64_t wall)
{
    int64_t until = machine->ended > machine->launched ? machine->ended : wall;
    return machine->launched > 0 && until >= machine->launched ? (double)(until - machine->launched) : -1;
}

static int list_for_ledger(ledger_machine **out, const run_cluster *self, int64_t wall)
{
    int status = base_alloc(out, (size_t)self->found.count + 1, sizeof **out, "machines");
    for (int64_t i = 0; i < self->found.count && status == SHOAL_OK; i++) {
        const cloud_machine *machine = &self->found.machine[i];
        (*out)[i] = (ledger_machine){.name = machine->id,
                                     .token = token_of(machine),
                                     .ended = machine->state == CLOUD_ENDED,
                                     .billed = billed_seconds(machine, wall)};
    }
    return status;
}

static int do_step(run_cluster *self, ledger_step *step, int64_t wall)
{
    if (step->act == LEDGER_KILL)
        return cloud_end(self->place, &step->machine, 1, run_cluster_deadline(self));
    if (step->act != LEDGER_START)
        return record_step(self, step);
    const ledger_entry *entry = ledger_find(&self->ledger, step->token);
    return entry ? start_entry(self, entry, wall) : SHOAL_OK;
}

/* ledger_change has looked at it already. */
static int change_nothing(void *context, ledger *book, uint64_t fresh)
{
    (void)context;
    (void)book;
    (void)fresh;
    return SHOAL_OK;
}

int run_cluster_tick(run_cluster *self)
{
    ledger_step steps[STEPS_AT_ONCE];
    ledger_machine *machines = NULL;
    int64_t begun, wall, count = 0;
    int status = run_cluster_need_secret(self);
    if (status == SHOAL_OK)
        status = run_cluster_look(self, &begun, &wall);
    if (status == SHOAL_OK)
        status = list_for_ledger(&machines, self, wall);
    if (status == SHOAL_OK) {
        const ledger_listing listing = {machines, self->found.count, begun, wall};
        status = ledger_lead_next(self->lead, steps, STEPS_AT_ONCE, &count, &self->ledger, &listing);
    }
    for (int64_t i = 0; i < count && status == SHOAL_OK && !*self->failure; i++)
        status = do_step(self, &steps[i], wall);
    if (status == SHOAL_OK && ledger_lacks_witness(&self->ledger))
        status = ledger_change(&self->book, change_nothing, NULL, run_cluster_deadline(self));
    base_free(&machines);
    return status;
}
