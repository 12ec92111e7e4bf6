// SPDX-License-Identifier: MIT
/*
 * The TPTP text, statement by statement: sizes, places and values as its tables give
 * them, which stand here a second time so that a slip in the codec's is seen.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "test_tptp.h"

/* Names of the rows behind ID and Length: I 4 bytes, L 8, B 1, S text, Z String[], J Long[]. */
static const struct {
	uint16_t id;
	const char *name;
	const char *rows;
} text[] = {
	{ 1001, "node",
	  "nodeId:S hostname:S ipAddress:S timeZone:I timestamp:L" },
	{ 1002, "processCreate",
	  "processId:S name:S pid:I nodeIdRef:S timestamp:L executable:S" },
	{ 1003, "agentCreate",
	  "agentId:S processId:S name:S type:S timestamp:L parameters:S version:S" },
	{ 1004, "agentDestroy",
	  "agentId:S timestamp:L" },
	{ 1005, "traceStart",
	  "traceId:S agentId:S timestamp:L collationValue:S" },
	{ 1006, "traceEnd",
	  "traceId:S timestamp:L collationValue:S" },
	{ 1007, "filter",
	  "traceId:S pattern:S genericPattern:S mode:S methodPattern:S "
	  "methodGenericPattern:S methodMode:S" },
	{ 1008, "option",
	  "traceId:S key:S value:S" },
	{ 1009, "threadStart",
	  "transientThreadId:L threadId:L timestamp:L groupName:S parentGroupName:S "
	  "transientObjectId:L objectId:L threadName:S collationValue:S traceId:S" },
	{ 1010, "threadEnd",
	  "transientThreadId:L threadId:L timestamp:L collationValue:S traceId:S" },
	{ 1011, "classDef",
	  "transientThreadId:L threadId:L timestamp:L numberOfInterfaces:I "
	  "interfaceNames:S transientClassId:L classId:L sourceName:S classLoader:S "
	  "superClass:S transientObjectId:L objectId:L name:S access:S "
	  "numberOfStaticFields:I numberOfMethods:I numberOfInstanceFields:I "
	  "collationValue:S traceId:S" },
	{ 1012, "methodDef",
	  "name:S signature:S isNative:B isAbstract:B isStatic:B isSynchronized:B "
	  "exceptions:S startLine:L endLine:L signatureNotation:S transientClassId:L "
	  "classId:L methodId:L collationValue:S traceId:S" },
	{ 1014, "objAlloc",
	  "transientThreadId:L threadId:L timestamp:L isArray:B transientObjectId:L "
	  "objectId:L size:L line:L methodId:L transientClassId:L classId:L contextData:S "
	  "collationValue:S traceId:S" },
	{ 1015, "methodEntry",
	  "transientThreadId:L threadId:L timestamp:L methodId:L ticket:I "
	  "transientObjectId:L classId:L threadCpuTime:L sequenceCounter:L stackDepth:L "
	  "collationValue:S traceId:S" },
	{ 1016, "methodExit",
	  "transientThreadId:L threadId:L timestamp:L ticket:I threadCpuTime:L methodId:L "
	  "transientObjectId:L objectId:L transientClassId:L classId:L sequenceCounter:S "
	  "collationValue:S traceId:S" },
	{ 1023, "gcStart",
	  "transientThreadId:L threadId:L timestamp:L collationValue:S traceId:S" },
	{ 1024, "objFree",
	  "transientThreadId:L threadId:L timestamp:L transientObjectId:L objectId:L "
	  "objectAge:L sequenceCounter:L stackDepth:L collationValue:S traceId:S" },
	{ 1027, "gcFinish",
	  "transientThreadId:L threadId:L timestamp:L totalObjectSpace:L "
	  "usedObjectSpace:L usedObject:L collationValue:S traceId:S" },
	{ 1030, "runtimeInitDone",
	  "transientThreadId:L threadId:L timestamp:L collationValue:S traceId:S" },
	{ 1031, "runtimeShutdown",
	  "transientThreadId:L threadId:L timestamp:L collationValue:S traceId:S" },
	{ 1032, "monWait",
	  "threadId:L timestamp:L objectId:L timeout:L stackDepth:I stackMethods:Z "
	  "stackLines:J" },
	{ 1033, "monWaited",
	  "threadId:L timestamp:L objectId:L timeout:L stackDepth:I stackMethods:Z "
	  "stackLines:J" },
	{ 1034, "monContendedEnter",
	  "threadId:L timestamp:L objectId:L threadOwnerId:L stackDepth:I stackMethods:Z "
	  "stackLines:J" },
	{ 1035, "monContendedEntered",
	  "threadId:L timestamp:L objectId:L stackDepth:I stackMethods:Z stackLines:J" },
	{ 1036, "agMethodEntry",
	  "threadId:L methodId:L baseTime:L minimumTime:L maximumTime:L baseCpuTime:L "
	  "numberOfCalls:L" },
	{ 1037, "agMethodExit",
	  "threadId:L methodId:L" },
	{ 1038, "hdStart",
	  "heapDumpId:L timestamp:L name:S baseTime:L" },
	{ 1039, "gcRoot",
	  "classId:L objectId:L type:S" },
	{ 1040, "objRef",
	  "sourceId:L targetId:L heapDumpId:L" },
	{ 1041, "custom",
	  "customBody:S" },
};

