// SPDX-License-Identifier: MIT
/* http.h in a build that has no header of libcurl, or can't open libraries: nothing is sent. */
#include "cli/base/cli.h"
#include "push/http.h"

int push_http_open(struct push_http **out, const struct push_http_options *options)
{
	(void)out;
	(void)options;
	return cli_fail("this kbarman-push can't send, because it was built without libcurl: use another build");
}

void push_http_close(struct push_http *http)
{
	(void)http;
}

void push_http_post(struct push_http *http, const char *url, const void *data, size_t size,
		    struct push_reply *reply)
{
	(void)http;
	(void)url;
	(void)data;
	(void)size;
	*reply = (struct push_reply){ .why = "there is no libcurl" };
}
