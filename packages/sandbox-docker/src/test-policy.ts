import type { SandboxPolicy } from '@tutti/core'

/** For tests: everything limited, nothing allowed. */
export const testPolicy: SandboxPolicy = {
  isolation: 'bubblewrap',
  allowHosts: [],
  allowNetwork: false,
  envNames: [],
  envValues: {},
  mounts: [],
  limits: {
    memoryBytes: 1 << 30,
    pids: 100,
    cpuPercent: 200,
    diskBytes: 64 << 20,
    files: 10_000,
    fileBytes: 32 << 20,
  },
}
