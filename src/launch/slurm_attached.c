/* Workers on nodes of a Slurm allocation, which reach the store through this process: one agent per node, as behind
 * ssh.
 *
 * salloc gets an allocation and runs a shell on this machine that only waits for the end of its standard input.  So the
 * nodes are given back when this process ends, however it ends.  In the allocation one step per node is a far_host,
 * whose command is srun instead of ssh.  An allocation that ends early (its time is over, it was preempted) is followed
 * by another; one that someone cancelled is not. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/world.h"
#include "launch/far_host.h"
#include "launch/slurm_command.h"
#include "launch/slurm_internal.h"
#include "launch/slurm_options.h"

enum { WORDS_MOST = 48, BUDGET = 10, NODES_MOST = LAUNCH_WORKERS_MOST, AT_ONCE = 32, NODE_BYTES = 256 };
static const double LOOK_SECONDS = 60, LOOK_PAUSE = 0.5, FIRST_PAUSE = 1, LONGEST_PAUSE = 60, RELEASE_SECONDS = 5;

typedef struct node {
    char name[NODE_BYTES];
    int64_t tasks; /* workers there is room for */
    far_host *far;
    bool said; /* that the job continues without it */
} node;

typedef enum stage {
    STAGE_DUE,     /* to be asked for when its moment has come */
    STAGE_WAITING, /* salloc runs and has no nodes yet */
    STAGE_GRANTED,
    STAGE_LOOKING, /* it has ended: Slurm is asked why */
    STAGE_ENDED,
} stage;

typedef struct allocation {
    stage stage;
    int64_t tasks;
    slurm_command salloc, look;
    char id[24];
    node *nodes;
    int64_t count;
    bool said_waiting;
    int spent;
    int64_t due;   /* when to ask for it, or to look why it ended; INT64_MAX while that is looked for */
    int64_t until; /* that is looked for */
} allocation;

typedef struct attached {
    launch_workers base;
    launch_order order; /* the group's, but for the threads, of which Slurm gave a number */
    slurm_options options;
    allocation *allocations;
    int64_t count, wanted;
    far_gate *gate;
    bool closing;
    char reason[640]; /* of the last allocation that was given up */
} attached;

static void say_of_step(const attached *self, const char *line)
{
    if (self->order.say)
        self->order.say(self->order.context, line);
}

/* ---- asking for nodes -------------------------------------------------------------------------------------------- */

/* The script that holds the allocation: it prints the nodes, one per line, and waits.  The first line has the job's
 * number and "2(x3),1", the tasks on each; the last is a dot. */
static const char waiting_shell[] = "echo \"$SLURM_JOB_ID $SLURM_TASKS_PER_NODE\"; scontrol show hostnames "
                                    "\"$SLURM_JOB_NODELIST\"; echo .; exec cat >/dev/null";

static int ask_nodes(attached *self, allocation *allocation)
{
    const char *words[WORDS_MOST + 1] = {"salloc", "--no-kill", "--kill-command=TERM", "--no-bell"};
    char tasks[48], cpus[48], *name = NULL;
    int count = 4;
    snprintf(tasks, sizeof tasks, "--ntasks=%lld", (long long)allocation->tasks);
    snprintf(cpus, sizeof cpus, "--cpus-per-task=%lld",
             (long long)(self->options.cpus > 0 ? self->options.cpus : self->order.threads));
    int status = base_format(&name, "--job-name=shoal-%s", self->order.id);
    words[count++] = tasks;
    words[count++] = cpus;
    words[count++] = name;
    for (int i = 0; i < self->options.count; i++)
        words[count++] = self->options.argument[i];
    words[count++] = "sh";
    words[count++] = "-c";
    words[count++] = waiting_shell;
    if (status == SHOAL_OK)
        status = slurm_command_hold(&allocation->salloc, words);
    allocation->stage = status == SHOAL_OK ? STAGE_WAITING : STAGE_ENDED;
    allocation->said_waiting = false;
    base_free(&name);
    return status;
}

