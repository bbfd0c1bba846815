/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranges3.c - calls of CUDA inside NVTX's ranges, by the header-only NVTX 3: ranges3 WHAT [N|LIBRARY].
 * With -DLIBRARY the shared object that has range "forward", and an NVTX of its own.
 *
 *   nested N      as ranges has it; range "forward" is that of the shared object
 *   rich          as ranges has it
 *   both          a range of libnvToolsExt inside one of NVTX 3, and in it one of NVTX 3
 *   payload       ranges and a mark with payloads that have a schema
 *   wait LIBRARY  for each byte on stdin:
 *                   x  what nested 1 does      f  the same in a forked child
 *                   l  loads the library; c  calls its range; u  unloads it
 *                   s  prints whether this program's NVTX leads to a tool
 *                   e  becomes nested 1        q  ends
 *   threads N     N threads push and pop until stdin ends, and print that they are alive
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

void ranges3_forward(void);

#ifdef LIBRARY
void ranges3_forward(void)
{
	nvtxRangePushA("forward");
	nvtxRangePop();
}
#else

static char buffer[256];
static void *memory;

static void copy(void)
{
	cudaMemcpy(memory, buffer, sizeof(buffer), cudaMemcpyHostToDevice);
}

static nvtxEventAttributes_t attributes(const char *message)
{
	nvtxEventAttributes_t a = { 0 };

	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = message ? NVTX_MESSAGE_TYPE_ASCII : NVTX_MESSAGE_UNKNOWN;
	a.message.ascii = message;
	return a;
}

static void nested(int n)
{
	for (int i = 0; i < n; i++) {
		nvtxRangePushA("step");
		ranges3_forward();
		nvtxRangePushA("backward");
		copy();
		nvtxMarkA("half");
		nvtxRangePop();
		nvtxRangePop();
	}
}

static void rich(void)
{
	nvtxDomainHandle_t d = nvtxDomainCreateA("mine");
	nvtxStringHandle_t t = nvtxDomainRegisterStringA(d, "registered");
	nvtxEventAttributes_t a = attributes("payload");
	nvtxRangeId_t id, other;

	nvtxNameCategoryA(7, "loader");
	nvtxDomainNameCategoryA(d, 7, "optimizer");
	a.category = 7;
	a.colorType = NVTX_COLOR_ARGB;
	a.color = 0xff00ff00;
	a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
	a.payload.ullValue = 12345;
	nvtxRangePushEx(&a);
	a = attributes(NULL);
	a.category = 7;
	a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	a.message.registered = t;
	nvtxDomainRangePushEx(d, &a);
	nvtxRangePushW(L"wide \u00e9");
	nvtxDomainRangePop(d);
	copy();
	nvtxRangePop();
	nvtxRangePop();
	id = nvtxRangeStartA("first");
	a = attributes("second");
	a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	a.payload.dValue = 2.5;
	other = nvtxDomainRangeStartEx(d, &a);
	nvtxRangeEnd(id);
	nvtxDomainRangeEnd(d, other);
	a = attributes("marked");
	a.payloadType = NVTX_PAYLOAD_TYPE_INT32;
	a.payload.iValue = -3;
	nvtxMarkEx(&a);
}

struct sent {
	uint64_t bytes;
	int rank;
	float share;
	const char *peer;
	char hidden[8];
	int16_t tail;
};

/* An array, a text inside, an enumeration, and a struct inside. */
struct layers {
	int32_t shape[4];
	char stage[8];
	uint8_t op;
	struct {
		uint32_t head;
		float rate;
	} inner;
	uint64_t many[40];
};

static void payload_of_parts(nvtxDomainHandle_t d)
{
	const nvtxPayloadEnum_t ops[] = { { "sum", 0, 0 }, { "max", 2, 0 } };
	const nvtxPayloadEnumAttr_t op = {
		.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE,
		.entries = ops,
		.numEntries = 2,
		.sizeOfEnum = 1,
	};
	const nvtxPayloadSchemaEntry_t inner[] = {
		{ .type = NVTX_PAYLOAD_ENTRY_TYPE_UINT32, .name = "head" },
		{ .type = NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, .name = "rate" },
	};
	nvtxPayloadSchemaAttr_t schema = {
		.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
		.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
		.entries = inner,
		.numEntries = 2,
		.payloadStaticSize = 8,
	};
	uint64_t op_id = nvtxPayloadEnumRegister(d, &op);
	uint64_t inner_id = nvtxPayloadSchemaRegister(d, &schema);
	const nvtxPayloadSchemaEntry_t entries[] = {
		{ .flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE,
		  .type = NVTX_PAYLOAD_ENTRY_TYPE_INT32,
		  .name = "shape",
		  .arrayOrUnionDetail = 4 },
		{ .type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING,
		  .name = "stage",
		  .arrayOrUnionDetail = 8,
		  .offset = offsetof(struct layers, stage) },
		{ .type = op_id, .name = "op", .offset = offsetof(struct layers, op) },
		{ .type = inner_id, .name = "inner", .offset = offsetof(struct layers, inner) },
		{ .flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE,
		  .type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64,
		  .name = "many",
		  .arrayOrUnionDetail = 40,
		  .offset = offsetof(struct layers, many) },
	};
	struct layers l = { { 2, -1, 64, 64 }, "decode", 2, { 7, 0.5f }, { 0 } };
	nvtxPayloadData_t data = { 0, sizeof(l), &l };
	nvtxEventAttributes_t a = attributes("parts");

	schema.entries = entries;
	schema.numEntries = sizeof(entries) / sizeof(entries[0]);
	schema.payloadStaticSize = sizeof(l);
	data.schemaId = nvtxPayloadSchemaRegister(d, &schema);
	a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
	a.reserved0 = 1;
	a.payload.ullValue = (uint64_t)(uintptr_t)&data;
	nvtxDomainMarkEx(d, &a);
	l.op = 1; /* which has no name; and the payload ends within an array */
	data.size = offsetof(struct layers, many) + 8;
	nvtxDomainMarkEx(d, &a);
}

