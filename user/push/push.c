// SPDX-License-Identifier: MIT
/*
 * kbarman-push, which `kbarman push` starts: a program of its own, because the tool has no code for
 * networks but that of live connections. It sends captures to a server of profiles. A process without
 * rights makes requests of the captures (encode.h); this one sends them (send.h), and what could not
 * be sent goes to the spool (spool.h), if there is one. Each request has one fate, which is counted.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/text/size.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/base/symbols.h"
#include "export/otlp/parca.h"
#include "export/otlp/split.h"
#include "export/viewers/pprof_split.h"
#include "push/encode.h"
#include "push/environment.h"
#include "push/follow.h"
#include "push/grpc.h"
#include "push/http.h"
#include "push/metrics_show.h"
#include "push/send.h"
#include "push/spool.h"

#define HEADERS_MAX	32
#define OWN_HEADERS	3
#define ATTRIBUTES_MAX	32
#define SPOOL_BYTES	(64ULL << 20)
#define TIMEOUT_S	30
#define SUM_MAX		128	/* bytes of a sum as text */
#define REFUSALS_MAX	8	/* after which the newest request shows whether any is taken */

enum {
	OPTION_OTLP = 256, OPTION_PPROF, OPTION_SPOOL, OPTION_SPOOL_SIZE, OPTION_SPOOL_ONLY,
	OPTION_RETRY, OPTION_TIMEOUT, OPTION_HEADER, OPTION_RESOURCE, OPTION_CACERT, OPTION_CERT,
	OPTION_KEY, OPTION_PROXY, OPTION_PROTOCOL, OPTION_FOLLOW,
	OPTION_OPENMETRICS, OPTION_INTERVAL,
};

static const struct cli_option options[] = {
	{ OPTION_OTLP, "otlp", "URL", "a collector of OpenTelemetry profiles, by OTLP" },
	{ OPTION_PROTOCOL, "protocol", "NAME",
	  "of --otlp: http/protobuf (default) or grpc" },
	{ OPTION_PPROF, "pprof", "URL", "a server that takes pprof's profiles: Pyroscope, Parca" },
	{ OPTION_OPENMETRICS, "openmetrics", "PORT|FILE",
	  "show metrics to Prometheus at [HOST:]PORT, or write them\n"
	  "to FILE" },
	{ OPTION_INTERVAL, "interval", "TIME",
	  "time between two readings of a session, at most\n"
	  "(--openmetrics; default 10s)" },
	{ OPTION_RESOURCE, "resource", "KEY=VALUE",
	  "say this of everything that is sent, such as\n"
	  "service.name=shop" },
	{ OPTION_HEADER, "http-header", "TEXT",
	  "send this header of HTTP, or those in the file of @FILE" },
	{ OPTION_HEADER, "header", "TEXT", NULL },
	{ OPTION_CACERT, "cacert", "FILE", "trust the certificates in FILE (https)" },
	{ OPTION_CERT, "cert", "FILE", "show the certificate in FILE to the server (https)" },
	{ OPTION_KEY, "key", "FILE", "the key of --cert, if FILE of --cert does not have it" },
	{ OPTION_PROXY, "proxy", "URL", "send by this proxy" },
	{ OPTION_TIMEOUT, "timeout", "TIME", "end after TIME: each request (default 30s)" },
	{ OPTION_RETRY, "retry", "TIME",
	  "try again so long if the server does not answer or is\n"
	  "busy (default 60s)" },
	{ OPTION_SPOOL, "spool", "DIR", "keep in DIR what could not be sent, and send it first" },
	{ OPTION_SPOOL_SIZE, "spool-size", "SIZE",
	  "let DIR have so many bytes (K, M, G; default 64M)" },
	{ OPTION_SPOOL_ONLY, "spool-only", NULL, "send what is in DIR, and no FILE" },
	{ OPTION_FOLLOW, "follow", "FOLDER",
	  "send each capture that comes into FOLDER, until a signal\n"
	  "comes (with --spool)" },
	SYMBOLS_OPTIONS,
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman push --otlp URL [OPTIONS] [FILE...]\n"
	"       kbarman push --pprof URL [OPTIONS] [FILE...]\n"
	"       kbarman push --otlp URL --follow FOLDER --spool DIR [OPTIONS]\n"
	"       kbarman push --openmetrics PORT|FILE [--interval TIME] [FILE...]\n"
	"\n"
	"Send the captures FILE (default kbarman.cap; '-' is standard input) to a server of\n"
	"profiles. Or show the metrics of the captures, or else of a session that runs, until a\n"
	"signal comes.\n"
	"\n",
	.options = options,
	.column = 26,
	.tail =
	"\n"
	"Exit status: 0 everything was sent; 3 what was not is in the spool; 1 in part, the\n"
	"messages say what became of the rest; 2 not done.\n",
};

