/* Amazon EC2, by its own API.  See cloud.h and ec2.h.
 *
 * A machine is started by a client token, so that a start whose answer was lost can be repeated: the same token gives
 * the same machine.  But a token is known in one zone alone; so it names its pool (type, zone, market), and who starts
 * in another pool uses another.  A machine that powers itself off is terminated, not stopped, and its disk with it. */
#include "ec2.h"

#include <stdarg.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <openssl/evp.h>

#include "base/memory.h"
#include "base/world.h"

enum { PAGES_MOST = 1000, USER_DATA_MOST = 16 << 10, IDS_AT_ONCE = 100 };

/* An image that every region has under this name, with curl, sha256sum and cloud-init. */
static const char usual_image[] = "resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64";

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static const char *first_variable(const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value)
            return value;
    }
    return NULL;
}

static int choose_region(ec2 *self, const s3_profile *profile)
{
    static const char *const variables[] = {"AWS_REGION", "AWS_DEFAULT_REGION", NULL};
    const char *region = first_variable(variables);
    region = region ? region : profile->region;
    if (*self->base.region)
        return SHOAL_OK;
    if (!region)
        return shoal_fail(SHOAL_USAGE, "aws: needs a region, as in aws:eu-west-1, or AWS_REGION");
    if (strlen(region) >= sizeof self->base.region || region[strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-")])
        return shoal_fail(SHOAL_USAGE, "'%s' can't be a region (AWS_REGION)", region);
    snprintf(self->base.region, sizeof self->base.region, "%s", region);
    return SHOAL_OK;
}

static int choose_server(ec2 *self)
{
    static const char *const variables[] = {"AWS_ENDPOINT_URL_EC2", "AWS_ENDPOINT_URL", NULL};
    const char *given = first_variable(variables);
    if (!given) {
        int status = base_format(&self->host, "ec2.%s.amazonaws.com%s", self->base.region,
                                 strncmp(self->base.region, "cn-", 3) == 0 ? ".cn" : "");
        return status == SHOAL_OK ? base_format(&self->url, "https://%s/", self->host) : status;
    }
    const char *host = strstr(given, "://") ? strstr(given, "://") + 3 : "";
    size_t length = strcspn(host, "/?#@");
    if (length == 0 || (host[length] == '/' && host[length + 1]) || strpbrk(host + length, "?#@"))
        return shoal_fail(SHOAL_USAGE, "'%.*s' (AWS_ENDPOINT_URL) is not a server's address", (int)strcspn(given, "?@"),
                          given);
    int status = base_copy_text_n(&self->host, host, length);
    return status == SHOAL_OK ? base_format(&self->url, "%.*s/", (int)(host + length - given), given) : status;
}

static int open_ec2(cloud *base)
{
    ec2 *self = (ec2 *)base;
    const http_settings settings = {.certificates = getenv("AWS_CA_BUNDLE"), .certificates_by = "AWS_CA_BUNDLE"};
    const char *name = getenv("AWS_PROFILE");
    s3_profile profile = {0};
    int status = s3_profile_load(&profile, name && *name ? name : "default");
    if (status == SHOAL_OK)
        status = choose_region(self, &profile);
    if (status == SHOAL_OK)
        status = choose_server(self);
    if (status == SHOAL_OK)
        status = http_pool_new(&self->pool, NULL, &settings);
    if (status == SHOAL_OK)
        status = s3_chain_new(&self->chain, NULL, NULL);
    s3_profile_release(&profile);
    return status;
}

static void close_ec2(cloud *base)
{
    ec2 *self = (ec2 *)base;
    s3_chain_free(&self->chain);
    http_pool_free(&self->pool);
    base_free(&self->url);
    base_free(&self->host);
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static void add_user_data(ec2_form *form, const char *text)
{
    size_t size = strlen(text);
    char *encoded = NULL;
    if (form->status == SHOAL_OK && size > USER_DATA_MOST)
        form->status = shoal_fail(SHOAL_INVALID, "the user data has %zu bytes, EC2 takes %d", size, USER_DATA_MOST);
    if (form->status == SHOAL_OK)
        form->status = base_alloc(&encoded, size / 3 * 4 + 8, 1, "user data");
    if (form->status == SHOAL_OK) {
        EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)text, (int)size);
        ec2_form_add(form, encoded, "UserData");
    }
    base_free(&encoded);
}

static void add_tags(ec2_form *form, const cloud_order *order)
{
    const char *const tags[][2] = {{"Name", order->cluster},
                                   {"shoal-cluster", order->cluster},
                                   {"shoal-ledger", order->ledger},
                                   {"shoal-reservation", order->reservation}};
    ec2_form_add(form, "instance", "TagSpecification.1.ResourceType");
    for (int i = 0; i < 4; i++) {
        ec2_form_add(form, tags[i][0], "TagSpecification.1.Tag.%d.Key", i + 1);
        ec2_form_add(form, tags[i][1], "TagSpecification.1.Tag.%d.Value", i + 1);
    }
}

static void add_market(ec2_form *form, const cloud_order *order)
{
    char cap[32];
    if (order->market != CLOUD_SPOT)
        return;
    ec2_form_add(form, "spot", "InstanceMarketOptions.MarketType");
    ec2_form_add(form, "one-time", "InstanceMarketOptions.SpotOptions.SpotInstanceType");
    ec2_form_add(form, "terminate", "InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior");
    snprintf(cap, sizeof cap, "%.6f", order->cap);
    if (order->cap > 0)
        ec2_form_add(form, cap, "InstanceMarketOptions.SpotOptions.MaxPrice");
}

static void make_start_form(ec2_form *form, const cloud_order *order)
{
    ec2_form_start(form, "RunInstances");
    ec2_form_add(form, order->image ? order->image : usual_image, "ImageId");
    ec2_form_add(form, order->type, "InstanceType");
    ec2_form_number(form, 1, "MinCount");
    ec2_form_number(form, 1, "MaxCount");
    ec2_form_add(form, "terminate", "InstanceInitiatedShutdownBehavior");
    ec2_form_add(form, "required", "MetadataOptions.HttpTokens");
    ec2_form_add(form, "enabled", "MetadataOptions.HttpEndpoint");
    add_market(form, order);
    if (order->zone && !order->subnet)
        ec2_form_add(form, order->zone, "Placement.AvailabilityZone");
    if (order->subnet)
        ec2_form_add(form, order->subnet, "SubnetId");
    if (order->group)
        ec2_form_add(form, order->group, "SecurityGroupId.1");
    if (order->role)
        ec2_form_add(form, order->role, "IamInstanceProfile.Name");
    if (order->key)
        ec2_form_add(form, order->key, "KeyName");
}

static cloud_refusal refusal_of(const ec2_answer *answer, int status)
{
    static const struct {
        const char *code;
        cloud_refusal refusal;
    } known[] = {{"InsufficientInstanceCapacity", CLOUD_NO_CAPACITY},
                 {"InsufficientHostCapacity", CLOUD_NO_CAPACITY},
                 {"InsufficientCapacity", CLOUD_NO_CAPACITY},
                 {"Unsupported", CLOUD_NO_CAPACITY}, /* this zone does not have the type */
                 {"SpotMaxPriceTooLow", CLOUD_PRICE_TOO_LOW},
                 {"MaxSpotInstanceCountExceeded", CLOUD_NO_QUOTA},
                 {"VcpuLimitExceeded", CLOUD_NO_QUOTA},
                 {"InstanceLimitExceeded", CLOUD_NO_QUOTA},
                 {"IdempotentParameterMismatch", CLOUD_OTHER_ORDER}};
    if (status == SHOAL_UNKNOWN)
        return CLOUD_UNANSWERED;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(answer->code, known[i].code) == 0)
            return known[i].refusal;
    return CLOUD_REFUSED_OTHERWISE;
}

