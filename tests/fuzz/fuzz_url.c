/* Feeds any text to the parsers of URLs. What they accept must keep their header's promises. */
#include "url.h"

#include <ctype.h>
#include <stdint.h>
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
	if (url.has_credentials)
		require(strchr(text, '@'));
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
	require(*url.port && !url.address && !url.secure && !url.has_credentials);
	if (strpbrk(text, "/@"))
		return;
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
