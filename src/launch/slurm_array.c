/* Workers as tasks of Slurm array jobs, which reach a cloud store by themselves.
 *
 * Each worker is a *slot*, and its task has the slot's number.  The first submission is one array of all slots.  Tasks
 * that Slurm requeues, after a preemption say, it restarts by itself; a task that failed, was preempted for good or
 * reached its time limit is submitted again, in an array of those that are due.  A task cancelled by someone else stays
 * cancelled.
 *
 * All arrays of a job have one name, which nobody else has: shoal-ID.  So even an array whose number was lost with the
 * controller's answer is cancelled with the rest.  Nothing here waits: one command of Slurm runs at a time, and each
 * tick checks whether it has ended.  When this process dies the tasks keep running: they end with the job. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/world.h"
#include "launch/slurm_command.h"
#include "launch/slurm_internal.h"
#include "launch/slurm_options.h"
#include "launch/slurm_script.h"

enum {
    WORDS_MOST = 48,
    BUDGET = 10, /* starts again without progress, as for processes of this machine (launch_crew.c) */
    FAILURE_COSTS = 6,
    EXIT_GOES_ON = 3,
    TERM_BEFORE = 30, /* seconds before its time limit at which a task is told to leave */
};
static const double COMMAND_SECONDS = 120, FIRST_LOOK = 0.5, LONGEST_LOOK = 10, LAST_LOOKS = 0.2, FIRST_PAUSE = 1,
                    LONGEST_PAUSE = 60, LEFT_PAUSE = 5, END_SECONDS = 10;

typedef enum slot_state {
    SLOT_DUE,     /* to be submitted when its moment has come */
    SLOT_ASKED,   /* in the submission that runs */
    SLOT_PENDING, /* Slurm has it */
    SLOT_RUNNING,
    SLOT_ENDED, /* not to be submitted again */
} slot_state;

typedef struct slot {
    slot_state state;
    int64_t array; /* number of the job it is a task of */
    char prefix[SLURM_PREFIX_BYTES];
    int64_t restarts; /* by Slurm */
    bool seen;        /* in this look */
    bool unwanted;    /* to be cancelled */
    int spent, deaths;
    int64_t due;
} slot;

typedef enum doing { DOING_NOTHING, DOING_SUBMIT, DOING_LOOK, DOING_SEARCH, DOING_CANCEL } doing;

typedef struct array_launch {
    launch_workers base;
    slurm_options options;
    int64_t threads;
    char *name, *program;
    slot *slots;
    int64_t room, wanted;
    slurm_command command;
    doing doing;
    int64_t looked;    /* when Slurm was last asked */
    double look_pause; /* until it is asked again */
    int64_t retry;     /* not before this moment, since the controller did not answer */
    double retry_pause;
    bool said_away;
    bool closing;            /* no more are submitted */
    bool leaving, cancelled; /* all should leave; Slurm was told */
    char waiting[64];        /* why they wait, as last reported */
    char reason[640];        /* of the last that was given up; "" for none */
} array_launch;

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static void say_of_array(const array_launch *self, const char *line)
{
    if (self->base.order->say)
        self->base.order->say(self->base.order->context, line);
}

static void tell_gone(const array_launch *self, const slot *slot, int64_t restarts, const char *why)
{
    if (self->base.order->gone)
        self->base.order->gone(self->base.order->context,
                               slurm_script_worker(slot->prefix, slot - self->slots, restarts), why);
}

/* ---- lists of tasks ---------------------------------------------------------------------------------------------- */

/* The slots of an array (0: of any) that `wanted` accepts, as Slurm writes them: "0-3,7". */
static int list_slots(char **out, const array_launch *self, int64_t array, bool (*wanted)(const slot *slot))
{
    base_writer writer = {0};
    void *bytes = NULL;
    size_t size = 0;
    for (int64_t i = 0; i < self->room; i++) {
        char text[64];
        int64_t first = i;
        while (i < self->room && (array == 0 || self->slots[i].array == array) && wanted(&self->slots[i]))
            i++;
        if (i == first)
            continue;
        int length = snprintf(text, sizeof text, i - first > 1 ? "%s%lld-%lld" : "%s%lld", writer.size ? "," : "",
                              (long long)first, (long long)i - 1);
        base_write_bytes(&writer, text, (size_t)length);
    }
    base_write_bytes(&writer, "", 1);
    int status = base_writer_take(&writer, &bytes, &size);
    *out = bytes;
    return status;
}

