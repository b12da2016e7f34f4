import { TuttiError } from '@tutti/core'
import type { RunEvent } from './run-event.ts'

/** An event as the log stores it: its type beside its JSON text. */
export interface EventBody {
  readonly type: string
  readonly body: string
}

export function encodeRunEvent(event: RunEvent): EventBody {
  return { type: event.type, body: JSON.stringify(event) }
}

/** @throws TuttiError `data_loss` when the text is not an event. */
export function decodeRunEvent(stored: EventBody): RunEvent {
  try {
    const event = JSON.parse(stored.body) as RunEvent
    if (event.type === stored.type) return event
  } catch {
    // Falls through to the one error below.
  }
  throw new TuttiError('data_loss', `A stored ${stored.type} event cannot be read.`, { type: stored.type })
}
