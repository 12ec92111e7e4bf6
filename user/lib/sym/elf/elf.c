// SPDX-License-Identifier: MIT
/*
 * Reads ELF files with libelf, which is closed afterwards. Files are read, not mapped: a mapped
 * file that is truncated could crash the reader.
 */
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "sym/elf/elf.h"
#include "sym/elf/functions.h"
#include "sym/elf/minidebug.h"
#include "sym/elf/plt.h"
#include "sym/files/regular.h"
#include "sym/question/question.h"

#define MAX_SECTIONS	(1U << 20)
#define MAX_VERSIONS	256U	/* that a file defines; glibc has 40 */

/* What a symbol needs of its section: its limits, and whether it is code. */
struct section {
	uint64_t end;
	bool executable;
};

struct loader {
	struct kb_elf *out;
	struct kb_elf *wanted;	/* the file whose debug file this should be, */
	bool trusted;		/* and whether that is certain */
	Elf_Scn *minidebug;	/* .gnu_debugdata, or NULL */
	Elf_Scn *versions;	/* those that the file defines, or NULL */
	bool has_versions;	/* it has some; in a debug file nobody says which */
	int fd;
	const char *path;
	struct kb_error *err;
	Elf *elf;
	GElf_Ehdr header;
	struct section *sections;
	size_t nr_sections;
};

static int fail(const struct loader *loader, int code, const char *what)
{
	return kb_error_set(loader->err, code, KB_NO_OFFSET, "%s %s", loader->path, what);
}

static int damaged(const struct loader *loader, const char *what)
{
	return kb_error_set(loader->err, -EBADMSG, KB_NO_OFFSET, "%s is damaged: %s: %s",
			    loader->path, what, elf_errmsg(-1));
}

static int load_segments(struct loader *loader)
{
	struct kb_elf *out = loader->out;
	size_t i, nr;

	if (elf_getphdrnum(loader->elf, &nr))
		return damaged(loader, "program headers");
	out->segments = calloc(KB_ELF_MAX_SEGMENTS, sizeof(*out->segments));
	if (!out->segments)
		return fail(loader, -ENOMEM, "needs more memory than there is");
	for (i = 0; i < nr && i <= INT32_MAX; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(loader->elf, i, &phdr))
			return damaged(loader, "program headers");
		if (phdr.p_type != PT_LOAD || !phdr.p_filesz ||
		    phdr.p_filesz > UINT64_MAX - phdr.p_offset)
			continue;
		if (out->nr_segments == KB_ELF_MAX_SEGMENTS)
			return fail(loader, -EBADMSG, "is damaged: it has too many segments");
		out->segments[out->nr_segments++] = (struct kb_elf_segment) {
			.offset = phdr.p_offset,
			.vaddr = phdr.p_vaddr,
			.size = phdr.p_filesz,
			.executable = phdr.p_flags & PF_X,
		};
	}
	return 0;
}

static bool is_version_section(Elf *elf, const GElf_Shdr *shdr)
{
	const char *name;
	size_t names;

	if (shdr->sh_type != SHT_NOBITS)
		return shdr->sh_type == SHT_GNU_verdef;
	name = elf_getshdrstrndx(elf, &names) ? NULL : elf_strptr(elf, names, shdr->sh_name);
	return name && strcmp(name, ".gnu.version_d") == 0;
}

static int load_sections(struct loader *loader)
{
	Elf_Scn *scn = NULL;
	size_t nr;

	if (elf_getshdrnum(loader->elf, &nr))
		return damaged(loader, "section headers");
	if (nr > MAX_SECTIONS)
		return fail(loader, -EBADMSG, "is damaged: it has too many sections");
	loader->sections = calloc(nr + 1, sizeof(*loader->sections));
	if (!loader->sections)
		return fail(loader, -ENOMEM, "needs more memory than there is");
	loader->nr_sections = nr;

	while ((scn = elf_nextscn(loader->elf, scn))) {
		size_t i = elf_ndxscn(scn);
		GElf_Shdr shdr;

		if (i >= nr || !gelf_getshdr(scn, &shdr))
			return damaged(loader, "section headers");
		loader->sections[i].executable = shdr.sh_flags & SHF_EXECINSTR;
		if (shdr.sh_type == SHT_GNU_verdef)
			loader->versions = scn;
		loader->has_versions |= is_version_section(loader->elf, &shdr);
		if (shdr.sh_size <= UINT64_MAX - shdr.sh_addr)
			loader->sections[i].end = shdr.sh_addr + shdr.sh_size;
	}
	return 0;
}

