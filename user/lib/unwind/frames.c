// SPDX-License-Identifier: MIT
/* Reads entries one after another. The index .eh_frame_hdr is not needed, so it can't lie. */
#include <string.h>

#include "unwind/frames.h"

/* Encodings of addresses: how many bytes, and what they are relative to */
#define FORMAT		0x0f
#define ABSOLUTE	0x00
#define ULEB		0x01
#define UDATA2		0x02
#define UDATA4		0x03
#define UDATA8		0x04
#define SLEB		0x09
#define SDATA2		0x0a
#define SDATA4		0x0b
#define SDATA8		0x0c
#define RELATIVE	0xf0
#define TO_ITSELF	0x10

#define LONG_LENGTH	0xffffffffU	/* the length has 64 bits and follows */

static uint64_t cut(const struct kb_frames *frames, uint64_t address)
{
	return frames->machine->word == 4 ? (uint32_t)address : address;
}

static bool read_number(const struct kb_frames *frames, struct kb_bytes *bytes, uint8_t encoding,
			uint64_t *number)
{
	switch (encoding & FORMAT) {
	case ABSOLUTE:
		*number = frames->machine->word == 4 ? kb_bytes_32(bytes) : kb_bytes_64(bytes);
		break;
	case ULEB:
		*number = kb_bytes_unsigned(bytes);
		break;
	case UDATA2:
		*number = kb_bytes_16(bytes);
		break;
	case UDATA4:
		*number = kb_bytes_32(bytes);
		break;
	case UDATA8:
	case SDATA8:
		*number = kb_bytes_64(bytes);
		break;
	case SLEB:
		*number = kb_bytes_signed(bytes);
		break;
	case SDATA2:
		*number = (uint64_t)(int16_t)kb_bytes_16(bytes);
		break;
	case SDATA4:
		*number = (uint64_t)(int32_t)kb_bytes_32(bytes);
		break;
	default:
		return false;
	}
	return !bytes->bad;
}

bool kb_frames_address(const struct kb_frames *frames, struct kb_bytes *bytes, uint8_t encoding,
		       uint64_t *address)
{
	uint64_t here = frames->section.address + bytes->at;

	if ((encoding & RELATIVE) != 0 && (encoding & RELATIVE) != TO_ITSELF)
		return false;
	if (!read_number(frames, bytes, encoding, address))
		return false;
	*address = cut(frames, *address + (encoding & TO_ITSELF ? here : 0));
	return true;
}

/* Set @bytes to the entry at its position, after the length. False: there is no whole entry. */
static bool enter(struct kb_bytes *bytes, bool *is_long)
{
	uint64_t length = kb_bytes_32(bytes);

	*is_long = length == LONG_LENGTH;
	if (*is_long)
		length = kb_bytes_64(bytes);
	if (bytes->bad || length > bytes->end - bytes->at)
		return false;
	bytes->end = bytes->at + length;
	return true;
}

/* Read the entry at *@at and set *@at after it. False: it has a length of 0 and nothing else. */
static bool read_entry(const struct kb_frames *frames, size_t *at, struct kb_frames_entry *entry)
{
	struct kb_bytes *body = &entry->body;
	uint64_t id, mark;
	size_t id_at;
	bool is_long;

	entry->kind = KB_FRAMES_BAD;
	*body = (struct kb_bytes) {
		.data = frames->section.data, .at = *at, .end = frames->section.size,
		.swap = frames->swap,
	};
	if (!enter(body, &is_long))
		return true;
	*at = body->end;
	if (body->at == body->end)
		return false;
	id_at = body->at;
	id = is_long ? kb_bytes_64(body) : kb_bytes_32(body);
	mark = !frames->debug ? 0 : is_long ? UINT64_MAX : UINT32_MAX;
	if (body->bad)
		return true;
	entry->cie = frames->debug ? id : id_at - id;
	entry->kind = id == mark ? KB_FRAMES_CIE : KB_FRAMES_FDE;
	return true;
}

