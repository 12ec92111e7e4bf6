/* SPDX-License-Identifier: MIT */
/*
 * OTLP over gRPC: a request is a call with one message, and the status of the call stands behind the answer.
 * Source: "gRPC over HTTP2" of the gRPC project, and the part on failures of OTLP's specification.
 */
#ifndef KBARMAN_PUSH_GRPC_H
#define KBARMAN_PUSH_GRPC_H

#include "push/http.h"
#include "push/request.h"

#define PUSH_GRPC_PATH	"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

/* The request, which gzip has packed, as the message of a call; its data are to be freed. NULL: no memory. */
void *push_grpc_message(const struct push_request *request, size_t *size);

/*
 * Makes of a call's answer one as HTTP has it: the status that means the same, and the message in the
 * answer, or what the server says of a failure, as body.
 */
void push_grpc_reply(struct push_reply *reply);

#endif
