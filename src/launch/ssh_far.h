/* Hosts reached by the system's ssh, for launch_ssh.c and for who only looks at them. */
#ifndef SSH_FAR_H
#define SSH_FAR_H

#include "launch/far_host.h"
#include "launch/ssh_hosts.h"

/* The command that reaches hosts: `asked` (may be NULL), $SHOAL_SSH, or ssh. */
const char *ssh_command(const char *asked);
/* A host behind that command; name, words and judge of the options are filled in here. */
int ssh_far_host(far_host **out, const ssh_words *command, const char *target, const far_options *options);

#endif
