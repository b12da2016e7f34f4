import {
  TuttiError,
  agentStateKey,
  checkPromptFits,
  isAtRest,
  limits,
  statusOfKey,
  turnPosition,
  type AgentId,
  type Reason,
} from '@tutti/core'
import {
  AddAsyncFollowupBackgroundComposerRequestSchema,
  FollowupMode,
  type AddAsyncFollowupBackgroundComposerRequest,
} from '@tutti/proto'
import { sourceFromWire, workflowStatusToWire } from '@tutti/protocol/wire'

import { callerOf } from '../call-context.ts'
import { agentIdOf, commandAgent } from '../commands.ts'
import { followLog } from '../follow-log.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { answerOnce } from '../idempotency.ts'
import { newTurnId, requestIdOf } from '../new-id.ts'
import { readRecords } from '../read-records.ts'
import { watchRow } from '../watch-row.ts'

/**
 * `AddAsyncFollowupBackgroundComposer` (seed 001): a message for an agent, queued or interrupting. The answer comes when the workflow
 * has accepted it, so that it is kept whatever happens, and says how many turns are ahead of it.
 */
export function createFollowup(deps: HandlerDeps) {
  const { catalog, clock, eventLog, jsonBlobs, pendingTurns } = deps

  return async (request: AddAsyncFollowupBackgroundComposerRequest, context: CallContext) => {
    const { signal } = context
    const { owner } = callerOf(context)
    const bcId = agentIdOf(request.bcId)
    const prompt = promptOf(request)
    // Together, as people wait for the answer: the prompt of a call that is refused belongs to nothing, and opens nothing.
    const read = () => catalog.agents.get(owner, bcId, signal)
    const [{ row: found, reached }, promptBlobId] = await Promise.all([
      watchRow(deps, read, signal),
      jsonBlobs.putText(owner, prompt, signal),
    ])
    checkPromptFits(found.agentSpec, prompt, 'followup')
    const { answer: ids, repeated } = await answerOnce(
      catalog.idempotency,
      {
        owner,
        key: request.tutti?.idempotencyKey ?? '',
        schema: AddAsyncFollowupBackgroundComposerRequestSchema,
        request,
      },
      () => ({ turnId: newTurnId(clock.now()), requestId: requestIdOf(owner, '') }),
      signal,
    )
    const turn = {
      turnId: ids.turnId,
      promptBlobId,
      source: sourceFromWire(request.followupSource),
    }
    const type = request.tutti?.mode === FollowupMode.INTERRUPT ? 'interrupt' : 'follow_up'
    const loggedAt = repeated ? await sequenceInLog(bcId, ids.turnId, signal) : undefined
    if (loggedAt !== undefined) await reached(loggedAt)
    const row = loggedAt === undefined ? found : await read()
    // The message of a repeat may come into the log between the look and the command.
    const from = loggedAt ?? (repeated || !request.synchronous ? 0 : (await eventLog.head(bcId, signal)).last)
    const call = { owner, bcId, requestId: ids.requestId, command: { type, turn }, row } as const
    const answer =
      loggedAt === undefined
        ? await commandAgent(deps, call, signal)
        : {
            turnId: ids.turnId,
            position: turnPosition(row.state, ids.turnId),
            state: agentStateKey(row.state),
          }
    if (loggedAt === undefined || loggedAt > row.logSequence) pendingTurns.add(bcId, row.logSequence)
    const accepted = { position: Math.max(answer.position, 0), turnId: answer.turnId }
    if (!request.synchronous) {
      return { ...accepted, workflowStatus: workflowStatusToWire(statusOfKey(answer.state)), reason: '' }
    }
    const isLogged = loggedAt !== undefined
    const end = await turnEnd({ bcId, turnId: answer.turnId, isLogged }, from, signal)
    await reached(end.sequence)
    const { state } = await read()
    return { ...accepted, workflowStatus: workflowStatusToWire(state.status), reason: end.reason }
  }

  /** Where the log has the message of this turn: a later run of the workflow knows nothing of what an earlier one accepted. */
  async function sequenceInLog(
    bcId: AgentId,
    turnId: string,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    for await (const record of readRecords(eventLog, bcId, ['user_message'], signal)) {
      const { event } = deps.recordViews.of(bcId, record)
      if (event.type === 'user_message' && event.turnId === turnId) return record.sequence
    }
    return undefined
  }

  /**
   * How a turn ended, and where the log says so; no reason for one that does not run: the agent came to rest without it, being stopped with all that
   * waited, paused or in ERROR.
   */
  async function turnEnd(
    { bcId, turnId, isLogged }: { bcId: AgentId; turnId: string; isLogged: boolean },
    from: number,
    signal: AbortSignal,
  ): Promise<{ readonly reason: Reason | ''; readonly sequence: number }> {
    const heartbeatMs = deps.config['stream.heartbeat']
    let logged = isLogged
    let restsSince = 0
    for await (const { records, atHead, closed } of followLog(deps.reads, bcId, from, heartbeatMs, signal)) {
      for (const record of records) {
        if (!turnRecords.has(record.type)) continue
        const { sequence } = record
        const { event } = deps.recordViews.of(bcId, record)
        if (event.type === 'user_message') logged ||= event.turnId === turnId
        if (event.type === 'status') restsSince = isAtRest(event) ? sequence : 0
        if (event.type === 'turn_ended' && event.turnId === turnId) return { reason: event.reason, sequence }
      }
      if (closed || (atHead && logged && restsSince > 0)) return { reason: '', sequence: restsSince }
    }
    return { reason: '', sequence: 0 }
  }
}

/** What tells how a turn ended; the rest of the log, which may be long, is not decoded for it. */
const turnRecords: ReadonlySet<string> = new Set(['user_message', 'status', 'turn_ended'])

function promptOf(request: AddAsyncFollowupBackgroundComposerRequest): string {
  const {
    followup,
    richFollowup,
    followupMessage,
    followupConversationAction,
    continueRebase,
    planFollowupType,
    modelDetails,
  } = request
  const field = continueRebase
    ? 'continue_rebase'
    : planFollowupType
      ? 'plan_followup_type'
      : modelDetails?.modelName
        ? 'model_details'
        : ''
  if (field)
    throw new TuttiError('invalid_argument', `${field} is not supported by this version. Leave it out.`, {
      field,
    })
  const action =
    followupConversationAction?.action.case === 'userMessage'
      ? followupConversationAction.action.value
      : undefined
  const text = followup || followupMessage?.text || action?.text || richFollowup || action?.richText || ''
  if (text === '')
    throw new TuttiError('invalid_argument', 'followup must not be empty.', { field: 'followup' })
  if (Buffer.byteLength(text) <= limits.maxPromptBytes) return text
  throw new TuttiError('invalid_argument', 'followup must not be longer than 1 MiB.', { field: 'followup' })
}
