import type { CheckResult } from '@tutti/core'
import { encodeRunEvent } from '@tutti/protocol'
import { BootFailure, bootSandbox } from './boot-sandbox.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities, EnsembleScope } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { openEnsemble } from './ensemble-mirror.ts'
import { failWith, orFail } from './fail.ts'
import { withHeartbeat } from './heartbeat.ts'
import { runToEnd } from './run-to-end.ts'
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
  const { sandbox, server } = await bootSandbox(
    deps,
    {
      key: `${scope.ensembleId}/verify-${commit.slice(0, 12)}`,
      owner: scope.owner,
      policy: config.sandbox,
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
    },
    signal,
  ).catch((thrown: unknown) => {
    if (thrown instanceof BootFailure)
      throw failWith(thrown.stage === 'setup' ? 'setup_failed' : 'boot_timeout', thrown.message)
    throw thrown
  })
  try {
    phase('check')
    const { exit, tail } = await runToEnd(server, config.checkCommand, signal, config.checkTimeoutMs)
    return { exitCode: exit.timedOut ? null : exit.code, tail, durationMs: since() }
  } finally {
    await server.close().catch(() => undefined)
    await deps.sandboxes.destroy(sandbox.ref, new AbortController().signal)
  }
}