static bool is_asked(const slot *slot)
{
    return slot->state == SLOT_ASKED;
}

static bool is_slot_there(const slot *slot)
{
    return slot->state == SLOT_PENDING || slot->state == SLOT_RUNNING;
}

static bool is_running(const slot *slot)
{
    return slot->state == SLOT_RUNNING;
}

static bool is_unwanted(const slot *slot)
{
    return slot->unwanted && is_slot_there(slot);
}

static int64_t count_slots(const array_launch *self, bool (*wanted)(const slot *slot))
{
    int64_t count = 0;
    for (int64_t i = 0; i < self->room; i++)
        count += wanted(&self->slots[i]);
    return count;
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

static int compose_script(char **out, const array_launch *self, const char *prefix, int64_t last)
{
    slurm_script script = {.order = self->base.order,
                           .first_slot = self->base.first_slot,
                           .threads = self->threads,
                           .program = self->program,
                           .prefix = prefix};
    return slurm_script_compose(out, &script, last);
}

static int run_sbatch(array_launch *self, const char *list, const char *script)
{
    const char *words[WORDS_MOST + 1] = {"sbatch",    "--parsable", "--requeue", "--export=ALL", "--output=/dev/null",
                                         "--chdir=/", "--ntasks=1"};
    char cpus[48], before[48], *array = NULL, *name = NULL;
    int count = 7;
    snprintf(cpus, sizeof cpus, "--cpus-per-task=%lld",
             (long long)(self->options.cpus > 0 ? self->options.cpus : self->threads));
    snprintf(before, sizeof before, "--signal=B:TERM@%d", TERM_BEFORE);
    int status = base_format(&array, "--array=%s", list);
    if (status == SHOAL_OK)
        status = base_format(&name, "--job-name=%s", self->name);
    words[count++] = cpus;
    words[count++] = before;
    words[count++] = array;
    words[count++] = name;
    for (int i = 0; i < self->options.count; i++)
        words[count++] = self->options.argument[i];
    if (status == SHOAL_OK)
        status = slurm_command_start(&self->command, words, script, COMMAND_SECONDS);
    base_free(&array);
    base_free(&name);
    return status;
}

static void move_asked(array_launch *self, slot_state to, int64_t array)
{
    for (int64_t i = 0; i < self->room; i++) {
        slot *slot = &self->slots[i];
        if (slot->state != SLOT_ASKED)
            continue;
        slot->state = to;
        slot->array = array;
        slot->restarts = 0;
        slot->unwanted = i >= self->wanted;
    }
}

/* All slots whose moment has come. */
static int submit_due(array_launch *self)
{
    char prefix[SLURM_PREFIX_BYTES], *list = NULL, *script = NULL;
    uint64_t random = 0;
    int64_t now = base_now(), last = 0;
    base_entropy(&random, sizeof random);
    snprintf(prefix, sizeof prefix, "%010llx", (unsigned long long)(random >> 24) | 1); /* no worker's number is 0 */
    for (int64_t i = 0; i < self->wanted; i++) {
        slot *slot = &self->slots[i];
        if (slot->state != SLOT_DUE || slot->due > now)
            continue;
        slot->state = SLOT_ASKED;
        memcpy(slot->prefix, prefix, sizeof prefix);
        last = i;
    }
    int status = list_slots(&list, self, 0, is_asked);
    if (status == SHOAL_OK)
        status = compose_script(&script, self, prefix, last);
    if (status == SHOAL_OK)
        status = run_sbatch(self, list, script);
    self->doing = status == SHOAL_OK ? DOING_SUBMIT : DOING_NOTHING;
    if (status < 0)
        move_asked(self, SLOT_DUE, 0);
    base_free(&list);
    base_free(&script);
    return status;
}

static int note_submitted(array_launch *self, const char *text)
{
    char line[160], *end = NULL;
    int64_t array = strtoll(text, &end, 10), count = count_slots(self, is_asked);
    if (array <= 0 || (*end != '\0' && *end != '\n' && *end != ';'))
        return shoal_fail(SHOAL_INVALID, "slurm: sbatch printed '%.40s', which is not a job number", text);
    move_asked(self, SLOT_PENDING, array);
    self->cancelled = false; /* one that arrives after all were told to leave must be told too */
    self->look_pause = FIRST_LOOK;
    self->looked = base_now();
    snprintf(line, sizeof line, "slurm: job %lld: %lld worker%s submitted", (long long)array, (long long)count,
             count == 1 ? "" : "s");
    say_of_array(self, line);
    return SHOAL_OK;
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/* Columns of squeue, by their first characters: what they hold may have spaces. */
enum { AT_ID = 0, AT_STATE = 40, AT_RESTARTS = 64, AT_EXIT = 80, AT_WHY = 96, AT_NODE = 136, AT_COMMENT = 200 };
static const char columns[] =
    "--Format=JobArrayID:40,State:24,RestartCnt:16,exit_code:16,Reason:40,NodeList:64,Comment:300";

static int look_at_queue(array_launch *self)
{
    char *name = NULL;
    int status = base_format(&name, "--name=%s", self->name);
    const char *words[] = {"squeue", "--noheader", "--array", "--states=all", columns, name, NULL};
    if (status == SHOAL_OK)
        status = slurm_command_start(&self->command, words, NULL, COMMAND_SECONDS);
    for (int64_t i = 0; i < self->room; i++)
        self->slots[i].seen = false;
    self->doing = status == SHOAL_OK ? DOING_LOOK : DOING_NOTHING;
    base_free(&name);
    return status;
}

/* A field without the spaces that fill it. */
static void take_field(char *out, size_t size, const char *line, size_t length, size_t from, size_t to)
{
    if (to > length)
        to = length;
    while (to > from && line[to - 1] == ' ')
        to--;
    snprintf(out, size, "%.*s", to > from ? (int)(to - from) : 0, from < length ? line + from : "");
}

typedef struct task {
    char state[32], why[48], node[72], comment[320];
    int64_t restarts;
    int exit_status; /* as waitpid reports it */
} task;

static slot *find_slot(array_launch *self, const char *id)
{
    char *end = NULL;
    int64_t array = strtoll(id, &end, 10), number = *end == '_' ? strtoll(end + 1, &end, 10) : -1;
    if (number < 0 || number >= self->room || *end != '\0' || self->slots[number].array != array)
        return NULL; /* of another starter, or of an earlier submission */
    return is_slot_there(&self->slots[number]) ? &self->slots[number] : NULL;
}

static bool is_one_of(const char *text, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(text, *names) == 0)
            return true;
    return false;
}

static void give_up_slot(array_launch *self, slot *slot, const char *why)
{
    slot->state = SLOT_ENDED;
    snprintf(self->reason, sizeof self->reason, "%.600s", why);
}

/* It is resubmitted after a pause, unless that happened too often without progress. */
static void plan_again(array_launch *self, slot *slot, int cost, const char *why)
{
    slot->deaths++;
    slot->spent += cost;
    if (self->closing || slot->unwanted || slot->spent > BUDGET) {
        give_up_slot(self, slot, why);
        return;
    }
    double pause = ldexp(FIRST_PAUSE, slot->deaths < 8 ? slot->deaths - 1 : 7);
    slot->state = SLOT_DUE;
    slot->due = base_time_after(base_now(), pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE);
}

static void note_failed(array_launch *self, slot *slot, const task *task)
{
    char why[640];
    int code = task->exit_status >> 8 & 0xff, signal = task->exit_status & 0x7f;
    bool has_comment = *task->comment && strcmp(task->comment, "(null)") != 0;
    const char *on = *task->node ? " on " : "";
    if (code > 128 && code < 160 && !has_comment)
        signal = code - 128; /* which ended the worker below the script */
    if (strcmp(task->state, "FAILED") != 0)
        snprintf(why, sizeof why, "died: Slurm says %s%s%s", task->state, on, task->node);
    else if (has_comment)
        snprintf(why, sizeof why, "failed: %s%s%s",
                 strncmp(task->comment, "shoal: ", 7) == 0 ? task->comment + 7 : task->comment, on, task->node);
    else if (signal > 0)
        snprintf(why, sizeof why, "died: signal %d%s%s", signal, on, task->node);
    else
        snprintf(why, sizeof why, "failed: exit code %d%s%s", code, on, task->node);
    tell_gone(self, slot, slot->restarts, why);
    bool with_reason = strcmp(task->state, "FAILED") == 0 && signal == 0 && code != EXIT_GOES_ON;
    plan_again(self, slot, with_reason ? FAILURE_COSTS : 1, why);
}

static void note_cancelled(array_launch *self, slot *slot)
{
    char why[96];
    if (!slot->unwanted && !self->leaving) {
        snprintf(why, sizeof why, "died: task %lld_%lld was cancelled", (long long)slot->array,
                 (long long)(slot - self->slots));
        tell_gone(self, slot, slot->restarts, why);
        snprintf(self->reason, sizeof self->reason, "%s", why);
    }
    slot->state = SLOT_ENDED;
}

/* One that left by itself while the job runs was told so by Slurm, before its time limit, say.  But the end of the
 * job itself may not be known here yet. */
static void note_left(const array_launch *self, slot *slot)
{
    slot->state = self->closing || slot->unwanted ? SLOT_ENDED : SLOT_DUE;
    slot->due = base_time_after(base_now(), LEFT_PAUSE);
}

static void note_task(array_launch *self, slot *slot, const task *task)
{
    static const char *const waits[] = {"PENDING",     "CONFIGURING",   "REQUEUED",     "REQUEUE_HOLD",
                                        "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT", NULL},
                             *const runs[] = {"RUNNING",   "SUSPENDED", "RESIZING", "SIGNALING",
                                              "STAGE_OUT", "STOPPED",   NULL};
    slot->seen = true;
    if (task->restarts > slot->restarts) {
        tell_gone(self, slot, slot->restarts, "died: Slurm took it from its node and starts it again");
        slot->restarts = task->restarts;
        slot->state = SLOT_PENDING;
        self->look_pause = FIRST_LOOK;
    }
    if (is_one_of(task->state, waits)) {
        slot->state = SLOT_PENDING;
    } else if (is_one_of(task->state, runs)) {
        self->look_pause = slot->state == SLOT_RUNNING ? self->look_pause : FIRST_LOOK;
        slot->state = SLOT_RUNNING;
    } else if (strcmp(task->state, "COMPLETING") == 0) {
        if (self->closing)
            slot->state = SLOT_ENDED;
    } else if (strcmp(task->state, "COMPLETED") == 0) {
        note_left(self, slot);
    } else if (strncmp(task->state, "CANCELLED", strlen("CANCELLED")) == 0 || strcmp(task->state, "REVOKED") == 0) {
        note_cancelled(self, slot);
    } else {
        note_failed(self, slot, task);
    }
}

static void note_line(array_launch *self, const char *line, size_t length, char *waiting, size_t waiting_size)
{
    char id[48], number[24];
    task task;
    take_field(id, sizeof id, line, length, AT_ID, AT_STATE);
    slot *slot = find_slot(self, id);
    if (!slot)
        return;
    take_field(task.state, sizeof task.state, line, length, AT_STATE, AT_RESTARTS);
    take_field(number, sizeof number, line, length, AT_RESTARTS, AT_EXIT);
    task.restarts = strtoll(number, NULL, 10);
    take_field(number, sizeof number, line, length, AT_EXIT, AT_WHY);
    task.exit_status = (int)strtol(number, NULL, 10);
    take_field(task.why, sizeof task.why, line, length, AT_WHY, AT_NODE);
    take_field(task.node, sizeof task.node, line, length, AT_NODE, AT_COMMENT);
    take_field(task.comment, sizeof task.comment, line, length, AT_COMMENT, length);
    note_task(self, slot, &task);
    if (slot->state == SLOT_PENDING && *task.why && strcmp(task.why, "None") != 0)
        snprintf(waiting, waiting_size, "%.60s", task.why);
}

/* Slurm's reason why tasks wait, if it is a new one and none runs. */
static void say_waiting(array_launch *self, const char *waiting)
{
    char line[160];
    if (count_slots(self, is_running) > 0 || strcmp(waiting, self->waiting) == 0)
        return;
    snprintf(self->waiting, sizeof self->waiting, "%s", waiting);
    if (*waiting) {
        snprintf(line, sizeof line, "slurm: workers wait: %s", waiting);
        say_of_array(self, line);
    }
}

static bool is_missing(const slot *slot)
{
    return is_slot_there(slot) && !slot->seen;
}

/* What squeue no longer lists ended some minutes ago: accounting may know how. */
static int search_accounting(array_launch *self)
{
    char *name = NULL;
    int status = base_format(&name, "--name=%s", self->name);
    const char *words[] = {"sacct",
                           "--noheader",
                           "--parsable2",
                           "--allocations",
                           "--starttime=now-2days",
                           "--format=JobID,State,ExitCode,NodeList",
                           name,
                           NULL};
    if (status == SHOAL_OK)
        status = slurm_command_start(&self->command, words, NULL, COMMAND_SECONDS);
    self->doing = status == SHOAL_OK ? DOING_SEARCH : DOING_NOTHING;
    base_free(&name);
    return status;
}

static int note_look(array_launch *self, const char *text)
{
    char waiting[64] = "";
    self->looked = base_now();
    self->look_pause = self->look_pause * 1.5 < LONGEST_LOOK ? self->look_pause * 1.5 : LONGEST_LOOK;
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        note_line(self, line, length, waiting, sizeof waiting);
        line += length + (line[length] == '\n');
    }
    say_waiting(self, waiting);
    return count_slots(self, is_missing) > 0 ? search_accounting(self) : SHOAL_OK;
}

