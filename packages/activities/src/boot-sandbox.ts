import type { AgentServer, CapturedChange, CaptureSink } from '@tutti/agent-server'
import { TuttiError, type BlobId, type ErrorCode, type SandboxPolicy } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import type { Sandbox, SandboxRef, SandboxSpec } from '@tutti/sandbox'
import type { ActivityDeps } from './deps.ts'
import { lostContent } from './lost-content.ts'
import { createOutputTail, runToEnd } from './run-to-end.ts'

export interface BootRequest {
  readonly key: string
  readonly owner: string
  readonly policy: SandboxPolicy
  readonly mirror: Mirror
  readonly commit: string
  /** The commit of the source that `commit` began from, or that it is. */
  readonly base: string
  /** What git inside shows changes against: `base`, or the commit that is looked at as it is. */
  readonly head: string
  readonly branch: string
  readonly changes: readonly CapturedChange[]
  readonly setupCommand: string
  /** Epoch milliseconds by which the sandbox must be ready. */
  readonly deadline: number
  /** The agent tried to reach a host that is not allowed. */
  readonly onDenied: (target: string) => void
  readonly onStep: (step: 'creating' | 'hydrating' | 'setup') => void
}

export interface Booted {
  readonly sandbox: Sandbox
  readonly server: AgentServer
}

/** How one boot failed; `setup` when it was the setup command's own doing. */
export class BootFailure extends Error {
  readonly stage: 'boot' | 'setup'
  constructor(stage: 'boot' | 'setup', message: string, cause?: unknown) {
    super(message, { cause })
    this.stage = stage
  }
}

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
  let ref: SandboxRef | undefined
  let server: AgentServer | undefined
  const { mirror, policy, onDenied } = request
  const { sourceObjects } = mirror
  const prepared = await agentServers.prepare({ sourceObjects, policy, onDenied }, bounded)
  try {
    request.onStep('creating')
    const spec = sandboxSpec(deps, request, prepared.readOnly)
    const sandbox = await crashPoint('provision.sandbox', () => sandboxes.create(spec, bounded))
    ref = sandbox.ref
    server = await prepared.start(sandbox, bounded)
    request.onStep('hydrating')
    await hydrate(deps, server, request, bounded)
    if (request.setupCommand !== '') {
      request.onStep('setup')
      await runSetup(server, request, bounded)
    }
    return { sandbox, server }
  } catch (thrown) {
    await server?.close().catch(() => undefined)
    await prepared.discard()
    if (ref) await sandboxes.destroy(ref, new AbortController().signal)
    if (signal.aborted) throw new TuttiError('cancelled', 'The boot was cancelled.', {}, thrown)
    if (thrown instanceof TuttiError && final.has(thrown.code)) throw thrown
    if (thrown instanceof BootFailure) throw thrown
    throw new BootFailure('boot', TuttiError.from(thrown).message, thrown)
  }
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

async function hydrate(
  deps: ActivityDeps,
  server: AgentServer,
  request: BootRequest,
  signal: AbortSignal,
): Promise<void> {
  const contentOf = (hash: BlobId) => deps.blobs.stream(hash, signal)
  const { mirror, commit, base, head, branch, changes } = request
  await deps.crashPoint('hydrate.workspace', async () => {
    const pack = await mirror.packBeyondSource({ commit, base }, signal)
    try {
      await server.hydrate({ commit, head, branch, changes, contentOf, ...(pack && { pack }) }, signal)
    } catch (thrown) {
      throw (await lostContent(thrown, changes, deps.blobs, signal)) ?? thrown
    }
  })
}

/** Setup output in a failure: short enough that its end survives wherever the failure is shown. */
const shownChars = 800

/** Changes that the setup command makes are not the agent's: they become part of the state that later captures compare with. */
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
  await server.capture(ignoreChanges, signal)
}

const ignoreChanges: CaptureSink = {
  async change(_change, content) {
    for await (const _ of content ?? []) {
      // Read to its end: the link delivers in order.
    }
  },
  async skipped() {},
}
