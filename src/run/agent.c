/* Being the agent of a machine.  See hosts.h. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/hex.h"
#include "hosts.h"
#include "kernel/kernel.h"
#include "launch/agent.h"

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

int run_agent(const char *nonce, const char *cache)
{
    const kernel_set *set = NULL;
    agent_options agent = {.nonce = nonce, .cache = cache, .in = -1, .out = -1};
    if (!nonce || !base_hex_is(nonce, 32))
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
