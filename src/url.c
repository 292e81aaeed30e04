#define _DEFAULT_SOURCE
#include "url.h"

#include <arpa/inet.h>
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

/* Whether all of LENGTH bytes may be in a name, an IPv4 address or a scope. */
static bool is_name(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("-._", text[i]))
			return false;
	return !memchr(text, '\0', length);
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

static const char *parse_name(const char *text, size_t length, struct url *url)
{
	if (!length)
		return "has no host";
	if (!is_name(text, length))
		return "has a host with a character that no name has";
	return copy(url->host, sizeof url->host, text, length) ? NULL : "has too long a host";
}

/* With or without a scope; the % before it may be encoded, as in a URL it should be. */
static const char *parse_ipv6(const char *text, size_t length, struct url *url)
{
	struct in6_addr ignored;
	const char *end = text + length, *percent = memchr(text, '%', length);
	size_t address_length = percent ? (size_t)(percent - text) : length;
	if (!length)
		return "has no host";
	if (!copy(url->host, sizeof url->host, text, address_length)
		|| inet_pton(AF_INET6, url->host, &ignored) != 1)
		return "has a host that is neither a name nor an IP address";
	if (!percent)
		return NULL;
	const char *scope = percent + 1;
	if (end - scope > 2 && scope[0] == '2' && scope[1] == '5')
		scope += 2;
	if (scope == end || !is_name(scope, (size_t)(end - scope)))
		return "has an IPv6 address without the name of its scope";
	url->host[address_length] = '%';
	return copy(url->host + address_length + 1, sizeof url->host - address_length - 1, scope,
		       (size_t)(end - scope))
		? NULL
		: "has too long a host";
}

/* [IPV6] and the port. */
static const char *parse_brackets(const char *text, size_t length, struct url *url)
{
	const char *end = text + length, *host = text + 1;
	const char *host_end = memchr(host, ']', (size_t)(end - host));
	if (!host_end)
		return "has a [ without ]";
	const char *error = parse_ipv6(host, (size_t)(host_end - host), url);
	if (error || host_end + 1 == end)
		return error;
	if (host_end[1] != ':')
		return "has something between ] and the port";
	return parse_port(host_end + 2, (size_t)(end - host_end - 2), url);
}

/* Splits LENGTH bytes of host[:port]. */
static const char *parse_authority(const char *text, size_t length, struct url *url)
{
	*url->host = *url->port = '\0';
	if (length && *text == '[')
		return parse_brackets(text, length, url);
	const char *end = text + length, *colon = memchr(text, ':', length);
	if (!colon)
		return parse_name(text, length, url);
	if (!parse_ipv6(text, length, url))
		return NULL;
	const char *error = parse_name(text, (size_t)(colon - text), url);
	return error ? error : parse_port(colon + 1, (size_t)(end - colon - 1), url);
}

/* Takes the scheme off *TEXT. */
static const char *parse_scheme(const char **text, struct url *url)
{
	const char *end = strstr(*text, "://");
	size_t length = end ? (size_t)(end - *text) : 0;
	if (!length || !is_name(*text, length)) /* it is within the address */
		return NULL;
	url->has_scheme = true;
	url->secure = length == 5 && !strncmp(*text, "amqps", 5);
	if (!url->secure && !(length == 4 && !strncmp(*text, "amqp", 4)))
		return "has a scheme other than amqp and amqps";
	*text = end + 3;
	return NULL;
}

/* Moves *TEXT to where host[:port] begins, by the rule in the header. What is said to be wrong, if
 * there is no such place, is what is wrong with what stands where most people would put it. */
static const char *find_authority(const char **text, struct url *url)
{
	const char *first_error = NULL, *slash = *text + strcspn(*text, "/"), *start = *text;
	for (;;) {
		const char *error = parse_authority(start, strcspn(start, "/"), url);
		if (!error) {
			*text = start;
			return NULL;
		}
		if (!first_error || start <= slash)
			first_error = error;
		const char *at = strchr(start, '@');
		if (!at)
			return first_error;
		start = at + 1;
	}
}

/* Where a hex digit's value is looked up. */
static const char HEX[] = "0123456789abcdef";

static unsigned hex(char digit)
{
	return (unsigned)(strchr(HEX, tolower((unsigned char)digit)) - HEX);
}

/* Decodes LENGTH bytes of user or password into SIZE bytes. */
static const char *decode(char *to, size_t size, const char *text, size_t length)
{
	if (!length)
		return "has an empty user or password";
	for (size_t i = 0; i < length; i++) {
		char c = text[i];
		if (c == '%' && i + 2 < length && isxdigit((unsigned char)text[i + 1])
			&& isxdigit((unsigned char)text[i + 2])) {
			c = (char)(hex(text[i + 1]) << 4 | hex(text[i + 2]));
			i += 2;
		}
		if (!c)
			return "has a %00 in user or password";
		if (!--size)
			return "has too long a user or password";
		*to++ = c;
	}
	*to = '\0';
	return NULL;
}

/* LENGTH bytes of user[:password]. */
static const char *parse_user(const char *text, size_t length, struct url *url)
{
	const char *end = text + length, *colon = memchr(text, ':', length);
	const char *user_end = colon ? colon : end;
	const char *error = decode(url->user, sizeof url->user, text, (size_t)(user_end - text));
	if (!error && colon)
		error = decode(
			url->password, sizeof url->password, colon + 1, (size_t)(end - colon - 1));
	return error;
}

/* No @ is looked for: a listener has no user. */
const char *url_parse_host_port(const char *text, struct url *url)
{
	*url = (struct url){0};
	const char *error = parse_scheme(&text, url);
	if (!error)
		error = parse_authority(text, strlen(text), url);
	if (!error && !*url->port)
		error = "has no port";
	return error;
}

/* Of what is refused, the address may be set, too. */
const char *url_parse(const char *text, struct url *url)
{
	*url = (struct url){0};
	const char *error = parse_scheme(&text, url);
	if (error)
		return error;
	const char *authority = text;
	error = find_authority(&authority, url);
	if (!error && authority > text)
		error = parse_user(text, (size_t)(authority - text - 1), url);
	const char *slash = strchr(authority, '/');
	if (slash)
		url->address = slash + 1;
	return error;
}

/* 5671 or 5672. */
const char *url_default_port(bool secure)
{
	return secure ? "5671" : "5672";
}

/* What follows the password is moved over it. */
void url_remove_password(char *text)
{
	struct url url;
	const char *start = text;
	if (!url_parse(text, &url) && *url.password) {
		parse_scheme(&start, &url);
		const char *at = start;
		find_authority(&at, &url);
		char *colon = text + (strchr(start, ':') - text), *end = text + strlen(text);
		size_t rest = (size_t)(end - at) + 2; /* with @ and 0 */
		memmove(colon, at - 1, rest);
		explicit_bzero(colon + rest, (size_t)(end + 1 - (colon + rest)));
	}
	explicit_bzero(&url, sizeof url);
}
