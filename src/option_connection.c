#define _GNU_SOURCE
#include "option_connection.h"

#include "fatal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_HOST      "127.0.0.1"
#define DEFAULT_PORT      "5672"
#define DEFAULT_TLS_PORT  "5671"
#define DEFAULT_ADDRESS   "ppair"
#define PASSWORD_VARIABLE "PPAIR_PASSWORD"
#define NO_SASL           "none"

/* What may be used if --sasl-mechs does not say. Never less than what one has: the library would
 * do without the password if the peer lets it. */
#define MECHANISMS_PASSWORD    "PLAIN"
#define MECHANISMS_CERTIFICATE "EXTERNAL ANONYMOUS"
#define MECHANISMS_NOBODY      "ANONYMOUS"

/* ---- where ---- */

/* What a URL says, into the peer; parts that it does not have are left alone. User and password
 * belong together. */
static void apply_url(struct options *o, const char *option, const char *text)
{
	struct url url;
	const char *error = url_parse(text, &url);
	if (error) /* the text may hold a password: it is not repeated */
		fatalx(EXIT_USAGE, "%s: %s", option, error);
	if (url.has_scheme)
		o->peer.secure = url.secure;
	if (*url.user) {
		strcpy(o->peer.user, url.user);
		strcpy(o->peer.password, url.password);
	}
	strcpy(o->peer.host, url.host);
	if (*url.port)
		strcpy(o->peer.port, url.port);
	if (url.address && *url.address)
		o->peer.address = url.address;
	explicit_bzero(&url, sizeof url);
}

static void check_connecting(struct options *o)
{
	strcpy(o->peer.host, DEFAULT_HOST);
	o->peer.address = DEFAULT_ADDRESS;
	if (o->url)
		apply_url(o, "URL", o->url);
	if (o->broker)
		apply_url(o, "--broker", o->broker);
	if (o->address)
		o->peer.address = o->address;
	if (!*o->peer.port)
		strcpy(o->peer.port, url_default_port(o->peer.secure));
	bool ipv6 = strchr(o->peer.host, ':');
	snprintf(o->peer_url, sizeof o->peer_url, "%s://%s%s%s:%s",
		o->peer.secure ? "amqps" : "amqp", ipv6 ? "[" : "", o->peer.host, ipv6 ? "]" : "",
		o->peer.port);
	o->broker_url = o->broker;
	o->broker = o->peer_url;
	o->address = o->peer.address;
	if (!strcmp(o->peer.port, "0"))
		fatalx(EXIT_USAGE, "URL: port 0 is for --listen");
	if (o->forever)
		fatalx(EXIT_USAGE, "--forever: needs --listen");
}

static void check_listening(struct options *o)
{
	const struct {
		const char *option;
		bool given;
	} NEEDLESS[] = {{"a URL", o->url}, {"--broker", o->broker}, {"--address", o->address},
		{"--user", o->user}, {"--password-file", o->password_file},
		{"--sasl-insecure", o->sasl_insecure}, {"--tls-sni", o->tls_name},
		{"--tls-no-verify", o->tls_no_verify}};
	for (size_t i = 0; i < sizeof NEEDLESS / sizeof *NEEDLESS; i++)
		if (NEEDLESS[i].given)
			fatalx(EXIT_USAGE, "--listen: cannot be combined with %s",
				NEEDLESS[i].option);
	if (o->link_name)
		fatalx(EXIT_USAGE,
			"--link-name: the peer names the links of a program that "
			"listens");
	if (o->reconnect_attempts)
		fatalx(EXIT_USAGE,
			"--reconnect: needs a connection that we make; a listener has "
			"--forever");
	const char *error = url_parse_host_port(o->listen, &o->peer);
	if (error)
		fatalx(EXIT_USAGE, "--listen: %s: it must be HOST:PORT", error);
	o->peer.address = NULL;
}

/* ---- as whom ---- */

/* The environment's password or NULL. It is removed from there, for us, for children, and for
 * whoever looks into /proc. */
static char *take_environment(void)
{
	char *value = getenv(PASSWORD_VARIABLE);
	if (!value)
		return NULL;
	char *copy = *value ? strdup(value) : NULL;
	explicit_bzero(value, strlen(value));
	unsetenv(PASSWORD_VARIABLE);
	return copy;
}

