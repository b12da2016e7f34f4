import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxPolicy } from '@tutti/core'
import { testSandboxContract } from './contract.ts'
import { createLocalSandboxes, type LocalSandboxesOptions } from './local-sandboxes.ts'

const policy: SandboxPolicy = {
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

const variants: readonly [string, SandboxPolicy['isolation'], Partial<LocalSandboxesOptions>][] = [
  ['local with bubblewrap', 'bubblewrap', {}],
  ['local without isolation', 'none', {}],
  ['local with bubblewrap, no kernel limits', 'bubblewrap', { limiter: 'watchdog', disk: 'watchdog' }],
  ['local without isolation, no kernel limits', 'none', { limiter: 'watchdog', disk: 'watchdog' }],
]

for (const [name, isolation, options] of variants) {
  testSandboxContract(name, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tutti sandbox '))
    writeFileSync(join(folder, 'given.txt'), 'given')
    return {
      provider: createLocalSandboxes({
        root: join(folder, 'sandboxes'),
        nodePath: process.execPath,
        stopGraceMs: 300,
        ...options,
      }),
      policy: { ...policy, isolation },
      folder,
      dispose: async () => rmSync(folder, { recursive: true, force: true }),
    }
  })
}
