/* lines: every line once, in order, however it comes, and never a wait. */
#define _GNU_SOURCE
#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define RESERVE 77

/* A pipe, of which L reads. */
struct source {
	struct lines lines;
	int write_fd;
};

static void create(struct source *s)
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	lines_create(&s->lines, fds[0], RESERVE);
	s->write_fd = fds[1];
}

static void destroy(struct source *s)
{
	close(s->lines.fd);
	close(s->write_fd);
	lines_destroy(&s->lines);
}

static void put(struct source *s, const char *bytes, size_t length)
{
	assert_int_equal(write(s->write_fd, bytes, length), length);
}

static void end(struct source *s)
{
	close(s->write_fd);
	s->write_fd = -1;
}

/* The next line is this one; the room before it is ours, and is used. */
static void assert_line(struct lines *l, const char *bytes, size_t length)
{
	assert_int_equal(lines_peek(l), LINES_READY);
	assert_int_equal(lines_peek(l), LINES_READY);
	assert_int_equal(l->line_bytes, length);
	assert_memory_equal(l->line, bytes, length);
	memset(l->line - RESERVE, 0xee, RESERVE);
	lines_take(l);
}

static void assert_text(struct lines *l, const char *text)
{
	assert_line(l, text, strlen(text));
}

/* What a text file has, and what it should not have. */
static void test_lines_are_what_is_between_newlines(void **state)
{
	(void)state;
	static const char INPUT[] = "one\n\ntwo \r\n\0a\0b\n\n\nlast";
	struct source s;
	create(&s);
	put(&s, INPUT, sizeof INPUT - 1);
	end(&s);
	assert_text(&s.lines, "one");
	assert_text(&s.lines, "");
	assert_text(&s.lines, "two \r");
	assert_line(&s.lines, "\0a\0b", 4);
	assert_text(&s.lines, "");
	assert_text(&s.lines, "");
	assert_text(&s.lines, "last");
	assert_int_equal(lines_peek(&s.lines), LINES_ENDED);
	assert_int_equal(lines_peek(&s.lines), LINES_ENDED);
	assert_int_equal(s.lines.error, 0);
	destroy(&s);
}

/* A newline ends a line, and does not begin one. */
static void test_nothing_follows_the_last_newline(void **state)
{
	(void)state;
	struct source s;
	create(&s);
	put(&s, "\n", 1);
	end(&s);
	assert_text(&s.lines, "");
	assert_int_equal(lines_peek(&s.lines), LINES_ENDED);
	destroy(&s);
	create(&s);
	end(&s);
	assert_int_equal(lines_peek(&s.lines), LINES_ENDED);
	destroy(&s);
}

/* A line is there when its newline is, not before; and nobody waits for it. */
static void test_a_line_may_come_in_pieces(void **state)
{
	(void)state;
	struct source s;
	create(&s);
	assert_int_equal(lines_peek(&s.lines), LINES_WAITING);
	put(&s, "ab", 2);
	assert_int_equal(lines_peek(&s.lines), LINES_WAITING);
	put(&s, "cd", 2);
	assert_int_equal(lines_peek(&s.lines), LINES_WAITING);
	put(&s, "\nef", 3);
	assert_text(&s.lines, "abcd");
	assert_int_equal(lines_peek(&s.lines), LINES_WAITING);
	put(&s, "g\nh", 3);
	assert_text(&s.lines, "efg");
	assert_int_equal(lines_peek(&s.lines), LINES_WAITING);
	end(&s);
	assert_text(&s.lines, "h");
	assert_int_equal(lines_peek(&s.lines), LINES_ENDED);
	destroy(&s);
}

/* Others may have the same terminal. */
static void test_the_descriptor_stays_as_it_is(void **state)
{
	(void)state;
	struct source s;
	create(&s);
	int before = fcntl(s.lines.fd, F_GETFL);
	assert_int_equal(lines_peek(&s.lines), LINES_WAITING);
	assert_int_equal(fcntl(s.lines.fd, F_GETFL), before);
	fcntl(s.lines.fd, F_SETFL, before | O_NONBLOCK); /* nor does it matter */
	assert_int_equal(lines_peek(&s.lines), LINES_WAITING);
	put(&s, "x\n", 2);
	assert_text(&s.lines, "x");
	destroy(&s);
}