/* A line of sacct: "12_5|TIMEOUT|0:15|node7", with exit code and signal. */
static void note_account(array_launch *self, const char *line, size_t length)
{
    char copy[512];
    task task = {0};
    snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : sizeof copy - 1), line);
    char *rest = copy, *id = strsep(&rest, "|"), *state = strsep(&rest, "|"), *code = strsep(&rest, "|");
    slot *slot = state && code ? find_slot(self, id) : NULL;
    if (!slot || slot->seen)
        return;
    char *signal = NULL;
    task.exit_status = (int)strtol(code, &signal, 10) << 8;
    task.exit_status |= *signal == ':' ? (int)strtol(signal + 1, NULL, 10) & 0x7f : 0;
    task.restarts = slot->restarts;
    snprintf(task.state, sizeof task.state, "%.*s", (int)strcspn(state, " "), state); /* "CANCELLED by 1000" */
    snprintf(task.node, sizeof task.node, "%.70s", rest ? rest : "");
    note_task(self, slot, &task);
}

/* Without accounting it is unknown how they ended. */
static void note_search(array_launch *self, const char *text)
{
    static const char lost[] = "died: Slurm no longer knows it";
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        note_account(self, line, length);
        line += length + (line[length] == '\n');
    }
    for (int64_t i = 0; i < self->room; i++)
        if (is_missing(&self->slots[i])) {
            tell_gone(self, &self->slots[i], self->slots[i].restarts, lost);
            plan_again(self, &self->slots[i], 1, lost);
        }
}