/* The tasks of the next node in "2(x3),1": moves on in the text when a group is used up. */
static int64_t next_tasks(const char **text, int64_t *left)
{
    char *end = NULL;
    int64_t tasks = strtoll(*text, &end, 10), times = 1;
    if (strncmp(end, "(x", 2) == 0)
        times = strtoll(end + 2, &end, 10);
    if (*left == 0)
        *left = times > 0 ? times : 1;
    if (--*left == 0) {
        end += *end == ')';
        *text = end + (*end == ',');
    }
    return tasks > 0 && tasks <= LAUNCH_WORKERS_MOST ? tasks : 1;
}

/* Reads the output of the allocation's shell; *complete when all of it is there. */
static int read_nodes(allocation *allocation, bool *complete)
{
    char *text = NULL;
    int status = slurm_command_read(&allocation->salloc, false, &text);
    *complete = status == SHOAL_OK && strstr(text, "\n.\n");
    if (!*complete) {
        base_free(&text);
        return status;
    }
    char *rest = text, *first = strsep(&rest, "\n"), *tasks = first, *line = NULL;
    const char *id = strsep(&tasks, " "), *per_node = tasks ? tasks : "1";
    int64_t left = 0, count = 0;
    snprintf(allocation->id, sizeof allocation->id, "%.20s", id);
    for (const char *at = rest; (at = strchr(at, '\n')); at++)
        count++;
    status = count <= NODES_MOST + 1 ? base_alloc(&allocation->nodes, (size_t)count, sizeof(node), "the nodes")
                                     : shoal_fail(SHOAL_INVALID, "slurm: job %s has too many nodes", id);
    while (status == SHOAL_OK && (line = strsep(&rest, "\n")) && strcmp(line, ".") != 0) {
        node *node = &allocation->nodes[allocation->count++];
        snprintf(node->name, sizeof node->name, "%.*s", NODE_BYTES - 1, line);
        node->tasks = next_tasks(&per_node, &left);
    }
    base_free(&text);
    return status;
}

/* ---- workers on the nodes ---------------------------------------------------------------------------------------- */

/* What may be temporary: a node that does not answer, a step that can't be made at the moment. */
static far_verdict judge_srun(char *reason, size_t size, const char *said, int exit_code)
{
    (void)reason;
    (void)size;
    (void)said;
    return exit_code == 126 || exit_code == 127 ? FAR_LASTING : FAR_PASSING;
}

/* --unbuffered: without it srun holds back output that does not end with a line break.  --overlap: a step that has not
 * quite ended must not keep its successor waiting. */
static int start_node(attached *self, const allocation *allocation, node *node, int64_t slot, int64_t workers)
{
    char order[48], list[NODE_BYTES + 16];
    const char *const words[] = {
        "srun", "--nodes=1", "--ntasks=1", "--unbuffered", "--overlap", "--cpu-bind=none", "--mpi=none", "--chdir=/",
        order,  list,        "sh",         "-c",           NULL};
    snprintf(order, sizeof order, "--jobid=%s", allocation->id);
    snprintf(list, sizeof list, "--nodelist=%s", node->name);
    return far_host_new(&node->far, &(far_options){.order = &self->order,
                                                   .name = node->name,
                                                   .words = words,
                                                   .count = workers,
                                                   .first_slot = slot,
                                                   .gate = self->gate,
                                                   .judge = judge_srun});
}

/* The first allocations take as many of the wanted workers as they have room for. */
static int share_out(attached *self)
{
    int64_t left = self->wanted, slot = self->base.first_slot;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < self->count; i++) {
        allocation *allocation = &self->allocations[i];
        if (allocation->stage != STAGE_GRANTED) {
            left -= allocation->stage == STAGE_ENDED ? 0 : allocation->tasks < left ? allocation->tasks : left;
            slot += allocation->tasks;
            continue;
        }
        for (int64_t j = 0; j < allocation->count && status == SHOAL_OK; j++) {
            node *node = &allocation->nodes[j];
            int64_t share = node->tasks < left ? node->tasks : left;
            if (node->far)
                far_host_scale(node->far, share);
            else if (share > 0)
                status = start_node(self, allocation, node, slot, share);
            left -= share;
            slot += node->tasks;
        }
    }
    return status;
}