/* Whether @text, after '@', is a version. Where nobody says which there are, it looks like one. */
static bool is_version(const struct loader *loader, const char *text, size_t length)
{
	static const char small[] = "abcdefghijklmnopqrstuvwxyz_.",
		all[] = "abcdefghijklmnopqrstuvwxyz_.ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	Elf_Data *data = loader->versions ? elf_getdata(loader->versions, NULL) : NULL;
	GElf_Verdaux name;
	GElf_Verdef row;
	GElf_Shdr shdr;
	int at = 0;

	if (!data || !gelf_getshdr(loader->versions, &shdr))
		return loader->has_versions && strspn(text, small) < length &&
		       strspn(text, all) >= length;
	for (unsigned int i = 0; i < MAX_VERSIONS && gelf_getverdef(data, at, &row); i++) {
		const char *found = NULL;

		if (row.vd_aux <= INT32_MAX - (uint32_t)at &&
		    gelf_getverdaux(data, at + (int)row.vd_aux, &name))
			found = elf_strptr(loader->elf, shdr.sh_link, name.vda_name);
		if (found && strlen(found) == length && memcmp(found, text, length) == 0)
			return true;
		if (!row.vd_next || row.vd_next > INT32_MAX - (uint32_t)at)
			break;
		at += (int)row.vd_next;
	}
	return false;
}

/* Where @name, which ends at @end, ends without NAME@VERSION or NAME@@VERSION. */
static const char *without_version(const struct loader *loader, const char *name, const char *end)
{
	const char *at = memrchr(name + 1, '@', (size_t)(end - name) - 1);

	if (!at || !is_version(loader, at + 1, (size_t)(end - at) - 1))
		return end;
	return at > name + 1 && at[-1] == '@' ? at - 1 : at;
}

/* $a, $d, $t, $x and $x.anything separate Arm code from data. They are not names. */
static bool is_mapping_symbol(const struct loader *loader, const char *name)
{
	switch (loader->header.e_machine) {
	case EM_ARM:
	case EM_AARCH64:
	case EM_RISCV:
		return name[0] == '$' && name[1] && strchr("adtx", name[1]) &&
		       (name[2] == '\0' || name[2] == '.' || loader->header.e_machine == EM_RISCV);
	default:
		return false;
	}
}

/* Whether @sym is code, by its type. A symbol without a type is code if its section is. */
static bool is_code(const struct section *section, const GElf_Sym *sym)
{
	switch (GELF_ST_TYPE(sym->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE:
		return section && section->executable;
	default:
		return false;
	}
}

static enum kb_symtab_rank rank_of(const GElf_Sym *sym)
{
	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_LOCAL:
		return KB_RANK_LOCAL;
	case STB_WEAK:
		return KB_RANK_WEAK;
	default:
		return KB_RANK_GLOBAL;
	}
}

/* @index: number of the section if st_shndx is SHN_XINDEX. */
static int add_symbol(const struct loader *loader, const GElf_Sym *sym, Elf32_Word index,
		      const Elf_Data *strings)
{
	const struct section *section = NULL;
	uint64_t start = sym->st_value;
	const char *name, *end;

	if (sym->st_shndx == SHN_UNDEF || sym->st_name >= strings->d_size)
		return 0;
	if (sym->st_shndx != SHN_XINDEX)
		index = sym->st_shndx < SHN_LORESERVE ? sym->st_shndx : SHN_UNDEF;
	if (index != SHN_UNDEF && index < loader->nr_sections)
		section = &loader->sections[index];
	if (!is_code(section, sym))
		return 0;

	name = (const char *)strings->d_buf + sym->st_name;
	end = memchr(name, '\0', strings->d_size - sym->st_name);
	if (!end || end == name || is_mapping_symbol(loader, name))
		return 0;
	end = without_version(loader, name, end);
	if (loader->header.e_machine == EM_ARM && GELF_ST_TYPE(sym->st_info) == STT_FUNC)
		start &= ~(uint64_t)1;	/* Thumb code */
	if (end - name == 6 && memcmp(name, "_stext", 6) == 0)
		loader->out->stext = start;
	return kb_symtab_add(&loader->out->symbols, start, sym->st_size,
			     section && section->end > start ? section->end : KB_SYMTAB_NO_LIMIT,
			     name, end - name, rank_of(sym), 0);
}

