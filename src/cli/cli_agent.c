/* shoal agent: starts the workers of a machine that someone reached by ssh or srun.  People never call it; it is a verb
 * so that one program is all that has to be there.  The link is its standard input and output, which nothing else may
 * write to. */
#include "cli.h"

#include "run/hosts.h"

typedef struct settings {
    cli_common common;
    const char *nonce, *cache;
} settings;

static const shoal_option rows[] = {
    {"nonce", 0, SHOAL_OPTION_TEXT, offsetof(settings, nonce), "HEX",
     .help = "32 hexadecimal digits that identify it to the process that started it"},
    {"cache", 0, SHOAL_OPTION_TEXT, offsetof(settings, cache), "FOLDER",
     .help = "folder where its workers cache fetched rows, or 'none'", .default_text = "~/.cache/shoal"},
    {0},
};
static const shoal_option *const options = rows;

static const base_option_group groups[] = {
    {"For programs that start agents", &options, 0},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int run_agent_verb(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    (void)word;
    (void)words;
    return run_agent(settings->nonce, settings->cache);
}

static const char *const description[] = {
    "Serves the workers of one machine over its standard input and output. It is started there by --workers ssh:HOST "
    "or slurm:N, never by hand: it starts as many workers as it is asked for, connects them to the store through its "
    "two streams, and exits with them when the streams are closed.",
    "docs/workers.md explains the protocol and who trusts whom.",
    NULL,
};

static const learn_example examples[] = {
    {"shoal agent --nonce 00112233445566778899aabbccddeeff --cache ~/.cache/shoal",
     "as ssh runs it on the other machine"},
    {NULL, NULL},
};

const cli_verb cli_agent = {
    .name = "agent",
    .summary = "start workers on this machine, for ssh and Slurm",
    .synopsis = "--nonce HEX [--cache FOLDER]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_agent_verb,
};
