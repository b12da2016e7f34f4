/** Numbers of one system call, by the name that Node gives the architecture. Absent where there is no such call. */
type Numbers = { readonly x64?: number; readonly arm64?: number }

const both = (number: number): Numbers => ({ x64: number, arm64: number })

/** Inspected by their first argument. */
export const inspectedCalls = {
  socket: { x64: 41, arm64: 198 },
  socketpair: { x64: 53, arm64: 199 },
  clone: { x64: 56, arm64: 220 },
} as const satisfies Record<string, Numbers>

/** Its flags are in memory, where a filter cannot look. As if the kernel were older, so that the C library uses clone. */
export const missingCalls: Readonly<Record<string, Numbers>> = { clone3: both(435) }

/** What building and testing software does not need, and what lets a program far into the kernel or into another program. */
export const refusedCalls: Readonly<Record<string, Numbers>> = {
  // Into other processes. ptrace stays: see docs/decisions/0074-seccomp.md.
  pidfd_getfd: both(438),
  process_vm_readv: { x64: 310, arm64: 270 },
  process_vm_writev: { x64: 311, arm64: 271 },
  kcmp: { x64: 312, arm64: 272 },
  // Keys are not in any namespace but the user's.
  add_key: { x64: 248, arm64: 217 },
  request_key: { x64: 249, arm64: 218 },
  keyctl: { x64: 250, arm64: 219 },
  // Programs and hooks in the kernel. io_uring also makes sockets that no filter sees.
  bpf: { x64: 321, arm64: 280 },
  perf_event_open: { x64: 298, arm64: 241 },
  userfaultfd: { x64: 323, arm64: 282 },
  io_uring_setup: both(425),
  io_uring_enter: both(426),
  io_uring_register: both(427),
  fanotify_init: { x64: 300, arm64: 262 },
  // Namespaces and mounts.
  unshare: { x64: 272, arm64: 97 },
  setns: { x64: 308, arm64: 268 },
  mount: { x64: 165, arm64: 40 },
  umount2: { x64: 166, arm64: 39 },
  pivot_root: { x64: 155, arm64: 41 },
  open_tree: both(428),
  move_mount: both(429),
  fsopen: both(430),
  fsconfig: both(431),
  fsmount: both(432),
  fspick: both(433),
  mount_setattr: both(442),
  open_tree_attr: both(467),
  // Files by handle, past every mount.
  open_by_handle_at: { x64: 304, arm64: 265 },
  // The machine itself.
  init_module: { x64: 175, arm64: 105 },
  finit_module: { x64: 313, arm64: 273 },
  delete_module: { x64: 176, arm64: 106 },
  kexec_load: { x64: 246, arm64: 104 },
  kexec_file_load: { x64: 320, arm64: 294 },
  reboot: { x64: 169, arm64: 142 },
  swapon: { x64: 167, arm64: 224 },
  swapoff: { x64: 168, arm64: 225 },
  quotactl: { x64: 179, arm64: 60 },
  quotactl_fd: both(443),
  acct: { x64: 163, arm64: 89 },
  syslog: { x64: 103, arm64: 116 },
  // Of old hardware and old interfaces.
  iopl: { x64: 172 },
  ioperm: { x64: 173 },
  modify_ldt: { x64: 154 },
  uselib: { x64: 134 },
}
