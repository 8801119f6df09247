// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits and marks seen by a BPF program in the kernel (profiler/bpf/why.bpf.c). Optional twice: the
 * program is there when it was built with clang and libbpf's headers; at run time libbpf is loaded
 * when it is there, and the program when the kernel lets us.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

#include "profiler/why.h"

typedef struct WhyBpf WhyBpf;

/* Of the process (not started yet) and all it will fork; 0 = of every process but this one. Errors:
 * COMMON_ERROR_UNSUPPORTED saying what is missing. */
WhyBpf *why_bpf_new(pid_t pid, GError **error);
void why_bpf_free(WhyBpf *bpf);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(WhyBpf, why_bpf_free)

/* TRUE when marks of access() are seen. */
gboolean why_bpf_has_marks(const WhyBpf *bpf);

typedef void (*WhySpellFunc)(const WhySpell *spell, gpointer data);
typedef void (*WhyMarkFunc)(gint32 tid, guint64 time_ns, const char *text, gpointer data);

/* Hands on what has come since the last call; never waits. */
void why_bpf_read(WhyBpf *bpf, WhySpellFunc spell, WhyMarkFunc mark, gpointer data);
/* Stops, hands on the rest, and the spells that have not ended as if they ended now; returns how
 * many records were lost. */
guint64 why_bpf_stop(WhyBpf *bpf, WhySpellFunc spell, WhyMarkFunc mark, gpointer data);
