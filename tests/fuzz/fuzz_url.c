/* Feeds any text to the parsers of URLs. What they accept must keep their header's promises. */
#define _DEFAULT_SOURCE
#include "url.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the run, which libFuzzer reports with the input. */
static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Host and port are what could be looked up. */
static void check_host_and_port(const struct url *url)
{
	size_t host_length = strnlen(url->host, sizeof url->host);
	size_t port_length = strnlen(url->port, sizeof url->port);
	require(host_length > 0 && host_length < sizeof url->host);
	require(port_length < sizeof url->port);
	for (size_t i = 0; i < host_length; i++)
		require(isgraph((unsigned char)url->host[i]));
	for (size_t i = 0; i < port_length; i++)
		require(isdigit((unsigned char)url->port[i]));
	require(atol(url->port) <= 65535);
}

/* Appends TEXT with all but letters and digits encoded. */
static void encode(char **to, const char *text)
{
	for (; *text; text++)
		*to += sprintf(
			*to, isalnum((unsigned char)*text) ? "%c" : "%%%02X", (unsigned char)*text);
}

/* What is printed of its parts, all that may be encoded being so, has the same parts. */
static void check_printed(const struct url *url)
{
	static char text[3 * (URL_USER_SIZE + URL_PASSWORD_SIZE) + URL_HOST_SIZE + 64];
	struct url same;
	char *end = text;
	bool ipv6 = strchr(url->host, ':');
	const char *scope = strchr(url->host, '%');
	if (url->has_scheme)
		end += sprintf(end, "%s://", url->secure ? "amqps" : "amqp");
	encode(&end, url->user);
	if (*url->password) {
		*end++ = ':';
		encode(&end, url->password);
	}
	end += sprintf(end, "%s%s%.*s", *url->user ? "@" : "", ipv6 ? "[" : "",
		(int)strcspn(url->host, "%"), url->host);
	if (scope)
		end += sprintf(end, "%%25%s", scope + 1);
	sprintf(end, "%s%s%s", ipv6 ? "]" : "", *url->port ? ":" : "", url->port);
	require(!url_parse(text, &same));
	require(same.has_scheme == url->has_scheme && same.secure == url->secure);
	require(!strcmp(same.user, url->user) && !strcmp(same.password, url->password));
	require(!strcmp(same.host, url->host) && !strcmp(same.port, url->port));
}

/* Taking the password out leaves the rest as it is. */
static void check_without_password(const char *text, const struct url *url)
{
	struct url same;
	char *copy = strdup(text);
	url_remove_password(copy);
	require(!url_parse(copy, &same) && !*same.password);
	require(!strcmp(same.user, url->user));
	require(!strcmp(same.host, url->host) && !strcmp(same.port, url->port));
	require(!same.address == !url->address);
	require(!url->address || !strcmp(same.address, url->address));
	free(copy);
}

/* The parts are where the text has them. */
static void check_url(const char *text)
{
	struct url url;
	const char *error = url_parse(text, &url);
	if (error) {
		require(*error);
		return;
	}
	check_host_and_port(&url);
	require(url.secure == !strncmp(text, "amqps://", 8));
	if (url.address) {
		require(url.address > text && url.address <= text + strlen(text));
		require(url.address[-1] == '/');
	}
	if (*url.user)
		require(strchr(text, '@'));
	require(*url.user || !*url.password);
	check_printed(&url);
	check_without_password(text, &url);
}

/* What is accepted is the same as a URL without scheme, address and user. */
static void check_host_port(const char *text)
{
	struct url url, same;
	const char *error = url_parse_host_port(text, &url);
	if (error) {
		require(*error);
		return;
	}
	check_host_and_port(&url);
	require(*url.port && !url.address && !*url.user && !*url.password);
	require(!url_parse(text, &same));
	require(!strcmp(url.host, same.host) && !strcmp(url.port, same.port));
}

/* The whole input is one text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	check_url(text);
	check_host_port(text);
	free(text);
	return 0;
}
