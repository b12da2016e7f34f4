import { limits, type AgentState, type Reason, type Turn } from '@tutti/core'
import { CancellationScope, isCancellation } from '@temporalio/workflow'
import { readFailure } from './failure.ts'
import type { CloudAgentInput } from './contract.ts'
import type { Recorder } from './recorder.ts'
import type { SandboxLife } from './sandbox-life.ts'

export interface TurnEnd {
  readonly reason: Reason
  readonly failed: boolean
  readonly detail?: string
}

export interface TurnDeps {
  readonly input: CloudAgentInput
  readonly sandbox: SandboxLife
  readonly recorder: Recorder
  readonly state: () => AgentState
  /** Called when the agent has a sandbox for the first time in this turn. */
  readonly onReady: () => void
}

/**
 * One turn to its end (design §3, §4): sandbox, run, checkpoint, check. A lost sandbox is replaced and the turn goes on from the
 * newest acknowledged workspace state, at most three times. Whatever happens, this returns how the turn ended.
 */
export async function workOnTurn(turn: Turn, number: number, deps: TurnDeps): Promise<TurnEnd> {
  let restarts = 0
  let continued = turn.begun ?? false
  for (;;) {
    try {
      return await attemptTurn(turn, number, continued, deps)
    } catch (thrown) {
      if (isCancellation(thrown)) return cancelledEnd(deps)
      const failure = readFailure(thrown)!
      if (!failure.sandboxLost) return { reason: failure.reason, failed: true, detail: failure.detail }
      await deps.sandbox.release()
      deps.sandbox.lost()
      continued = true
      if (!failure.planned) restarts += 1
      if (restarts > limits.maxRestarts)
        return { reason: 'sandbox_lost', failed: true, detail: failure.detail }
      deps.recorder.add({ type: 'turn_interrupted', turnId: turn.turnId, restart: restarts })
      // A stop that arrived while the sandbox was being lost must not start another one.
      if (deps.state().ending) return cancelledEnd(deps)
    }
  }
}

/** What the current turn was told to end with; a cancel from outside (operator, parent) counts as a stop. */
function cancelledEnd({ state }: TurnDeps): TurnEnd {
  return { reason: state().ending ?? 'stopped_by_user', failed: false }
}

async function attemptTurn(turn: Turn, number: number, continued: boolean, deps: TurnDeps): Promise<TurnEnd> {
  const { input, sandbox, recorder } = deps
  const heartbeatMs = input.timings.heartbeatMs
  await sandbox.ensure()
  deps.onReady()
  await recorder.flushed()
  const host = sandbox.onHost()
  const end = await host.runTurn({
    ...sandbox.scope(),
    turn,
    number,
    continued,
    timeoutMs: input.timings.turnTimeoutMs,
    heartbeatMs,
  })
  // From here on a stop changes nothing any more: what was made is kept.
  return CancellationScope.nonCancellable(async () => {
    const checkpoint = await host.checkpointTurn({ ...sandbox.scope(), turnId: turn.turnId, heartbeatMs })
    if (end.failed || end.reason !== 'completed') return end
    if (input.ensembleId && checkpoint.filesChanged === 0)
      return { reason: 'nothing_to_deliver', failed: false }
    if (input.hasCheck) await host.checkAttempt({ ...sandbox.scope(), heartbeatMs })
    return end
  })
}