/* ---- cancelling -------------------------------------------------------------------------------------------------- */

/* All of them by name; or some, of one array. */
static int cancel_jobs(array_launch *self)
{
    char *what = NULL, *list = NULL;
    int status = SHOAL_OK;
    if (self->leaving) {
        status = base_format(&what, "--name=%s", self->name);
        self->cancelled = true;
    } else {
        int64_t i = 0;
        while (!is_unwanted(&self->slots[i]))
            i++;
        int64_t array = self->slots[i].array;
        status = list_slots(&list, self, array, is_unwanted);
        if (status == SHOAL_OK)
            status = base_format(&what, "%lld_[%s]", (long long)array, list);
        for (; i < self->room && status == SHOAL_OK; i++)
            if (self->slots[i].array == array && is_unwanted(&self->slots[i]))
                self->slots[i].state = SLOT_ENDED;
    }
    const char *words[] = {"scancel", what, NULL};
    if (status == SHOAL_OK)
        status = slurm_command_start(&self->command, words, NULL, COMMAND_SECONDS);
    self->doing = status == SHOAL_OK ? DOING_CANCEL : DOING_NOTHING;
    self->look_pause = LAST_LOOKS;
    base_free(&what);
    base_free(&list);
    return status;
}

/* ---- one thing after the other ----------------------------------------------------------------------------------- */

