import type { AgentId } from '@tutti/core'
import { isEnsembleEnd } from '@tutti/core'
import type { RunEvent } from '@tutti/protocol'
import { expect } from 'vitest'
import type { EnsembleDriver, Logged } from './ensemble-driver.ts'

/**
 * Whatever was killed: the logs of an ended ensemble have no gap and nothing twice. Each phase, each message, each end of a turn
 * and of a child stands there once, and every tool call that was begun has one end.
 */
export async function expectWholeLogs(ensemble: EnsembleDriver): Promise<void> {
  const own = await ensemble.events()
  expectNumbered(own)
  const phases = of(own, 'phase').map(({ phase }) => phase)
  expect(phases).toEqual([...new Set(phases)])
  expect(phases.filter(isEnsembleEnd)).toHaveLength(1)
  expect(own.at(-1)!.type).toBe('phase')
  for (const bcId of await ensemble.bcIds()) {
    expectEndsOnce(own, bcId)
    expectWholeAgent(await ensemble.eventsOf(bcId))
  }
}

function expectWholeAgent(events: readonly Logged[]): void {
  expectNumbered(events)
  expect(of(events, 'session_start')).toHaveLength(1)
  const messages = of(events, 'user_message').map(({ turnId }) => turnId)
  expect(messages).toEqual([...new Set(messages)])
  expect(of(events, 'turn_ended').map(({ turnId }) => turnId)).toEqual(messages)
  const started = of(events, 'turn_started').map(({ turnId, incarnation }) => `${turnId} ${incarnation}`)
  expect(started).toEqual([...new Set(started)])
  const calls = of(events, 'tool_call_started').map(({ callId }) => callId)
  expect(calls).toEqual([...new Set(calls)])
  expect(
    of(events, 'tool_call_completed')
      .map(({ callId }) => callId)
      .toSorted(),
  ).toEqual(calls.toSorted())
}

/** The end of a child is shown once, and nothing of it comes afterwards. */
export function expectEndsOnce(own: readonly Logged[], bcId: AgentId): void {
  const shown = of(own, 'child').filter(({ child }) => child.bcId === bcId)
  const ends = shown.filter(({ child }) => child.status !== 'RUNNING' && child.status !== 'UNSPECIFIED')
  expect(ends, `ends of ${bcId}`).toHaveLength(1)
  expect(shown.at(-1)).toBe(ends[0])
}

export function expectNumbered(events: readonly Logged[]): void {
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1))
}

export function of<T extends RunEvent['type']>(
  events: readonly Logged[],
  type: T,
): Logged<Extract<RunEvent, { type: T }>>[] {
  return events.filter((event): event is Logged<Extract<RunEvent, { type: T }>> => event.type === type)
}
