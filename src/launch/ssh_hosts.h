/* The text after "ssh:", corn10,me@corn11:8,[::1]:2, as hosts; and the command that reaches them, as words. */
#ifndef SSH_HOSTS_H
#define SSH_HOSTS_H

#include <stdint.h>

enum { SSH_TARGET_BYTES = 256, SSH_HOSTS_MOST = 1024, SSH_WORDS_MOST = 64 };

typedef struct ssh_host {
    char target[SSH_TARGET_BYTES]; /* as ssh wants it: "me@corn11", "::1" */
    int64_t workers;
} ssh_host;

/* SHOAL_USAGE with a sentence for what is not a list of hosts.  The caller frees *out with base_free. */
int ssh_hosts_parse(ssh_host **out, int *count, const char *text);

typedef struct ssh_words {
    int count;
    const char *word[SSH_WORDS_MOST + 1]; /* ended by NULL; they lie in `text` */
    char *text;
} ssh_words;

/* Splits a command as a shell would: at blanks, with '...', "..." and \ keeping them; nothing is expanded. */
int ssh_words_split(ssh_words *out, const char *command);
void ssh_words_release(ssh_words *words);

#endif