/* A request that the server refused, and that is in the spool until there is evidence. */
struct refused {
	uint64_t number;		/* in the spool */
	struct push_counts counts;
	bool fresh;			/* of this push */
};

struct push {
	const char *metrics;		/* the value of --openmetrics */
	double interval;		/* s; 0: not given */
	struct push_place place;
	char *endpoint;			/* of the environment */
	bool exact;			/* the URL has its path, and be it none */
	char *url;			/* with the path of the protocol; place.url */
	char *shown;			/* the same without a password */
	bool otlp, parca, grpc;
	const char *protocol;		/* NULL: not given */
	struct kb_symbol_options symbols;
	const char *headers[HEADERS_MAX];
	size_t nr_headers;
	struct kb_otlp_attribute attributes[ATTRIBUTES_MAX];
	size_t nr_attributes;
	const char *cacert, *cert, *key, *proxy;
	double timeout, retry;		/* s; 0 as timeout: not given */
	const char *spool_path;
	unsigned long long spool_size;
	bool spool_only;
	const char *follow;		/* a folder */
	const char *const *inputs;
	int nr_inputs;

	struct push_sender sender;
	struct push_spool spool;
	struct push_sum sent, kept, lost, unclear;
	uint64_t *spooled;		/* hashes of the requests that the spool had and that were sent */
	size_t nr_spooled, room_spooled;
	struct refused *refused;
	size_t nr_refused, room_refused;
	bool told_parts;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	stop = number;
}

/* ---- options ---- */

/* A length of time from @least ns to a day, in seconds. */
static int take_seconds(const char *option, uint64_t least, double *seconds)
{
	uint64_t ns;
	int ret = cli_take_duration(option, optarg, KB_NS_PER_S, least, 86400 * KB_NS_PER_S, &ns);

	*seconds = (double)ns / 1e9;
	return ret;
}

static int add_header(struct push *p, const char *text)
{
	const char *colon = strchr(text, ':');

	if (p->nr_headers == HEADERS_MAX - OWN_HEADERS)
		return cli_fail("--http-header: give at most %d headers", HEADERS_MAX - OWN_HEADERS);
	if (!colon || colon == text || strpbrk(text, "\r\n"))
		return cli_fail("--http-header: this is no header: give 'NAME: VALUE'");
	p->headers[p->nr_headers++] = text;
	return 0;
}

/* Lines of a file, so that a password is in no list of processes. */
static int read_headers(struct push *p, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int status = 0;

	if (!file)
		return cli_fail("%s: %s", path, strerror(errno));
	while (!status && (length = getline(&line, &room, file)) > 0) {
		while (length && (line[length - 1] == '\n' || line[length - 1] == '\r'))
			line[--length] = 0;
		if (!length)
			continue;
		status = add_header(p, line);
		if (!status)
			line = NULL;	/* the list has it */
		room = line ? room : 0;
	}
	free(line);
	fclose(file);
	return status;
}

/* @text is a word of the command, which is cut into two. */
static int add_attribute(struct push *p, char *text)
{
	char *equals = strchr(text, '=');

	if (p->nr_attributes == ATTRIBUTES_MAX)
		return cli_fail("--resource: give it at most %d times", ATTRIBUTES_MAX);
	if (!equals || equals == text)
		return cli_fail("--resource %s: give KEY=VALUE", text);
	*equals = 0;
	p->attributes[p->nr_attributes++] = (struct kb_otlp_attribute){ text, equals + 1 };
	return 0;
}

static int set_place(struct push *p, const char *kind, const char *url)
{
	if (p->place.url)
		return cli_fail("give one of --otlp and --pprof, and once");
	if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8))
		return cli_fail("--%s %s: give a URL that begins with http:// or https://", kind,
				url);
	if (strpbrk(url, " \t\r\n") || strlen(url) > 2048)
		return cli_fail("--%s: this is no URL", kind);
	p->place = (struct push_place){ .kind = kind, .url = url };
	p->otlp = !strcmp(kind, "otlp");
	return 0;
}

static int take_protocol(struct push *p, const char *name, const char *value)
{
	p->protocol = value;
	p->grpc = !strcmp(value, "grpc");
	return p->grpc || !strcmp(value, "http/protobuf") ? 0 :
		cli_fail("%s '%s': give http/protobuf or grpc", name, value);
}

