import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxLimits, SandboxPolicy } from '@tutti/core'
import { createLocalSandboxes, type LocalSandboxesOptions } from './local-sandboxes.ts'
import type { Exec, ExecExit, HostSandboxProvider, Sandbox, SandboxSpec } from './port.ts'

export const never = new AbortController().signal

export const testLimits: SandboxLimits = {
  memoryBytes: 512 << 20,
  pids: 64,
  cpuPercent: 100,
  diskBytes: 32 << 20,
  files: 2000,
  fileBytes: 8 << 20,
}

export interface Running {
  readonly sandbox: Sandbox
  readonly exec: Exec
  /** What it has said so far. */
  readonly output: () => string
  readonly exit: Promise<ExecExit>
}

interface SpecChange {
  readonly policy?: Partial<SandboxPolicy>
  readonly limits?: Partial<SandboxLimits>
}

/** For tests: a provider in a folder of its own, and shell lines as main programs of its sandboxes. */
export interface TestSubject {
  readonly folder: string
  readonly provider: HostSandboxProvider
  /** Of a sandbox that there is not yet. */
  readonly spec: (change?: SpecChange) => SandboxSpec
  readonly run: (line: string, change?: SpecChange) => Promise<Running>
  dispose(): Promise<void>
}

export function createTestSubject(options: Partial<LocalSandboxesOptions> = {}): TestSubject {
  const folder = mkdtempSync(join(tmpdir(), 'tutti sandbox '))
  const provider = createLocalSandboxes({
    root: join(folder, 'sandboxes'),
    nodePath: process.execPath,
    stopGraceMs: 300,
    ...options,
  })
  let count = 0
  const specOf = ({ policy = {}, limits = {} }: SpecChange = {}): SandboxSpec => {
    count += 1
    const full: SandboxPolicy = {
      isolation: 'bubblewrap',
      allowHosts: [],
      allowNetwork: false,
      envNames: [],
      envValues: {},
      mounts: [],
      limits: { ...testLimits, ...limits },
      ...policy,
    }
    return { key: `${process.pid}/${count}`, owner: 'tester', policy: full, env: {}, readOnly: [] }
  }
  return {
    folder,
    provider,
    spec: specOf,
    async run(line, change) {
      const sandbox = await provider.create(specOf(change), never)
      const exec = await sandbox.exec({ argv: ['/bin/sh', '-c', line] }, never)
      let output = ''
      const read = async (stream: AsyncIterable<Uint8Array>) => {
        for await (const chunk of stream) output += Buffer.from(chunk).toString()
      }
      const reads = Promise.all([read(exec.stdout), read(exec.stderr)])
      return { sandbox, exec, output: () => output, exit: reads.then(() => exec.exit) }
    },
    async dispose() {
      for (const ref of await provider.list(undefined, never)) await provider.destroy(ref, never)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
