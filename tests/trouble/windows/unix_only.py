"""What Python has on Unix and not on Windows. The house's tests look for it, and the simulation takes it away."""

MODULES = "fcntl grp nis ossaudiodev posix pty pwd readline resource spwd syslog termios tty".split()
CALLS = """
    chown chroot ctermid fchdir fchmod fchown fork forkpty getegid geteuid getgid getgrouplist getgroups getloadavg
    getpgid getpgrp getpriority getresgid getresuid getsid getuid initgroups killpg lchown lockf login_tty major
    makedev minor mkfifo mknod nice openpty pathconf pipe2 posix_fadvise posix_fallocate posix_spawn posix_spawnp pread
    preadv pwrite pwritev readv register_at_fork sched_getaffinity sched_setaffinity sched_yield sendfile setegid
    seteuid setgid setgroups setpgid setpriority setregid setresuid setreuid setsid setuid statvfs sync sysconf
    tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid writev
    O_ASYNC O_CLOEXEC O_DIRECTORY O_DSYNC O_NDELAY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_SYNC WNOHANG""".split()
"""Of the module os."""
SIGNALS = "SIGABRT SIGBREAK SIGFPE SIGILL SIGINT SIGSEGV SIGTERM SIG_DFL SIG_IGN".split()
"""Those that Windows has."""
ALARMS = """
    ITIMER_REAL alarm getitimer pause pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigtimedwait
    sigwait""".split()
"""Of the module signal."""
OTHERS = {"select": ["poll", "epoll", "kqueue"], "socket": ["AF_UNIX", "socketpair"], "time": ["tzset"]}
ARGUMENTS = ["preexec_fn", "pass_fds", "dir_fd"]
