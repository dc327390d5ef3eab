/* shoal agent: starts the workers of a machine that someone reached by ssh or srun.  People never call it; it is a verb
 * so that one program is all that has to be there.  The link is its standard input and output, which nothing else may
 * write to. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "kernel/kernel.h"
#include "launch/agent.h"

typedef struct settings {
    cli_common common;
    const char *nonce, *cache;
} settings;

static const shoal_option rows[] = {
    {"nonce", 0, SHOAL_OPTION_TEXT, offsetof(settings, nonce), "HEX",
     .help = "32 hexadecimal digits by which whoever started it knows it again"},
    {"cache", 0, SHOAL_OPTION_TEXT, offsetof(settings, cache), "FOLDER",
     .help = "where its workers keep rows that they fetched; ~/.cache/shoal when left out, 'none' for nowhere"},
    {0},
};
static const shoal_option *const options = rows;

static const base_option_group groups[] = {
    {"For programs that start agents", &options, 0},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* Moves a standard stream to a descriptor of its own, and puts nothing in its place. */
static int take_stream(int *out, int descriptor)
{
    *out = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (*out < 0 || nothing < 0 || dup2(nothing, descriptor) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "the agent's standard streams");
    close(nothing);
    return SHOAL_OK;
}

static int run_agent(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const kernel_set *set = NULL;
    agent_options agent = {.nonce = settings->nonce, .cache = settings->cache, .in = -1, .out = -1};
    (void)word;
    (void)words;
    if (!settings->nonce || strlen(settings->nonce) != 32 || strspn(settings->nonce, "0123456789abcdef") != 32)
        return shoal_fail(
            SHOAL_USAGE,
            "--nonce should be 32 hexadecimal digits; agents are started by --workers ssh:HOST, not by hand");
    int status = kernel_choose(&set, "auto");
    if (status == SHOAL_OK)
        status = take_stream(&agent.in, STDIN_FILENO);
    if (status == SHOAL_OK)
        status = take_stream(&agent.out, STDOUT_FILENO);
    if (status < 0)
        return status;
    agent.kernel = set->name;
    return agent_run(&agent);
}

static const char *const description[] = {
    "Serves the workers of one machine over its standard input and output. It is started there by --workers ssh:HOST "
    "or slurm:N, never by hand: it starts as many workers as it is told to, lets them reach the store through its two "
    "streams, and ends with them when these are closed.",
    "docs/workers.md explains what goes over the streams and what is trusted.",
    NULL,
};

static const learn_example examples[] = {
    {"shoal agent --nonce 00112233445566778899aabbccddeeff --cache ~/.cache/shoal",
     "as ssh runs it on the other machine"},
    {NULL, NULL},
};

const cli_verb cli_agent = {
    .name = "agent",
    .summary = "start the workers of a machine for whoever reached it",
    .synopsis = "--nonce HEX [--cache FOLDER]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_agent,
};
