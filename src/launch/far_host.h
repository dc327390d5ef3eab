/* One machine that is reached by a command: "ssh corn10", or "srun --nodes=1 sh -c".  Launchers that go elsewhere are
 * lists of these.
 *
 *     const char *const words[] = {"srun", "--nodes=1", "sh", "-c", NULL}; // and a word for a shell there
 *     far_host *host = NULL;
 *     int status = far_host_new(&host, &(far_options){.order = order, .name = "node7", .words = words, .count = 4});
 *     while (status == SHOAL_OK && there is more to do)
 *         status = far_host_tick(host);
 *     far_host_free(&host);
 *
 * Its own thread runs the command, whose standard input and output carry everything: first a small script looks at the
 * machine and takes this program if it is not there yet (far_start.h), then it becomes the agent (agent.h), which
 * starts the workers, and the store is served to them over the same streams (store/pipe/pipe.h).  When the link breaks,
 * the workers are reported as gone and the command is run again, after growing pauses.  The thread's reports are passed
 * on by far_host_tick and far_host_is_over, in the caller's thread.  Every other function may be called at any time and
 * returns at once, except far_host_free, which ends the command and waits for its end. */
#ifndef FAR_HOST_H
#define FAR_HOST_H

#include "launch/launch_internal.h"
#include "store/pipe/pipe.h"

/* How many commands may be on their way to a shell at once, over all hosts that share it: a machine in between that all
 * go through (a jump host) takes few connections that have not authenticated. */
typedef struct far_gate far_gate;
int far_gate_new(far_gate **out, int most);
void far_gate_free(far_gate **gate);

/* What a failure of the command means, judged by its exit code and its last words. */
typedef enum far_verdict {
    FAR_PASSING, /* worth another try */
    FAR_LASTING, /* not: a key that is refused, a machine of another kind */
} far_verdict;

typedef struct far_options {
    const launch_order *order;      /* lasts longer than the host; its `gone` and `say` are called */
    const char *name;               /* its name in messages; copied */
    const char *const *words;       /* the command, ended by NULL; copied */
    const char *const *words_again; /* the same for all tries but the first; NULL: as the first */
    int64_t count, first_slot;      /* workers there, and the number of the first within the group */
    double patience;                /* seconds until a shell answers; 0: 30 */
    int tries;      /* that fail in a row before it gives up; 0: 3, and any number once it was reached */
    far_gate *gate; /* NULL: none */
    /* Turns the command's last output into a reason; *reason has what will be shown if this does nothing.
     * May be NULL. */
    far_verdict (*judge)(char *reason, size_t size, const char *said, int exit_code);
} far_options;

typedef struct far_host far_host;

int far_host_new(far_host **out, const far_options *options);
/* Tells what has happened by order->gone and order->say.  Fails while workers can't be expected to run there:
 * with the reason, which names the host. */
int far_host_tick(far_host *host);
void far_host_progress(far_host *host);
void far_host_scale(far_host *host, int64_t count);
int64_t far_host_running(const far_host *host);
int64_t far_host_wanted(const far_host *host);
void far_host_tell_leave(far_host *host);
/* Whether no worker runs there and none will be started any more; reports, as tick does. */
bool far_host_is_over(far_host *host);
/* Begins what far_host_free ends, so that several hosts end at the same time. */
void far_host_stop(far_host *host);
void far_host_free(far_host **host);

/* ---- looking at a host (shoal check) ----------------------------------------------------------------------------- */

/* What is known of a machine; texts are "" and numbers 0 before it has answered. */
typedef struct far_facts {
    bool reached, probed; /* it has told what follows; what comes last */
    char host[64], version[24], kernel[16], gpu[256], system[64], folder[256];
    int64_t cores, memory;
    bool cached;               /* the program was there before */
    double round_trip;         /* seconds, of a request of the store */
    double to_host, from_host; /* bytes per second, of a blob */
    char why[256];             /* these could not be measured */
} far_facts;

/* The name of this machine's GPU, and how many there are of it; "" for none. */
void far_find_gpu(char *out, size_t size);

void far_host_facts(const far_host *host, far_facts *out);
/* Asks the agent to fetch the blob `key` of the job's store and to put one of the same size; far_facts.probed says when
 * it has. */
void far_host_probe(far_host *host, const char *key);

#endif