static void payload(void)
{
	const nvtxPayloadSchemaEntry_t entries[] = {
		{ .type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "bytes" },
		{ .type = NVTX_PAYLOAD_ENTRY_TYPE_INT, .name = "rank" },
		{ .type = NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, .name = "share" },
		{ .type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING,
		  .name = "peer",
		  .offset = offsetof(struct sent, peer) },
		{ .flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE | NVTX_PAYLOAD_ENTRY_FLAG_HIDE,
		  .type = NVTX_PAYLOAD_ENTRY_TYPE_CHAR,
		  .name = "hidden",
		  .arrayOrUnionDetail = 8,
		  .offset = offsetof(struct sent, hidden) },
		{ .type = NVTX_PAYLOAD_ENTRY_TYPE_INT16,
		  .name = "tail",
		  .offset = offsetof(struct sent, tail) },
	};
	nvtxPayloadSchemaAttr_t schema = {
		.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
		.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
		.entries = entries,
		.numEntries = sizeof(entries) / sizeof(entries[0]),
		.payloadStaticSize = sizeof(struct sent),
	};
	nvtxDomainHandle_t d = nvtxDomainCreateA("net");
	struct sent sent = { 1 << 20, -3, 0.25f, "node7", "secret", -2 };
	nvtxPayloadData_t data = { nvtxPayloadSchemaRegister(d, &schema), sizeof(sent), &sent };
	nvtxEventAttributes_t a = attributes("send");

	a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
	a.reserved0 = 1;
	a.payload.ullValue = (uint64_t)(uintptr_t)&data;
	nvtxDomainRangePushEx(d, &a);
	nvtxDomainRangePop(d);
	a.message.ascii = "default domain"; /* which has no such schema */
	nvtxMarkEx(&a);
	a.message.ascii = "broken";
	data.payload = (void *)16; /* nothing is there */
	nvtxDomainMarkEx(d, &a);
	a.message.ascii = "short";
	data.payload = &sent;
	data.size = 12;
	nvtxDomainRangeEnd(d, nvtxDomainRangeStartEx(d, &a));
	a.payloadType = NVTX_PAYLOAD_TYPE_INT32;
	a.payload.iValue = 5;
	a.message.ascii = "plain";
	nvtxDomainMarkEx(d, &a);
	payload_of_parts(d);
}

static int both(void)
{
	void *library = dlopen("libnvToolsExt.so.1", RTLD_NOW);
	int (*push)(const char *) = library ? dlsym(library, "nvtxRangePushA") : NULL;
	int (*pop)(void) = library ? dlsym(library, "nvtxRangePop") : NULL;

	if (!push || !pop)
		return 1;
	nvtxRangePushA("first");
	push("second");
	nvtxRangePushA("third");
	nvtxRangePop();
	pop();
	nvtxRangePop();
	return 0;
}

static void *push_and_pop(void *end)
{
	while (!__atomic_load_n((int *)end, __ATOMIC_RELAXED)) {
		nvtxRangePushA("busy");
		nvtxRangePop();
	}
	return NULL;
}

static int threads(int n)
{
	pthread_t *all = calloc((size_t)n, sizeof(*all));
	char byte;
	int end = 0;

	for (int i = 0; i < n; i++)
		if (pthread_create(&all[i], NULL, push_and_pop, &end))
			return 1;
	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	__atomic_store_n(&end, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < n; i++)
		pthread_join(all[i], NULL);
	free(all);
	printf("alive\n");
	return 0;
}

static void call(void *library)
{
	void (*forward)(void) = library ? (void (*)(void))dlsym(library, "ranges3_forward") : NULL;

	if (forward)
		forward();
}

static void obey(char byte, const char *path, char **argv)
{
	static void *library;
	pid_t child;

	switch (byte) {
	case 'x': nested(1); break;
	case 'f':
		child = fork();
		if (!child) {
			nested(1);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		break;
	case 'l': library = dlopen(path, RTLD_NOW | RTLD_LOCAL); break;
	case 'c': call(library); break;
	case 'u': dlclose(library); break;
	case 's':
		printf("slot %s\n", nvtxGlobals_v3.nvtxRangePushA_impl_fnptr ? "set" : "empty");
		break;
	case 'e': execl(argv[0], argv[0], "nested", "1", NULL); break;
	default: break;
	}
	printf("done %c\n", byte);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "1";
	char byte;

	if (cudaMalloc(&memory, sizeof(buffer)))
		return 1;
	if (!strcmp(what, "nested")) {
		nested(atoi(arg));
	} else if (!strcmp(what, "rich")) {
		rich();
	} else if (!strcmp(what, "payload")) {
		payload();
	} else if (!strcmp(what, "both")) {
		return both();
	} else if (!strcmp(what, "threads")) {
		return threads(atoi(arg));
	} else if (!strcmp(what, "wait")) {
		nvtxRangePushA("outer");
		printf("ready\n");
		fflush(stdout);
		while (read(STDIN_FILENO, &byte, 1) > 0 && byte != 'q')
			obey(byte, arg, argv);
		nvtxRangePop();
	} else {
		return 2;
	}
	cudaFree(memory);
	return 0;
}
#endif
