/* Azure Blob and Queue Storage as a store: az://ACCOUNT/CONTAINER/PREFIX.
 *
 * Blobs are blobs of the container under their own names; queues are queues of the account (azure_queue.c).  Nothing is
 * kept between requests but connections and credentials. */
#include <string.h>

#include "azure_internal.h"
#include "base/memory.h"

/* Takes //ACCOUNT/CONTAINER/PREFIX apart. */
static int split_url(azure_store *store, char **account, char **rest, const store_url *url)
{
    const char *text = url->rest;
    if (strncmp(text, "//", 2) != 0)
        return shoal_fail(SHOAL_USAGE, "%s: an Azure store is az://ACCOUNT/CONTAINER or az://ACCOUNT/CONTAINER/PREFIX",
                          url->text);
    text += 2;
    size_t first = strcspn(text, "/"), second = text[first] ? strcspn(text + first + 1, "/") : 0;
    if (first == 0 || second == 0)
        return shoal_fail(SHOAL_USAGE, "%s: an Azure store is az://ACCOUNT/CONTAINER or az://ACCOUNT/CONTAINER/PREFIX",
                          url->text);
    const char *prefix = text + first + 1 + second;
    size_t length = strlen(prefix);
    while (length > 0 && prefix[length - 1] == '/')
        length--;
    size_t skip = length > 0 ? 1 : 0; /* the slash in front */
    int status = base_copy_text_n(account, text, first);
    if (status == SHOAL_OK)
        status = base_copy_text_n(&store->container, text + first + 1, second);
    if (status == SHOAL_OK)
        status = base_copy_text_n(rest, prefix + skip, length - skip);
    if (status == SHOAL_OK)
        status = base_format(&store->base.name, "az://%s/%s", *account, store->container);
    return status;
}

/* Names that Azure rejects with obscure errors, and that would change the meaning of the URL. */
static int check_names(const azure_store *store, const char *account)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t length = strlen(store->container);
    bool dollar = strcmp(store->container, "$root") == 0 || strcmp(store->container, "$web") == 0;
    if (account[strspn(account, letters)] || strlen(account) < 3 || strlen(account) > 24)
        return store_fail(&store->base, NULL, SHOAL_USAGE,
                          "'%s' is not a valid Azure account name: use 3 to 24 lower-case letters and digits", account);
    bool plain = length >= 3 && length <= 63 && !strstr(store->container, "--") && store->container[0] != '-' &&
                 store->container[length - 1] != '-';
    for (const char *c = store->container; *c && plain; c++)
        plain = *c == '-' || strchr(letters, *c);
    if (!plain && !dollar)
        return store_fail(
            &store->base, NULL, SHOAL_USAGE,
            "'%s' is not a valid container name: use 3 to 63 lower-case letters, digits and single dashes",
            store->container);
    return SHOAL_OK;
}

static int make_container(azure_store *store, store_attempt *attempt)
{
    const azure_call call = {.method = "PUT",
                             .first = store->container,
                             .query = {{"restype", "container"}},
                             .sends_body = true,
                             .kind = SHOAL_REQUEST_OTHER};
    http_request request = {0};
    char code[80];
    int status = azure_perform(store, &call, &request, attempt);
    if (status == SHOAL_OK && !azure_succeeded(&request) &&
        strcmp(azure_error_code(&request, code, sizeof code), "ContainerAlreadyExists") != 0)
        status = azure_refusal(store, NULL, &request, attempt);
    azure_request_release(&request);
    return status;
}

/* One cheap request.  Some signatures may use a container but not query it: then the first use will tell. */
static int find_container(azure_store *store, const shoal_store_options *options, store_attempt *attempt)
{
    const azure_call call = {
        .method = "HEAD", .first = store->container, .query = {{"restype", "container"}}, .kind = SHOAL_REQUEST_OTHER};
    http_request request = {0};
    char code_buffer[80];
    int status = azure_perform(store, &call, &request, attempt);
    const char *code = status == SHOAL_OK ? azure_error_code(&request, code_buffer, sizeof code_buffer) : "";
    bool may_not_ask = request.status == 403 && store->credentials.sas && strncmp(code, "Authorization", 13) == 0;
    if (status == SHOAL_OK && request.status == 404)
        status = options->create ? make_container(store, attempt)
                                 : store_fail(&store->base, NULL, SHOAL_ABSENT, "there is no such container");
    else if (status == SHOAL_OK && !azure_succeeded(&request) && !may_not_ask)
        status = azure_refusal(store, NULL, &request, attempt);
    azure_request_release(&request);
    return status;
}

static int open_azure(shoal_store *self, char **rest, const store_url *url, const shoal_store_options *options,
                      store_attempt *attempt)
{
    azure_store *store = (azure_store *)self;
    char *account = NULL;
    int status = split_url(store, &account, rest, url);
    if (status == SHOAL_OK)
        status = check_names(store, account);
    if (status == SHOAL_OK) {
        status = azure_credentials_init(&store->credentials, account);
        if (status < 0 && status != SHOAL_MEMORY)
            status = store_fail(self, NULL, status, "%s", shoal_error());
    }
    if (status == SHOAL_OK)
        status = http_pool_new(&store->pool, self, &(http_settings){.parallel = 8});
    if (status == SHOAL_OK)
        status = find_container(store, options, attempt);
    base_free(&account);
    return status;
}

static void close_azure(shoal_store *self)
{
    azure_store *store = (azure_store *)self;
    http_pool_free(&store->pool);
    azure_credentials_release(&store->credentials);
    base_free(&store->container);
}

const struct store_class store_azure = {
    .scheme = "az",
    .far = true,
    .size = sizeof(azure_store),
    .counts_itself = true,
    .forgets = 60, /* the service forgets nothing, its emulators lose seconds when they are killed */
    .open = open_azure,
    .close = close_azure,
    .get = get_azure,
    .put = put_azure,
    .remove = remove_azure,
    .list = list_azure,
    .push = push_azure,
    .take = take_azure,
    .extend = extend_azure,
    .finish = finish_azure,
    .count = count_azure,
    .drop = drop_azure,
};
