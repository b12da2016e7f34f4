import { isEnsembleEnd, madeAt, spanIdsOf, type Clock, type EnsembleId } from '@tutti/core'
import type { RecordPhase, RecordState } from '@tutti/activities'
import { decodeRunEvent } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'
import { activityFields } from './activity-fields.ts'
import { failureWord, type ActivityCall, type ActivityObserver } from './observe-activities.ts'
import { below, emitSpan, inSpan } from './span.ts'

/**
 * A span for each attempt at an activity, in the trace of its ensemble or agent (decision 0070). The spans above are written when
 * they end: those of an ensemble and its phases with its last phase, that of a child with its attempt.
 */
export function traceActivities(deps: {
  readonly eventLog: EventLog
  readonly clock: Clock
}): ActivityObserver {
  return async (call, run) => {
    const id = call.bcId ?? call.ensembleId
    const { type, attempt } = call
    const result = await inSpan(
      type,
      {
        attributes: { ...activityFields(call), attempt },
        ...(id && { parent: below(spanIdsOf(id, call.ensembleId)) }),
        wordOf: failureWord,
      },
      async (span) => {
        const value = await run()
        if (typeof value === 'object' && value !== null && 'reason' in value)
          span.setAttribute('reason', String(value.reason))
        return value
      },
    )
    await spansAbove(deps, call)
    return result
  }
}

async function spansAbove(
  { eventLog, clock }: Parameters<typeof traceActivities>[0],
  call: ActivityCall,
): Promise<void> {
  const { bcId, ensembleId, type, input } = call
  if (type === 'recordPhase' && ensembleId && isEnsembleEnd((input as unknown as RecordPhase).phase)) {
    // A trace must not fail what has been recorded.
    await ensembleSpans(eventLog, ensembleId, call).catch(() => undefined)
  }
  if (!bcId) return
  const span = { name: 'agent', from: madeAt(bcId), to: clock.now(), attributes: activityFields(call) }
  if (type === 'recordAttempt' && ensembleId)
    emitSpan({ ...span, parent: spanIdsOf(ensembleId), ids: spanIdsOf(bcId, ensembleId) })
  // An agent of its own has no end that its trace could wait for, so its root says when it began.
  const begins = type === 'recordState' && (input as unknown as RecordState).events.some(isSessionStart)
  if (begins && !ensembleId) emitSpan({ ...span, ids: spanIdsOf(bcId) })
}

const isSessionStart = ({ type }: RecordState['events'][number]) => type === 'session_start'

async function ensembleSpans(eventLog: EventLog, ensembleId: EnsembleId, call: ActivityCall): Promise<void> {
  const { records } = await eventLog.read(ensembleId, 0, { types: ['phase'] }, AbortSignal.timeout(5000))
  const root = spanIdsOf(ensembleId)
  const attributes = activityFields(call)
  const phases = records.flatMap((record) => {
    const event = decodeRunEvent(record)
    return event.type === 'phase' ? [{ at: record.at, event }] : []
  })
  const last = phases.at(-1)
  if (!last) return
  const { reason } = last.event
  emitSpan({
    name: 'ensemble',
    from: Math.min(madeAt(ensembleId), phases[0]!.at),
    to: last.at,
    attributes: { ...attributes, phase: last.event.phase, ...(reason && { reason }) },
    ids: root,
    ...(last.event.phase === 'ERROR' && { error: reason ?? 'internal' }),
  })
  for (const [index, { at, event }] of phases.entries()) {
    const next = phases[index + 1]
    if (next) emitSpan({ name: event.phase, from: at, to: next.at, attributes, parent: root })
  }
}
