/* Workers behind ssh: ssh:corn10,me@corn11:8.  One connection per host, over which its workers reach the store.
 *
 * It is the system's own ssh, with the user's configuration, keys, agent and jump hosts.  Options added here come after
 * the user's: ssh takes the first value it finds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/pool.h"
#include "launch/far_host.h"
#include "launch/ssh_far.h"
#include "launch/ssh_hosts.h"

enum {
    AT_ONCE = 8,        /* connections on their way: sshd drops some when ten have not authenticated (MaxStartups) */
    NAMED_FAILURES = 3, /* that are told in full when all hosts failed */
    SSH_FAILED = 255,   /* exit code of ssh itself, rather than of the far shell */
};

typedef struct ssh_launch {
    launch_workers base;
    int count;
    ssh_host *hosts;
    far_host **far;
    bool *said; /* that the job continues without it */
    int64_t wanted;
    far_gate *gate;
} ssh_launch;

/* ---- what ssh means ---------------------------------------------------------------------------------------------- */

/* ssh's messages when it gives up, what they mean to people, and whether another try may help. */
static const struct {
    const char *text, *meaning;
    far_verdict verdict;
    bool usage_follows; /* followed by many lines, of which the last says nothing */
} sayings[] = {
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key differs from the known one", FAR_LASTING, false},
    {"Host key verification failed", "its host key is unknown; connect once by hand to accept it", FAR_LASTING, false},
    {"Permission denied",
     "it asks for a password or refuses the key; ssh-copy-id or ssh-agent let ssh in without asking", FAR_LASTING,
     false},
    {"Too many authentication failures", "none of the keys is accepted", FAR_LASTING, false},
    {"Name or service not known", "there is no such host", FAR_LASTING, false},
    {"No address associated with hostname", "there is no such host", FAR_LASTING, false},
    {"Bad configuration option", "ssh's configuration is wrong", FAR_LASTING, false},
    {"Can't open user config file", "ssh's configuration can't be read", FAR_LASTING, false},
    {"command-line line 0", "ssh does not know an option", FAR_LASTING, true},
    {"unknown option", "ssh does not know an option", FAR_LASTING, true},
    {"illegal option", "ssh does not know an option", FAR_LASTING, true},
};

/* The line that `at`, a place in what ssh said, is on. */
static void copy_line(char *out, size_t size, const char *said, const char *at)
{
    while (at > said && at[-1] != '\n')
        at--;
    size_t length = strcspn(at, "\n");
    while (length > 0 && at[length - 1] == ' ') /* what was a carriage return */
        length--;
    snprintf(out, size, "%.*s", (int)length, at);
}

