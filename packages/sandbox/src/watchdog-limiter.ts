import type { ResourceLimiter } from './resource-group.ts'

/** No group of the kernel's at all: `watchSandbox` measures and kills instead. */
export const watchdogLimiter: ResourceLimiter = {
  kind: 'watchdog',
  note:
    'memory and processes are measured twice a second and the sandbox is killed above its limit; cpu is not limited ' +
    '(run where cgroups are writable, or with a user systemd, for limits by the kernel)',
  createGroup: () => ({
    kind: 'watchdog',
    folders: [],
    prefix: [],
    processes: () => [],
    limitHit: () => undefined,
    remove() {},
  }),
}
