import { createCgroupV1Limiter } from './cgroup-v1.ts'
import { createCgroupV2Limiter } from './cgroup-v2.ts'
import type { LimiterKind, ResourceLimiter } from './resource-group.ts'
import { createSystemdLimiter } from './systemd-limiter.ts'
import { watchdogLimiter } from './watchdog-limiter.ts'

const probeLimits = {
  memoryBytes: 1 << 26,
  pids: 16,
  cpuPercent: 100,
  diskBytes: 0,
  files: 0,
  fileBytes: 0,
}

const makers: Record<LimiterKind, () => ResourceLimiter | undefined> = {
  'cgroup-v2': () => createCgroupV2Limiter(),
  'cgroup-v1': () => createCgroupV1Limiter(),
  'systemd-run': () => createSystemdLimiter(),
  watchdog: () => watchdogLimiter,
}

/** The best limiter that works here, found by making a group with each in turn; `only` asks for one kind. */
export function pickLimiter(only?: LimiterKind): ResourceLimiter {
  const kinds = only ? [only] : (Object.keys(makers) as LimiterKind[])
  for (const kind of kinds) {
    const limiter = working(kind)
    if (limiter) return limiter
  }
  return watchdogLimiter
}

function working(kind: LimiterKind): ResourceLimiter | undefined {
  try {
    const limiter = makers[kind]()
    limiter?.createGroup(`probe-${process.pid}`, probeLimits).remove()
    return limiter
  } catch {
    return undefined
  }
}