/* A refusal after an attempt that was not answered refuses this attempt; whether the other was done is still unknown,
 * unless it is a refusal that the first would have met as well. */
static int start_ec2(cloud *base, cloud_machine *out, cloud_refusal *why, const cloud_order *order, int64_t deadline)
{
    ec2 *self = (ec2 *)base;
    ec2_form form;
    ec2_answer answer;
    cloud_machines found = {0};
    char *next = NULL;
    make_start_form(&form, order);
    form.moment = order->moment;
    ec2_form_add(&form, order->token, "ClientToken");
    add_tags(&form, order);
    add_user_data(&form, order->user_data);
    int status = ec2_perform(&answer, self, &form, deadline);
    if (status < 0)
        *why = answer.unknown ? CLOUD_UNANSWERED : refusal_of(&answer, status);
    if (status == SHOAL_OK) {
        *why = CLOUD_UNANSWERED; /* for an answer that can't be read */
        status = ec2_read_machines(&found, &next, answer.http.answer, answer.http.size);
    }
    if (status == SHOAL_OK && found.count != 1)
        status = shoal_fail(SHOAL_BROKEN, "EC2 was asked to start one machine, and says it has started %lld",
                            (long long)found.count);
    if (status == SHOAL_OK)
        *out = found.machine[0];
    cloud_machines_release(&found);
    ec2_answer_release(&answer);
    base_free(&next);
    return status;
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

typedef int read_page(void *out, char **next, const char *text, size_t size);

static int read_machines_page(void *out, char **next, const char *text, size_t size)
{
    return ec2_read_machines(out, next, text, size);
}

static int read_prices_page(void *out, char **next, const char *text, size_t size)
{
    return ec2_read_prices(out, next, text, size);
}

/* All pages of what `make` asks for. */
static int read_all(ec2 *self, void (*make)(ec2_form *form, const void *of), const void *of, read_page *read, void *out,
                    int64_t deadline)
{
    char *token = NULL;
    int status = SHOAL_OK;
    for (int page = 0; status == SHOAL_OK && (page == 0 || token); page++) {
        ec2_form form;
        ec2_answer answer;
        char *next = NULL;
        if (page == PAGES_MOST) {
            status = shoal_fail(SHOAL_BROKEN, "%s has more than %d pages", self->host, PAGES_MOST);
            break;
        }
        make(&form, of);
        if (token)
            ec2_form_add(&form, token, "NextToken");
        status = ec2_perform(&answer, self, &form, deadline);
        if (status == SHOAL_OK)
            status = read(out, &next, answer.http.answer, answer.http.size);
        ec2_answer_release(&answer);
        base_free(&token);
        token = next;
    }
    base_free(&token);
    return status;
}

static void make_list_form(ec2_form *form, const void *of)
{
    const char *cluster = of;
    ec2_form_start(form, "DescribeInstances");
    ec2_form_add(form, cluster ? "tag:shoal-cluster" : "tag-key", "Filter.1.Name");
    ec2_form_add(form, cluster ? cluster : "shoal-cluster", "Filter.1.Value.1");
    ec2_form_number(form, 1000, "MaxResults");
}

static int list_ec2(cloud *base, cloud_machines *out, const char *cluster, int64_t deadline)
{
    int status = read_all((ec2 *)base, make_list_form, cluster, read_machines_page, out, deadline);
    if (status < 0)
        cloud_machines_release(out);
    return status;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static int end_some(ec2 *self, bool *unknown, const char *const *ids, int64_t count, int64_t deadline)
{
    ec2_form form;
    ec2_answer answer;
    ec2_form_start(&form, "TerminateInstances");
    for (int64_t i = 0; i < count; i++)
        ec2_form_add(&form, ids[i], "InstanceId.%lld", (long long)i + 1);
    int status = ec2_perform(&answer, self, &form, deadline);
    *unknown = strcmp(answer.code, "InvalidInstanceID.NotFound") == 0;
    ec2_answer_release(&answer);
    return status;
}

/* One id that is not known fails a request for many; so these are ended one by one. */
static int end_ec2(cloud *base, const char *const *ids, int64_t count, int64_t deadline)
{
    ec2 *self = (ec2 *)base;
    int status = SHOAL_OK;
    for (int64_t from = 0; from < count && status == SHOAL_OK; from += IDS_AT_ONCE) {
        int64_t some = count - from < IDS_AT_ONCE ? count - from : IDS_AT_ONCE;
        bool unknown = false;
        status = end_some(self, &unknown, ids + from, some, deadline);
        for (int64_t i = 0; unknown && i < some; i++) {
            bool gone = false;
            int ended = end_some(self, &gone, ids + from + i, 1, deadline);
            status = i == 0 ? SHOAL_OK : status;
            status = ended < 0 && !gone ? ended : status;
        }
    }
    return status;
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

static void make_price_form(ec2_form *form, const void *of)
{
    const ec2 *self = of;
    char moment[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(moment, sizeof moment, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    ec2_form_start(form, "DescribeSpotPriceHistory");
    ec2_form_add(form, moment, "StartTime"); /* those that hold now */
    ec2_form_add(form, "product-description", "Filter.1.Name");
    ec2_form_add(form, "Linux/UNIX", "Filter.1.Value.1");
    if (self->base.types > 0)
        ec2_form_add(form, "instance-type", "Filter.2.Name");
    for (int i = 0; i < self->base.types; i++)
        ec2_form_add(form, self->base.type[i], "Filter.2.Value.%d", i + 1);
    ec2_form_number(form, 1000, "MaxResults");
}

static int price_ec2(cloud *base, cloud_prices *out, int64_t deadline)
{
    ec2 *self = (ec2 *)base;
    int status = read_all(self, make_price_form, self, read_prices_page, out, deadline);
    if (status < 0)
        cloud_prices_release(out);
    return status;
}

/* ---- what can be done there -------------------------------------------------------------------------------------- */

typedef struct checking {
    ec2 *self;
    cloud_finding *out;
    int *count;
    int64_t deadline;
} checking;

static void add_finding(const checking *c, const char *what, bool good, const char *format, ...) SHOAL_PRINTF(4, 5);

static void add_finding(const checking *c, const char *what, bool good, const char *format, ...)
{
    cloud_finding *finding = &c->out[*c->count];
    va_list arguments;
    if (*c->count == CLOUD_FINDINGS_MOST)
        return;
    (*c->count)++;
    finding->good = good;
    snprintf(finding->what, sizeof finding->what, "%s", what);
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
}

/* Performs a form and reads the first text below `path`. */
static int ask_one(char *out, size_t room, int64_t *count, const checking *c, ec2_form *form, const char *path)
{
    ec2_answer answer;
    int status = ec2_perform(&answer, c->self, form, c->deadline);
    if (status == SHOAL_OK)
        status = ec2_read_element(out, room, count, path, answer.http.answer, answer.http.size);
    ec2_answer_release(&answer);
    return status;
}

static bool check_keys(const checking *c)
{
    s3_keys *keys = NULL;
    if (s3_chain_get(&keys, c->self->chain, c->deadline) < 0) {
        add_finding(c, "credentials", false, "%s", shoal_error());
        return false;
    }
    size_t length = strlen(keys->id);
    add_finding(c, "credentials", true, "access key id ...%s%s", keys->id + (length > 4 ? length - 4 : 0),
                keys->token ? ", of a session" : "");
    s3_keys_free(&keys);
    return true;
}

static bool check_zones(const checking *c)
{
    char name[CLOUD_NAME_BYTES];
    int64_t zones = 0;
    ec2_form form;
    ec2_form_start(&form, "DescribeAvailabilityZones");
    int status = ask_one(name, sizeof name, &zones, c, &form, "/availabilityZoneInfo/item/zoneName");
    if (status < 0)
        add_finding(c, "region", false, "%s", shoal_error());
    else
        add_finding(c, "region", zones > 0, "%s, %lld zones", c->self->base.region, (long long)zones);
    return status == SHOAL_OK;
}

static void check_network(const checking *c)
{
    char name[CLOUD_NAME_BYTES];
    int64_t subnets = 0;
    ec2_form form;
    ec2_form_start(&form, "DescribeSubnets");
    ec2_form_add(&form, "default-for-az", "Filter.1.Name");
    ec2_form_add(&form, "true", "Filter.1.Value.1");
    int status = ask_one(name, sizeof name, &subnets, c, &form, "/subnetSet/item/subnetId");
    if (status < 0)
        add_finding(c, "network", false, "%s", shoal_error());
    else if (subnets == 0)
        add_finding(c, "network", false, "no zone has a default subnet");
    else
        add_finding(c, "network", true, "%lld default subnets", (long long)subnets);
}

static void check_type(const checking *c, const char *type)
{
    char cores[CLOUD_NAME_BYTES] = "", memory[CLOUD_NAME_BYTES] = "", set[CLOUD_NAME_BYTES] = "";
    int64_t count = 0;
    ec2_form form;
    ec2_answer answer;
    ec2_form_start(&form, "DescribeInstanceTypes");
    ec2_form_add(&form, type, "InstanceType.1");
    int status = ec2_perform(&answer, c->self, &form, c->deadline);
    const char *text = answer.http.answer;
    size_t size = answer.http.size;
    if (status == SHOAL_OK)
        status = ec2_read_element(cores, sizeof cores, &count, "/vCpuInfo/defaultVCpus", text, size);
    if (status == SHOAL_OK)
        status = ec2_read_element(memory, sizeof memory, &count, "/memoryInfo/sizeInMiB", text, size);
    if (status == SHOAL_OK)
        status = ec2_read_element(set, sizeof set, &count, "/supportedArchitectures/item", text, size);
    ec2_answer_release(&answer);
    if (status < 0)
        add_finding(c, type, false, "%s", shoal_error());
    else if (!*cores)
        add_finding(c, type, false, "%s has no such type", c->self->base.region);
    else if (*set && strcmp(set, "x86_64") != 0)
        add_finding(c, type, false, "%s cores, %s MiB, but of %s, which this program is not built for", cores, memory,
                    set);
    else
        add_finding(c, type, true, "%s cores, %s MiB", cores, memory);
}

/* Asks to start one, and to be told what would come of it. */
static void check_permission(const checking *c, const char *type, cloud_market market)
{
    const cloud_order order = {.type = type, .market = market};
    const char *what = market == CLOUD_SPOT ? "start spot" : "start on demand";
    ec2_form form;
    ec2_answer answer;
    make_start_form(&form, &order);
    ec2_form_add(&form, "true", "DryRun");
    ec2_perform(&answer, c->self, &form, c->deadline);
    bool good = strcmp(answer.code, "DryRunOperation") == 0;
    add_finding(c, what, good, "%s", good ? "permitted" : shoal_error());
    ec2_answer_release(&answer);
}

static int check_ec2(cloud *base, cloud_finding out[CLOUD_FINDINGS_MOST], int *count, int64_t deadline)
{
    ec2 *self = (ec2 *)base;
    const checking c = {self, out, count, deadline};
    if (!check_keys(&c) || !check_zones(&c)) /* the rest would fail in the same way */
        return SHOAL_OK;
    check_network(&c);
    for (int i = 0; i < base->types; i++)
        check_type(&c, base->type[i]);
    for (int market = CLOUD_SPOT; market <= CLOUD_DEMAND && base->types > 0; market++)
        check_permission(&c, base->type[0], (cloud_market)market);
    return SHOAL_OK;
}

const cloud_provider cloud_ec2 = {
    .scheme = "aws",
    .size = sizeof(ec2),
    .open = open_ec2,
    .start = start_ec2,
    .list = list_ec2,
    .end = end_ec2,
    .price = price_ec2,
    .check = check_ec2,
    .close = close_ec2,
};