/* The controller does not answer: that is reported once, and everything is tried again later. */
static void note_away(array_launch *self)
{
    char line[1024];
    self->retry_pause = self->retry_pause > 0 ? self->retry_pause * 2 : FIRST_PAUSE;
    if (self->retry_pause > LONGEST_PAUSE)
        self->retry_pause = LONGEST_PAUSE;
    self->retry = base_time_after(base_now(), self->retry_pause);
    if (self->doing == DOING_CANCEL)
        self->cancelled = false;
    if (!self->said_away) {
        snprintf(line, sizeof line, "%.900s; trying again", shoal_error());
        say_of_array(self, line);
    }
    self->said_away = true;
}

/* Passes a command's output to the code that started it. */
static int note_answer(array_launch *self, doing done, const char *text)
{
    switch (done) {
    case DOING_SUBMIT: return note_submitted(self, text);
    case DOING_LOOK: return note_look(self, text);
    case DOING_SEARCH: note_search(self, text); return SHOAL_OK;
    case DOING_NOTHING:
    case DOING_CANCEL: /* looks will show it */ return SHOAL_OK;
    }
    return SHOAL_OK;
}

static int end_command(array_launch *self)
{
    char *text = NULL;
    doing done = self->doing;
    int status = slurm_command_finish(&self->command, &text);
    if (status == SHOAL_AGAIN)
        note_away(self);
    self->doing = DOING_NOTHING;
    if (status < 0 && (done == DOING_SEARCH || done == DOING_CANCEL)) {
        if (done == DOING_SEARCH)
            note_search(self, "");
        return SHOAL_OK;
    }
    if (status == SHOAL_AGAIN) {
        if (done == DOING_SUBMIT)
            move_asked(self, SLOT_DUE, 0);
        return SHOAL_OK;
    }
    if (status == SHOAL_OK) {
        self->said_away = false;
        self->retry_pause = 0;
        status = note_answer(self, done, text);
    }
    if (status < 0 && done == DOING_SUBMIT) { /* a wrong partition, say, will stay wrong */
        snprintf(self->reason, sizeof self->reason, "%.600s", shoal_error());
        move_asked(self, SLOT_ENDED, 0);
        status = SHOAL_OK;
    }
    base_free(&text);
    return status;
}