static void say_granted(const attached *self, const allocation *allocation)
{
    char line[160];
    snprintf(line, sizeof line, "slurm: job %s: %lld worker%s on %lld node%s", allocation->id,
             (long long)allocation->tasks, allocation->tasks == 1 ? "" : "s", (long long)allocation->count,
             allocation->count == 1 ? "" : "s");
    say_of_step(self, line);
}

/* Once they have told what became of their workers. */
static void free_nodes(allocation *allocation)
{
    int64_t until = base_time_after(base_now(), RELEASE_SECONDS);
    for (int64_t i = 0; i < allocation->count; i++)
        if (allocation->nodes[i].far)
            far_host_stop(allocation->nodes[i].far);
    for (int64_t i = 0; i < allocation->count; i++) {
        far_host *far = allocation->nodes[i].far;
        while (far && !far_host_is_over(far) && base_now() < until)
            base_sleep_until(base_time_after(base_now(), 0.005));
        far_host_free(&allocation->nodes[i].far);
    }
    base_free(&allocation->nodes);
    allocation->count = 0;
}

/* ---- one allocation ---------------------------------------------------------------------------------------------- */

/* salloc's own message: "job 12 queued and waiting for resources". */
static int say_waiting(attached *self, allocation *allocation)
{
    char *said = NULL, line[240];
    if (allocation->said_waiting)
        return SHOAL_OK;
    int status = slurm_command_read(&allocation->salloc, true, &said);
    const char *at = status == SHOAL_OK ? strstr(said, "salloc: job ") : NULL;
    if (at) {
        allocation->said_waiting = true;
        at += strlen("salloc: ");
        snprintf(line, sizeof line, "slurm: %.*s", (int)(strcspn(at, "\n") < 200 ? strcspn(at, "\n") : 200), at);
        say_of_step(self, line);
    }
    base_free(&said);
    return status;
}

/* Asks again after a pause, unless it has done so too often without progress. */
static void plan_again(attached *self, allocation *allocation, int cost, const char *why)
{
    char line[800];
    allocation->spent += cost;
    allocation->stage = STAGE_ENDED;
    if (self->closing)
        return;
    if (allocation->spent > BUDGET) {
        snprintf(self->reason, sizeof self->reason, "%.600s", why);
        return;
    }
    double pause = ldexp(FIRST_PAUSE, allocation->spent < 8 ? allocation->spent - 1 : 7);
    allocation->stage = STAGE_DUE;
    allocation->due = base_time_after(base_now(), pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE);
    snprintf(line, sizeof line, "%.700s; trying again", why);
    say_of_step(self, line);
}

/* salloc ended without an allocation. */
static void note_refused(attached *self, allocation *allocation)
{
    char *text = NULL, why[640];
    int status = slurm_command_finish(&allocation->salloc, &text);
    if (status == SHOAL_OK)
        status = shoal_fail(SHOAL_AGAIN, "slurm: salloc ended at once");
    base_free(&text);
    snprintf(why, sizeof why, "%.600s", shoal_error());
    plan_again(self, allocation, status == SHOAL_AGAIN ? 1 : BUDGET + 1, why);
}

static int wait_for_nodes(attached *self, allocation *allocation)
{
    bool complete = false;
    int status = say_waiting(self, allocation);
    if (status == SHOAL_OK)
        status = read_nodes(allocation, &complete);
    if (status == SHOAL_OK && complete) {
        allocation->stage = STAGE_GRANTED;
        say_granted(self, allocation);
        return share_out(self);
    }
    if (status == SHOAL_OK && slurm_command_is_over(&allocation->salloc))
        note_refused(self, allocation);
    return status;
}

/* The allocation is gone, and with it all that ran there. */
static void lose_nodes(allocation *allocation)
{
    slurm_command_release(&allocation->salloc, 0);
    free_nodes(allocation);
    allocation->stage = STAGE_LOOKING;
    allocation->due = 0;
    allocation->until = base_time_after(base_now(), LOOK_SECONDS);
}

static int look_why(allocation *allocation)
{
    char jobs[48];
    const char *const words[] = {"squeue", "--noheader", "--states=all", "--Format=State:24", jobs, NULL};
    snprintf(jobs, sizeof jobs, "--jobs=%s", allocation->id);
    allocation->due = INT64_MAX;
    return slurm_command_start(&allocation->look, words, NULL, LOOK_SECONDS);
}

