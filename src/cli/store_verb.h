/* What the verbs of `shoal store` share: the options of requests and of copying, how far it is on the terminal, and
 * what came of it. */
#ifndef CLI_STORE_VERB_H
#define CLI_STORE_VERB_H

#include "cli.h"
#include "store/transfer/transfer.h"

typedef struct cli_store_settings {
    double patience; /* seconds that one request may take, all its attempts included */
} cli_store_settings;

extern const shoal_option *const cli_store_options;    /* of cli_store_settings: --deadline */
extern const shoal_option *const cli_transfer_options; /* of transfer_options: what all that copy have */
extern const shoal_option *const cli_target_options;   /* of transfer_options: of those that write to a store */

/* Lets the transfer hear of signals and tell of its progress, until cli_transfer_print. */
void cli_transfer_follow(transfer_options *options, cli_progress *progress, bool quiet);
/* Prints the summary, as text or JSON, and releases the report; `what` is "put".  `status` is what the transfer came
 * to, and is returned unless printing is all that failed. */
int cli_transfer_print(transfer_report *report, const char *what, const cli_print_settings *print,
                       cli_progress *progress, int status);

/* run_protect_secrets for several.  What is not a URL is refused when it is opened. */
void cli_stores_protect(const char *const *urls, int count);
/* {"get": 12, ...}, and the price of the requests. */
void cli_json_put_counts(json_t **object, const shoal_store_counts *counts);

#endif
