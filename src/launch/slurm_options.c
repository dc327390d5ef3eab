/* Reading slurm:N?OPTION=VALUE&...  See slurm_options.h.
 *
 * Options become arguments of sbatch and salloc.  Only those of a fixed list do: others could change what a job runs,
 * where it writes, or how many tasks it has. */
#include "launch/slurm_options.h"

#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/option.h"
#include "launch/launch_internal.h"

enum { VALUE_MOST = 1024, CPUS_MOST = 4096 };

static const char *const passed[] = {"partition", "time",    "account",  "qos",        "constraint",
                                     "mem",       "exclude", "nodelist", "reservation"};
enum { PASSED = sizeof passed / sizeof *passed };

/* A value, in which %26 stands for '&' as in any address. */
static int decode_value(char *out, const char *name, const char *text, size_t length)
{
    size_t size = 0;
    for (size_t i = 0; i < length; i++) {
        int byte = text[i] == '%' && i + 2 < length ? base_hex_byte(text + i + 1) : -1;
        char letter = byte >= 0 ? (char)byte : text[i];
        i += byte >= 0 ? 2 : 0;
        if ((unsigned char)letter < ' ' || letter == 0x7f || size + 1 >= VALUE_MOST)
            return shoal_fail(SHOAL_USAGE,
                              "--workers slurm: the value of %s is too long or has characters it can't have", name);
        out[size++] = letter;
    }
    out[size] = '\0';
    if (size == 0)
        return shoal_fail(SHOAL_USAGE, "--workers slurm: %s has no value", name);
    return SHOAL_OK;
}

static int fail_unknown(const char *name)
{
    return shoal_fail(
        SHOAL_USAGE,
        "--workers slurm: unknown option '%s'; there are partition, time, account, qos, constraint, cpus, mem, "
        "exclude, nodelist, reservation and program",
        name);
}

static int take_option(slurm_options *out, const char *name, const char *value)
{
    if (strcmp(name, "cpus") == 0) {
        if (!base_parse_count(&out->cpus, value) || out->cpus < 1 || out->cpus > CPUS_MOST)
            return shoal_fail(SHOAL_USAGE, "--workers slurm: cpus=%s should be a number from 1 to %d", value,
                              CPUS_MOST);
        return SHOAL_OK;
    }
    if (strcmp(name, "program") == 0) {
        if (value[0] != '/')
            return shoal_fail(SHOAL_USAGE, "--workers slurm: program=%s should be an absolute path", value);
        base_free(&out->program);
        return base_copy_text(&out->program, value);
    }
    for (int i = 0; i < PASSED; i++)
        if (strcmp(name, passed[i]) == 0) {
            if (out->count == SLURM_OPTIONS_MOST)
                return shoal_fail(SHOAL_USAGE, "--workers slurm: more than %d options", SLURM_OPTIONS_MOST);
            int status = base_format(&out->argument[out->count], "--%s=%s", name, value);
            out->count += status == SHOAL_OK;
            return status;
        }
    return fail_unknown(name);
}

static int take_pair(slurm_options *out, const char *text, size_t length)
{
    char name[32], value[VALUE_MOST];
    const char *equals = memchr(text, '=', length);
    size_t name_length = equals ? (size_t)(equals - text) : length;
    if (name_length >= sizeof name)
        name_length = sizeof name - 1;
    memcpy(name, text, name_length);
    name[name_length] = '\0';
    if (!equals)
        return shoal_fail(SHOAL_USAGE, "--workers slurm: '%s' should be OPTION=VALUE", name);
    int status = decode_value(value, name, equals + 1, length - (size_t)(equals + 1 - text));
    return status < 0 ? status : take_option(out, name, value);
}

int slurm_options_parse(slurm_options *out, const char *rest)
{
    char count[24];
    size_t length = strcspn(rest, "?");
    int status = SHOAL_OK;
    *out = (slurm_options){0};
    snprintf(count, sizeof count, "%.*s", (int)(length < sizeof count ? length : sizeof count - 1), rest);
    if (!base_parse_count(&out->workers, count) || out->workers < 1 || out->workers > LAUNCH_WORKERS_MOST)
        return shoal_fail(SHOAL_USAGE, "--workers: 'slurm:%s' should be slurm:N[?OPTION=VALUE&...] with N from 1 to %d",
                          rest, LAUNCH_WORKERS_MOST);
    for (const char *at = rest + length; *at && status == SHOAL_OK; at += length) {
        at++;
        length = strcspn(at, "&");
        status = take_pair(out, at, length);
    }
    if (status < 0)
        slurm_options_release(out);
    return status;
}

void slurm_options_release(slurm_options *self)
{
    base_free(&self->program);
    for (int i = 0; i < self->count; i++)
        base_free(&self->argument[i]);
    *self = (slurm_options){0};
}

int64_t slurm_options_threads(const slurm_options *self, int64_t wanted)
{
    return wanted > 0 ? wanted : self->cpus > 0 ? self->cpus : 1;
}
