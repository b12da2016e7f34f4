import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock, type SandboxPolicy } from '@tutti/core'
import { testSandboxContract } from './contract.ts'
import { limitLife } from './limit-life.ts'
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

const hour = 3_600_000

const variants: readonly [string, SandboxPolicy['isolation'], Partial<LocalSandboxesOptions>, number?][] = [
  ['local with bubblewrap', 'bubblewrap', {}],
  ['local without isolation', 'none', {}],
  ['local with bubblewrap, with an end', 'bubblewrap', {}, hour],
  ['local with bubblewrap, no kernel limits', 'bubblewrap', { limiter: 'watchdog', disk: 'watchdog' }],
  ['local without isolation, no kernel limits', 'none', { limiter: 'watchdog', disk: 'watchdog' }],
]

for (const [name, isolation, options, lifeMs] of variants) {
  testSandboxContract(name, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tutti sandbox '))
    writeFileSync(join(folder, 'given.txt'), 'given')
    const provider = createLocalSandboxes({
      root: join(folder, 'sandboxes'),
      nodePath: process.execPath,
      stopGraceMs: 300,
      ...options,
    })
    return {
      provider: lifeMs === undefined ? provider : limitLife(provider, lifeMs, systemClock),
      policy: { ...policy, isolation },
      folder,
      dispose: async () => rmSync(folder, { recursive: true, force: true }),
    }
  })
}