/* While it is being cleaned up Slurm does not say why it ended. */
static void note_why(attached *self, allocation *allocation)
{
    char *text = NULL, why[640];
    int status = slurm_command_finish(&allocation->look, &text);
    const char *state = status == SHOAL_OK ? text : "";
    if (base_now() < allocation->until &&
        (status == SHOAL_AGAIN || strncmp(state, "COMPLETING", strlen("COMPLETING")) == 0)) {
        allocation->due = base_time_after(base_now(), LOOK_PAUSE);
        base_free(&text);
        return;
    }
    bool cancelled = strncmp(state, "CANCELLED", strlen("CANCELLED")) == 0;
    if (cancelled)
        snprintf(why, sizeof why, "slurm: job %s was cancelled", allocation->id);
    else if (*state)
        snprintf(why, sizeof why, "slurm: job %s has ended: %.*s", allocation->id, (int)strcspn(state, " \n"), state);
    else
        snprintf(why, sizeof why, "slurm: job %s has ended", allocation->id);
    plan_again(self, allocation, cancelled ? BUDGET + 1 : 1, why);
    base_free(&text);
}

static int keep_looking(attached *self, allocation *allocation)
{
    if (allocation->due != INT64_MAX)
        return base_now() >= allocation->due ? look_why(allocation) : SHOAL_OK;
    if (slurm_command_is_over(&allocation->look))
        note_why(self, allocation);
    return SHOAL_OK;
}

/* A node that was given up is named once; the others continue. */
static void tick_nodes(attached *self, allocation *allocation, int64_t *hopeful)
{
    char line[1200];
    for (int64_t i = 0; i < allocation->count; i++) {
        node *node = &allocation->nodes[i];
        if (!node->far)
            continue;
        if (far_host_tick(node->far) == SHOAL_OK) {
            node->said = false;
            ++*hopeful;
            continue;
        }
        snprintf(self->reason, sizeof self->reason, "%.600s", shoal_error());
        if (!node->said && allocation->count > 1) {
            snprintf(line, sizeof line, "%.1100s; the job continues without it", self->reason);
            say_of_step(self, line);
        }
        node->said = true;
    }
}

static int tick_allocation(attached *self, allocation *allocation, int64_t *hopeful)
{
    int status = SHOAL_OK;
    if (allocation->stage == STAGE_DUE && base_now() >= allocation->due)
        status = ask_nodes(self, allocation);
    else if (allocation->stage == STAGE_WAITING)
        status = wait_for_nodes(self, allocation);
    else if (allocation->stage == STAGE_LOOKING)
        status = keep_looking(self, allocation);
    else if (allocation->stage == STAGE_GRANTED && slurm_command_is_over(&allocation->salloc))
        lose_nodes(allocation);
    if (status < 0)
        return status;
    if (allocation->stage == STAGE_GRANTED)
        tick_nodes(self, allocation, hopeful);
    else
        *hopeful += allocation->stage != STAGE_ENDED;
    return SHOAL_OK;
}

/* ---- the launcher ------------------------------------------------------------------------------------------------ */

/* Missing workers become another allocation; superfluous nodes are left empty, and released at the end. */
static int attached_scale(launch_workers *base, int64_t count)
{
    attached *self = (attached *)base;
    int64_t room = 0;
    for (int64_t i = 0; i < self->count; i++)
        room += self->allocations[i].stage == STAGE_ENDED ? 0 : self->allocations[i].tasks;
    self->wanted = count;
    if (count > room) {
        int status = base_grow(&self->allocations, (size_t)self->count, (size_t)self->count + 1, sizeof(allocation),
                               "the workers");
        if (status < 0)
            return status;
        self->allocations[self->count++] = (allocation){
            .stage = STAGE_DUE, .tasks = count - room, .salloc = SLURM_COMMAND_NONE, .look = SLURM_COMMAND_NONE};
    }
    return share_out(self);
}

