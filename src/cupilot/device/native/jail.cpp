// Runs one command that may read system directories and write one work directory, and nothing else:
//   jail PARENT_PID CPU_SECONDS ADDRESS_BYTES FILE_BYTES WORK_DIR READ_DIR... -- COMMAND ARGUMENT...
// For compilers and disassemblers fed with untrusted text. No network, no other process's memory, no other
// user's files. Does not limit wall-clock time (the parent does) and keeps the user's identity.
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox.h"

namespace {

// Everything that reaches beyond files and own memory. Answered with EPERM, so that a tool can carry on.
bool filter_calls() {
    sandbox::Filter filter(SECCOMP_RET_ALLOW);
    for (long number :
         {SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_sendto,
          SYS_sendmsg, SYS_recvfrom, SYS_recvmsg, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
          SYS_kill, SYS_tkill, SYS_tgkill, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_mount, SYS_umount2,
          SYS_pivot_root, SYS_chroot, SYS_setns, SYS_unshare, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd,
          SYS_keyctl, SYS_add_key, SYS_request_key, SYS_io_uring_setup, SYS_io_uring_enter, SYS_init_module,
          SYS_finit_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_setsid, SYS_setpgid,
          SYS_shmget, SYS_shmat, SYS_msgget, SYS_semget, SYS_mq_open, SYS_personality, SYS_clock_settime,
          SYS_settimeofday, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_quotactl, SYS_acct, SYS_sendmmsg,
          SYS_recvmmsg, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_getfd, SYS_process_madvise, SYS_kcmp,
          SYS_move_mount, SYS_fsopen, SYS_fsmount, SYS_open_tree, SYS_mount_setattr, SYS_fanotify_init})
        filter.on(number, SECCOMP_RET_ERRNO | EPERM);
    filter.on(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);  // its flags cannot be filtered; libc falls back to clone
    return filter.install(false);
}

}  // namespace

int main(int count, char** values) {
    int separator = 1;
    while (separator < count && strcmp(values[separator], "--") != 0) ++separator;
    if (separator < 6 || separator + 1 >= count) return 125;
    sandbox::die_with(static_cast<pid_t>(atol(values[1])));
    sandbox::limit(RLIMIT_CPU, strtoull(values[2], nullptr, 10));
    sandbox::limit(RLIMIT_AS, strtoull(values[3], nullptr, 10));
    sandbox::limit(RLIMIT_FSIZE, strtoull(values[4], nullptr, 10));
    sandbox::limit(RLIMIT_CORE, 0);
    sandbox::limit(RLIMIT_NOFILE, 256);
    syscall(SYS_close_range, 3, ~0u, 0);
    unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC);  // where permitted; the filter stands without it
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

    sandbox::Landlock files;
    files.allow_everything(values[5]);
    for (int i = 6; i < separator; ++i) files.allow(values[i], sandbox::kReading);
    files.allow("/dev/null", sandbox::kReadFile | 2);
    files.enforce();
    if (!filter_calls()) return 124;
    execv(values[separator + 1], values + separator + 1);
    fprintf(stderr, "cannot run %s: %s\n", values[separator + 1], strerror(errno));
    return 123;
}