/* Takes one option. Returns 0, or an exit status after a message. */
static int parse_option(struct push *p, int option)
{
	switch (option) {
	case OPTION_OTLP:
		return set_place(p, "otlp", optarg);
	case OPTION_PPROF:
		return set_place(p, "pprof", optarg);
	case OPTION_PROTOCOL:
		return take_protocol(p, "--protocol", optarg);
	case OPTION_OPENMETRICS:
		p->metrics = optarg;
		return *optarg ? 0 : cli_fail("--openmetrics: give [HOST:]PORT or a file");
	case OPTION_INTERVAL:
		return take_seconds("--interval", KB_NS_PER_S / 10, &p->interval);
	case OPTION_RESOURCE:
		return add_attribute(p, optarg);
	case OPTION_HEADER:
		return optarg[0] == '@' ? read_headers(p, optarg + 1) : add_header(p, optarg);
	case OPTION_CACERT:
		p->cacert = optarg;
		return 0;
	case OPTION_CERT:
		p->cert = optarg;
		return 0;
	case OPTION_KEY:
		p->key = optarg;
		return 0;
	case OPTION_PROXY:
		p->proxy = optarg;
		return 0;
	case OPTION_TIMEOUT:
		return take_seconds("--timeout", KB_NS_PER_MS, &p->timeout);
	case OPTION_RETRY:
		return take_seconds("--retry", 0, &p->retry);
	case OPTION_SPOOL:
		p->spool_path = optarg;
		return 0;
	case OPTION_SPOOL_SIZE:
		return kb_size_parse(optarg, &p->spool_size) ? 0 :
			cli_fail("--spool-size %s: give a number of bytes, such as 64M", optarg);
	case OPTION_FOLLOW:
		p->follow = optarg;
		return 0;
	case OPTION_SPOOL_ONLY:
		p->spool_only = true;
		return 0;
	}
	return symbols_take(&p->symbols, option, optarg) ? 0 : cli_usage(option == 'h', &usage);
}

/* Where the path of a URL begins, or its end. */
static const char *path_of(const char *url)
{
	return url + (strstr(url, "://") + 3 - url) + strcspn(strstr(url, "://") + 3, "/?#");
}

/* A collector has one path for profiles. A URL that has a path is taken as it is; gRPC knows none but its own. */
static int complete_url(struct push *p)
{
	const char *given = p->place.url, *path = path_of(given), *host = strstr(given, "://") + 3;
	const char *at = memrchr(host, '@', (size_t)(path - host));
	const char *own = p->grpc ? PUSH_GRPC_PATH : p->otlp ? KB_OTLP_PATH : "/ingest";
	bool bare = (!p->exact || p->grpc) && (!strcmp(path, "") || !strcmp(path, "/"));
	size_t length = strcspn(path, "?#"), end = strlen(KB_PARCA_PATH);

	if (p->grpc && !bare)
		return cli_fail("--otlp: gRPC has a path of its own: give http://HOST:PORT or https://HOST:PORT, "
				"without '%s'", path);
	p->parca = !p->otlp && length >= end && !strncmp(path + length - end, KB_PARCA_PATH, end);
	if (asprintf(&p->url, "%.*s%s", (int)(path - given), given, bare ? own : path) < 0)
		p->url = NULL;
	if (asprintf(&p->shown, "%.*s%.*s%s", (int)(host - given), given,
		     (int)(path - (at ? at + 1 : host)), at ? at + 1 : host, bare ? own : path) < 0)
		p->shown = NULL;
	if (!p->url || !p->shown)
		return cli_fail("out of memory");
	/* a query may be a password, too */
	p->shown[strcspn(p->shown, "?#")] = 0;
	p->place.url = p->url;
	return 0;
}

static int choose_inputs(struct push *p, int argc, char **argv)
{
	static const char *const usual[] = { CLI_CAPTURE };

	if (p->spool_only || p->follow) {
		const char *option = p->follow ? "--follow" : "--spool-only";

		if (p->follow && p->spool_only)
			return cli_fail("--follow sends what is in the spool, too: leave out --spool-only");
		if (!p->spool_path)
			return cli_fail("%s: give --spool as well", option);
		if (optind < argc)
			return cli_fail("%s sends no FILE: leave out '%s'", option, argv[optind]);
		return 0;
	}
	if (optind < argc) {
		p->inputs = (const char *const *)argv + optind;
		p->nr_inputs = argc - optind;
		return 0;
	}
	if (!cli_input(NULL, argc, argv, CLI_CAPTURE))
		return CLI_IMPOSSIBLE;
	p->inputs = usual;
	p->nr_inputs = 1;
	return 0;
}