#define NR_TABLES	(sizeof(text) / sizeof(text[0]))
#define PREAMBLE	(12 + (6 + 6) + (6 + 8))	/* header, "UTF-8", the frequency */

/* Row @index of a table: its name and type; false behind the last one. */
static bool row(const char *rows, int index, char *name, char *type)
{
	int used;

	for (int i = 0; sscanf(rows, " %39[^:]:%c%n", name, type, &used) == 2; i++, rows += used)
		if (i == index)
			return true;
	return false;
}

/* Bytes of a row with its default value. */
static size_t default_bytes(char type)
{
	return type == 'L' ? 8 : type == 'I' ? 4 : type == 'B' || type == 'S' ? 1 : 0;
}

static bool type_is(char type, uint8_t found)
{
	switch (found) {
	case KB_TPTP_TYPE_BYTE:
		return type == 'B';
	case KB_TPTP_TYPE_INTEGER:
		return type == 'I';
	case KB_TPTP_TYPE_LONG:
	case KB_TPTP_TYPE_TIME:
		return type == 'L';
	case KB_TPTP_TYPE_STRING:
		return type == 'S';
	case KB_TPTP_TYPE_STRINGS:
		return type == 'Z';
	default:
		return type == 'J';
	}
}

static bool table_is_as_in_text(unsigned int k)
{
	const struct kb_tptp_table *table = kb_tptp_table(text[k].id);
	char name[40], type;
	int i;

	if (!table || table->id != text[k].id || strcmp(table->name, text[k].name) ||
	    kb_tptp_table_by_name(text[k].name, strlen(text[k].name)) != table)
		return false;
	for (i = 0; row(text[k].rows, i, name, &type); i++)
		if (i >= table->nr_fields || strcmp(table->fields[i].name, name) ||
		    !type_is(type, table->fields[i].type))
			return false;
	return i == table->nr_fields;
}

/* Encode one message; returns its bytes, behind the header and the system messages. */
static const uint8_t *encode(struct trace *trace, const struct kb_tptp_layout *layout,
			     const struct kb_tptp_message *message, size_t *size)
{
	const uint8_t *data;

	trace_begin(trace, layout);
	if (kb_tptp_writer_message(trace->writer, message))
		return NULL;
	data = trace_data(trace, size);
	*size -= PREAMBLE;
	return data + PREAMBLE;
}

static uint64_t integer_at(const uint8_t *p, unsigned int bytes, bool big)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < bytes; i++)
		value |= (uint64_t)p[big ? bytes - 1 - i : i] << (8 * i);
	return value;
}

