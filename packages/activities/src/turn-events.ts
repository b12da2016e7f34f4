import type { BlobStore } from '@tutti/blob-store'
import type { RunEvent, TaskEvent } from '@tutti/protocol'
import { boundEvent } from './bound-event.ts'
import type { RunLogWriter } from './run-log-writer.ts'
import { createShellOutputCap } from './shell-output.ts'

/** Takes what an agent says during one turn to the log, in sizes that the log takes, and knows which tool calls are open. */
export interface TurnEvents {
  take(event: TaskEvent): Promise<void>
  /** Closes every open call; what is left of its output goes before. */
  closeCalls(outcome: 'cancelled' | 'interrupted' | 'error'): Promise<void>
  close(): Promise<void>
}

export function createTurnEvents(log: RunLogWriter, blobs: BlobStore, signal: AbortSignal): TurnEvents {
  const shell = createShellOutputCap(blobs)
  const open = new Map<string, string>()

  const write = async (event: RunEvent) => log.write(...(await boundEvent(event, blobs, signal)))

  return {
    async take(event) {
      if (event.type === 'tool_call_started') open.set(event.callId, event.toolName)
      if (event.type === 'tool_call_completed') {
        open.delete(event.callId)
        for (const left of await shell.end(event.callId, signal)) await log.write(left)
      }
      if (event.type !== 'shell_output_delta') return write(event)
      for (const kept of await shell.pass(event, signal)) await log.write(kept)
    },
    async closeCalls(outcome) {
      for (const [callId, toolName] of open) {
        for (const left of await shell.end(callId, signal)) await log.write(left)
        await log.write({ type: 'tool_call_completed', callId, toolName, outcome })
      }
      open.clear()
    },
    close: () => shell.close(),
  }
}