/* The section with the section numbers that do not fit into the symbols of @symbols. */
static Elf_Data *find_indices(const struct loader *loader, Elf_Scn *symbols)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(loader->elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_SYMTAB_SHNDX &&
		    shdr.sh_link == elf_ndxscn(symbols))
			return elf_getdata(scn, NULL);
	return NULL;
}

static int load_symbols(const struct loader *loader, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_getdata(scn, NULL), *strings, *indices;
	size_t i, nr, size = gelf_fsize(loader->elf, ELF_T_SYM, 1, EV_CURRENT);

	strings = elf_getdata(elf_getscn(loader->elf, shdr->sh_link), NULL);
	if (!data || !data->d_buf || !strings || !strings->d_buf || !size)
		return damaged(loader, "symbol table");

	indices = find_indices(loader, scn);
	nr = data->d_size / size;
	for (i = 1; i < nr; i++) {	/* symbol 0 is always empty */
		Elf32_Word index = SHN_UNDEF;
		GElf_Sym sym;
		int ret;

		if (i > INT32_MAX || !gelf_getsymshndx(data, indices, i, &sym, &index))
			return damaged(loader, "symbol table");
		ret = add_symbol(loader, &sym, index, strings);
		if (ret == -EFBIG)
			return fail(loader, ret, "has too many symbols");
		if (ret)
			return fail(loader, ret, "needs more memory than there is");
	}
	return 0;
}

/* Load the first section of @type. A valid file has only one. */
static int load_symbols_of(const struct loader *loader, GElf_Word type)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(loader->elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == type)
			return load_symbols(loader, scn, &shdr);
	return 0;
}

static int load_symbol_tables(const struct loader *loader)
{
	int ret;

	ret = load_symbols_of(loader, SHT_SYMTAB);
	return ret ? ret : load_symbols_of(loader, SHT_DYNSYM);
}

/* Find the build-id in the notes of @data. */
static void find_build_id(const struct loader *loader, Elf_Data *data)
{
	size_t at = 0, name, contents;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name, &contents)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
		    memcmp((char *)data->d_buf + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) != 0 ||
		    !note.n_descsz || note.n_descsz > KB_BUILD_ID_MAX)
			continue;
		memcpy(loader->out->build_id.bytes, (char *)data->d_buf + contents, note.n_descsz);
		loader->out->build_id.length = note.n_descsz;
		return;
	}
}

/* The section has a name, zeros up to a multiple of four, and a CRC in the file's byte order. */
static void read_debuglink(const struct loader *loader, Elf_Scn *scn)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	const uint8_t *crc;
	size_t length;

	if (!data || !data->d_buf || data->d_size < 8)
		return;
	length = strnlen(data->d_buf, data->d_size);
	if (length >= sizeof(loader->out->debuglink) || memchr(data->d_buf, '/', length) ||
	    (length + 4) / 4 * 4 + 4 > data->d_size)
		return;
	memcpy(loader->out->debuglink, data->d_buf, length + 1);
	crc = (const uint8_t *)data->d_buf + (length + 4) / 4 * 4;
	loader->out->debuglink_crc = loader->header.e_ident[EI_DATA] == ELFDATA2MSB ?
		(uint32_t)crc[0] << 24 | crc[1] << 16 | crc[2] << 8 | crc[3] :
		(uint32_t)crc[3] << 24 | crc[2] << 16 | crc[1] << 8 | crc[0];
}

/* Read the build-id and the place of the debug file. Damage in them is not an error. */
static void load_identity(struct loader *loader)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(loader->elf, &names))
		return;
	while ((scn = elf_nextscn(loader->elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &shdr))
			continue;
		name = elf_strptr(loader->elf, names, shdr.sh_name);
		if (shdr.sh_type == SHT_SYMTAB)
			loader->out->has_symtab = true;
		else if (shdr.sh_type == SHT_NOTE && !loader->out->build_id.length)
			find_build_id(loader, elf_getdata(scn, NULL));
		else if (name && strcmp(name, ".gnu_debuglink") == 0)
			read_debuglink(loader, scn);
		else if (name && strcmp(name, ".gnu_debugdata") == 0)
			loader->minidebug = scn;
		else if (name && shdr.sh_type != SHT_NOBITS &&
			 (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0))
			loader->out->has_dwarf = true;
	}
}