/* Metrics are asked for or lie in a file, so there is nothing to send again. */
static int choose_metrics(struct push *p, int argc, char **argv)
{
	if (p->place.url || p->spool_path || p->spool_only || p->follow || p->nr_headers || p->nr_attributes || p->protocol ||
	    p->cacert || p->cert || p->key || p->proxy)
		return cli_fail("--openmetrics sends nothing: leave out --otlp, --pprof and their "
				"options");
	if (p->interval && optind < argc)
		return cli_fail("--interval is for a session that runs, not for FILEs");
	p->inputs = (const char *const *)argv + optind;
	p->nr_inputs = argc - optind;
	return 0;
}

/* A header of the environment, unless --http-header has another one of this name. */
static int take_header(void *context, const char *header)
{
	struct push *p = context;
	size_t length = strcspn(header, ":") + 1;

	for (size_t i = 0; i < p->nr_headers; i++)
		if (!strncasecmp(p->headers[i], header, length))
			return 0;
	return add_header(p, header);
}

/* The protocol of the environment is that of its URL, not of one that the command gives. */
static int take_endpoint(struct push *p)
{
	const char *variable, *protocol = p->protocol ? NULL : push_environment("PROTOCOL", &variable);
	int status = protocol ? take_protocol(p, variable, protocol) : 0;

	if (status)
		return status;
	p->endpoint = push_environment_url(p->grpc ? "" : KB_OTLP_PATH, &p->exact);
	if (!p->endpoint)
		return cli_fail("where to? Give --otlp URL, --pprof URL or --openmetrics PORT, or set "
				"OTEL_EXPORTER_OTLP_ENDPOINT");
	return set_place(p, "otlp", p->endpoint);
}

/* What the command does not say, OpenTelemetry's variables may. */
static int take_environment(struct push *p)
{
	const char *variable, *timeout;
	uint64_t ms = 0;
	int status = p->place.url ? 0 : take_endpoint(p);

	if (!status && p->protocol && !p->otlp)
		return cli_fail("--protocol is for --otlp");
	if (status || !p->otlp)
		return status;
	if (!p->cacert)
		p->cacert = push_environment("CERTIFICATE", NULL);
	if (!p->cert && !p->key) {
		p->cert = push_environment("CLIENT_CERTIFICATE", NULL);
		p->key = push_environment("CLIENT_KEY", NULL);
	}
	timeout = p->timeout ? NULL : push_environment("TIMEOUT", &variable);
	if (timeout)
		status = cli_take_ms(variable, timeout, 1, 86400000, &ms);
	if (!status && timeout)
		p->timeout = (double)ms / 1e3;
	return status ?: push_environment_headers(take_header, p);
}

/* libcurl would find out at each try to send. */
static int check_files(const struct push *p)
{
	const struct {
		const char *option, *path;
	} files[] = { { "--cacert", p->cacert }, { "--cert", p->cert }, { "--key", p->key } };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i].path && access(files[i].path, R_OK))
			return cli_fail("%s %s: %s", files[i].option, files[i].path, strerror(errno));
	return p->key && !p->cert ? cli_fail("--key: give --cert as well") : 0;
}

/* Returns false and sets *@status if nothing is left to do. */
static bool parse(struct push *p, int argc, char **argv, int *status)
{
	int option;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		*status = parse_option(p, option);
		if (*status || option == 'h')
			return false;
	}
	symbols_end(&p->symbols);
	if (p->metrics)
		*status = choose_metrics(p, argc, argv);
	else if (p->interval)
		*status = cli_fail("--interval is for --openmetrics");
	else
		*status = take_environment(p) ?: check_files(p) ?: complete_url(p) ?: choose_inputs(p, argc, argv);
	return !*status;
}

/* ---- sending ---- */

#define WORD	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._"

/* Bytes that a URL can't have are written as %XX. */
static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr(WORD "-~", *text))
			putc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned char)*text);
	}
}

/* What would end a value in NAME{KEY=VALUE,...}, which has no quotes, is written as %XX in it. */
static void put_value(FILE *out, const char *text)
{
	for (; *text; text++) {
		char one[4] = { *text };

		if (strchr("{},", *text) || (unsigned char)*text < ' ')
			snprintf(one, sizeof(one), "%%%02X", (unsigned char)*text);
		put_escaped(out, one);
	}
}

/* Keys have letters, digits, '_' and '.' there. */
static void put_key(FILE *out, const char *text)
{
	for (; *text; text++)
		putc(strchr(WORD, *text) ? *text : '_', out);
}

