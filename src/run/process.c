/* Whose process this is.  See process.h. */
#include "process.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <shoal/error.h>

#include "ranks.h"
#include "store/store_internal.h"

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
