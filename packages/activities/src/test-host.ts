import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createCommandAdapter } from '@tutti/agent'
import { MockActivityEnvironment } from '@temporalio/testing'
import { agentServerMounts, buildAgentServer, startAgentServer, type AgentServer } from '@tutti/agent-server'
import {
  createFilesystemArchive,
  createFilesystemBlobStore,
  type Archive,
  type BlobStore,
} from '@tutti/blob-store'
import {
  agentId,
  initialAgentState,
  noCrashPoints,
  systemClock,
  type AgentConfig,
  type AgentId,
  type BlobId,
  type CrashPoint,
  type LogId,
} from '@tutti/core'
import { createMirrors } from '@tutti/git'
import type { RunEvent } from '@tutti/protocol'
import { createLocalSandboxes, type SandboxProvider } from '@tutti/sandbox'
import { createSqliteStore, sealLogs, type EventLog, type SqliteStore } from '@tutti/store'
import { createCheckAttempt } from './check-attempt.ts'
import { createConfigBlobs } from './config-blobs.ts'
import { createCheckpointTurn } from './checkpoint-turn.ts'
import type { Activities, CheckpointResult, TurnResult } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { createProvisionSandbox } from './provision-sandbox.ts'
import { readEvents } from '@tutti/workspace/log'
import { endSession } from './release-sandbox.ts'
import { createRunTurn } from './run-turn.ts'
import { runToEnd } from './run-to-end.ts'
import { createSessions, type HostSession, type Sessions } from './sessions.ts'

/** For tests: one agent on a host with real stores, mirrors and sandboxes, without Temporal. */
export interface TestHost {
  /** With `source`, the repository, and `mirrors`. */
  readonly folder: string
  readonly bcId: AgentId
  /** The repository that the agent works on. */
  readonly source: string
  readonly store: SqliteStore
  readonly deps: ActivityDeps
  /** All of these types in the log, in order. */
  events<T extends RunEvent['type']>(...types: readonly T[]): Promise<Extract<RunEvent, { type: T }>[]>
  /** As the worker does it: the workspace is that of the log. */
  provision(incarnation: number, recovery?: Recovery): Promise<HostSession>
  /** The same on another host, while this one does not know of it. */
  provisionElsewhere(incarnation: number): Promise<HostSession>
  /** A turn in the session's sandbox, as a worker runs it, until its user stops it; fails when it must go on in another one. */
  runTurn(session: HostSession, continued: boolean, stop?: AbortSignal): Promise<TurnResult>
  /** As after the turn of an attempt. */
  check(session: HostSession): Promise<void>
  /** Gives the sandbox up in good order. */
  release(session: HostSession): Promise<void>
  /** The end of the session's turn. */
  checkpoint(session: HostSession): Promise<CheckpointResult>
  /** As if the store had lost it. */
  removeBlob(id: BlobId): void
  /** Puts all of the log into the archive, as a server does it from time to time. */
  sealLog(): Promise<void>
  /** Ends every process of the sandbox at once, and removes its disk. */
  lose(session: HostSession): Promise<void>
  remove(): Promise<void>
}

type Recovery = NonNullable<Parameters<Activities['provisionSandbox']>[0]['recovery']>

export interface TestHostOptions {
  /** What the base commit has. */
  readonly files: Readonly<Record<string, string>>
  /** Adds to the folder that becomes the base commit. */
  readonly prepare?: (folder: string) => void
  /** Largest file that is captured, in bytes. */
  readonly maxFileBytes?: number
  readonly crashPoint?: CrashPoint
  /** Stands before the real one. */
  readonly blobs?: (real: BlobStore) => BlobStore
  readonly eventLog?: (real: EventLog) => EventLog
  /** Default false. */
  readonly watchWorkspace?: boolean
  /** What holds sandboxes to their disk. Default: the best that there is. */
  readonly disk?: 'mount' | 'watchdog'
  /** Of the sandbox. Default: enough for a small workspace. */
  readonly limits?: Partial<AgentConfig['sandbox']['limits']>
  readonly archive?: (real: Archive) => Archive
  /** What the mirrors run for `git`. */
  readonly gitPath?: string
  readonly sandboxes?: (real: SandboxProvider) => SandboxProvider
  readonly agentServer?: (real: AgentServer) => AgentServer
  /** Default: `embedded:scripted`, which only a worker can run. */
  readonly agentSpec?: string
  readonly endMarginMs?: number
  readonly captureIntervalMs?: number
  readonly checkpointIntervalMs?: number
  /** Default: none. */
  readonly setupCommand?: string
  /** Default: none. */
  readonly checkCommand?: string
  /** In the place of the agent's workflow. */
  readonly askToRelease?: () => Promise<void>
}

