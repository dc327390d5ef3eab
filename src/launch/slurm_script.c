/* Composing the script of an array job.  See slurm_script.h.
 *
 * It holds no secrets: credentials come through the environment, which Slurm passes on.  The last line of a failing
 * worker becomes the comment of its task, which squeue shows: so it reaches the job's follower without a shared
 * disk. */
#include "launch/slurm_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/bytes.h"
#include "base/memory.h"

int slurm_quote(char **out, const char *text)
{
    base_writer writer = {0};
    void *bytes = NULL;
    size_t size = 0;
    base_write_bytes(&writer, "'", 1);
    for (; *text; text++)
        base_write_bytes(&writer, *text == '\'' ? "'\\''" : text, *text == '\'' ? 4 : 1);
    base_write_bytes(&writer, "'", 2); /* with the end of the text */
    int status = base_writer_take(&writer, &bytes, &size);
    *out = bytes;
    return status;
}

uint64_t slurm_script_worker(const char *prefix, int64_t task, int64_t restarts)
{
    char text[24];
    snprintf(text, sizeof text, "%.10s%04llx%02llx", prefix, (unsigned long long)task & 0xffff,
             (unsigned long long)restarts & 0xff);
    return strtoull(text, NULL, 16);
}

/* The words of one worker; the script adds its number. */
static int compose_words(char **out, const slurm_script *self, int64_t slot)
{
    launch_arguments arguments;
    int status = SHOAL_OK;
    *out = NULL;
    launch_arguments_of(&arguments, self->order,
                        &(launch_worker){.id = 1,
                                         .slot = self->first_slot + slot,
                                         .threads = self->threads,
                                         .memory = self->order->memory, /* it finds by itself what Slurm gives it */
                                         .store_url = self->order->store_url});
    for (int i = 0; i < arguments.count && status == SHOAL_OK; i++) {
        char *quoted = NULL, *longer = NULL;
        bool is_id = i > 0 && strcmp(arguments.argument[i - 1], "--id") == 0;
        status = is_id ? base_copy_text(&quoted, "\"$id\"") : slurm_quote(&quoted, arguments.argument[i]);
        if (status == SHOAL_OK)
            status = base_format(&longer, "%s%s%s", *out ? *out : "", *out ? " " : "", quoted);
        base_free(&quoted);
        base_free(out);
        *out = longer;
    }
    return status;
}

/* One branch for each run of slots with the same arguments: roles differ. */
static int compose_branches(char **out, const slurm_script *self, int64_t last)
{
    char *words = NULL, *next = NULL, *longer = NULL;
    int status = base_copy_text(out, "");
    if (status == SHOAL_OK)
        status = compose_words(&words, self, 0);
    for (int64_t slot = 0; slot <= last && status == SHOAL_OK; slot++) {
        status = slot < last ? compose_words(&next, self, slot + 1) : SHOAL_OK;
        if (status == SHOAL_OK && (!next || strcmp(words, next) != 0)) {
            status =
                base_format(&longer, "%sif [ \"$slot\" -le %lld ]; then set -- %s\nel", *out, (long long)slot, words);
            base_free(out);
            *out = longer;
        }
        base_free(&words);
        words = next;
        next = NULL;
    }
    base_free(&words);
    return status;
}

static const char frame[] =
    "#!/bin/sh\n"
    "# Workers of shoal's job %s.\n"
    "slot=$SLURM_ARRAY_TASK_ID\n"
    "program=%s\n"
    "id=$(printf '%%s%%04x%%02x' %s \"$slot\" \"$((${SLURM_RESTART_COUNT:-0} %% 256))\")\n"
    "tell() {\n" /* the first 250 characters that are letters a terminal shows */
    "    scontrol update \"JobId=$SLURM_JOB_ID\" \"Comment=$(printf %%s \"$1\" | tr -cd ' -~' | cut -c 1-250)\" "
    ">/dev/null 2>&1\n"
    "}\n"
    "%sse\n"
    "    exit 1\n"
    "fi\n"
    "if ! [ -x \"$program\" ]; then\n"
    "    tell \"there is no $program on $(uname -n); slurm:N?program=PATH says where it is on the nodes\"\n"
    "    exit 1\n"
    "fi\n"
    "said=$(mktemp) || said=/dev/null\n"
    "\"$program\" \"$@\" </dev/null >/dev/null 2>\"$said\" &\n"
    "worker=$!\n"
    "trap 'kill -TERM \"$worker\" 2>/dev/null' TERM\n"
    "while wait \"$worker\"; code=$?; kill -0 \"$worker\" 2>/dev/null; do :; done\n" /* a signal ends the wait too */
    "[ \"$code\" -eq 0 ] || tell \"$(tail -n 1 \"$said\")\"\n"
    "[ \"$said\" = /dev/null ] || rm -f \"$said\"\n"
    "exit \"$code\"\n";

int slurm_script_compose(char **out, const slurm_script *self, int64_t last)
{
    char *program = NULL, *branches = NULL;
    *out = NULL;
    int status = slurm_quote(&program, self->program);
    if (status == SHOAL_OK)
        status = compose_branches(&branches, self, last);
    if (status == SHOAL_OK)
        status = base_format(out, frame, self->order->id, program, self->prefix, branches);
    base_free(&program);
    base_free(&branches);
    return status;
}
