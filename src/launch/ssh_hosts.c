/* Lists of hosts, and commands as words.  See ssh_hosts.h.
 *
 * A host becomes a word of ssh's own command line, so one that ssh would take for an option, or that a ProxyCommand
 * might hand to a shell, is refused here. */
#include "launch/ssh_hosts.h"

#include <stdbool.h>
#include <string.h>
#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"
#include "launch/launch.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* The text between two commas. */
typedef struct part {
    const char *text;
    int length;
} part;

static bool is_made_of(const char *text, size_t length, const char *more)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr(letters, text[i]) && !strchr(more, text[i]))
            return false;
    return length > 0;
}

static int fail_part(part part, const char *why)
{
    return shoal_fail(SHOAL_USAGE, "--workers ssh: '%.*s' %s; it should be HOST, USER@HOST or HOST:N", part.length,
                      part.text, why);
}

/* The workers after a host's colon; one when there is none. */
static int parse_workers(int64_t *out, part whole, const char *at)
{
    char number[24];
    size_t length = (size_t)(whole.text + whole.length - at);
    *out = 1;
    if (length == 0)
        return SHOAL_OK;
    if (at[0] != ':')
        return fail_part(whole, "has more after the ']'");
    if (length - 1 >= sizeof number)
        return fail_part(whole, "has no number of workers after its colon");
    memcpy(number, at + 1, length - 1);
    number[length - 1] = '\0';
    if (!base_parse_count(out, number) || *out < 1 || *out > LAUNCH_WORKERS_MOST)
        return shoal_fail(
            SHOAL_USAGE,
            "--workers ssh: '%.*s': '%s' should be a number of workers from 1 to %d; ports go into ssh's configuration",
            whole.length, whole.text, number, LAUNCH_WORKERS_MOST);
    return SHOAL_OK;
}

static int parse_host(ssh_host *out, part whole)
{
    const char *end = whole.text + whole.length, *host = whole.text, *host_end, *rest;
    const char *at = memrchr(whole.text, '@', (size_t)whole.length);
    size_t user = at ? (size_t)(at - whole.text) : 0;
    bool bracket;
    if (whole.length == 0)
        return shoal_fail(SHOAL_USAGE, "--workers ssh: a host is missing; it should be HOST[:N],HOST[:N],...");
    if (at && !is_made_of(whole.text, user, "._-+~=%@\\"))
        return fail_part(whole, "has a user name that can't be one");
    host = at ? at + 1 : host;
    bracket = host < end && *host == '[';
    if (bracket) {
        host++;
        host_end = memchr(host, ']', (size_t)(end - host));
        rest = host_end ? host_end + 1 : NULL;
    } else {
        host_end = memchr(host, ':', (size_t)(end - host));
        rest = host_end = host_end ? host_end : end;
    }
    if (!host_end)
        return fail_part(whole, "has no ']'");
    if (!bracket && rest < end && memchr(rest + 1, ':', (size_t)(end - rest - 1)))
        return fail_part(whole, "has several colons: an IPv6 address goes into brackets, as [::1]:2");
    size_t length = (size_t)(host_end - host);
    if (!is_made_of(host, length, bracket ? "._-%:" : "._-%+~=") || whole.text[0] == '-' || *host == '-')
        return fail_part(whole, "is not a host");
    if (user + 1 + length >= sizeof out->target)
        return fail_part(whole, "is too long for a host");
    if (at)
        memcpy(out->target, whole.text, user + 1);
    memcpy(out->target + (at ? user + 1 : 0), host, length);
    return parse_workers(&out->workers, whole, rest);
}

int ssh_hosts_parse(ssh_host **out, int *count, const char *text)
{
    ssh_host *hosts = NULL;
    int parts = 1, status;
    for (const char *c = text; *c; c++)
        parts += *c == ',';
    *out = NULL;
    *count = 0;
    if (parts > SSH_HOSTS_MOST)
        return shoal_fail(SHOAL_USAGE, "--workers ssh: %d hosts are more than the %d there can be", parts,
                          SSH_HOSTS_MOST);
    status = base_alloc(&hosts, (size_t)parts, sizeof *hosts, "the hosts");
    for (int i = 0; i < parts && status == SHOAL_OK; i++) {
        size_t length = strcspn(text, ",");
        status = parse_host(&hosts[i], (part){text, (int)length});
        for (int j = 0; j < i && status == SHOAL_OK; j++)
            if (strcmp(hosts[i].target, hosts[j].target) == 0)
                status =
                    shoal_fail(SHOAL_USAGE, "--workers ssh: %s is there twice; use %s:%lld for that many workers there",
                               hosts[i].target, hosts[i].target, (long long)(hosts[i].workers + hosts[j].workers));
        text += length + (text[length] == ',');
    }
    if (status < 0) {
        base_free(&hosts);
        return status;
    }
    *out = hosts;
    *count = parts;
    return SHOAL_OK;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Copies one word from *from to *to without its quotes; false if a quote has no end. */
static bool take_word(const char **from, char **to)
{
    char quote = 0;
    const char *c = *from;
    char *at = *to;
    for (; *c && (quote || !strchr(" \t\n", *c)); c++) {
        if (!quote && (*c == '\'' || *c == '"'))
            quote = *c;
        else if (quote && *c == quote)
            quote = 0;
        else if (*c == '\\' && quote != '\'' && c[1] && (!quote || strchr("\"\\$`", c[1])))
            *at++ = *++c;
        else
            *at++ = *c;
    }
    *at++ = '\0';
    *from = c;
    *to = at;
    return quote == 0;
}

int ssh_words_split(ssh_words *out, const char *command)
{
    *out = (ssh_words){0};
    int status = base_alloc(&out->text, 1, 2 * strlen(command) + 2, "the command of ssh");
    char *to = out->text;
    while (status == SHOAL_OK) {
        command += strspn(command, " \t\n");
        if (!*command)
            break;
        if (out->count == SSH_WORDS_MOST) {
            status = shoal_fail(SHOAL_USAGE, "--ssh: more than %d words", SSH_WORDS_MOST);
            break;
        }
        out->word[out->count++] = to;
        if (!take_word(&command, &to))
            status = shoal_fail(SHOAL_USAGE, "--ssh: '%s': a quote has no end", out->word[out->count - 1]);
    }
    if (status == SHOAL_OK && out->count == 0)
        status = shoal_fail(SHOAL_USAGE, "--ssh: the command is empty; it should be like ssh -F FILE");
    if (status < 0)
        ssh_words_release(out);
    return status;
}

void ssh_words_release(ssh_words *words)
{
    base_free(&words->text);
    words->count = 0;
}