/* Puts ssh's own words after their meaning. */
static far_verdict judge_ssh(char *reason, size_t size, const char *said, int exit_code)
{
    char was[512];
    if (exit_code >= 0 && exit_code != SSH_FAILED && exit_code != 0 &&
        exit_code < 128) /* ssh is fine, the far shell is not */
        return exit_code == 126 || exit_code == 127 ? FAR_LASTING : FAR_PASSING;
    for (size_t i = 0; i < sizeof sayings / sizeof *sayings; i++) {
        const char *at = strstr(said, sayings[i].text);
        if (at) {
            if (sayings[i].usage_follows)
                copy_line(was, sizeof was, said, at);
            else
                snprintf(was, sizeof was, "%.500s", reason);
            snprintf(reason, size, "%s (%s)", sayings[i].meaning, was);
            return sayings[i].verdict;
        }
    }
    return FAR_PASSING;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

const char *ssh_command(const char *asked)
{
    const char *named = getenv("SHOAL_SSH");
    return asked && *asked ? asked : named && *named ? named : "ssh";
}

/* A shared connection that has gone silent would make the next try fail too, so later tries make their own. */
static const char *const added[] = {"-T",
                                    "-x",
                                    "-a",
                                    "-o",
                                    "BatchMode=yes", /* fails rather than asks */
                                    "-o",
                                    "ConnectTimeout=10",
                                    "-o",
                                    "ServerAliveInterval=3", /* the link has its own; this ends ssh, too */
                                    "-o",
                                    "ServerAliveCountMax=4",
                                    "-o",
                                    "ClearAllForwardings=yes",
                                    "-o",
                                    "PermitLocalCommand=no",
                                    "-o",
                                    "RemoteCommand=none"};
enum { ADDED = sizeof added / sizeof *added };

static void compose_ssh(const char **out, const ssh_words *own, const char *target, bool again)
{
    int count = 0;
    for (int i = 0; i < own->count; i++)
        out[count++] = own->word[i];
    for (int i = 0; i < ADDED; i++)
        out[count++] = added[i];
    if (again) {
        out[count++] = "-o";
        out[count++] = "ControlPath=none";
    }
    out[count++] = target;
    out[count] = NULL;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static int ssh_ask(launch_ask *out, const char *rest, const char *store_scheme, int64_t threads)
{
    ssh_host *hosts = NULL;
    int count = 0;
    (void)store_scheme;
    int status = ssh_hosts_parse(&hosts, &count, rest);
    for (int i = 0; i < count; i++) {
        out->workers += hosts[i].workers;
        out->slots += hosts[i].workers * launch_threads_each(threads, base_cores(), hosts[i].workers);
    }
    out->local = false;
    out->far = true;
    out->through = "ssh";
    base_free(&hosts);
    return status;
}

int ssh_far_host(far_host **out, const ssh_words *own, const char *target, const far_options *options)
{
    const char *words[SSH_WORDS_MOST + ADDED + 4], *again[SSH_WORDS_MOST + ADDED + 4];
    far_options all = *options;
    compose_ssh(words, own, target, false);
    compose_ssh(again, own, target, true);
    all.name = target;
    all.words = words;
    all.words_again = again;
    all.judge = judge_ssh;
    return far_host_new(out, &all);
}

static int start_host(ssh_launch *self, int index, const ssh_words *own, int64_t first_slot, int64_t workers)
{
    return ssh_far_host(
        &self->far[index], own, self->hosts[index].target,
        &(far_options){.order = self->base.order, .count = workers, .first_slot = first_slot, .gate = self->gate});
}

static int ssh_scale(launch_workers *base, int64_t count);

static int ssh_start(launch_workers *base, const char *rest, int64_t extra)
{
    ssh_launch *self = (ssh_launch *)base;
    ssh_words own = {0};
    int count = 0;
    int64_t slot = base->first_slot;
    int status = ssh_hosts_parse(&self->hosts, &count, rest);
    if (status == SHOAL_OK)
        status = ssh_words_split(&own, ssh_command(base->order->ssh));
    if (status == SHOAL_OK)
        status = base_alloc(&self->far, (size_t)count, sizeof *self->far, "the hosts");
    if (status == SHOAL_OK)
        status = base_alloc(&self->said, (size_t)count, sizeof *self->said, "the hosts");
    if (status == SHOAL_OK)
        status = far_gate_new(&self->gate, AT_ONCE);
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        int64_t workers = self->hosts[i].workers + (i == 0 ? extra : 0);
        status = start_host(self, i, &own, slot, workers);
        slot += workers;
        self->count += status == SHOAL_OK;
    }
    self->wanted = slot - base->first_slot;
    if (status == SHOAL_OK && base->begin >= 0) /* before any agent has been reached */
        status = ssh_scale(base, base->begin + extra);
    ssh_words_release(&own);
    return status;
}

/* ---- while they run ---------------------------------------------------------------------------------------------- */

static void say_without(ssh_launch *self, int index, const char *reason)
{
    char line[1200];
    if (self->said[index] || !self->base.order->say)
        return;
    self->said[index] = true;
    snprintf(line, sizeof line, "%.1100s; the job continues without it", reason);
    self->base.order->say(self->base.order->context, line);
}

/* The reasons of the first few, when there is nobody else. */
static int fail_all(ssh_launch *self)
{
    char text[2048];
    size_t length = 0;
    for (int i = 0; i < self->count && i < NAMED_FAILURES; i++) {
        if (far_host_tick(self->far[i]) < 0)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%.600s", i ? "; " : "", shoal_error());
    }
    if (self->count > NAMED_FAILURES)
        snprintf(text + length, sizeof text - length, "; and %d more", self->count - NAMED_FAILURES);
    return shoal_fail(SHOAL_INVALID, "%s", text);
}

static int ssh_tick(launch_workers *base)
{
    ssh_launch *self = (ssh_launch *)base;
    int failed = 0;
    for (int i = 0; i < self->count; i++)
        failed += far_host_tick(self->far[i]) < 0;
    if (failed > 0 && failed == self->count)
        return fail_all(self);
    for (int i = 0; i < self->count && failed > 0; i++) {
        if (far_host_tick(self->far[i]) < 0)
            say_without(self, i, shoal_error());
        else
            self->said[i] = false;
    }
    return SHOAL_OK;
}

static void ssh_progress(launch_workers *base)
{
    ssh_launch *self = (ssh_launch *)base;
    for (int i = 0; i < self->count; i++)
        far_host_progress(self->far[i]);
}

/* How many of `count` workers are on the first `hosts` hosts, in proportion to what they were first asked for. */
static int64_t share_up_to(const ssh_launch *self, int hosts, int64_t count)
{
    int64_t before = 0, all = 0;
    for (int i = 0; i < self->count; i++) {
        all += self->hosts[i].workers;
        before += i < hosts ? self->hosts[i].workers : 0;
    }
    return all > 0 ? (int64_t)((double)count * (double)before / (double)all + 0.5) : 0;
}

static int ssh_scale(launch_workers *base, int64_t count)
{
    ssh_launch *self = (ssh_launch *)base;
    for (int i = 0; i < self->count; i++)
        far_host_scale(self->far[i], share_up_to(self, i + 1, count) - share_up_to(self, i, count));
    self->wanted = count;
    return SHOAL_OK;
}

static int64_t ssh_running(const launch_workers *base)
{
    const ssh_launch *self = (const ssh_launch *)base;
    int64_t running = 0;
    for (int i = 0; i < self->count; i++)
        running += far_host_running(self->far[i]);
    return running;
}

static int64_t ssh_wanted(const launch_workers *base)
{
    return ((const ssh_launch *)base)->wanted;
}

/* ---- their end --------------------------------------------------------------------------------------------------- */

static void ssh_tell_leave(launch_workers *base)
{
    ssh_launch *self = (ssh_launch *)base;
    for (int i = 0; i < self->count; i++)
        far_host_tell_leave(self->far[i]);
}

static bool ssh_is_over(launch_workers *base)
{
    ssh_launch *self = (ssh_launch *)base;
    bool over = true;
    for (int i = 0; i < self->count; i++)
        over = far_host_is_over(self->far[i]) && over;
    return over;
}

/* Workers that did not leave end with their agent, which ends with the link. */
static void ssh_end(launch_workers *base)
{
    ssh_launch *self = (ssh_launch *)base;
    for (int i = 0; i < self->count; i++)
        far_host_stop(self->far[i]);
}

static void ssh_free(launch_workers *base)
{
    ssh_launch *self = (ssh_launch *)base;
    ssh_end(base);
    for (int i = 0; i < self->count; i++)
        far_host_free(&self->far[i]);
    far_gate_free(&self->gate);
    base_free(&self->far);
    base_free(&self->said);
    base_free(&self->hosts);
}

const struct launcher launch_ssh = {
    .scheme = "ssh",
    .form = "ssh:HOST[:N],...",
    .size = sizeof(ssh_launch),
    .patience = 60,
    .ask = ssh_ask,
    .start = ssh_start,
    .tick = ssh_tick,
    .progress = ssh_progress,
    .scale = ssh_scale,
    .running = ssh_running,
    .wanted = ssh_wanted,
    .tell_leave = ssh_tell_leave,
    .is_over = ssh_is_over,
    .end = ssh_end,
    .free = ssh_free,
};
