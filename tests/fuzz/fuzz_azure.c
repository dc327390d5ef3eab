/* Fuzzes what is read of Azure's answers: listings, blocks, messages, errors, tokens, and connection strings.  The
 * first byte chooses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/azure/azure_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int fuzz_listing(const char *text, size_t size)
{
    shoal_listing page = {0};
    char *marker = NULL;
    bool high;
    int status = azure_list_read(text, size, 1800000000, "a", "ab", &page, &marker, &high);
    for (size_t i = 0; i < page.count; i++) {
        const shoal_entry *entry = &page.entries[i];
        if (entry->key[0] != 'a' || strcmp(entry->key, "ab") <= 0 || entry->size < 0)
            abort();
    }
    shoal_listing_release(&page);
    base_free(&marker);
    return status;
}

static int fuzz_message(const char *text, size_t size)
{
    azure_message message = {0};
    bool found;
    int status = azure_message_read(&message, &found, text, size);
    if (status == SHOAL_OK && found) {
        unsigned char *body = NULL;
        size_t length = 0;
        if (!message.id || !message.receipt || message.deliveries < 1)
            abort();
        if (azure_unbase64(&body, &length, message.text, strlen(message.text)) == SHOAL_OK &&
            length > strlen(message.text))
            abort();
        base_free(&body);
    }
    azure_message_release(&message);
    return status;
}

static void see_block(void *context, const unsigned char *id, size_t id_size, int64_t size)
{
    const size_t *most = context;
    if (!id || id_size > *most)
        abort();
    (void)size;
}

/* A name that becomes a key and a name again. */
static int fuzz_name(const char *text, size_t size)
{
    char *key = NULL, *name = NULL, *again = NULL;
    int status = azure_blob_key(&key, text, size);
    if (status == SHOAL_OK)
        status = azure_blob_name(&name, key);
    if (status == SHOAL_OK)
        status = azure_blob_key(&again, name, strlen(name));
    if (status == SHOAL_OK && (strcmp(key, again) != 0 || strchr(name, '\\')))
        abort();
    base_free(&key);
    base_free(&name);
    base_free(&again);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = NULL, code[80];
    int status = SHOAL_OK;
    if (size == 0 || base_copy_text_n(&text, (const char *)bytes + 1, size - 1) < 0)
        return 0;
    shoal_fail(SHOAL_OK, "%s", "");
    if (bytes[0] == 'l') {
        status = fuzz_listing(text, size - 1);
    } else if (bytes[0] == 'm') {
        status = fuzz_message(text, size - 1);
    } else if (bytes[0] == 'b') {
        status = azure_blocks_read(text, size - 1, see_block, &size);
    } else if (bytes[0] == 'n') {
        status = fuzz_name(text, strlen(text));
    } else if (bytes[0] == 'e') {
        const http_request request = {.status = 400, .answer = text, .size = size - 1};
        if (strlen(azure_error_code(&request, code, sizeof code)) >= sizeof code)
            abort();
    } else if (bytes[0] == 't') {
        base_secret *token = NULL;
        double seconds = -1;
        status = azure_token_read(&token, &seconds, text, size - 1, 1700000000);
        if (status == SHOAL_OK && (!(seconds > 0) || base_secret_size(token) == 0))
            abort();
        base_secret_free(&token);
    } else if (bytes[0] == 'c') {
        azure_credentials credentials = {0};
        status = azure_connection_string(&credentials, text);
        if (status == SHOAL_OK && (!credentials.account || !credentials.blob_endpoint || !credentials.queue_endpoint))
            abort();
        azure_credentials_release(&credentials);
    }
    if (status < 0 && !*shoal_error())
        abort();
    base_free(&text);
    return 0;
}
