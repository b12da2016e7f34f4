import type {
  ParallelAgentWorkflowStatusUpdate,
  StreamAgentEventsResponse,
  StreamEnsembleEventsResponse,
} from '@tutti/proto'
import type { TuttiClient } from './tutti-client.ts'
import { resumeStream, type ResumePolicy } from './resume-stream.ts'

/** Asked before every connection, so that it may answer with another server of the same data. */
export type ClientSource = TuttiClient | (() => Promise<TuttiClient>)

export interface FollowAgentEvents {
  readonly bcId: string
  /** Go on after this offset. Absent: from the start. */
  readonly from?: string | undefined
  /** Stay on after the last event that there is, until the agent is at rest. Default false. */
  readonly follow?: boolean
  /** With `follow`: also while the agent is at rest. Default false. */
  readonly stay?: boolean
  readonly signal: AbortSignal
}

export interface FollowEnsemble {
  readonly ensembleId: string
  readonly from?: string | undefined
  readonly signal: AbortSignal
}

/** An event of a log: its JSON text, the position after it, and when it was stored, in milliseconds since the epoch. */
export interface LoggedEvent {
  readonly offsetKey: string
  readonly eventJson: string
  readonly atMs: bigint
}

/**
 * The run log of an agent, each event once and in order, over as many connections as it takes.
 *
 * @throws TuttiError `not_found`, `invalid_argument` (a foreign or damaged offset), `out_of_range`, `cancelled`.
 */
export function followAgentEvents(
  source: ClientSource,
  { bcId, from, follow = false, stay = false, signal }: FollowAgentEvents,
  policy?: ResumePolicy,
): AsyncGenerator<LoggedEvent> {
  return resumeStream<StreamAgentEventsResponse>(
    {
      open: async (offsetKey, connection) =>
        (await clientOf(source)).agents.streamAgentEvents(
          { bcId, follow, stay, ...(offsetKey === undefined ? {} : { offsetKey }) },
          { signal: connection },
        ),
      ...loggedEvents,
      from,
      signal,
    },
    policy,
  )
}

/** The log of an ensemble; as {@link followAgentEvents}. */
export function followEnsembleEvents(
  source: ClientSource,
  { ensembleId, from, follow = false, signal }: FollowEnsemble & { readonly follow?: boolean },
  policy?: ResumePolicy,
): AsyncGenerator<LoggedEvent> {
  return resumeStream<StreamEnsembleEventsResponse>(
    {
      open: async (offsetKey, connection) =>
        (await clientOf(source)).ensembles.streamEnsembleEvents(
          { ensembleId, follow, ...(offsetKey === undefined ? {} : { offsetKey }) },
          { signal: connection },
        ),
      ...loggedEvents,
      from,
      signal,
    },
    policy,
  )
}

/** How positions and heartbeats are told in a stream of a log's events. */
const loggedEvents = {
  offsetOf: (message: LoggedEvent) => message.offsetKey,
  isHeartbeat: (message: LoggedEvent) => message.eventJson === '',
}

/**
 * The state of an ensemble at each of its changes, until COMPLETED or ERROR, over as many connections as it takes.
 *
 * @throws TuttiError `not_found`, `invalid_argument`, `out_of_range`, `cancelled`.
 */
export function followEnsemble(
  source: ClientSource,
  { ensembleId, from, signal }: FollowEnsemble,
  policy?: ResumePolicy,
): AsyncGenerator<ParallelAgentWorkflowStatusUpdate> {
  return resumeStream<ParallelAgentWorkflowStatusUpdate>(
    {
      open: async (offsetKey, connection) =>
        (await clientOf(source)).composers.streamParallelAgentWorkflowStatus(
          { ensembleId, ...(offsetKey === undefined ? {} : { offsetKey }) },
          { signal: connection },
        ),
      offsetOf: (message) => message.offsetKey,
      isHeartbeat: (message) => message.heartbeat,
      from,
      signal,
    },
    policy,
  )
}

const clientOf = async (source: ClientSource): Promise<TuttiClient> =>
  typeof source === 'function' ? await source() : source
