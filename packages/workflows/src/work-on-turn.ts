import type { TurnResult } from '@tutti/activities'
import { limits, type AgentState, type Interruption, type Reason, type Turn } from '@tutti/core'
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
  /** A recovery was asked for: it comes before the rest of the turn. */
  readonly isCut: () => boolean
  /** Called when the agent has a sandbox for the first time in this turn. */
  readonly onReady: () => void
}

/**
 * One turn to its end (design §3, §4): sandbox, run, checkpoint, check. A lost sandbox is replaced and the turn goes on from the
 * newest acknowledged workspace state, at most three times. Whatever happens, this returns how the turn ended; undefined when it has
 * not, and a recovery comes first.
 */
export async function workOnTurn(turn: Turn, number: number, deps: TurnDeps): Promise<TurnEnd | undefined> {
  let restarts = 0
  let begun = turn.begun ?? false
  for (;;) {
    try {
      await makeReady(deps)
      const continued = begun
      begun = true
      const end = await attemptTurn(turn, number, continued, deps)
      if (end) return end
      interrupted(turn, restarts, 'requested', deps)
      return undefined
    } catch (thrown) {
      if (isCancellation(thrown)) {
        if (!isCutOff(deps)) return cancelledEnd(deps)
        if (begun) interrupted(turn, restarts, 'requested', deps)
        return undefined
      }
      const failure = readFailure(thrown)!
      if (!failure.sandboxLost) return { reason: failure.reason, failed: true, detail: failure.detail }
      await deps.sandbox.release()
      if (failure.why === 'lost') restarts += 1
      interrupted(turn, restarts, failure.why, deps)
      // A stop that arrived while the sandbox was being lost must not start another one.
      if (deps.state().ending) return cancelledEnd(deps)
      if (isCutOff(deps)) return undefined
      if (restarts > limits.maxRestarts)
        return { reason: 'sandbox_lost', failed: true, detail: failure.detail }
    }
  }
}

function interrupted(
  { turnId }: Turn,
  restart: number,
  reason: Interruption,
  { recorder, sandbox }: TurnDeps,
): void {
  recorder.add({ type: 'turn_interrupted', turnId, restart, incarnation: sandbox.incarnation(), reason })
}

/** A turn that was told to end ends, and the recovery comes after it. */
const isCutOff = ({ state, isCut }: TurnDeps): boolean => isCut() && !state().ending

/** What the current turn was told to end with; a cancel from outside (operator, parent) counts as a stop. */
function cancelledEnd({ state }: TurnDeps): TurnEnd {
  return { reason: state().ending ?? 'stopped_by_user', failed: false }
}

/**
 * A turn that was ended ends as the state says: the activity knows only that it was cancelled, or an older word from the log, and
 * a paused turn that came back as stopped would not go on at resume.
 */
function wordOfTheState(end: TurnResult, { state }: TurnDeps): TurnResult {
  const { ending } = state()
  return ending && !end.failed && end.reason !== 'completed' ? { ...end, reason: ending } : end
}

async function makeReady({ sandbox, recorder, onReady }: TurnDeps): Promise<void> {
  await sandbox.ensure()
  onReady()
  // The message is in the log before anything that answers it.
  await recorder.flushed()
}

/** How the turn ended; undefined when it was cut off. */
async function attemptTurn(
  turn: Turn,
  number: number,
  continued: boolean,
  deps: TurnDeps,
): Promise<TurnEnd | undefined> {
  const { input, sandbox } = deps
  const heartbeatMs = input.timings.heartbeatMs
  const host = sandbox.onHost()
  const end = wordOfTheState(
    await host.runTurn({
      ...sandbox.scope(),
      turn,
      number,
      continued,
      timeoutMs: input.timings.turnTimeoutMs,
      heartbeatMs,
    }),
    deps,
  )
  // Only a turn that came to its own end before it heard of the recovery is over.
  if (isCutOff(deps) && !end.failed && end.reason !== 'completed') return undefined
  // From here on a stop changes nothing any more: what was made is kept.
  return CancellationScope.nonCancellable(async () => {
    const checkpoint = await host.checkpointTurn({ ...sandbox.scope(), turnId: turn.turnId, heartbeatMs })
    if (end.failed || end.reason !== 'completed') return end
    if (input.ensembleId && checkpoint.filesChanged === 0)
      return { reason: 'nothing_to_deliver', failed: false }
    if (input.hasCheck) {
      // Only evidence for ranking: a check that cannot be run, or that takes the sandbox with it, undoes no finished turn.
      await host.checkAttempt({ ...sandbox.scope(), heartbeatMs }).catch(async (thrown: unknown) => {
        if (readFailure(thrown)?.sandboxLost) await sandbox.release()
      })
    }
    return end
  })
}