/* The name of a profile for Pyroscope: that of the service, with the other attributes as labels. */
static void put_name(const struct push *p, FILE *out)
{
	const char *name = "kbarman", *before = "{";
	size_t i;

	for (i = 0; i < p->nr_attributes; i++)
		if (!strcmp(p->attributes[i].key, "service.name"))
			name = p->attributes[i].value;
	put_value(out, name);
	for (i = 0; i < p->nr_attributes; i++) {
		if (!strcmp(p->attributes[i].key, "service.name"))
			continue;
		put_escaped(out, before);
		put_key(out, p->attributes[i].key);
		put_escaped(out, "=");
		put_value(out, p->attributes[i].value);
		before = ",";
	}
	if (*before == ',')
		put_escaped(out, "}");
}

/* The URL of a request, to be freed. NULL without memory. */
static char *request_url(const struct push *p, const struct push_counts *counts)
{
	char *url = NULL;
	size_t size;
	FILE *out;

	if (p->otlp || p->parca)
		return strdup(p->url);
	out = open_memstream(&url, &size);
	if (!out)
		return NULL;
	fprintf(out, "%s%sname=", p->url, strchr(p->url, '?') ? "&" : "?");
	put_name(p, out);
	/* seconds; the last one is not part of it */
	fprintf(out, "&from=%" PRIu64 "&until=%" PRIu64 "&format=pprof",
		counts->from / 1000000000, counts->until / 1000000000 + 1);
	return fclose(out) ? NULL : url;
}

static enum push_fate send_whole(struct push *p, const struct push_request *request)
{
	char *url = request_url(p, &request->counts);
	enum push_fate fate;

	if (!url) {
		cli_warn("out of memory");
		return PUSH_LATER;
	}
	fate = push_send(&p->sender, url, request);
	free(url);
	if (fate == PUSH_TAKEN)
		push_count(&p->sent, &request->counts);
	else if (fate == PUSH_UNCLEAR)
		push_count(&p->unclear, &request->counts);
	return fate;
}

/* ---- parts of a request that is too large ---- */

/* A request of OTLP is cut between its profiles, a profile of pprof between its samples. */
struct parts {
	struct push *push;
	const struct push_request *whole;
	struct kb_otlp_split *otlp;
	struct kb_pprof_split *pprof;
	bool *wanted;			/* the profiles, or samples, of a part */
	bool *left;			/* those that the server did not take */
	size_t nr;			/* of each of them */
	unsigned int taken;		/* parts that were taken */
	bool hopeless;			/* not even one sample was taken */
};

static bool make_pprof_part(const struct parts *parts, const bool *wanted, struct push_request *part)
{
	struct kb_pprof_part made;

	/* Pyroscope and Parca take profiles of one millisecond for the same one. */
	if (kb_pprof_split_part(parts->pprof, wanted, parts->taken, &made))
		return false;
	*part = (struct push_request){
		.counts = parts->whole->counts, .data = made.data, .size = made.size,
	};
	part->counts.samples = made.samples;
	part->counts.waits = made.waits;
	return true;
}

/* Makes the part of those in @wanted. Its data are to be freed. False: no memory. */
static bool make_part(const struct parts *parts, const bool *wanted, struct push_request *part)
{
	struct kb_otlp_request made;

	*part = (struct push_request){ 0 };
	if (parts->pprof)
		return make_pprof_part(parts, wanted, part);
	if (kb_otlp_split_part(parts->otlp, wanted, &made))
		return false;
	*part = (struct push_request){
		.counts = { made.samples, made.waits, made.wait_ns, made.profiles, made.from, made.until },
		.data = (void *)(uintptr_t)made.data, .size = made.size,
	};
	return true;
}

/* Sends those from @from to @to, in halves as long as that is too much. */
static void send_part(struct parts *parts, size_t from, size_t to)
{
	struct push *p = parts->push;
	enum push_fate fate = PUSH_LATER;
	struct push_request part = { 0 };

	for (size_t i = 0; i < parts->nr; i++)
		parts->wanted[i] = i >= from && i < to;
	if (!parts->hopeless && make_part(parts, parts->wanted, &part))
		fate = send_whole(p, &part);
	free(part.data);
	if (fate == PUSH_TOO_LARGE && to - from > 1) {
		send_part(parts, from, from + (to - from) / 2);
		send_part(parts, from + (to - from) / 2, to);
		return;
	}
	parts->taken += fate == PUSH_TAKEN || fate == PUSH_UNCLEAR;
	/* a sample is small: who does not take one takes none */
	parts->hopeless |= fate == PUSH_TOO_LARGE && parts->pprof;
	if (fate == PUSH_TOO_LARGE)
		cli_warn("%s: one %s of %zu bytes is too large for it: raise its limit", p->shown,
			 parts->pprof ? "sample" : "profile", part.size);
	if (fate == PUSH_REFUSED && p->sent.requests)
		push_count(&p->lost, &part.counts);
	else if (fate != PUSH_TAKEN && fate != PUSH_UNCLEAR)
		memset(parts->left + from, true, to - from);
}