/* Every row alone: its value stands where the table puts it, all others are default. */
static bool rows_stand_in_order(unsigned int k, bool big)
{
	const struct kb_tptp_layout layout = LAYOUT(.binary = true, .big_endian = big);
	size_t offset = 6, total = 6, size;
	char name[40], type;

	for (int i = 0; row(text[k].rows, i, name, &type); i++)
		total += default_bytes(type);
	for (int i = 0; row(text[k].rows, i, name, &type); i++) {
		struct kb_tptp_message message;
		struct trace trace;
		const uint8_t *p;
		bool good;

		kb_tptp_message_init(&message, text[k].id);
		if (type == 'L')
			message.values[i].number = 0x0102030405060708;
		else if (type == 'I' && strcmp(name, "stackDepth"))
			message.values[i].number = 0x01020304;
		else if (type == 'B')
			message.values[i].number = 0xfe;
		else if (type == 'S')
			message.values[i].string = kb_text("xyz");
		p = encode(&trace, &layout, &message, &size);
		good = p && size == total + (type == 'S' ? 3 : 0) &&
		       integer_at(p, 2, big) == text[k].id && integer_at(p + 2, 4, big) == size;
		for (size_t b = 6; good && b < size; b++)
			if (b < offset || b >= offset + default_bytes(type) + (type == 'S' ? 3 : 0))
				good = !p[b];
		if (good && type == 'L')
			good = integer_at(p + offset, 8, big) == 0x0102030405060708;
		if (good && type == 'I' && strcmp(name, "stackDepth"))
			good = integer_at(p + offset, 4, big) == 0x01020304;
		if (good && type == 'B')
			good = p[offset] == 0xfe;
		if (good && type == 'S')
			good = !memcmp(p + offset, "xyz", 4);
		trace_free(&trace);
		if (!good) {
			tap_note("%s.%s", text[k].name, name);
			return false;
		}
		offset += default_bytes(type);
	}
	return true;
}

static void test_tables(void)
{
	static const uint16_t free_ids[] = { 0, 3, 32, 1000, 1013, 1017, 1018, 1019, 1020, 1021, 1022,
					     1025, 1026, 1028, 1029, 1042, 32767, 65535 };
	bool free = true;
	char name[80];

	tap_is(NR_TABLES, 30, "the_text_has_30_tables");
	tap_ok(!kb_tptp_table_at(NR_TABLES + 2) && kb_tptp_table_at(NR_TABLES + 1),
	       "and_two_system_messages_and_no_more");
	for (size_t i = 0; i < sizeof(free_ids) / sizeof(free_ids[0]); i++)
		free = free && !kb_tptp_table(free_ids[i]);
	tap_ok(free, "unassigned_ids_have_no_table");
	for (unsigned int k = 0; k < NR_TABLES; k++) {
		snprintf(name, sizeof(name), "rows_are_those_of_the_table: %s", text[k].name);
		tap_ok(table_is_as_in_text(k), name);
		snprintf(name, sizeof(name), "rows_stand_in_order_in_the_message: %s", text[k].name);
		tap_ok(rows_stand_in_order(k, false) && rows_stand_in_order(k, true), name);
	}
}

static void example(struct kb_tptp_message *message)
{
	kb_tptp_message_init(message, KB_TPTP_THREAD_START);
	message->values[KB_TPTP_THREAD_START_THREAD_ID].number = 1;
	message->values[KB_TPTP_THREAD_START_TIMESTAMP].number = 1185890426304424453;
	message->values[KB_TPTP_THREAD_START_OBJECT_ID].number = 1;
	message->values[KB_TPTP_THREAD_START_THREAD_NAME].string = kb_text("Reference Handler");
	message->values[KB_TPTP_THREAD_START_GROUP_NAME].string = kb_text("system");
}

