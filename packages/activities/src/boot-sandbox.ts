import type { AgentServer, CapturedChange, Hydrated } from '@tutti/agent-server'
import { TuttiError, type ErrorCode, type SandboxPolicy } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import type { RecoveryEvent, RecoveryStep } from '@tutti/protocol'
import { markSandbox, type Sandbox, type SandboxSpec } from '@tutti/sandbox'
import type { ActivityDeps } from './deps.ts'
import { pathFields } from '@tutti/workspace/log'
import { contentsFrom } from './contents-from.ts'
import { lostContent } from './lost-content.ts'
import type { RecoveredGitState } from '@tutti/workspace/log'
import { createOutputTail, runToEnd } from './run-to-end.ts'
import { isHostDiskFull, isOfDisk, limitBehind, limitDetail, type DiskLimit } from './sandbox-limit.ts'

export interface BootRequest {
  readonly key: string
  readonly owner: string
  readonly policy: SandboxPolicy
  readonly mirror: Mirror
  /** Of the repository that it is of. */
  readonly location: string
  readonly commit: string
  /** The commit of the source that `commit` began from, or that it is. */
  readonly base: string
  /** What git inside shows changes against: `base`, or the commit that is looked at as it is. */
  readonly head: string
  readonly branch: string
  readonly changes: readonly CapturedChange[]
  /** The agent's own repository; absent while it is as it was made. */
  readonly git?: RecoveredGitState
  /** What the whole workspace must be before setup; absent when nobody knows. */
  readonly manifestDigest?: string
  readonly setupCommand: string
  /** What must be true before anything is done in the sandbox; when it rejects, so does the boot. */
  readonly premise?: Promise<void>
  /** Epoch milliseconds by which the sandbox must be ready. */
  readonly deadline: number
  /** The agent tried to reach a host that is not allowed. */
  readonly onDenied: (target: string) => void
  readonly onStep: (step: 'creating' | 'hydrating' | 'setup') => void
}

export interface Booted {
  readonly sandbox: Sandbox
  /** Of the workspace before setup. */
  readonly manifestDigest: string
  readonly entries: number
  /** Submodules that could not be checked out again. */
  readonly withoutSubmodules: readonly Uint8Array[]
  readonly withoutRepository: boolean
  readonly server: AgentServer
  readonly steps: NonNullable<RecoveryEvent['steps']>
}

/** How one boot failed; `setup` when it was the setup command's own doing. */
export class BootFailure extends Error {
  readonly stage: 'boot' | 'setup'
  /** What of its disk was too small for the workspace. */
  readonly lacks: DiskLimit | undefined
  constructor(stage: 'boot' | 'setup', message: string, cause?: unknown, lacks?: DiskLimit) {
    super(message, { cause })
    this.stage = stage
    this.lacks = lacks
  }
}

const hydrateSteps = ['clone', 'blobs', 'restore', 'scan'] as const

/** What another boot would meet again. */
const final: ReadonlySet<ErrorCode> = new Set([
  'invalid_argument',
  'permission_denied',
  'failed_precondition',
  'data_loss',
])

/**
 * One boot of a sandbox: created, agent server up, workspace hydrated, setup command run. On failure everything is destroyed
 * before this throws.
 *
 * @throws BootFailure; TuttiError `failed_precondition` when the isolation or a named variable cannot be had, `invalid_argument` when
 *   this host refuses a setting, `cancelled` when aborted.
 */
