import { isEnsembleEnd, type AgentStatus, type EnsemblePhase, type LogId } from '@tutti/core'
import type { StreamAgentEventsRequest, StreamEnsembleEventsRequest } from '@tutti/proto'
import { encodeOffset, type RunEvent } from '@tutti/protocol'

import { agentStreamHasEnded } from '../agent-stream-end.ts'
import { callerOf } from '../call-context.ts'
import { agentIdOf } from '../commands.ts'
import { ensembleIdOf } from '../ensemble-views.ts'
import { followLog, startPosition } from '../follow-log.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import type { ReaderView } from '../metrics.ts'

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
  /** Told of each event of the given types, so that it can say when the stream has ended. */
  readonly watch: (event: RunEvent) => void
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
      await catalog.agents.get(owner, bcId, context.signal)
      let status: AgentStatus | undefined
      yield* lines(
        {
          log: bcId,
          offset: request.offsetKey,
          follow: request.follow,
          view: 'agent_events',
          watched: 'status',
          watch: (event) => {
            if (event.type === 'status') status = event.status
          },
          hasEnded: (position) =>
            agentStreamHasEnded(deps, { owner, bcId, status, position }, context.signal),
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
      await catalog.ensembles.get(owner, ensembleId, context.signal)
      let phase: EnsemblePhase | undefined
      yield* lines(
        {
          log: ensembleId,
          offset: request.offsetKey,
          follow: request.follow,
          view: 'ensemble_events',
          watched: 'phase',
          watch: (event) => {
            if (event.type === 'phase') phase = event.phase
          },
          hasEnded: async (position) => {
            if (phase !== undefined) return isEnsembleEnd(phase)
            const row = await catalog.ensembles.get(owner, ensembleId, context.signal)
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
          if (record.type === watched) watch(recordViews.of(log, record).event)
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