const never = new AbortController().signal
const owner = 'local'
/** Activities that fail are what some tests are about. */
const quiet = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} }

export async function createTestHost(options: TestHostOptions): Promise<TestHost> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tutti-host-')))
  const source = createSource(join(folder, 'source'), options)
  const store = await createSqliteStore({ path: join(folder, 'tutti.db') })
  const filesystem = createFilesystemBlobStore({ root: join(folder, 'blobs') })
  const blobs = options.blobs?.(filesystem) ?? filesystem
  const kept = createFilesystemArchive({ root: join(folder, 'archive') })
  const archive = options.archive?.(kept) ?? kept
  const local = createLocalSandboxes({
    root: join(folder, 'sandboxes'),
    nodePath: process.execPath,
    ...(options.disk && { disk: options.disk }),
  })
  const sandboxes = options.sandboxes?.(local) ?? local
  const serverPath = await buildAgentServer(
    fileURLToPath(new URL('../../../node_modules/.cache/tutti/agent-server', import.meta.url)),
  )
  const { maxFileBytes } = options
  const largest = maxFileBytes === undefined ? {} : { maxFileBytes }
  const deps = {
    eventLog: options.eventLog?.(store.eventLog) ?? store.eventLog,
    catalog: store.catalog,
    blobs,
    mirrors: createMirrors({
      root: join(folder, 'mirrors'),
      archive,
      ...(options.gitPath !== undefined && { gitPath: options.gitPath }),
    }),
    sandboxes,
    agentServers: {
      prepare: async ({ sourceObjects }) => ({
        readOnly: agentServerMounts({ serverPath, sourceObjects }),
        async start(sandbox, signal) {
          const server = await startAgentServer({ sandbox, serverPath, ...largest }, signal)
          return options.agentServer?.(server) ?? server
        },
        discard: async () => {},
      }),
    } satisfies ActivityDeps['agentServers'],
    clock: systemClock,
    crashPoint: options.crashPoint ?? noCrashPoints,
    log: { info() {}, warn() {} },
    env: {},
    answerTimeoutMs: 60_000,
    watchWorkspace: options.watchWorkspace ?? false,
    adapters: new Map([['command', createCommandAdapter({ clock: systemClock })]]),
    tellWaiting: async () => {},
    askToRelease: options.askToRelease ?? (async () => {}),
    stateIntervalMs: 3_600_000,
    stopGraceMs: 500,
    endMarginMs: options.endMarginMs ?? 60_000,
    captureIntervalMs: options.captureIntervalMs ?? 3_600_000,
    checkpointIntervalMs: options.checkpointIntervalMs ?? 3_600_000,
    captureTimeoutMs: 60_000,
    stopAnswerMs: 60_000,
    draining: never,
    // Only what a sandbox and its workspace need.
  } as unknown as ActivityDeps

  const bcId = agentId(Date.now(), randomBytes(10))
  const config = configWith(options)
  const configBlobId = await blobs.put(Buffer.from(JSON.stringify(config)), never)
  await store.catalog.agents.insert(
    {
      bcId,
      owner,
      title: 'test',
      repository: 'source',
      agentSpec: 'embedded:scripted',
      configBlobId,
      createdAt: 1,
      state: initialAgentState,
    },
    never,
  )
  await store.catalog.repositories.add(owner, 'source', source, 1, never)
  await store.eventLog.create(bcId, owner, never)
  const scope = { bcId, owner, configBlobId, heartbeatMs: 10_000 }
  const here = createSessions()
  const elsewhere = createSessions()
  const sessionsOf = (session: HostSession) => (here.all().includes(session) ? here : elsewhere)
  const provision = async (incarnation: number, sessions: Sessions, recovery?: Recovery) => {
    const provisionSandbox = createProvisionSandbox(deps, createConfigBlobs(blobs), sessions)
    const deadlineMs = Date.now() + 60_000
    const branch = `tutti/${bcId}`
    const request = { ...scope, incarnation, branch, deadlineMs, ...(recovery && { recovery }) }
    await new MockActivityEnvironment({}, { logger: quiet }).run(provisionSandbox, request)
    return sessions.get(request)
  }
  const lose = async (session: HostSession) => {
    session.controller.abort()
    await session.server.kill()
    await sandboxes.destroy(session.sandbox.ref, never)
    sessionsOf(session).remove(session)
  }
  return {
    folder,
    bcId,
    source,
    store,
    deps,
    events: (...types) =>
      Array.fromAsync(readEvents(store.eventLog, bcId, types, never), ({ event }) => event),
    provision: (incarnation, recovery) => provision(incarnation, here, recovery),
    provisionElsewhere: (incarnation) => provision(incarnation, elsewhere),
    checkpoint: (session) =>
      new MockActivityEnvironment({}, { logger: quiet }).run(
        createCheckpointTurn(deps, sessionsOf(session)),
        {
          ...scope,
          incarnation: session.incarnation,
          turnId: 'turn-1',
        },
      ),
    async runTurn(session, continued, stop) {
      const promptBlobId = await blobs.put(Buffer.from('the prompt'), never)
      const turn = { turnId: 'turn-1', promptBlobId, source: 'API' }
      const environment = new MockActivityEnvironment({}, { logger: quiet })
      stop?.addEventListener('abort', () => environment.cancel(), { once: true })
      return environment.run(createRunTurn(deps, createConfigBlobs(blobs), sessionsOf(session)), {
        ...scope,
        incarnation: session.incarnation,
        turn,
        number: 1,
        timeoutMs: 60_000,
        continued,
      })
    },
    async check(session) {
      const checkAttempt = createCheckAttempt(deps, sessionsOf(session))
      const request = { ...scope, incarnation: session.incarnation }
      await new MockActivityEnvironment({}, { logger: quiet }).run(checkAttempt, request)
    },
    release: (session) => endSession(deps, sessionsOf(session), session),
    async sealLog() {
      const fail = (_: LogId, error: unknown) => {
        throw error
      }
      await sealLogs({ ...store, archive, clock: systemClock }, 0, fail, never)
    },
    removeBlob: (id) => rmSync(join(folder, 'blobs', id.slice(7, 9), id)),
    lose,
    async remove() {
      for (const session of [...here.all(), ...elsewhere.all()]) await lose(session)
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The end of what the shell line printed inside. @throws Error when it failed. */
export async function runInside({ server }: HostSession, line: string): Promise<string> {
  const { exit, tail } = await runToEnd(server, line, never)
  if (exit.code !== 0) throw new Error(`${line} ended with ${exit.code}: ${tail}`)
  return tail
}

/** What a tool call's end does: everything that changed goes to the blob store and into the log. */
export async function captureNow({ workspace, log }: HostSession): Promise<void> {
  await workspace.capture(never)
  await log.flush()
}

function createSource(path: string, { files, prepare }: TestHostOptions): string {
  mkdirSync(path)
  const env = { PATH: process.env['PATH'], GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' }
  const git = (...args: string[]) => execFileSync('git', args, { cwd: path, env })
  git('init', '-q', '-b', 'main')
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), content)
  }
  prepare?.(path)
  git('add', '-A')
  git('-c', 'user.name=t', '-c', 'user.email=t@localhost', 'commit', '-q', '-m', 'start')
  return path
}

const configWith = ({
  limits,
  agentSpec = 'embedded:scripted',
  setupCommand = '',
  checkCommand = '',
}: Pick<TestHostOptions, 'limits' | 'agentSpec' | 'setupCommand' | 'checkCommand'>): AgentConfig => ({
  version: 1,
  repository: 'source',
  ref: 'main',
  agentSpec,
  promptSuffix: '',
  setupCommand,
  readyTimeoutMs: 60_000,
  checkCommand,
  checkTimeoutMs: 60_000,
  turnTimeoutMs: 60_000,
  stallTimeoutMs: 60_000,
  onQuestion: 'fail',
  questionTimeoutMs: 60_000,
  sandbox: {
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
      ...limits,
    },
  },
})