export async function bootSandbox(
  deps: ActivityDeps,
  request: BootRequest,
  signal: AbortSignal,
): Promise<Booted> {
  const { sandboxes, agentServers, crashPoint, clock } = deps
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, request.deadline - clock.now()))])
  let made: Sandbox | undefined
  let server: AgentServer | undefined
  const { mirror, policy, onDenied } = request
  const { sourceObjects } = mirror
  const steps: { name: RecoveryStep; ms: number }[] = []
  let since = clock.monotonic()
  const lap = () => {
    const from = since
    since = clock.monotonic()
    return Math.round(since - from)
  }
  const prepared = await agentServers.prepare({ sourceObjects, policy, onDenied }, bounded)
  try {
    request.onStep('creating')
    const spec = sandboxSpec(deps, request, prepared.readOnly)
    const sandbox = await crashPoint('provision.sandbox', () => sandboxes.create(spec, bounded))
    made = sandbox
    await markSandbox(sandbox, bounded)
    server = await prepared.start(sandbox, bounded)
    steps.push({ name: 'sandbox', ms: lap() })
    request.onStep('hydrating')
    const { times, ...workspace } = await hydrateForSetup(deps, server, request, bounded)
    const over = await sandbox.measureDisk()
    if (over) throw new BootFailure('boot', limitDetail(over), undefined, over)
    for (const name of hydrateSteps) steps.push({ name, ms: times[name] })
    await request.premise
    lap()
    if (request.setupCommand !== '') {
      request.onStep('setup')
      const started = server
      await crashPoint('provision.setup', () => runSetup(started, request, bounded))
      steps.push({ name: 'setup', ms: lap() })
    }
    const { manifestDigest, entries, withoutSubmodules, withoutRepository } = workspace
    return { sandbox, server, manifestDigest, entries, withoutSubmodules, withoutRepository, steps }
  } catch (failed) {
    const lack = made && server && !signal.aborted ? await withoutRoom(made, failed) : undefined
    const thrown: unknown = lack ?? failed
    await server?.close().catch(() => undefined)
    await prepared.discard()
    // Asked before the destroying, which may take its time.
    const isOver = made?.expiresAt !== undefined && made.expiresAt <= clock.now()
    if (made) await sandboxes.destroy(made.ref, new AbortController().signal)
    if (signal.aborted) throw new TuttiError('cancelled', 'The boot was cancelled.', {}, thrown)
    if (thrown instanceof TuttiError && final.has(thrown.code)) throw thrown
    if (isOver) {
      const why =
        'The life of the sandbox was over before it was ready: sandbox.max_life must be longer than a boot and the setup.'
      throw new BootFailure('boot', `${why}\n${asBootFailure(thrown).message}`, thrown)
    }
    throw asBootFailure(thrown)
  }
}

const asBootFailure = (thrown: unknown): BootFailure =>
  thrown instanceof BootFailure ? thrown : new BootFailure('boot', TuttiError.from(thrown).message, thrown)

/** What failed because the disk was too small; asked while the disk is still there. */
async function withoutRoom(sandbox: Sandbox, thrown: unknown): Promise<BootFailure | undefined> {
  const { stage, message } = asBootFailure(thrown)
  await sandbox.measureDisk()
  if (isHostDiskFull(sandbox, thrown))
    return new BootFailure(
      stage,
      'The disk of the host is full. Make room where sandboxes are, then try again.',
      thrown,
    )
  const limit = limitBehind(sandbox, thrown)
  // What is damaged is damaged on a larger disk too.
  if (!isOfDisk(limit) || TuttiError.from(thrown).code === 'data_loss') return undefined
  return new BootFailure(stage, message, thrown, limit)
}

function sandboxSpec(
  deps: ActivityDeps,
  { key, owner, policy }: BootRequest,
  readOnly: SandboxSpec['readOnly'],
): SandboxSpec {
  const named = policy.envNames.map((name) => {
    const value = deps.env[name]
    if (value !== undefined) return [name, value] as const
    throw new TuttiError(
      'failed_precondition',
      `The variable ${name} is not set in the worker's environment. Start the worker with it, or give --env ${name}=VALUE.`,
      { field: 'sandbox.env', name },
    )
  })
  return {
    key,
    owner,
    policy,
    env: { ...Object.fromEntries(named), ...policy.envValues },
    readOnly,
  }
}

/**
 * Writes the workspace and proves that it is the one that was recorded; what is not is written once more.
 *
 * @returns its digest, and what of it could not be had
 * @throws TuttiError `data_loss` with what is wrong.
 */
async function hydrate(
  deps: ActivityDeps,
  server: AgentServer,
  request: BootRequest,
  signal: AbortSignal,
): Promise<Hydrated> {
  const { blobs } = deps
  const contents = contentsFrom(blobs, signal)
  const { mirror, commit, base, head, branch, changes, git, manifestDigest: expected } = request
  // The git inside knows of no checkpoint: of one, and of those before it, the files of now are all that it needs.
  const filesOnly = head !== commit
  const write = async () => {
    const pack = await mirror.packBeyondSource({ commit, base, filesOnly }, signal)
    const shallow = await mirror.shallow()
    const own = git && { commit: git.commit, packs: git.packs.map(contents.contentOf) }
    try {
      const files = filesOnly ? await mirror.treeOf(commit, signal) : commit
      const workspace = { commit: files, head, branch, changes, ...contents }
      return await server.hydrate(
        { ...workspace, ...(pack && { pack }), ...(shallow && { shallow }), ...(own && { git: own }) },
        signal,
      )
    } catch (thrown) {
      throw (
        (await lostContent(thrown, { changes, packs: git?.packs ?? [] }, blobs, signal)) ??
        (await lostCheckpoint(deps, request, thrown, signal)) ??
        thrown
      )
    }
  }
  return deps.crashPoint('hydrate.workspace', async () => {
    let made = await write()
    const isWrong = () =>
      made.wrong.length > 0 || (expected !== undefined && made.manifestDigest !== expected)
    if (isWrong()) made = await write()
    if (isWrong()) {
      const thrown = notAsRecorded(made.wrong, commit)
      throw (await lostCheckpoint(deps, request, thrown, signal)) ?? thrown
    }
    return made
  })
}

