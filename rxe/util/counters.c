/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <rxe/counters.h>

#include <stddef.h>

#define DROP_NAME(id, name, text)  [URXE_DROP_##id] = name,
#define DROP_TEXT(id, name, text)  [URXE_DROP_##id] = text,
#define EVENT_NAME(id, name, text) [URXE_EVENT_##id] = name,
#define EVENT_TEXT(id, name, text) [URXE_EVENT_##id] = text,

static const char *const drop_names[] = {"none", URXE_DROP_LIST(DROP_NAME)};
static const char *const drop_texts[] = {"not dropped", URXE_DROP_LIST(DROP_TEXT)};
static const char *const event_names[] = {URXE_EVENT_LIST(EVENT_NAME)};
static const char *const event_texts[] = {URXE_EVENT_LIST(EVENT_TEXT)};

const char *urxe_drop_name(enum urxe_drop drop)
{
	return (unsigned)drop < URXE_DROP_COUNT ? drop_names[drop] : NULL;
}

const char *urxe_drop_text(enum urxe_drop drop)
{
	return (unsigned)drop < URXE_DROP_COUNT ? drop_texts[drop] : NULL;
}

const char *urxe_event_name(enum urxe_event event)
{
	return (unsigned)event < URXE_EVENT_COUNT ? event_names[event] : NULL;
}

const char *urxe_event_text(enum urxe_event event)
{
	return (unsigned)event < URXE_EVENT_COUNT ? event_texts[event] : NULL;
}
