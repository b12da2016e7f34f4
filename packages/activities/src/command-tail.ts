import type { AgentId } from '@tutti/core'
import { decodeRunEvent, type CommandEvent } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'

/** How long one read waits for a command, in milliseconds; only bounds how often an idle reader asks again. */
const waitMs = 20_000

/**
 * Follows an agent's log for commands that must be immediate (design §3), from the given position until the signal aborts. A
 * failing store is waited for: the log keeps the command.
 */
export async function tailCommands(
  eventLog: EventLog,
  bcId: AgentId,
  from: number,
  onCommand: (command: CommandEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  let position = from
  while (!signal.aborted) {
    try {
      const page = await eventLog.read(bcId, position, { types: ['cancel', 'answer'], waitMs }, signal)
      for (const record of page.records) onCommand(decodeRunEvent(record) as CommandEvent)
      position = page.next
    } catch (error) {
      if (signal.aborted) return
      if ((error as { code?: string }).code !== 'unavailable') throw error
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}