static bool is_any_due(const array_launch *self)
{
    int64_t now = base_now();
    for (int64_t i = 0; i < self->wanted && !self->closing; i++)
        if (self->slots[i].state == SLOT_DUE && self->slots[i].due <= now)
            return true;
    return false;
}

/* Finishes a command that is done, and starts the next that is due. */
static int advance_command(array_launch *self)
{
    int status = SHOAL_OK;
    if (self->doing != DOING_NOTHING) {
        if (!slurm_command_is_over(&self->command))
            return SHOAL_OK;
        status = end_command(self);
    }
    if (status < 0 || self->doing != DOING_NOTHING || base_now() < self->retry)
        return status;
    if (self->leaving ? !self->cancelled : count_slots(self, is_unwanted) > 0)
        return cancel_jobs(self);
    if (is_any_due(self))
        return submit_due(self);
    if (count_slots(self, is_slot_there) > 0 && base_now() >= base_time_after(self->looked, self->look_pause))
        return look_at_queue(self);
    return SHOAL_OK;
}

/* ---- the launcher ------------------------------------------------------------------------------------------------ */

/* A program that was replaced since it was started still has the old name here; so has one that the nodes see
 * elsewhere. */
static int find_program(char **out, const slurm_options *options, const launch_order *order)
{
    char path[4096];
    if (options->program || order->program)
        return base_copy_text(out, options->program ? options->program : order->program);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        return shoal_fail(SHOAL_SYSTEM, "slurm: can't find this program's own path; slurm:N?program=PATH names it");
    path[length] = '\0';
    return base_copy_text(out, path);
}

