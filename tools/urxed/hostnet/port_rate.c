/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/port_rate.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH_1X = 1, WIDTH_4X = 2, WIDTH_8X = 4, WIDTH_12X = 8, WIDTH_2X = 16 };
enum { SDR = 1, DDR = 2, QDR = 4, FDR10 = 8, FDR = 16, EDR = 32, HDR = 64, NDR = 128 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	uint8_t code;
	unsigned int lanes;
} widths[] = {{WIDTH_1X, 1}, {WIDTH_2X, 2}, {WIDTH_4X, 4}, {WIDTH_8X, 8}, {WIDTH_12X, 12}};

/* Names and rates of lanes as in the kernel's sysfs, which does not print all fractions. */
static const struct {
	uint8_t code;
	const char *name;
	unsigned int gbps_10; /* Gb/s of a lane, times 10 */
} speeds[] = {
	{SDR, "SDR", 25},   {DDR, "DDR", 50},  {QDR, "QDR", 100}, {FDR10, "FDR10", 100},
	{FDR, "FDR", 140},  {EDR, "EDR", 250}, {HDR, "HDR", 500}, {NDR, "NDR", 1000},
	{NDR, "XDR", 2000}, /* as NDR in Linux, because 8 bits of ibv_query_port lack XDR */
};

const struct port_rate port_rate_default = {WIDTH_4X, SDR};

/* Chooses as Linux' ib_get_width_and_speed does since 6.5 for an interface that does not report its
 * lanes. */
struct port_rate port_rate_of_link(uint32_t mbps)
{
	static const struct {
		uint32_t mbps;
		struct port_rate rate;
	} links[] = {
		{1000, {WIDTH_1X, SDR}},   {10000, {WIDTH_1X, FDR10}}, {20000, {WIDTH_4X, DDR}},
		{25000, {WIDTH_1X, EDR}},  {40000, {WIDTH_4X, FDR10}}, {50000, {WIDTH_2X, EDR}},
		{100000, {WIDTH_4X, EDR}}, {200000, {WIDTH_4X, HDR}},
	};

	for (size_t i = 0; i < COUNT(links); i++)
		if (mbps <= links[i].mbps)
			return links[i].rate;
	return (struct port_rate){WIDTH_4X, NDR};
}

struct port_rate port_rate_parse(const char *text)
{
	struct port_rate rate = {0};
	unsigned int lanes;
	char name[6], end;

	if (sscanf(text, "%*[0-9.] Gb/sec (%2uX %5[A-Z0-9]%c", &lanes, name, &end) != 3 ||
	    end != ')')
		return rate;
	for (size_t i = 0; i < COUNT(speeds) && !rate.speed; i++)
		if (!strcmp(speeds[i].name, name))
			rate.speed = speeds[i].code;
	for (size_t i = 0; i < COUNT(widths) && rate.speed; i++)
		if (widths[i].lanes == lanes)
			rate.width = widths[i].code;
	return rate;
}

static unsigned int lanes_of(struct port_rate rate)
{
	size_t i = 0;

	while (i < COUNT(widths) - 1 && widths[i].code != rate.width)
		i++;
	return widths[i].lanes;
}

/* Returns the index in speeds[]. */
static size_t speed_of(struct port_rate rate)
{
	size_t i = 0;

	while (i < COUNT(speeds) - 1 && speeds[i].code != rate.speed)
		i++;
	return i;
}

void port_rate_print(struct port_rate rate, char text[PORT_RATE_TEXT])
{
	const unsigned int lanes = lanes_of(rate), gbps_10 = lanes * speeds[speed_of(rate)].gbps_10;

	snprintf(text, PORT_RATE_TEXT, "%u%s Gb/sec (%uX %s)", gbps_10 / 10,
		 gbps_10 % 10 ? ".5" : "", lanes, speeds[speed_of(rate)].name);
}

/* Computes as iboe_get_rate of Linux; 0 is IB_RATE_PORT_CURRENT. */
uint8_t port_rate_of_path(struct port_rate rate)
{
	const unsigned int gbps = lanes_of(rate) * speeds[speed_of(rate)].gbps_10 / 10;
	enum { RATE_10 = 3, RATE_20 = 6, RATE_30 = 4, RATE_40 = 7 };

	if (gbps >= 40)
		return RATE_40;
	if (gbps >= 30)
		return RATE_30;
	if (gbps >= 20)
		return RATE_20;
	return gbps >= 10 ? RATE_10 : 0;
}
