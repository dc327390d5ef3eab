/* Fuzzes the readers of --workers ssh: and --ssh: whatever comes is refused with a sentence or gives hosts that ssh
 * can't take for options, and words one after another. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "launch/launch.h"
#include "launch/ssh_hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_hosts(const char *text)
{
    ssh_host *hosts = NULL;
    int count = 0, status = ssh_hosts_parse(&hosts, &count, text);
    if (status < 0 && (status != SHOAL_USAGE || hosts || count != 0 || !*shoal_error()))
        abort();
    for (int i = 0; i < count; i++) {
        const char *at = strrchr(hosts[i].target, '@'), *host = at ? at + 1 : hosts[i].target;
        if (!*host || *host == '-' || hosts[i].target[0] == '-' || strpbrk(hosts[i].target, " \t\n'\"`$;&|<>(){}*?!/"))
            abort();
        if (hosts[i].workers < 1 || hosts[i].workers > LAUNCH_WORKERS_MOST)
            abort();
    }
    base_free(&hosts);
}

static void check_words(const char *text)
{
    ssh_words words;
    int status = ssh_words_split(&words, text);
    if (status < 0 && (status != SHOAL_USAGE || words.text || !*shoal_error()))
        abort();
    if (status == SHOAL_OK && (words.count < 1 || words.count > SSH_WORDS_MOST || words.word[words.count]))
        abort();
    for (int i = 1; status == SHOAL_OK && i < words.count; i++)
        if (words.word[i] != words.word[i - 1] + strlen(words.word[i - 1]) + 1)
            abort();
    ssh_words_release(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = NULL;
    if (base_copy_text_n(&text, (const char *)bytes, size) < 0)
        return 0;
    shoal_fail(SHOAL_OK, "%s", "");
    check_hosts(text);
    check_words(text);
    base_free(&text);
    return 0;
}
