// SPDX-License-Identifier: MIT
/* See grpc.h. A server is not believed: an answer that is no whole message has a body that is no OTLP. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "push/environment.h"
#include "push/grpc.h"

#define HEAD		5	/* bytes before a message: whether it is packed, and its length */
#define TOO_LARGE	"larger than max"	/* servers in C and in Go say it */

enum { RESOURCE_EXHAUSTED = 8 };

/* By gRPC's status: what HTTP has for it. OTLP asks to try again after those that are 503 here. */
static const short statuses[] = {
	[0] = 200, [1] = 503, [2] = 500, [3] = 400, [4] = 503, [5] = 404, [6] = 400, [7] = 403, [8] = 429,
	[9] = 400, [10] = 503, [11] = 503, [12] = 501, [13] = 500, [14] = 503, [15] = 503, [16] = 401,
};

void *push_grpc_message(const struct push_request *request, size_t *size)
{
	unsigned char *message = malloc(HEAD + request->size);

	if (!message)
		return NULL;
	message[0] = 1;
	for (int i = 0; i < 4; i++)
		message[1 + i] = (unsigned char)(request->size >> (24 - 8 * i));
	memcpy(message + HEAD, request->data, request->size);
	*size = HEAD + request->size;
	return message;
}

static bool is_message(const unsigned char *body, size_t size)
{
	uint32_t length = 0;

	if (size < HEAD || body[0])
		return false;
	for (int i = 0; i < 4; i++)
		length = length << 8 | body[1 + i];
	return length == size - HEAD;
}

void push_grpc_reply(struct push_reply *reply)
{
	unsigned int status;

	if (reply->status != 200)
		return;
	/* What a proxy says that knows no gRPC. With a body, it is not known what became of the request. */
	if (reply->grpc_status < 0 && !reply->size)
		reply->grpc_status = PUSH_GRPC_UNKNOWN;
	if (reply->grpc_status < 0)
		return;
	status = (unsigned int)reply->grpc_status;
	reply->status = status < ARRAY_SIZE(statuses) ? statuses[status] : 500;
	if (status == RESOURCE_EXHAUSTED && strstr(reply->grpc_message, TOO_LARGE))
		reply->status = 413;
	if (status) {
		reply->body = push_unescape(reply->grpc_message);
		reply->size = strlen(reply->body);
	} else if (is_message(reply->body, reply->size)) {
		reply->body = (const char *)reply->body + HEAD;
		reply->size -= HEAD;
	}
}
