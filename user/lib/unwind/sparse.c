// SPDX-License-Identifier: MIT
#include <errno.h>

#include "unwind/bytes.h"
#include "unwind/sparse.h"

#define RECORD_PC	63U	/* the number of the program counter in records */
#define CHUNK		64U	/* words of a bit map */
#define ALIGNMENT	4U	/* words: the stack begins at a multiple of these */
#define BASE_SHIFT	30	/* of a word: the bits that say to what the others are added */

/* The bits of the registers as this library has them, in the same order; 0: they are none. */
static uint64_t registers_of(uint64_t record)
{
	uint64_t pc = record >> RECORD_PC, others = record & ~(UINT64_C(1) << RECORD_PC);

	return others >> KB_UNWIND_PC ? 0 : others | pc << KB_UNWIND_PC;
}

/* @left: a bit for each register whose value follows. */
static bool take_registers(struct kb_unwind_registers *registers, struct kb_bytes *bytes,
			   uint64_t left)
{
	*registers = (struct kb_unwind_registers) { .known = left };
	for (; left; left &= left - 1)
		registers->value[__builtin_ctzll(left)] = kb_bytes_64(bytes);
	return registers->known && !bytes->bad;
}

/* What every sparse stack begins with. */
struct head {
	uint64_t registers, program, libraries;
	uint32_t scanned;
	uint16_t end, word;
};

static struct head take_head(struct kb_bytes *bytes)
{
	struct head head;

	head.registers = kb_bytes_64(bytes);
	head.program = kb_bytes_64(bytes);
	head.libraries = kb_bytes_64(bytes);
	head.scanned = kb_bytes_32(bytes);
	head.end = kb_bytes_16(bytes);
	head.word = kb_bytes_16(bytes);
	return head;
}

/* To what the lower bits of a word are added, and the values of its upper bits. */
enum { BASE_STACK, BASE_PROGRAM, BASE_LIBRARIES, BASE_NONE, BASES };

static uint64_t take_word(struct kb_bytes *bytes, const uint64_t bases[BASES], unsigned int size)
{
	uint32_t word = kb_bytes_32(bytes);
	unsigned int base = word >> BASE_SHIFT;

	if (size == sizeof(uint32_t))
		return word;
	if (base == BASE_NONE)
		return kb_bytes_64(bytes);
	return bases[base] + (word & ((UINT32_C(1) << BASE_SHIFT) - 1));
}

/* The words of a chunk from @address on, up to @end. */
static int take_chunk(struct kb_unwind_sparse *sparse, struct kb_bytes *bytes,
		      const uint64_t bases[BASES], uint64_t address, uint64_t end)
{
	unsigned int size = sparse->stack.machine->word;
	uint64_t kept = kb_bytes_64(bytes), nr = (end - address) / size;

	if (nr < CHUNK && kept >> nr)
		return -EBADMSG;
	for (; kept; kept &= kept - 1) {
		if (bytes->bad)
			return -EBADMSG;
		if (sparse->stack.nr == sparse->max_words)
			return -ENOBUFS;
		sparse->words[sparse->stack.nr++] = (struct kb_unwind_word) {
			.address = address + size * (uint64_t)__builtin_ctzll(kept),
			.word = take_word(bytes, bases, size),
		};
	}
	return bytes->bad ? -EBADMSG : 0;
}

static int take_words(struct kb_unwind_sparse *sparse, struct kb_bytes *bytes,
		      const struct head *head)
{
	uint64_t address = sparse->stack.low, high = sparse->stack.high, end;
	const uint64_t bases[BASES] = {
		[BASE_STACK] = address,
		[BASE_PROGRAM] = head->program,
		[BASE_LIBRARIES] = head->libraries,
	};
	uint64_t chunk = (uint64_t)CHUNK * sparse->stack.machine->word;
	int ret = 0;

	for (; !ret && address < high; address = end) {
		end = address - address % chunk + chunk;
		if (end > high || end < address)
			end = high;
		ret = take_chunk(sparse, bytes, bases, address, end);
	}
	return ret;
}

unsigned int kb_unwind_sparse_word(const void *data, size_t size, bool swap)
{
	struct kb_bytes bytes = { .data = data, .end = size, .swap = swap };
	struct head head = take_head(&bytes);

	return bytes.bad ? 0 : head.word;
}

bool kb_unwind_sparse_find_registers(struct kb_unwind_sparse_registers *found, const void *data,
				     size_t size, bool swap)
{
	struct kb_bytes bytes = { .data = data, .end = size, .swap = swap };

	found->known = registers_of(take_head(&bytes).registers);
	found->from = bytes.at;
	found->to = found->from + sizeof(uint64_t) * (size_t)__builtin_popcountll(found->known);
	return !bytes.bad && found->known && found->to <= size;
}

int kb_unwind_sparse_take(struct kb_unwind_sparse *sparse, const struct kb_unwind_machine *machine,
			  const void *data, size_t size, bool swap)
{
	struct kb_bytes bytes = { .data = data, .end = size, .swap = swap };
	struct head head = take_head(&bytes);
	unsigned int word = head.word;
	uint64_t low;
	int ret;

	if (bytes.bad || word != machine->word || head.scanned % word || size % word ||
	    head.end >= KB_UNWIND_SCAN_ENDS ||
	    !take_registers(&sparse->registers, &bytes, registers_of(head.registers)))
		return -EBADMSG;
	low = sparse->registers.value[machine->sp] & ~(uint64_t)(ALIGNMENT * word - 1);
	if (low > UINT64_MAX - head.scanned)
		return -EBADMSG;
	sparse->end = (enum kb_unwind_scan_end)head.end;
	sparse->stack = (struct kb_unwind_stack) {
		.words = sparse->words, .low = low, .high = low + head.scanned,
		.machine = machine, .whole = head.end == KB_UNWIND_SCAN_WHOLE,
	};
	ret = take_words(sparse, &bytes, &head);
	if (ret)
		return ret;
	/* The length is a multiple of an address of the machine that wrote it. */
	if (size - bytes.at == sizeof(uint32_t) && size % sizeof(uint64_t) == 0 &&
	    kb_bytes_32(&bytes))
		return -EBADMSG;
	return bytes.at == size ? 0 : -EBADMSG;
}