/* Sends the parts of a request. What is left of it goes to @rest, unless that is all or nothing. */
static enum push_fate send_parts(struct parts *parts, struct push_request *rest)
{
	size_t half = parts->nr / 2, left = 0;

	send_part(parts, 0, half);
	send_part(parts, half, parts->nr);
	for (size_t i = 0; i < parts->nr; i++)
		left += parts->left[i];
	if (left && left < parts->nr)
		make_part(parts, parts->left, rest);
	return left ? PUSH_TOO_LARGE : PUSH_TAKEN;
}

/* Reads the request. parts->nr: what there is in it; 0: it can't be read. */
static void open_parts(struct parts *parts)
{
	const struct push_request *request = parts->whole;
	const struct kb_otlp_request whole = {
		.data = request->data, .size = request->size, .waits = request->counts.waits,
		.from = request->counts.from, .until = request->counts.until,
	};

	if (parts->push->otlp && !kb_otlp_split_open(&parts->otlp, &whole))
		parts->nr = kb_otlp_split_profiles(parts->otlp);
	if (!parts->push->otlp && !kb_pprof_split_open(&parts->pprof, request->data, request->size))
		parts->nr = kb_pprof_split_samples(parts->pprof);
	parts->wanted = calloc(parts->nr + 1, sizeof(bool));
	parts->left = calloc(parts->nr + 1, sizeof(bool));
}

static void close_parts(struct parts *parts)
{
	free(parts->left);
	free(parts->wanted);
	kb_pprof_split_close(parts->pprof);
	kb_otlp_split_close(parts->otlp);
}

static enum push_fate send_in_parts(struct push *p, const struct push_request *request,
				    struct push_request *rest)
{
	struct parts parts = { .push = p, .whole = request };
	enum push_fate fate = PUSH_TOO_LARGE;

	open_parts(&parts);
	if (parts.nr > 1 && parts.wanted && parts.left) {
		if (!p->told_parts)
			cli_note("%s: a request of %zu bytes is too large for it: it is sent in parts",
				 p->shown, request->size);
		p->told_parts = true;
		fate = send_parts(&parts, rest);
	} else {
		cli_warn("%s: a request of %zu bytes is too large for it: raise its limit", p->shown,
			 request->size);
	}
	close_parts(&parts);
	return fate;
}

/* @rest: as in send_parts(); its data are to be freed. */
static enum push_fate send_one(struct push *p, const struct push_request *request,
			       struct push_request *rest)
{
	enum push_fate fate = send_whole(p, request);

	return fate == PUSH_TOO_LARGE ? send_in_parts(p, request, rest) : fate;
}

/* ---- refused requests ---- */

/*
 * Whether the server takes others tells whether a request that it refuses is wrong, or it takes none,
 * because of a token, a header, a version of the protocol. So nothing is removed before one was taken.
 */
static void add_refused(struct push *p, uint64_t number, const struct push_counts *counts, bool fresh)
{
	if (KB_ARRAY_ROOM(p->refused, p->room_refused, p->nr_refused + 1))
		p->refused[p->nr_refused++] = (struct refused){ number, *counts, fresh };
	if (!p->sent.requests && p->nr_refused > REFUSALS_MAX)
		p->sender.given_up = true;
}

/* One was taken, so those that were refused are wrong: they are lost. */
static void lose_refused(struct push *p)
{
	for (size_t i = 0; i < p->nr_refused; i++) {
		const struct refused *refused = &p->refused[i];

		if (!push_spool_forget(&p->spool, refused->number))
			continue;
		push_count(&p->lost, &refused->counts);
		if (!refused->fresh) {
			p->spool.left--;
			continue;
		}
		p->kept.requests--;
		p->kept.samples -= refused->counts.samples;
		p->kept.waits -= refused->counts.waits;
	}
	p->nr_refused = 0;
}

/* ---- the spool ---- */

static uint64_t hash_of(const struct push_request *request)
{
	return kb_hash_bytes(request->size, request->data, request->size);
}