/* Line I of the test below. */
static size_t make_line(char *to, unsigned i)
{
	size_t length = (size_t)i * 7919 % 3000;
	memset(to, 'a' + i % 26, length);
	return length + (size_t)sprintf(to + length, "-%u", i);
}

/* Across all ends of buffers and reads. */
static void test_a_file_is_read_in_order(void **state)
{
	(void)state;
	enum { LINES = 2000 };
	char line[4096];
	FILE *file = tmpfile();
	assert_non_null(file);
	for (unsigned i = 0; i < LINES; i++) {
		fwrite(line, make_line(line, i), 1, file);
		fputc('\n', file);
	}
	assert_int_equal(fflush(file), 0);
	rewind(file);
	struct lines l;
	lines_create(&l, fileno(file), RESERVE);
	for (unsigned i = 0; i < LINES; i++)
		assert_line(&l, line, make_line(line, i));
	assert_int_equal(lines_peek(&l), LINES_ENDED);
	assert_true(l.capacity <= 4 * 64 * 1024); /* of 3 MB */
	lines_destroy(&l);
	fclose(file);
}

/* One that does not fit is read bit by bit, so that other things can be done meanwhile, and its
 * memory is given back. */
static void test_long_lines(void **state)
{
	(void)state;
	enum { LENGTH = 20 * 1000 * 1000 };
	char *text = malloc(LENGTH);
	assert_non_null(text);
	for (size_t i = 0; i < LENGTH; i++)
		text[i] = (char)('!' + i % 89);
	FILE *file = tmpfile();
	assert_non_null(file);
	fwrite(text, LENGTH, 1, file);
	fputs("\nshort\n", file);
	assert_int_equal(fflush(file), 0);
	rewind(file);
	struct lines l;
	lines_create(&l, fileno(file), RESERVE);
	unsigned waits = 0;
	while (lines_peek(&l) == LINES_WAITING)
		waits++;
	assert_true(waits > 10);
	assert_line(&l, text, LENGTH);
	assert_text(&l, "short");
	assert_int_equal(lines_peek(&l), LINES_ENDED);
	assert_true(l.capacity < LENGTH / 10);
	lines_destroy(&l);
	fclose(file);
	free(text);
}

/* Nor one whose end is known. What came before is not lost. */
static void test_too_long_a_line_is_an_error(void **state)
{
	(void)state;
	static const char *const ENDS[] = {"", "\nmore\n"};
	for (size_t i = 0; i < 2; i++) {
		struct source s;
		create(&s);
		s.lines.longest = 10;
		put(&s, "1234567890\n12345678901", 22);
		put(&s, ENDS[i], strlen(ENDS[i]));
		assert_text(&s.lines, "1234567890");
		assert_int_equal(lines_peek(&s.lines), LINES_ENDED);
		assert_int_equal(lines_peek(&s.lines), LINES_ENDED);
		assert_int_equal(s.lines.error, EMSGSIZE);
		destroy(&s);
	}
}

/* What cannot be read has ended, and says why. */
static void test_a_folder_is_an_error(void **state)
{
	(void)state;
	int fd = open("/", O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	struct lines l;
	lines_create(&l, fd, RESERVE);
	assert_int_equal(lines_peek(&l), LINES_ENDED);
	assert_int_equal(l.error, EISDIR);
	lines_destroy(&l);
	close(fd);
}

/* What came before an error is not lost, and a line that was cut off is one, too. */
static void test_what_was_read_before_an_error_is_kept(void **state)
{
	(void)state;
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	struct lines l;
	lines_create(&l, fds[0], RESERVE);
	assert_int_equal(write(fds[1], "whole\npart", 10), 10);
	assert_text(&l, "whole");
	assert_int_equal(write(fds[0], "unread", 6), 6); /* so that closing it resets */
	close(fds[1]);
	assert_text(&l, "part");
	assert_int_equal(lines_peek(&l), LINES_ENDED);
	assert_int_equal(l.error, ECONNRESET);
	lines_destroy(&l);
	close(fds[0]);
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_are_what_is_between_newlines),
		cmocka_unit_test(test_nothing_follows_the_last_newline),
		cmocka_unit_test(test_a_line_may_come_in_pieces),
		cmocka_unit_test(test_the_descriptor_stays_as_it_is),
		cmocka_unit_test(test_a_file_is_read_in_order),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_too_long_a_line_is_an_error),
		cmocka_unit_test(test_a_folder_is_an_error),
		cmocka_unit_test(test_what_was_read_before_an_error_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
