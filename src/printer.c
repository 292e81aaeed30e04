#define _GNU_SOURCE
#include "printer.h"

#include "fatal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Standard output is there already. */
void printer_open(struct printer *p, const struct options *o)
{
	*p = (struct printer){.content = o->print_content,
		.headers = o->print_headers,
		.output.fd = -1,
		.file.fd = -1,
		.file_name = o->save_content};
	if (p->content || p->headers)
		outlet_open(&p->output, STDOUT_FILENO);
	if (!p->file_name)
		return;
	int fd = open(p->file_name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		fatal(EXIT_INTERNAL, "%s", p->file_name);
	outlet_open(&p->file, fd); /* until the process ends */
}

/* Pending bytes are lost. */
void printer_close(struct printer *p)
{
	outlet_close(&p->output);
	outlet_close(&p->file);
	text_destroy(&p->text);
}

/* As qpid-receive has it: headers, an empty line, content. */
void printer_put(
	struct printer *p, const char *message, size_t length, const char *body, size_t body_length)
{
	if (p->headers) {
		text_headers(&p->text, message, length);
		outlet_put(&p->output, p->text.bytes, p->text.length, false);
	}
	if (p->content)
		outlet_put(&p->output, body, body_length, true);
	if (p->file_name)
		outlet_put(&p->file, body, body_length, false);
}

/* One outlet; after an error it is closed, so that this is said once. */
static enum outlet_state flush(struct printer *p, struct outlet *outlet, struct failure *failure)
{
	enum outlet_state state = outlet_flush(outlet);
	if (state != OUTLET_FAILED)
		return state;
	*failure = (struct failure){.code = EXIT_INTERNAL};
	snprintf(failure->what, sizeof failure->what, "%s",
		outlet == &p->file ? p->file_name : "standard output");
	snprintf(failure->description, sizeof failure->description, "%s", strerror(outlet->error));
	outlet_close(outlet);
	return state;
}

/* Both. */
bool printer_flush(struct printer *p, struct engine *e, struct failure *failure)
{
	struct outlet *const outlets[] = {&p->output, &p->file};
	for (int i = 0; i < 2; i++) {
		enum outlet_state state = flush(p, outlets[i], failure);
		if (state == OUTLET_FAILED)
			return false;
		if (state == OUTLET_BLOCKED)
			engine_turn_when(e, outlets[i]->fd, POLLOUT);
	}
	return true;
}

/* Waits for those that are blocked. If one fails the other gets all the same. */
bool printer_drain(struct printer *p, int abandon_fd, struct failure *failure)
{
	bool failed = false;
	struct failure ignored;
	for (;;) {
		struct pollfd fds[] = {{.fd = abandon_fd, .events = POLLIN},
			{.fd = -1, .events = POLLOUT}, {.fd = -1, .events = POLLOUT}};
		enum outlet_state output = flush(p, &p->output, failure);
		failed = failed || output == OUTLET_FAILED;
		enum outlet_state file = flush(p, &p->file, failed ? &ignored : failure);
		failed = failed || file == OUTLET_FAILED;
		if (output == OUTLET_BLOCKED)
			fds[1].fd = p->output.fd;
		if (file == OUTLET_BLOCKED)
			fds[2].fd = p->file.fd;
		if (output != OUTLET_BLOCKED && file != OUTLET_BLOCKED)
			return !failed;
		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			fatal(EXIT_INTERNAL, "poll");
		if (fds[0].revents)
			return !failed;
	}
}