static enum push_spool_next send_spooled(void *context, uint64_t number,
					 const struct push_request *request, struct push_request *rest)
{
	struct push *p = context;

	switch (send_one(p, request, rest)) {
	case PUSH_TAKEN:
		if (p->nr_inputs && KB_ARRAY_ROOM(p->spooled, p->room_spooled, p->nr_spooled + 1))
			p->spooled[p->nr_spooled++] = hash_of(request);
		return PUSH_SPOOL_FORGET;
	case PUSH_UNCLEAR:
		return PUSH_SPOOL_FORGET;
	case PUSH_LATER:
		return PUSH_SPOOL_END;
	case PUSH_REFUSED:
		add_refused(p, number, &request->counts, false);
		return p->sent.requests || p->nr_refused < REFUSALS_MAX ? PUSH_SPOOL_STAY :
									   PUSH_SPOOL_NEWEST;
	case PUSH_TOO_LARGE:
		break;
	}
	return PUSH_SPOOL_STAY;
}

/* Whether the request was sent from the spool: a push of the same FILE had left it there. */
static bool was_spooled(const struct push *p, const struct push_request *request)
{
	uint64_t hash = p->nr_spooled ? hash_of(request) : 0;
	size_t i;

	for (i = 0; i < p->nr_spooled && p->spooled[i] != hash; i++)
		;
	return i < p->nr_spooled;
}

static void keep(struct push *p, const struct push_request *request)
{
	int error = p->spool_path ? push_spool_add(&p->spool, &p->place, request) : -ENOENT;

	if (!error) {
		push_count(&p->kept, &request->counts);
		return;
	}
	if (p->spool_path)
		cli_warn("%s: can't keep a request: %s", p->spool_path,
			 error == -EFBIG ? "it is larger than the spool may be" : strerror(-error));
	push_count(&p->lost, &request->counts);
}

static void refuse(struct push *p, const struct push_request *request)
{
	uint64_t last = p->spool.last;

	if (p->sent.requests || !p->spool_path) {
		push_count(&p->lost, &request->counts);
		return;
	}
	keep(p, request);
	if (p->spool.last != last)
		add_refused(p, p->spool.last, &request->counts, true);
}

/* "2 requests: 10 samples, 3 waits"; the numbers inside are left out where they are not known. */
static void print_sum(char text[SUM_MAX], const struct push_sum *sum)
{
	int length = snprintf(text, SUM_MAX, "%" PRIu64 " request%s", sum->requests,
			      sum->requests == 1 ? "" : "s");

	if (sum->samples || sum->waits)
		snprintf(text + length, SUM_MAX - (size_t)length, ": %" PRIu64 " samples, %" PRIu64
			 " waits", sum->samples, sum->waits);
}

static bool say_sum(const char *what, const struct push_sum *sum, const char *more)
{
	char text[SUM_MAX];

	print_sum(text, sum);
	if (sum->requests)
		cli_warn("%s %s%s", what, text, more);
	return sum->requests;
}

/* Tells the fate of all requests. Returns an exit status. */
static int tell(const struct push *p)
{
	const struct push_sum *gone = &p->spool.dropped_own;
	const struct push_sum kept = {
		p->kept.requests - gone->requests, p->kept.samples - gone->samples,
		p->kept.waits - gone->waits,
	};
	char text[SUM_MAX];
	bool bad, later;

	if (p->nr_refused)
		cli_warn("%s: took no request at all, so those that it refuses may be right, and stay in "
			 "the spool: look at the URL, and at what --http-header gives", p->shown);
	print_sum(text, &p->sent);
	cli_note("sent %s, to %s", text, p->shown);
	if (p->spool.left)
		cli_warn("%" PRIu64 " earlier request%s stay%s in the spool", p->spool.left,
			 p->spool.left == 1 ? "" : "s", p->spool.left == 1 ? "s" : "");
	later = say_sum("kept", &kept, "; they are in the spool, and the next push sends them");
	bad = say_sum("it is not known what became of", &p->unclear, "");
	bad |= say_sum("lost", &p->lost, p->spool_path ? "" : "; --spool DIR would have kept them");
	bad |= say_sum("lost", &p->spool.dropped, "; they were the oldest ones in the full spool");
	bad |= p->spool.damaged || p->sender.rejected;
	return bad ? CLI_DAMAGED : later || p->spool.left ? PUSH_STATUS_KEPT : CLI_OK;
}

