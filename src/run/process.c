/* Whose process this is.  See process.h. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <shoal/error.h>
#include <shoal/version.h>

#include "base/spawn.h"
#include "base/world.h"
#include "ranks.h"
#include "store/store_internal.h"

static const double VERSION_SECONDS = 10; /* for a program to say which version it is */
static bool is_shoal;

void run_process_is_shoal(void)
{
    is_shoal = true;
}

int run_check_program(const char *program)
{
    if (program || is_shoal)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "workers are processes of the program shoal: say where it is (shoal_request_program)");
}

/* Reads the first line that comes within the time, without its end; "" for none. */
static void read_line(char *out, size_t size, int input)
{
    int64_t until = base_time_after(base_now(), VERSION_SECONDS);
    size_t used = 0;
    for (double left; used + 1 < size && !memchr(out, '\n', used) && (left = base_seconds_until(until)) > 0;) {
        struct pollfd ready = {.fd = input, .events = POLLIN};
        int count = poll(&ready, 1, (int)(left * 1000) + 1);
        ssize_t got = count > 0 ? read(input, out + used, size - 1 - used) : 0;
        if (count > 0 && got <= 0 && !(got < 0 && errno == EINTR))
            break;
        used += got > 0 ? (size_t)got : 0;
    }
    out[used] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

int run_ask_program(const char *program)
{
    const char *words[] = {"shoal", "--version", NULL};
    char line[96], expected[64];
    pid_t process = 0;
    int ends[2];
    if (!program)
        return SHOAL_OK;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't make a pipe");
    int error = base_spawn(
        &process,
        &(base_spawning){.words = words, .program = program, .stream = {-1, ends[1], -1}, .group = BASE_GROUP_OWN});
    close(ends[1]);
    if (!error) {
        read_line(line, sizeof line, ends[0]);
        kill(-process, SIGKILL); /* whatever it is, it has answered or won't */
        base_wait(process, NULL);
    }
    close(ends[0]);
    if (error)
        return shoal_fail_errno(SHOAL_USAGE, error, "can't start %s, which should be the program shoal", program);
    snprintf(expected, sizeof expected, "shoal %s", shoal_version());
    if (strcmp(line, expected) == 0)
        return SHOAL_OK;
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    return shoal_fail(SHOAL_USAGE, "%s is not the program %s, which workers run: `%s --version` prints %s%s%s", program,
                      expected, program, *line ? "\"" : "", *line ? line : "nothing", *line ? "\"" : "");
}

/* A core dump would hold the keys this process was given, in its environment and in what it sends; and so would its
 * memory for any other program of this user that attaches to it.  So there is to be neither, from before the keys are
 * used. */
static void protect(const char *scheme)
{
    static const char *const given[] = {
        "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN",          "IDENTITY_HEADER",
        "AWS_SECRET_ACCESS_KEY",           "AWS_SESSION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN"};
    bool remote = strcmp(scheme, "dir") != 0 && strcmp(scheme, "mem") != 0; /* these also find keys in files */
    for (size_t i = 0; i < sizeof given / sizeof *given && !remote; i++)
        remote = getenv(given[i]) != NULL;
    if (remote && run_ranks()) /* MPI reads the memory of other ranks: only dumps can be kept away */
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    else if (remote)
        prctl(PR_SET_DUMPABLE, 0);
}

int run_protect_secrets(const char *text)
{
    store_url url;
    int status = store_url_parse(&url, text);
    if (status == SHOAL_OK) {
        if (is_shoal)
            protect(url.scheme);
        store_url_release(&url);
    }
    return status;
}
