/* The agent: runs on another machine, at the far end of a pipe, and starts that machine's workers.
 *
 * It says hello, describes the machine, and does what the notes ask of it (agent_note.h).  Its workers reach the store
 * through it.  When the link ends, for whatever reason, so do they, and so does it: nothing is left there but the
 * cache. */
#ifndef AGENT_H
#define AGENT_H

typedef struct agent_options {
    const char *nonce;  /* of the process that started it */
    const char *cache;  /* folder in which workers keep rows; NULL: none are kept */
    const char *kernel; /* the kernel set that this machine would choose */
    int in, out;        /* the link's descriptors, which the agent owns from then on */
} agent_options;

/* Serves until the link ends.  SHOAL_OK when the other end closed it. */
int agent_run(const agent_options *options);

#endif
