import { connect } from './connect.ts'
import type { TuttiStack } from '@tutti/testkit'

export interface LoggedEvent {
  readonly type: string
  readonly phase?: string
  readonly [field: string]: unknown
}

/** Every event of an ensemble's log, in order. */
export async function ensembleEvents(stack: TuttiStack, ensembleId: string): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = []
  for await (const { eventJson } of connect(stack).ensembles.streamEnsembleEvents({ ensembleId })) {
    if (eventJson) events.push(JSON.parse(eventJson) as LoggedEvent)
  }
  return events
}

/** The phases that an ensemble went through, in the order of its log. */
export async function phasesOf(stack: TuttiStack, ensembleId: string): Promise<string[]> {
  return (await ensembleEvents(stack, ensembleId)).flatMap((event) =>
    event.type === 'phase' ? [event.phase!] : [],
  )
}
