import {
  TuttiError,
  agentStateKey,
  isAgentId,
  isRejection,
  reduceAgent,
  type AgentCommand,
  type AgentId,
} from '@tutti/core'
import { encodeRunEvent, type CommandEvent } from '@tutti/protocol'
import type { AgentRow } from '@tutti/store'
import type { CommandAnswer } from '@tutti/workflows'

import type { HandlerDeps } from './handler.ts'
import { agentInput } from './start-workflows.ts'

type CommandDeps = Pick<HandlerDeps, 'catalog' | 'temporal' | 'eventLog' | 'jsonBlobs' | 'config' | 'log'>
type CancelReason = Extract<CommandEvent, { type: 'cancel' }>['reason']

const cancelReasons: Partial<Record<AgentCommand['type'], CancelReason>> = {
  interrupt: 'interrupted',
  stop: 'stopped_by_user',
  pause: 'paused',
  archive: 'archived',
  expire: 'expired',
  recover: 'recovering',
}

export interface CommandCall {
  readonly owner: string
  readonly bcId: AgentId
  readonly requestId: string
  readonly command: AgentCommand
  readonly planBlobId?: `sha256_${string}`
  /** The agent's row, when it has just been read. */
  readonly row?: AgentRow
}

/**
 * Gives one command to an agent. What its stored state refuses is refused at once; the last word is the workflow's. A turn that the
 * command ends is told so through the log, which it reads all the time, and does not wait for a workflow task (design §3).
 *
 * @throws TuttiError `not_found`; `failed_precondition` with the state and the way out.
 */
export async function commandAgent(
  deps: CommandDeps,
  call: CommandCall,
  signal: AbortSignal,
): Promise<CommandAnswer> {
  const { owner, bcId, requestId, command, planBlobId } = call
  const row = call.row ?? (await deps.catalog.agents.get(owner, bcId, signal))
  refuseEarly(row, command)
  const input = await agentInput(deps, row, signal)
  const answer = await deps.temporal.agentCommand(
    input,
    { requestId, command, ...(planBlobId ? { planBlobId } : {}) },
    signal,
  )
  if (row.starting) await deps.catalog.agents.markStarted(bcId, signal)
  const reason = cancelReasons[command.type]
  if (reason && answer.endingTurnId !== '') {
    const { endingTurnId: turnId, incarnation } = answer
    const cancel = { turnId, reason, ...(incarnation !== undefined && { incarnation }) }
    await cancelTurn(deps, { bcId, commandId: requestId, ...cancel }, signal)
  }
  if (answer.turnId === '') await untilProjected(deps, row, answer, signal)
  return answer
}

/** Longer than a write takes, shorter than a person waits. */
const projectedWithinMs = 2000

/**
 * Whoever asks next finds the state that was answered. A message does not wait for this: its answer says all that there is to
 * know, and it must be quick. (`watchRow` waits for a position, which is not known here.)
 */
async function untilProjected(
  { catalog, eventLog }: Pick<HandlerDeps, 'catalog' | 'eventLog'>,
  { owner, bcId }: Pick<AgentRow, 'owner' | 'bcId'>,
  answer: CommandAnswer,
  signal: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + projectedWithinMs
  for (;;) {
    const row = await catalog.agents.get(owner, bcId, signal)
    const waitMs = deadline - performance.now()
    if (agentStateKey(row.state) === answer.state || waitMs <= 0) return
    await eventLog.read(bcId, row.logSequence, { types: ['status'], waitMs: Math.min(waitMs, 50) }, signal)
  }
}

/** Tells a running turn to end. The workflow ends it too, only later: a failure here is no failure of the command. */
export async function cancelTurn(
  deps: Pick<HandlerDeps, 'eventLog' | 'log'>,
  {
    bcId,
    ...cancel
  }: { bcId: AgentId; turnId: string; commandId: string; reason: CancelReason; incarnation?: number },
  signal: AbortSignal,
): Promise<void> {
  const event: CommandEvent = { type: 'cancel', ...cancel }
  try {
    await deps.eventLog.append(
      bcId,
      { id: `client/${cancel.commandId}`, epoch: 0, sequence: 1 },
      [encodeRunEvent(event)],
      signal,
    )
  } catch (err) {
    deps.log.warn({ bc_id: bcId, err }, 'the cancel command is not in the log; the workflow ends the turn')
  }
}

/** The id of a request as the type that the code uses; the rules of the request have checked its form. */
export function agentIdOf(text: string, field = 'bc_id'): AgentId {
  if (isAgentId(text)) return text
  throw new TuttiError('invalid_argument', `${field} must be an agent id: bc- and a version 7 UUID.`, {
    field,
  })
}

function refuseEarly(row: AgentRow, command: AgentCommand): void {
  if (row.ensembleId && row.state.status === 'UNSPECIFIED') {
    throw new TuttiError(
      'failed_precondition',
      'The agent is UNSPECIFIED. Its ensemble starts it; wait until it runs.',
      {
        state: 'UNSPECIFIED',
      },
    )
  }
  // A run may be ahead of what is stored: while a turn runs or waits only the workflow knows.
  if (row.state.status === 'RUNNING' || row.state.status === 'UNSPECIFIED') return
  const answer = reduceAgent(row.state, command)
  if (isRejection(answer))
    throw new TuttiError('failed_precondition', answer.message, { state: answer.state })
}
