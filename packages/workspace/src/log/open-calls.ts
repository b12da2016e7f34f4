import type { AgentId } from '@tutti/core'
import type { EventLog } from '@tutti/store'
import { readEvents, type ReadEventsOptions } from './read-events.ts'

export interface OpenCall {
  readonly callId: string
  readonly toolName: string
}

const types = ['tool_call_started', 'tool_call_completed'] as const

/** Tool calls in the log that have no end. */
export async function readOpenCalls(
  eventLog: EventLog,
  bcId: AgentId,
  signal: AbortSignal,
  options?: ReadEventsOptions,
): Promise<readonly OpenCall[]> {
  const open = new Map<string, OpenCall>()
  for await (const { event } of readEvents(eventLog, bcId, types, signal, options)) {
    const { type, callId, toolName } = event
    if (type === 'tool_call_started') open.set(callId, { callId, toolName })
    else open.delete(callId)
  }
  return [...open.values()]
}
