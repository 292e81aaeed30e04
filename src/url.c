#include "url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Copies LENGTH bytes of TEXT as a string into SIZE bytes; false if they do not fit. */
static bool copy(char *to, size_t size, const char *text, size_t length)
{
	if (length >= size)
		return false;
	memcpy(to, text, length);
	to[length] = '\0';
	return true;
}

static const char *parse_port(const char *text, size_t length, struct url *url)
{
	if (!length)
		return "has an empty port";
	for (size_t i = 0; i < length; i++)
		if (!isdigit((unsigned char)text[i]))
			return "has a port that is not a number";
	if (!copy(url->port, sizeof url->port, text, length) || atol(url->port) > 65535)
		return "has a port above 65535";
	return NULL;
}

/* Splits LENGTH bytes of host[:port]. */
static const char *parse_authority(const char *text, size_t length, struct url *url)
{
	const char *end = text + length, *host = text, *host_end = end, *port = NULL;
	if (length && *text == '[') {
		host = text + 1;
		host_end = memchr(host, ']', (size_t)(end - host));
		if (!host_end)
			return "has a [ without ]";
		if (host_end + 1 < end) {
			if (host_end[1] != ':')
				return "has something between ] and the port";
			port = host_end + 2;
		}
	} else {
		const char *colon = memchr(text, ':', length);
		bool bare_ipv6 = colon && memchr(colon + 1, ':', (size_t)(end - colon - 1));
		if (colon && !bare_ipv6) {
			host_end = colon;
			port = colon + 1;
		}
	}
	if (host == host_end)
		return "has no host";
	for (const char *c = host; c < host_end; c++)
		if (!isgraph((unsigned char)*c))
			return "has a host with a space or a control character";
	if (!copy(url->host, sizeof url->host, host, (size_t)(host_end - host)))
		return "has too long a host";
	return port ? parse_port(port, (size_t)(end - port), url) : NULL;
}

/* HOST:PORT. */
const char *url_parse_host_port(const char *text, struct url *url)
{
	*url = (struct url){0};
	const char *error = parse_authority(text, strlen(text), url);
	if (!error && !*url->port)
		error = "has no port";
	return error;
}

/* The whole of it. */
const char *url_parse(const char *text, struct url *url)
{
	*url = (struct url){0};
	const char *scheme_end = strstr(text, "://");
	if (scheme_end && scheme_end + 1 == strchr(text, '/')) { /* not within the address */
		size_t length = (size_t)(scheme_end - text);
		url->secure = length == 5 && !strncmp(text, "amqps", 5);
		if (!url->secure && !(length == 4 && !strncmp(text, "amqp", 4)))
			return "has a scheme other than amqp and amqps";
		text = scheme_end + 3;
	}
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	if (slash)
		url->address = slash + 1;
	if (memchr(text, '@', length)) {
		url->has_credentials = true;
		while (memchr(text, '@', length)) {
			text++;
			length--;
		}
	}
	return parse_authority(text, length, url);
}