static int with_elf(struct loader *loader, Elf *elf, int (*what)(struct loader *loader));
static int load_debug(struct loader *loader);

/* Load the symbols of the ELF file in .gnu_debugdata. Damage in it is not an error. */
static void load_minidebug(const struct loader *loader)
{
	Elf_Data *data = loader->minidebug ? elf_rawdata(loader->minidebug, NULL) : NULL;
	struct kb_elf found = { 0 };
	struct loader inner = {
		.out = &found, .wanted = loader->out, .path = loader->path, .trusted = true,
	};
	uint8_t *image;
	size_t size;

	if (!data || !data->d_buf || loader->out->has_symtab ||
	    kb_minidebug_unpack(data->d_buf, data->d_size, &image, &size))
		return;
	with_elf(&inner, elf_memory((char *)image, size), load_debug);
	free(image);
}

/* Load what costs little: segments and identity. */
static int identify(struct loader *loader)
{
	int ret;

	if (elf_kind(loader->elf) != ELF_K_ELF || !gelf_getehdr(loader->elf, &loader->header))
		return fail(loader, -ENOEXEC, "is not an ELF file");
	if (loader->header.e_type != ET_EXEC && loader->header.e_type != ET_DYN)
		return fail(loader, -ENOEXEC, "is neither a program nor a shared library");
	ret = load_segments(loader);
	if (!ret)
		load_identity(loader);
	return ret;
}

static int load(struct loader *loader)
{
	int ret = identify(loader);

	if (!ret)
		ret = load_sections(loader);
	if (ret)
		return ret;
	ret = load_symbol_tables(loader);
	loader->out->nr_stubs = -loader->out->symbols.nr_symbols;
	if (!ret)
		ret = kb_plt_add(&loader->out->symbols, loader->elf);
	loader->out->nr_stubs += loader->out->symbols.nr_symbols;
	/* If there are too many functions, the others have no names. */
	if (!ret && kb_elf_functions_add(&loader->out->functions, loader->elf) == -ENOMEM)
		ret = -ENOMEM;
	if (ret == -ENOMEM)
		return fail(loader, ret, "needs more memory than there is");
	if (!ret)
		load_minidebug(loader);
	return ret;
}

/* Call @what for @elf, then end @elf. */
static int with_elf(struct loader *loader, Elf *elf, int (*what)(struct loader *loader))
{
	int ret;

	loader->elf = elf;
	ret = elf ? what(loader) : fail(loader, -ENOEXEC, "is not an ELF file");
	elf_end(elf);
	free(loader->sections);
	return ret;
}

/* The same for the file that is open as @fd. */
static int with_fd(struct loader *loader, int fd, int (*what)(struct loader *loader))
{
	if (elf_version(EV_CURRENT) == EV_NONE)
		return damaged(loader, "libelf");
	loader->fd = fd;
	return with_elf(loader, elf_begin(fd, ELF_C_READ, NULL), what);
}

/* Open the file at @path; an error is also put into @err. */
static int open_file(const char *path, struct kb_error *err)
{
	int fd = kb_open_regular(path, 0);

	if (fd == -ENOTSUP)
		return kb_error_set(err, -ENOEXEC, KB_NO_OFFSET, "%s is not a regular file", path);
	if (fd < 0)
		return kb_error_set(err, fd, KB_NO_OFFSET, "%s can't be read: %s", path,
				    strerror(-fd));
	return fd;
}

static int read_fd(struct kb_elf *elf, int fd, const char *path, struct kb_error *err,
		   int (*what)(struct loader *loader))
{
	struct loader loader = { .out = elf, .path = path, .err = err };
	int ret;

	*elf = (struct kb_elf) { 0 };
	ret = with_fd(&loader, fd, what);
	if (ret)
		kb_elf_release(elf);
	return ret;
}

int kb_elf_read_fd(struct kb_elf *elf, int fd, const char *path, struct kb_error *err)
{
	return read_fd(elf, fd, path, err, load);
}

int kb_elf_identify_fd(struct kb_elf *elf, int fd, const char *path, struct kb_error *err)
{
	return read_fd(elf, fd, path, err, identify);
}

int kb_elf_read(struct kb_elf *elf, const char *path, struct kb_error *err)
{
	const struct kb_question question = { .what = KB_QUESTION_ELF };
	int fd = open_file(path, err), ret;

	*elf = (struct kb_elf) { 0 };
	if (fd < 0)
		return fd;
	if (kb_decodes_elsewhere())
		ret = kb_decode_elsewhere(&question, fd, path, elf, err);
	else
		ret = kb_elf_read_fd(elf, fd, path, err);
	close(fd);
	return ret;
}

