// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Why threads leave the CPU, seen in the kernel: at each switch the state, whether it is I/O, the
 * system call the thread is in and what its descriptor leads to; handed out when the thread runs
 * again. And the marks of access("MARK: text").
 *
 * The few fields of kernel structures are declared here and relocated when loaded (CO-RE), so that
 * no header generated from one kernel is needed. What a kernel lacks makes the load fail; then
 * the trace events of tracefs are used.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "profiler/bpf/why-shared.h"

#define RELOCATED __attribute__((preserve_access_index))
#define PF_KTHREAD 0x00200000
#define TASK_DEAD 0x80
#define TASKS_MAX 16384
#define RING_BYTES (4 << 20)

struct inode {
        unsigned short i_mode;
        __u32 i_rdev;
} RELOCATED;

struct file {
        struct inode *f_inode;
} RELOCATED;

struct fdtable {
        unsigned int max_fds;
        struct file **fd;
} RELOCATED;

struct files_struct {
        struct fdtable *fdt;
} RELOCATED;

struct task_struct {
        int pid, tgid;
        unsigned int flags;
        unsigned int __state;
        unsigned in_iowait : 1;
        struct files_struct *files;
} RELOCATED;

/* The registers that user space called with; one of the two is there. */
struct pt_regs {
        unsigned long di, si, orig_ax;
} RELOCATED;

struct pt_regs___arm64 {
        __u64 regs[31];
        __s32 syscallno;
} RELOCATED;

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, TASKS_MAX);
        __type(key, __u32);
        __type(value, struct why_off_cpu);
} tasks SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct why_config);
} config SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, RING_BYTES);
} ring SEC(".maps");

static __always_inline struct why_config *
get_config(void)
{
        __u32 zero = 0;

        return bpf_map_lookup_elem(&config, &zero);
}

static __always_inline void
lost(void)
{
        struct why_config *c = get_config();

        if (c)
                __sync_fetch_and_add(&c->lost, 1);
}

/* The kind of file that the descriptor leads to. */
static __always_inline void
look_at_descriptor(struct task_struct *task, struct why_off_cpu *off)
{
        struct fdtable *table = BPF_CORE_READ(task, files, fdt);
        struct file **slots, *file = 0;
        struct inode *inode;

        if (!table || off->arg0 >= BPF_CORE_READ(table, max_fds))
                return;
        slots = BPF_CORE_READ(table, fd);
        if (bpf_probe_read_kernel(&file, sizeof file, slots + off->arg0) != 0 || !file)
                return;
        inode = BPF_CORE_READ(file, f_inode);
        off->mode = BPF_CORE_READ(inode, i_mode);
        off->rdev = BPF_CORE_READ(inode, i_rdev);
}

static __always_inline void
look_at_syscall(struct task_struct *task, struct why_off_cpu *off)
{
        struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
        struct pt_regs___arm64 *arm = (void *)regs;

        off->syscall = -1;
        if (bpf_core_field_exists(regs->orig_ax)) {
                off->syscall = (__s32)BPF_CORE_READ(regs, orig_ax);
                off->arg0 = BPF_CORE_READ(regs, di);
                off->arg1 = BPF_CORE_READ(regs, si);
        } else if (bpf_core_field_exists(arm->syscallno)) {
                off->syscall = BPF_CORE_READ(arm, syscallno);
                off->arg0 = BPF_CORE_READ(arm, regs[0]);
                off->arg1 = BPF_CORE_READ(arm, regs[1]);
        }
        if (off->syscall >= 0)
                look_at_descriptor(task, off);
}

static __always_inline void
leaves(struct task_struct *prev, int preempted)
{
        __u32 tid = prev->pid;
        struct why_off_cpu *off = bpf_map_lookup_elem(&tasks, &tid), fresh = {};

        if (!off) {
                struct why_config *c = get_config();

                if (!c || !c->every_process || tid == 0 || prev->tgid == (int)c->own_tgid ||
                    prev->flags & PF_KTHREAD)
                        return;
                if (bpf_map_update_elem(&tasks, &tid, &fresh, BPF_ANY) != 0) {
                        lost();
                        return;
                }
                off = bpf_map_lookup_elem(&tasks, &tid);
                if (!off)
                        return;
        }
        off->off_ns = bpf_ktime_get_ns();
        off->woken_ns = 0;
        off->mode = off->rdev = 0;
        off->state = preempted ? 0 : prev->__state;
        off->io = BPF_CORE_READ_BITFIELD(prev, in_iowait);
        if (off->state & TASK_DEAD)
                off->off_ns = 0;
        else if (off->state != 0)
                look_at_syscall(prev, off);
        else
                off->syscall = -1;
}

static __always_inline void
arrives(struct task_struct *next)
{
        __u32 tid = next->pid;
        struct why_off_cpu *off = bpf_map_lookup_elem(&tasks, &tid);
        struct why_record *out;

        if (!off || !off->off_ns)
                return;
        out = bpf_ringbuf_reserve(&ring, sizeof *out, 0);
        if (out) {
                out->kind = WHY_RECORD_WAIT;
                out->tid = (__s32)tid;
                out->start_ns = off->off_ns;
                out->woken_ns = off->woken_ns;
                out->end_ns = bpf_ktime_get_ns();
                out->arg0 = off->arg0;
                out->arg1 = off->arg1;
                out->state = off->state;
                out->mode = off->mode;
                out->rdev = off->rdev;
                out->syscall = off->syscall;
                out->io = off->io;
                /* The recorder looks a few times a second; it is not to be woken. */
                bpf_ringbuf_submit(out, BPF_RB_NO_WAKEUP);
        } else {
                lost();
        }
        off->off_ns = 0;
}