/** As what damage comes to light: the sandbox finds it, git on the host cannot read or find it, or git in the sandbox refuses it. */
const mayBeDamage: ReadonlySet<ErrorCode> = new Set([
  'data_loss',
  'internal',
  'failed_precondition',
  'not_found',
])

/**
 * What a hydration that failed for its checkpoint should have said; undefined when that is whole, or a commit of the source.
 *
 * @returns TuttiError `data_loss` with `checkpoint` when it cannot be had any more; `unavailable` when it was damaged here and is not now
 */
async function lostCheckpoint(
  { mirrors }: Pick<ActivityDeps, 'mirrors'>,
  { location, commit, base }: Pick<BootRequest, 'location' | 'commit' | 'base'>,
  thrown: unknown,
  signal: AbortSignal,
): Promise<TuttiError | undefined> {
  if (commit === base || signal.aborted || !mayBeDamage.has(TuttiError.from(thrown).code)) return undefined
  try {
    if (!(await mirrors.repair(location, { commit, base }, signal))) return undefined
    const message = `The mirror had commit ${commit} damaged; it has it from the archive now.`
    return new TuttiError('unavailable', message, { commit }, thrown)
  } catch (error) {
    const { code, message } = TuttiError.from(error)
    // A look that fails hides no other failure.
    return code === 'data_loss' ? new TuttiError(code, message, { checkpoint: commit }, thrown) : undefined
  }
}

/** What a setup command may not change of the agent's is kept aside, and takes room as the commits do. */
async function hydrateForSetup(
  deps: ActivityDeps,
  server: AgentServer,
  request: BootRequest,
  signal: AbortSignal,
): Promise<Hydrated> {
  const hydrated = await hydrate(deps, server, request, signal)
  if (request.setupCommand !== '') await server.keepWork(signal)
  return hydrated
}

const shownPaths = 20

function notAsRecorded(wrong: readonly Uint8Array[], commit: string): TuttiError {
  const shown = wrong.slice(0, shownPaths).map((path) => pathFields(path).path)
  const more = wrong.length > shownPaths ? `, and ${wrong.length - shownPaths} more` : ''
  const what = wrong.length > 0 ? `: ${shown.join(', ')}${more}` : ' (content of a checkpoint)'
  return new TuttiError(
    'data_loss',
    `The workspace is not what the log recorded, also when it was written a second time${what}. Send the agent a message to try again.`,
    { files: wrong.length, ...(wrong.length === 0 && { checkpoint: commit }) },
  )
}

/** Setup output in a failure: short enough that its end survives wherever the failure is shown. */
const shownChars = 800

/**
 * Changes that the setup command makes are not the agent's: they become part of the state that later captures compare with. Nor does
 * it change what the agent made in an earlier sandbox.
 */
async function runSetup(server: AgentServer, request: BootRequest, signal: AbortSignal): Promise<void> {
  const kept = createOutputTail()
  const output = () => kept.text().slice(-shownChars)
  const { exit } = await runToEnd(server, request.setupCommand, signal, undefined, kept).catch(
    (thrown: unknown) => {
      if (!signal.aborted) throw thrown
      const text = 'The setup command was still running when the time to get ready was over.'
      throw new BootFailure('boot', `${text}\n${output()}`.trim(), thrown)
    },
  )
  if (exit.code !== 0) {
    const how =
      exit.code === null ? `was ended by ${exit.signal ?? 'a signal'}` : `ended with exit code ${exit.code}`
    throw new BootFailure('setup', `The setup command ${how}.\n${output()}`.trim())
  }
  await server.absorb(signal)
}
