import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AgentConfig } from '@tutti/core'
import { changedFile } from '@tutti/workspace'
import {
  createLocalSandboxes,
  type HostSandboxProvider,
  type LocalSandboxesOptions,
  type Sandbox,
  type SandboxSpec,
} from '@tutti/sandbox'
import { buildAgentServer } from './build-agent-server.ts'
import { startAgentServer } from './host/start-agent-server.ts'
import { agentServerMounts } from './inside-paths.ts'
import type { AgentHost } from '@tutti/agent'
import type { AgentServer, CapturedChange, CaptureSink, GitStateReport } from './port.ts'

/** For tests: a bare mirror with one commit, and sandboxes with running agent servers on it. */
export interface TestBench {
  readonly folder: string
  readonly commit: string
  readonly provider: HostSandboxProvider
  start(options?: StartTestOptions): Promise<{ sandbox: Sandbox; server: AgentServer }>
  dispose(): Promise<void>
}

export interface StartTestOptions {
  readonly policy?: Partial<AgentConfig['sandbox']>
  readonly env?: Readonly<Record<string, string>>
  readonly egressFolder?: string
}

export const never = new AbortController().signal

export const testPolicy: AgentConfig['sandbox'] = {
  isolation: 'bubblewrap',
  allowHosts: [],
  allowNetwork: false,
  envNames: [],
  envValues: {},
  mounts: [],
  limits: {
    memoryBytes: 1 << 30,
    pids: 128,
    cpuPercent: 200,
    diskBytes: 256 << 20,
    files: 50_000,
    fileBytes: 128 << 20,
  },
}

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    env: {
      PATH: process.env['PATH'],
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_AUTHOR_NAME: 'A',
      GIT_AUTHOR_EMAIL: 'a@example.com',
      GIT_COMMITTER_NAME: 'A',
      GIT_COMMITTER_EMAIL: 'a@example.com',
    },
  }).trim()

export async function createTestBench(
  makeTree: (folder: string) => void = (folder) => writeFileSync(join(folder, 'README.md'), 'hello\n'),
  options: Partial<LocalSandboxesOptions> = {},
): Promise<TestBench> {
  const folder = mkdtempSync(join(tmpdir(), 'tutti bench '))
  const work = join(folder, 'work')
  mkdirSync(work)
  git(work, 'init', '-q', '-b', 'main')
  makeTree(work)
  git(work, '-c', 'core.autocrlf=false', 'add', '-A', '-f')
  git(work, 'commit', '-q', '--allow-empty', '-m', 'base')
  const commit = git(work, 'rev-parse', 'HEAD')
  const mirror = join(folder, 'mirror.git')
  git(folder, 'clone', '-q', '--bare', 'work', mirror)
  const serverPath = await buildAgentServer(
    fileURLToPath(new URL('../../../node_modules/.cache/tutti/agent-server', import.meta.url)),
  )
  const provider = createLocalSandboxes({
    root: join(folder, 'sandboxes'),
    nodePath: process.execPath,
    ...options,
  })
  let count = 0

  return {
    folder,
    commit,
    provider,
    async start({ policy = {}, env = {}, egressFolder } = {}) {
      count += 1
      const spec: SandboxSpec = {
        key: `test/${count}`,
        owner: 'tester',
        policy: { ...testPolicy, ...policy },
        env,
        readOnly: agentServerMounts({
          serverPath,
          sourceObjects: join(mirror, 'objects'),
          ...(egressFolder === undefined ? {} : { egressFolder }),
        }),
      }
      const sandbox = await provider.create(spec, never)
      const server = await startAgentServer(
        { sandbox, serverPath, egress: egressFolder !== undefined },
        never,
      )
      return { sandbox, server }
    },
    async dispose() {
      for (const ref of await provider.list(undefined, never)) await provider.destroy(ref, never)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface RunOutput {
  readonly code: number | null
  readonly signal: string | undefined
  readonly timedOut: boolean
  readonly stdout: string
  readonly stderr: string
}

/** Runs a shell line inside and gathers its output. */
export async function shell(host: AgentHost, line: string, signal: AbortSignal = never): Promise<RunOutput> {
  const output = { stdout: '', stderr: '' }
  const run = host.exec({ argv: ['/bin/sh', '-c', line] }, signal)
  for (;;) {
    const next = await run.next()
    if (next.done)
      return { ...output, code: next.value.code, signal: next.value.signal, timedOut: next.value.timedOut }
    output[next.value.stream] += Buffer.from(next.value.bytes).toString()
  }
}

export interface RecordedPack {
  readonly report: GitStateReport
  readonly pack: Buffer
}

export interface Recorded {
  readonly changes: CapturedChange[]
  readonly contents: Map<string, Buffer>
  readonly skipped: { path: string; reason: string }[]
  readonly packs: RecordedPack[]
  readonly sink: CaptureSink
}

/** A sink that keeps everything; content by hash. */
export function recordCapture(): Recorded {
  const changes: CapturedChange[] = []
  const contents = new Map<string, Buffer>()
  const skipped: { path: string; reason: string }[] = []
  const packs: RecordedPack[] = []
  return {
    packs,
    changes,
    contents,
    skipped,
    sink: {
      async content(content) {
        const bytes = Buffer.concat(await Array.fromAsync(content))
        contents.set(`sha256_${createHash('sha256').update(bytes).digest('hex')}`, bytes)
      },
      async change(change, content) {
        changes.push(change)
        const file = changedFile(change)
        if (file && content) contents.set(file.hash, Buffer.concat(await Array.fromAsync(content)))
      },
      async skipped(path, reason) {
        skipped.push({ path: Buffer.from(path).toString('latin1'), reason })
      },
      async gitState(report, pack) {
        packs.push({ report, pack: Buffer.concat(await Array.fromAsync(pack)) })
        return true
      },
      async committed() {},
    },
  }
}
