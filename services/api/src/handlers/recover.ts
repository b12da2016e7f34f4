import { TuttiError, reasons, type AgentId } from '@tutti/core'
import { RecoverAgentRequestSchema, type RecoverAgentRequest } from '@tutti/proto'
import { encodeOffset, type RecoveryEvent } from '@tutti/protocol'
import { eventPath } from '@tutti/workspace/log'

import { callerOf } from '../call-context.ts'
import { agentIdOf, commandAgent } from '../commands.ts'
import { followLog, startPosition } from '../follow-log.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { answerOnce } from '../idempotency.ts'
import { requestIdOf } from '../new-id.ts'
import { unplacedPaths, type Unplaced } from '../unplaced-paths.ts'

interface Recovered {
  readonly event: RecoveryEvent
  /** Position at which its sandbox was ready. */
  readonly sequence: number
}

const maxUnplaced = 100

/** The rest of the log, which may be long, is not decoded for it. */
const recordTypes: ReadonlySet<string> = new Set(['recovery', 'recovery_failed', 'sandbox'])

/**
 * `RecoverAgent`: a new sandbox with the agent's workspace, by hand. The answer is what the log says of it, so that a repeat under the
 * same key finds it whatever has happened since.
 */
export function createRecover(deps: HandlerDeps) {
  const { catalog, eventLog, recordViews } = deps

  return async (request: RecoverAgentRequest, context: CallContext) => {
    const { signal } = context
    const { owner } = callerOf(context)
    const bcId = agentIdOf(request.bcId)
    const row = await catalog.agents.get(owner, bcId, signal)
    const at =
      request.atOffsetKey === undefined
        ? undefined
        : await startPosition(eventLog, bcId, request.atOffsetKey, signal, 'at_offset_key')
    const { answer: ids, repeated } = await answerOnce(
      catalog.idempotency,
      { owner, key: request.idempotencyKey, schema: RecoverAgentRequestSchema, request },
      () => ({ requestId: requestIdOf(owner, '') }),
      signal,
    )
    const { requestId } = ids
    const command = { type: 'recover', ...(at !== undefined && { at }) } as const
    const { last } = await eventLog.head(bcId, signal)
    const there = repeated ? await outcomeOf(bcId, { requestId, from: 0, until: last }, signal) : undefined
    if (there) return answerOf(there, last)
    await commandAgent(deps, { owner, bcId, requestId, command, row }, signal)
    const made = await outcomeOf(bcId, { requestId, from: repeated ? 0 : last, until: Infinity }, signal)
    if (made) return answerOf(made, Infinity)
    throw new TuttiError('failed_precondition', 'The agent ended before it was recovered.', { bc_id: bcId })

    async function answerOf(recovered: Recovered, until: number) {
      const unplaced = await unplacedPaths(deps, { bcId, from: recovered.sequence, until }, signal)
      return messageOf(bcId, recovered, unplaced)
    }
  }

  /** @throws TuttiError with the reason when the recovery failed. */
  async function outcomeOf(
    bcId: AgentId,
    { requestId, from, until }: { requestId: string; from: number; until: number },
    signal: AbortSignal,
  ): Promise<Recovered | undefined> {
    const heartbeatMs = deps.config['stream.heartbeat']
    let recovery: RecoveryEvent | undefined
    for await (const look of followLog(deps.reads, bcId, from, heartbeatMs, signal)) {
      for (const record of look.records) {
        if (!recordTypes.has(record.type)) continue
        const { event } = recordViews.of(bcId, record)
        if (event.type === 'recovery' && event.requestId === requestId) recovery = event
        if (
          event.type === 'sandbox' &&
          event.state === 'ready' &&
          event.incarnation === recovery?.incarnation
        )
          return { event: recovery, sequence: record.sequence }
        if (event.type === 'recovery_failed' && event.requestId === requestId)
          throw failure(event.reason, event.detail)
      }
      if (look.closed || look.position >= until) return undefined
    }
    return undefined
  }
}

function failure(reason: keyof typeof reasons, detail = ''): TuttiError {
  const code = reason === 'data_loss' ? 'data_loss' : 'failed_precondition'
  return new TuttiError(code, `The agent was not recovered. ${detail || reasons[reason].sentence}`, {
    reason,
  })
}

function messageOf(bcId: AgentId, { event, sequence }: Recovered, unplaced: readonly Unplaced[]) {
  const { incarnation, commit, replayed, manifestDigest, proven, index, steps = [] } = event
  return {
    incarnation,
    offsetKey: encodeOffset(bcId, sequence),
    commit,
    replayed: BigInt(replayed),
    manifestDigest,
    proven,
    index,
    steps: steps.map(({ name, ms }) => ({ name, ms: BigInt(ms) })),
    missing: event.missing.map((path) => ({ path: eventPath(path).slice(), reason: path.reason })),
    moreMissing: event.moreMissing ?? 0,
    passedOver: event.passedOver ?? [],
    unplaced: unplaced.slice(0, maxUnplaced).map((failed) => ({
      path: eventPath(failed).slice(),
      code: failed.code,
      detail: failed.detail,
    })),
    moreUnplaced: Math.max(0, unplaced.length - maxUnplaced),
  }
}
