/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <netdev/telemetry.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <rte_telemetry.h>

struct netdev_telemetry {
	struct rte_tel_data *data;
	uint32_t n;
};

static struct {
	const struct netdev_telemetry_command *commands;
	uint32_t n;
} registered;

/* Adds a number to the answer: to a dictionary under its name, or to an array without one.
 * rte_telemetry leaves out names that are too long. */
void netdev_telemetry_number(struct netdev_telemetry *answer, const char *name, uint64_t value)
{
	if (answer->n++ >= NETDEV_TELEMETRY_MAX)
		return;
	if (name)
		rte_tel_data_add_dict_u64(answer->data, name, value);
	else
		rte_tel_data_add_array_u64(answer->data, value);
}

void netdev_telemetry_text(struct netdev_telemetry *answer, const char *name, const char *value)
{
	if (answer->n++ < NETDEV_TELEMETRY_MAX && strlen(value) < RTE_TEL_MAX_STRING_LEN)
		rte_tel_data_add_dict_string(answer->data, name, value);
}

static const struct netdev_telemetry_command *find_command(const char *path)
{
	for (uint32_t i = 0; i < registered.n; i++)
		if (!strcmp(registered.commands[i].path, path))
			return &registered.commands[i];
	return NULL;
}

static int answer_command(const char *path, const char *parameter, struct rte_tel_data *data)
{
	const struct netdev_telemetry_command *command = find_command(path);
	struct netdev_telemetry answer = {.data = data};

	if (!command)
		return -ENOENT;
	if (command->list)
		rte_tel_data_start_array(data, RTE_TEL_U64_VAL);
	else
		rte_tel_data_start_dict(data);
	return command->answer(parameter ? parameter : "", &answer);
}

int netdev_telemetry_register(const struct netdev_telemetry_command *commands, uint32_t n)
{
	int rc = 0;

	registered.commands = commands;
	registered.n = n;
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = rte_telemetry_register_cmd(commands[i].path, answer_command, commands[i].help);
	return rc;
}
