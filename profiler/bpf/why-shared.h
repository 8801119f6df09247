/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the program in the kernel and its reader share. Includes nothing: linux/types.h is there. */
#pragma once

#define WHY_MARK_PREFIX "MARK: "
#define WHY_MARK_BYTES 128

enum { WHY_RECORD_WAIT, WHY_RECORD_MARK };

struct why_config {
        __u32 every_process; /* 0: those in the map `tasks` and what they fork */
        __u32 own_tgid;      /* not recorded */
        __u64 lost;
};

/* A thread in the map `tasks`. */
struct why_off_cpu {
        __u64 off_ns, woken_ns; /* 0 = on the CPU, not woken */
        __u64 arg0, arg1;
        __u64 access_name; /* where the name of the access() it is in lies; 0 = none */
        __u32 state, mode, rdev;
        __s32 syscall;
        __u32 io;
};

struct why_record {
        __u32 kind;
        __s32 tid;
        __u64 start_ns; /* CLOCK_MONOTONIC */
        union {
                struct {
                        __u64 woken_ns, end_ns; /* 0 = not */
                        __u64 arg0, arg1;
                        __u32 state, mode, rdev; /* of the descriptor arg0; 0 = none */
                        __s32 syscall;           /* -1 = in a fault or by force */
                        __u32 io;
                };
                char text[WHY_MARK_BYTES];
        };
};