static int attached_tick(launch_workers *base)
{
    attached *self = (attached *)base;
    int64_t hopeful = 0;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < self->count && status == SHOAL_OK; i++)
        status = tick_allocation(self, &self->allocations[i], &hopeful);
    if (status < 0 || hopeful > 0 || self->wanted == 0)
        return status;
    return shoal_fail(SHOAL_INVALID, "%s", self->reason[0] ? self->reason : "slurm: there is no node left");
}

static int attached_start(launch_workers *base, const char *rest, int64_t extra)
{
    attached *self = (attached *)base;
    int status = slurm_options_parse(&self->options, rest);
    if (status < 0)
        return status;
    self->order = *base->order;
    self->order.threads = slurm_options_threads(&self->options, base->order->threads);
    status = far_gate_new(&self->gate, AT_ONCE);
    if (status == SHOAL_OK)
        status = attached_scale(base, self->options.workers + extra);
    return status < 0 ? status : attached_tick(base);
}

/* Calls `act` for every node that has workers; sums up what it returns. */
static int64_t for_nodes(const attached *self, int64_t (*act)(far_host *far))
{
    int64_t sum = 0;
    for (int64_t i = 0; i < self->count; i++)
        for (int64_t j = 0; j < self->allocations[i].count; j++)
            if (self->allocations[i].nodes[j].far)
                sum += act(self->allocations[i].nodes[j].far);
    return sum;
}

static int64_t note_progress(far_host *far)
{
    far_host_progress(far);
    return 0;
}

static int64_t count_running(far_host *far)
{
    return far_host_running(far);
}

static int64_t let_leave(far_host *far)
{
    far_host_tell_leave(far);
    return 0;
}

static int64_t count_there(far_host *far)
{
    return !far_host_is_over(far);
}

static int64_t stop_far(far_host *far)
{
    far_host_stop(far);
    return 0;
}

static void attached_progress(launch_workers *base)
{
    attached *self = (attached *)base;
    for (int64_t i = 0; i < self->count; i++)
        self->allocations[i].spent = 0;
    for_nodes(self, note_progress);
}

static int64_t attached_running(const launch_workers *base)
{
    return for_nodes((const attached *)base, count_running);
}

static int64_t attached_wanted(const launch_workers *base)
{
    return ((const attached *)base)->wanted;
}

/* Gives up allocations that were requested and are not there yet. */
static void close_all(attached *self)
{
    self->closing = true;
    for (int64_t i = 0; i < self->count; i++) {
        allocation *allocation = &self->allocations[i];
        if (allocation->stage == STAGE_GRANTED || allocation->stage == STAGE_ENDED)
            continue;
        if (slurm_command_runs(&allocation->salloc)) /* which takes back its request then */
            kill(allocation->salloc.process, SIGTERM);
        slurm_command_release(&allocation->salloc, RELEASE_SECONDS);
        slurm_command_release(&allocation->look, 0);
        allocation->stage = STAGE_ENDED;
    }
}

static void attached_tell_leave(launch_workers *base)
{
    attached *self = (attached *)base;
    close_all(self);
    for_nodes(self, let_leave);
}

static bool attached_is_over(launch_workers *base)
{
    attached *self = (attached *)base;
    close_all(self);
    return for_nodes(self, count_there) == 0;
}

/* Workers that did not leave end with their agent, which ends with the link. */
static void attached_end(launch_workers *base)
{
    for_nodes((attached *)base, stop_far);
}

static void attached_free(launch_workers *base)
{
    attached *self = (attached *)base;
    close_all(self);
    for_nodes(self, stop_far);
    for (int64_t i = 0; i < self->count; i++) {
        free_nodes(&self->allocations[i]);
        slurm_command_release(&self->allocations[i].salloc, RELEASE_SECONDS);
    }
    base_free(&self->allocations);
    far_gate_free(&self->gate);
    slurm_options_release(&self->options);
}

const struct launcher slurm_attached = {
    .size = sizeof(attached),
    .start = attached_start,
    .tick = attached_tick,
    .progress = attached_progress,
    .scale = attached_scale,
    .running = attached_running,
    .wanted = attached_wanted,
    .tell_leave = attached_tell_leave,
    .is_over = attached_is_over,
    .end = attached_end,
    .free = attached_free,
};
