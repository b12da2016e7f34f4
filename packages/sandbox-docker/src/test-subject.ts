import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxLimits, SandboxPolicy } from '@tutti/core'
import type { Exec, ExecExit, HostSandboxProvider, Sandbox } from '@tutti/sandbox'
import { createDockerSandboxes, type DockerSandboxesOptions } from './docker-sandboxes.ts'
import { testPolicy } from './test-policy.ts'

export const never = new AbortController().signal

export interface Running {
  readonly sandbox: Sandbox
  readonly exec: Exec
  /** What it has said so far. */
  readonly output: () => string
  /** Resolves when all that it said was read. */
  readonly exit: Promise<ExecExit>
}

/** For tests: a provider in a folder of its own, and shell lines as main programs of its sandboxes. */
export interface TestSubject {
  readonly folder: string
  readonly provider: HostSandboxProvider
  readonly run: (
    line: string,
    change?: {
      policy?: Partial<SandboxPolicy>
      limits?: Partial<SandboxLimits>
      env?: Readonly<Record<string, string>>
    },
  ) => Promise<Running>
  /** Names of folders of sandboxes that are there. */
  readonly folders: () => string[]
  /** Ends all that was made so far. */
  clear(): Promise<void>
  dispose(): Promise<void>
}

export function createTestSubject(
  options: Pick<DockerSandboxesOptions, 'image'> & Partial<DockerSandboxesOptions>,
): TestSubject {
  const folder = mkdtempSync(join(tmpdir(), 'tutti docker '))
  const root = join(folder, 'sandboxes')
  const provider = createDockerSandboxes({ root, nodePath: process.execPath, stopGraceMs: 300, ...options })
  let count = 0
  const clear = async () => {
    for (const ref of await provider.list(undefined, never)) await provider.destroy(ref, never)
  }
  return {
    folder,
    provider,
    folders: () => readdirSync(root).filter((name) => name !== 'seccomp.json'),
    async run(line, { policy = {}, limits = {}, env = {} } = {}) {
      count += 1
      const full: SandboxPolicy = { ...testPolicy, limits: { ...testPolicy.limits, ...limits }, ...policy }
      const spec = { key: `${process.pid}/${count}`, owner: 'tester', policy: full, env, readOnly: [] }
      const sandbox = await provider.create(spec, never)
      const exec = await sandbox.exec({ argv: ['/bin/sh', '-c', line] }, never)
      let output = ''
      const read = async (stream: AsyncIterable<Uint8Array>) => {
        for await (const chunk of stream) output += Buffer.from(chunk).toString()
      }
      const reads = Promise.all([read(exec.stdout), read(exec.stderr)])
      return { sandbox, exec, output: () => output, exit: reads.then(() => exec.exit) }
    },
    clear,
    async dispose() {
      await clear()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
