/* Whose process this is: the program shoal's, or one that uses the library. */
#ifndef RUN_PROCESS_H
#define RUN_PROCESS_H

/* Says that it is the program's: workers may be processes of it, and what it holds may be guarded. */
void run_process_is_shoal(void);
/* SHOAL_USAGE when workers would be processes of this one, which is not shoal. */
int run_check_program(const char *program);
/* Asks a program for its version; SHOAL_USAGE when it is not this version of shoal.  NULL is this very program. */
int run_ask_program(const char *program);

/* In a process of the program, keeps the keys that the store of this URL needs out of core dumps and away from other
 * programs; before it is opened.  SHOAL_USAGE for what is no URL. */
int run_protect_secrets(const char *url);

#endif
