import type { RecordState, WorkflowEvent } from '@tutti/activities'
import { condition, workflowInfo } from '@temporalio/workflow'

/** Writes a workflow's events to the log one batch after the other, while the workflow goes on. */
export interface Recorder {
  /** Puts events into the next batch. */
  add(...events: readonly WorkflowEvent[]): void
  /** Resolves when everything added so far is durable. @throws ActivityFailure when it cannot be: then the run must not go on. */
  flushed(): Promise<void>
  /** The log refused for good. */
  readonly failed: () => boolean
  /** Runs until {@link stop}; started once by the workflow, which awaits it before it ends. */
  run(): Promise<void>
  stop(): void
}

export interface RecorderDeps {
  /** The projection to store with a batch: the state as it is when the batch is written. */
  readonly snapshot: () => Omit<RecordState, 'runId' | 'sequence' | 'events'>
  readonly recordState: (input: RecordState) => Promise<void>
}

/** Batches keep their order, and each has the next sequence number of this run: a repeat is recognised by the log. */
export function createRecorder({ snapshot, recordState }: RecorderDeps): Recorder {
  const { runId } = workflowInfo()
  let waiting: WorkflowEvent[] = []
  let sequence = 0
  let writing = false
  let stopped = false
  let failure: { readonly thrown: unknown } | undefined

  const idle = () => waiting.length === 0 && !writing

  return {
    add(...events) {
      waiting.push(...events)
    },
    async flushed() {
      await condition(() => failure !== undefined || idle())
      if (failure) throw failure.thrown
    },
    failed: () => failure !== undefined,
    async run() {
      for (;;) {
        await condition(() => waiting.length > 0 || stopped)
        if (waiting.length === 0) return
        const batch = waiting
        waiting = []
        writing = true
        sequence += 1
        try {
          await recordState({ ...snapshot(), runId, sequence, events: batch })
        } catch (thrown) {
          failure = { thrown }
          return
        }
        writing = false
      }
    },
    stop() {
      stopped = true
    },
  }
}