/* The first line. */
static char *read_password(const char *name)
{
	FILE *file = fopen(name, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t length = file ? getline(&line, &size, file) : 0;
	if (!file || ferror(file))
		fatal(EXIT_USAGE, "--password-file: %s", name);
	fclose(file);
	if (length > 0)
		line[strcspn(line, "\r\n")] = '\0';
	if (length <= 0 || !*line)
		fatalx(EXIT_USAGE, "--password-file: %s: has no password in its first line", name);
	return line;
}

static void check_user(struct options *o)
{
	char *environment = take_environment();
	if (!o->user && *o->peer.user)
		o->user = o->peer.user;
	if (!o->user && o->password_file)
		fatalx(EXIT_USAGE, "--password-file: needs a user, in the URL or with --user");
	if (*o->peer.password)
		o->password = o->peer.password;
	else if (o->password_file)
		o->password = read_password(o->password_file);
	else if (o->user)
		o->password = environment;
	if (environment && o->password != environment) {
		explicit_bzero(environment, strlen(environment));
		free(environment);
	}
}

/* ---- SASL ---- */

static bool has_mechanism(const char *list, const char *name)
{
	size_t length = strlen(name);
	for (const char *found = list; (found = strstr(found, name)); found += length)
		if ((found == list || found[-1] == ' ') && (!found[length] || found[length] == ' '))
			return true;
	return false;
}

/* Copies a list of mechanisms, separated by commas or spaces, as the library wants it. */
static void copy_mechanisms(char *to, size_t size, const char *list)
{
	size_t length = 0;
	for (const char *c = list; *c; c++) {
		bool separator = *c == ',' || *c == ' ';
		if (!separator && !isalnum((unsigned char)*c) && !strchr("-_", *c))
			fatalx(EXIT_USAGE, "--sasl-mechs: \"%s\" is not a list of mechanisms",
				list);
		if (separator && (!length || to[length - 1] == ' '))
			continue;
		if (length + 1 >= size)
			fatalx(EXIT_USAGE, "--sasl-mechs: is too long");
		to[length++] = separator ? ' ' : (char)toupper((unsigned char)*c);
	}
	while (length && to[length - 1] == ' ')
		length--;
	to[length] = '\0';
	if (!length)
		fatalx(EXIT_USAGE, "--sasl-mechs: names no mechanism");
	if (has_mechanism(to, "NONE"))
		fatalx(EXIT_USAGE, "--sasl-mechs: " NO_SASL " stands alone");
}

/* Whether only mechanisms that need a password may be used. */
static bool needs_password(const char *mechanisms)
{
	return !has_mechanism(mechanisms, "EXTERNAL") && !has_mechanism(mechanisms, "ANONYMOUS")
		&& has_mechanism(mechanisms, "PLAIN");
}

/* When connecting. */
static const char *choose_mechanisms(struct options *o)
{
	if (!o->sasl_mechanisms)
		return o->user               ? MECHANISMS_PASSWORD
			: o->tls_certificate ? MECHANISMS_CERTIFICATE
					     : MECHANISMS_NOBODY;
	if (!strcmp(o->sasl_mechanisms, NO_SASL))
		return NULL;
	copy_mechanisms(o->mechanisms, sizeof o->mechanisms, o->sasl_mechanisms);
	return o->mechanisms;
}

static void check_sasl(struct options *o, struct security_options *s)
{
	s->user = o->user;
	s->password = o->password;
	s->insecure = o->sasl_insecure;
	s->mechanisms = choose_mechanisms(o);
	if (!s->mechanisms) {
		if (o->user)
			fatalx(EXIT_USAGE, "--sasl-mechs: without SASL there can be no user");
		return;
	}
	if (!o->user && needs_password(s->mechanisms))
		fatalx(EXIT_USAGE, "--sasl-mechs: PLAIN needs a user, in the URL or with --user");
	if (o->user && !o->password && needs_password(s->mechanisms))
		fatalx(EXIT_USAGE,
			"--user: needs a password: in the URL, --password-file, or the "
			"environment's " PASSWORD_VARIABLE);
	bool plain = o->password && has_mechanism(s->mechanisms, "PLAIN");
	if (plain && !o->peer.secure && !o->sasl_insecure)
		fatalx(EXIT_USAGE,
			"--sasl-insecure: is needed to send a password without TLS (amqps://)");
}

/* The library's server knows two, and one of them from the peer's certificate. */
static void check_sasl_server(struct options *o, struct security_options *s)
{
	if (!o->sasl_mechanisms)
		return;
	if (!strcmp(o->sasl_mechanisms, NO_SASL))
		fatalx(EXIT_USAGE, "--sasl-mechs: " NO_SASL " is for who connects");
	copy_mechanisms(o->mechanisms, sizeof o->mechanisms, o->sasl_mechanisms);
	if (has_mechanism(o->mechanisms, "EXTERNAL") && !o->tls_ca)
		fatalx(EXIT_USAGE, "--sasl-mechs: EXTERNAL needs --tls-ca");
	char *list = strdupa(o->mechanisms), *name;
	while ((name = strsep(&list, " ")))
		if (strcmp(name, "EXTERNAL") && strcmp(name, "ANONYMOUS"))
			fatalx(EXIT_USAGE,
				"--sasl-mechs: %s cannot be offered with --listen, but "
				"ANONYMOUS and EXTERNAL",
				name);
	s->mechanisms = o->mechanisms;
}

/* ---- TLS ---- */

/* Each option of TLS needs TLS, and its file, if it is one, must be there. */
static void check_tls_options(const struct options *o, bool tls)
{
	const struct {
		const char *option, *file;
		bool given;
	} ROWS[] = {{"--tls-ca", o->tls_ca, o->tls_ca},
		{"--tls-cert", o->tls_certificate, o->tls_certificate},
		{"--tls-key", o->tls_key, o->tls_key}, {"--tls-sni", NULL, o->tls_name},
		{"--tls-no-verify", NULL, o->tls_no_verify}};
	for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
		if (ROWS[i].given && !tls)
			fatalx(EXIT_USAGE, "%s: needs %s", ROWS[i].option,
				o->listen && !o->peer.has_scheme ? "--tls-cert and --tls-key"
								 : "amqps://");
		FILE *file = ROWS[i].file ? fopen(ROWS[i].file, "re") : NULL;
		if (ROWS[i].file && !file)
			fatal(EXIT_USAGE, "%s: %s", ROWS[i].option, ROWS[i].file);
		if (file)
			fclose(file);
	}
}

