import { isAtRest, isEnsembleEnd, type AgentStatus, type EnsemblePhase, type LogId } from '@tutti/core'
import type { StreamAgentEventsRequest, StreamEnsembleEventsRequest } from '@tutti/proto'
import { encodeOffset, type RunEvent } from '@tutti/protocol'

import { agentStreamHasEnded } from '../agent-stream-end.ts'
import { callerOf } from '../call-context.ts'
import { agentIdOf } from '../commands.ts'
import { ensembleIdOf } from '../ensemble-views.ts'
import { followLog, startPosition } from '../follow-log.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import type { ReaderView } from '../metrics.ts'
import { watchRow } from '../watch-row.ts'

interface Line {
  readonly offsetKey: string
  readonly eventJson: string
  readonly atMs: bigint
}

interface EventStream {
  readonly log: LogId
  readonly offset: string | undefined
  readonly follow: boolean
  readonly view: ReaderView
  /** Told of each event of the given type before the reader is, who waits for it: it notes the end, and that the record has it. */
  readonly watch: (event: RunEvent, sequence: number) => Promise<void>
  readonly watched: RunEvent['type']
  readonly hasEnded: (position: number) => Promise<boolean>
}

/** The logs themselves, event by event, as the JSON that is stored; with `follow` until the end of the agent's work or the ensemble. */
export function createStreamEvents(deps: HandlerDeps) {
  const { catalog, eventLog, recordViews, config, metrics, clock } = deps

  return {
    /** `tutti.v1.AgentService.StreamAgentEvents`. */
    async *streamAgentEvents(request: StreamAgentEventsRequest, context: CallContext): AsyncGenerator<Line> {
      const { owner } = callerOf(context)
      const bcId = agentIdOf(request.bcId)
      const read = () => catalog.agents.get(owner, bcId, context.signal)
      const { reached } = await watchRow(deps, read, context.signal)
      let status: AgentStatus | undefined
      yield* lines(
        {
          log: bcId,
          offset: request.offsetKey,
          follow: request.follow,
          view: 'agent_events',
          watched: 'status',
          async watch(event, sequence) {
            if (event.type !== 'status') return
            status = event.status
            if (isAtRest(event)) await reached(sequence)
          },
          hasEnded: (position) =>
            request.stay
              ? Promise.resolve(false)
              : agentStreamHasEnded(deps, { owner, bcId, status, position }, context.signal),
        },
        context.signal,
      )
    },

    /** `tutti.v1.EnsembleService.StreamEnsembleEvents`. */
    async *streamEnsembleEvents(
      request: StreamEnsembleEventsRequest,
      context: CallContext,
    ): AsyncGenerator<Line> {
      const { owner } = callerOf(context)
      const ensembleId = ensembleIdOf(request.ensembleId)
      const read = () => catalog.ensembles.get(owner, ensembleId, context.signal)
      const { reached } = await watchRow(deps, read, context.signal)
      let phase: EnsemblePhase | undefined
      yield* lines(
        {
          log: ensembleId,
          offset: request.offsetKey,
          follow: request.follow,
          view: 'ensemble_events',
          watched: 'phase',
          async watch(event, sequence) {
            if (event.type !== 'phase') return
            phase = event.phase
            if (isEnsembleEnd(phase)) await reached(sequence)
          },
          hasEnded: async (position) => {
            if (phase !== undefined) return isEnsembleEnd(phase)
            const row = await read()
            return isEnsembleEnd(row.phase) && row.logSequence <= position
          },
        },
        context.signal,
      )
    },
  }

  async function* lines(stream: EventStream, signal: AbortSignal): AsyncGenerator<Line> {
    const { log, offset, follow, watched, watch, hasEnded } = stream
    const from = await startPosition(eventLog, log, offset, signal)
    const left = metrics.readerOpened(stream.view)
    try {
      let offsetKey = encodeOffset(log, from)
      let live = false
      for await (const step of followLog(deps.reads, log, from, config['stream.heartbeat'], signal)) {
        for (const record of step.records) {
          // Only what is watched is parsed: the line is the stored text.
          if (record.type === watched) await watch(recordViews.of(log, record).event, record.sequence)
          offsetKey = encodeOffset(log, record.sequence)
          yield { offsetKey, eventJson: record.body, atMs: BigInt(record.at) }
        }
        const last = step.records.at(-1)
        if (live && last) metrics.observeDelay((clock.now() - last.at) / 1000)
        live = step.atHead
        if (step.idle) yield { offsetKey, eventJson: '', atMs: 0n }
        if (step.closed || (step.atHead && !follow)) return
        if (step.atHead && (await hasEnded(step.position))) return
      }
    } finally {
      left()
    }
  }
}