/* Does a whole XML trace of this one message have this line? */
static bool xml_is(const struct kb_tptp_message *message, const char *line)
{
	static const char head[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<TRACE>\n";
	char want[1024];
	struct trace trace;
	const uint8_t *data;
	size_t size;
	bool same;

	snprintf(want, sizeof(want), "%s%s\n</TRACE>\n", head, line);
	trace_begin(&trace, &(struct kb_tptp_layout)LAYOUT(.binary = false));
	kb_tptp_writer_message(trace.writer, message);
	kb_tptp_writer_finish(trace.writer);
	data = trace_data(&trace, &size);
	same = size == strlen(want) && !memcmp(data, want, size);
	if (!same)
		tap_note("got %.*s", (int)size, (const char *)data);
	trace_free(&trace);
	return same;
}

static void test_example(void)
{
	struct kb_tptp_message message;
	struct trace trace;
	size_t size;

	example(&message);
	encode(&trace, &(struct kb_tptp_layout)LAYOUT(.binary = true), &message, &size);
	tap_is(size, 74, "the_example_message_has_74_bytes_by_the_tables");
	trace_free(&trace);
	tap_ok(xml_is(&message, "<threadStart threadId=\"1\" time=\"1185890426.304424453\" "
				"threadName=\"Reference Handler\" groupName=\"system\" parentName=\"\" "
				"objIdRef=\"1\"/>"),
	       "the_example_is_the_tag_it_was_made_of");
}

static void test_header(void)
{
	static const uint8_t little[] = {
		'0', 'T', 'B', 'F', 1, 0, 1, 1, 12, 0, 0, 0,
		1, 0, 12, 0, 0, 0, 'U', 'T', 'F', '-', '8', 0,
		2, 0, 14, 0, 0, 0, 0x00, 0xca, 0x9a, 0x3b, 0, 0, 0, 0,
	};
	static const uint8_t big[] = {
		'0', 'T', 'B', 'F', 1, 0, 0, 0, 0, 0, 0, 12,
		0, 1, 0, 0, 0, 12, 'U', 'T', 'F', '-', '8', 0,
		0, 2, 0, 0, 0, 14, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0x00,
	};
	struct trace trace;
	const uint8_t *data;
	size_t size;

	trace_begin(&trace, &(struct kb_tptp_layout)LAYOUT(.binary = true));
	data = trace_data(&trace, &size);
	tap_ok(size == sizeof(little) && !memcmp(data, little, size),
	       "a_trace_starts_with_header_encoding_frequency");
	trace_free(&trace);
	trace_begin(&trace, &(struct kb_tptp_layout)LAYOUT(.binary = true, .big_endian = true,
						      .platform_32 = true));
	data = trace_data(&trace, &size);
	tap_ok(size == sizeof(big) && !memcmp(data, big, size),
	       "byte_order_holds_from_the_offset_field_on");
	trace_free(&trace);
}

/* Read @data: number of messages, or a negative errno of the opening. */
static int count(const void *data, size_t size, int *errors, struct kb_error *err)
{
	struct kb_tptp_message message;
	struct kb_tptp *tptp;
	int ret, n = 0;

	*errors = 0;
	ret = kb_tptp_open_memory(&tptp, data, size, err);
	if (ret)
		return ret;
	while ((ret = kb_tptp_next(tptp, &message, err)) != 0) {
		n += ret > 0;
		*errors += ret < 0;
	}
	kb_tptp_close(tptp);
	return n;
}

static void test_reader(void)
{
	static const uint8_t unknown[] = { 0xf5, 3, 9, 0, 0, 0, 1, 2, 3, 5, 0, 6, 0, 0, 0 };
	uint8_t data[512];
	struct kb_tptp_message message;
	struct kb_error err = { .text = "" };
	struct trace trace;
	const uint8_t *bytes;
	size_t size;
	int errors;

	example(&message);
	trace_begin(&trace, &(struct kb_tptp_layout)LAYOUT(.binary = true));
	kb_tptp_writer_message(trace.writer, &message);
	bytes = trace_data(&trace, &size);

	memcpy(data, bytes, size);
	data[0] = 0;
	tap_is(count(data, size, &errors, &err), 3, "a_magic_with_a_nul_is_read_too");

	memcpy(data, bytes, 12);
	memset(data + 12, 0xff, 8);
	memcpy(data + 20, bytes + 12, size - 12);
	data[8] = 20;
	tap_ok(count(data, size + 8, &errors, &err) == 3 && !errors,
	       "the_offset_to_data_is_followed");

	memcpy(data, bytes, size);
	memcpy(data + size, unknown, sizeof(unknown));
	memcpy(data + size + sizeof(unknown), bytes + PREAMBLE, size - PREAMBLE);
	tap_ok(count(data, size * 2 + sizeof(unknown) - PREAMBLE, &errors, &err) == 4 && !errors,
	       "unassigned_ids_are_skipped_by_length");

	memcpy(data, bytes, size);
	data[5] = 7;
	tap_ok(count(data, size, &errors, &err) == 3 && !errors, "any_minor_version_is_read");
	data[4] = 2;
	tap_is(count(data, size, &errors, &err), -EBADMSG, "another_major_version_is_refused");
	tap_ok(strstr(err.text, "version 2.7"), "and_named");
	trace_free(&trace);

	tap_is(count("", 0, &errors, &err), -ENODATA, "an_empty_file_is_no_trace");
	tap_is(count("BARMAN64", 8, &errors, &err), -ENODATA, "another_format_is_no_trace");
	tap_is(count("<html><node/></html>", 20, &errors, &err), -ENODATA, "other_xml_is_no_trace");
	tap_is(count("<TRACE><traceEnd/></TRACE>", 26, &errors, &err), 1, "xml_needs_no_declaration");
}

static void test_frequency(void)
{
	static const uint8_t ticks[] = {
		'0', 'T', 'B', 'F', 1, 0, 1, 1, 12, 0, 0, 0,
		2, 0, 14, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
	};
	struct kb_tptp_message message;
	struct kb_tptp *tptp;
	struct trace trace;
	const uint8_t *data;
	size_t size;

	if (kb_tptp_open_memory(&tptp, ticks, sizeof(ticks), NULL)) {
		tap_ok(false, "a_trace_of_three_ticks_a_second_opens");
		return;
	}
	kb_tptp_next(tptp, &message, NULL);
	tap_is(kb_tptp_ns(tptp, 4), 1333333333, "ticks_convert_by_the_frequency");
	tap_is(kb_tptp_ns(tptp, -4), -1333333334, "ticks_round_down");
	tap_is(kb_tptp_ns(tptp, INT64_MAX), INT64_MAX, "ticks_saturate_above");
	tap_is(kb_tptp_ns(tptp, INT64_MIN), INT64_MIN, "ticks_saturate_below");
	kb_tptp_close(tptp);

	trace_begin(&trace, &(struct kb_tptp_layout)LAYOUT(.frequency = 4));
	kb_tptp_message_init(&message, KB_TPTP_TRACE_END);
	message.values[KB_TPTP_TRACE_END_TIMESTAMP].number = -1;
	kb_tptp_writer_message(trace.writer, &message);
	message.values[KB_TPTP_TRACE_END_TIMESTAMP].number = 7;
	kb_tptp_writer_message(trace.writer, &message);
	kb_tptp_writer_finish(trace.writer);
	data = trace_data(&trace, &size);
	tap_ok(memmem(data, size, "<traceEnd time=\"-0.250000000\"/>\n"
				  "<traceEnd time=\"1.750000000\"/>\n", 62),
	       "xml_has_seconds_whatever_the_frequency");
	trace_free(&trace);
}

static void test_xml_names(void)
{
	struct kb_tptp_message m;
	const struct kb_text stack[] = { kb_text("a b"), kb_text(""), kb_text("50%") };
	const int64_t lines[] = { 7, -1, 0 };

	kb_tptp_message_init(&m, KB_TPTP_NODE);
	m.values[KB_TPTP_NODE_TIMESTAMP].number = 1500000000;
	m.values[KB_TPTP_NODE_TIME_ZONE].number = -60;
	m.values[KB_TPTP_NODE_HOSTNAME].string = kb_text("h");
	tap_ok(xml_is(&m, "<node nodeId=\"\" hostname=\"h\" ipaddress=\"\" timezone=\"-60\" "
			  "time=\"1.500000000\"/>"), "xml_order_of_node");
	kb_tptp_message_init(&m, KB_TPTP_PROCESS_CREATE);
	tap_ok(xml_is(&m, "<processCreate processId=\"\" pid=\"0\" nodeIdRef=\"\" time=\"0.000000000\"/>"),
	       "xml_order_of_processCreate");
	m.values[KB_TPTP_PROCESS_CREATE_NAME].string = kb_text("init");
	tap_ok(xml_is(&m, "<processCreate processId=\"\" pid=\"0\" nodeIdRef=\"\" time=\"0.000000000\" "
			  "name=\"init\"/>"), "rows_that_real_files_lack_follow_if_not_empty");
	kb_tptp_message_init(&m, KB_TPTP_AGENT_CREATE);
	tap_ok(xml_is(&m, "<agentCreate agentId=\"\" version=\"\" processIdRef=\"\" agentName=\"\" "
			  "agentType=\"\" agentParameters=\"\" time=\"0.000000000\"/>"),
	       "xml_order_of_agentCreate");
	kb_tptp_message_init(&m, KB_TPTP_TRACE_START);
	tap_ok(xml_is(&m, "<traceStart traceId=\"\" agentIdRef=\"\" time=\"0.000000000\"/>"),
	       "xml_order_of_traceStart");
	kb_tptp_message_init(&m, KB_TPTP_FILTER);
	tap_ok(xml_is(&m, "<filter pattern=\"\" mode=\"\" genericPattern=\"\" methodPattern=\"\" "
			  "methodMode=\"\" methodGenericPattern=\"\"/>"), "xml_order_of_filter");
	kb_tptp_message_init(&m, KB_TPTP_OPTION);
	tap_ok(xml_is(&m, "<option key=\"\" value=\"\"/>"), "xml_order_of_option");
	kb_tptp_message_init(&m, KB_TPTP_THREAD_END);
	tap_ok(xml_is(&m, "<threadEnd threadIdRef=\"0\" time=\"0.000000000\"/>"),
	       "xml_order_of_threadEnd");
	kb_tptp_message_init(&m, KB_TPTP_CLASS_DEF);
	tap_ok(xml_is(&m, "<classDef name=\"\" sourceName=\"\" classId=\"0\" time=\"0.000000000\"/>"),
	       "xml_order_of_classDef");
	kb_tptp_message_init(&m, KB_TPTP_METHOD_DEF);
	tap_ok(xml_is(&m, "<methodDef name=\"\" signature=\"\" startLineNumber=\"0\" endLineNumber=\"0\" "
			  "methodId=\"0\" classIdRef=\"0\"/>"), "xml_order_of_methodDef");
	kb_tptp_message_init(&m, KB_TPTP_METHOD_ENTRY);
	tap_ok(xml_is(&m, "<methodEntry threadIdRef=\"0\" time=\"0.000000000\" methodIdRef=\"0\" "
			  "classIdRef=\"0\" ticket=\"0\" stackDepth=\"0\"/>"),
	       "xml_order_of_methodEntry");
	kb_tptp_message_init(&m, KB_TPTP_METHOD_EXIT);
	tap_ok(xml_is(&m, "<methodExit threadIdRef=\"0\" methodIdRef=\"0\" classIdRef=\"0\" ticket=\"0\" "
			  "time=\"0.000000000\"/>"), "xml_order_of_methodExit");
	kb_tptp_message_init(&m, KB_TPTP_MON_WAIT);
	m.values[KB_TPTP_MON_WAIT_STACK_DEPTH].number = 3;
	m.values[KB_TPTP_MON_WAIT_STACK_METHODS].strings = stack;
	m.values[KB_TPTP_MON_WAIT_STACK_LINES].longs = lines;
	tap_ok(xml_is(&m, "<monWait threadIdRef=\"0\" time=\"0.000000000\" objIdRef=\"0\" timeout=\"0\" "
			  "stackDepth=\"3\" stackMethods=\"a%20b  50%25\" stackLines=\"7 -1 0\"/>"),
	       "stacks_are_lists_with_one_blank_between");
}

static void test_strings(void)
{
	static const struct {
		const char *name, *bytes;
		size_t length;
		const char *binary, *xml;
	} cases[] = {
		{ "xml_escapes_what_it_must", "<&>\"'", 5, "<&>\"'", "&lt;&amp;&gt;&quot;&apos;" },
		{ "blanks_survive_attributes", "\t\n\r ", 4, "\t\n\r ", "&#9;&#10;&#13; " },
		{ "strings_end_at_a_nul", "ab\0cd", 5, "ab", "ab" },
		{ "xml_has_no_control_characters", "\x01\x1f\x7f", 3, "\x01\x1f\x7f",
		  "\xef\xbf\xbd\xef\xbf\xbd&#127;" },
		{ "what_steers_a_terminal_is_a_number_in_xml", "\xc2\x9b" "2J\xe2\x80\xae", 7,
		  "\xc2\x9b" "2J\xe2\x80\xae", "&#155;2J&#8238;" },
		{ "a_lone_byte_is_replaced", "a\xff" "b", 3, "a\xef\xbf\xbd" "b", "a\xef\xbf\xbd" "b" },
		{ "a_cut_character_is_replaced_once", "\xe2\x82", 2, "\xef\xbf\xbd", "\xef\xbf\xbd" },
		{ "overlong_forms_are_replaced", "\xc0\x80", 2, "\xef\xbf\xbd\xef\xbf\xbd",
		  "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "surrogates_are_replaced", "\xed\xa0\x80", 3,
		  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
		  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "what_xml_forbids_is_replaced", "\xef\xbf\xbe", 3, "\xef\xbf\xbe", "\xef\xbf\xbd" },
		{ "long_text_stays", "abcdefgh\xc3\xa4ijklmnop\xf0\x9f\x98\x80qrstuvwx", 30,
		  "abcdefgh\xc3\xa4ijklmnop\xf0\x9f\x98\x80qrstuvwx",
		  "abcdefgh\xc3\xa4ijklmnop\xf0\x9f\x98\x80qrstuvwx" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kb_tptp_message message;
		struct trace trace;
		char line[256];
		const uint8_t *p;
		size_t size;

		kb_tptp_message_init(&message, KB_TPTP_CUSTOM);
		message.values[KB_TPTP_CUSTOM_CUSTOM_BODY].string =
			(struct kb_text){ cases[i].bytes, cases[i].length };
		p = encode(&trace, &(struct kb_tptp_layout)LAYOUT(.binary = true), &message, &size);
		snprintf(line, sizeof(line), "<custom body=\"%s\"/>", cases[i].xml);
		tap_ok(p && size == 6 + strlen(cases[i].binary) + 1 &&
		       !memcmp(p + 6, cases[i].binary, size - 6) && xml_is(&message, line),
		       cases[i].name);
		trace_free(&trace);
	}
}

static void test_refusals(void)
{
	struct kb_tptp_message message;
	struct trace trace;
	size_t before, after;
	char *huge = calloc(1, KB_TPTP_MAX_TEXT + 1);
	int bad = 0;

	memset(huge, 'x', KB_TPTP_MAX_TEXT + 1);
	trace_begin(&trace, &(struct kb_tptp_layout)LAYOUT(.binary = true));
	trace_data(&trace, &before);
	kb_tptp_message_init(&message, KB_TPTP_METHOD_ENTRY);
	message.values[KB_TPTP_METHOD_ENTRY_TICKET].number = (int64_t)INT32_MAX + 1;
	bad += kb_tptp_writer_message(trace.writer, &message) == -EINVAL;
	kb_tptp_message_init(&message, KB_TPTP_OBJ_ALLOC);
	message.values[KB_TPTP_OBJ_ALLOC_IS_ARRAY].number = 256;
	bad += kb_tptp_writer_message(trace.writer, &message) == -EINVAL;
	kb_tptp_message_init(&message, KB_TPTP_MON_WAIT);
	message.values[KB_TPTP_MON_WAIT_STACK_DEPTH].number = -1;
	bad += kb_tptp_writer_message(trace.writer, &message) == -EINVAL;
	message.values[KB_TPTP_MON_WAIT_STACK_DEPTH].number = KB_TPTP_MAX_DEPTH + 1;
	bad += kb_tptp_writer_message(trace.writer, &message) == -EMSGSIZE;
	kb_tptp_message_init(&message, KB_TPTP_CUSTOM);
	message.values[0].string = (struct kb_text){ huge, KB_TPTP_MAX_TEXT + 1 };
	bad += kb_tptp_writer_message(trace.writer, &message) == -EMSGSIZE;
	message.table = NULL;
	bad += kb_tptp_writer_message(trace.writer, &message) == -EINVAL;
	trace_data(&trace, &after);
	tap_is(bad, 6, "what_does_not_fit_is_refused");
	tap_is(after, before, "and_leaves_no_trace");
	kb_tptp_message_init(&message, KB_TPTP_CUSTOM);
	message.values[0].string = (struct kb_text){ huge, KB_TPTP_MAX_TEXT };
	tap_is(kb_tptp_writer_message(trace.writer, &message), 0, "the_longest_text_is_taken");
	trace_free(&trace);
	free(huge);
}

static int negotiate(const char *line, bool want, bool close_it)
{
	int fds[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return -errno;
	if (line && write(fds[1], line, strlen(line)) < 0)
		return -errno;
	if (close_it)
		shutdown(fds[1], SHUT_WR);
	ret = kb_tptp_negotiate(fds[0], want, 50);
	close(fds[0]);
	close(fds[1]);
	return ret;
}

static void test_negotiation(void)
{
	tap_is(negotiate("format=binary\n", true, false), 1, "binary_if_both_want_it");
	tap_is(negotiate("format=binary\r\n", true, false), 1, "a_line_may_end_with_cr_lf");
	tap_is(negotiate("format=binary\n", false, false), 0, "xml_if_binary_was_not_asked_for");
	tap_is(negotiate(NULL, true, false), 0, "xml_if_the_client_says_nothing");
	tap_is(negotiate(NULL, true, true), 0, "xml_if_the_client_closes_its_side");
	tap_is(negotiate("format=xml\n", true, false), 0, "xml_if_the_client_says_so");
	tap_is(negotiate("format=binary2\n", true, false), 0, "xml_if_the_line_is_unknown");
	tap_is(negotiate("format=binary", true, true), 0, "xml_if_the_line_has_no_end");
}

int main(void)
{
	test_tables();
	test_header();
	test_example();
	test_reader();
	test_frequency();
	test_xml_names();
	test_strings();
	test_refusals();
	test_negotiation();
	return tap_done();
}
