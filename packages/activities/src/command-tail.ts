import type { AgentId } from '@tutti/core'
import { decodeRunEvent, type CommandEvent, type RunEvent } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'

/** How long one read waits for a command, in milliseconds; only bounds how often an idle reader asks again. */
const waitMs = 20_000

/** Follows an agent's log for commands to its turn that must be immediate (design §3), as {@link tailEvents} does. */
export const tailCommands = (
  eventLog: EventLog,
  bcId: AgentId,
  from: number,
  onCommand: (command: CommandEvent) => void,
  signal: AbortSignal,
): Promise<void> =>
  tailEvents(eventLog, bcId, ['cancel', 'answer'], from, (events) => events.forEach(onCommand), signal)

/**
 * Follows an agent's log for events of these types, from the given position until the signal aborts. A failing store is waited for: the
 * log keeps the events.
 */
export async function tailEvents<T extends RunEvent['type']>(
  eventLog: EventLog,
  bcId: AgentId,
  types: readonly T[],
  from: number,
  onEvents: (events: Extract<RunEvent, { type: T }>[]) => Promise<void> | void,
  signal: AbortSignal,
): Promise<void> {
  let position = from
  while (!signal.aborted) {
    try {
      const page = await eventLog.read(bcId, position, { types, waitMs }, signal)
      if (page.records.length > 0)
        await onEvents(page.records.map((record) => decodeRunEvent(record) as Extract<RunEvent, { type: T }>))
      position = page.next
    } catch (error) {
      if (signal.aborted) return
      if ((error as { code?: string }).code !== 'unavailable') throw error
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}
