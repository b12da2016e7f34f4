import type { AgentId } from '@tutti/core'
import type { RunEvent } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'
import { readEvents } from './read-events.ts'

export interface OpenCall {
  readonly callId: string
  readonly toolName: string
}

export const callTypes = ['tool_call_started', 'tool_call_completed'] as const

type CallEvent = Extract<RunEvent, { type: (typeof callTypes)[number] }>

/** Follows which tool calls of a log have no end. */
export function createOpenCalls() {
  const open = new Map<string, OpenCall>()
  return {
    take({ type, callId, toolName }: CallEvent) {
      if (type === 'tool_call_started') open.set(callId, { callId, toolName })
      else open.delete(callId)
    },
    list: (): readonly OpenCall[] => [...open.values()],
  }
}

/** Tool calls in the log that have no end. */
export async function readOpenCalls(
  eventLog: EventLog,
  bcId: AgentId,
  signal: AbortSignal,
): Promise<readonly OpenCall[]> {
  const calls = createOpenCalls()
  for await (const { event } of readEvents(eventLog, bcId, callTypes, signal)) calls.take(event)
  return calls.list()
}
