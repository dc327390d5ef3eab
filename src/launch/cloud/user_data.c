/* The script that a rented machine runs when it starts.  See user_data.h.
 *
 * Time is the uptime of /proc/uptime, which counts a machine's sleep and needs no clock that is right.  The guard is a
 * process of its own that reads it every second and ignores signals; where there is a shutdown(8) it is told too, a
 * minute later, so that even a machine whose guard was killed ends. */
#include "user_data.h"

#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "launch/slurm_script.h"

static const char script[] =
    "#!/bin/sh\n"
    "# shoal: cluster %s, reservation %s\n"
    "allowed=%lld\n"
    "off() {\n"
    "    sync\n"
    "    poweroff -f || shutdown -h now || halt -f -p || echo o >/proc/sysrq-trigger\n"
    "    sleep 5\n"
    "}\n"
    "guard() {\n"
    "    trap '' HUP INT TERM\n"
    "    echo -1000 >/proc/self/oom_score_adj\n"
    "    while read -r up rest </proc/uptime && [ \"${up%%.*}\" -lt \"$allowed\" ]; do\n"
    "        [ \"${up%%.*}\" -lt $((allowed - 2)) ] || touch /run/shoal-leave\n"
    "        sleep 1\n"
    "    done\n"
    "    while :; do off; done\n"
    "}\n"
    "rm -f /run/shoal-leave\n"
    "guard </dev/null >/dev/null 2>&1 &\n"
    "shutdown -P +$((allowed / 60 + 2)) >/dev/null 2>&1 &\n"
    "\n"
    "bundle=%s\n"
    "hash=%s\n"
    "here=/run/shoal-program\n"
    "mkdir -p \"$here\"\n"
    "fetch() {\n"
    "    case $bundle in\n"
    "    /*) cp \"$bundle\" \"$here/bundle\" ;;\n"
    "    *) curl -fsS --connect-timeout 5 --max-time 120 -o \"$here/bundle\" \"$bundle\" ;;\n"
    "    esac\n"
    "    echo \"$hash  $here/bundle\" | sha256sum -c >/dev/null\n"
    "}\n"
    "tries=0\n"
    "until fetch; do\n"
    "    tries=$((tries + 1))\n"
    "    [ $tries -lt 30 ] || off\n"
    "    sleep 2\n"
    "done\n"
    "tar -xzf \"$here/bundle\" -C \"$here\" && rm \"$here/bundle\" || off\n"
    "%s\n"
    "ulimit -c 0\n"
    "crashes=0\n"
    "while [ $crashes -lt 5 ]; do\n"
    "    \"$here/ld.so\" --library-path \"$here\" \"$here/shoal\" worker --store %s --idle %.17g --notice aws \\\n"
    "        --cache /var/tmp/shoal-cache &\n"
    "    worker=$!\n"
    "    (while kill -0 $worker 2>/dev/null; do [ ! -e /run/shoal-leave ] || kill $worker; sleep 1; done) &\n"
    "    wait $worker && break\n"
    "    crashes=$((crashes + 1))\n"
    "    sleep $crashes\n"
    "done\n"
    "while :; do off; done\n";

/* "export A='b'" for each. */
static int write_exports(char **out, const char *const *variables)
{
    int status = base_copy_text(out, "");
    for (; *variables && status == SHOAL_OK; variables++) {
        char *quoted = NULL, *longer = NULL;
        const char *value = strchr(*variables, '=');
        status = slurm_quote(&quoted, value + 1);
        if (status == SHOAL_OK)
            status = base_format(&longer, "%sexport %.*s=%s\n", *out, (int)(value - *variables), *variables, quoted);
        base_free(&quoted);
        if (status == SHOAL_OK) {
            base_free(out);
            *out = longer;
        }
    }
    return status;
}

int cloud_user_data(char **out, const cloud_boot *boot)
{
    char *bundle = NULL, *store = NULL, *exports = NULL;
    int status = slurm_quote(&bundle, boot->bundle);
    if (status == SHOAL_OK)
        status = slurm_quote(&store, boot->store);
    if (status == SHOAL_OK)
        status = write_exports(&exports, boot->variables);
    if (status == SHOAL_OK)
        status = base_format(out, script, boot->cluster, boot->reservation, (long long)boot->allowed, bundle,
                             boot->hash, exports, store, boot->idle);
    base_free(&bundle);
    base_free(&store);
    base_free(&exports);
    return status;
}