struct kb_frames_entry kb_frames_next(const struct kb_frames *frames, size_t *at)
{
	struct kb_frames_entry entry = { .kind = KB_FRAMES_END };

	/* What fills the section up is not an entry. */
	while (frames->section.size - *at >= 4)
		if (read_entry(frames, at, &entry))
			return entry;
	entry.kind = KB_FRAMES_END;
	return entry;
}

/* Read the data that the letters of @text announce. */
static bool read_augmentation(const struct kb_frames *frames, struct kb_bytes *bytes,
			      const char *text, struct kb_cie *cie)
{
	uint64_t size = kb_bytes_unsigned(bytes);
	struct kb_bytes data = *bytes;
	uint64_t ignored;
	uint8_t encoding;

	kb_bytes_skip(bytes, size);
	if (bytes->bad)
		return false;
	data.end = bytes->at;
	for (; *text; text++) {
		switch (*text) {
		case 'R':
			cie->encoding = kb_bytes_8(&data);
			break;
		case 'L':
			kb_bytes_skip(&data, 1);
			break;
		case 'P':
			encoding = kb_bytes_8(&data);
			if (!read_number(frames, &data, encoding, &ignored))
				return false;
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B':	/* signed by the key B */
		case 'G':	/* tags memory */
			break;
		default:
			return false;
		}
	}
	return !data.bad;
}

/* Set @bytes to the CIE at @at, after its id. */
static bool find_cie(const struct kb_frames *frames, uint64_t at, struct kb_bytes *bytes)
{
	struct kb_frames_entry entry;
	size_t end = (size_t)at;

	if (at >= frames->section.size || !read_entry(frames, &end, &entry) ||
	    entry.kind != KB_FRAMES_CIE || end - at > KB_FRAMES_MAX_CIE)
		return false;
	*bytes = entry.body;
	return true;
}

bool kb_frames_cie(const struct kb_frames *frames, uint64_t at, struct kb_cie *cie)
{
	struct kb_bytes bytes;
	const char *text, *end;
	uint8_t version;

	*cie = (struct kb_cie) { .encoding = ABSOLUTE };
	if (!find_cie(frames, at, &bytes))
		return false;
	version = kb_bytes_8(&bytes);
	text = (const char *)bytes.data + bytes.at;
	end = memchr(text, '\0', bytes.end - bytes.at);
	if (bytes.bad || !end || (version != 1 && version != 3 && version != 4))
		return false;
	bytes.at += end - text + 1;
	/* Sizes of an address and of a segment's number */
	if (version == 4 && (kb_bytes_8(&bytes) != frames->machine->word || kb_bytes_8(&bytes)))
		return false;
	cie->code_align = kb_bytes_unsigned(&bytes);
	cie->data_align = kb_bytes_signed(&bytes);
	cie->ra = version == 1 ? kb_bytes_8(&bytes) : kb_bytes_unsigned(&bytes);
	cie->augmented = text[0] == 'z';
	if (cie->augmented ? !read_augmentation(frames, &bytes, text + 1, cie) : text[0] != '\0')
		return false;
	cie->code = bytes;
	return !bytes.bad;
}

bool kb_frames_fde(const struct kb_frames *frames, const struct kb_cie *cie,
		   const struct kb_frames_entry *entry, struct kb_fde *fde)
{
	struct kb_bytes *bytes = &fde->code;
	uint64_t length;

	*fde = (struct kb_fde) { .cie = entry->cie, .code = entry->body };
	if (!kb_frames_address(frames, bytes, cie->encoding, &fde->start) ||
	    !read_number(frames, bytes, cie->encoding & FORMAT, &length))
		return false;
	fde->end = fde->start + cut(frames, length);
	if (cie->augmented)
		kb_bytes_skip(bytes, kb_bytes_unsigned(bytes));
	return !bytes->bad && fde->end >= fde->start;
}