static void check_tls(struct options *o, struct security_options *s)
{
	check_tls_options(o, s->tls);
	if (!o->tls_certificate != !o->tls_key)
		fatalx(EXIT_USAGE, "%s: needs %s", o->tls_key ? "--tls-key" : "--tls-cert",
			o->tls_key ? "--tls-cert" : "--tls-key");
	if (s->tls && o->listen && !o->tls_certificate)
		fatalx(EXIT_USAGE, "--listen: TLS needs --tls-cert and --tls-key");
	if (o->tls_ca && o->tls_no_verify)
		fatalx(EXIT_USAGE, "--tls-no-verify: cannot be combined with --tls-ca");
	if (o->tls_name && strlen(o->tls_name) >= URL_HOST_SIZE)
		fatalx(EXIT_USAGE, "--tls-sni: is too long");
	s->ca = o->tls_ca;
	s->certificate = o->tls_certificate;
	s->key = o->tls_key;
	s->name = o->tls_name ? o->tls_name : o->peer.host;
	s->verify = o->listen ? (bool)o->tls_ca : !o->tls_no_verify;
}

/* What is wrong with a file that can be read. */
_Noreturn static void refuse(const struct options *o, enum security_fault fault)
{
	switch (fault) {
	case SECURITY_BAD_CA:
		fatalx(EXIT_USAGE, "--tls-ca: %s: holds no certificates (PEM)", o->tls_ca);
	case SECURITY_BAD_CERTIFICATE:
		fatalx(EXIT_USAGE, "--tls-cert: %s: holds no certificate (PEM) that can be used",
			o->tls_certificate);
	case SECURITY_BAD_KEY:
		fatalx(EXIT_USAGE, "--tls-key: %s: holds no private key (PEM, no pass phrase)",
			o->tls_key);
	case SECURITY_KEY_OF_ANOTHER:
		fatalx(EXIT_USAGE, "--tls-key: %s: is not the key of --tls-cert %s", o->tls_key,
			o->tls_certificate);
	default: fatalx(EXIT_INTERNAL, "TLS cannot be used");
	}
}

/* First where to, then as whom: a user may be in the URL. */
void option_connection_check(struct options *o)
{
	bool connects = o->url || o->broker || o->address;
	if (o->program == PROGRAM_PRECV && !connects && !o->listen)
		o->listen = o->tls_certificate ? DEFAULT_HOST ":" DEFAULT_TLS_PORT
					       : DEFAULT_HOST ":" DEFAULT_PORT;
	if (o->listen)
		check_listening(o);
	else
		check_connecting(o);
	check_user(o);
	struct security_options s = {.listen = o->listen, .tls = o->peer.secure};
	if (o->listen && !o->peer.has_scheme)
		s.tls = o->tls_certificate || o->tls_key;
	check_tls(o, &s);
	if (o->listen)
		check_sasl_server(o, &s);
	else
		check_sasl(o, &s);
	static struct security security;
	o->security = &security;
	enum security_fault fault = security_create(o->security, &s);
	if (fault)
		refuse(o, fault);
}
