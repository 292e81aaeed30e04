#include "redirect.h"

#include <proton/codec.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 128 /* bytes shown of one that the peer has chosen */

/* A field of what comes with CONDITION, or NULL. */
static pn_data_t *find_info(pn_condition_t *condition, const char *name)
{
	pn_data_t *info = pn_condition_info(condition);
	pn_data_rewind(info);
	if (!pn_data_next(info) || pn_data_type(info) != PN_MAP || !pn_data_enter(info))
		return NULL;
	return pn_data_lookup(info, name) ? info : NULL;
}

/* A text among these fields, or nothing. */
static pn_bytes_t find_text(pn_condition_t *condition, const char *name)
{
	pn_data_t *field = find_info(condition, name);
	pn_bytes_t text = field ? pn_data_get_bytes(field) : (pn_bytes_t){0};
	if (text.size > TEXT_MAX)
		text.size = TEXT_MAX;
	return text;
}

/* Part by part. */
void redirect_describe(pn_condition_t *condition, char *text, size_t size, const char *prefix)
{
	pn_bytes_t host = find_text(condition, "network-host");
	if (!host.size)
		host = find_text(condition, "hostname");
	pn_data_t *field = find_info(condition, "port");
	bool has_port = field && pn_data_type(field) == PN_USHORT;
	char port[8] = "";
	if (has_port)
		snprintf(port, sizeof port, ":%u", pn_data_get_ushort(field));
	pn_bytes_t address = find_text(condition, "address");
	snprintf(text, size, "%sto %.*s%s%s%.*s", prefix, (int)host.size,
		host.size ? host.start : "", port, address.size ? "/" : "", (int)address.size,
		address.size ? address.start : "");
	text[strcspn(text, "\n")] = '\0';
}