static int send_all(struct push *p, struct push_encoder *encoder)
{
	struct push_request request;
	uint64_t others = 0;
	int status = CLI_OK, told;

	if (p->spool_path)
		others = push_spool_walk(&p->spool, &p->place, send_spooled, p);
	if (others)
		cli_note("%s: %" PRIu64 " requests are for other servers: they stay there",
			 p->spool_path, others);
	while (encoder->pid && push_encode_next(encoder, &request, &status)) {
		struct push_request rest = { 0 };
		enum push_fate fate = was_spooled(p, &request) ? PUSH_TAKEN :
								 send_one(p, &request, &rest);

		if (fate == PUSH_LATER || fate == PUSH_TOO_LARGE)
			keep(p, rest.data ? &rest : &request);
		if (fate == PUSH_REFUSED)
			refuse(p, &request);
		free(rest.data);
		free(request.data);
	}
	if (p->sent.requests)
		lose_refused(p);
	told = tell(p);
	/* what could not be read is worse than what is kept */
	return status && told == PUSH_STATUS_KEPT ? status : status > told ? status : told;
}

static int open_sender(struct push *p)
{
	struct push_http_options http = {
		.headers = p->headers, .authorities = p->cacert, .certificate = p->cert, .key = p->key,
		.proxy = p->proxy, .grpc = p->grpc, .timeout_ms = (long)((p->timeout ?: TIMEOUT_S) * 1000),
	};

	p->headers[p->nr_headers++] = p->grpc ? "Content-Type: application/grpc" :
				      p->otlp ? "Content-Type: " KB_OTLP_TYPE :
				      p->parca ? "Content-Type: application/json" :
						 "Content-Type: application/octet-stream";
	if (p->otlp)
		p->headers[p->nr_headers++] = p->grpc ? "grpc-encoding: gzip" : "Content-Encoding: gzip";
	if (p->grpc)
		p->headers[p->nr_headers++] = "TE: trailers";
	http.nr_headers = p->nr_headers;
	p->sender = (struct push_sender){
		.otlp = p->otlp, .grpc = p->grpc, .shown = p->shown, .stop = &stop,
		.patience_ms = (int64_t)(p->retry * 1000),
	};
	return push_http_open(&p->sender.http, &http);
}

/* This process talks to the network, and writes to the spool only. */
static void confine(const struct push *p)
{
	char file[PATH_MAX];

	snprintf(file, sizeof(file), "%s/new", p->spool_path ?: "");
	cli_sandbox(&(struct cli_sandbox) { .output = p->spool_path ? file : NULL, .network = true,
					    .threads = true, .child = true });
}

static void catch_signals(void)
{
	/* the second one ends the process */
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };

	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static int push(struct push *p)
{
	struct push_encoder encoder = {
		.inputs = p->inputs, .nr_inputs = p->nr_inputs, .pprof = !p->otlp,
		.parca = p->parca,
		.symbols = &p->symbols, .attributes = p->attributes,
		.nr_attributes = p->nr_attributes,
	};
	int status;

	/* first, so that it inherits neither the spool nor what libcurl opens */
	status = p->nr_inputs ? push_encode_start(&encoder) : 0;
	p->spool.fd = -1;
	if (!status && p->spool_path)
		status = push_spool_open(&p->spool, p->spool_path, p->spool_size);
	if (!status)
		status = open_sender(p);
	if (!status) {
		catch_signals();
		confine(p);
		status = send_all(p, &encoder);
	}
	push_encode_abandon(&encoder);
	push_http_close(p->sender.http);
	push_spool_close(&p->spool);
	return status;
}

/* In a process of its own. */
static int send_followed(void *context, const char *file, bool patient)
{
	struct push *p = context;

	p->inputs = &file;
	p->nr_inputs = file != NULL;
	p->retry = patient ? p->retry : 0;
	return push(p);
}

static int follow(struct push *p)
{
	const struct push_follow how = {
		.folder = p->follow, .spool = p->spool_path, .send = send_followed, .context = p,
	};

	return push_follow(&how);
}

static int show_metrics(const struct push *p)
{
	const struct push_metrics metrics = {
		.where = p->metrics, .interval = p->interval ? p->interval : 10,
		.inputs = p->inputs, .nr_inputs = p->nr_inputs,
		.stop = &stop, .catch_signals = catch_signals,
	};

	return push_metrics(&metrics);
}

int main(int argc, char **argv)
{
	struct push p = {
		.retry = 60, .spool_size = SPOOL_BYTES,
		.symbols.size = sizeof(p.symbols),
	};
	int status = CLI_OK;

	cli_verb_name = "push";
	if (parse(&p, argc, argv, &status))
		status = p.metrics ? show_metrics(&p) : p.follow ? follow(&p) : push(&p);
	free(p.refused);
	free(p.spooled);
	free(p.endpoint);
	free(p.url);
	free(p.shown);
	return status;
}
