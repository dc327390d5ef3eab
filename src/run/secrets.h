/* Keys of stores stay in this process. */
#ifndef RUN_SECRETS_H
#define RUN_SECRETS_H

/* Says that this process is one that shoal may guard: the program is, a host of the library is not. */
void run_guard_secrets(void);
/* In a process that is guarded, keeps the keys that the store of this URL needs out of core dumps and away from
 * other programs; before it is opened.  SHOAL_USAGE for what is no URL. */
int run_protect_secrets(const char *url);

#endif