static int array_scale(launch_workers *base, int64_t count)
{
    array_launch *self = (array_launch *)base;
    int status = SHOAL_OK;
    if (count > self->room) {
        status = base_grow(&self->slots, (size_t)self->room, (size_t)count, sizeof *self->slots, "the workers");
        if (status < 0)
            return status;
        self->room = count; /* new ones are due at once */
    }
    for (int64_t i = 0; i < self->room; i++) {
        slot *slot = &self->slots[i];
        if (i >= self->wanted && i < count && slot->state == SLOT_ENDED)
            *slot = (struct slot){.state = SLOT_DUE}; /* what was told to leave does: its successor is another task */
        slot->unwanted = i >= count;
    }
    self->wanted = count;
    return SHOAL_OK;
}

static int array_start(launch_workers *base, const char *rest, int64_t extra)
{
    array_launch *self = (array_launch *)base;
    self->command = SLURM_COMMAND_NONE;
    self->look_pause = FIRST_LOOK;
    int status = slurm_options_parse(&self->options, rest);
    if (status < 0)
        return status;
    self->threads = slurm_options_threads(&self->options, base->order->threads);
    status = base_format(&self->name, "shoal-%s", base->order->id);
    if (status == SHOAL_OK)
        status = find_program(&self->program, &self->options, base->order);
    if (status == SHOAL_OK)
        status = array_scale(base, self->options.workers + extra);
    return status < 0 ? status : advance_command(self);
}

static bool is_hopeful(const slot *slot)
{
    return slot->state != SLOT_ENDED && !slot->unwanted;
}

static int array_tick(launch_workers *base)
{
    array_launch *self = (array_launch *)base;
    int status = advance_command(self);
    if (status < 0 || self->wanted == 0 || count_slots(self, is_hopeful) > 0 || !self->reason[0])
        return status;
    return shoal_fail(SHOAL_INVALID, "%s%s", strncmp(self->reason, "slurm: ", 7) == 0 ? "" : "slurm: the last worker ",
                      self->reason);
}

static void array_progress(launch_workers *base)
{
    array_launch *self = (array_launch *)base;
    for (int64_t i = 0; i < self->room; i++)
        self->slots[i].spent = self->slots[i].deaths = 0;
}

static int64_t array_running(const launch_workers *base)
{
    return count_slots((const array_launch *)base, is_running);
}

static int64_t array_wanted(const launch_workers *base)
{
    return ((const array_launch *)base)->wanted;
}

static void array_tell_leave(launch_workers *base)
{
    array_launch *self = (array_launch *)base;
    self->closing = self->leaving = true;
    if (count_slots(self, is_slot_there) == 0 && self->doing != DOING_SUBMIT)
        self->cancelled = true;      /* there is nothing to cancel */
    if (self->doing == DOING_LOOK) { /* it can wait */
        slurm_command_release(&self->command, 0);
        self->doing = DOING_NOTHING;
    }
    advance_command(self);
}

static bool array_is_over(launch_workers *base)
{
    array_launch *self = (array_launch *)base;
    self->closing = true;
    if (self->look_pause > LAST_LOOKS)
        self->look_pause = LAST_LOOKS;
    advance_command(self);
    return self->doing != DOING_SUBMIT && self->doing != DOING_CANCEL && count_slots(self, is_slot_there) == 0;
}

/* Slurm itself kills what does not leave; it only has to be told. */
static void array_end(launch_workers *base)
{
    int64_t until = base_time_after(base_now(), END_SECONDS);
    while (!array_is_over(base) && base_now() < until)
        base_sleep_until(base_time_after(base_now(), 0.02));
}

static void array_free(launch_workers *base)
{
    array_launch *self = (array_launch *)base;
    if (self->doing == DOING_CANCEL) /* which must not be interrupted */
        slurm_command_release(&self->command, END_SECONDS);
    slurm_command_release(&self->command, 0);
    slurm_options_release(&self->options);
    base_free(&self->name);
    base_free(&self->program);
    base_free(&self->slots);
}

const struct launcher slurm_array = {
    .size = sizeof(array_launch),
    .start = array_start,
    .tick = array_tick,
    .progress = array_progress,
    .scale = array_scale,
    .running = array_running,
    .wanted = array_wanted,
    .tell_leave = array_tell_leave,
    .is_over = array_is_over,
    .end = array_end,
    .free = array_free,
};
