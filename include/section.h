/* section: the sections of a message, by their descriptors. Layer 0.
 *
 * AMQP 1.0 part 3, section 3.2.
 */
#ifndef SECTION_H
#define SECTION_H

#include <stdbool.h>
#include <stdint.h>

enum section {
	SECTION_NONE = 0,
	SECTION_HEADER = 0x70,
	SECTION_PROPERTIES = 0x73,
	SECTION_APPLICATION_PROPERTIES = 0x74,
	SECTION_DATA = 0x75,
	SECTION_AMQP_SEQUENCE = 0x76,
	SECTION_AMQP_VALUE = 0x77,
};

static inline bool section_is_body(uint64_t descriptor)
{
	return descriptor >= SECTION_DATA && descriptor <= SECTION_AMQP_VALUE;
}

#endif