int kb_elf_load(struct kb_elf *elf, const char *path, struct kb_error *err)
{
	int ret = kb_elf_read(elf, path, err);

	if (!ret && kb_symtab_sort(&elf->symbols)) {
		kb_elf_release(elf);
		ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET,
				   "%s needs more memory than there is", path);
	}
	return ret;
}

static bool crc_is(int fd, uint32_t want)
{
	uint8_t buffer[1 << 16];
	uint64_t at = 0;
	uLong crc = crc32(0, NULL, 0);
	ssize_t nr;

	while ((nr = pread(fd, buffer, sizeof(buffer), at)) > 0) {
		crc = crc32(crc, buffer, nr);
		at += nr;
	}
	return nr == 0 && (uint32_t)crc == want;
}

/* Read the identity of the file and check that it is the wanted one. */
static int check_debug(struct loader *loader)
{
	const struct kb_elf *wanted = loader->wanted;
	struct kb_elf *found = loader->out;

	if (elf_kind(loader->elf) != ELF_K_ELF || !gelf_getehdr(loader->elf, &loader->header))
		return -ENOEXEC;
	load_identity(loader);
	if (loader->trusted) {
		/* the packed file comes from the file itself */
	} else if (wanted->build_id.length) {
		if (found->build_id.length != wanted->build_id.length ||
		    memcmp(found->build_id.bytes, wanted->build_id.bytes, found->build_id.length))
			return -ESTALE;
	} else if (!wanted->debuglink[0] || !crc_is(loader->fd, wanted->debuglink_crc)) {
		return -ESTALE;
	}
	return 0;
}

static int check_dwarf(struct loader *loader)
{
	int ret = check_debug(loader);

	return ret || loader->out->has_dwarf ? ret : -ENODATA;
}

static int load_debug(struct loader *loader)
{
	const struct kb_elf *wanted = loader->wanted;
	struct kb_elf *found = loader->out;
	int ret = check_debug(loader);

	if (!ret)
		ret = load_sections(loader);
	if (ret)
		return ret;
	found->symbols = wanted->symbols;	/* new symbols are added to these */
	ret = load_symbols_of(loader, SHT_SYMTAB);
	loader->wanted->symbols = found->symbols;
	return ret;
}

int kb_elf_add_debug_fd(struct kb_elf *elf, int fd)
{
	struct kb_elf found = { 0 };
	struct loader loader = { .out = &found, .wanted = elf, .path = "" };
	int ret = with_fd(&loader, fd, load_debug);

	elf->has_symtab |= !ret && found.has_symtab;
	return ret;
}

/* The same with another process as decoder. */
static int add_debug_elsewhere(struct kb_elf *elf, int fd, const char *path)
{
	struct kb_question question = {
		.what = KB_QUESTION_DEBUG, .build_id = elf->build_id,
		.has_debuglink = elf->debuglink[0], .debuglink_crc = elf->debuglink_crc,
	};
	struct kb_elf found = { 0 };
	int ret = kb_decode_elsewhere(&question, fd, path, &found, NULL);

	if (!ret)
		ret = kb_symtab_append(&elf->symbols, &found.symbols);
	elf->has_symtab |= !ret && found.has_symtab;
	kb_elf_release(&found);
	return ret;
}

int kb_elf_add_debug(struct kb_elf *elf, const char *path)
{
	int fd = open_file(path, NULL), ret;

	if (fd < 0)
		return fd;
	ret = kb_decodes_elsewhere() ? add_debug_elsewhere(elf, fd, path) :
		kb_elf_add_debug_fd(elf, fd);
	close(fd);
	return ret;
}

int kb_elf_check_dwarf(const struct kb_elf *elf, const char *path)
{
	struct kb_elf found = { 0 }, wanted = *elf;
	struct loader loader = { .out = &found, .wanted = &wanted, .path = path };
	int fd, ret;

	if (kb_decodes_elsewhere())	/* programs with a decoder process do not use lines */
		return -ENODATA;
	fd = open_file(path, NULL);
	if (fd < 0)
		return fd;
	ret = with_fd(&loader, fd, check_dwarf);
	close(fd);
	return ret;
}