SEC("tp_btf/sched_switch")
int
on_switch(__u64 *context)
{
        leaves((struct task_struct *)context[1], (int)context[0]);
        arrives((struct task_struct *)context[2]);
        return 0;
}

SEC("tp_btf/sched_waking")
int
on_waking(__u64 *context)
{
        struct task_struct *task = (struct task_struct *)context[0];
        __u32 tid = task->pid;
        struct why_off_cpu *off = bpf_map_lookup_elem(&tasks, &tid);

        if (off && off->off_ns && !off->woken_ns)
                off->woken_ns = bpf_ktime_get_ns();
        return 0;
}

SEC("tp_btf/sched_process_fork")
int
on_fork(__u64 *context)
{
        struct task_struct *parent = (struct task_struct *)context[0];
        struct task_struct *child = (struct task_struct *)context[1];
        __u32 parent_tid = parent->pid, tid = child->pid;
        struct why_off_cpu first = {.off_ns = bpf_ktime_get_ns(), .syscall = -1};

        if (bpf_map_lookup_elem(&tasks, &parent_tid) &&
            bpf_map_update_elem(&tasks, &tid, &first, BPF_ANY) != 0)
                lost();
        return 0;
}

SEC("tp_btf/sched_process_exit")
int
on_exit(__u64 *context)
{
        struct task_struct *task = (struct task_struct *)context[0];
        __u32 tid = task->pid;

        bpf_map_delete_elem(&tasks, &tid);
        return 0;
}

/* A thread that executes takes over the id of its process, whose first thread has ended. */
SEC("tp_btf/sched_process_exec")
int
on_exec(__u64 *context)
{
        struct task_struct *task = (struct task_struct *)context[0];
        __u32 old_tid = (__u32)context[1], tid = task->pid;
        struct why_off_cpu fresh = {};

        if (tid != old_tid && bpf_map_lookup_elem(&tasks, &old_tid)) {
                bpf_map_update_elem(&tasks, &tid, &fresh, BPF_ANY);
                bpf_map_delete_elem(&tasks, &old_tid);
        }
        return 0;
}

/* The context of the trace events syscalls:sys_enter_...: header, number, arguments. */
struct enter_context {
        __u64 header;
        __s64 number;
        __u64 args[6];
};

/* Remembers the name; read after the call, when the kernel has read it too and its page is there
 * for certain. */
static __always_inline int
enters_access(__u64 name)
{
        __u32 tid = (__u32)bpf_get_current_pid_tgid();
        struct why_off_cpu *off = bpf_map_lookup_elem(&tasks, &tid), fresh = {};
        struct why_config *c;

        if (!off) {
                c = get_config();
                if (!c || !c->every_process || bpf_map_update_elem(&tasks, &tid, &fresh, BPF_ANY))
                        return 0;
                off = bpf_map_lookup_elem(&tasks, &tid);
        }
        if (off)
                off->access_name = name;
        return 0;
}

static __always_inline int
leaves_access(void)
{
        __u32 tid = (__u32)bpf_get_current_pid_tgid();
        struct why_off_cpu *off = bpf_map_lookup_elem(&tasks, &tid);
        char prefix[sizeof(WHY_MARK_PREFIX) - 1];
        struct why_record *out;
        const void *name;

        if (!off || !off->access_name)
                return 0;
        name = (const void *)off->access_name;
        off->access_name = 0;
        if (bpf_probe_read_user(prefix, sizeof prefix, name) != 0)
                return 0;
        for (unsigned int i = 0; i < sizeof prefix; i++)
                if (prefix[i] != WHY_MARK_PREFIX[i])
                        return 0;
        out = bpf_ringbuf_reserve(&ring, sizeof *out, 0);
        if (!out) {
                lost();
                return 0;
        }
        out->kind = WHY_RECORD_MARK;
        out->tid = (__s32)tid;
        out->start_ns = bpf_ktime_get_ns();
        if (bpf_probe_read_user_str(out->text, sizeof out->text, name + sizeof prefix) < 0)
                out->text[0] = '\0';
        bpf_ringbuf_submit(out, BPF_RB_NO_WAKEUP);
        return 0;
}

SEC("tp/syscalls/sys_enter_access")
int
on_access(struct enter_context *context)
{
        return enters_access(context->args[0]);
}

SEC("tp/syscalls/sys_exit_access")
int
on_access_end(void *context)
{
        (void)context;
        return leaves_access();
}

SEC("tp/syscalls/sys_enter_faccessat")
int
on_faccessat(struct enter_context *context)
{
        return enters_access(context->args[1]);
}

SEC("tp/syscalls/sys_exit_faccessat")
int
on_faccessat_end(void *context)
{
        (void)context;
        return leaves_access();
}

char LICENSE[] SEC("license") = "GPL";
