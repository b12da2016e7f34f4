import { limits, type CheckResult, type SandboxPolicy } from '@tutti/core'
import { encodeRunEvent } from '@tutti/protocol'
import { BootFailure, bootSandbox, type BootRequest, type Booted } from './boot-sandbox.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities, EnsembleScope } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { openEnsemble } from './ensemble-mirror.ts'
import { failWith, orFail } from './fail.ts'
import { withHeartbeat } from './heartbeat.ts'
import { runToEnd } from './run-to-end.ts'
import { tooSmall, withMore } from './sandbox-limit.ts'
import { slotPollMs } from './slot-poll.ts'

/**
 * Runs the check command on the combined tree in a fresh sandbox. It has a slot of its own, so that agents cannot starve it; the
 * sandbox is made and ended here, so that any worker may try again.
 */
export function createVerify(deps: ActivityDeps, configs: ConfigBlobs): Activities['verify'] {
  return (input) =>
    orFail(() =>
      withHeartbeat(input.heartbeatMs, async (signal, phase) => {
        const holder = `${input.ensembleId}/verify`
        try {
          phase('slot')
          await waitForSlot(deps, holder, signal)
          const result = await deps.crashPoint('ensemble.verify', () =>
            check(deps, configs, input, input.commit, phase, signal),
          )
          const once = { id: `verify/${input.commit}`, epoch: 0, sequence: 1 }
          await deps.eventLog.append(
            input.ensembleId,
            once,
            [encodeRunEvent({ type: 'verified', commit: input.commit, result })],
            signal,
          )
          return { exitCode: result.exitCode }
        } finally {
          await deps.catalog.leases.release(deps.host, holder, new AbortController().signal)
        }
      }),
    )
}

async function waitForSlot(
  { catalog, host, clock }: ActivityDeps,
  holder: string,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const { position } = await catalog.leases.acquire(
      { host, kind: 'verify', holder, slots: 1, now: clock.now() },
      signal,
    )
    if (position === 0) return
    await clock.sleep(slotPollMs, signal)
  }
}

async function check(
  deps: ActivityDeps,
  configs: ConfigBlobs,
  scope: EnsembleScope,
  commit: string,
  phase: (name: string) => void,
  signal: AbortSignal,
): Promise<CheckResult> {
  const { config, location, base } = await openEnsemble(deps, configs, scope, signal)
  const mirror = await deps.mirrors.restore(location, commit, signal)
  const startedAt = deps.clock.monotonic()
  const since = () => Math.round(deps.clock.monotonic() - startedAt)
  const request: Omit<BootRequest, 'policy'> = {
    key: `${scope.ensembleId}/verify-${commit.slice(0, 12)}`,
    owner: scope.owner,
    mirror,
    location,
    commit,
    base,
    head: commit,
    branch: 'tutti/verify',
    changes: [],
    setupCommand: config.setupCommand,
    deadline: deps.clock.now() + config.readyTimeoutMs,
    onDenied: (target) => deps.log.info({ ensemble_id: scope.ensembleId, target }, 'egress denied'),
    onStep: phase,
  }
  const { sandbox, server } = await bootWithRoom(deps, request, config.sandbox, signal)
  try {
    phase('check')
    const { exit, tail } = await runToEnd(server, config.checkCommand, signal, config.checkTimeoutMs)
    return { exitCode: exit.timedOut ? null : exit.code, tail, durationMs: since() }
  } finally {
    await server.close().catch(() => undefined)
    await deps.sandboxes.destroy(sandbox.ref, new AbortController().signal)
  }
}

/** Boots once, and again with a larger disk when the files do not fit beside the commit that they come from, as a recovery does. */
async function bootWithRoom(
  deps: ActivityDeps,
  request: Omit<BootRequest, 'policy'>,
  asked: SandboxPolicy,
  signal: AbortSignal,
): Promise<Booted> {
  let policy = asked
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await bootSandbox(deps, { ...request, policy }, signal)
    } catch (thrown) {
      if (!(thrown instanceof BootFailure)) throw thrown
      const { lacks, stage, message } = thrown
      if (!lacks) throw failWith(stage === 'setup' ? 'setup_failed' : 'boot_timeout', message)
      if (attempt === limits.maxBoots) throw failWith('resource_limit', tooSmall(asked, policy, lacks))
      policy = withMore(policy, lacks)
    }
  }
}
