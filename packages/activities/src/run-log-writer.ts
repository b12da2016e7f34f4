import { limits, TuttiError, type Clock, type LogId } from '@tutti/core'
import { encodeRunEvent, isDelta, joinDeltas, type RunEvent } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'

/** Writes one producer's events into a log, in order, joined and in batches. */
export interface RunLogWriter {
  /** Queues events, which become durable together or not at all; waits only while too much is queued. Rejects once an append has failed for good (fenced, log gone). */
  write(...events: readonly RunEvent[]): Promise<void>
  /** Resolves when everything written so far is durable, with the log position of the newest of it. */
  flush(): Promise<number>
  /** Log position of the newest durable event; 0 before the first. */
  position(): number
}

export interface RunLogWriterDeps {
  readonly eventLog: EventLog
  readonly clock: Clock
  readonly log: LogId
  readonly producer: { readonly id: string; readonly epoch: number }
  readonly signal: AbortSignal
}

/** Bytes that may be queued before a writer has to wait: an agent that floods is slowed down, never buffered without bound. */
const maxQueued = 1 << 20
/** Events of one append, unless more were written together. */
const maxBatch = 500
/** What is written together beyond this takes several appends: a capture of a huge tree. */
const maxTogether = 20_000

export async function createRunLogWriter(deps: RunLogWriterDeps): Promise<RunLogWriter> {
  const { eventLog, clock, log, producer, signal } = deps
  let sequence = (await eventLog.expected(log, producer.id, producer.epoch, signal)) - 1
  let queue: RunEvent[][] = []
  let queuedBytes = 0
  let position = 0
  let pumping: Promise<void> | undefined
  let failed: TuttiError | undefined

  const pump = async () => {
    while (queue.length > 0) {
      // A lone delta waits for its neighbours; anything else goes at once.
      if (queue.length === 1 && queue[0]!.every(isDelta))
        await clock.sleep(limits.coalesceMs, signal).catch(() => undefined)
      const batch = takeBatch()
      sequence += 1
      const appended = await appendSurely(batch)
      position = appended.last
    }
  }

  const takeBatch = (): readonly RunEvent[] => {
    let groups = 0
    let count = 0
    while (groups < queue.length && (groups === 0 || count + queue[groups]!.length <= maxBatch)) {
      count += queue[groups]!.length
      groups += 1
    }
    const batch = queue.splice(0, groups).flat()
    queuedBytes -= batch.reduce((bytes, event) => bytes + sizeOf(event), 0)
    return batch
  }

  /** An append whose answer was lost is sent again under the same number, until the store answers. */
  const appendSurely = async (batch: readonly RunEvent[]) => {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await eventLog.append(log, { ...producer, sequence }, batch.map(encodeRunEvent), signal)
      } catch (error) {
        const retry = (error as { code?: string }).code === 'unavailable' && attempt < 20
        if (!retry) throw error
        await clock.sleep(Math.min(2000, 50 * 2 ** attempt), signal)
      }
    }
  }

  const start = () => {
    pumping ??= pump()
      .catch((error: unknown) => {
        failed = TuttiError.from(error)
        queue = []
      })
      .finally(() => {
        pumping = undefined
        if (queue.length > 0 && !failed) start()
      })
  }

  const throwIfFailed = () => {
    if (failed) throw failed
  }

  return {
    async write(...events) {
      throwIfFailed()
      for (let start = 0; start < events.length; start += maxTogether) {
        const group: RunEvent[] = []
        for (const event of events.slice(start, start + maxTogether)) {
          queuedBytes += sizeOf(event)
          const before = group.length > 0 ? group : queue.at(-1)
          const joined = before && joinDeltas(before.at(-1)!, event)
          if (joined) before[before.length - 1] = joined
          else group.push(event)
        }
        if (group.length > 0) queue.push(group)
      }
      start()
      while (queuedBytes > maxQueued && pumping) await pumping
      throwIfFailed()
    },
    async flush() {
      while (pumping) await pumping
      throwIfFailed()
      return position
    },
    position: () => position,
  }
}

/** A rough size, cheap to get: only texts and tool values can be large. */
function sizeOf(event: RunEvent): number {
  if (event.type === 'tool_call_started' || event.type === 'tool_call_completed')
    return limits.maxInlineEventBytes
  if (event.type === 'text_delta' || event.type === 'thinking_delta') return event.text.length
  if (event.type === 'shell_output_delta' && 'data' in event.event) return event.event.data.length
  return 200
}
